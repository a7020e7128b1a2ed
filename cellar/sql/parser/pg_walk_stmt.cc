// Statements other than queries and table definitions, and the command tag of each.
#include <climits>

#include "cellar/sql/parser/pg_walker.h"

namespace cellar::sql::ast {

ObjectType ObjectTypeOf(::ObjectType type) {
  switch (type) {
    case OBJECT_TABLE: return ObjectType::kTable;
    case OBJECT_VIEW: return ObjectType::kView;
    case OBJECT_MATVIEW: return ObjectType::kMatView;
    case OBJECT_INDEX: return ObjectType::kIndex;
    case OBJECT_SEQUENCE: return ObjectType::kSequence;
    case OBJECT_SCHEMA: return ObjectType::kSchema;
    case OBJECT_DATABASE: return ObjectType::kDatabase;
    case OBJECT_TYPE: return ObjectType::kType;
    case OBJECT_DOMAIN: return ObjectType::kDomain;
    case OBJECT_FUNCTION: return ObjectType::kFunction;
    case OBJECT_PROCEDURE: return ObjectType::kProcedure;
    case OBJECT_ROUTINE: return ObjectType::kRoutine;
    case OBJECT_AGGREGATE: return ObjectType::kAggregate;
    case OBJECT_EXTENSION: return ObjectType::kExtension;
    case OBJECT_TRIGGER: return ObjectType::kTrigger;
    case OBJECT_RULE: return ObjectType::kRule;
    case OBJECT_POLICY: return ObjectType::kPolicy;
    case OBJECT_COLUMN: return ObjectType::kColumn;
    case OBJECT_ATTRIBUTE: return ObjectType::kAttribute;
    case OBJECT_TABCONSTRAINT: return ObjectType::kTableConstraint;
    case OBJECT_DOMCONSTRAINT: return ObjectType::kDomainConstraint;
    case OBJECT_ROLE: return ObjectType::kRole;
    case OBJECT_COLLATION: return ObjectType::kCollation;
    case OBJECT_CONVERSION: return ObjectType::kConversion;
    case OBJECT_CAST: return ObjectType::kCast;
    case OBJECT_OPERATOR: return ObjectType::kOperator;
    case OBJECT_OPCLASS: return ObjectType::kOperatorClass;
    case OBJECT_OPFAMILY: return ObjectType::kOperatorFamily;
    case OBJECT_LANGUAGE: return ObjectType::kLanguage;
    case OBJECT_LARGEOBJECT: return ObjectType::kLargeObject;
    case OBJECT_EVENT_TRIGGER: return ObjectType::kEventTrigger;
    case OBJECT_FOREIGN_TABLE: return ObjectType::kForeignTable;
    case OBJECT_FOREIGN_SERVER: return ObjectType::kForeignServer;
    case OBJECT_FDW: return ObjectType::kForeignDataWrapper;
    case OBJECT_ACCESS_METHOD: return ObjectType::kAccessMethod;
    case OBJECT_PUBLICATION: return ObjectType::kPublication;
    case OBJECT_SUBSCRIPTION: return ObjectType::kSubscription;
    case OBJECT_STATISTIC_EXT: return ObjectType::kStatistics;
    case OBJECT_TABLESPACE: return ObjectType::kTablespace;
    case OBJECT_TSCONFIGURATION:
    case OBJECT_TSDICTIONARY:
    case OBJECT_TSPARSER:
    case OBJECT_TSTEMPLATE: return ObjectType::kTextSearch;
    default: return ObjectType::kOther;
  }
}

RoleSpec PgWalker::RoleOf(const ::RoleSpec* node) {
  RoleSpec out;
  if (node == nullptr) return out;
  out.location = At(node->location);
  switch (node->roletype) {
    case ROLESPEC_CSTRING:
      out.kind = RoleKind::kNamed;
      out.name = Str(node->rolename);
      break;
    case ROLESPEC_CURRENT_ROLE: out.kind = RoleKind::kCurrentRole, out.name = "current_role"; break;
    case ROLESPEC_CURRENT_USER: out.kind = RoleKind::kCurrentUser, out.name = "current_user"; break;
    case ROLESPEC_SESSION_USER: out.kind = RoleKind::kSessionUser, out.name = "session_user"; break;
    case ROLESPEC_PUBLIC: out.kind = RoleKind::kPublic, out.name = "public"; break;
  }
  return out;
}

std::vector<RoleSpec> PgWalker::Roles(const ::List* list) {
  std::vector<RoleSpec> out;
  for (const ::RoleSpec* role : Items<::RoleSpec>(list)) out.push_back(RoleOf(role));
  return out;
}

ObjectName PgWalker::Object(const ::Node* node) {
  ObjectName out;
  if (node == nullptr) return out;
  auto add_type = [&](const ::TypeName* type) {
    for (std::string& part : Strings(type->names)) out.parts.push_back(std::move(part));
  };
  switch (node->type) {
    case T_String: out.parts.push_back(Str(As<::String>(node)->sval)); break;
    case T_Integer: out.parts.push_back(std::to_string(As<::Integer>(node)->ival)); break;
    case T_Float: out.parts.push_back(Str(As<::Float>(node)->fval)); break;
    case T_TypeName: add_type(As<::TypeName>(node)); break;
    case T_RoleSpec: out.parts.push_back(RoleOf(As<::RoleSpec>(node)).name); break;
    case T_RangeVar: {
      const auto* var = As<::RangeVar>(node);
      if (var->catalogname != nullptr) out.parts.push_back(var->catalogname);
      if (var->schemaname != nullptr) out.parts.push_back(var->schemaname);
      out.parts.push_back(Str(var->relname));
      break;
    }
    case T_ObjectWithArgs: {
      const auto* object = As<::ObjectWithArgs>(node);
      out.parts = Strings(object->objname);
      out.has_args = !object->args_unspecified;
      for (const ::TypeName* arg : Items<::TypeName>(object->objargs)) {
        out.args.push_back(Type(arg));  // null: the absent side of an operator
      }
      break;
    }
    case T_List:
      for (const ::Node* part : Items<::Node>(As<::List>(node))) {
        if (Is(part, T_String)) {
          out.parts.push_back(Str(As<::String>(part)->sval));
        } else if (Is(part, T_TypeName)) {
          add_type(As<::TypeName>(part));
        } else {
          Unexpected(part);
        }
      }
      break;
    default: Unexpected(node);
  }
  return out;
}

TransactionModes PgWalker::Modes(const ::List* list) {
  TransactionModes out;
  for (const ::Node* node : Items<::Node>(list)) {
    if (!Is(node, T_DefElem)) continue;
    const Option option = OptionOf(As<::DefElem>(node));
    if (option.name == "transaction_isolation") {
      if (option.text == "serializable") out.isolation = Isolation::kSerializable;
      if (option.text == "repeatable read") out.isolation = Isolation::kRepeatableRead;
      if (option.text == "read committed") out.isolation = Isolation::kReadCommitted;
      if (option.text == "read uncommitted") out.isolation = Isolation::kReadUncommitted;
    } else if (option.name == "transaction_read_only") {
      out.read_only = option.integer != 0 ? Tristate::kTrue : Tristate::kFalse;
    } else if (option.name == "transaction_deferrable") {
      out.deferrable = option.integer != 0 ? Tristate::kTrue : Tristate::kFalse;
    }
  }
  return out;
}

StmtPtr PgWalker::Transaction(const ::TransactionStmt* node, std::string_view* tag) {
  auto out = std::make_unique<TransactionStmt>();
  out->modes = Modes(node->options);
  out->name = Str(node->savepoint_name);
  if (node->gid != nullptr) out->name = node->gid;
  out->chain = node->chain;
  auto set = [&](TransactionKind kind, std::string_view name) {
    out->transaction_kind = kind;
    *tag = name;
  };
  switch (node->kind) {
    case TRANS_STMT_BEGIN: set(TransactionKind::kBegin, "BEGIN"); break;
    case TRANS_STMT_START: set(TransactionKind::kStart, "START TRANSACTION"); break;
    case TRANS_STMT_COMMIT: set(TransactionKind::kCommit, "COMMIT"); break;
    case TRANS_STMT_ROLLBACK: set(TransactionKind::kRollback, "ROLLBACK"); break;
    case TRANS_STMT_SAVEPOINT: set(TransactionKind::kSavepoint, "SAVEPOINT"); break;
    case TRANS_STMT_RELEASE: set(TransactionKind::kRelease, "RELEASE"); break;
    case TRANS_STMT_ROLLBACK_TO: set(TransactionKind::kRollbackTo, "ROLLBACK"); break;
    case TRANS_STMT_PREPARE: set(TransactionKind::kPrepare, "PREPARE TRANSACTION"); break;
    case TRANS_STMT_COMMIT_PREPARED:
      set(TransactionKind::kCommitPrepared, "COMMIT PREPARED");
      break;
    case TRANS_STMT_ROLLBACK_PREPARED:
      set(TransactionKind::kRollbackPrepared, "ROLLBACK PREPARED");
      break;
  }
  return out;
}

std::unique_ptr<VariableSetStmt> PgWalker::VariableSet(const ::VariableSetStmt* node) {
  if (node == nullptr) return nullptr;
  auto out = std::make_unique<VariableSetStmt>();
  out->name = Str(node->name);
  out->local = node->is_local;
  switch (node->kind) {
    case VAR_SET_VALUE:
      out->set_kind = SetKind::kValue;
      out->values = Expressions(node->args);
      break;
    case VAR_SET_DEFAULT: out->set_kind = SetKind::kDefault; break;
    case VAR_SET_CURRENT: out->set_kind = SetKind::kFromCurrent; break;
    case VAR_SET_MULTI:
      if (out->name == "TRANSACTION SNAPSHOT") {
        out->set_kind = SetKind::kTransactionSnapshot;
        out->values = Expressions(node->args);
      } else {
        out->set_kind = out->name == "SESSION CHARACTERISTICS" ? SetKind::kSessionTransaction
                                                               : SetKind::kTransaction;
        out->modes = Modes(node->args);
      }
      break;
    case VAR_RESET: out->set_kind = SetKind::kReset; break;
    case VAR_RESET_ALL: out->set_kind = SetKind::kResetAll; break;
  }
  for (const ExprPtr& value : out->values) {
    if (value != nullptr && value->Is<ParamRef>()) {
      Fail(SqlError(Code::kInvalid, sqlstate::kSyntaxError, "syntax error at or near \"${}\"",
                    value->As<ParamRef>().number)
               .WithLocation(value->location));
    }
  }
  return out;
}

StmtPtr PgWalker::Grant(const ::GrantStmt* node) {
  auto out = std::make_unique<GrantStmt>();
  out->grant = node->is_grant;
  out->default_privileges = node->targtype == ACL_TARGET_DEFAULTS;
  out->all_in_schema = node->targtype == ACL_TARGET_ALL_IN_SCHEMA;
  out->object_type = ObjectTypeOf(node->objtype);
  for (const ::AccessPriv* priv : Items<::AccessPriv>(node->privileges)) {
    out->privileges.push_back({Str(priv->priv_name), Strings(priv->cols)});
  }
  for (const ::Node* object : Items<::Node>(node->objects)) {
    out->objects.push_back(Object(object));
  }
  out->grantees = Roles(node->grantees);
  if (node->grantor != nullptr) out->grantor = RoleOf(node->grantor);
  out->grant_option = node->grant_option;
  out->cascade = node->behavior == DROP_CASCADE;
  return out;
}

StmtPtr PgWalker::DefaultPrivileges(const ::AlterDefaultPrivilegesStmt* node) {
  StmtPtr out = Grant(node->action);
  auto& grant = static_cast<GrantStmt&>(*out);
  for (const ::DefElem* option : Items<::DefElem>(node->options)) {
    const auto* list = As<::List>(option->arg);
    if (Str(option->defname) == "schemas") {
      grant.in_schemas = Strings(list);
    } else {
      grant.for_roles = Roles(list);
    }
  }
  return out;
}

StmtPtr PgWalker::GrantRoles(const ::GrantRoleStmt* node) {
  auto out = std::make_unique<GrantStmt>();
  out->grant = node->is_grant;
  out->of_roles = true;
  out->object_type = ObjectType::kRole;
  for (const ::AccessPriv* role : Items<::AccessPriv>(node->granted_roles)) {
    out->privileges.push_back({Str(role->priv_name), Strings(role->cols)});
  }
  out->grantees = Roles(node->grantee_roles);
  if (node->grantor != nullptr) out->grantor = RoleOf(node->grantor);
  out->grant_option = node->admin_opt;
  out->cascade = node->behavior == DROP_CASCADE;
  return out;
}

StmtPtr PgWalker::Drop(const ::DropStmt* node) {
  auto out = std::make_unique<DropStmt>();
  out->object_type = ObjectTypeOf(node->removeType);
  for (const ::Node* object : Items<::Node>(node->objects)) {
    out->objects.push_back(Object(object));
  }
  out->if_exists = node->missing_ok;
  out->cascade = node->behavior == DROP_CASCADE;
  out->concurrently = node->concurrent;
  return out;
}

StmtPtr PgWalker::Rename(const ::RenameStmt* node) {
  auto out = std::make_unique<RenameStmt>();
  out->object_type = ObjectTypeOf(node->renameType);
  out->relation_type = ObjectTypeOf(node->relationType);
  out->relation = Relation(node->relation);
  if (node->object != nullptr) out->object = Object(node->object);
  out->sub_name = Str(node->subname);
  out->new_name = Str(node->newname);
  out->if_exists = node->missing_ok;
  out->cascade = node->behavior == DROP_CASCADE;
  return out;
}

StmtPtr PgWalker::Copy(const ::CopyStmt* node) {
  auto out = std::make_unique<CopyStmt>();
  out->table = Relation(node->relation);
  if (node->query != nullptr) out->query = Query(node->query);
  out->columns = Strings(node->attlist);
  out->from = node->is_from;
  out->program = node->is_program;
  out->has_file = node->filename != nullptr;
  out->file = Str(node->filename);
  out->options = Options(node->options);
  out->where = Expression(node->whereClause);
  return out;
}

StmtPtr PgWalker::Role(const ::Node* node, std::string_view* tag) {
  switch (node->type) {
    case T_CreateRoleStmt: {
      const auto* create = As<::CreateRoleStmt>(node);
      auto out = std::make_unique<CreateRoleStmt>();
      *tag = "CREATE ROLE";
      if (create->stmt_type == ROLESTMT_USER) out->spelling = CreateRoleStmt::Spelling::kUser;
      if (create->stmt_type == ROLESTMT_GROUP) out->spelling = CreateRoleStmt::Spelling::kGroup;
      out->name = Str(create->role);
      out->options = Options(create->options);
      return out;
    }
    case T_AlterRoleStmt: {
      const auto* alter = As<::AlterRoleStmt>(node);
      auto out = std::make_unique<AlterRoleStmt>();
      *tag = "ALTER ROLE";
      out->role = RoleOf(alter->role);
      out->options = Options(alter->options);
      out->drop_members = alter->action < 0;
      return out;
    }
    case T_AlterRoleSetStmt: {
      const auto* alter = As<::AlterRoleSetStmt>(node);
      auto out = std::make_unique<AlterRoleStmt>();
      *tag = "ALTER ROLE";
      out->all_roles = alter->role == nullptr;
      out->role = RoleOf(alter->role);
      out->database = Str(alter->database);
      out->set = VariableSet(alter->setstmt);
      return out;
    }
    default: {
      const auto* drop = As<::DropRoleStmt>(node);
      auto out = std::make_unique<DropRoleStmt>();
      *tag = "DROP ROLE";
      out->roles = Roles(drop->roles);
      out->if_exists = drop->missing_ok;
      return out;
    }
  }
}

StmtPtr PgWalker::Statement(const ::Node* node, std::string_view* tag) {
  Level level(this);
  if (!level.ok() || node == nullptr) return nullptr;
  switch (node->type) {
    case T_SelectStmt: {
      const auto* select = As<::SelectStmt>(node);
      const auto* leaf = select;
      while (leaf->op != SETOP_NONE) leaf = leaf->larg;
      if (leaf->intoClause != nullptr) {
        *tag = "SELECT INTO";
        return SelectInto(select, leaf->intoClause);
      }
      *tag = "SELECT";
      return Select(select);
    }
    case T_InsertStmt: *tag = "INSERT"; return Insert(As<::InsertStmt>(node));
    case T_UpdateStmt: *tag = "UPDATE"; return Update(As<::UpdateStmt>(node));
    case T_DeleteStmt: *tag = "DELETE"; return Delete(As<::DeleteStmt>(node));
    default: return Utility(node, tag);
  }
}

StmtPtr PgWalker::Utility(const ::Node* node, std::string_view* tag) {
  std::string_view ignored;
  switch (node->type) {
    case T_CreateStmt: *tag = "CREATE TABLE"; return CreateTable(As<::CreateStmt>(node), false);
    case T_CreateForeignTableStmt:
      *tag = "CREATE FOREIGN TABLE";
      return CreateTable(&As<::CreateForeignTableStmt>(node)->base, true);
    case T_CreateTableAsStmt: {
      const auto* create = As<::CreateTableAsStmt>(node);
      *tag = create->objtype == OBJECT_MATVIEW ? "CREATE MATERIALIZED VIEW"
             : create->is_select_into          ? "SELECT INTO"
                                               : "CREATE TABLE AS";
      return CreateTableAs(create);
    }
    case T_AlterTableStmt:
      *tag = AlterTag(ObjectTypeOf(As<::AlterTableStmt>(node)->objtype));
      return AlterTable(As<::AlterTableStmt>(node));
    case T_RenameStmt: {
      const auto* rename = As<::RenameStmt>(node);
      const bool inner =
          rename->renameType == OBJECT_COLUMN || rename->renameType == OBJECT_ATTRIBUTE;
      *tag = AlterTag(ObjectTypeOf(inner ? rename->relationType : rename->renameType));
      return Rename(rename);
    }
    case T_AlterObjectSchemaStmt: {
      const auto* alter = As<::AlterObjectSchemaStmt>(node);
      *tag = AlterTag(ObjectTypeOf(alter->objectType));
      auto out = std::make_unique<AlterObjectSchemaStmt>();
      out->object_type = ObjectTypeOf(alter->objectType);
      out->relation = Relation(alter->relation);
      if (alter->object != nullptr) out->object = Object(alter->object);
      out->new_schema = Str(alter->newschema);
      out->if_exists = alter->missing_ok;
      return out;
    }
    case T_AlterOwnerStmt: {
      const auto* alter = As<::AlterOwnerStmt>(node);
      *tag = AlterTag(ObjectTypeOf(alter->objectType));
      auto out = std::make_unique<AlterOwnerStmt>();
      out->object_type = ObjectTypeOf(alter->objectType);
      out->relation = Relation(alter->relation);
      if (alter->object != nullptr) out->object = Object(alter->object);
      out->new_owner = RoleOf(alter->newowner);
      return out;
    }
    case T_DropStmt:
      *tag = DropTag(ObjectTypeOf(As<::DropStmt>(node)->removeType));
      return Drop(As<::DropStmt>(node));
    case T_IndexStmt: *tag = "CREATE INDEX"; return CreateIndex(As<::IndexStmt>(node));
    case T_CreateSchemaStmt: {
      const auto* create = As<::CreateSchemaStmt>(node);
      *tag = "CREATE SCHEMA";
      auto out = std::make_unique<CreateSchemaStmt>();
      out->name = Str(create->schemaname);
      out->has_owner = create->authrole != nullptr;
      out->owner = RoleOf(create->authrole);
      out->if_not_exists = create->if_not_exists;
      for (const ::Node* element : Items<::Node>(create->schemaElts)) {
        out->elements.push_back(Statement(element, &ignored));
      }
      return out;
    }
    case T_CreatedbStmt: {
      *tag = "CREATE DATABASE";
      auto out = std::make_unique<CreateDatabaseStmt>();
      out->name = Str(As<::CreatedbStmt>(node)->dbname);
      out->options = Options(As<::CreatedbStmt>(node)->options);
      return out;
    }
    case T_AlterDatabaseStmt: {
      *tag = "ALTER DATABASE";
      auto out = std::make_unique<AlterDatabaseStmt>();
      out->name = Str(As<::AlterDatabaseStmt>(node)->dbname);
      out->options = Options(As<::AlterDatabaseStmt>(node)->options);
      return out;
    }
    case T_AlterDatabaseSetStmt: {
      *tag = "ALTER DATABASE";
      auto out = std::make_unique<AlterDatabaseStmt>();
      out->name = Str(As<::AlterDatabaseSetStmt>(node)->dbname);
      out->set = VariableSet(As<::AlterDatabaseSetStmt>(node)->setstmt);
      return out;
    }
    case T_DropdbStmt: {
      *tag = "DROP DATABASE";
      auto out = std::make_unique<DropDatabaseStmt>();
      out->name = Str(As<::DropdbStmt>(node)->dbname);
      out->if_exists = As<::DropdbStmt>(node)->missing_ok;
      out->options = Options(As<::DropdbStmt>(node)->options);
      return out;
    }
    case T_ViewStmt: {
      const auto* view = As<::ViewStmt>(node);
      *tag = "CREATE VIEW";
      auto out = std::make_unique<CreateViewStmt>();
      out->view = Relation(view->view);
      out->persistence = PersistenceOf(view->view);
      out->columns = Strings(view->aliases);
      if (Is(view->query, T_SelectStmt)) {
        out->query = Select(As<::SelectStmt>(view->query));
      } else {
        Unexpected(view->query);
      }
      out->or_replace = view->replace;
      out->options = Options(view->options);
      if (view->withCheckOption == LOCAL_CHECK_OPTION) out->check_option = CheckOption::kLocal;
      if (view->withCheckOption == CASCADED_CHECK_OPTION) {
        out->check_option = CheckOption::kCascaded;
      }
      return out;
    }
    case T_RefreshMatViewStmt: {
      *tag = "REFRESH MATERIALIZED VIEW";
      auto out = std::make_unique<RefreshMatViewStmt>();
      out->view = Relation(As<::RefreshMatViewStmt>(node)->relation);
      out->concurrently = As<::RefreshMatViewStmt>(node)->concurrent;
      out->no_data = As<::RefreshMatViewStmt>(node)->skipData;
      return out;
    }
    case T_CreateSeqStmt: {
      const auto* create = As<::CreateSeqStmt>(node);
      *tag = "CREATE SEQUENCE";
      auto out = std::make_unique<CreateSequenceStmt>();
      out->sequence = Relation(create->sequence);
      out->persistence = PersistenceOf(create->sequence);
      out->options = Options(create->options);
      out->if_not_exists = create->if_not_exists;
      return out;
    }
    case T_AlterSeqStmt: {
      *tag = "ALTER SEQUENCE";
      auto out = std::make_unique<AlterSequenceStmt>();
      out->sequence = Relation(As<::AlterSeqStmt>(node)->sequence);
      out->options = Options(As<::AlterSeqStmt>(node)->options);
      out->if_exists = As<::AlterSeqStmt>(node)->missing_ok;
      return out;
    }
    case T_CreateEnumStmt: {
      *tag = "CREATE TYPE";
      auto out = std::make_unique<CreateEnumStmt>();
      out->name = Name(As<::CreateEnumStmt>(node)->typeName);
      out->labels = Strings(As<::CreateEnumStmt>(node)->vals);
      return out;
    }
    case T_AlterEnumStmt: {
      const auto* alter = As<::AlterEnumStmt>(node);
      *tag = "ALTER TYPE";
      auto out = std::make_unique<AlterEnumStmt>();
      out->name = Name(alter->typeName);
      out->rename = alter->oldVal != nullptr;
      out->old_label = Str(alter->oldVal);
      out->new_label = Str(alter->newVal);
      out->neighbour = Str(alter->newValNeighbor);
      out->after = alter->newValIsAfter;
      out->if_not_exists = alter->skipIfNewValExists;
      return out;
    }
    case T_DefineStmt: {
      const auto* define = As<::DefineStmt>(node);
      if (define->kind != OBJECT_COLLATION) return Other(node, tag);
      *tag = "CREATE COLLATION";
      auto out = std::make_unique<CreateCollationStmt>();
      out->name = Name(define->defnames);
      out->if_not_exists = define->if_not_exists;
      for (Option& option : Options(define->definition)) {
        if (option.name == "from" && option.value_kind == OptionKind::kList) {
          out->from.name = option.list.back();
          if (option.list.size() > 1) out->from.schema = option.list[option.list.size() - 2];
        } else {
          out->options.push_back(std::move(option));
        }
      }
      return out;
    }
    case T_AlterCollationStmt: {
      *tag = "ALTER COLLATION";
      auto out = std::make_unique<AlterCollationStmt>();
      out->name = Name(As<::AlterCollationStmt>(node)->collname);
      return out;
    }
    case T_CreateDomainStmt: {
      const auto* create = As<::CreateDomainStmt>(node);
      *tag = "CREATE DOMAIN";
      auto out = std::make_unique<CreateDomainStmt>();
      out->name = Name(create->domainname);
      out->type = Type(create->typeName);
      if (create->collClause != nullptr) out->collation = Name(create->collClause->collname);
      ColumnConstraints(create->constraints, &out->constraints);
      return out;
    }
    case T_CreateExtensionStmt: {
      *tag = "CREATE EXTENSION";
      auto out = std::make_unique<CreateExtensionStmt>();
      out->name = Str(As<::CreateExtensionStmt>(node)->extname);
      out->if_not_exists = As<::CreateExtensionStmt>(node)->if_not_exists;
      out->options = Options(As<::CreateExtensionStmt>(node)->options);
      return out;
    }
    case T_CreateRoleStmt:
    case T_AlterRoleStmt:
    case T_AlterRoleSetStmt:
    case T_DropRoleStmt: return Role(node, tag);
    case T_GrantStmt:
      *tag = As<::GrantStmt>(node)->is_grant ? "GRANT" : "REVOKE";
      return Grant(As<::GrantStmt>(node));
    case T_GrantRoleStmt:
      *tag = As<::GrantRoleStmt>(node)->is_grant ? "GRANT ROLE" : "REVOKE ROLE";
      return GrantRoles(As<::GrantRoleStmt>(node));
    case T_AlterDefaultPrivilegesStmt:
      *tag = "ALTER DEFAULT PRIVILEGES";
      return DefaultPrivileges(As<::AlterDefaultPrivilegesStmt>(node));
    case T_DropOwnedStmt: {
      const auto* drop = As<::DropOwnedStmt>(node);
      *tag = "DROP OWNED";
      auto out = std::make_unique<OwnedStmt>();
      out->roles = Roles(drop->roles);
      out->cascade = drop->behavior == DROP_CASCADE;
      return out;
    }
    case T_ReassignOwnedStmt: {
      const auto* reassign = As<::ReassignOwnedStmt>(node);
      *tag = "REASSIGN OWNED";
      auto out = std::make_unique<OwnedStmt>();
      out->reassign = true;
      out->roles = Roles(reassign->roles);
      out->new_owner = RoleOf(reassign->newrole);
      return out;
    }
    case T_CommentStmt: {
      const auto* comment = As<::CommentStmt>(node);
      *tag = "COMMENT";
      auto out = std::make_unique<CommentStmt>();
      out->object_type = ObjectTypeOf(comment->objtype);
      out->object = Object(comment->object);
      out->is_null = comment->comment == nullptr;
      out->comment = Str(comment->comment);
      return out;
    }
    case T_TruncateStmt: {
      const auto* truncate = As<::TruncateStmt>(node);
      *tag = "TRUNCATE TABLE";
      auto out = std::make_unique<TruncateStmt>();
      for (const ::RangeVar* var : Items<::RangeVar>(truncate->relations)) {
        out->tables.push_back({Relation(var), !var->inh});
      }
      out->restart_identity = truncate->restart_seqs;
      out->cascade = truncate->behavior == DROP_CASCADE;
      return out;
    }
    case T_CopyStmt: *tag = "COPY"; return Copy(As<::CopyStmt>(node));
    case T_ExplainStmt: {
      *tag = "EXPLAIN";
      auto out = std::make_unique<ExplainStmt>();
      out->query = Statement(As<::ExplainStmt>(node)->query, &ignored);
      out->options = Options(As<::ExplainStmt>(node)->options);
      return out;
    }
    case T_TransactionStmt: return Transaction(As<::TransactionStmt>(node), tag);
    case T_VariableSetStmt: {
      const auto* set = As<::VariableSetStmt>(node);
      *tag = set->kind == VAR_RESET || set->kind == VAR_RESET_ALL ? "RESET" : "SET";
      return VariableSet(set);
    }
    case T_VariableShowStmt: {
      *tag = "SHOW";
      auto out = std::make_unique<VariableShowStmt>();
      out->name = Str(As<::VariableShowStmt>(node)->name);
      return out;
    }
    case T_ConstraintsSetStmt: {
      *tag = "SET CONSTRAINTS";
      auto out = std::make_unique<SetConstraintsStmt>();
      out->constraints = Relations(As<::ConstraintsSetStmt>(node)->constraints);
      out->deferred = As<::ConstraintsSetStmt>(node)->deferred;
      return out;
    }
    case T_PrepareStmt: {
      *tag = "PREPARE";
      auto out = std::make_unique<PrepareStmt>();
      out->name = Str(As<::PrepareStmt>(node)->name);
      for (const ::TypeName* type : Items<::TypeName>(As<::PrepareStmt>(node)->argtypes)) {
        out->types.push_back(Type(type));
      }
      out->query = Statement(As<::PrepareStmt>(node)->query, &ignored);
      return out;
    }
    case T_ExecuteStmt: {
      *tag = "EXECUTE";
      auto out = std::make_unique<ExecuteStmt>();
      out->name = Str(As<::ExecuteStmt>(node)->name);
      out->args = Expressions(As<::ExecuteStmt>(node)->params);
      return out;
    }
    case T_DeallocateStmt: {
      auto out = std::make_unique<DeallocateStmt>();
      out->name = Str(As<::DeallocateStmt>(node)->name);
      *tag = out->name.empty() ? "DEALLOCATE ALL" : "DEALLOCATE";
      return out;
    }
    case T_DeclareCursorStmt: {
      const auto* declare = As<::DeclareCursorStmt>(node);
      *tag = "DECLARE CURSOR";
      auto out = std::make_unique<DeclareCursorStmt>();
      out->name = Str(declare->portalname);
      out->binary = (declare->options & CURSOR_OPT_BINARY) != 0;
      out->scroll = (declare->options & CURSOR_OPT_SCROLL) != 0;
      out->no_scroll = (declare->options & CURSOR_OPT_NO_SCROLL) != 0;
      out->insensitive = (declare->options & CURSOR_OPT_INSENSITIVE) != 0;
      out->hold = (declare->options & CURSOR_OPT_HOLD) != 0;
      if (Is(declare->query, T_SelectStmt)) out->query = Select(As<::SelectStmt>(declare->query));
      return out;
    }
    case T_FetchStmt: {
      const auto* fetch = As<::FetchStmt>(node);
      *tag = fetch->ismove ? "MOVE" : "FETCH";
      auto out = std::make_unique<FetchStmt>();
      switch (fetch->direction) {
        case FETCH_FORWARD: out->direction = FetchStmt::Direction::kForward; break;
        case FETCH_BACKWARD: out->direction = FetchStmt::Direction::kBackward; break;
        case FETCH_ABSOLUTE: out->direction = FetchStmt::Direction::kAbsolute; break;
        case FETCH_RELATIVE: out->direction = FetchStmt::Direction::kRelative; break;
      }
      out->count = fetch->howMany == LONG_MAX ? FetchStmt::kAll : fetch->howMany;
      out->cursor = Str(fetch->portalname);
      out->move = fetch->ismove;
      return out;
    }
    case T_ClosePortalStmt: {
      auto out = std::make_unique<ClosePortalStmt>();
      out->name = Str(As<::ClosePortalStmt>(node)->portalname);
      *tag = out->name.empty() ? "CLOSE CURSOR ALL" : "CLOSE CURSOR";
      return out;
    }
    case T_ListenStmt: {
      *tag = "LISTEN";
      auto out = std::make_unique<ListenStmt>();
      out->channel = Str(As<::ListenStmt>(node)->conditionname);
      return out;
    }
    case T_NotifyStmt: {
      *tag = "NOTIFY";
      auto out = std::make_unique<NotifyStmt>();
      out->channel = Str(As<::NotifyStmt>(node)->conditionname);
      out->payload = Str(As<::NotifyStmt>(node)->payload);
      return out;
    }
    case T_UnlistenStmt: {
      *tag = "UNLISTEN";
      auto out = std::make_unique<UnlistenStmt>();
      out->channel = Str(As<::UnlistenStmt>(node)->conditionname);
      return out;
    }
    case T_LockStmt: {
      *tag = "LOCK TABLE";
      auto out = std::make_unique<LockStmt>();
      out->tables = Relations(As<::LockStmt>(node)->relations);
      out->mode = As<::LockStmt>(node)->mode;
      out->nowait = As<::LockStmt>(node)->nowait;
      return out;
    }
    case T_VacuumStmt: {
      const auto* vacuum = As<::VacuumStmt>(node);
      *tag = vacuum->is_vacuumcmd ? "VACUUM" : "ANALYZE";
      auto out = std::make_unique<VacuumStmt>();
      out->vacuum = vacuum->is_vacuumcmd;
      out->options = Options(vacuum->options);
      for (const ::VacuumRelation* rel : Items<::VacuumRelation>(vacuum->rels)) {
        out->tables.push_back({Relation(rel->relation), Strings(rel->va_cols)});
      }
      return out;
    }
    case T_ClusterStmt: {
      *tag = "CLUSTER";
      auto out = std::make_unique<ClusterStmt>();
      out->table = Relation(As<::ClusterStmt>(node)->relation);
      out->index = Str(As<::ClusterStmt>(node)->indexname);
      out->options = Options(As<::ClusterStmt>(node)->params);
      return out;
    }
    case T_ReindexStmt: {
      const auto* reindex = As<::ReindexStmt>(node);
      *tag = "REINDEX";
      auto out = std::make_unique<ReindexStmt>();
      switch (reindex->kind) {
        case REINDEX_OBJECT_INDEX: out->target = ReindexStmt::Target::kIndex; break;
        case REINDEX_OBJECT_TABLE: out->target = ReindexStmt::Target::kTable; break;
        case REINDEX_OBJECT_SCHEMA: out->target = ReindexStmt::Target::kSchema; break;
        case REINDEX_OBJECT_SYSTEM: out->target = ReindexStmt::Target::kSystem; break;
        case REINDEX_OBJECT_DATABASE: out->target = ReindexStmt::Target::kDatabase; break;
      }
      out->relation = Relation(reindex->relation);
      out->name = Str(reindex->name);
      out->options = Options(reindex->params);
      return out;
    }
    case T_CheckPointStmt: *tag = "CHECKPOINT"; return std::make_unique<CheckpointStmt>();
    case T_DiscardStmt: {
      auto out = std::make_unique<DiscardStmt>();
      switch (As<::DiscardStmt>(node)->target) {
        case DISCARD_ALL: out->target = DiscardStmt::Target::kAll, *tag = "DISCARD ALL"; break;
        case DISCARD_PLANS:
          out->target = DiscardStmt::Target::kPlans, *tag = "DISCARD PLANS";
          break;
        case DISCARD_SEQUENCES:
          out->target = DiscardStmt::Target::kSequences, *tag = "DISCARD SEQUENCES";
          break;
        case DISCARD_TEMP: out->target = DiscardStmt::Target::kTemp, *tag = "DISCARD TEMP"; break;
      }
      return out;
    }
    case T_DoStmt: {
      *tag = "DO";
      auto out = std::make_unique<DoStmt>();
      for (const Option& option : Options(As<::DoStmt>(node)->args)) {
        if (option.name == "as") out->body = option.text;
        if (option.name == "language") out->language = option.text;
      }
      return out;
    }
    case T_CallStmt: {
      *tag = "CALL";
      auto out = std::make_unique<CallStmt>();
      ExprPtr call = Expression(reinterpret_cast<const ::Node*>(As<::CallStmt>(node)->funccall));
      if (call != nullptr && call->Is<FuncCall>()) {
        out->call.reset(static_cast<FuncCall*>(call.release()));
      }
      return out;
    }
    default: return Other(node, tag);
  }
}

}  // namespace cellar::sql::ast
