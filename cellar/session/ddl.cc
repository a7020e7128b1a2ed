// Schema statements: what is made, dropped, renamed and described.
#include "cellar/session/ddl.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "cellar/base/sqlstate.h"
#include "cellar/session/view_texts.h"
#include "cellar/session/zones.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {

ast::QualifiedName NameOf(const ast::ObjectName& object) {
  ast::QualifiedName name;
  const size_t count = object.parts.size();
  if (count > 0) name.name = object.parts[count - 1];
  if (count > 1) name.schema = object.parts[count - 2];
  if (count > 2) name.catalog = object.parts[count - 3];
  return name;
}

namespace {

std::string Spell(const ast::QualifiedName& name) {
  return name.schema.empty() ? name.name : name.schema + "." + name.name;
}

Status NoRelation(const ast::QualifiedName& name) {
  return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                  Spell(name))
      .WithLocation(name.location);
}

}  // namespace

Result<catalog::TablePtr> Ddl::FindRelation(const ast::QualifiedName& name) {
  const sql::NameScope& scope = s_.Scope();
  if (!name.catalog.empty() && name.catalog != scope.database_name) {
    return UnsupportedError("cross-database references are not implemented: \"{}.{}.{}\"",
                            name.catalog, name.schema, name.name);
  }
  if (!name.schema.empty() && s_.db->system.HasSchema(name.schema)) {
    return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege,
                    "permission denied: \"{}\" is a system catalog", name.name);
  }
  catalog::TablePtr table = sql::FindRelation(*Catalog(), scope, name.schema, name.name);
  if (table == nullptr) return NoRelation(name);
  return table;
}

Result<catalog::TablePtr> Ddl::FindTable(const ast::QualifiedName& name) {
  CELLAR_TRY_ASSIGN(catalog::TablePtr table, FindRelation(name));
  if (table->kind != catalog::RelationKind::kTable) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a table",
                    table->name);
  }
  return table;
}

// ---- Dropping
// ---------------------------------------------------------------------------------------------

Status Ddl::RefusePending(const catalog::TableDescriptor& table, const char* statement) {
  if (s_.transaction == nullptr || !s_.transaction->deferred.Waits(table.id)) return Status();
  return SqlError(Code::kInvalid, sqlstate::kObjectInUse,
                  "cannot {} \"{}\" because it has pending trigger events", statement, table.name);
}

Status Ddl::CheckUnused(const catalog::TableDescriptor& table, std::string_view command) const {
  for (const auto& [name, portal] : s_.portals) {
    const bool outlived = portal->hold && portal->materialized && portal->execution == nullptr;
    const sql::Plan* plan = portal->prepared->plan.get();
    // The next statement takes the place of the unnamed one.
    if (name.empty() || outlived || plan == nullptr) continue;
    if (std::none_of(plan->tables.begin(), plan->tables.end(),
                     [&](const catalog::TablePtr& used) { return used->id == table.id; }))
      continue;
    return SqlError(Code::kInvalid, sqlstate::kObjectInUse,
                    "cannot {} \"{}\" because it is being used by active queries in this session",
                    command, table.name);
  }
  return Status();
}

Status Ddl::DropTable(const catalog::TablePtr& table, bool cascade) {
  if (table->kind == catalog::RelationKind::kTable) CELLAR_TRY(CheckUnused(*table, "DROP TABLE"));
  CELLAR_TRY(RefusePending(*table, "DROP TABLE"));
  std::vector<catalog::LostForeignKey> lost;
  for (const catalog::TablePtr& other : Catalog()->ListReferencing(table->id)) {
    if (other->id == table->id || IsDropping(other->id)) continue;
    catalog::TableDescriptor changed = *other;
    for (size_t i = 0; i < changed.foreign_keys.size();) {
      if (changed.foreign_keys[i].referenced_table != table->id) {
        ++i;
        continue;
      }
      if (!cascade) {
        return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                        "cannot drop table {} because other objects depend on it", table->name)
            .WithDetail(fmt::format("constraint {} on table {} depends on table {}",
                                    changed.foreign_keys[i].name, other->name, table->name))
            .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
      }
      CELLAR_TRY(Notice(Severity::kNotice, "00000",
                        fmt::format("drop cascades to constraint {} on table {}",
                                    changed.foreign_keys[i].name, other->name)));
      lost.push_back({other->id, changed.foreign_keys[i]});
      changed.foreign_keys.erase(changed.foreign_keys.begin() + static_cast<ptrdiff_t>(i));
    }
    CELLAR_TRY(Editor().UpdateTable(std::move(changed)).status());
  }
  for (const catalog::ColumnDescriptor& column : table->columns) {
    if (column.sequence.value == 0 || Catalog()->GetTable(column.sequence) == nullptr) continue;
    CELLAR_TRY(ReleaseSequence(*Catalog()->GetTable(column.sequence),
                               "table " + s_.QualifiedName(*table), table->id, {}, cascade));
    CELLAR_TRY(Discard(Catalog()->GetTable(column.sequence)));
  }
  if (lost.empty()) return Discard(table);
  catalog::TableDescriptor remembers = *Catalog()->GetTable(table->id);
  remembers.lost_keys = std::move(lost);
  CELLAR_TRY_ASSIGN(catalog::TablePtr stored, Editor().UpdateTable(std::move(remembers)));
  return Discard(stored);
}

Status Ddl::DropRelation(const ast::ObjectName& object, const ast::DropStmt& statement) {
  const ast::QualifiedName name = NameOf(object);
  const char* kind = statement.object_type == ast::ObjectType::kView       ? "view"
                     : statement.object_type == ast::ObjectType::kSequence ? "sequence"
                     : statement.object_type == ast::ObjectType::kMatView  ? "materialized view"
                                                                           : "table";
  auto missing = [&]() -> Status {
    if (statement.if_exists) {
      const sql::NameScope& scope = s_.Scope();
      if (!name.schema.empty() && !sql::FindSchema(*Catalog(), scope, name.schema)) {
        return Notice(Severity::kNotice, "00000",
                      fmt::format("schema \"{}\" does not exist, skipping", name.schema));
      }
      return Notice(Severity::kNotice, "00000",
                    fmt::format("{} \"{}\" does not exist, skipping", kind, name.name));
    }
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "{} \"{}\" does not exist", kind,
                    Spell(name));
  };
  Result<catalog::TablePtr> found = FindRelation(name);
  if (!found.ok()) {
    if (found.status().code() == Code::kNotFound) return missing();
    return found.status();
  }
  catalog::TablePtr table = *found;
  const catalog::RelationKind wanted =
      statement.object_type == ast::ObjectType::kView       ? catalog::RelationKind::kView
      : statement.object_type == ast::ObjectType::kSequence ? catalog::RelationKind::kSequence
                                                            : catalog::RelationKind::kTable;
  if (table->kind != wanted || statement.object_type == ast::ObjectType::kMatView) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a {}", table->name,
                    kind)
        .WithHint(table->kind == catalog::RelationKind::kTable ? "Use DROP TABLE to remove a table."
                  : table->kind == catalog::RelationKind::kSequence
                      ? "Use DROP SEQUENCE to remove a sequence."
                      : "Use DROP VIEW to remove a view.");
  }
  if (table->kind == catalog::RelationKind::kSequence) {
    CELLAR_TRY(
        ReleaseSequence(*table, "sequence " + s_.QualifiedName(*table), {}, {}, statement.cascade));
    return Discard(table);
  }
  return DropTable(table, statement.cascade);
}

Status Ddl::DropIndex(const ast::ObjectName& object, const ast::DropStmt& statement) {
  if (statement.concurrently) CELLAR_TRY(RequireNoBlock("DROP INDEX CONCURRENTLY"));
  const ast::QualifiedName name = NameOf(object);
  const sql::NameScope& scope = s_.Scope();
  const catalog::IndexDescriptor* index = nullptr;
  catalog::TablePtr table;
  std::vector<std::string> schemas = scope.search_path;
  if (!name.schema.empty())
    schemas = {name.schema};
  else if (scope.temporary.value != 0)
    schemas.insert(schemas.begin(), "pg_temp");
  for (const std::string& schema : schemas) {
    std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), scope, schema);
    if (space) table = Catalog()->FindTableOfIndex(*space, name.name, &index);
    if (table != nullptr) break;
  }
  if (table == nullptr) {
    if (sql::FindRelation(*Catalog(), scope, name.schema, name.name) != nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not an index",
                      name.name);
    }
    if (statement.if_exists) {
      return Notice(Severity::kNotice, "00000",
                    fmt::format("index \"{}\" does not exist, skipping", name.name));
    }
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "index \"{}\" does not exist",
                    Spell(name));
  }
  if (index->constraint || index->primary) {
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop index {} because constraint {} on table {} requires it",
                    index->name, index->name, table->name)
        .WithHint(fmt::format("You can drop constraint {} on table {} instead.", index->name,
                              table->name));
  }
  catalog::TableDescriptor next = *table;
  const catalog::IndexId id = index->id;
  next.indexes.erase(std::remove_if(next.indexes.begin(), next.indexes.end(),
                                    [id](const catalog::IndexDescriptor& candidate) {
                                      return candidate.id == id;
                                    }),
                     next.indexes.end());
  CELLAR_TRY(s_.transaction->access->ClearIndex(*table, id));
  return Editor().UpdateTable(std::move(next)).status();
}

Status Ddl::DropSchema(const ast::ObjectName& object, const ast::DropStmt& statement) {
  const std::string& name = object.parts.back();
  if (s_.db->system.HasSchema(name)) {
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop schema {} because it is required by the database system", name);
  }
  if (name == "public") {
    return UnsupportedError("schema \"public\" is the database itself and cannot be dropped");
  }
  std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), s_.Scope(), name);
  if (!space) {
    if (statement.if_exists) {
      return Notice(Severity::kNotice, "00000",
                    fmt::format("schema \"{}\" does not exist, skipping", name));
    }
    return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                    name);
  }
  std::vector<catalog::TablePtr> tables = Catalog()->ListTables(*space);
  const std::vector<catalog::TablePtr> types = Catalog()->ListTypes(*space);
  tables.insert(tables.end(), types.begin(), types.end());  // once what has them is gone
  if (!tables.empty() && !statement.cascade) {
    std::string detail;
    for (const catalog::TablePtr& table : tables) {
      if (!detail.empty()) detail += "\n";
      const char* kind = table->kind == catalog::RelationKind::kType        ? "type"
                         : table->kind == catalog::RelationKind::kCollation ? "collation"
                                                                            : "table";
      detail += fmt::format("{} {} depends on schema {}", kind, s_.QualifiedName(*table), name);
    }
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop schema {} because other objects depend on it", name)
        .WithDetail(detail)
        .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
  }
  if (!tables.empty()) {
    CELLAR_TRY(Notice(Severity::kNotice, "00000",
                      tables.size() == 1
                          ? fmt::format("drop cascades to {} {}", types.empty() ? "table" : "type",
                                        s_.QualifiedName(*tables[0]))
                          : fmt::format("drop cascades to {} other objects", tables.size())));
  }
  // Sequences last: defaults that name them go with their tables, and come back with them.
  std::stable_partition(tables.begin(), tables.end(), [](const catalog::TablePtr& table) {
    return table->kind != catalog::RelationKind::kSequence;
  });
  for (const catalog::TablePtr& table : tables) {
    if (catalog::TablePtr living = Catalog()->GetTable(table->id)) {
      if (living->kind == catalog::RelationKind::kSequence) {
        CELLAR_TRY(ReleaseSequence(*living, "schema " + name, {}, {}, true));
        CELLAR_TRY(Discard(living));
      } else if (living->kind == catalog::RelationKind::kType) {
        CELLAR_TRY(DropType(living, true));
      } else if (living->kind == catalog::RelationKind::kCollation) {
        CELLAR_TRY(DropCollation(living, true));
      } else {
        CELLAR_TRY(DropTable(living, true));
      }
    }
  }
  return DiscardNamespace(*space);
}

Status Ddl::DropObjects(const ast::DropStmt& statement) {
  // All names are looked up before anything goes.
  for (const ast::ObjectName& object : statement.objects) {
    if (statement.object_type != ast::ObjectType::kSchema || statement.if_exists) break;
    const std::string& name = object.parts.back();
    if (!sql::FindSchema(*Catalog(), s_.Scope(), name) && !s_.db->system.HasSchema(name)) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                      name);
    }
  }
  for (const ast::ObjectName& object : statement.objects) {
    if (statement.object_type != ast::ObjectType::kTable) break;
    const ast::QualifiedName name = NameOf(object);
    const catalog::TablePtr table =
        sql::FindRelation(*Catalog(), s_.Scope(), name.schema, name.name);
    if (table != nullptr) dropping_.push_back(table->id);
  }
  for (const ast::ObjectName& object : statement.objects) {
    switch (statement.object_type) {
      case ast::ObjectType::kTable:
      case ast::ObjectType::kView:
      case ast::ObjectType::kMatView:
      case ast::ObjectType::kSequence: CELLAR_TRY(DropRelation(object, statement)); break;
      case ast::ObjectType::kIndex: CELLAR_TRY(DropIndex(object, statement)); break;
      case ast::ObjectType::kSchema: CELLAR_TRY(DropSchema(object, statement)); break;
      case ast::ObjectType::kCollation: CELLAR_TRY(DropCollations(object, statement)); break;
      case ast::ObjectType::kType:
      case ast::ObjectType::kDomain: CELLAR_TRY(DropTypes(object, statement)); break;
      default: {
        std::string kind(ast::ObjectTypeName(statement.object_type));
        for (char& c : kind) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        const std::string name = JoinNames(object.parts, ".");
        if (statement.if_exists) {
          CELLAR_TRY(Notice(Severity::kNotice, "00000",
                            fmt::format("{} \"{}\" does not exist, skipping", kind, name)));
          break;
        }
        return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "{} \"{}\" does not exist",
                        kind, name);
      }
    }
  }
  return Status();
}

Status Ddl::DropDatabase(const ast::DropDatabaseStmt& statement) {
  if (s_.in_block) {
    return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                    "DROP DATABASE cannot run inside a transaction block");
  }
  catalog::NamespacePtr space = Catalog()->FindNamespace(catalog::kRootNamespace, statement.name);
  if (space == nullptr) {
    if (statement.if_exists) {
      return Notice(Severity::kNotice, "00000",
                    fmt::format("database \"{}\" does not exist, skipping", statement.name));
    }
    return SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                    "database \"{}\" does not exist", statement.name);
  }
  if (space->id == s_.database_id) {
    return SqlError(Code::kInvalid, sqlstate::kObjectInUse,
                    "cannot drop the currently open database");
  }
  {
    const size_t others = s_.db->sessions.CountInDatabase(space->id.value, s_.pid);
    if (others > 0) {
      return SqlError(Code::kInvalid, sqlstate::kObjectInUse,
                      "database \"{}\" is being accessed by other users", statement.name)
          .WithDetail(fmt::format("There {} {} other session{} using the database.",
                                  others == 1 ? "is" : "are", others, others == 1 ? "" : "s"));
    }
  }
  auto drop_tables = [&](catalog::NamespaceId id) -> Status {
    for (const catalog::TablePtr& table : Catalog()->ListTables(id)) {
      if (Catalog()->GetTable(table->id) != nullptr) CELLAR_TRY(Discard(table));
    }
    for (const catalog::TablePtr& type : Catalog()->ListTypes(id)) CELLAR_TRY(Discard(type));
    return Status();
  };
  for (const catalog::NamespacePtr& schema : Catalog()->ListNamespaces(space->id)) {
    CELLAR_TRY(drop_tables(schema->id));
    CELLAR_TRY(DiscardNamespace(schema->id));
  }
  CELLAR_TRY(drop_tables(space->id));
  return DiscardNamespace(space->id);
}

// ---- Making
// -----------------------------------------------------------------------------------------------

Status Ddl::CreateSchema(const ast::CreateSchemaStmt& statement) {
  const std::string name = !statement.name.empty() ? statement.name
                           : statement.has_owner   ? RoleName(statement.owner)
                                                   : s_.user;
  if (name.substr(0, 3) == "pg_") {
    return SqlError(Code::kInvalid, sqlstate::kReservedName, "unacceptable schema name \"{}\"",
                    name)
        .WithDetail("The prefix \"pg_\" is reserved for system schemas.");
  }
  if (sql::FindSchema(*Catalog(), s_.Scope(), name) || s_.db->system.HasSchema(name)) {
    if (statement.if_not_exists) {
      return Notice(Severity::kNotice, sqlstate::kDuplicateSchema,
                    fmt::format("schema \"{}\" already exists, skipping", name));
    }
    return SqlError(Code::kExists, sqlstate::kDuplicateSchema, "schema \"{}\" already exists",
                    name);
  }
  const std::string owner = statement.has_owner ? RoleName(statement.owner) : s_.user;
  CELLAR_TRY_ASSIGN(catalog::NamespacePtr made,
                    Editor().CreateNamespace(s_.database_id, name, owner));
  catalog::NamespaceDescriptor granted = *made;
  s_.ApplyDefaultPrivileges(nullptr, &granted);
  std::span<const ast::StmtPtr> elements = statement.elements;
  if (!elements.empty() && elements[0]->Is<ast::OwnStmt>()) {
    CELLAR_TRY(ApplySpaceOptions(elements[0]->As<ast::OwnStmt>().options, false, &granted.zone));
    elements = elements.subspan(1);
  }
  if (granted.acl.set || granted.zone != made->zone)
    CELLAR_TRY(Editor().UpdateNamespace(std::move(granted)));
  if (elements.empty()) return Status();
  // The elements are made with the new schema in front of the path.
  const std::string path = *s_.settings.Get("search_path");
  CELLAR_TRY(s_.settings.Set("search_path", sql::QuoteIdentifier(name) + ", " + path, true));
  Status status;
  for (const ast::StmtPtr& element : elements) {
    status = Authorize(*element);
    if (!status.ok()) break;
    if (element->kind == ast::NodeKind::kCreateTable)
      status = CreateTable(element->As<ast::CreateTableStmt>());
    else if (element->kind == ast::NodeKind::kCreateIndex)
      status = CreateIndex(element->As<ast::CreateIndexStmt>());
    else if (element->kind == ast::NodeKind::kCreateSequence) {
      status = CreateSequence(element->As<ast::CreateSequenceStmt>());
    } else if (element->kind == ast::NodeKind::kCreateView) {
      status = CreateView(element->As<ast::CreateViewStmt>());
    } else if (element->kind == ast::NodeKind::kGrant) {
      status = Grant(element->As<ast::GrantStmt>());
    } else {
      status = UnsupportedError("this element of CREATE SCHEMA is not supported");
    }
    if (!status.ok()) break;
  }
  CELLAR_TRY(s_.settings.Set("search_path", path, true));
  return status;
}

Status Ddl::CreateDatabase(const ast::CreateDatabaseStmt& statement) {
  if (s_.in_block) {
    return SqlError(Code::kInvalid, sqlstate::kActiveSqlTransaction,
                    "CREATE DATABASE cannot run inside a transaction block");
  }
  if (Catalog()->FindNamespace(catalog::kRootNamespace, statement.name) != nullptr) {
    return SqlError(Code::kExists, sqlstate::kDuplicateDatabase, "database \"{}\" already exists",
                    statement.name);
  }
  for (const ast::Option& option : statement.options) {
    if (option.name == "encoding") {
      std::string text = option.ToText();
      for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
      if (text != "UTF8" && text != "UTF-8" && text != "UNICODE" && text != "6" &&
          text != "DEFAULT" && !text.empty()) {
        return UnsupportedError("encoding \"{}\" is not supported", option.ToText())
            .WithHint("Cellar stores UTF-8 only.");
      }
    }
  }
  std::string owner = s_.user;
  catalog::ZoneSettings zone;
  constexpr std::string_view kOthers[] = {"owner",
                                          "template",
                                          "encoding",
                                          "strategy",
                                          "locale",
                                          "lc_collate",
                                          "lc_ctype",
                                          "icu_locale",
                                          "locale_provider",
                                          "tablespace",
                                          "collation_version",
                                          "allow_connections",
                                          "connection_limit",
                                          "is_template",
                                          "oid",
                                          "location"};
  for (const ast::Option& option : statement.options) {
    if (option.name == "owner") owner = option.ToText();
    if (IsZoneOption(option.name)) {
      CELLAR_TRY(ApplySpaceOptions({&option, 1}, false, &zone));
    } else if (std::find(std::begin(kOthers), std::end(kOthers), option.name) ==
               std::end(kOthers)) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "option \"{}\" not recognized",
                      option.name)
          .WithLocation(option.location);
    }
  }
  CELLAR_TRY_ASSIGN(const catalog::NamespacePtr made,
                    Editor().CreateNamespace(catalog::kRootNamespace, statement.name, owner));
  if (zone == made->zone) return Status();
  catalog::NamespaceDescriptor limited = *made;
  limited.zone = std::move(zone);
  return Editor().UpdateNamespace(std::move(limited));
}

Status Ddl::CreateView(const ast::CreateViewStmt& statement) {
  if (statement.check_option != ast::CheckOption::kNone)
    return UnsupportedError("WITH CHECK OPTION is not supported");
  const bool temporary = statement.persistence == ast::Persistence::kTemporary;
  CELLAR_TRY_ASSIGN(Target target, ResolveTarget(statement.view, temporary));
  FoldingPlanner planner(s_);
  sql::PlannerContext& context = planner.context;
  if (statement.query->Is<ast::SelectStmt>()) {
    const auto& select = statement.query->As<ast::SelectStmt>();
    for (size_t i = 0; select.with != nullptr && i < select.with->ctes.size(); ++i) {
      if (select.with->ctes[i].query->Is<ast::SelectStmt>()) continue;
      return UnsupportedError("views must not contain data-modifying statements in WITH");
    }
  }
  CELLAR_TRY_ASSIGN(std::shared_ptr<const sql::Plan> plan,
                    sql::PlanStatement(*statement.query, context));
  if (statement.columns.size() > plan->output.size()) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "CREATE VIEW specifies more column names than columns");
  }
  if (const std::optional<size_t> column = ColumnWithoutCollation(*plan)) {
    return SqlError(Code::kInvalid, sqlstate::kIndeterminateCollation,
                    "could not determine which collation to use for view column \"{}\"",
                    *column < statement.columns.size() ? statement.columns[*column]
                                                       : plan->output[*column].name)
        .WithHint("Use the COLLATE clause to set the collation explicitly.");
  }
  catalog::TableDescriptor view;
  catalog::TablePtr existing = Catalog()->FindTable(target.space, target.name);
  if (existing != nullptr && !statement.or_replace) {
    return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists",
                    target.name);
  }
  if (existing != nullptr) {
    if (existing->kind != catalog::RelationKind::kView) {
      return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a view",
                      target.name);
    }
    if (plan->output.size() < existing->columns.size()) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                      "cannot drop columns from view");
    }
    view = *existing;
  }
  view.parent = target.space;
  view.name = target.name;
  view.kind = catalog::RelationKind::kView;
  view.temporary = target.temporary;
  if (existing == nullptr) view.owner = s_.user;
  view.view_sql = sql::DeparseView(*statement.query);
  // What columns there are is settled now.
  CELLAR_TRY_ASSIGN(view.view_sql, ExpandStars(view));
  for (size_t i = 0; i < plan->output.size(); ++i) {
    catalog::ColumnDescriptor column;
    column.name = i < statement.columns.size() ? statement.columns[i] : plan->output[i].name;
    column.type = plan->output[i].type;
    if (column.type.id == TypeId::kUnknown) column.type = MakeType(TypeId::kText);
    if (i < view.columns.size()) {
      if (view.columns[i].name != column.name) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                        "cannot change name of view column \"{}\" to \"{}\"", view.columns[i].name,
                        column.name);
      }
      if (!view.columns[i].type.SameKind(column.type)) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                        "cannot change data type of view column \"{}\" from {} to {}", column.name,
                        FormatType(view.columns[i].type), FormatType(column.type));
      }
      continue;
    }
    for (const catalog::ColumnDescriptor& other : view.columns) {
      if (other.name == column.name) {
        return SqlError(Code::kExists, sqlstate::kDuplicateColumn,
                        "column \"{}\" specified more than once", column.name);
      }
    }
    column.id = catalog::ColumnId{view.next_column_id++};
    view.columns.push_back(std::move(column));
  }
  view.view_sql = ViewText(s_, view, Qualify::kAll);
  if (existing != nullptr) return Editor().UpdateTable(std::move(view)).status();
  s_.ApplyDefaultPrivileges(&view, nullptr);
  return Editor().CreateTable(std::move(view)).status();
}

Status Ddl::ApplySequenceOptions(const ast::OptionList& options, bool creating,
                                 catalog::TableDescriptor* sequence,
                                 std::optional<int64_t>* restart) {
  catalog::SequenceOptions& target = sequence->sequence;
  if (target.type.id == TypeId::kInvalid) target.type = MakeType(TypeId::kInt8);
  bool has_min = false, has_max = false, has_start = false;
  auto integer = [](const ast::Option& option) -> Result<int64_t> {
    if (option.value_kind == ast::OptionKind::kInteger) return option.integer;
    int64_t value = 0;
    auto [end, error] =
        std::from_chars(option.text.data(), option.text.data() + option.text.size(), value);
    if (error != std::errc() || end != option.text.data() + option.text.size()) {
      return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                      "value \"{}\" is out of range for type bigint", option.ToText());
    }
    return value;
  };
  const ast::Option* min = nullptr;
  const ast::Option* max = nullptr;
  for (const ast::Option& option : options) {
    if (option.name == "as") {
      int serial = 0;
      CELLAR_TRY_ASSIGN(target.type, s_.TypeNamed(*option.type, &serial));
      if (!IsInteger(target.type)) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "sequence type must be smallint, integer, or bigint");
      }
    } else if (option.name == "increment") {
      CELLAR_TRY_ASSIGN(target.increment, integer(option));
      if (target.increment == 0) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "INCREMENT must not be zero");
      }
    } else if (option.name == "minvalue") {
      min = option.value_kind == ast::OptionKind::kNone ? nullptr : &option;
      has_min = true;
    } else if (option.name == "maxvalue") {
      max = option.value_kind == ast::OptionKind::kNone ? nullptr : &option;
      has_max = true;
    } else if (option.name == "start") {
      CELLAR_TRY_ASSIGN(target.start, integer(option));
      has_start = true;
    } else if (option.name == "cache") {
      CELLAR_TRY_ASSIGN(target.cache, integer(option));
      if (target.cache <= 0) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "CACHE ({}) must be greater than zero", target.cache);
      }
    } else if (option.name == "cycle") {
      target.cycle = option.ToBool().value;
    } else if (option.name == "restart") {
      if (option.value_kind == ast::OptionKind::kNone) {
        *restart = target.start;
      } else {
        CELLAR_TRY_ASSIGN(int64_t value, integer(option));
        *restart = value;
      }
    }
  }
  const int64_t type_max = target.type.id == TypeId::kInt2   ? INT16_MAX
                           : target.type.id == TypeId::kInt4 ? INT32_MAX
                                                             : INT64_MAX;
  const int64_t type_min = -type_max - 1;
  if (has_min || creating) target.min = target.increment > 0 ? 1 : type_min;
  if (has_max || creating) target.max = target.increment > 0 ? type_max : -1;
  if (min != nullptr) {
    CELLAR_TRY_ASSIGN(target.min, integer(*min));
  }
  if (max != nullptr) {
    CELLAR_TRY_ASSIGN(target.max, integer(*max));
  }
  if (target.min > target.max) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "MINVALUE ({}) must be less than MAXVALUE ({})", target.min, target.max);
  }
  if (creating && !has_start) target.start = target.increment > 0 ? target.min : target.max;
  if (target.start < target.min) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "START value ({}) cannot be less than MINVALUE ({})", target.start, target.min);
  }
  if (target.start > target.max) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "START value ({}) cannot be greater than MAXVALUE ({})", target.start,
                    target.max);
  }
  for (const ast::Option& option : options) {
    if (option.name != "owned_by") continue;
    if (option.list.size() < 2) {
      target.owner_table = {};
      target.owner_column = {};
      continue;
    }
    ast::ObjectName object;
    object.parts.assign(option.list.begin(), option.list.end() - 1);
    CELLAR_TRY_ASSIGN(catalog::TablePtr owner, FindTable(NameOf(object)));
    const catalog::ColumnDescriptor* column = owner->FindColumn(option.list.back());
    if (column == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" of relation \"{}\" does not exist", option.list.back(),
                      owner->name);
    }
    target.owner_table = owner->id;
    target.owner_column = column->id;
  }
  return Status();
}

Status Ddl::CreateSequence(const ast::CreateSequenceStmt& statement) {
  const bool temporary = statement.persistence == ast::Persistence::kTemporary;
  CELLAR_TRY_ASSIGN(Target target, ResolveTarget(statement.sequence, temporary));
  if (Catalog()->FindTable(target.space, target.name) != nullptr) {
    if (statement.if_not_exists) {
      return Notice(Severity::kNotice, sqlstate::kDuplicateTable,
                    fmt::format("relation \"{}\" already exists, skipping", target.name));
    }
    return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists",
                    target.name);
  }
  catalog::TableDescriptor sequence;
  sequence.parent = target.space;
  sequence.name = target.name;
  sequence.kind = catalog::RelationKind::kSequence;
  sequence.temporary = target.temporary;
  sequence.owner = s_.user;
  std::optional<int64_t> restart;
  CELLAR_TRY(ApplySequenceOptions(statement.options, true, &sequence, &restart));
  s_.ApplyDefaultPrivileges(&sequence, nullptr);
  CELLAR_TRY_ASSIGN(catalog::TablePtr made, Editor().CreateTable(std::move(sequence)));
  return FollowOwner(*made, {});
}

Status Ddl::AlterSequence(const ast::AlterSequenceStmt& statement) {
  Result<catalog::TablePtr> found = FindRelation(statement.sequence);
  if (!found.ok()) {
    if (statement.if_exists && found.status().code() == Code::kNotFound) {
      return Notice(
          Severity::kNotice, "00000",
          fmt::format("relation \"{}\" does not exist, skipping", statement.sequence.name));
    }
    return found.status();
  }
  if ((*found)->kind != catalog::RelationKind::kSequence) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a sequence",
                    (*found)->name);
  }
  catalog::TableDescriptor next = **found;
  std::optional<int64_t> restart;
  CELLAR_TRY(ApplySequenceOptions(statement.options, false, &next, &restart));
  CELLAR_TRY_ASSIGN(catalog::TablePtr made, Editor().UpdateTable(std::move(next)));
  CELLAR_TRY(FollowOwner(*made, (*found)->sequence));
  if (restart) return s_.db->sequences->Set(*made, *restart, false);
  return Status();
}

// ---- Changing
// ---------------------------------------------------------------------------------------------

namespace {

// ALTER VIEW and ALTER SEQUENCE are for those alone; ALTER TABLE and ALTER INDEX for others too.
Status CheckKind(ast::ObjectType said, const catalog::TableDescriptor& relation) {
  using catalog::RelationKind;
  const bool view = said == ast::ObjectType::kView, sequence = said == ast::ObjectType::kSequence;
  if ((!view || relation.kind == RelationKind::kView) &&
      (!sequence || relation.kind == RelationKind::kSequence)) {
    return Status();
  }
  return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a {}", relation.name,
                  view ? "view" : "sequence");
}

}  // namespace

Status Ddl::Rename(const ast::RenameStmt& statement) {
  switch (statement.object_type) {
    case ast::ObjectType::kSchema: {
      std::optional<catalog::NamespaceId> space =
          sql::FindSchema(*Catalog(), s_.Scope(), statement.sub_name);
      if (!space) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                        "schema \"{}\" does not exist", statement.sub_name);
      }
      if (*space == s_.database_id) return UnsupportedError("schema \"public\" cannot be renamed");
      if (statement.new_name.starts_with("pg_")) {
        return SqlError(Code::kInvalid, sqlstate::kReservedName, "unacceptable schema name \"{}\"",
                        statement.new_name)
            .WithDetail("The prefix \"pg_\" is reserved for system schemas.");
      }
      const catalog::SnapshotPtr before = Catalog();
      CELLAR_TRY_ASSIGN(const std::vector<ViewUses> views, ViewsNaming(statement.sub_name));
      CELLAR_TRY(Editor().RenameNamespace(*space, statement.new_name));
      CELLAR_TRY(FollowRelations(views, before));
      for (const catalog::TablePtr& table : Catalog()->ListTables(*space)) {
        CELLAR_TRY(FollowSequence(table->id, statement.sub_name, table->name));
      }
      return Status();
    }
    case ast::ObjectType::kDatabase: {
      catalog::NamespacePtr space =
          Catalog()->FindNamespace(catalog::kRootNamespace, statement.sub_name);
      if (space == nullptr) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                        "database \"{}\" does not exist", statement.sub_name);
      }
      if (space->id == s_.database_id) {
        return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                        "current database cannot be renamed");
      }
      return Editor().RenameNamespace(space->id, statement.new_name);
    }
    case ast::ObjectType::kRole: return RenameRole(statement);
    case ast::ObjectType::kType: return RenameType(statement);
    case ast::ObjectType::kCollation: return RenameCollation(statement);
    case ast::ObjectType::kIndex:
    case ast::ObjectType::kTable:
    case ast::ObjectType::kView:
    case ast::ObjectType::kSequence:
    case ast::ObjectType::kColumn:
    case ast::ObjectType::kTableConstraint: break;
    default:
      return UnsupportedError("renaming a {} is not supported",
                              ast::ObjectTypeName(statement.object_type));
  }
  const sql::NameScope& scope = s_.Scope();
  const ast::QualifiedName& name = statement.relation;
  catalog::TablePtr table = sql::FindRelation(*Catalog(), scope, name.schema, name.name);
  const catalog::IndexDescriptor* index = nullptr;
  if (table == nullptr && (statement.object_type == ast::ObjectType::kIndex ||
                           statement.object_type == ast::ObjectType::kTable)) {
    std::vector<std::string> schemas = scope.search_path;
    if (!name.schema.empty()) schemas = {name.schema};
    for (const std::string& schema : schemas) {
      std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), scope, schema);
      if (space) table = Catalog()->FindTableOfIndex(*space, name.name, &index);
      if (table != nullptr) break;
    }
  }
  if (table == nullptr) {
    if (statement.if_exists) {
      return Notice(Severity::kNotice, "00000",
                    fmt::format("relation \"{}\" does not exist, skipping", name.name));
    }
    return NoRelation(name);
  }
  CELLAR_TRY(CheckKind(statement.object_type, *table));
  catalog::TableDescriptor next = *table;
  const catalog::SnapshotPtr before = Catalog();
  std::vector<ViewUses> views;
  catalog::ColumnId renamed;
  const bool relation =
      index != nullptr || (statement.object_type != ast::ObjectType::kColumn &&
                           statement.object_type != ast::ObjectType::kTableConstraint);
  if (relation && statement.new_name == (index != nullptr ? index->name : table->name)) {
    return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists",
                    statement.new_name);
  }
  if (index != nullptr) {
    for (catalog::IndexDescriptor& candidate : next.indexes) {
      if (candidate.id == index->id) candidate.name = statement.new_name;
    }
  } else if (statement.object_type == ast::ObjectType::kColumn) {
    if (table->kind == catalog::RelationKind::kTable)
      CELLAR_TRY(CheckColumnName(statement.new_name));
    catalog::ColumnDescriptor* target = nullptr;
    bool taken = false;
    for (catalog::ColumnDescriptor& column : next.columns) {
      if (column.dropped || column.hidden) continue;
      taken = taken || column.name == statement.new_name;
      if (column.name == statement.sub_name) target = &column;
    }
    if (target == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                      statement.sub_name);
    }
    if (taken) {
      return SqlError(Code::kExists, sqlstate::kDuplicateColumn,
                      "column \"{}\" of relation \"{}\" already exists", statement.new_name,
                      next.name);
    }
    target->name = statement.new_name;
    renamed = target->id;
    CELLAR_TRY_ASSIGN(views, ViewsNaming(statement.sub_name));
    // Checks and generated columns say the column's name.
    auto rewrite = [&](std::string* sql) -> Status {
      if (sql->empty()) return Status();
      CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(*sql));
      sql::RenameColumn(expr.get(), statement.sub_name, statement.new_name);
      *sql = sql::DeparseExpr(*expr);
      return Status();
    };
    for (catalog::CheckConstraint& check : next.checks) CELLAR_TRY(rewrite(&check.expression));
    for (catalog::ColumnDescriptor& column : next.columns)
      CELLAR_TRY(rewrite(&column.generated_sql));
    for (catalog::IndexDescriptor& indexed : next.indexes) {
      CELLAR_TRY(rewrite(&indexed.predicate));
      for (catalog::IndexColumn& part : indexed.key) CELLAR_TRY(rewrite(&part.expression));
    }
  } else if (statement.object_type == ast::ObjectType::kTableConstraint) {
    bool found = false;
    auto is_taken = [&](const auto& constraints) {
      return std::any_of(constraints.begin(), constraints.end(),
                         [&](const auto& one) { return one.name == statement.new_name; });
    };
    if (is_taken(next.checks) || is_taken(next.foreign_keys) || is_taken(next.indexes)) {
      return SqlError(Code::kExists, sqlstate::kDuplicateObject,
                      "constraint \"{}\" for relation \"{}\" already exists", statement.new_name,
                      next.name);
    }
    for (catalog::IndexDescriptor& candidate : next.indexes) {
      if (candidate.constraint && candidate.name == statement.sub_name) {
        candidate.name = statement.new_name;
        found = true;
      }
    }
    for (catalog::CheckConstraint& check : next.checks) {
      if (check.name != statement.sub_name) continue;
      check.name = statement.new_name;
      found = true;
    }
    for (catalog::ForeignKey& key : next.foreign_keys) {
      if (key.name != statement.sub_name) continue;
      key.name = statement.new_name;
      found = true;
    }
    if (!found) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                      "constraint \"{}\" for table \"{}\" does not exist", statement.sub_name,
                      next.name);
    }
  } else {
    next.name = statement.new_name;
    CELLAR_TRY_ASSIGN(views, ViewsNaming(table->name));
  }
  CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
  if (renamed.value != 0) {
    CELLAR_TRY(FollowColumn(views, table->id, renamed, statement.sub_name, statement.new_name));
  } else {
    CELLAR_TRY(FollowRelations(views, before));
  }
  return relation && index == nullptr
             ? FollowSequence(table->id, s_.SchemaName(table->parent), table->name)
             : Status();
}

Status Ddl::MoveToSchema(const ast::AlterObjectSchemaStmt& statement) {
  if (statement.object_type == ast::ObjectType::kType) return MoveType(statement);
  if (statement.object_type == ast::ObjectType::kCollation) return MoveCollation(statement);
  Result<catalog::TablePtr> found = FindRelation(statement.relation);
  if (!found.ok()) {
    if (statement.if_exists && found.status().code() == Code::kNotFound) {
      return Notice(
          Severity::kNotice, "00000",
          fmt::format("relation \"{}\" does not exist, skipping", statement.relation.name));
    }
    return found.status();
  }
  std::optional<catalog::NamespaceId> space =
      sql::FindSchema(*Catalog(), s_.Scope(), statement.new_schema);
  if (!space) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                    statement.new_schema);
  }
  if (s_.temporary_namespace.value != 0 &&
      (*space == s_.temporary_namespace || (*found)->parent == s_.temporary_namespace) &&
      *space != (*found)->parent) {
    return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                    "cannot move objects into or out of temporary schemas");
  }
  if (catalog::TablePtr owner = Catalog()->GetTable((*found)->sequence.owner_table);
      owner != nullptr && (*found)->kind == catalog::RelationKind::kSequence) {
    return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                    "cannot move an owned sequence into another schema")
        .WithDetail(
            fmt::format("Sequence \"{}\" is linked to table \"{}\".", (*found)->name, owner->name));
  }
  CELLAR_TRY(CheckKind(statement.object_type, **found));
  const catalog::SnapshotPtr before = Catalog();
  CELLAR_TRY_ASSIGN(const std::vector<ViewUses> views, ViewsNaming((*found)->name));
  catalog::TableDescriptor next = **found;
  next.parent = *space;
  const std::string old_schema = s_.SchemaName((*found)->parent);
  CELLAR_TRY_ASSIGN(catalog::TablePtr moved, Editor().UpdateTable(std::move(next)));
  CELLAR_TRY(FollowSequence(moved->id, old_schema, moved->name));
  for (const catalog::ColumnDescriptor& column : moved->columns) {
    catalog::TablePtr sequence = Catalog()->GetTable(column.sequence);
    if (sequence == nullptr) continue;
    catalog::TableDescriptor follows = *sequence;
    follows.parent = *space;
    CELLAR_TRY(Editor().UpdateTable(std::move(follows)).status());
    CELLAR_TRY(FollowSequence(sequence->id, old_schema, sequence->name));
  }
  return FollowRelations(views, before);
}

Status Ddl::Comment(const ast::CommentStmt& statement) {
  const std::string text = statement.is_null ? "" : statement.comment;
  const std::vector<std::string>& parts = statement.object.parts;
  switch (statement.object_type) {
    case ast::ObjectType::kTable:
    case ast::ObjectType::kView:
    case ast::ObjectType::kSequence: {
      CELLAR_TRY_ASSIGN(catalog::TablePtr table, FindRelation(NameOf(statement.object)));
      const auto wrong_kind = [&](const char* kind) {
        return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not {}", table->name,
                        kind);
      };
      using catalog::RelationKind;
      if (statement.object_type == ast::ObjectType::kTable && table->kind != RelationKind::kTable)
        return wrong_kind("a table");
      if (statement.object_type == ast::ObjectType::kView && table->kind != RelationKind::kView)
        return wrong_kind("a view");
      if (statement.object_type == ast::ObjectType::kSequence &&
          table->kind != RelationKind::kSequence)
        return wrong_kind("a sequence");
      catalog::TableDescriptor next = *table;
      next.comment = text;
      return Editor().UpdateTable(std::move(next)).status();
    }
    case ast::ObjectType::kRole: return CommentOnRole(parts.back(), text);
    case ast::ObjectType::kCollation: {
      CELLAR_TRY_ASSIGN(catalog::TablePtr made, FindOwnCollation(NameOf(statement.object)));
      catalog::TableDescriptor next = *made;
      next.comment = text;
      return Editor().UpdateTable(std::move(next)).status();
    }
    case ast::ObjectType::kType: {
      CELLAR_TRY_ASSIGN(catalog::TablePtr type, FindOwnType(NameOf(statement.object)));
      catalog::TableDescriptor next = *type;
      next.comment = text;
      return Editor().UpdateTable(std::move(next)).status();
    }
    case ast::ObjectType::kColumn: {
      ast::ObjectName relation;
      relation.parts.assign(parts.begin(), parts.end() - 1);
      CELLAR_TRY_ASSIGN(catalog::TablePtr table, FindRelation(NameOf(relation)));
      catalog::TableDescriptor next = *table;
      for (catalog::ColumnDescriptor& column : next.columns) {
        if (column.dropped || column.name != parts.back()) continue;
        column.comment = text;
        return Editor().UpdateTable(std::move(next)).status();
      }
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" of relation \"{}\" does not exist", parts.back(), table->name);
    }
    case ast::ObjectType::kIndex: {
      const ast::QualifiedName name = NameOf(statement.object);
      for (const std::string& schema : s_.Scope().search_path) {
        std::optional<catalog::NamespaceId> space =
            sql::FindSchema(*Catalog(), s_.Scope(), name.schema.empty() ? schema : name.schema);
        const catalog::IndexDescriptor* index = nullptr;
        catalog::TablePtr table =
            space ? Catalog()->FindTableOfIndex(*space, name.name, &index) : nullptr;
        if (table == nullptr) continue;
        catalog::TableDescriptor next = *table;
        for (catalog::IndexDescriptor& candidate : next.indexes) {
          if (candidate.id == index->id) candidate.comment = text;
        }
        return Editor().UpdateTable(std::move(next)).status();
      }
      return NoRelation(name);
    }
    case ast::ObjectType::kSchema:
    case ast::ObjectType::kDatabase: {
      catalog::NamespacePtr space;
      if (statement.object_type == ast::ObjectType::kDatabase) {
        space = Catalog()->FindNamespace(catalog::kRootNamespace, parts.back());
      } else if (std::optional<catalog::NamespaceId> id =
                     sql::FindSchema(*Catalog(), s_.Scope(), parts.back())) {
        space = Catalog()->GetNamespace(*id);
      }
      if (space == nullptr) {
        return SqlError(Code::kNotFound,
                        statement.object_type == ast::ObjectType::kSchema
                            ? sqlstate::kInvalidSchemaName
                            : sqlstate::kInvalidCatalogName,
                        "{} \"{}\" does not exist",
                        statement.object_type == ast::ObjectType::kSchema ? "schema" : "database",
                        parts.back());
      }
      catalog::NamespaceDescriptor next = *space;
      next.comment = text;
      return Editor().UpdateNamespace(std::move(next));
    }
    case ast::ObjectType::kTableConstraint: {
      ast::ObjectName relation;
      relation.parts.assign(parts.begin(), parts.end() - 1);
      CELLAR_TRY_ASSIGN(catalog::TablePtr table, FindRelation(NameOf(relation)));
      catalog::TableDescriptor next = *table;
      std::string* comment = nullptr;
      for (catalog::IndexDescriptor& index : next.indexes) {
        if (index.constraint && index.name == parts.back()) comment = &index.constraint_comment;
      }
      for (catalog::CheckConstraint& check : next.checks) {
        if (check.name == parts.back()) comment = &check.comment;
      }
      for (catalog::ForeignKey& key : next.foreign_keys) {
        if (key.name == parts.back()) comment = &key.comment;
      }
      if (comment == nullptr) {
        return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                        "constraint \"{}\" for table \"{}\" does not exist", parts.back(),
                        table->name);
      }
      *comment = text;
      return Editor().UpdateTable(std::move(next)).status();
    }
    case ast::ObjectType::kExtension: return Status();  // nothing shows it
    default:
      return UnsupportedError("COMMENT ON {} is not supported",
                              ast::ObjectTypeName(statement.object_type));
  }
}

Status Ddl::Truncate(const ast::TruncateStmt& statement) {
  std::vector<catalog::TablePtr> tables;
  for (const ast::TruncateStmt::Target& target : statement.tables) {
    CELLAR_TRY_ASSIGN(catalog::TablePtr table, FindTable(target.table));
    tables.push_back(table);
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    for (const catalog::TablePtr& other : Catalog()->ListReferencing(tables[i]->id)) {
      if (std::any_of(tables.begin(), tables.end(),
                      [&](const auto& t) { return t->id == other->id; }))
        continue;
      if (statement.cascade) {
        CELLAR_TRY(Notice(Severity::kNotice, "00000",
                          fmt::format("truncate cascades to table \"{}\"", other->name)));
        tables.push_back(other);
        continue;
      }
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "cannot truncate a table referenced in a foreign key constraint")
          .WithDetail(fmt::format("Table \"{}\" references \"{}\".", other->name, tables[i]->name))
          .WithHint(fmt::format(
              "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", other->name));
    }
  }
  for (const catalog::TablePtr& table : tables) CELLAR_TRY(CheckUnused(*table, "TRUNCATE"));
  for (const catalog::TablePtr& table : tables) {
    CELLAR_TRY(RefusePending(*table, "TRUNCATE"));
    CELLAR_TRY(TruncateOne(table, statement.restart_identity));
  }
  return Status();
}

// ---- Dispatch
// ---------------------------------------------------------------------------------------------

Status Ddl::Run(const Prepared& prepared, std::string* tag) {
  const ast::Node& node = *prepared.statement->ast;
  *tag = prepared.statement->tag;
  CELLAR_TRY(Authorize(node));
  switch (node.kind) {
    case ast::NodeKind::kDrop:
    case ast::NodeKind::kDropDatabase:
    case ast::NodeKind::kTruncate: s_.NoteMakesRoom(); break;
    default: break;
  }
  switch (node.kind) {
    case ast::NodeKind::kCreateTable: return CreateTable(node.As<ast::CreateTableStmt>());
    case ast::NodeKind::kCreateTableAs:
      return CreateTableAs(node.As<ast::CreateTableAsStmt>(), prepared, tag);
    case ast::NodeKind::kAlterTable: return AlterTable(node.As<ast::AlterTableStmt>());
    case ast::NodeKind::kRename: return Rename(node.As<ast::RenameStmt>());
    case ast::NodeKind::kAlterObjectSchema:
      return MoveToSchema(node.As<ast::AlterObjectSchemaStmt>());
    case ast::NodeKind::kAlterOwner: return AlterOwner(node.As<ast::AlterOwnerStmt>());
    case ast::NodeKind::kDrop: return DropObjects(node.As<ast::DropStmt>());
    case ast::NodeKind::kCreateIndex: return CreateIndex(node.As<ast::CreateIndexStmt>());
    case ast::NodeKind::kReindex: return Reindex(node.As<ast::ReindexStmt>());
    case ast::NodeKind::kCreateSchema: return CreateSchema(node.As<ast::CreateSchemaStmt>());
    case ast::NodeKind::kCreateDatabase: return CreateDatabase(node.As<ast::CreateDatabaseStmt>());
    case ast::NodeKind::kDropDatabase: return DropDatabase(node.As<ast::DropDatabaseStmt>());
    case ast::NodeKind::kCreateEnum: return CreateEnum(node.As<ast::CreateEnumStmt>());
    case ast::NodeKind::kCreateCollation:
      return CreateCollation(node.As<ast::CreateCollationStmt>());
    case ast::NodeKind::kAlterCollation:
      return RefreshCollation(node.As<ast::AlterCollationStmt>());
    case ast::NodeKind::kAlterEnum: return AlterEnum(node.As<ast::AlterEnumStmt>());
    case ast::NodeKind::kCreateView: return CreateView(node.As<ast::CreateViewStmt>());
    case ast::NodeKind::kCreateSequence: return CreateSequence(node.As<ast::CreateSequenceStmt>());
    case ast::NodeKind::kAlterSequence: return AlterSequence(node.As<ast::AlterSequenceStmt>());
    case ast::NodeKind::kComment: return Comment(node.As<ast::CommentStmt>());
    case ast::NodeKind::kTruncate: return Truncate(node.As<ast::TruncateStmt>());
    case ast::NodeKind::kCreateRole: return CreateRole(node.As<ast::CreateRoleStmt>());
    case ast::NodeKind::kAlterRole: return AlterRole(node.As<ast::AlterRoleStmt>());
    case ast::NodeKind::kDropRole: return DropRole(node.As<ast::DropRoleStmt>());
    case ast::NodeKind::kGrant: return Grant(node.As<ast::GrantStmt>());
    case ast::NodeKind::kOwned: return Owned(node.As<ast::OwnedStmt>());
    case ast::NodeKind::kAlterDatabase: return AlterDatabase(node.As<ast::AlterDatabaseStmt>());
    default: return UnsupportedError("{} is not supported", prepared.statement->tag);
  }
}

Status Session::Impl::RunDdl(const Prepared& prepared, ResultSink* sink, std::string* tag) {
  CELLAR_TRY(EnsureTransaction(false));
  CELLAR_TRY(CheckWritable(prepared.statement->tag));
  return Ddl(this, sink).Run(prepared, tag);
}

// ---- Temporary schemas
// --------------------------------------------------------------------------------------

namespace {

Status DropSchemaAndTables(catalog::CatalogEditor* editor, table::Access* access,
                           catalog::NamespaceId space) {
  for (const catalog::TablePtr& table : editor->snapshot()->ListTables(space)) {
    CELLAR_TRY(RemoveWithData(editor, access, *table));
    if (table->kind == catalog::RelationKind::kSequence) {
      CELLAR_TRY(access->transaction()->Delete(SequenceRecordKey(table->storage_id())));
    }
  }
  for (const catalog::TablePtr& type : editor->snapshot()->ListTypes(space)) {
    CELLAR_TRY(editor->RemoveTable(type->id));
  }
  CELLAR_TRY(editor->DropNamespace(space));
  return editor->RemoveNamespace(space);
}

Status DropInOwnTransaction(Database::Impl* db, catalog::NamespaceId space) {
  std::unique_ptr<kv::Transaction> transaction = db->engine->Begin();
  CancelToken cancel;
  table::Access access(transaction.get(), &cancel);
  catalog::CatalogEditor editor(db->catalog.get(), transaction.get());
  CELLAR_TRY(DropSchemaAndTables(&editor, &access, space));
  return db->catalog->Commit(editor, {.makes_room = true}).status();
}

}  // namespace

Result<catalog::NamespaceId> Session::Impl::TemporaryNamespace() {
  if (temporary_namespace.value != 0 &&
      CurrentCatalog()->GetNamespace(temporary_namespace) != nullptr) {
    return temporary_namespace;
  }
  CELLAR_TRY_ASSIGN(catalog::NamespacePtr space,
                    Editor().CreateNamespace(database_id, fmt::format("pg_temp_{}", pid), user));
  temporary_namespace = space->id;
  return temporary_namespace;
}

void Session::Impl::DropTemporarySchema() {
  if (temporary_namespace.value == 0 ||
      db->catalog->Current()->GetNamespace(temporary_namespace) == nullptr)
    return;
  constexpr int kAttempts = 10;
  for (int i = 0; i < kAttempts; ++i) {
    if (DropInOwnTransaction(db, temporary_namespace).code() != Code::kConflict) return;
  }
}

Status DropLeftoverTemporarySchemas(Database::Impl* db) {
  for (const catalog::NamespacePtr& database :
       db->catalog->Current()->ListNamespaces(catalog::kRootNamespace)) {
    for (const catalog::NamespacePtr& schema :
         db->catalog->Current()->ListNamespaces(database->id)) {
      if (schema->name.substr(0, 8) == "pg_temp_") CELLAR_TRY(DropInOwnTransaction(db, schema->id));
    }
  }
  return Status();
}

}  // namespace cellar::session
