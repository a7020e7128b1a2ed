// Queries and the statements that change rows.
#include <fmt/format.h>

#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/deparser.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/parser/pretty.h"

namespace cellar::sql {

using namespace ast;  // NOLINT: every name here is a node

void Deparser::Clause(int indent, std::string_view words) {
  if (lines_ && depth_ == 1) {
    out_ += '\n';
    out_.append(indent, ' ');
  } else if (!out_.empty() && out_.back() != '(' && out_.back() != ' ') {
    out_ += ' ';
  }
  out_ += words;
}

void Deparser::With(const WithClause* with) {
  if (with == nullptr) return;
  out_ += with->recursive ? "WITH RECURSIVE " : "WITH ";
  for (size_t i = 0; i < with->ctes.size(); ++i) {
    const CommonTableExpr& cte = with->ctes[i];
    if (i > 0) out_ += ", ";
    out_ += QuoteIdentifier(cte.name);
    if (!cte.columns.empty()) {
      out_ += '(';
      Names(cte.columns);
      out_ += ')';
    }
    out_ += cte.materialize == CteMaterialize::kAlways  ? " AS MATERIALIZED ("
            : cte.materialize == CteMaterialize::kNever ? " AS NOT MATERIALIZED ("
                                                        : " AS (";
    ++depth_;
    Statement(*cte.query);
    --depth_;
    out_ += ')';
  }
  out_ += ' ';
}

void Deparser::Targets(const TargetList& targets) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (i > 0) out_ += lines_ && depth_ == 1 ? ",\n    " : ", ";
    Expression(*targets[i].expr);
    if (!targets[i].name.empty()) out_ += " AS " + QuoteIdentifier(targets[i].name);
  }
}

void Deparser::Alias(const ast::Alias& alias) {
  if (alias.name.empty()) return;
  out_ += ' ' + QuoteIdentifier(alias.name);
  if (alias.columns.empty()) return;
  out_ += '(';
  Names(alias.columns);
  out_ += ')';
}

void Deparser::ColumnDefs(const std::vector<ColumnDef>& columns) {
  out_ += '(';
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) out_ += ", ";
    out_ += QuoteIdentifier(columns[i].name) + ' ' + DeparseType(columns[i].type);
  }
  out_ += ')';
}

void Deparser::FromList(const std::vector<FromItemPtr>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out_ += lines_ && depth_ == 1 ? ",\n    " : ", ";
    From(*items[i]);
  }
}

void Deparser::From(const FromItem& item) {
  switch (item.kind) {
    case NodeKind::kTableRef: {
      const auto& table = item.As<TableRef>();
      if (table.only) out_ += "ONLY ";
      Name(table.name);
      Alias(table.alias);
      break;
    }
    case NodeKind::kSubqueryRef: {
      const auto& sub = item.As<SubqueryRef>();
      out_ += sub.lateral ? "LATERAL (" : "(";
      Select(*sub.select);
      out_ += ')';
      Alias(sub.alias);
      break;
    }
    case NodeKind::kFunctionRef: {
      const auto& function = item.As<FunctionRef>();
      if (function.lateral) out_ += "LATERAL ";
      if (function.rows_from) out_ += "ROWS FROM(";
      for (size_t i = 0; i < function.functions.size(); ++i) {
        if (i > 0) out_ += ", ";
        Expression(*function.functions[i].call);
        if (!function.functions[i].columns.empty()) {
          out_ += " AS ";
          ColumnDefs(function.functions[i].columns);
        }
      }
      if (function.rows_from) out_ += ')';
      if (function.ordinality) out_ += " WITH ORDINALITY";
      if (function.columns.empty()) {
        Alias(function.alias);
      } else {
        out_ += " AS ";
        if (!function.alias.name.empty()) out_ += QuoteIdentifier(function.alias.name);
        ColumnDefs(function.columns);
      }
      break;
    }
    case NodeKind::kJoin: {
      const auto& join = item.As<JoinExpr>();
      const bool named = !join.alias.name.empty();
      if (named) out_ += '(';
      From(*join.left);
      const bool cross = join.type == JoinType::kInner && !join.natural &&
                         join.condition == nullptr && join.using_columns.empty();
      Clause(5, join.natural ? "NATURAL " : cross ? "CROSS " : "");
      out_ += join.type == JoinType::kLeft    ? "LEFT JOIN "
              : join.type == JoinType::kRight ? "RIGHT JOIN "
              : join.type == JoinType::kFull  ? "FULL JOIN "
                                              : "JOIN ";
      const bool nested =
          join.right->Is<JoinExpr>() && join.right->As<JoinExpr>().alias.name.empty();
      if (nested) out_ += '(';
      From(*join.right);
      if (nested) out_ += ')';
      if (join.condition != nullptr) {
        out_ += " ON ";
        Expression(*join.condition);
      }
      if (!join.using_columns.empty()) {
        out_ += " USING (";
        Names(join.using_columns);
        out_ += ')';
        if (!join.using_alias.empty()) out_ += " AS " + QuoteIdentifier(join.using_alias);
      }
      if (named) out_ += ')';
      Alias(join.alias);
      break;
    }
    case NodeKind::kUnsupportedFrom: out_ += item.As<UnsupportedFrom>().what; break;
    default: break;
  }
}

void Deparser::PlainSelect(const SelectStmt& select) {
  out_ += "SELECT";
  if (select.distinct) out_ += " DISTINCT";
  if (!select.distinct_on.empty()) {
    out_ += " ON (";
    List(select.distinct_on);
    out_ += ')';
  }
  if (!select.targets.empty()) out_ += ' ';
  Targets(select.targets);
  if (!select.from.empty()) {
    Clause(3, "FROM ");
    FromList(select.from);
  }
  if (select.where != nullptr) {
    Clause(2, "WHERE ");
    Expression(*select.where);
  }
  if (!select.group_by.empty()) {
    Clause(2, select.group_distinct ? "GROUP BY DISTINCT " : "GROUP BY ");
    List(select.group_by);
  }
  if (select.having != nullptr) {
    Clause(1, "HAVING ");
    Expression(*select.having);
  }
  for (size_t i = 0; i < select.windows.size(); ++i) {
    if (i == 0) {
      Clause(2, "WINDOW ");
    } else {
      out_ += ", ";
    }
    out_ += QuoteIdentifier(select.windows[i].name) + " AS ";
    Window(select.windows[i]);
  }
}

void Deparser::Operands(const SelectStmt& select) {
  for (size_t i = 0; i < select.operands.size(); ++i) {
    const SelectStmt& operand = *select.operands[i];
    if (i > 0) {
      Clause(0, select.set_op == SetOp::kUnion       ? "UNION"
                : select.set_op == SetOp::kIntersect ? "INTERSECT"
                                                     : "EXCEPT");
      out_ += select.set_all ? " ALL" : "";
      out_ += lines_ && depth_ == 1 ? "\n " : " ";
    }
    const bool parens = operand.set_op != SetOp::kNone || !operand.order_by.empty() ||
                        operand.limit != nullptr || operand.offset != nullptr ||
                        !operand.locking.empty() || operand.with != nullptr;
    if (parens) out_ += '(';
    if (!parens) --depth_;  // laid out like its parent
    Select(operand);
    if (!parens) ++depth_;
    if (parens) out_ += ')';
  }
}

void Deparser::Select(const SelectStmt& select) {
  ++depth_;
  const Expr* parent = std::exchange(parent_, nullptr);
  With(select.with.get());
  if (select.set_op != SetOp::kNone) {
    Operands(select);
  } else if (!select.values.empty()) {
    out_ += "VALUES ";
    for (size_t i = 0; i < select.values.size(); ++i) {
      out_ += i == 0 ? "(" : ", (";
      List(select.values[i]);
      out_ += ')';
    }
  } else {
    PlainSelect(select);
  }
  if (!select.order_by.empty()) {
    Clause(2, "ORDER BY ");
    Sort(select.order_by);
  }
  if (select.offset != nullptr) {
    Clause(1, "OFFSET ");
    Expression(*select.offset);
  }
  if (select.limit != nullptr) {
    if (select.with_ties) {
      Clause(1, "FETCH FIRST (");
      Expression(*select.limit);
      out_ += ") ROWS WITH TIES";
    } else if (select.limit->Is<Const>() &&
               select.limit->As<Const>().const_kind == ConstKind::kNull) {
      Clause(1, "LIMIT ALL");
    } else {
      Clause(1, "LIMIT ");
      Expression(*select.limit);
    }
  }
  for (const LockingClause& lock : select.locking) {
    Clause(1, "FOR ");
    out_ += lock.strength == LockStrength::kForUpdate        ? "UPDATE"
            : lock.strength == LockStrength::kForNoKeyUpdate ? "NO KEY UPDATE"
            : lock.strength == LockStrength::kForShare       ? "SHARE"
                                                             : "KEY SHARE";
    for (size_t i = 0; i < lock.tables.size(); ++i) {
      out_ += i == 0 ? " OF " : ", ";
      Name(lock.tables[i]);
    }
    if (lock.wait == LockWait::kSkip) out_ += " SKIP LOCKED";
    if (lock.wait == LockWait::kError) out_ += " NOWAIT";
  }
  parent_ = parent;
  --depth_;
}

void Deparser::Returning(const TargetList& targets) {
  if (targets.empty()) return;
  out_ += " RETURNING ";
  Targets(targets);
}

void Deparser::Target(const AssignTarget& target) {
  out_ += QuoteIdentifier(target.column);
  Steps(target.steps);
}

void Deparser::Sets(const std::vector<SetClause>& sets) {
  for (size_t i = 0; i < sets.size(); ++i) {
    if (i > 0) out_ += ", ";
    if (sets[i].multi) out_ += '(';
    for (size_t k = 0; k < sets[i].targets.size(); ++k) {
      if (k > 0) out_ += ", ";
      Target(sets[i].targets[k]);
    }
    out_ += sets[i].multi ? ") = " : " = ";
    Expression(*sets[i].value);
  }
}

void Deparser::Conflict(const OnConflict& conflict) {
  out_ += " ON CONFLICT";
  if (!conflict.constraint.empty()) {
    out_ += " ON CONSTRAINT " + QuoteIdentifier(conflict.constraint);
  }
  for (size_t i = 0; i < conflict.elements.size(); ++i) {
    const IndexElement& element = conflict.elements[i];
    out_ += i == 0 ? " (" : ", ";
    if (element.expr != nullptr) {
      out_ += '(';
      Expression(*element.expr);
      out_ += ')';
    } else {
      out_ += QuoteIdentifier(element.column);
    }
    if (!element.collation.empty()) out_ += " COLLATE ", Name(element.collation);
    if (!element.opclass.empty()) out_ += ' ', Name(element.opclass);
    if (i + 1 == conflict.elements.size()) out_ += ')';
  }
  if (conflict.index_where != nullptr) out_ += " WHERE ", Expression(*conflict.index_where);
  if (!conflict.do_update) {
    out_ += " DO NOTHING";
    return;
  }
  out_ += " DO UPDATE SET ";
  Sets(conflict.sets);
  if (conflict.where != nullptr) out_ += " WHERE ", Expression(*conflict.where);
}

void Deparser::Insert(const InsertStmt& insert) {
  With(insert.with.get());
  out_ += "INSERT INTO ";
  Name(insert.table);
  if (!insert.alias.empty()) out_ += " AS " + QuoteIdentifier(insert.alias);
  for (size_t i = 0; i < insert.columns.size(); ++i) {
    out_ += i == 0 ? " (" : ", ";
    Target(insert.columns[i]);
    if (i + 1 == insert.columns.size()) out_ += ')';
  }
  if (insert.overriding == Overriding::kUserValue) out_ += " OVERRIDING USER VALUE";
  if (insert.overriding == Overriding::kSystemValue) out_ += " OVERRIDING SYSTEM VALUE";
  if (insert.source == nullptr) {
    out_ += " DEFAULT VALUES";
  } else {
    out_ += ' ';
    Select(*insert.source);
  }
  if (insert.on_conflict != nullptr) Conflict(*insert.on_conflict);
  Returning(insert.returning);
}

void Deparser::Update(const UpdateStmt& update) {
  With(update.with.get());
  out_ += update.only ? "UPDATE ONLY " : "UPDATE ";
  Name(update.table);
  Alias(update.alias);
  out_ += " SET ";
  Sets(update.sets);
  if (!update.from.empty()) {
    out_ += " FROM ";
    FromList(update.from);
  }
  if (update.where != nullptr) out_ += " WHERE ", Expression(*update.where);
  Returning(update.returning);
}

void Deparser::Delete(const DeleteStmt& statement) {
  With(statement.with.get());
  out_ += statement.only ? "DELETE FROM ONLY " : "DELETE FROM ";
  Name(statement.table);
  Alias(statement.alias);
  if (!statement.using_items.empty()) {
    out_ += " USING ";
    FromList(statement.using_items);
  }
  if (statement.where != nullptr) out_ += " WHERE ", Expression(*statement.where);
  Returning(statement.returning);
}

void Deparser::Statement(const Stmt& statement) {
  switch (statement.kind) {
    case NodeKind::kSelect: Select(statement.As<SelectStmt>()); break;
    case NodeKind::kInsert: Insert(statement.As<InsertStmt>()); break;
    case NodeKind::kUpdate: Update(statement.As<UpdateStmt>()); break;
    case NodeKind::kDelete: Delete(statement.As<DeleteStmt>()); break;
    default: break;
  }
}

std::string DeparseStatement(const Stmt& statement) {
  Deparser deparser;
  deparser.Statement(statement);
  return deparser.Take();
}

std::string DeparseView(const SelectStmt& select) {
  Deparser deparser(true);
  deparser.Select(select);
  return " " + deparser.Take();
}

std::string DeparsePrettyView(const SelectStmt& select) {
  Deparser deparser(true, true);
  deparser.Select(select);
  return " " + deparser.Take();
}

std::string PrettyView(const std::string& sql) {
  const Result<sql::Statement> parsed = ParseOne(sql);
  return parsed.ok() && parsed->ast != nullptr && parsed->ast->Is<SelectStmt>()
             ? DeparsePrettyView(parsed->ast->As<SelectStmt>())
             : sql;
}

}  // namespace cellar::sql
