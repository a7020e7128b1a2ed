// ALTER TABLE. What needs no look at the rows costs O(1); the rest reads or rewrites them, in the
// same transaction or by a job.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/ddl.h"
#include "cellar/session/foreign_key_types.h"
#include "cellar/session/index_parts.h"
#include "cellar/session/row_converter.h"
#include "cellar/session/settled_literals.h"
#include "cellar/session/storage_parameters.h"
#include "cellar/session/zones.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {

namespace {

catalog::ColumnDescriptor* FindMutable(catalog::TableDescriptor* table, std::string_view name) {
  for (catalog::ColumnDescriptor& column : table->columns) {
    if (!column.dropped && !column.hidden && column.name == name) return &column;
  }
  return nullptr;
}

Status NoColumn(std::string_view name, std::string_view table) {
  return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                  "column \"{}\" of relation \"{}\" does not exist", name, table);
}

std::vector<catalog::ColumnId> Living(const catalog::TableDescriptor& table) {
  std::vector<catalog::ColumnId> columns;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (!column.dropped) columns.push_back(column.id);
  }
  return columns;
}

bool Uses(const catalog::IndexDescriptor& index, catalog::ColumnId column) {
  return std::any_of(index.key.begin(), index.key.end(),
                     [column](const auto& part) { return part.column == column; }) ||
         std::find(index.stored.begin(), index.stored.end(), column) != index.stored.end();
}

// Commands of one ALTER TABLE are carried out by kind, as PostgreSQL's passes are: what goes first,
// constraints last (https://www.postgresql.org/docs/15/sql-altertable.html).
int PassOf(ast::AlterTableKind kind) {
  using Kind = ast::AlterTableKind;
  switch (kind) {
    case Kind::kDropColumn:
    case Kind::kDropConstraint:
    case Kind::kDropDefault:
    case Kind::kDropNotNull:
    case Kind::kDropExpression:
    case Kind::kDropIdentity: return 0;
    case Kind::kSetType: return 1;
    case Kind::kAddColumn: return 2;
    case Kind::kSetNotNull:
    case Kind::kSetIdentity: return 3;
    case Kind::kAddConstraint:
    case Kind::kAlterPrimaryKey:
    case Kind::kSetDefault:
    case Kind::kAddIdentity: return 4;
    default: return 5;
  }
}

}  // namespace

Status Ddl::AlterTable(const ast::AlterTableStmt& statement) {
  if (statement.object_type == ast::ObjectType::kIndex) {
    return CheckAlterIndex(statement);
  }
  Result<catalog::TablePtr> found = FindRelation(statement.table);
  if (!found.ok()) {
    if (!statement.if_exists || found.status().code() != Code::kNotFound) return found.status();
    return Notice(Severity::kNotice, "00000",
                  fmt::format("relation \"{}\" does not exist, skipping", statement.table.name));
  }
  catalog::TablePtr table = *found;
  if (statement.object_type == ast::ObjectType::kView &&
      table->kind != catalog::RelationKind::kView) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a view",
                    table->name);
  }
  if (table->kind == catalog::RelationKind::kTable) CELLAR_TRY(CheckUnused(*table, "ALTER TABLE"));
  CELLAR_TRY(RefusePending(*table, "ALTER TABLE"));
  next_key_ = KeyThatFollows(statement, *table);
  only_command_ = statement.commands.size() == 1 || next_key_ != nullptr;
  if (next_key_ != nullptr) return AlterOne(statement.commands[0], &table);
  std::vector<const ast::AlterTableCommand*> commands;
  for (const ast::AlterTableCommand& command : statement.commands) commands.push_back(&command);
  std::stable_sort(commands.begin(), commands.end(),
                   [](const auto* a, const auto* b) { return PassOf(a->kind) < PassOf(b->kind); });
  std::set<std::string_view> retyped;
  for (const ast::AlterTableCommand* command : commands) {
    if (command->kind != ast::AlterTableKind::kSetType) continue;
    if (retyped.insert(command->name).second) continue;
    return UnsupportedError("cannot alter type of column \"{}\" twice", command->name);
  }
  for (const ast::AlterTableCommand* command : commands) CELLAR_TRY(AlterOne(*command, &table));
  return Status();
}

Status Ddl::AlterOne(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  using Kind = ast::AlterTableKind;
  if ((*table)->kind != catalog::RelationKind::kTable && command.kind != Kind::kChangeOwner) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a table",
                    (*table)->name);
  }
  catalog::TableDescriptor next = **table;
  auto update = [&]() -> Status {
    CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
    return Status();
  };
  catalog::ColumnDescriptor* column =
      command.name.empty() ? nullptr : FindMutable(&next, command.name);
  switch (command.kind) {
    case Kind::kAddColumn: return AddColumn(command, table);
    case Kind::kDropColumn: return DropColumn(command, table);
    case Kind::kSetType: return ChangeType(command, table);
    case Kind::kAddConstraint: return AddConstraint(command, table);
    case Kind::kAlterPrimaryKey: return AlterPrimaryKey(*command.constraint, table);
    case Kind::kDropConstraint: return DropConstraint(command, table);
    case Kind::kSetDefault:
      if (column == nullptr) return NoColumn(command.name, next.name);
      if (!column->generated_sql.empty()) {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "column \"{}\" of relation \"{}\" is a generated column", column->name,
                        next.name);
      }
      CELLAR_TRY(SetDefault(*command.expr, column));
      return update();
    case Kind::kDropDefault:
      if (column == nullptr) return NoColumn(command.name, next.name);
      if (column->identity != catalog::Identity::kNone) {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "column \"{}\" of relation \"{}\" is an identity column", column->name,
                        next.name)
            .WithHint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.");
      }
      column->default_sql.clear();
      return update();
    case Kind::kSetNotNull:
      if (column == nullptr) return NoColumn(command.name, next.name);
      if (column->not_null) return Status();
      return SetNotNull(command.name, table);
    case Kind::kDropNotNull:
      if (column == nullptr) return NoColumn(command.name, next.name);
      for (const catalog::IndexColumn& part : next.primary().key) {
        if (part.column == column->id) {
          return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                          "column \"{}\" is in a primary key", column->name);
        }
      }
      if (column->identity != catalog::Identity::kNone) {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "column \"{}\" of relation \"{}\" is an identity column", column->name,
                        next.name);
      }
      column->not_null = false;
      return update();
    case Kind::kDropExpression:
      if (column == nullptr) return NoColumn(command.name, next.name);
      if (column->generated_sql.empty()) {
        const std::string message =
            fmt::format("column \"{}\" of relation \"{}\" is not a stored generated column",
                        column->name, next.name);
        if (command.if_exists) return Notice(Severity::kNotice, "00000", message + ", skipping");
        return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState, "{}", message);
      }
      column->generated_sql.clear();
      return update();
    case Kind::kAddIdentity: {
      if (column == nullptr) return NoColumn(command.name, next.name);
      if (!column->not_null) {
        return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                        "column \"{}\" of relation \"{}\" must be declared NOT NULL before "
                        "identity can be added",
                        column->name, next.name);
      }
      if (column->identity != catalog::Identity::kNone) {
        return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                        "column \"{}\" of relation \"{}\" is already an identity column",
                        column->name, next.name);
      }
      if (!column->default_sql.empty() || !column->generated_sql.empty()) {
        return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                        "column \"{}\" of relation \"{}\" already has a default value",
                        column->name, next.name);
      }
      CELLAR_TRY(OwnsNone(*column, next));
      Target target{next.parent, next.name, next.temporary};
      CELLAR_TRY_ASSIGN(catalog::TablePtr sequence,
                        MakeSerialSequence(target, next.name, column->name, column->type,
                                           command.constraint->options));
      column->identity = command.constraint->generated_always ? catalog::Identity::kAlways
                                                              : catalog::Identity::kByDefault;
      column->sequence = sequence->id;
      column->default_sql = SequenceDefault(*sequence);
      const catalog::ColumnId id = column->id;
      CELLAR_TRY(update());
      return OwnSequence(sequence->id, (*table)->id, id);
    }
    case Kind::kSetIdentity: {
      if (column == nullptr) return NoColumn(command.name, next.name);
      catalog::TablePtr sequence = Catalog()->GetTable(column->sequence);
      if (column->identity == catalog::Identity::kNone || sequence == nullptr) {
        return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                        "column \"{}\" of relation \"{}\" is not an identity column", column->name,
                        next.name);
      }
      ast::OptionList options;
      for (const ast::Option& option : command.options) {
        if (option.name == "generated") {
          column->identity =
              option.integer == 'a' ? catalog::Identity::kAlways : catalog::Identity::kByDefault;
          continue;
        }
        ast::Option copy;
        copy.name = option.name;
        copy.value_kind = option.value_kind;
        copy.boolean = option.boolean;
        copy.integer = option.integer;
        copy.text = option.text;
        options.push_back(std::move(copy));
      }
      catalog::TableDescriptor changed = *sequence;
      std::optional<int64_t> restart;
      CELLAR_TRY(ApplySequenceOptions(options, false, &changed, &restart));
      CELLAR_TRY_ASSIGN(catalog::TablePtr stored, Editor().UpdateTable(std::move(changed)));
      if (restart) CELLAR_TRY(s_.db->sequences->Set(*stored, *restart, false));
      return update();
    }
    case Kind::kDropIdentity: {
      if (column == nullptr) return NoColumn(command.name, next.name);
      if (column->identity == catalog::Identity::kNone) {
        if (command.if_exists) {
          return Notice(
              Severity::kNotice, "00000",
              fmt::format("column \"{}\" of relation \"{}\" is not an identity column, skipping",
                          column->name, next.name));
        }
        return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                        "column \"{}\" of relation \"{}\" is not an identity column", column->name,
                        next.name);
      }
      const catalog::TableId sequence = column->sequence;
      column->identity = catalog::Identity::kNone;
      column->sequence = {};
      column->default_sql.clear();
      CELLAR_TRY(update());
      catalog::TablePtr owned = Catalog()->GetTable(sequence);
      return owned == nullptr ? Status() : Discard(owned);
    }
    case Kind::kChangeOwner:
      CELLAR_TRY(ChangeOwner(command.role, *table));
      *table = Catalog()->GetTable((*table)->id);
      return Status();
    case Kind::kValidateConstraint: return ValidateConstraint(command, table);
    case Kind::kAlterConstraint: {
      if (command.constraint == nullptr) break;
      const auto named = [&](const auto& one) { return one.name == command.name; };
      const auto key = std::find_if(next.foreign_keys.begin(), next.foreign_keys.end(), named);
      if (key == next.foreign_keys.end()) {
        if (std::any_of(next.checks.begin(), next.checks.end(), named) ||
            std::any_of(next.indexes.begin(), next.indexes.end(),
                        [&](const auto& one) { return one.constraint && named(one); })) {
          return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                          "constraint \"{}\" of relation \"{}\" is not a foreign key constraint",
                          command.name, next.name);
        }
        return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                        "constraint \"{}\" of relation \"{}\" does not exist", command.name,
                        next.name);
      }
      key->deferrable = command.constraint->deferrable;
      key->initially_deferred = command.constraint->initially_deferred;
      return update();
    }
    case Kind::kSetStatistics:
    case Kind::kSetColumnOptions:
    case Kind::kResetColumnOptions:
    case Kind::kSetStorage:
    case Kind::kSetCompression:
    case Kind::kClusterOn:
    case Kind::kDropCluster:
    case Kind::kSetLogged:
    case Kind::kDropOids:
    case Kind::kSetTablespace:
    case Kind::kReplicaIdentity: return Status();  // hints about a storage that is not ours
    case Kind::kSetOptions:
    case Kind::kResetOptions: {
      if (command.kind == Kind::kSetOptions) CELLAR_TRY(CheckTableParameters(command.options));
      const catalog::ZoneSettings before = next.zone;
      for (const ast::Option& option : command.options) {
        if (!IsZoneOption(option.name)) continue;
        CELLAR_TRY(ApplyZoneOption(option, command.kind == Kind::kResetOptions, &next.zone));
      }
      if (next.zone != before) CELLAR_TRY(update());
      return AlterLayout(command, table);
    }
    case Kind::kChangeGroups: return AlterGroups(command, table);
    default: break;
  }
  if (!command.action.empty())
    return UnsupportedError("ALTER TABLE ... {} is not supported", command.action);
  return UnsupportedError("this form of ALTER TABLE is not supported");
}

void DropHiddenPrimary(catalog::TableDescriptor* table) {
  if (table->indexes.size() < 2 || !table->indexes[1].primary) return;
  for (const catalog::IndexColumn& part : table->indexes[1].key) {
    for (catalog::ColumnDescriptor& column : table->columns) {
      if (column.id == part.column && column.hidden) column.dropped = true;
    }
  }
  table->indexes.erase(table->indexes.begin() + 1);
}

void PrepareCopy(catalog::TableDescriptor* table) {
  for (const catalog::IndexColumn& part : table->primary().key) {
    for (catalog::ColumnGroup& group : table->groups) std::erase(group.columns, part.column);
  }
  for (catalog::IndexDescriptor& index : table->indexes) {
    index.id = catalog::IndexId{table->next_index_id};
    table->next_index_id += index.primary ? codec::kIndexIdsOfPrimary : 1;
  }
}

// `next` has its new primary index in front of the old one, which held the hidden row id.
Status Ddl::ReplacePrimary(catalog::TableDescriptor next, catalog::TablePtr* table, bool may_job,
                           bool cascade) {
  DropHiddenPrimary(&next);
  return RewriteTable(std::move(next), table, may_job, cascade);
}

Status Ddl::RewriteTable(catalog::TableDescriptor next, catalog::TablePtr* table, bool may_job,
                         bool cascade) {
  CELLAR_TRY(RequireRowsForShards(next));
  CELLAR_TRY(RefuseDuringBuild(**table));
  PrepareCopy(&next);
  if (may_job) {
    CELLAR_TRY_ASSIGN(const bool by_job, WantsJob(**table));
    if (by_job) return RewriteByJob(std::move(next), *table, {}, "", cascade);
  }
  CELLAR_TRY_ASSIGN(catalog::TablePtr made, Editor().UpdateTable(std::move(next)));
  CELLAR_TRY(RewriteRows(*table, made, {}, ""));
  *table = made;
  return Status();
}

Status Ddl::RewriteRows(const catalog::TablePtr& from, const catalog::TablePtr& to,
                        catalog::ColumnId column, const std::string& expression) {
  CELLAR_TRY_ASSIGN(const std::unique_ptr<RowConverter> converter,
                    RowConverter::Make(&s_, from, to, column, expression));
  return s_.transaction->access->Rewrite(
      from, to,
      [&converter](const RowBatch& old, RowBatch* rows) { return converter->Convert(old, rows); });
}

Status Ddl::DropColumn(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  catalog::TableDescriptor next = **table;
  catalog::ColumnDescriptor* column = FindMutable(&next, command.name);
  if (column == nullptr) {
    if (command.if_exists) {
      return Notice(Severity::kNotice, "00000",
                    fmt::format("column \"{}\" of relation \"{}\" does not exist, skipping",
                                command.name, next.name));
    }
    return NoColumn(command.name, next.name);
  }
  const catalog::ColumnId id = column->id;
  const bool in_primary = Uses(next.primary(), id);
  CELLAR_TRY(ReleaseColumn(next, *column, command.cascade));
  // Not if views have gone. A job takes the foreign keys with the column.
  bool by_job = in_primary;
  if (by_job) {
    CELLAR_TRY_ASSIGN(by_job, WantsJob(**table));
  }
  for (const catalog::TablePtr& other : Catalog()->ListReferencing((*table)->id)) {
    for (const catalog::ForeignKey& key : other->foreign_keys) {
      if (key.referenced_table != (*table)->id ||
          std::find(key.referenced_columns.begin(), key.referenced_columns.end(), id) ==
              key.referenced_columns.end()) {
        continue;
      }
      if (!command.cascade) {
        return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                        "cannot drop column {} of table {} because other objects depend on it",
                        command.name, next.name)
            .WithDetail(fmt::format("constraint {} on table {} depends on column {} of table {}",
                                    key.name, other->name, command.name, next.name))
            .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
      }
      if (other->id == next.id || by_job) continue;
      catalog::TableDescriptor changed = *Catalog()->GetTable(other->id);
      changed.foreign_keys.erase(
          std::remove_if(
              changed.foreign_keys.begin(), changed.foreign_keys.end(),
              [&key](const catalog::ForeignKey& candidate) { return candidate.name == key.name; }),
          changed.foreign_keys.end());
      CELLAR_TRY(Editor().UpdateTable(std::move(changed)).status());
    }
  }
  // Checks and generated columns that mention the column.
  catalog::TableDescriptor without = next;
  FindMutable(&without, command.name)->dropped = true;
  std::vector<std::string> generated;
  for (const catalog::ColumnDescriptor& other : next.columns) {
    if (other.dropped || other.generated_sql.empty() || other.id == id) continue;
    CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(other.generated_sql));
    if (!CheckExpression(*expr, &without, other.type).ok()) generated.push_back(other.name);
  }
  if (!generated.empty() && !command.cascade) {
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop column {} of table {} because other objects depend on it",
                    command.name, next.name)
        .WithDetail(fmt::format("column {} of table {} depends on column {} of table {}",
                                generated[0], next.name, command.name, next.name))
        .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
  }
  if (!generated.empty()) {
    only_command_ = false;
    for (const std::string& name : generated) {
      CELLAR_TRY(Notice(
          Severity::kNotice, "00000",
          fmt::format("drop cascades to column {} of table {}", name, s_.QualifiedName(next))));
      ast::AlterTableCommand other;
      other.kind = ast::AlterTableKind::kDropColumn;
      other.name = name;
      other.cascade = true;
      CELLAR_TRY(DropColumn(other, table));
    }
    return DropColumn(command, table);
  }
  std::vector<catalog::CheckConstraint> checks;
  for (catalog::CheckConstraint& check : next.checks) {
    CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(check.expression));
    if (CheckExpression(*expr, &without, MakeType(TypeId::kBool)).ok()) checks.push_back(check);
  }
  next.checks = std::move(checks);
  next.foreign_keys.erase(
      std::remove_if(next.foreign_keys.begin(), next.foreign_keys.end(),
                     [id, &next](const catalog::ForeignKey& key) {
                       const auto has = [id](const auto& columns) {
                         return std::find(columns.begin(), columns.end(), id) != columns.end();
                       };
                       return has(key.columns) ||
                              (key.referenced_table == next.id && has(key.referenced_columns));
                     }),
      next.foreign_keys.end());
  const catalog::TableId sequence = column->sequence;
  std::vector<catalog::IndexId> cleared;
  for (size_t i = 1; i < next.indexes.size();) {
    CELLAR_TRY_ASSIGN(const bool mentioned, IndexMentions(next.indexes[i], command.name));
    if (!Uses(next.indexes[i], id) && !mentioned) {
      ++i;
      continue;
    }
    cleared.push_back(next.indexes[i].id);
    next.indexes.erase(next.indexes.begin() + static_cast<ptrdiff_t>(i));
  }
  column->dropped = true;
  column->not_null = false;
  column->default_sql.clear();
  column->generated_sql.clear();
  column->identity = catalog::Identity::kNone;
  column->sequence = {};
  if (in_primary) {
    // The table falls back to a hidden row id.
    AddHiddenRowId(&next);
    if (by_job) return ReplacePrimary(std::move(next), table, true, command.cascade);
    CELLAR_TRY(ReplacePrimary(std::move(next), table, false));
  } else {
    for (catalog::IndexId index : cleared)
      CELLAR_TRY(s_.transaction->access->ClearIndex(**table, index));
    CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
  }
  const catalog::TablePtr owned = Catalog()->GetTable(sequence);
  if (owned == nullptr) return Status();
  CELLAR_TRY(ReleaseSequence(
      *owned, fmt::format("column {} of table {}", command.name, s_.QualifiedName(**table)),
      (*table)->id, id, command.cascade));
  return Discard(owned);
}

Status Ddl::ChangeType(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  catalog::TableDescriptor next = **table;
  catalog::ColumnDescriptor* column = FindMutable(&next, command.name);
  if (column == nullptr) return NoColumn(command.name, next.name);
  CELLAR_TRY_ASSIGN(const std::vector<catalog::TablePtr> views, ViewsOfColumn(next, *column));
  if (!views.empty()) {
    return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                    "cannot alter type of a column used by a view or rule")
        .WithDetail(fmt::format("rule _RETURN on view {} depends on column \"{}\"",
                                s_.QualifiedName(*views[0]), command.name));
  }
  if (!column->generated_sql.empty() && command.expr != nullptr) {
    return SqlError(Code::kInvalid, "42611",
                    "cannot specify USING when altering type of generated column")
        .WithDetail(fmt::format("Column \"{}\" is a generated column.", command.name));
  }
  int serial = 0;
  CELLAR_TRY_ASSIGN(Type type, s_.TypeNamed(command.column->type, &serial));
  if (!IsStorable(type)) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidTableDefinition,
                    "column \"{}\" has pseudo-type {}", command.name, FormatType(type));
  }
  if (!command.column->collation.empty()) {
    CELLAR_TRY_ASSIGN(type.collation, CollationNamed(command.column->collation,
                                                     command.column->collation.location));
    if (!IsCollatable(type)) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "collations are not supported by type {}", FormatType(type));
    }
  }
  const bool same_collation = type.collation == column->type.collation;
  if (type == column->type && same_collation && command.expr == nullptr) return Status();
  FoldingPlanner planner(s_);
  sql::PlannerContext& context = planner.context;
  sql::EvalContext& eval = planner.eval;
  sql::ExprPtr bound;
  if (command.expr != nullptr) {
    Result<sql::ExprPtr> result =
        sql::BindTableExpression(*command.expr, table->get(), type, context);
    if (!result.ok()) return result.status();
    bound = std::move(*result);
  } else {
    const std::vector<catalog::ColumnId> living = Living(**table);
    const auto position = std::find(living.begin(), living.end(), column->id) - living.begin();
    Result<sql::ExprPtr> result =
        sql::CastTo(sql::MakeColumn(static_cast<int>(position), column->type), type,
                    sql::CastContext::kAssignment, &eval);
    if (!result.ok()) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "column \"{}\" cannot be cast automatically to type {}", command.name,
                      FormatType(type))
          .WithHint(fmt::format("You might need to specify \"USING {}::{}\".",
                                sql::QuoteIdentifier(command.name), FormatType(type)));
    }
    bound = std::move(*result);
  }
  const catalog::ColumnId id = column->id;
  const auto settle = [&](std::string* text, Type target) -> Status {
    if (text->empty()) return Status();
    CELLAR_TRY_ASSIGN(const ast::ExprPtr expr, sql::ParseExpression(*text));
    if (Mentions(*expr, command.name))
      *text = SettleLiterals(*text, **table, target, context, NameInSql);
    return Status();
  };
  const Type condition = MakeType(TypeId::kBool);
  for (catalog::CheckConstraint& check : next.checks)
    CELLAR_TRY(settle(&check.expression, condition));
  for (catalog::IndexDescriptor& index : next.indexes) {
    CELLAR_TRY(settle(&index.predicate, condition));
    for (catalog::IndexColumn& part : index.key) CELLAR_TRY(settle(&part.expression, Type()));
  }
  column->type = type;
  column->initial_value.reset();
  if (!column->default_sql.empty()) {
    CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(column->default_sql));
    if (!CheckExpression(*expr, nullptr, type).ok()) {
      return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                      "default for column \"{}\" cannot be cast automatically to type {}",
                      command.name, FormatType(type));
    }
  }
  catalog::TableDescriptor without = next;
  FindMutable(&without, command.name)->dropped = true;
  for (const catalog::ColumnDescriptor& other : next.columns) {
    if (other.dropped || other.generated_sql.empty() || other.id == id) continue;
    CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(other.generated_sql));
    if (CheckExpression(*expr, &without, other.type).ok()) continue;
    return UnsupportedError("cannot alter type of a column used by a generated column")
        .WithDetail(fmt::format("Column \"{}\" is used by generated column \"{}\".", command.name,
                                other.name));
  }
  const auto check_keys = [&](const catalog::TableDescriptor& holder) -> Status {
    for (const catalog::ForeignKey& key : holder.foreign_keys) {
      catalog::TablePtr other;
      const bool to_itself = key.referenced_table.value == 0;
      const bool to_us = to_itself ? &holder == &next : key.referenced_table == next.id;
      if (!to_us && !to_itself) other = Catalog()->GetTable(key.referenced_table);
      const catalog::TableDescriptor* referenced = to_us ? &next : other.get();
      if (referenced == nullptr) continue;
      for (size_t i = 0; i < key.columns.size(); ++i) {
        const catalog::ColumnDescriptor* ours = holder.FindColumn(key.columns[i]);
        const catalog::ColumnDescriptor* theirs = referenced->FindColumn(key.referenced_columns[i]);
        if (ours == nullptr || theirs == nullptr || (ours != column && theirs != column)) continue;
        CELLAR_TRY(CheckForeignKeyTypes(key.name, *ours, *theirs));
      }
    }
    return Status();
  };
  CELLAR_TRY(check_keys(next));
  for (const catalog::TablePtr& other : Catalog()->ListReferencing(next.id)) {
    if (other->id != next.id) CELLAR_TRY(check_keys(*other));
  }
  for (const catalog::CheckConstraint& check : next.checks) {
    CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(check.expression));
    CELLAR_TRY(CheckExpression(*expr, &next, MakeType(TypeId::kBool)));
  }
  CELLAR_TRY(RecheckIndexes(next));
  CELLAR_TRY(RefuseDuringBuild(**table));
  PrepareCopy(&next);
  const std::string expression =
      command.expr == nullptr ? std::string() : sql::DeparseExpr(*command.expr);
  CELLAR_TRY_ASSIGN(const bool by_job, WantsJob(**table));
  if (by_job) return RewriteByJob(std::move(next), *table, id, expression);
  CELLAR_TRY_ASSIGN(catalog::TablePtr made, Editor().UpdateTable(std::move(next)));
  CELLAR_TRY(RewriteRows(*table, made, id, expression));
  *table = made;
  return Status();
}

Status Ddl::AddConstraint(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  const ast::Constraint& constraint = *command.constraint;
  catalog::TableDescriptor next = **table;
  if (!constraint.using_index.empty()) return AddConstraintUsingIndex(constraint, table);
  std::vector<PendingForeignKey> foreign_keys;
  CELLAR_TRY(AddTableConstraint(constraint, &next, &foreign_keys));
  switch (constraint.kind) {
    case ast::ConstraintKind::kPrimaryKey: {
      return ReplacePrimary(std::move(next), table, true);
    }
    case ast::ConstraintKind::kUnique: return AddIndex(std::move(next), false, table);
    case ast::ConstraintKind::kCheck: {
      catalog::CheckConstraint& check = next.checks.back();
      CELLAR_TRY_ASSIGN(const bool by_job, WantsJob(**table));
      check.validated = !constraint.not_valid && !by_job;
      if (by_job && !constraint.not_valid) {
        return ValidateByJob(std::move(next), std::string(check.name), check.oid, {}, true);
      }
      CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
      return constraint.not_valid ? Status() : VerifyCheck(*table, (*table)->checks.back());
    }
    default: {
      CELLAR_TRY_ASSIGN(catalog::ForeignKey key,
                        MakeForeignKey(constraint, constraint.columns, next));
      for (const catalog::ForeignKey& other : next.foreign_keys) {
        if (other.name == key.name) {
          return SqlError(Code::kExists, sqlstate::kDuplicateObject,
                          "constraint \"{}\" for relation \"{}\" already exists", key.name,
                          next.name);
        }
      }
      CELLAR_TRY_ASSIGN(const bool by_job, WantsJob(**table));
      key.validated = !constraint.not_valid && !by_job;
      if (by_job && !constraint.not_valid) {
        if (key.oid == 0) {
          CELLAR_TRY_ASSIGN(const uint64_t id, Editor().AllocateId());
          key.oid = static_cast<uint32_t>(id) + catalog::TableDescriptor::kFirstOid;
        }
        const std::string name = key.name;
        const uint32_t oid = key.oid;
        next.foreign_keys.push_back(std::move(key));
        return ValidateByJob(std::move(next), name, oid, {}, true);
      }
      if (!constraint.not_valid) CELLAR_TRY(VerifyForeignKey(*table, key));
      CELLAR_TRY(AnnounceReference(key, next.id));
      next.foreign_keys.push_back(std::move(key));
      CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
      return Status();
    }
  }
}

Status Ddl::DropConstraint(const ast::AlterTableCommand& command, catalog::TablePtr* table) {
  catalog::TableDescriptor next = **table;
  auto check = std::find_if(next.checks.begin(), next.checks.end(),
                            [&](const auto& candidate) { return candidate.name == command.name; });
  if (check != next.checks.end()) {
    next.checks.erase(check);
    CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
    return Status();
  }
  auto key = std::find_if(next.foreign_keys.begin(), next.foreign_keys.end(),
                          [&](const auto& candidate) { return candidate.name == command.name; });
  if (key != next.foreign_keys.end()) {
    next.foreign_keys.erase(key);
    CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
    return Status();
  }
  auto index = std::find_if(next.indexes.begin(), next.indexes.end(), [&](const auto& candidate) {
    return candidate.constraint && candidate.name == command.name;
  });
  if (index == next.indexes.end()) {
    if (command.if_exists) {
      return Notice(Severity::kNotice, "00000",
                    fmt::format("constraint \"{}\" of relation \"{}\" does not exist, skipping",
                                command.name, next.name));
    }
    return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                    "constraint \"{}\" of relation \"{}\" does not exist", command.name, next.name);
  }
  // Asked before anything is written. A job takes the foreign keys with the key.
  bool by_job = index->primary;
  if (by_job) {
    CELLAR_TRY_ASSIGN(by_job, WantsJob(**table));
  }
  for (const catalog::TablePtr& other : Catalog()->ListReferencing(next.id)) {
    catalog::TableDescriptor changed = *other;
    for (size_t i = 0; i < changed.foreign_keys.size();) {
      const catalog::ForeignKey& candidate = changed.foreign_keys[i];
      bool uses = candidate.referenced_table == next.id &&
                  candidate.referenced_columns.size() == index->key.size();
      for (const catalog::IndexColumn& part : index->key) {
        uses = uses &&
               std::find(candidate.referenced_columns.begin(), candidate.referenced_columns.end(),
                         part.column) != candidate.referenced_columns.end();
      }
      if (!uses) {
        ++i;
        continue;
      }
      if (!command.cascade) {
        return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                        "cannot drop constraint {} on table {} because other objects depend on it",
                        command.name, next.name)
            .WithDetail(fmt::format("constraint {} on table {} depends on index {}", candidate.name,
                                    other->name, command.name))
            .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
      }
      changed.foreign_keys.erase(changed.foreign_keys.begin() + static_cast<ptrdiff_t>(i));
    }
    if (by_job || changed.foreign_keys.size() == other->foreign_keys.size()) continue;
    if (other->id == next.id)
      next.foreign_keys = changed.foreign_keys;
    else
      CELLAR_TRY(Editor().UpdateTable(std::move(changed)).status());
  }
  if (index->primary) {
    next.indexes.erase(index);
    if (next_key_ != nullptr) return TakeNextKey(std::move(next), table, by_job, command.cascade);
    AddHiddenRowId(&next);
    return ReplacePrimary(std::move(next), table, by_job, command.cascade);
  }
  const catalog::IndexId id = index->id;
  next.indexes.erase(index);
  CELLAR_TRY(s_.transaction->access->ClearIndex(**table, id));
  CELLAR_TRY_ASSIGN(*table, Editor().UpdateTable(std::move(next)));
  return Status();
}

Status Ddl::HoldStill(const catalog::TableDescriptor& table) {
  if (s_.transaction->read_only || s_.settings.hot().isolation == "serializable") return Status();
  const codec::KeyRange all = codec::PrefixRange(codec::TablePrefix(table.storage_id()));
  return s_.transaction->kv->AddReadConflict(all.start, all.end);
}

Status Ddl::ForEachBatch(const catalog::TablePtr& table,
                         const std::function<Status(RowBatch*)>& visit) {
  CELLAR_TRY(HoldStill(*table));
  table::ScanSpec spec;
  spec.table = table;
  spec.index = table->primary().id;
  spec.spans = {table::Span{}};
  spec.columns = Living(*table);
  CELLAR_TRY_ASSIGN(std::unique_ptr<table::Reader> reader,
                    s_.transaction->access->Scan(std::move(spec)));
  RowBatch batch;
  while (true) {
    CELLAR_TRY(s_.cancel.Check());
    CELLAR_TRY_ASSIGN(bool more, reader->Next(&batch));
    if (!more) return Status();
    CELLAR_TRY(visit(&batch));
  }
}

Status Ddl::VerifyNotNull(const catalog::TablePtr& table, catalog::ColumnId column) {
  const std::vector<catalog::ColumnId> living = Living(*table);
  const size_t position =
      static_cast<size_t>(std::find(living.begin(), living.end(), column) - living.begin());
  return ForEachBatch(table, [&](RowBatch* batch) -> Status {
    for (size_t row = 0; row < batch->size(); ++row) {
      if (!batch->column(position).IsNull(row)) continue;
      return ContainsNulls(table->FindColumn(column)->name, *table);
    }
    return Status();
  });
}

Status Ddl::FindBrokenConstraints(const catalog::CatalogSnapshot& catalog,
                                  const catalog::TablePtr& table,
                                  std::vector<std::string>* messages) {
  const auto note = [messages](const std::string& name, Status status) {
    switch (status.code()) {
      case Code::kConstraint: messages->emplace_back(status.message()); return Status();
      // Damage, which other findings name: of rows, values, or of what is referenced.
      case Code::kCorruption:
      case Code::kInvalid:
      case Code::kInternal:
        messages->push_back(
            fmt::format("constraint \"{}\" cannot be checked: {}", name, status.message()));
        return Status();
      default: return status;
    }
  };
  for (const catalog::CheckConstraint& check : table->checks) {
    if (check.validated) CELLAR_TRY(note(check.name, VerifyCheck(table, check)));
  }
  for (const catalog::ForeignKey& key : table->foreign_keys) {
    if (!key.validated) continue;
    const catalog::TablePtr referenced =
        key.referenced_table.value == 0 ? table : catalog.GetTable(key.referenced_table);
    CELLAR_TRY(note(key.name, VerifyForeignKey(table, key, referenced)));
  }
  return Status();
}

Status Ddl::VerifyCheck(const catalog::TablePtr& table, const catalog::CheckConstraint& check) {
  CELLAR_TRY_ASSIGN(ast::ExprPtr parsed, sql::ParseExpression(check.expression));
  FoldingPlanner planner(s_);
  sql::PlannerContext& context = planner.context;
  sql::EvalContext& eval = planner.eval;
  CELLAR_TRY_ASSIGN(sql::ExprPtr bound, sql::BindTableExpression(*parsed, table.get(),
                                                                 MakeType(TypeId::kBool), context));
  sql::Evaluator evaluator(bound.get());
  return ForEachBatch(table, [&](RowBatch* batch) -> Status {
    Arena values;
    eval.set_arena(&values);
    CELLAR_TRY_ASSIGN(const ColumnVector* holds,
                      evaluator.Eval(*batch, sql::Selection{nullptr, batch->size()}, eval));
    for (size_t row = 0; row < batch->size(); ++row) {
      if (holds->IsNull(row) || holds->ints()[row] != 0) continue;
      return BreaksCheck(check.name, *table);
    }
    return Status();
  });
}

Status Ddl::VerifyForeignKey(const catalog::TablePtr& table, const catalog::ForeignKey& key,
                             RowBatch* row) {
  return VerifyForeignKey(
      table, key,
      key.referenced_table.value == 0 ? table : Catalog()->GetTable(key.referenced_table), row);
}

Status Ddl::VerifyForeignKey(const catalog::TablePtr& table, const catalog::ForeignKey& key,
                             const catalog::TablePtr& referenced, RowBatch* row) {
  if (referenced == nullptr) {
    return InternalError("table referenced by constraint \"{}\" is missing", key.name);
  }
  CELLAR_TRY(HoldStill(*referenced));
  const std::vector<catalog::ColumnId> living = Living(*table);
  std::vector<size_t> positions;
  std::vector<Type> types;
  for (catalog::ColumnId column : key.columns) {
    positions.push_back(
        static_cast<size_t>(std::find(living.begin(), living.end(), column) - living.begin()));
    types.push_back(table->FindColumn(column)->type);
  }
  sql::EvalContext context;
  s_.SetUpContext(&context);
  sql::ExecEnvironment environment;
  environment.access = s_.transaction->access.get();
  environment.context = &context;
  const auto visit = [&](RowBatch* batch) -> Status {
    RowBatch keys;
    keys.Reset(types);
    for (size_t at = 0; at < batch->size(); ++at) {
      std::vector<Datum> values;
      bool null = false;
      for (size_t position : positions) {
        values.push_back(batch->column(position).Get(at));
        null |= values.back().is_null();
      }
      if (!null) keys.AppendRow(values);
    }
    return sql::CheckReferences(table, key, referenced, keys, environment);
  };
  return row != nullptr ? visit(row) : ForEachBatch(table, visit);
}

}  // namespace cellar::session
