// CREATE INDEX: built from the rows in the transaction that makes it.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/index_parts.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/plan/operator_classes.h"

namespace cellar::session {

Status Ddl::CreateIndex(const ast::CreateIndexStmt& statement) {
  CELLAR_TRY_ASSIGN(catalog::TablePtr table, FindTable(statement.table));
  CELLAR_TRY(CheckUnused(*table, "CREATE INDEX"));
  CELLAR_TRY(RefusePending(*table, "CREATE INDEX"));
  if (statement.concurrently) CELLAR_TRY(RequireNoBlock("CREATE INDEX CONCURRENTLY"));
  if (statement.method == "hash") {
    CELLAR_TRY(Notice(Severity::kNotice, "00000",
                      "substituting access method \"btree\" for access method \"hash\""));
  } else if (statement.method != "btree") {
    static constexpr std::string_view kOthers[] = {"gin", "gist", "spgist", "brin"};
    if (std::find(std::begin(kOthers), std::end(kOthers), statement.method) == std::end(kOthers)) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                      "access method \"{}\" does not exist", statement.method);
    }
    return UnsupportedError("access method \"{}\" is not supported", statement.method)
        .WithHint("Indexes are ordered ones: USING btree.");
  }
  if (!statement.name.empty() && statement.if_not_exists) {
    const catalog::IndexDescriptor* existing = nullptr;
    if (Catalog()->FindTableOfIndex(table->parent, statement.name, &existing) != nullptr ||
        Catalog()->FindTable(table->parent, statement.name) != nullptr) {
      return Notice(Severity::kNotice, sqlstate::kDuplicateTable,
                    fmt::format("relation \"{}\" already exists, skipping", statement.name));
    }
  }
  catalog::TableDescriptor next = *table;
  catalog::IndexDescriptor index;
  index.unique = statement.unique;
  index.nulls_not_distinct = statement.nulls_not_distinct;
  for (const ast::IndexElement& element : statement.elements) {
    catalog::IndexColumn part;
    Type type;
    bool agreed = true;
    if (!element.column.empty()) {
      const catalog::ColumnDescriptor* column = table->FindColumn(element.column);
      if (column == nullptr || column->hidden) {
        return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                        element.column);
      }
      part.column = column->id;
      type = column->type;
    } else {
      part.expression = sql::DeparseExpr(*element.expr);
      const Result<Type> checked = CheckIndexExpression(*element.expr, *table, &agreed);
      if (!checked.ok()) return OfForeignCollation(part.expression, checked.status());
      type = *checked;
    }
    if (!agreed && element.collation.empty()) {
      return SqlError(Code::kInvalid, sqlstate::kIndeterminateCollation,
                      "could not determine which collation to use for index expression")
          .WithHint("Use the COLLATE clause to set the collation explicitly.");
    }
    if (!element.collation.empty()) {
      CELLAR_TRY_ASSIGN(const Collation* const collation, CollationNamed(element.collation, -1));
      if (!IsCollatable(type)) {
        return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                        "collations are not supported by type {}", FormatType(type));
      }
      if (collation != type.collation) {
        part.collation = collation == nullptr ? catalog::ByBytes() : collation;
      }
    }
    if (!part.expression.empty() && part.collation == nullptr) {
      part.collation = type.collation;  // so that it is known without the expression
    }
    if (!element.opclass.empty()) {
      CELLAR_TRY_ASSIGN(part.opclass, sql::ResolveOperatorClass(element.opclass, type));
      const Collation* orders = part.collation != nullptr ? part.collation : type.collation;
      if (part.opclass.ends_with("_pattern_ops") && orders != nullptr && !orders->deterministic) {
        return UnsupportedError(
            "nondeterministic collations are not supported for operator class \"{}\"",
            part.opclass);
      }
    }
    if (type.id == TypeId::kJsonb)
      return UnsupportedError("columns of type {} cannot be in an index", FormatType(type));
    if (!codec::IsKeyType(type)) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                      "data type {} has no default operator class for access method \"btree\"",
                      FormatType(type))
          .WithHint(
              "You must specify an operator class for the index or define a default operator class "
              "for the data type.");
    }
    const bool descending = element.direction == ast::SortDirection::kDesc;
    part.direction = descending ? codec::Direction::kDescending : codec::Direction::kAscending;
    const bool nulls_first = element.nulls == ast::SortNulls::kFirst ||
                             (element.nulls == ast::SortNulls::kDefault && descending);
    part.nulls = nulls_first ? codec::NullPlacement::kFirst : codec::NullPlacement::kLast;
    index.key.push_back(std::move(part));
  }
  constexpr size_t kMaxIndexColumns = 32;
  if (index.key.size() > kMaxIndexColumns) {
    return SqlError(Code::kLimit, sqlstate::kTooManyColumns,
                    "cannot use more than {} columns in an index", kMaxIndexColumns);
  }
  for (const ast::IndexElement& element : statement.including) {
    const catalog::ColumnDescriptor* column = table->FindColumn(element.column);
    if (column == nullptr || column->hidden) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                      element.column);
    }
    index.stored.push_back(column->id);
  }
  if (statement.where != nullptr) {
    index.predicate = sql::DeparseExpr(*statement.where);
    const Status checked = CheckIndexPredicate(*statement.where, *table);
    if (!checked.ok()) return OfForeignCollation(index.predicate, checked);
  }
  CELLAR_TRY_ASSIGN(index.shards, ShardsOf(statement.options));
  const std::vector<std::string> names = IndexPartNames(*table, index);
  index.name = statement.name.empty() ? ChooseName(next, JoinNames(names, "_"), "idx", next.parent)
                                      : statement.name;
  next.indexes.push_back(std::move(index));
  catalog::TablePtr made;
  return AddIndex(std::move(next), statement.concurrently, &made);
}

// ---- ALTER INDEX, REINDEX, ADD CONSTRAINT .. USING INDEX ----

Status Ddl::RequireNoBlock(std::string_view what) {
  if (!s_.in_block) return Status();
  return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                  "{} cannot run inside a transaction block", what);
}

Result<catalog::TablePtr> Ddl::FindIndex(const ast::QualifiedName& name, std::string_view missing,
                                         const catalog::IndexDescriptor** index) {
  const sql::NameScope& scope = s_.Scope();
  std::vector<std::string> schemas = scope.search_path;
  if (!name.schema.empty()) {
    schemas = {name.schema};
  } else if (scope.temporary.value != 0) {
    schemas.insert(schemas.begin(), "pg_temp");
  }
  for (const std::string& schema : schemas) {
    std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), scope, schema);
    if (!space) continue;
    catalog::TablePtr table = Catalog()->FindTableOfIndex(*space, name.name, index);
    if (table != nullptr) return table;
  }
  if (sql::FindRelation(*Catalog(), scope, name.schema, name.name) != nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not an index",
                    name.name);
  }
  return SqlError(Code::kNotFound, missing, "{} \"{}\" does not exist",
                  missing == sqlstate::kUndefinedTable ? "relation" : "index",
                  name.schema.empty() ? name.name : name.schema + "." + name.name);
}

// Storage options, statistics targets and tablespaces mean nothing here: only what they are for
// must be there.
Status Ddl::CheckAlterIndex(const ast::AlterTableStmt& statement) {
  const catalog::IndexDescriptor* index = nullptr;
  Result<catalog::TablePtr> table = FindIndex(statement.table, sqlstate::kUndefinedTable, &index);
  for (const ast::AlterTableCommand& command : statement.commands) {
    if (!table.ok() || command.kind != ast::AlterTableKind::kSetOptions) continue;
    CELLAR_TRY_ASSIGN(const uint32_t shards, ShardsOf(command.options));
    if (shards == 0 || shards == index->shards) continue;
    return UnsupportedError("the shards of an index cannot be changed")
        .WithHint(
            "Make another index; ALTER TABLE .. ALTER PRIMARY KEY gives a primary key other "
            "shards.");
  }
  if (table.ok()) return Status();
  if (!statement.if_exists || table.status().code() != Code::kNotFound) return table.status();
  return Notice(Severity::kNotice, "00000",
                fmt::format("relation \"{}\" does not exist, skipping", statement.table.name));
}

Status Ddl::Reindex(const ast::ReindexStmt& statement) {
  using Target = ast::ReindexStmt::Target;
  const ast::Option* option = ast::FindOption(statement.options, "concurrently");
  const bool concurrently = option != nullptr && option->ToBool().value;
  if (concurrently) CELLAR_TRY(RequireNoBlock("REINDEX CONCURRENTLY"));
  switch (statement.target) {
    case Target::kIndex: {
      const catalog::IndexDescriptor* index = nullptr;
      CELLAR_TRY_ASSIGN(catalog::TablePtr table,
                        FindIndex(statement.relation, sqlstate::kUndefinedTable, &index));
      CELLAR_TRY(s_.CheckOwner(*table));
      return ReindexTables({&table, 1}, index->id, concurrently);
    }
    case Target::kTable: {
      CELLAR_TRY_ASSIGN(catalog::TablePtr table, FindTable(statement.relation));
      CELLAR_TRY(s_.CheckOwner(*table));
      return ReindexTables({&table, 1}, std::nullopt, concurrently);
    }
    case Target::kSchema: {
      std::optional<catalog::NamespaceId> space =
          sql::FindSchema(*Catalog(), s_.Scope(), statement.name);
      if (!space) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                        "schema \"{}\" does not exist", statement.name);
      }
      CELLAR_TRY(s_.CheckOwner(*Catalog()->GetNamespace(*space)));
      return ReindexTables(Catalog()->ListTables(*space), std::nullopt, concurrently);
    }
    case Target::kSystem: return Status();  // system tables have no stored indexes
    case Target::kDatabase: break;
  }
  CELLAR_TRY(RequireNoBlock("REINDEX DATABASE"));
  if (!statement.name.empty() && statement.name != s_.Scope().database_name) {
    return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                    "can only reindex the currently open database");
  }
  CELLAR_TRY(s_.CheckOwner(*Catalog()->GetNamespace(s_.database_id)));
  std::vector<catalog::NamespaceId> spaces = {s_.database_id};
  for (const catalog::NamespacePtr& space : Catalog()->ListNamespaces(s_.database_id)) {
    spaces.push_back(space->id);
  }
  std::vector<catalog::TablePtr> tables;
  for (catalog::NamespaceId space : spaces) {
    const std::vector<catalog::TablePtr> more = Catalog()->ListTables(space);
    tables.insert(tables.end(), more.begin(), more.end());
  }
  return ReindexTables(tables, std::nullopt, concurrently);
}

Status Ddl::UseIndexAsKey(const ast::Constraint& constraint, catalog::TableDescriptor* changed) {
  const bool primary = constraint.kind == ast::ConstraintKind::kPrimaryKey;
  catalog::TableDescriptor& next = *changed;
  const auto at =
      std::find_if(next.indexes.begin(), next.indexes.end(),
                   [&](const auto& candidate) { return candidate.name == constraint.using_index; });
  if (at == next.indexes.end()) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "index \"{}\" does not exist",
                    constraint.using_index);
  }
  if (at->constraint) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "index \"{}\" is already associated with a constraint", at->name);
  }
  const auto refuse = [](std::string message) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "{}", message)
        .WithDetail("Cannot create a primary key or unique constraint using such an index.");
  };
  if (!at->unique) return refuse(fmt::format("\"{}\" is not a unique index", at->name));
  for (const catalog::IndexColumn& part : at->key) {
    if (!part.expression.empty()) {
      return refuse(fmt::format("index \"{}\" contains expressions", at->name));
    }
  }
  if (!at->predicate.empty()) return refuse(fmt::format("\"{}\" is a partial index", at->name));
  if (constraint.initially_deferred) {
    return UnsupportedError(
        "unique constraints deferred to the end of the transaction are not "
        "supported");
  }
  for (size_t i = 0; i < at->key.size(); ++i) {
    const catalog::IndexColumn& part = at->key[i];
    if (part.direction != codec::Direction::kAscending ||
        part.nulls != codec::NullPlacement::kLast || !part.opclass.empty() ||
        part.collation != nullptr) {
      return refuse(fmt::format(
          "index \"{}\" column number {} does not have default sorting behavior", at->name, i + 1));
    }
  }
  if (primary && !next.indexes.empty() && next.primary().primary && next.primary().constraint) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                    "multiple primary keys for table \"{}\" are not allowed", next.name);
  }
  if (!constraint.name.empty() && constraint.name != at->name) {
    CELLAR_TRY(Notice(Severity::kNotice, "00000",
                      fmt::format("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index "
                                  "\"{}\" to \"{}\"",
                                  at->name, constraint.name)));
    at->name = constraint.name;
  }
  at->constraint = true;
  at->deferrable = constraint.deferrable;
  if (!primary) return Status();
  // The rows move to the key: its index is no more than a statement of what that is.
  catalog::IndexDescriptor key = *at;
  next.indexes.erase(at);
  key.primary = true;
  key.nulls_not_distinct = false;
  for (const catalog::IndexColumn& part : key.key) {
    for (catalog::ColumnDescriptor& column : next.columns) {
      if (column.id == part.column) column.not_null = true;
    }
  }
  next.indexes.insert(next.indexes.begin(), std::move(key));
  return Status();
}

Status Ddl::AddConstraintUsingIndex(const ast::Constraint& constraint, catalog::TablePtr* table) {
  catalog::TableDescriptor next = **table;
  CELLAR_TRY(UseIndexAsKey(constraint, &next));
  if (constraint.kind == ast::ConstraintKind::kPrimaryKey)
    return ReplacePrimary(std::move(next), table, true);
  CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
  return Status();
}

Status Ddl::CopyIndex(const catalog::TableDescriptor& source, const catalog::IndexDescriptor& from,
                      catalog::TableDescriptor* table) {
  catalog::IndexDescriptor copy = from;
  copy.id = {};
  copy.oid = 0;
  copy.comment.clear();
  copy.constraint_comment.clear();
  const auto find = [&](catalog::ColumnId* column) {
    const catalog::ColumnDescriptor* named = table->FindColumn(source.FindColumn(*column)->name);
    if (named != nullptr) *column = named->id;
    return named != nullptr;
  };
  bool all = true;
  for (catalog::IndexColumn& part : copy.key) {
    if (part.expression.empty()) all = find(&part.column) && all;
  }
  for (catalog::ColumnId& stored : copy.stored) all = find(&stored) && all;
  if (!all) return InternalError("index \"{}\" names a column that was not copied", from.name);
  copy.name =
      ChooseName(*table, JoinNames(IndexPartNames(*table, copy), "_"), "idx", table->parent);
  table->indexes.push_back(std::move(copy));
  return Status();
}

}  // namespace cellar::session
