// CREATE TABLE: columns, keys, checks and references of a new table.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/foreign_key_types.h"
#include "cellar/session/index_parts.h"
#include "cellar/session/still_current.h"
#include "cellar/session/storage_parameters.h"
#include "cellar/session/zones.h"
#include "cellar/sql/expr/collate.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {

namespace {

constexpr size_t kMaxColumns = 1600;
constexpr size_t kMaxIndexColumns = 32;
constexpr size_t kMaxNameBytes = 63;

catalog::ForeignKeyAction ActionOf(ast::FkAction action) {
  switch (action) {
    case ast::FkAction::kNoAction: return catalog::ForeignKeyAction::kNoAction;
    case ast::FkAction::kRestrict: return catalog::ForeignKeyAction::kRestrict;
    case ast::FkAction::kCascade: return catalog::ForeignKeyAction::kCascade;
    case ast::FkAction::kSetNull: return catalog::ForeignKeyAction::kSetNull;
    case ast::FkAction::kSetDefault: return catalog::ForeignKeyAction::kSetDefault;
  }
  return catalog::ForeignKeyAction::kNoAction;
}

catalog::ColumnDescriptor* FindMutable(catalog::TableDescriptor* table, std::string_view name) {
  for (catalog::ColumnDescriptor& column : table->columns) {
    if (!column.dropped && !column.hidden && column.name == name) return &column;
  }
  return nullptr;
}

bool SameColumns(const std::vector<catalog::IndexColumn>& key,
                 const std::vector<catalog::ColumnId>& columns) {
  if (key.size() != columns.size()) return false;
  for (catalog::ColumnId column : columns) {
    if (std::none_of(key.begin(), key.end(), [column](const catalog::IndexColumn& part) {
          return part.column == column;
        })) {
      return false;
    }
  }
  return true;
}

Type TypeOfSerial(int serial) {
  return MakeType(serial == 2 ? TypeId::kInt2 : serial == 8 ? TypeId::kInt8 : TypeId::kInt4);
}

}  // namespace

std::string JoinNames(const std::vector<std::string>& names, std::string_view separator) {
  std::string joined;
  for (const std::string& name : names) {
    if (!joined.empty()) joined += separator;
    joined += name;
  }
  return joined;
}

std::optional<size_t> ColumnWithoutCollation(const sql::Plan& plan) {
  const sql::PlanNode* node = plan.root.get();
  while (node->kind == sql::PlanKind::kSort || node->kind == sql::PlanKind::kLimit)
    node = node->children[0].get();
  if (node->kind != sql::PlanKind::kProject) return std::nullopt;
  const std::vector<sql::ExprPtr>& exprs = node->As<sql::ProjectNode>().exprs;
  for (size_t i = 0; i < exprs.size() && i < plan.output.size(); ++i) {
    if (IsCollatable(exprs[i]->type) &&
        sql::SourceOfCollation(*exprs[i]) == sql::CollationSource::kConflict)
      return i;
  }
  return std::nullopt;
}

void Ddl::AddHiddenRowId(catalog::TableDescriptor* table) {
  catalog::ColumnDescriptor column;
  column.name = "cellar_row_id";
  column.type = MakeType(TypeId::kInt8);
  column.not_null = true;
  column.hidden = true;
  column.id = catalog::ColumnId{table->next_column_id++};
  catalog::IndexDescriptor primary;
  primary.primary = primary.unique = true;
  catalog::IndexColumn part;
  part.column = column.id;
  primary.key.push_back(std::move(part));
  table->columns.push_back(std::move(column));
  table->indexes.insert(table->indexes.begin(), std::move(primary));
}

Result<Ddl::Target> Ddl::ResolveTarget(const ast::QualifiedName& name, bool temporary) {
  Target target;
  target.name = name.name;
  const sql::NameScope& scope = s_.Scope();
  if (!name.catalog.empty() && name.catalog != scope.database_name) {
    return UnsupportedError("cross-database references are not implemented: \"{}.{}.{}\"",
                            name.catalog, name.schema, name.name);
  }
  if (name.schema == "pg_temp") temporary = true;
  if (temporary) {
    if (!name.schema.empty() && name.schema != "pg_temp") {
      return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                      "cannot create temporary relation in non-temporary schema");
    }
    CELLAR_TRY_ASSIGN(target.space, s_.TemporaryNamespace());
    target.temporary = true;
    return target;
  }
  if (!name.schema.empty()) {
    if (s_.db->system.HasSchema(name.schema)) {
      return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                      "permission denied to create \"{}.{}\"", name.schema, name.name)
          .WithDetail("System catalog modifications are currently disallowed.");
    }
    std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), scope, name.schema);
    if (!space) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                      name.schema)
          .WithLocation(name.location);
    }
    target.space = *space;
    return target;
  }
  for (const std::string& schema : scope.search_path) {
    std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), scope, schema);
    if (!space) continue;
    target.space = *space;
    return target;
  }
  return SqlError(Code::kInvalid, sqlstate::kInvalidSchemaName,
                  "no schema has been selected to create in")
      .WithLocation(name.location);
}

std::string Ddl::ChooseName(const catalog::TableDescriptor& table, const std::string& columns,
                            const char* suffix, catalog::NamespaceId space) {
  auto taken = [&](const std::string& name) {
    catalog::SnapshotPtr catalog = Catalog();
    const catalog::IndexDescriptor* index = nullptr;
    if (catalog->FindTable(space, name) != nullptr) return true;
    if (catalog->FindTableOfIndex(space, name, &index) != nullptr) return true;
    if (name == table.name || table.FindIndex(name) != nullptr) return true;
    for (const catalog::CheckConstraint& check : table.checks) {
      if (check.name == name) return true;
    }
    for (const catalog::ForeignKey& key : table.foreign_keys) {
      if (key.name == name) return true;
    }
    return false;
  };
  for (int i = 0;; ++i) {
    // Long names lose their ends, the table's first, as PostgreSQL's makeObjectName does.
    std::string first = table.name, second = columns;
    std::string label = i == 0 ? suffix : fmt::format("{}{}", suffix, i);
    const size_t overhead = label.size() + 1 + (second.empty() ? 0 : 1);
    while (first.size() + second.size() + overhead > kMaxNameBytes) {
      std::string& longer = first.size() > second.size() ? first : second;
      longer.pop_back();
      while (!longer.empty() && (static_cast<unsigned char>(longer.back()) & 0xC0) == 0x80)
        longer.pop_back();
    }
    std::string name = second.empty() ? first + "_" + label : first + "_" + second + "_" + label;
    if (!taken(name)) return name;
  }
}

Status Ddl::CheckExpression(const ast::Expr& expr, const catalog::TableDescriptor* table,
                            Type target) {
  FoldingPlanner planner(s_);
  sql::PlannerContext& context = planner.context;
  return sql::BindTableExpression(expr, table, target, context).status();
}

Status Ddl::CheckGenerated(const ast::Expr& expr, const catalog::TableDescriptor& table,
                           const catalog::ColumnDescriptor& column) {
  FoldingPlanner planner(s_);
  sql::PlannerContext& context = planner.context;
  CELLAR_TRY_ASSIGN(const sql::ExprPtr bound,
                    sql::BindTableExpression(expr, &table, column.type, context));
  for (const catalog::ColumnDescriptor& other : table.columns) {
    if (other.dropped || (other.id != column.id && other.generated_sql.empty())) continue;
    if (!Mentions(expr, other.name)) continue;
    return SqlError(Code::kInvalid, sqlstate::kInvalidObjectDefinition,
                    "cannot use generated column \"{}\" in column generation expression",
                    other.name)
        .WithDetail("A generated column cannot reference another generated column.");
  }
  bool is_mutable = false;
  sql::VisitExpr(*bound, [&is_mutable](const sql::Expr& part) {
    is_mutable |=
        part.function != nullptr && part.function->volatility != sql::Volatility::kImmutable;
  });
  if (!is_mutable) return Status();
  return SqlError(Code::kInvalid, sqlstate::kInvalidObjectDefinition,
                  "generation expression is not immutable");
}

Status Ddl::SetDefault(const ast::Expr& expr, catalog::ColumnDescriptor* column) {
  CELLAR_TRY(CheckExpression(expr, nullptr, column->type));
  column->default_sql.clear();
  if (expr.Is<ast::Const>() && expr.As<ast::Const>().const_kind == ast::ConstKind::kNull)
    return Status();
  // As in PostgreSQL the constant has no modifier yet; `character` alone would mean character(1).
  Type type = column->type;
  type.modifier = -1;
  const bool padded = type.id == TypeId::kBpchar;
  column->default_sql =
      sql::DeparseDefault(expr, padded ? (type.array ? "bpchar[]" : "bpchar") : NameInSql(type));
  return NameSequences(&column->default_sql);
}

Result<catalog::TablePtr> Ddl::MakeSerialSequence(const Target& target,
                                                  const std::string& table_name,
                                                  const std::string& column, Type type,
                                                  const ast::OptionList& options) {
  catalog::TableDescriptor sequence;
  sequence.parent = target.space;
  sequence.kind = catalog::RelationKind::kSequence;
  sequence.temporary = target.temporary;
  sequence.owner = s_.user;
  sequence.sequence.type = type;
  std::optional<int64_t> restart;
  CELLAR_TRY(ApplySequenceOptions(options, true, &sequence, &restart));
  catalog::TableDescriptor named;
  named.name = table_name;
  sequence.name = ChooseName(named, column, "seq", target.space);
  s_.ApplyDefaultPrivileges(&sequence, nullptr);
  return Editor().CreateTable(std::move(sequence));
}

namespace {

// At most one of DEFAULT, GENERATED .. AS IDENTITY and GENERATED .. STORED. Errors: 42601.
Status CheckClauses(const ast::ColumnDef& definition, const std::string& table) {
  int defaults = 0, identities = 0, generated = 0;
  for (const ast::Constraint& constraint : definition.constraints) {
    defaults += constraint.kind == ast::ConstraintKind::kDefault;
    identities += constraint.kind == ast::ConstraintKind::kIdentity;
    generated += constraint.kind == ast::ConstraintKind::kGenerated;
  }
  const char* what = nullptr;
  if (identities > 1) what = "multiple identity specifications";
  if (generated > 1) what = "multiple generation clauses";
  if (defaults > 0 && generated > 0) what = "both default and generation expression";
  if (defaults > 0 && identities > 0) what = "both default and identity";
  if (identities > 0 && generated > 0) what = "both identity and generation expression";
  if (what == nullptr) return Status();
  return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                  "{} specified for column \"{}\" of table \"{}\"", what, definition.name, table)
      .WithLocation(definition.location);
}

}  // namespace

Status Ddl::CheckColumnName(std::string_view name) {
  for (const char* system : {"tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"}) {
    if (name != system) continue;
    return SqlError(Code::kExists, sqlstate::kDuplicateColumn,
                    "column name \"{}\" conflicts with a system column name", name);
  }
  return Status();
}

Result<catalog::ColumnDescriptor> Ddl::MakeColumn(const ast::ColumnDef& definition,
                                                  const Target& target,
                                                  const std::string& table_name, int* serial) {
  CELLAR_TRY(CheckColumnName(definition.name));
  CELLAR_TRY(CheckClauses(definition, table_name));
  catalog::ColumnDescriptor column;
  column.name = definition.name;
  *serial = 0;
  CELLAR_TRY_ASSIGN(column.type, s_.TypeNamed(definition.type, serial));
  if (!IsStorable(column.type)) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                    "column \"{}\" has pseudo-type {}", column.name, FormatType(column.type))
        .WithLocation(definition.location);
  }
  if (!definition.collation.empty()) {
    CELLAR_TRY_ASSIGN(const Collation* const collation,
                      CollationNamed(definition.collation, definition.collation.location));
    if (!IsCollatable(column.type)) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "collations are not supported by type {}", FormatType(column.type))
          .WithLocation(definition.collation.location);
    }
    column.type.collation = collation;
  }
  if (*serial != 0) {
    column.type = TypeOfSerial(*serial);
    column.not_null = true;
    CELLAR_TRY_ASSIGN(catalog::TablePtr sequence,
                      MakeSerialSequence(target, table_name, column.name, column.type, {}));
    column.sequence = sequence->id;
    column.default_sql = SequenceDefault(*sequence);
  }
  for (const ast::Constraint& constraint : definition.constraints) {
    if (constraint.kind != ast::ConstraintKind::kIdentity) continue;
    if (!IsInteger(column.type)) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                      "identity column type must be smallint, integer, or bigint");
    }
    column.identity =
        constraint.generated_always ? catalog::Identity::kAlways : catalog::Identity::kByDefault;
    column.not_null = true;
    CELLAR_TRY_ASSIGN(
        catalog::TablePtr sequence,
        MakeSerialSequence(target, table_name, column.name, column.type, constraint.options));
    column.sequence = sequence->id;
    column.default_sql = SequenceDefault(*sequence);
  }
  return column;
}

Status Ddl::AddKey(const ast::Constraint& constraint, const std::vector<std::string>& columns,
                   catalog::TableDescriptor* table) {
  const bool primary = constraint.kind == ast::ConstraintKind::kPrimaryKey;
  if (columns.size() > kMaxIndexColumns) {
    return SqlError(Code::kLimit, sqlstate::kTooManyColumns,
                    "cannot use more than {} columns in an index", kMaxIndexColumns);
  }
  if (constraint.initially_deferred) {
    return UnsupportedError(
        "unique constraints deferred to the end of the transaction are not "
        "supported");
  }
  catalog::IndexDescriptor index;
  index.primary = primary;
  index.deferrable = constraint.deferrable;
  index.unique = true;
  index.constraint = true;
  index.nulls_not_distinct = constraint.nulls_not_distinct;
  CELLAR_TRY_ASSIGN(index.shards, ShardsOf(constraint.options));
  std::vector<std::string> named = columns;
  for (const std::string& name : columns) {
    catalog::ColumnDescriptor* column = FindMutable(table, name);
    if (column == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" named in key does not exist", name)
          .WithLocation(constraint.location);
    }
    if (!codec::IsKeyType(column->type)) {
      return UnsupportedError("columns of type {} cannot be in an index", FormatType(column->type));
    }
    for (const catalog::IndexColumn& part : index.key) {
      if (part.column == column->id) {
        return SqlError(Code::kInvalid, sqlstate::kDuplicateColumn,
                        "column \"{}\" appears twice in {} constraint", name,
                        primary ? "primary key" : "unique")
            .WithLocation(constraint.location);
      }
    }
    if (primary) column->not_null = true;
    index.key.emplace_back().column = column->id;
  }
  for (const std::string& name : constraint.including) {
    catalog::ColumnDescriptor* column = FindMutable(table, name);
    if (column == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" named in key does not exist", name);
    }
    index.stored.push_back(column->id);
    named.push_back(name);
  }
  if (primary && !table->indexes.empty() && table->indexes.front().primary &&
      table->indexes.front().constraint) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                    "multiple primary keys for table \"{}\" are not allowed", table->name)
        .WithLocation(constraint.location);
  }
  // Two keys of one CREATE TABLE that differ in their names alone are one, under the name that one
  // of them was given, and the primary one if either is.
  const auto twin = std::find_if(
      table->indexes.begin(), table->indexes.end(), [&](const catalog::IndexDescriptor& other) {
        const bool same =
            std::equal(other.key.begin(), other.key.end(), index.key.begin(), index.key.end(),
                       [](const auto& a, const auto& b) { return a.column == b.column; });
        return table->id.value == 0 && other.constraint && same && other.stored == index.stored &&
               other.deferrable == index.deferrable &&
               other.nulls_not_distinct == index.nulls_not_distinct && other.shards == index.shards;
      });
  const auto place = twin - table->indexes.begin();
  if (twin != table->indexes.end()) {
    const std::string usual =
        table->name + (twin->primary ? "_pkey" : "_" + JoinNames(named, "_") + "_key");
    index.name = twin->name != usual ? twin->name : constraint.name;
    index.primary = primary || twin->primary;
    table->indexes.erase(twin);
  }
  index.name = !index.name.empty()        ? index.name
               : !constraint.name.empty() ? constraint.name
               : index.primary            ? ChooseName(*table, "", "pkey", table->parent)
                               : ChooseName(*table, JoinNames(named, "_"), "key", table->parent);
  if (table->FindIndex(index.name) != nullptr) {
    return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists",
                    index.name);
  }
  if (index.primary) {
    table->indexes.insert(table->indexes.begin(), std::move(index));
  } else {
    table->indexes.insert(table->indexes.begin() + place, std::move(index));
  }
  return Status();
}

Status Ddl::AddCheck(const ast::Constraint& constraint, const std::string& column,
                     catalog::TableDescriptor* table) {
  CELLAR_TRY(CheckExpression(*constraint.expr, table, MakeType(TypeId::kBool)));
  catalog::CheckConstraint check;
  check.name = constraint.name.empty() ? ChooseName(*table, column, "check", table->parent)
                                       : constraint.name;
  for (const catalog::CheckConstraint& other : table->checks) {
    if (other.name == check.name) {
      return SqlError(Code::kExists, sqlstate::kDuplicateObject,
                      "constraint \"{}\" for relation \"{}\" already exists", check.name,
                      table->name);
    }
  }
  check.expression = sql::DeparseExpr(*constraint.expr);
  CELLAR_TRY(NameRelations(*table, MakeType(TypeId::kBool), &check.expression));
  CELLAR_TRY_ASSIGN(uint64_t id, Editor().AllocateId());
  check.oid = static_cast<uint32_t>(id) + catalog::TableDescriptor::kFirstOid;
  table->checks.push_back(std::move(check));
  return Status();
}

namespace {

// A generated column takes no value from outside.
Status CheckActions(const catalog::TableDescriptor& table, const catalog::ForeignKey& key) {
  using Action = catalog::ForeignKeyAction;
  const bool generated = std::any_of(
      key.columns.begin(), key.columns.end(),
      [&](catalog::ColumnId column) { return !table.FindColumn(column)->generated_sql.empty(); });
  const auto sets = [](Action action) {
    return action == Action::kSetNull || action == Action::kSetDefault;
  };
  if (!generated) return Status();
  const char* event = sets(key.on_update) || key.on_update == Action::kCascade ? "ON UPDATE"
                      : sets(key.on_delete)                                    ? "ON DELETE"
                                                                               : nullptr;
  if (event == nullptr) return Status();
  return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                  "invalid {} action for foreign key constraint containing generated column",
                  event);
}

}  // namespace

Result<catalog::ForeignKey> Ddl::MakeForeignKey(const ast::Constraint& constraint,
                                                const std::vector<std::string>& columns,
                                                const catalog::TableDescriptor& table) {
  catalog::ForeignKey key;
  catalog::TablePtr other;
  const std::string& schema = constraint.ref_table.schema;
  const bool own = constraint.ref_table.name == table.name &&
                   (schema.empty() || schema == s_.SchemaName(table.parent)) &&
                   (table.id.value == 0 || [&] {
                     Result<catalog::TablePtr> found = FindTable(constraint.ref_table);
                     return found.ok() && (*found)->id == table.id;
                   }());
  const catalog::TableDescriptor* referenced = &table;
  if (!own) {
    CELLAR_TRY_ASSIGN(other, FindTable(constraint.ref_table));
    referenced = other.get();
  }
  if (constraint.match != ast::FkMatch::kSimple)
    return UnsupportedError("MATCH FULL and PARTIAL are not supported");
  for (const std::string& name : columns) {
    const catalog::ColumnDescriptor* column = table.FindColumn(name);
    if (column == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" referenced in foreign key constraint does not exist", name);
    }
    key.columns.push_back(column->id);
  }
  if (constraint.ref_columns.empty()) {
    const catalog::IndexDescriptor& primary = referenced->primary();
    if (!primary.constraint) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedObject,
                      "there is no primary key for referenced table \"{}\"", referenced->name);
    }
    for (const catalog::IndexColumn& part : primary.key)
      key.referenced_columns.push_back(part.column);
  }
  for (const std::string& name : constraint.ref_columns) {
    const catalog::ColumnDescriptor* column = referenced->FindColumn(name);
    if (column == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" referenced in foreign key constraint does not exist", name);
    }
    key.referenced_columns.push_back(column->id);
  }
  if (key.columns.size() != key.referenced_columns.size()) {
    return SqlError(Code::kInvalid, "42830",
                    "number of referencing and referenced columns for foreign key disagree");
  }
  bool matched = false, deferrable = false;
  for (const catalog::IndexDescriptor& index : referenced->indexes) {
    if (!index.unique || !index.predicate.empty() ||
        !SameColumns(index.key, key.referenced_columns)) {
      continue;
    }
    (index.deferrable ? deferrable : matched) = true;
  }
  if (!matched && deferrable) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "cannot use a deferrable {} for referenced table \"{}\"",
                    constraint.ref_columns.empty() ? "primary key" : "unique constraint",
                    referenced->name);
  }
  if (!matched) {
    return SqlError(Code::kInvalid, "42830",
                    "there is no unique constraint matching given keys for referenced table \"{}\"",
                    referenced->name);
  }
  for (size_t i = 0; i < key.columns.size(); ++i) {
    const catalog::ColumnDescriptor& ours = *table.FindColumn(key.columns[i]);
    const catalog::ColumnDescriptor& theirs = *referenced->FindColumn(key.referenced_columns[i]);
    CELLAR_TRY(CheckForeignKeyTypes(
        constraint.name.empty() ? ChooseName(table, JoinNames(columns, "_"), "fkey", table.parent)
                                : constraint.name,
        ours, theirs));
  }
  key.referenced_table = referenced->id;  // zero: the table being made
  key.on_delete = ActionOf(constraint.on_delete);
  key.on_update = ActionOf(constraint.on_update);
  CELLAR_TRY(CheckActions(table, key));
  for (const std::string& name : constraint.on_delete_columns) {
    const catalog::ColumnDescriptor* column = table.FindColumn(name);
    if (column == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" referenced in foreign key constraint does not exist", name);
    }
    if (std::find(key.columns.begin(), key.columns.end(), column->id) == key.columns.end()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidColumnReference,
                      "column \"{}\" referenced in ON DELETE SET action must be part of "
                      "foreign key",
                      name);
    }
    if (std::find(key.on_delete_columns.begin(), key.on_delete_columns.end(), column->id) ==
        key.on_delete_columns.end()) {
      key.on_delete_columns.push_back(column->id);
    }
  }
  key.deferrable = constraint.deferrable;
  key.initially_deferred = constraint.initially_deferred;
  key.name = constraint.name.empty()
                 ? ChooseName(table, JoinNames(columns, "_"), "fkey", table.parent)
                 : constraint.name;
  CELLAR_TRY_ASSIGN(uint64_t id, Editor().AllocateId());
  key.oid = static_cast<uint32_t>(id) + catalog::TableDescriptor::kFirstOid;
  return key;
}

Status Ddl::AddColumnConstraints(const ast::ColumnDef& definition, catalog::TableDescriptor* table,
                                 std::vector<PendingForeignKey>* foreign_keys) {
  catalog::ColumnDescriptor* column = FindMutable(table, definition.name);
  // A primary key takes NULL back; NOT NULL, serial and identity columns do not.
  bool said_null = false, not_null = column->not_null;
  for (const ast::Constraint& constraint : definition.constraints) {
    column = FindMutable(table, definition.name);
    switch (constraint.kind) {
      case ast::ConstraintKind::kNull: said_null = true; break;
      case ast::ConstraintKind::kNotNull: not_null = column->not_null = true; break;
      case ast::ConstraintKind::kDefault:
        if (!column->default_sql.empty()) {
          return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                          "multiple default values specified for column \"{}\" of table \"{}\"",
                          column->name, table->name)
              .WithLocation(constraint.location);
        }
        CELLAR_TRY(SetDefault(*constraint.expr, column));
        break;
      case ast::ConstraintKind::kGenerated:
        CELLAR_TRY(CheckGenerated(*constraint.expr, *table, *column));
        column->generated_sql = sql::DeparseExpr(*constraint.expr);
        CELLAR_TRY(NameRelations(*table, Type(), &column->generated_sql));
        break;
      case ast::ConstraintKind::kCheck:
        CELLAR_TRY(AddTableConstraint(constraint, table, foreign_keys));
        break;
      case ast::ConstraintKind::kPrimaryKey:
      case ast::ConstraintKind::kUnique:
        CELLAR_TRY(AddKey(constraint, {definition.name}, table));
        break;
      case ast::ConstraintKind::kForeignKey: {
        foreign_keys->push_back({{}, &constraint});
        foreign_keys->back().key.columns.push_back(column->id);
        break;
      }
      case ast::ConstraintKind::kExclusion:
        return UnsupportedError("exclusion constraints are not supported");
      case ast::ConstraintKind::kIdentity: break;
    }
  }
  if (said_null && not_null) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{}\"",
                    definition.name, table->name)
        .WithLocation(definition.location);
  }
  return Status();
}

Status Ddl::AddTableConstraint(const ast::Constraint& constraint, catalog::TableDescriptor* table,
                               std::vector<PendingForeignKey>* foreign_keys) {
  switch (constraint.kind) {
    case ast::ConstraintKind::kPrimaryKey:
    case ast::ConstraintKind::kUnique: return AddKey(constraint, constraint.columns, table);
    case ast::ConstraintKind::kCheck: {
      // Named for the column when the expression uses just one, as PostgreSQL does.
      std::string column;
      int used = 0;
      for (const catalog::ColumnDescriptor& candidate : table->columns) {
        if (candidate.dropped) continue;
        catalog::TableDescriptor without = *table;
        without.columns.erase(
            std::remove_if(without.columns.begin(), without.columns.end(),
                           [&](const auto& c) { return c.name == candidate.name; }),
            without.columns.end());
        if (!CheckExpression(*constraint.expr, &without, MakeType(TypeId::kBool)).ok()) {
          column = candidate.name;
          ++used;
        }
      }
      return AddCheck(constraint, used == 1 ? column : "", table);
    }
    case ast::ConstraintKind::kForeignKey:
      foreign_keys->push_back({{}, &constraint});
      return Status();
    case ast::ConstraintKind::kExclusion:
      return UnsupportedError("exclusion constraints are not supported");
    default: return UnsupportedError("this table constraint is not supported");
  }
}

Status Ddl::CopyLike(const ast::TableLike& like, catalog::TableDescriptor* table) {
  CELLAR_TRY_ASSIGN(catalog::TablePtr source, FindRelation(like.table));
  for (const catalog::ColumnDescriptor& from : source->columns) {
    if (from.dropped || from.hidden) continue;
    catalog::ColumnDescriptor column;
    column.name = from.name;
    column.type = from.type;
    column.not_null = from.not_null;
    if (like.options & ast::TableLike::kDefaults) column.default_sql = from.default_sql;
    if (like.options & ast::TableLike::kGenerated) column.generated_sql = from.generated_sql;
    if (like.options & ast::TableLike::kComments) column.comment = from.comment;
    table->columns.push_back(std::move(column));
  }
  return Status();
}

const char* LayoutName(catalog::Layout layout) {
  switch (layout) {
    case catalog::Layout::kRow: break;
    case catalog::Layout::kPages: return "pages";
    case catalog::Layout::kCell: return "cell";
    case catalog::Layout::kDatum: return "datum";
  }
  return "row";
}

Result<catalog::Layout> ParseLayout(std::string_view name) {
  for (catalog::Layout layout : {catalog::Layout::kRow, catalog::Layout::kPages,
                                 catalog::Layout::kCell, catalog::Layout::kDatum}) {
    if (name == LayoutName(layout)) return layout;
  }
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "invalid value for option \"layout\": {}", name)
      .WithDetail("Valid values are \"row\", \"pages\", \"cell\" and \"datum\".");
}

Result<catalog::Layout> Ddl::LayoutOf(const ast::OptionList& options) {
  std::string name = *s_.settings.Get("default_table_layout");
  for (const ast::Option& option : options) {
    if (option.name == "layout") name = option.ToText();
  }
  return ParseLayout(name);
}

Status Ddl::CreateTable(const ast::CreateTableStmt& statement) {
  if (statement.partitioned || statement.partition_of)
    return UnsupportedError("partitioned tables are not supported");
  if (!statement.inherits.empty()) return UnsupportedError("table inheritance is not supported");
  if (statement.foreign_table) return UnsupportedError("foreign tables are not supported");
  if (statement.of_type != nullptr) return UnsupportedError("typed tables are not supported");
  CELLAR_TRY(CheckTableParameters(statement.options));
  CELLAR_TRY_ASSIGN(const catalog::Layout layout, LayoutOf(statement.options));
  const bool temporary = statement.persistence == ast::Persistence::kTemporary;
  CELLAR_TRY_ASSIGN(Target target, ResolveTarget(statement.table, temporary));
  const catalog::IndexDescriptor* index = nullptr;
  if (Catalog()->FindTable(target.space, target.name) != nullptr ||
      Catalog()->FindTableOfIndex(target.space, target.name, &index) != nullptr) {
    if (statement.if_not_exists) {
      return Notice(Severity::kNotice, sqlstate::kDuplicateTable,
                    fmt::format("relation \"{}\" already exists, skipping", target.name));
    }
    return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists",
                    target.name);
  }
  catalog::TableDescriptor table;
  table.parent = target.space;
  table.name = target.name;
  table.layout = layout;
  for (const ast::Option& option : statement.options) {
    if (IsZoneOption(option.name)) CELLAR_TRY(ApplyZoneOption(option, false, &table.zone));
  }
  table.temporary = target.temporary;
  table.owner = s_.user;
  size_t next_like = 0;
  auto take_likes = [&](size_t position) -> Status {
    while (next_like < statement.likes.size() && statement.likes[next_like].position <= position) {
      CELLAR_TRY(CopyLike(statement.likes[next_like++], &table));
    }
    return Status();
  };
  for (size_t i = 0; i < statement.columns.size(); ++i) {
    CELLAR_TRY(take_likes(i));
    int serial = 0;
    CELLAR_TRY_ASSIGN(catalog::ColumnDescriptor column,
                      MakeColumn(statement.columns[i], target, target.name, &serial));
    table.columns.push_back(std::move(column));
  }
  CELLAR_TRY(take_likes(SIZE_MAX));
  if (table.columns.size() > kMaxColumns) {
    return SqlError(Code::kLimit, sqlstate::kTooManyColumns, "tables can have at most {} columns",
                    kMaxColumns);
  }
  for (size_t i = 0; i < table.columns.size(); ++i) {
    table.columns[i].id = catalog::ColumnId{table.next_column_id++};
    for (size_t j = 0; j < i; ++j) {
      if (table.columns[j].name == table.columns[i].name) {
        return SqlError(Code::kExists, sqlstate::kDuplicateColumn,
                        "column \"{}\" specified more than once", table.columns[i].name);
      }
    }
  }
  std::vector<PendingForeignKey> foreign_keys;
  // Keys first, so that the primary one is in place; then the rest in the order written.
  for (const ast::ColumnDef& definition : statement.columns) {
    CELLAR_TRY(AddColumnConstraints(definition, &table, &foreign_keys));
  }
  for (const ast::Constraint& constraint : statement.constraints) {
    CELLAR_TRY(AddTableConstraint(constraint, &table, &foreign_keys));
  }
  for (const ast::TableLike& like : statement.likes) {
    if ((like.options & (ast::TableLike::kIndexes | ast::TableLike::kConstraints)) == 0) continue;
    CELLAR_TRY_ASSIGN(catalog::TablePtr source, FindRelation(like.table));
    for (const catalog::IndexDescriptor& from : source->indexes) {
      if ((like.options & ast::TableLike::kIndexes) == 0 || (from.primary && !from.constraint))
        continue;
      if (!from.constraint) {
        CELLAR_TRY(CopyIndex(*source, from, &table));
        continue;
      }
      ast::Constraint constraint;
      constraint.nulls_not_distinct = from.nulls_not_distinct;
      constraint.deferrable = from.deferrable;
      for (catalog::ColumnId stored : from.stored)
        constraint.including.push_back(source->FindColumn(stored)->name);
      constraint.kind =
          from.primary ? ast::ConstraintKind::kPrimaryKey : ast::ConstraintKind::kUnique;
      std::vector<std::string> names;
      for (const catalog::IndexColumn& part : from.key)
        names.push_back(source->FindColumn(part.column)->name);
      CELLAR_TRY(AddKey(constraint, names, &table));
      catalog::IndexDescriptor& copy = from.primary ? table.indexes.front() : table.indexes.back();
      for (size_t i = 0; i < from.key.size(); ++i) {
        copy.key[i].direction = from.key[i].direction;
        copy.key[i].nulls = from.key[i].nulls;
      }
      copy.shards = from.shards;
    }
    if (like.options & ast::TableLike::kConstraints) {
      for (catalog::CheckConstraint check : source->checks) {
        CELLAR_TRY_ASSIGN(uint64_t id, Editor().AllocateId());
        check.oid = static_cast<uint32_t>(id) + catalog::TableDescriptor::kFirstOid;
        if ((like.options & ast::TableLike::kComments) == 0) check.comment.clear();
        table.checks.push_back(std::move(check));
      }
    }
  }
  if (table.indexes.empty() || !table.indexes.front().primary) {
    AddHiddenRowId(&table);
  }
  for (PendingForeignKey& pending : foreign_keys) {
    std::vector<std::string> columns = pending.constraint->columns;
    if (columns.empty()) columns.push_back(table.FindColumn(pending.key.columns[0])->name);
    CELLAR_TRY_ASSIGN(catalog::ForeignKey key, MakeForeignKey(*pending.constraint, columns, table));
    CELLAR_TRY(AnnounceReference(key, table.id));
    table.foreign_keys.push_back(std::move(key));
  }
  CELLAR_TRY(MakeGroups(statement.groups, statement.options, &table));
  if (table.primary().shards != 0 && ast::FindOption(statement.options, "layout") == nullptr)
    table.layout = catalog::Layout::kRow;
  CELLAR_TRY(RequireRowsForShards(table));
  s_.ApplyDefaultPrivileges(&table, nullptr);
  CELLAR_TRY_ASSIGN(catalog::TablePtr made, Editor().CreateTable(std::move(table)));
  bool self = false;
  catalog::TableDescriptor next = *made;
  for (catalog::ForeignKey& key : next.foreign_keys) {
    if (key.referenced_table.value != 0) continue;
    key.referenced_table = made->id;
    self = true;
  }
  if (self) {
    CELLAR_TRY_ASSIGN(made, Editor().UpdateTable(std::move(next)));
  }
  for (const catalog::ColumnDescriptor& column : made->columns) {
    if (column.sequence.value != 0) CELLAR_TRY(OwnSequence(column.sequence, made->id, column.id));
  }
  return Status();
}

Status Ddl::CreateTableAs(const ast::CreateTableAsStmt& statement, const Prepared& prepared,
                          std::string* tag) {
  if (statement.materialized_view) return UnsupportedError("materialized views are not supported");
  if (statement.query->kind != ast::NodeKind::kSelect) {
    return UnsupportedError("CREATE TABLE AS EXECUTE is not supported");
  }
  CELLAR_TRY(CheckTableParameters(statement.into.options));
  CELLAR_TRY_ASSIGN(const catalog::Layout layout, LayoutOf(statement.into.options));
  const bool temporary = statement.into.persistence == ast::Persistence::kTemporary;
  CELLAR_TRY_ASSIGN(Target target, ResolveTarget(statement.into.table, temporary));
  if (Catalog()->FindTable(target.space, target.name) != nullptr) {
    if (statement.if_not_exists) {
      *tag = "CREATE TABLE AS";
      return Notice(Severity::kNotice, sqlstate::kDuplicateTable,
                    fmt::format("relation \"{}\" already exists, skipping", target.name));
    }
    return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists",
                    target.name);
  }
  FoldingPlanner planner(s_, prepared.client_types);
  sql::PlannerContext& context = planner.context;
  CELLAR_TRY_ASSIGN(std::shared_ptr<const sql::Plan> plan,
                    sql::PlanStatement(*statement.query, context));
  CELLAR_TRY(s_.CheckPlan(*plan));
  catalog::TableDescriptor table;
  table.parent = target.space;
  table.name = target.name;
  table.layout = layout;
  table.temporary = target.temporary;
  table.owner = s_.user;
  if (statement.into.columns.size() > plan->output.size()) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "too many column names were specified");
  }
  const std::optional<size_t> indeterminate = ColumnWithoutCollation(*plan);
  for (size_t i = 0; i < plan->output.size(); ++i) {
    catalog::ColumnDescriptor column;
    column.id = catalog::ColumnId{table.next_column_id++};
    column.name =
        i < statement.into.columns.size() ? statement.into.columns[i] : plan->output[i].name;
    column.type = plan->output[i].type;
    if (indeterminate == i) {
      return SqlError(Code::kInvalid, sqlstate::kIndeterminateCollation,
                      "no collation was derived for column \"{}\" with collatable type {}",
                      column.name, FormatType(column.type))
          .WithHint("Use the COLLATE clause to set the collation explicitly.");
    }
    if (column.type.id == TypeId::kUnknown) column.type = MakeType(TypeId::kText);
    if (!IsStorable(column.type)) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                      "column \"{}\" has pseudo-type {}", column.name, FormatType(column.type));
    }
    for (const catalog::ColumnDescriptor& other : table.columns) {
      if (other.name == column.name) {
        return SqlError(Code::kExists, sqlstate::kDuplicateColumn,
                        "column \"{}\" specified more than once", column.name);
      }
    }
    table.columns.push_back(std::move(column));
  }
  AddHiddenRowId(&table);
  CELLAR_TRY(MakeGroups(statement.groups, statement.into.options, &table));
  s_.ApplyDefaultPrivileges(&table, nullptr);
  CELLAR_TRY_ASSIGN(catalog::TablePtr made, Editor().CreateTable(std::move(table)));
  uint64_t rows = 0;
  if (!statement.into.no_data) {
    CELLAR_TRY(s_.RequireTables(*plan));
    CELLAR_TRY_ASSIGN(const sql::ExecEnvironment environment,
                      s_.MakeEnvironment(s_.statement, &planner.eval, context.catalog.get()));
    CELLAR_TRY_ASSIGN(std::unique_ptr<sql::Execution> execution,
                      sql::Execution::Open(plan, environment));
    std::vector<Type> types;
    for (const catalog::ColumnDescriptor& column : made->columns) types.push_back(column.type);
    RowBatch batch;
    CELLAR_TRY(s_.transaction->access->BeginBulk(made));
    bool checked = false;
    while (true) {
      CELLAR_TRY_ASSIGN(const RowBatch* from,
                        NextRows(s_, plan->tables, execution.get(), &checked));
      if (from == nullptr) break;
      batch.Reset(types);
      batch.Resize(from->size());
      for (size_t row = 0; row < from->size(); ++row) {
        for (size_t c = 0; c < from->num_columns(); ++c)
          batch.column(c).Set(row, from->column(c).Get(row));
        batch.column(from->num_columns()).SetNull(row);
      }
      table::InsertOutcome outcome;
      CELLAR_TRY(s_.transaction->access->Insert(made, &batch, {}, &outcome));
      rows += from->size();
    }
    CELLAR_TRY(s_.transaction->access->EndBulk(true));
  }
  *tag = statement.into.no_data ? "CREATE TABLE AS" : fmt::format("SELECT {}", rows);
  return Status();
}

}  // namespace cellar::session
