// CREATE TABLE and INDEX, ALTER TABLE, and the options they share with other statements.
#include "cellar/sql/parser/pg_walker.h"

namespace cellar::sql::ast {

namespace {

FkAction ActionOf(char code) {
  switch (code) {
    case FKCONSTR_ACTION_RESTRICT: return FkAction::kRestrict;
    case FKCONSTR_ACTION_CASCADE: return FkAction::kCascade;
    case FKCONSTR_ACTION_SETNULL: return FkAction::kSetNull;
    case FKCONSTR_ACTION_SETDEFAULT: return FkAction::kSetDefault;
    default: return FkAction::kNoAction;
  }
}

bool TakesAttributes(const Constraint& constraint) {
  switch (constraint.kind) {
    case ConstraintKind::kPrimaryKey:
    case ConstraintKind::kUnique:
    case ConstraintKind::kExclusion:
    case ConstraintKind::kForeignKey: return true;
    default: return false;
  }
}

}  // namespace

Option PgWalker::OptionOf(const ::DefElem* node) {
  Option out;
  out.space = Str(node->defnamespace);
  out.name = Str(node->defname);
  out.location = At(node->location);
  switch (node->defaction) {
    case DEFELEM_UNSPEC: break;
    case DEFELEM_SET: out.action = Option::Action::kSet; break;
    case DEFELEM_ADD: out.action = Option::Action::kAdd; break;
    case DEFELEM_DROP: out.action = Option::Action::kDrop; break;
  }
  const ::Node* arg = node->arg;
  if (arg == nullptr) return out;
  if (Is(arg, T_A_Const)) {
    if (As<::A_Const>(arg)->isnull) return out;
    arg = &As<::A_Const>(arg)->val.node;
  }
  switch (arg->type) {
    case T_Integer:
      out.value_kind = OptionKind::kInteger;
      out.integer = As<::Integer>(arg)->ival;
      break;
    case T_Float:
      out.value_kind = OptionKind::kFloat;
      out.text = Str(As<::Float>(arg)->fval);
      break;
    case T_Boolean:
      out.value_kind = OptionKind::kBool;
      out.boolean = As<::Boolean>(arg)->boolval;
      break;
    case T_String:
      out.value_kind = OptionKind::kString;
      out.text = Str(As<::String>(arg)->sval);
      break;
    case T_A_Star: out.value_kind = OptionKind::kStar; break;
    case T_TypeName:
      out.value_kind = OptionKind::kType;
      out.type = std::make_unique<TypeName>(Type(As<::TypeName>(arg)));
      break;
    case T_RoleSpec:
      out.value_kind = OptionKind::kString;
      out.text = RoleOf(As<::RoleSpec>(arg)).name;
      break;
    case T_List:
      out.value_kind = OptionKind::kList;
      for (const ::Node* item : Items<::Node>(As<::List>(arg))) {
        if (Is(item, T_String)) {
          out.list.push_back(Str(As<::String>(item)->sval));
        } else if (Is(item, T_RoleSpec)) {
          out.list.push_back(RoleOf(As<::RoleSpec>(item)).name);
        } else if (Is(item, T_A_Star)) {
          out.list.push_back("*");
        } else {
          Unexpected(item);
        }
      }
      break;
    default: Unexpected(arg);
  }
  return out;
}

OptionList PgWalker::Options(const ::List* list) {
  OptionList out;
  for (const ::DefElem* item : Items<::DefElem>(list)) out.push_back(OptionOf(item));
  return out;
}

Constraint PgWalker::ConstraintOf(const ::Constraint* node) {
  Constraint out;
  out.name = Str(node->conname);
  out.deferrable = node->deferrable;
  out.initially_deferred = node->initdeferred;
  out.no_inherit = node->is_no_inherit;
  out.not_valid = node->skip_validation;
  out.location = At(node->location);
  out.expr = Expression(node->raw_expr);
  out.columns = Strings(node->keys);
  out.including = Strings(node->including);
  out.nulls_not_distinct = node->nulls_not_distinct;
  out.using_index = Str(node->indexname);
  out.options = Options(node->options);
  switch (node->contype) {
    case CONSTR_NULL: out.kind = ConstraintKind::kNull; break;
    case CONSTR_NOTNULL: out.kind = ConstraintKind::kNotNull; break;
    case CONSTR_DEFAULT: out.kind = ConstraintKind::kDefault; break;
    case CONSTR_IDENTITY:
      out.kind = ConstraintKind::kIdentity;
      out.generated_always = node->generated_when == 'a';
      break;
    case CONSTR_GENERATED: out.kind = ConstraintKind::kGenerated; break;
    case CONSTR_CHECK: out.kind = ConstraintKind::kCheck; break;
    case CONSTR_PRIMARY: out.kind = ConstraintKind::kPrimaryKey; break;
    case CONSTR_UNIQUE: out.kind = ConstraintKind::kUnique; break;
    case CONSTR_EXCLUSION: out.kind = ConstraintKind::kExclusion; break;
    case CONSTR_FOREIGN:
      out.kind = ConstraintKind::kForeignKey;
      out.columns = Strings(node->fk_attrs);
      out.ref_table = Relation(node->pktable);
      out.ref_columns = Strings(node->pk_attrs);
      if (node->fk_matchtype == FKCONSTR_MATCH_FULL) out.match = FkMatch::kFull;
      if (node->fk_matchtype == FKCONSTR_MATCH_PARTIAL) out.match = FkMatch::kPartial;
      out.on_update = ActionOf(node->fk_upd_action);
      out.on_delete = ActionOf(node->fk_del_action);
      out.on_delete_columns = Strings(node->fk_del_set_cols);
      break;
    default: Unexpected(reinterpret_cast<const ::Node*>(node));
  }
  return out;
}

// DEFERRABLE and its kin are nodes of their own in the list; they speak of the constraint before
// them.
void PgWalker::ColumnConstraints(const ::List* list, std::vector<Constraint>* out) {
  bool saw_deferrable = false;
  bool saw_initially = false;
  for (const ::Constraint* node : Items<::Constraint>(list)) {
    const bool deferrable = node->contype == CONSTR_ATTR_DEFERRABLE;
    const bool not_deferrable = node->contype == CONSTR_ATTR_NOT_DEFERRABLE;
    const bool deferred = node->contype == CONSTR_ATTR_DEFERRED;
    const bool immediate = node->contype == CONSTR_ATTR_IMMEDIATE;
    if (!deferrable && !not_deferrable && !deferred && !immediate) {
      out->push_back(ConstraintOf(node));
      saw_deferrable = saw_initially = false;
      continue;
    }
    auto fail = [&](std::string text) {
      Fail(SqlError(Code::kInvalid, sqlstate::kSyntaxError, "{}", text)
               .WithLocation(At(node->location)));
    };
    const char* word = deferrable       ? "DEFERRABLE"
                       : not_deferrable ? "NOT DEFERRABLE"
                       : deferred       ? "INITIALLY DEFERRED"
                                        : "INITIALLY IMMEDIATE";
    if (out->empty() || !TakesAttributes(out->back())) {
      fail(fmt::format("misplaced {} clause", word));
      continue;
    }
    Constraint& last = out->back();
    if (deferrable || not_deferrable) {
      if (saw_deferrable) fail("multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed");
      saw_deferrable = true;
      last.deferrable = deferrable;
      if (not_deferrable && saw_initially && last.initially_deferred) {
        fail("constraint declared INITIALLY DEFERRED must be DEFERRABLE");
      }
    } else {
      if (saw_initially) fail("multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed");
      saw_initially = true;
      last.initially_deferred = deferred;
      if (deferred && saw_deferrable && !last.deferrable) {
        fail("constraint declared INITIALLY DEFERRED must be DEFERRABLE");
      }
      if (deferred) last.deferrable = true;
    }
  }
}

ColumnDef PgWalker::Column(const ::ColumnDef* node) {
  ColumnDef out;
  out.name = Str(node->colname);
  out.type = Type(node->typeName);
  out.location = At(node->location);
  if (node->collClause != nullptr) {
    out.collation = Name(node->collClause->collname, At(node->collClause->location));
  }
  out.compression = Str(node->compression);
  ColumnConstraints(node->constraints, &out.constraints);
  return out;
}

std::vector<ColumnDef> PgWalker::Columns(const ::List* list) {
  std::vector<ColumnDef> out;
  for (const ::ColumnDef* item : Items<::ColumnDef>(list)) out.push_back(Column(item));
  return out;
}

StmtPtr PgWalker::CreateTable(const ::CreateStmt* node, bool foreign) {
  auto out = std::make_unique<CreateTableStmt>();
  out->table = Relation(node->relation);
  out->persistence = PersistenceOf(node->relation);
  out->if_not_exists = node->if_not_exists;
  out->foreign_table = foreign;
  for (const ::Node* item : Items<::Node>(node->tableElts)) {
    if (Is(item, T_ColumnDef)) {
      out->columns.push_back(Column(As<::ColumnDef>(item)));
    } else if (Is(item, T_Constraint)) {
      out->constraints.push_back(ConstraintOf(As<::Constraint>(item)));
    } else if (Is(item, T_TableLikeClause)) {
      const auto* like = As<::TableLikeClause>(item);
      out->likes.push_back({Relation(like->relation), like->options & 511, out->columns.size()});
    } else {
      Unexpected(item);
    }
  }
  for (const ::Constraint* item : Items<::Constraint>(node->constraints)) {
    out->constraints.push_back(ConstraintOf(item));
  }
  out->inherits = Relations(node->inhRelations);
  out->partitioned = node->partspec != nullptr;
  out->partition_of = node->partbound != nullptr;
  if (node->ofTypename != nullptr) {
    out->of_type = std::make_unique<TypeName>(Type(node->ofTypename));
  }
  out->options = Options(node->options);
  switch (node->oncommit) {
    case ONCOMMIT_NOOP: break;
    case ONCOMMIT_PRESERVE_ROWS: out->on_commit = OnCommit::kPreserveRows; break;
    case ONCOMMIT_DELETE_ROWS: out->on_commit = OnCommit::kDeleteRows; break;
    case ONCOMMIT_DROP: out->on_commit = OnCommit::kDrop; break;
  }
  out->tablespace = Str(node->tablespacename);
  out->access_method = Str(node->accessMethod);
  return out;
}

StmtPtr PgWalker::CreateTableAs(const ::CreateTableAsStmt* node) {
  auto out = std::make_unique<CreateTableAsStmt>();
  out->into = Into(node->into);
  out->materialized_view = node->objtype == OBJECT_MATVIEW;
  out->if_not_exists = node->if_not_exists;
  out->select_into = node->is_select_into;
  out->query = Query(node->query);
  return out;
}

StmtPtr PgWalker::SelectInto(const ::SelectStmt* node, const ::IntoClause* into) {
  auto out = std::make_unique<CreateTableAsStmt>();
  out->into = Into(into);
  out->select_into = true;
  out->query = Select(node);
  // The clause sits in the leftmost SELECT of a set operation.
  auto* leaf = out->query == nullptr ? nullptr : &out->query->As<SelectStmt>();
  while (leaf != nullptr && !leaf->operands.empty()) leaf = leaf->operands[0].get();
  if (leaf != nullptr) leaf->into.reset();
  return out;
}

StmtPtr PgWalker::CreateIndex(const ::IndexStmt* node) {
  auto out = std::make_unique<CreateIndexStmt>();
  out->name = Str(node->idxname);
  out->table = Relation(node->relation);
  out->only = node->relation != nullptr && !node->relation->inh;
  out->method = Str(node->accessMethod);
  out->elements = IndexElements(node->indexParams);
  out->including = IndexElements(node->indexIncludingParams);
  out->options = Options(node->options);
  out->tablespace = Str(node->tableSpace);
  out->where = Expression(node->whereClause);
  out->unique = node->unique;
  out->nulls_not_distinct = node->nulls_not_distinct;
  out->concurrently = node->concurrent;
  out->if_not_exists = node->if_not_exists;
  return out;
}

StmtPtr PgWalker::AlterTable(const ::AlterTableStmt* node) {
  auto out = std::make_unique<AlterTableStmt>();
  out->object_type = ObjectTypeOf(node->objtype);
  out->table = Relation(node->relation);
  out->only = node->relation != nullptr && !node->relation->inh;
  out->if_exists = node->missing_ok;
  for (const ::AlterTableCmd* cmd : Items<::AlterTableCmd>(node->cmds)) {
    out->commands.push_back(AlterCommand(cmd));
  }
  return out;
}

AlterTableCommand PgWalker::AlterCommand(const ::AlterTableCmd* node) {
  using Kind = AlterTableKind;
  AlterTableCommand out;
  out.name = Str(node->name);
  out.number = node->num;
  out.cascade = node->behavior == DROP_CASCADE;
  out.if_exists = node->missing_ok;
  if (node->newowner != nullptr) out.role = RoleOf(node->newowner);
  auto column = [&] {
    if (Is(node->def, T_ColumnDef)) {
      out.column = std::make_unique<ColumnDef>(Column(As<::ColumnDef>(node->def)));
    }
  };
  auto constraint = [&] {
    if (Is(node->def, T_Constraint)) {
      out.constraint = std::make_unique<Constraint>(ConstraintOf(As<::Constraint>(node->def)));
    }
  };
  auto options = [&] {
    if (Is(node->def, T_List)) out.options = Options(As<::List>(node->def));
  };
  auto table = [&] {
    if (Is(node->def, T_RangeVar)) out.table = Relation(As<::RangeVar>(node->def));
    if (Is(node->def, T_PartitionCmd)) out.table = Relation(As<::PartitionCmd>(node->def)->name);
  };
  auto text = [&] {
    if (Is(node->def, T_String)) out.text = Str(As<::String>(node->def)->sval);
  };
  auto action = [&](Kind kind, const char* what) {
    out.kind = kind;
    out.action = what;
  };
  switch (node->subtype) {
    case AT_AddColumn: out.kind = Kind::kAddColumn, column(); break;
    case AT_DropColumn: out.kind = Kind::kDropColumn; break;
    case AT_ColumnDefault:
      out.kind = node->def == nullptr ? Kind::kDropDefault : Kind::kSetDefault;
      out.expr = Expression(node->def);
      break;
    case AT_SetNotNull: out.kind = Kind::kSetNotNull; break;
    case AT_DropNotNull: out.kind = Kind::kDropNotNull; break;
    case AT_DropExpression: out.kind = Kind::kDropExpression; break;
    case AT_AlterColumnType:
      out.kind = Kind::kSetType;
      column();
      if (Is(node->def, T_ColumnDef)) {
        out.expr = Expression(As<::ColumnDef>(node->def)->raw_default);
      }
      break;
    case AT_SetStatistics:
      out.kind = Kind::kSetStatistics;
      if (Is(node->def, T_Integer)) out.number = As<::Integer>(node->def)->ival;
      break;
    case AT_SetOptions: out.kind = Kind::kSetColumnOptions, options(); break;
    case AT_ResetOptions: out.kind = Kind::kResetColumnOptions, options(); break;
    case AT_SetStorage: out.kind = Kind::kSetStorage, text(); break;
    case AT_SetCompression: out.kind = Kind::kSetCompression, text(); break;
    case AT_AddIdentity: out.kind = Kind::kAddIdentity, constraint(); break;
    case AT_SetIdentity: out.kind = Kind::kSetIdentity, options(); break;
    case AT_DropIdentity: out.kind = Kind::kDropIdentity; break;
    case AT_AddConstraint: out.kind = Kind::kAddConstraint, constraint(); break;
    case AT_AlterConstraint:
      out.kind = Kind::kAlterConstraint;
      if (Is(node->def, T_Constraint)) {  // only its name and attributes are set
        const auto* def = As<::Constraint>(node->def);
        out.constraint = std::make_unique<Constraint>();
        out.constraint->name = out.name = Str(def->conname);
        out.constraint->deferrable = def->deferrable;
        out.constraint->initially_deferred = def->initdeferred;
      }
      break;
    case AT_ValidateConstraint: out.kind = Kind::kValidateConstraint; break;
    case AT_DropConstraint: out.kind = Kind::kDropConstraint; break;
    case AT_ChangeOwner: out.kind = Kind::kChangeOwner; break;
    case AT_ClusterOn: out.kind = Kind::kClusterOn; break;
    case AT_DropCluster: out.kind = Kind::kDropCluster; break;
    case AT_SetLogged: out.kind = Kind::kSetLogged; break;
    case AT_SetUnLogged: out.kind = Kind::kSetUnlogged; break;
    case AT_DropOids: out.kind = Kind::kDropOids; break;
    case AT_SetAccessMethod: out.kind = Kind::kSetAccessMethod; break;
    case AT_SetTableSpace: out.kind = Kind::kSetTablespace; break;
    case AT_SetRelOptions: out.kind = Kind::kSetOptions, options(); break;
    case AT_ResetRelOptions: out.kind = Kind::kResetOptions, options(); break;
    case AT_EnableTrig: action(Kind::kTrigger, "ENABLE TRIGGER"); break;
    case AT_EnableAlwaysTrig: action(Kind::kTrigger, "ENABLE ALWAYS TRIGGER"); break;
    case AT_EnableReplicaTrig: action(Kind::kTrigger, "ENABLE REPLICA TRIGGER"); break;
    case AT_DisableTrig: action(Kind::kTrigger, "DISABLE TRIGGER"); break;
    case AT_EnableTrigAll: action(Kind::kTrigger, "ENABLE TRIGGER ALL"); break;
    case AT_DisableTrigAll: action(Kind::kTrigger, "DISABLE TRIGGER ALL"); break;
    case AT_EnableTrigUser: action(Kind::kTrigger, "ENABLE TRIGGER USER"); break;
    case AT_DisableTrigUser: action(Kind::kTrigger, "DISABLE TRIGGER USER"); break;
    case AT_EnableRule: action(Kind::kRule, "ENABLE RULE"); break;
    case AT_EnableAlwaysRule: action(Kind::kRule, "ENABLE ALWAYS RULE"); break;
    case AT_EnableReplicaRule: action(Kind::kRule, "ENABLE REPLICA RULE"); break;
    case AT_DisableRule: action(Kind::kRule, "DISABLE RULE"); break;
    case AT_AddInherit: out.kind = Kind::kAddInherit, table(); break;
    case AT_DropInherit: out.kind = Kind::kDropInherit, table(); break;
    case AT_ReplicaIdentity: out.kind = Kind::kReplicaIdentity; break;
    case AT_EnableRowSecurity: action(Kind::kRowSecurity, "ENABLE ROW LEVEL SECURITY"); break;
    case AT_DisableRowSecurity: action(Kind::kRowSecurity, "DISABLE ROW LEVEL SECURITY"); break;
    case AT_ForceRowSecurity: action(Kind::kRowSecurity, "FORCE ROW LEVEL SECURITY"); break;
    case AT_NoForceRowSecurity: action(Kind::kRowSecurity, "NO FORCE ROW LEVEL SECURITY"); break;
    case AT_AttachPartition: out.kind = Kind::kAttachPartition, table(); break;
    case AT_DetachPartition:
    case AT_DetachPartitionFinalize: out.kind = Kind::kDetachPartition, table(); break;
    default: out.kind = Kind::kOther; break;
  }
  return out;
}

}  // namespace cellar::sql::ast
