// CREATE TYPE .. AS ENUM and what changes and drops such types.
//
// A relation's descriptor holds the definitions of the enum types that its columns have, so that it
// reads by itself. So whatever changes a type writes its relations too, in the same commit; and who
// gives a relation a column of a type writes the type (catalog/editor.cc). Either way one of two
// that run at once meets a conflict.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/table_texts.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/mentions.h"
#include "cellar/sql/parser/scan.h"

namespace cellar::session {
namespace {

std::string Spell(const ast::QualifiedName& name) {
  return name.schema.empty() ? name.name : name.schema + "." + name.name;
}

Status BadLabel(std::string_view label) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidName, "invalid enum label \"{}\"", label)
      .WithDetail(fmt::format("Labels must be {} bytes or less.", kMaxEnumLabelBytes));
}

Status NoLabel(std::string_view label) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "\"{}\" is not an existing enum label", label);
}

template <typename Matches>
std::string Retarget(const std::string& text, const std::string& replacement, Matches matches) {
  return sql::ReplaceMentions(text, sql::TypeMentions(text), replacement, matches);
}

// The text with its one literal 'from' as 'to'; nullopt when there is none, or several.
std::optional<std::string> WithLabel(const std::string& text, const std::string& from,
                                     const std::string& to) {
  const std::string literal = sql::QuoteLiteral(from);
  std::optional<std::string> out;
  for (size_t at = 0;;) {
    const sql::ScanToken token = sql::NextToken(text, at);
    if (token.kind == sql::ScanKind::kEnd) return out;
    at = token.end;
    if (token.kind != sql::ScanKind::kString ||
        text.substr(token.begin, token.end - token.begin) != literal) {
      continue;
    }
    if (out) return std::nullopt;
    out = text.substr(0, token.begin) + sql::QuoteLiteral(to) + text.substr(token.end);
  }
}

}  // namespace

std::string NameInSql(const Type& type) {
  if (type.enumeration == nullptr) return FormatType(type);
  return sql::QuoteIdentifier(type.enumeration->name) + (type.array ? "[]" : "");
}

Result<catalog::TablePtr> Ddl::FindType(const ast::QualifiedName& name) {
  CELLAR_TRY(sql::CheckSchemaUse(*Catalog(), s_.Scope(), name.schema));
  if (!name.schema.empty() && !s_.db->system.HasSchema(name.schema) &&
      !sql::FindSchema(*Catalog(), s_.Scope(), name.schema)) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                    name.schema);
  }
  catalog::TablePtr type = sql::FindType(*Catalog(), s_.Scope(), name.schema, name.name);
  if (type != nullptr) return type;
  if ((name.schema.empty() || name.schema == "pg_catalog") && TypeFromName(name.name)) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "{} is not an enum",
                    FormatType(*TypeFromName(name.name)));
  }
  if (sql::FindRelation(*Catalog(), s_.Scope(), name.schema, name.name) != nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is a table's row type",
                    name.name)
        .WithHint("Use ALTER TABLE instead.");
  }
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "type \"{}\" does not exist",
                  Spell(name));
}

Result<catalog::TablePtr> Ddl::FindOwnType(const ast::QualifiedName& name) {
  CELLAR_TRY_ASSIGN(catalog::TablePtr type, FindType(name));
  CELLAR_TRY(s_.CheckOwner(*type));
  return type;
}

// ---- Making

Status Ddl::CreateEnum(const ast::CreateEnumStmt& statement) {
  CELLAR_TRY(AuthorizeTarget(statement.name, false));
  CELLAR_TRY_ASSIGN(Target target, ResolveTarget(statement.name, false));
  if (NameIsTaken(target.space, target.name)) {
    return SqlError(Code::kExists, sqlstate::kDuplicateObject, "type \"{}\" already exists",
                    target.name);
  }
  EnumType definition;
  for (const std::string& label : statement.labels) {
    if (label.size() > kMaxEnumLabelBytes) return BadLabel(label);
    if (definition.FindName(label) != nullptr) {
      return SqlError(
                 Code::kExists, sqlstate::kUniqueViolation,
                 "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"")
          .WithDetail(fmt::format("Label \"{}\" occurs twice.", label));
    }
    const std::optional<int64_t> code = NextEnumCode(definition.labels, definition.labels.size());
    definition.labels.push_back({code.value_or(0), 0, label});
  }
  catalog::TableDescriptor type;
  type.kind = catalog::RelationKind::kType;
  type.parent = target.space;
  type.name = target.name;
  type.owner = s_.user;
  type.temporary = target.temporary;
  definition.name = target.name;
  type.enumeration = Intern(std::move(definition));
  return Editor().CreateTable(std::move(type)).status();
}

// ---- Changing

std::vector<catalog::TablePtr> Ddl::UsersOf(const catalog::TableDescriptor& type) {
  std::vector<catalog::TablePtr> users;
  for (const catalog::TablePtr& table : Catalog()->ListAllTables()) {
    if (catalog::HasEnumColumn(*table, type.oid())) users.push_back(table);
  }
  return users;
}

// Writes the changed type and the relations that have it.
Status Ddl::UpdateType(catalog::TableDescriptor next) {
  const catalog::SnapshotPtr before = Catalog();
  const catalog::TablePtr old = before->GetTable(next.id);
  CELLAR_TRY_ASSIGN(const catalog::TablePtr made, Editor().UpdateTable(std::move(next)));
  const bool renamed = made->name != old->name;
  const bool moved = made->parent != old->parent;
  const std::string name = sql::QuoteIdentifier(made->name);
  const std::string full = sql::QuoteIdentifier(s_.SchemaName(made->parent)) + "." + name;
  const sql::NameScope& scope = s_.Scope();
  for (const catalog::TablePtr& user : UsersOf(*made)) {
    catalog::TableDescriptor table = *user;
    catalog::ReplaceEnum(made->enumeration, &table);
    if (renamed) {
      const auto is_old = [&](const std::vector<std::string>& parts) {
        return parts.back() == old->name;
      };
      ForEachText(&table, [&](std::string* text) { *text = Retarget(*text, name, is_old); });
    }
    CELLAR_TRY(Editor().UpdateTable(std::move(table)).status());
  }
  if (!renamed && !moved) return Status();
  for (const catalog::TablePtr& view : Catalog()->ListAllTables()) {
    if (view->kind != catalog::RelationKind::kView) continue;
    catalog::TableDescriptor next_view = *view;
    next_view.view_sql = Retarget(view->view_sql, full, [&](const std::vector<std::string>& parts) {
      if (parts.back() != old->name) return false;
      const std::string schema = parts.size() > 1 ? parts[parts.size() - 2] : "";
      catalog::TablePtr meant = sql::FindType(*before, scope, schema, parts.back());
      if (meant == nullptr && schema.empty()) {
        meant = before->FindType(view->parent, parts.back());
      }
      return meant != nullptr && meant->id == made->id;
    });
    if (next_view.view_sql == view->view_sql) continue;
    CELLAR_TRY(Editor().UpdateTable(std::move(next_view)).status());
  }
  return Status();
}

Status Ddl::AlterEnum(const ast::AlterEnumStmt& statement) {
  CELLAR_TRY_ASSIGN(const catalog::TablePtr type, FindOwnType(statement.name));
  EnumType next = *type->enumeration;
  const auto exists = [&](const char* more) {
    return fmt::format("enum label \"{}\" already exists{}", statement.new_label, more);
  };
  if (statement.new_label.size() > kMaxEnumLabelBytes) return BadLabel(statement.new_label);
  const auto find = [&](const std::string& label) {
    return std::find_if(next.labels.begin(), next.labels.end(),
                        [&](const EnumLabel& one) { return one.name == label; });
  };
  if (statement.rename) {
    auto at = find(statement.old_label);
    if (at == next.labels.end()) return NoLabel(statement.old_label);
    if (next.FindName(statement.new_label) != nullptr) {
      return SqlError(Code::kExists, sqlstate::kDuplicateObject, "{}", exists(""));
    }
    at->name = statement.new_label;
  } else {
    if (next.FindName(statement.new_label) != nullptr) {
      if (statement.if_not_exists) {
        return Notice(Severity::kNotice, sqlstate::kDuplicateObject, exists(", skipping"));
      }
      return SqlError(Code::kExists, sqlstate::kDuplicateObject, "{}", exists(""));
    }
    auto at = next.labels.end();
    if (!statement.neighbour.empty()) {
      at = find(statement.neighbour);
      if (at == next.labels.end()) return NoLabel(statement.neighbour);
      if (statement.after) ++at;
    }
    const std::optional<int64_t> code =
        NextEnumCode(next.labels, static_cast<size_t>(at - next.labels.begin()));
    if (!code) {
      return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                      "no more labels fit between these two of enum {}",
                      FormatType(MakeEnum(type->enumeration)))
          .WithHint("Add the label elsewhere, or make a new type and change the columns to it.");
    }
    next.labels.insert(at, EnumLabel{*code, 0, statement.new_label});
  }
  catalog::TableDescriptor changed = *type;
  changed.enumeration = Intern(std::move(next));
  CELLAR_TRY(UpdateType(std::move(changed)));
  if (!statement.rename) return Status();

  // Stored expressions say the label as a literal. One that cannot be read any more means it.
  const auto cannot = [&](const std::string& what) {
    return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                    "{} uses label \"{}\" in a way that cannot follow the change", what,
                    statement.old_label)
        .WithHint("Drop it first, and make it anew afterwards.");
  };
  const auto follow = [&](const catalog::TableDescriptor* table, Type target,
                          const std::string& what, std::string* text) -> Status {
    if (text->find(statement.old_label) == std::string::npos) return Status();
    CELLAR_TRY_ASSIGN(ast::ExprPtr expr, sql::ParseExpression(*text));
    if (CheckExpression(*expr, table, target).ok()) return Status();
    const std::optional<std::string> renamed =
        WithLabel(*text, statement.old_label, statement.new_label);
    if (!renamed) return cannot(what);
    CELLAR_TRY_ASSIGN(expr, sql::ParseExpression(*renamed));
    if (!CheckExpression(*expr, table, target).ok()) return cannot(what);
    *text = *renamed;
    return Status();
  };
  for (const catalog::TablePtr& user : UsersOf(*type)) {
    catalog::TableDescriptor table = *user;
    for (catalog::ColumnDescriptor& column : table.columns) {
      if (column.dropped) continue;
      const std::string what =
          fmt::format("column \"{}\" of table \"{}\"", column.name, table.name);
      CELLAR_TRY(follow(nullptr, column.type, what, &column.default_sql));
      CELLAR_TRY(follow(user.get(), column.type, what, &column.generated_sql));
    }
    for (catalog::CheckConstraint& check : table.checks) {
      CELLAR_TRY(follow(user.get(), MakeType(TypeId::kBool),
                        fmt::format("constraint \"{}\"", check.name), &check.expression));
    }
    for (catalog::IndexDescriptor& index : table.indexes) {
      const std::string what = fmt::format("index \"{}\"", index.name);
      CELLAR_TRY(follow(user.get(), Type(), what, &index.predicate));
      for (catalog::IndexColumn& part : index.key) {
        CELLAR_TRY(follow(user.get(), Type(), what, &part.expression));
      }
    }
    CELLAR_TRY(Editor().UpdateTable(std::move(table)).status());
  }
  for (const catalog::TablePtr& view : Catalog()->ListAllTables()) {
    if (view->kind != catalog::RelationKind::kView ||
        view->view_sql.find(statement.old_label) == std::string::npos) {
      continue;
    }
    const std::optional<std::string> renamed =
        WithLabel(view->view_sql, statement.old_label, statement.new_label);
    const Result<std::shared_ptr<const sql::Plan>> plan = PlanView(*view, nullptr);
    if (plan.ok() || plan.status().sqlstate() != sqlstate::kInvalidTextRepresentation) continue;
    if (!renamed) return cannot(fmt::format("view \"{}\"", view->name));
    CELLAR_TRY(RewriteView(*view, *renamed));
  }
  return Status();
}

Status Ddl::RenameType(const ast::RenameStmt& statement) {
  CELLAR_TRY_ASSIGN(const catalog::TablePtr type, FindOwnType(NameOf(statement.object)));
  CELLAR_TRY(s_.CheckSchema(type->parent, kCreate));
  if (NameIsTaken(type->parent, statement.new_name)) {
    return SqlError(Code::kExists, sqlstate::kDuplicateObject, "type \"{}\" already exists",
                    statement.new_name);
  }
  catalog::TableDescriptor next = *type;
  next.name = statement.new_name;
  return UpdateType(std::move(next));
}

Result<catalog::NamespaceId> Ddl::NewPlaceOf(const catalog::TableDescriptor& made,
                                             std::string_view noun, const std::string& schema) {
  const std::optional<catalog::NamespaceId> space = sql::FindSchema(*Catalog(), s_.Scope(), schema);
  if (!space) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                    schema);
  }
  CELLAR_TRY(s_.CheckSchema(*space, kCreate));
  if (*space == made.parent) return *space;
  if (s_.temporary_namespace.value != 0 &&
      (*space == s_.temporary_namespace || made.parent == s_.temporary_namespace)) {
    return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                    "cannot move objects into or out of temporary schemas");
  }
  if (NameIsTaken(*space, made.name)) {
    return SqlError(Code::kExists, sqlstate::kDuplicateObject,
                    "{} \"{}\" already exists in schema \"{}\"", noun, made.name, schema);
  }
  return *space;
}

Status Ddl::MoveType(const ast::AlterObjectSchemaStmt& statement) {
  CELLAR_TRY_ASSIGN(const catalog::TablePtr type, FindOwnType(NameOf(statement.object)));
  CELLAR_TRY_ASSIGN(const catalog::NamespaceId space,
                    NewPlaceOf(*type, "type", statement.new_schema));
  if (space == type->parent) return Status();
  catalog::TableDescriptor next = *type;
  next.parent = space;
  return UpdateType(std::move(next));
}

// ---- Dropping

Status Ddl::DropType(const catalog::TablePtr& type, bool cascade) {
  const std::string name = FormatType(MakeEnum(type->enumeration));
  std::vector<std::pair<catalog::TablePtr, std::string>> columns;
  std::string detail;
  for (const catalog::TablePtr& user : UsersOf(*type)) {
    for (const catalog::ColumnDescriptor& column : user->columns) {
      if (column.dropped || column.type.enumeration == nullptr ||
          column.type.enumeration->oid != type->oid()) {
        continue;
      }
      columns.emplace_back(user, column.name);
      const bool view = user->kind == catalog::RelationKind::kView;
      if (!detail.empty()) detail += "\n";
      detail +=
          fmt::format("column {} of {} {} depends on type {}", column.name, view ? "view" : "table",
                      s_.QualifiedName(*user), FormatType(Plain(column.type)));
    }
  }
  if (!columns.empty() && !cascade) {
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop type {} because other objects depend on it", name)
        .WithDetail(detail)
        .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
  }
  if (columns.size() > 1) {
    CELLAR_TRY(Notice(Severity::kNotice, "00000",
                      fmt::format("drop cascades to {} other objects", columns.size())));
  }
  for (const auto& [user, column] : columns) {
    catalog::TablePtr living = Catalog()->GetTable(user->id);
    if (living == nullptr) continue;
    const bool view = living->kind == catalog::RelationKind::kView;
    if (columns.size() == 1) {
      CELLAR_TRY(Notice(Severity::kNotice, "00000",
                        view ? fmt::format("drop cascades to view {}", s_.QualifiedName(*user))
                             : fmt::format("drop cascades to column {} of table {}", column,
                                           s_.QualifiedName(*user))));
    }
    if (view) {
      CELLAR_TRY(Discard(living));
      continue;
    }
    ast::AlterTableCommand drop;
    drop.kind = ast::AlterTableKind::kDropColumn;
    drop.name = column;
    drop.cascade = true;
    CELLAR_TRY(DropColumn(drop, &living));
  }
  return Discard(Catalog()->GetTable(type->id));
}

Status Ddl::DropTypes(const ast::ObjectName& object, const ast::DropStmt& statement) {
  const ast::QualifiedName name = NameOf(object);
  Result<catalog::TablePtr> found = FindType(name);
  if (!found.ok()) {
    if (!statement.if_exists || found.status().code() != Code::kNotFound) {
      if (found.status().sqlstate() != sqlstate::kWrongObjectType || !TypeFromName(name.name)) {
        return found.status();
      }
      return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                      "cannot drop type {} because it is required by the database system",
                      FormatType(*TypeFromName(name.name)));
    }
    if (found.status().sqlstate() == sqlstate::kInvalidSchemaName) {
      return Notice(Severity::kNotice, "00000",
                    fmt::format("schema \"{}\" does not exist, skipping", name.schema));
    }
    return Notice(Severity::kNotice, "00000",
                  fmt::format("type \"{}\" does not exist, skipping", Spell(name)));
  }
  const catalog::TablePtr& type = *found;
  if (statement.object_type == ast::ObjectType::kDomain) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a domain",
                    type->name);
  }
  // The owner of a schema may drop what others put into it.
  const catalog::NamespacePtr space = Catalog()->GetNamespace(type->parent);
  if (space == nullptr || !s_.HasPrivilegesOf(s_.OwnerOf(*space, false))) {
    CELLAR_TRY(s_.CheckOwner(*type));
  }
  return DropType(type, statement.cascade);
}

}  // namespace cellar::session
