// Defaults that name relations, and what follows from it when one gets another name or goes.
#include <algorithm>
#include <utility>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/settled_literals.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/scan.h"

namespace cellar::session {
namespace {

// How defaults name a relation, whatever the search path.
std::string Literal(std::string_view schema, std::string_view name) {
  return sql::QuoteLiteral(sql::QuoteQualified(schema, name)) + "::regclass";
}

bool IsSymbol(std::string_view text, const sql::ScanToken& token, char symbol) {
  return token.kind == sql::ScanKind::kSymbol && text[token.begin] == symbol;
}

bool IsSequenceFunction(std::string_view word) {
  return sql::EqualsWord(word, "nextval") || sql::EqualsWord(word, "currval") ||
         sql::EqualsWord(word, "setval");
}

std::string Unquoted(std::string_view literal) {
  std::string out;
  for (size_t i = 1; i + 1 < literal.size(); ++i) {
    if (literal[i] == '\'') ++i;
    out += literal[i];
  }
  return out;
}

}  // namespace

std::string Ddl::SequenceDefault(const catalog::TableDescriptor& sequence) {
  return "nextval(" + Literal(s_.SchemaName(sequence.parent), sequence.name) + ")";
}

Status Ddl::NameSequences(std::string* text) {
  std::vector<sql::ScanToken> tokens;
  for (size_t at = 0;;) {
    tokens.push_back(sql::NextToken(*text, at));
    if (tokens.back().kind == sql::ScanKind::kEnd) break;
    at = tokens.back().end;
  }
  const auto word = [&](const sql::ScanToken& token) {
    return token.kind != sql::ScanKind::kWord
               ? std::string_view()
               : std::string_view(*text).substr(token.begin, token.end - token.begin);
  };
  std::string out;
  size_t copied = 0;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const sql::ScanToken& token = tokens[i];
    if (token.kind != sql::ScanKind::kString || (*text)[token.begin] != '\'') continue;
    const bool cast = i + 3 < tokens.size() && IsSymbol(*text, tokens[i + 1], ':') &&
                      IsSymbol(*text, tokens[i + 2], ':');
    const bool regclass = cast && sql::EqualsWord(word(tokens[i + 3]), "regclass");
    const bool argument = !cast && i >= 2 && IsSymbol(*text, tokens[i - 1], '(') &&
                          IsSequenceFunction(word(tokens[i - 2]));
    if (!regclass && !argument) continue;
    CELLAR_TRY_ASSIGN(const uint32_t oid,
                      s_.LookupReg(TypeId::kRegclass, Unquoted(std::string_view(*text).substr(
                                                          token.begin, token.end - token.begin))));
    const catalog::TablePtr relation = Catalog()->GetTableByOid(oid);
    if (relation == nullptr) continue;
    if (!regclass && relation->kind != catalog::RelationKind::kSequence) continue;
    out.append(*text, copied, token.begin - copied);
    out += Literal(s_.SchemaName(relation->parent), relation->name);
    copied = regclass ? tokens[i + 3].end : token.end;
  }
  if (copied != 0) *text = out.append(*text, copied);
  return Status();
}

Status Ddl::NameRelations(const catalog::TableDescriptor& table, Type target, std::string* text) {
  const auto& columns = table.columns;
  if (std::any_of(columns.begin(), columns.end(), [](const catalog::ColumnDescriptor& column) {
        return !column.dropped && column.type.id == TypeId::kRegclass;
      })) {
    // A literal beside such a column is a name without saying so.
    FoldingPlanner planner(s_);
    sql::PlannerContext& context = planner.context;
    *text = SettleLiterals(*text, table, target, context, NameInSql);
  }
  return NameSequences(text);
}

std::vector<catalog::NamespaceId> Ddl::SpacesOfDatabase() {
  std::vector<catalog::NamespaceId> spaces = {s_.database_id};
  for (const catalog::NamespacePtr& space : Catalog()->ListNamespaces(s_.database_id))
    spaces.push_back(space->id);
  return spaces;
}

std::vector<Ddl::SequenceUser> Ddl::DefaultsNaming(const catalog::TableDescriptor& sequence) {
  const std::string literal = Literal(s_.SchemaName(sequence.parent), sequence.name);
  std::vector<SequenceUser> users;
  for (const catalog::NamespaceId space : SpacesOfDatabase()) {
    for (const catalog::TablePtr& table : Catalog()->ListTables(space)) {
      for (const catalog::ColumnDescriptor& column : table->columns) {
        if (column.dropped) continue;
        if (column.sequence == sequence.id || column.default_sql.find(literal) != std::string::npos)
          users.push_back({table, column.id});
      }
    }
  }
  return users;
}

Status Ddl::ReleaseSequence(const catalog::TableDescriptor& sequence, std::string_view dropped,
                            catalog::TableId owner, catalog::ColumnId owner_column, bool cascade) {
  std::vector<SequenceUser> users = DefaultsNaming(sequence);
  std::erase_if(users, [&](const SequenceUser& user) {
    const bool own =
        user.table->id == owner && (owner_column.value == 0 || owner_column == user.column);
    return own || IsDropping(user.table->id);
  });
  if (users.empty()) return Status();
  std::string detail;
  for (const SequenceUser& user : users) {
    if (!detail.empty()) detail += "\n";
    detail += fmt::format("default value for column {} of table {} depends on sequence {}",
                          user.table->FindColumn(user.column)->name, s_.QualifiedName(*user.table),
                          s_.QualifiedName(sequence));
  }
  if (!cascade) {
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop {} because other objects depend on it", dropped)
        .WithDetail(detail)
        .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
  }
  CELLAR_TRY(Notice(Severity::kNotice, "00000",
                    users.size() == 1
                        ? fmt::format("drop cascades to default value for column {} of table {}",
                                      users[0].table->FindColumn(users[0].column)->name,
                                      s_.QualifiedName(*users[0].table))
                        : fmt::format("drop cascades to {} other objects", users.size())));
  for (const SequenceUser& user : users) {
    const catalog::TablePtr table = Catalog()->GetTable(user.table->id);
    if (table == nullptr) continue;
    catalog::TableDescriptor next = *table;
    for (catalog::ColumnDescriptor& column : next.columns) {
      if (column.id != user.column) continue;
      column.default_sql.clear();
      if (column.sequence == sequence.id) column.sequence = {};
    }
    CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
  }
  return Status();
}

Status Ddl::FollowSequence(catalog::TableId id, std::string_view old_schema,
                           std::string_view old_name) {
  const catalog::TablePtr sequence = Catalog()->GetTable(id);
  if (sequence == nullptr) return Status();
  const std::string old = old_name.empty() ? std::string() : Literal(old_schema, old_name);
  const std::string now = Literal(s_.SchemaName(sequence->parent), sequence->name);
  for (const catalog::NamespaceId space : SpacesOfDatabase()) {
    for (const catalog::TablePtr& table : Catalog()->ListTables(space)) {
      catalog::TableDescriptor next = *table;
      bool changed = false;
      const auto follow = [&](std::string* text) {
        size_t at = old.empty() ? std::string::npos : text->find(old);
        for (; at != std::string::npos; at = text->find(old, at + now.size())) {
          text->replace(at, old.size(), now);
          changed = true;
        }
      };
      for (catalog::ColumnDescriptor& column : next.columns) {
        if (column.dropped) continue;
        follow(&column.generated_sql);
        if (column.sequence == id && column.default_sql.starts_with("nextval(")) {
          column.default_sql = SequenceDefault(*sequence);
          changed = true;
        } else {
          follow(&column.default_sql);
        }
      }
      for (catalog::CheckConstraint& check : next.checks) follow(&check.expression);
      if (changed) CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
    }
  }
  return Status();
}

Status Ddl::OwnsNone(const catalog::ColumnDescriptor& column,
                     const catalog::TableDescriptor& table) {
  const catalog::TablePtr owned = Catalog()->GetTable(column.sequence);
  if (owned == nullptr) return Status();
  return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                  "column \"{}\" of relation \"{}\" owns sequence \"{}\" already", column.name,
                  table.name, owned->name)
      .WithHint(
          fmt::format("ALTER SEQUENCE {} OWNED BY NONE, or drop it.", s_.QualifiedName(*owned)));
}

Status Ddl::FollowOwner(const catalog::TableDescriptor& sequence,
                        const catalog::SequenceOptions& before) {
  const catalog::SequenceOptions& now = sequence.sequence;
  if (now.owner_table == before.owner_table && now.owner_column == before.owner_column) {
    return Status();
  }
  const auto change = [&](catalog::TableId table, catalog::ColumnId id,
                          catalog::TableId owned) -> Status {
    const catalog::TablePtr owner = Catalog()->GetTable(table);
    if (owner == nullptr) return Status();
    catalog::TableDescriptor next = *owner;
    for (catalog::ColumnDescriptor& column : next.columns) {
      if (column.id != id || column.dropped) continue;
      if (owned.value != 0) {
        CELLAR_TRY(OwnsNone(column, next));
      } else if (column.sequence != sequence.id) {
        return Status();
      } else if (column.identity != catalog::Identity::kNone) {
        return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                        "cannot change ownership of identity sequence")
            .WithDetail(fmt::format("Sequence \"{}\" is linked to table \"{}\".", sequence.name,
                                    next.name));
      }
      column.sequence = owned;
    }
    return Editor().UpdateTable(std::move(next)).status();
  };
  CELLAR_TRY(change(before.owner_table, before.owner_column, {}));
  return change(now.owner_table, now.owner_column, sequence.id);
}

Status Ddl::OwnSequence(catalog::TableId id, catalog::TableId table, catalog::ColumnId column) {
  catalog::TablePtr sequence = Catalog()->GetTable(id);
  if (sequence == nullptr) return InternalError("sequence of a new column is gone");
  catalog::TableDescriptor next = *sequence;
  next.sequence.owner_table = table;
  next.sequence.owner_column = column;
  return Editor().UpdateTable(std::move(next)).status();
}

}  // namespace cellar::session
