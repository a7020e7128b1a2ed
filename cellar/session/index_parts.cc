// What indexes hold beside columns: expressions and predicates.
#include "cellar/session/index_parts.h"

#include <algorithm>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/index_expressions.h"
#include "cellar/session/storage_parameters.h"
#include "cellar/sql/expr/collate.h"
#include "cellar/sql/expr/eval.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/parser/pretty.h"
#include "cellar/sql/plan/index_expressions.h"
#include "cellar/table/computed.h"

namespace cellar::session {

namespace {

constexpr int64_t kLeastShards = 2, kMostShards = 32;

// Immutable expressions depend on no session.
struct Bare {
  sql::NameScope scope;
  sql::EvalContext eval;
  Arena arena;
  sql::PlannerContext planner;

  Bare() {
    eval.set_arena(&arena);
    planner.scope = &scope;
    planner.fold = &eval;
  }
};

class Evaluators final : public table::RowEvaluator {
 public:
  static Result<std::unique_ptr<table::RowEvaluator>> Make(
      const catalog::TableDescriptor& table, std::span<const table::ComputedColumn> columns) {
    auto out = std::make_unique<Evaluators>();
    for (const table::ComputedColumn& column : columns) {
      CELLAR_TRY_ASSIGN(ast::ExprPtr parsed, sql::ParseExpression(column.sql));
      const sql::IndexPart part =
          column.predicate ? sql::IndexPart::kPredicate : sql::IndexPart::kExpression;
      CELLAR_TRY_ASSIGN(sql::ExprPtr bound,
                        sql::BindIndexExpression(*parsed, table, part, out->bare_.planner));
      out->types_.push_back(bound->type);
      out->exprs_.push_back(std::move(bound));
      out->evaluators_.emplace_back(out->exprs_.back().get());
    }
    return std::unique_ptr<table::RowEvaluator>(std::move(out));
  }

  std::span<const Type> types() const override { return types_; }

  Status Evaluate(const RowBatch& rows, size_t first, RowBatch* out) override {
    for (size_t i = 0; i < evaluators_.size(); ++i) {
      Arena arena;
      bare_.eval.set_arena(&arena);
      const sql::Selection all{nullptr, rows.size()};
      CELLAR_TRY_ASSIGN(const ColumnVector* values, evaluators_[i].Eval(rows, all, bare_.eval));
      ColumnVector& column = out->column(first + i);
      for (size_t row = 0; row < rows.size(); ++row) {
        column.Set(row, CopyDatum(values->Get(row), column.type(), out->arena()));
      }
    }
    return Status();
  }

 private:
  Bare bare_;
  std::vector<sql::ExprPtr> exprs_;
  std::vector<sql::Evaluator> evaluators_;
  std::vector<Type> types_;
};

}  // namespace

void InstallIndexExpressions() { table::SetMakeRowEvaluator(&Evaluators::Make); }

Result<Type> CheckIndexExpression(const ast::Expr& expr, const catalog::TableDescriptor& table,
                                  bool* agreed) {
  Bare bare;
  CELLAR_TRY_ASSIGN(
      sql::ExprPtr bound,
      sql::BindIndexExpression(expr, table, sql::IndexPart::kExpression, bare.planner));
  if (!IsStorable(bound->type)) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                    "index expression has pseudo-type {}", FormatType(bound->type));
  }
  if (agreed != nullptr)
    *agreed = sql::SourceOfCollation(*bound) != sql::CollationSource::kConflict;
  return bound->type;
}

Status CheckIndexPredicate(const ast::Expr& expr, const catalog::TableDescriptor& table) {
  Bare bare;
  return sql::BindIndexExpression(expr, table, sql::IndexPart::kPredicate, bare.planner).status();
}

namespace {

Result<bool> TextMentions(const std::string& text, std::string_view column) {
  if (text.empty()) return false;
  CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(text));
  sql::RenameColumn(expr.get(), column, std::string(column) + "\x01");
  return sql::DeparseExpr(*expr).find('\x01') != std::string::npos;
}

}  // namespace

bool Mentions(const ast::Expr& expr, std::string_view column) {
  const Result<bool> mentioned = TextMentions(sql::DeparseExpr(expr), column);
  return mentioned.ok() && *mentioned;
}

Result<bool> IndexMentions(const catalog::IndexDescriptor& index, std::string_view column) {
  const auto mentions = [&](const std::string& text) { return TextMentions(text, column); };
  for (const catalog::IndexColumn& part : index.key) {
    CELLAR_TRY_ASSIGN(const bool found, mentions(part.expression));
    if (found) return true;
  }
  return mentions(index.predicate);
}

Status RecheckIndexes(const catalog::TableDescriptor& table) {
  for (const catalog::IndexDescriptor& index : table.indexes) {
    for (const catalog::IndexColumn& part : index.key) {
      if (part.expression.empty()) continue;
      CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(part.expression));
      CELLAR_TRY(CheckIndexExpression(*expr, table).status());
    }
    if (index.predicate.empty()) continue;
    CELLAR_TRY_ASSIGN(ast::ExprPtr predicate, sql::ParseExpression(index.predicate));
    CELLAR_TRY(CheckIndexPredicate(*predicate, table));
  }
  return Status();
}

Type IndexPartType(const catalog::TableDescriptor& table, const catalog::IndexColumn& part) {
  if (part.expression.empty()) {
    const catalog::ColumnDescriptor* column = table.FindColumn(part.column);
    return column == nullptr ? Type() : column->type;
  }
  Result<ast::ExprPtr> expr = sql::ParseExpression(part.expression);
  if (!expr.ok()) return Type();
  Result<Type> type = CheckIndexExpression(**expr, table);
  return type.ok() ? *type : Type();
}

// ---- How they are shown ----

Result<uint32_t> ShardsOf(const ast::OptionList& options) {
  CELLAR_TRY(CheckIndexParameters(options));
  const ast::Option* option = ast::FindOption(options, "shards");
  if (option == nullptr) return 0;
  // In quotes too, as definitions are shown.
  const std::string text = option->ToText();
  int64_t shards = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), shards);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "invalid value for integer option \"shards\": {}", text);
  }
  if (shards < kLeastShards || shards > kMostShards) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "value {} out of bounds for option \"shards\"", shards)
        .WithDetail(
            fmt::format("Valid values are between \"{}\" and \"{}\".", kLeastShards, kMostShards));
  }
  return static_cast<uint32_t>(shards);
}

std::string ShowIndexExpression(const std::string& sql, bool pretty) {
  Result<ast::ExprPtr> parsed = sql::ParseExpression(sql);
  if (!parsed.ok()) return "(" + sql + ")";
  const std::string text = pretty ? sql::DeparsePretty(**parsed) : sql;
  return (*parsed)->kind == ast::NodeKind::kFuncCall ? text : "(" + text + ")";
}

std::string ShowIndexPredicate(const std::string& sql, bool pretty) {
  return pretty ? sql::PrettyExpression(sql) : sql;
}

std::string IndexPartName(const catalog::TableDescriptor& table, const catalog::IndexColumn& part) {
  if (part.expression.empty()) {
    const catalog::ColumnDescriptor* column = table.FindColumn(part.column);
    return column == nullptr ? "?" : column->name;
  }
  Result<ast::ExprPtr> parsed = sql::ParseExpression(part.expression);
  return parsed.ok() ? sql::IndexExpressionName(**parsed) : "expr";
}

std::vector<std::string> IndexPartNames(const catalog::TableDescriptor& table,
                                        const catalog::IndexDescriptor& index) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& base) {
    std::string name = base;
    for (int i = 1; std::find(names.begin(), names.end(), name) != names.end(); ++i) {
      name = fmt::format("{}{}", base, i);
    }
    names.push_back(std::move(name));
  };
  for (const catalog::IndexColumn& part : index.key) add(IndexPartName(table, part));
  for (catalog::ColumnId stored : index.stored) {
    const catalog::ColumnDescriptor* column = table.FindColumn(stored);
    add(column == nullptr ? "?" : column->name);
  }
  return names;
}

}  // namespace cellar::session
