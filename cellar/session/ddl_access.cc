// Who may run statements that change the schema, and changes of owners.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"

namespace cellar::session {
namespace {

template <typename... Args>
Status Denied(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kInvalid, sqlstate::kInsufficientPrivilege, format,
                  std::forward<Args>(args)...);
}

}  // namespace

Status Ddl::AuthorizeTarget(const ast::QualifiedName& name, bool temporary) {
  catalog::NamespacePtr database = Catalog()->GetNamespace(s_.database_id);
  if (temporary || name.schema == "pg_temp") {
    if ((s_.DatabaseRights(*database, s_.user_oid).privileges & kTemporary) != 0) return Status();
    return Denied("permission denied to create temporary tables in database \"{}\"",
                  database->name);
  }
  std::optional<catalog::NamespaceId> space;
  if (!name.schema.empty()) {
    space = sql::FindSchema(*Catalog(), s_.Scope(), name.schema);
  } else {
    for (const std::string& schema : s_.Scope().search_path) {
      space = sql::FindSchema(*Catalog(), s_.Scope(), schema);
      if (space) break;
    }
  }
  return space ? s_.CheckSchema(*space, kCreate) : Status();
}

Status Ddl::AuthorizeRelation(const ast::QualifiedName& name) {
  CELLAR_TRY(sql::CheckSchemaUse(*Catalog(), s_.Scope(), name.schema));
  catalog::TablePtr table = sql::FindRelation(*Catalog(), s_.Scope(), name.schema, name.name);
  if (table != nullptr) return s_.CheckOwner(*table);
  for (const std::string& schema :
       name.schema.empty() ? s_.Scope().search_path : std::vector<std::string>{name.schema}) {
    std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), s_.Scope(), schema);
    const catalog::IndexDescriptor* index = nullptr;
    if (space) table = Catalog()->FindTableOfIndex(*space, name.name, &index);
    if (table == nullptr) continue;
    return s_.Owns(*table) ? Status() : Denied("must be owner of index {}", index->name);
  }
  return Status();  // it is not there: what runs the statement says so
}

Status Ddl::AuthorizeReference(const ast::Constraint& constraint) {
  if (constraint.kind != ast::ConstraintKind::kForeignKey) return Status();
  const ast::QualifiedName& name = constraint.ref_table;
  CELLAR_TRY(sql::CheckSchemaUse(*Catalog(), s_.Scope(), name.schema));
  catalog::TablePtr table = sql::FindRelation(*Catalog(), s_.Scope(), name.schema, name.name);
  if (table == nullptr) return Status();
  if ((s_.TableRights(*table, s_.user_oid).privileges & kReferences) != 0) return Status();
  std::vector<const catalog::ColumnDescriptor*> columns;
  for (const std::string& column : constraint.ref_columns) {
    columns.push_back(table->FindColumn(column));
  }
  if (columns.empty() && !table->indexes.empty()) {
    for (const catalog::IndexColumn& column : table->primary().key) {
      columns.push_back(table->FindColumn(column.column));
    }
  }
  const bool allowed = std::all_of(columns.begin(), columns.end(), [&](const auto* column) {
    return column != nullptr &&
           (s_.ColumnRights(*table, *column, s_.user_oid).privileges & kReferences) != 0;
  });
  return allowed && !columns.empty() ? Status() : s_.CheckTable(*table, kReferences);
}

Status Ddl::AuthorizeOwner(const std::string& owner, std::optional<catalog::NamespaceId> schema) {
  const Role* role = s_.Roles().Find(owner);
  if (role == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "role \"{}\" does not exist",
                    owner);
  }
  if (!s_.Roles().IsMemberOf(s_.user_oid, role->oid, s_.DatabaseOwner())) {
    return Denied("must be member of role \"{}\"", owner);
  }
  if (schema && !s_.IsSuperuser() &&
      (s_.SchemaRights(*schema, role->oid).privileges & kCreate) == 0) {
    return Denied("permission denied for schema {}", s_.SchemaName(*schema));
  }
  return Status();
}

Status Ddl::AuthorizeTruncate(const ast::TruncateStmt& statement) {
  std::vector<catalog::TablePtr> tables;
  for (const ast::TruncateStmt::Target& target : statement.tables) {
    CELLAR_TRY(sql::CheckSchemaUse(*Catalog(), s_.Scope(), target.table.schema));
    catalog::TablePtr table =
        sql::FindRelation(*Catalog(), s_.Scope(), target.table.schema, target.table.name);
    if (table != nullptr) tables.push_back(std::move(table));
  }
  for (size_t i = 0; i < tables.size(); ++i) {
    CELLAR_TRY(s_.CheckTable(*tables[i], kTruncate));
    if (!statement.cascade) continue;
    for (const catalog::TablePtr& other : Catalog()->ListReferencing(tables[i]->id)) {
      if (std::none_of(tables.begin(), tables.end(),
                       [&](const auto& known) { return known->id == other->id; })) {
        tables.push_back(other);
      }
    }
  }
  return Status();
}

Status Ddl::AuthorizeDrop(const ast::DropStmt& statement) {
  for (const ast::ObjectName& object : statement.objects) {
    if (object.parts.empty()) continue;
    if (statement.object_type == ast::ObjectType::kSchema) {
      std::optional<catalog::NamespaceId> space =
          sql::FindSchema(*Catalog(), s_.Scope(), object.parts.back());
      if (space && *space != s_.database_id)
        CELLAR_TRY(s_.CheckOwner(*Catalog()->GetNamespace(*space)));
      continue;
    }
    // DropTypes and DropCollations look by themselves.
    if (statement.object_type == ast::ObjectType::kType ||
        statement.object_type == ast::ObjectType::kCollation ||
        statement.object_type == ast::ObjectType::kDomain) {
      continue;
    }
    const ast::QualifiedName name = NameOf(object);
    catalog::TablePtr table = sql::FindRelation(*Catalog(), s_.Scope(), name.schema, name.name);
    // The owner of a schema may drop what others put into it.
    if (table != nullptr && statement.object_type != ast::ObjectType::kIndex) {
      catalog::NamespacePtr space = Catalog()->GetNamespace(table->parent);
      if (space != nullptr && s_.HasPrivilegesOf(s_.OwnerOf(*space, false))) continue;
    }
    CELLAR_TRY(AuthorizeRelation(name));
  }
  return Status();
}

Status Ddl::AuthorizeRename(const ast::RenameStmt& statement) {
  switch (statement.object_type) {
    case ast::ObjectType::kType:
    case ast::ObjectType::kCollation:
    case ast::ObjectType::kRole: return Status();  // they look by themselves
    case ast::ObjectType::kSchema: {
      std::optional<catalog::NamespaceId> space =
          sql::FindSchema(*Catalog(), s_.Scope(), statement.sub_name);
      if (!space) return Status();
      CELLAR_TRY(s_.CheckOwner(*Catalog()->GetNamespace(*space)));
      return AuthorizeSchemaCreation();
    }
    case ast::ObjectType::kDatabase: {
      catalog::NamespacePtr database =
          Catalog()->FindNamespace(catalog::kRootNamespace, statement.sub_name);
      if (database == nullptr) return Status();
      CELLAR_TRY(s_.CheckOwner(*database));
      const Role* role = s_.Roles().FindByOid(s_.user_oid);
      if (s_.IsSuperuser() || (role != nullptr && role->create_db)) return Status();
      return Denied("permission denied to rename database");
    }
    default: break;
  }
  CELLAR_TRY(AuthorizeRelation(statement.relation));
  if (statement.object_type == ast::ObjectType::kColumn ||
      statement.object_type == ast::ObjectType::kTableConstraint) {
    return Status();
  }
  catalog::TablePtr table =
      sql::FindRelation(*Catalog(), s_.Scope(), statement.relation.schema, statement.relation.name);
  return table == nullptr ? Status() : s_.CheckSchema(table->parent, kCreate);
}

Status Ddl::AuthorizeSchemaCreation() {
  catalog::NamespacePtr database = Catalog()->GetNamespace(s_.database_id);
  if ((s_.DatabaseRights(*database, s_.user_oid).privileges & kDatabaseCreate) != 0)
    return Status();
  return Denied("permission denied for database {}", database->name);
}

Status Ddl::Authorize(const ast::Node& node) {
  switch (node.kind) {
    case ast::NodeKind::kCreateTable: {
      const auto& create = node.As<ast::CreateTableStmt>();
      CELLAR_TRY(AuthorizeTarget(create.table, create.persistence == ast::Persistence::kTemporary));
      for (const ast::ColumnDef& column : create.columns) {
        for (const ast::Constraint& one : column.constraints) CELLAR_TRY(AuthorizeReference(one));
      }
      for (const ast::Constraint& one : create.constraints) CELLAR_TRY(AuthorizeReference(one));
      for (const ast::TableLike& like : create.likes) {
        CELLAR_TRY(sql::CheckSchemaUse(*Catalog(), s_.Scope(), like.table.schema));
        catalog::TablePtr source =
            sql::FindRelation(*Catalog(), s_.Scope(), like.table.schema, like.table.name);
        if (source != nullptr) CELLAR_TRY(s_.CheckTable(*source, kSelect));
      }
      return Status();
    }
    case ast::NodeKind::kCreateTableAs: {
      const auto& create = node.As<ast::CreateTableAsStmt>();
      return AuthorizeTarget(create.into.table,
                             create.into.persistence == ast::Persistence::kTemporary);
    }
    case ast::NodeKind::kCreateView: {
      const auto& create = node.As<ast::CreateViewStmt>();
      CELLAR_TRY(AuthorizeTarget(create.view, create.persistence == ast::Persistence::kTemporary));
      return create.or_replace ? AuthorizeRelation(create.view) : Status();
    }
    case ast::NodeKind::kCreateSequence: {
      const auto& create = node.As<ast::CreateSequenceStmt>();
      return AuthorizeTarget(create.sequence, create.persistence == ast::Persistence::kTemporary);
    }
    case ast::NodeKind::kAlterSequence:
      return AuthorizeRelation(node.As<ast::AlterSequenceStmt>().sequence);
    case ast::NodeKind::kCreateIndex: {
      const ast::QualifiedName& name = node.As<ast::CreateIndexStmt>().table;
      CELLAR_TRY(AuthorizeRelation(name));
      catalog::TablePtr table = sql::FindRelation(*Catalog(), s_.Scope(), name.schema, name.name);
      return table == nullptr ? Status() : s_.CheckSchema(table->parent, kCreate);
    }
    case ast::NodeKind::kAlterTable: {
      const auto& alter = node.As<ast::AlterTableStmt>();
      CELLAR_TRY(AuthorizeRelation(alter.table));
      for (const ast::AlterTableCommand& command : alter.commands) {
        if (command.constraint != nullptr) CELLAR_TRY(AuthorizeReference(*command.constraint));
        if (command.column == nullptr) continue;
        for (const ast::Constraint& one : command.column->constraints) {
          CELLAR_TRY(AuthorizeReference(one));
        }
      }
      return Status();
    }
    case ast::NodeKind::kRename: return AuthorizeRename(node.As<ast::RenameStmt>());
    case ast::NodeKind::kAlterObjectSchema: {
      const auto& move = node.As<ast::AlterObjectSchemaStmt>();
      if (move.object_type == ast::ObjectType::kType ||
          move.object_type == ast::ObjectType::kCollation) {
        return Status();
      }
      CELLAR_TRY(AuthorizeRelation(move.relation));
      std::optional<catalog::NamespaceId> space =
          sql::FindSchema(*Catalog(), s_.Scope(), move.new_schema);
      return space ? s_.CheckSchema(*space, kCreate) : Status();
    }
    case ast::NodeKind::kDrop: return AuthorizeDrop(node.As<ast::DropStmt>());
    case ast::NodeKind::kCreateSchema: {
      const auto& create = node.As<ast::CreateSchemaStmt>();
      CELLAR_TRY(AuthorizeSchemaCreation());
      return create.has_owner ? AuthorizeOwner(RoleName(create.owner), std::nullopt) : Status();
    }
    case ast::NodeKind::kCreateDatabase: {
      const Role* role = s_.Roles().FindByOid(s_.user_oid);
      if (!s_.IsSuperuser() && (role == nullptr || !role->create_db)) {
        return Denied("permission denied to create database");
      }
      const ast::Option* owner =
          ast::FindOption(node.As<ast::CreateDatabaseStmt>().options, "owner");
      return owner == nullptr ? Status() : AuthorizeOwner(owner->ToText(), std::nullopt);
    }
    case ast::NodeKind::kDropDatabase: {
      catalog::NamespacePtr database =
          Catalog()->FindNamespace(catalog::kRootNamespace, node.As<ast::DropDatabaseStmt>().name);
      return database == nullptr ? Status() : s_.CheckOwner(*database);
    }
    case ast::NodeKind::kTruncate: return AuthorizeTruncate(node.As<ast::TruncateStmt>());
    case ast::NodeKind::kComment: {
      const auto& comment = node.As<ast::CommentStmt>();
      ast::ObjectName object = comment.object;
      switch (comment.object_type) {
        case ast::ObjectType::kColumn:
        case ast::ObjectType::kTableConstraint:
          if (object.parts.size() > 1) object.parts.pop_back();
          return AuthorizeRelation(NameOf(object));
        case ast::ObjectType::kTable:
        case ast::ObjectType::kView:
        case ast::ObjectType::kSequence:
        case ast::ObjectType::kIndex: return AuthorizeRelation(NameOf(object));
        case ast::ObjectType::kDatabase: {
          catalog::NamespacePtr database =
              Catalog()->FindNamespace(catalog::kRootNamespace, object.parts.back());
          return database == nullptr ? Status() : s_.CheckOwner(*database);
        }
        case ast::ObjectType::kSchema: {
          std::optional<catalog::NamespaceId> space =
              sql::FindSchema(*Catalog(), s_.Scope(), object.parts.back());
          return space ? s_.CheckOwner(*Catalog()->GetNamespace(*space)) : Status();
        }
        default: return Status();
      }
    }
    default: return Status();  // it checks by itself
  }
}

// ---- Owners

Status Ddl::SetOwner(const catalog::TablePtr& table, const std::string& owner) {
  catalog::TableDescriptor next = *table;
  const uint32_t from = s_.OwnerOf(next), to = s_.Roles().OidOf(owner);
  next.owner = owner;
  if (next.acl.set) ReplaceRole(from, to, &next.acl.items);
  for (catalog::ColumnDescriptor& column : next.columns) {
    if (column.acl.set) ReplaceRole(from, to, &column.acl.items);
  }
  const std::vector<catalog::ColumnDescriptor> columns = next.columns;
  CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
  for (const catalog::ColumnDescriptor& column : columns) {
    catalog::TablePtr sequence = Catalog()->GetTable(column.sequence);
    if (sequence != nullptr && !column.dropped) CELLAR_TRY(SetOwner(sequence, owner));
  }
  return Status();
}

Status Ddl::SetOwner(const catalog::NamespacePtr& space, const std::string& owner) {
  catalog::NamespaceDescriptor next = *space;
  const bool database = space->parent == catalog::kRootNamespace;
  const uint32_t from = s_.OwnerOf(next, database), to = s_.Roles().OidOf(owner);
  next.owner = owner;
  if (next.acl.set) ReplaceRole(from, to, &next.acl.items);
  return Editor().UpdateNamespace(std::move(next));
}

Status Ddl::ChangeOwner(const ast::RoleSpec& role, const catalog::TablePtr& table) {
  const std::string owner = RoleName(role);
  if (table->kind == catalog::RelationKind::kSequence && table->sequence.owner_table.value != 0) {
    catalog::TablePtr holder = Catalog()->GetTable(table->sequence.owner_table);
    if (holder != nullptr && holder->owner != owner) {
      return UnsupportedError("cannot change owner of sequence \"{}\"", table->name)
          .WithDetail(
              fmt::format("Sequence \"{}\" is linked to table \"{}\".", table->name, holder->name));
    }
  }
  if (owner == table->owner) return AuthorizeOwner(owner, std::nullopt);
  CELLAR_TRY(AuthorizeOwner(owner, table->parent));
  return SetOwner(table, owner);
}

Status Ddl::AlterOwner(const ast::AlterOwnerStmt& statement) {
  const std::string owner = RoleName(statement.new_owner);
  catalog::NamespacePtr space;
  if (statement.object_type == ast::ObjectType::kType) {
    CELLAR_TRY_ASSIGN(const catalog::TablePtr type, FindOwnType(NameOf(statement.object)));
    return ChangeOwner(statement.new_owner, type);
  }
  if (statement.object_type == ast::ObjectType::kCollation) {
    CELLAR_TRY_ASSIGN(const catalog::TablePtr made, FindOwnCollation(NameOf(statement.object)));
    return ChangeOwner(statement.new_owner, made);
  }
  if (statement.object_type == ast::ObjectType::kSchema) {
    std::optional<catalog::NamespaceId> id =
        sql::FindSchema(*Catalog(), s_.Scope(), statement.object.parts.back());
    if (!id) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                      statement.object.parts.back());
    }
    if (*id == s_.database_id)
      return UnsupportedError("the owner of schema \"public\" is the database's");
    space = Catalog()->GetNamespace(*id);
  } else if (statement.object_type == ast::ObjectType::kDatabase) {
    space = Catalog()->FindNamespace(catalog::kRootNamespace, statement.object.parts.back());
    if (space == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                      "database \"{}\" does not exist", statement.object.parts.back());
    }
  } else {
    return UnsupportedError("ALTER {} ... OWNER TO is not supported",
                            ast::ObjectTypeName(statement.object_type));
  }
  CELLAR_TRY(AuthorizeOwner(owner, std::nullopt));
  if (owner == space->owner) return Status();
  CELLAR_TRY(s_.CheckOwner(*space));
  if (statement.object_type == ast::ObjectType::kSchema) {
    CELLAR_TRY(AuthorizeSchemaCreation());
  } else {
    const Role* role = s_.Roles().FindByOid(s_.user_oid);
    if (!s_.IsSuperuser() && (role == nullptr || !role->create_db)) {
      return Denied("permission denied to change owner of database");
    }
  }
  return SetOwner(space, owner);
}

}  // namespace cellar::session
