// Columns, indexes and constraints of a table.
#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/rpc/admin/handlers.h"
#include "cellar/rpc/admin/messages.h"
#include "cellar/rpc/admin/statements.h"

namespace cellar::rpc::admin {
namespace {

Result<Place> EnterTable(AdminCall* call, const std::string& path) {
  CELLAR_TRY_ASSIGN(Place place, RelationPlace(path));
  CELLAR_TRY(call->Enter(place.database));
  return place;
}

Status AnswerTable(AdminCall* call, const Place& place, v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const catalog::TablePtr table, call->FindRelation(place));
  PutTable(*call->Catalog(), *table, answer);
  return Status();
}

Status NoIndex(const std::string& name, const Place& place) {
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                  "index \"{}\" of table \"{}\" does not exist", name, place.name)
      .WithTable(place.schema, place.name);
}

std::string AlterTable(const Place& place) { return "ALTER TABLE " + place.Relation() + " "; }

// Runs a statement that a job may carry out.
Status ChangeByJob(AdminCall* call, const Place& place, const std::string& statement, bool wait,
                   v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const uint64_t job, call->RunOrLeave(statement, wait, place.name));
  CELLAR_TRY(AnswerTable(call, place, answer));
  if (job != 0) answer->set_job(job);
  return Status();
}

}  // namespace

Status AddColumn(AdminCall* call, const v1::AddColumnRequest& request, v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  CELLAR_TRY_ASSIGN(const std::string column, ColumnText(request.column()));
  const Result<catalog::TablePtr> before = call->FindRelation(place);
  const bool exists = before.ok() && (*before)->FindColumn(request.column().name()) != nullptr;
  if (exists && request.if_not_exists()) return AnswerTable(call, place, answer);
  std::vector<std::string> statements = {AlterTable(place) + "ADD COLUMN " + column};
  if (!request.column().comment().empty()) {
    statements.push_back(
        CommentText("COLUMN " + place.Relation() + "." + QuoteIdentifier(request.column().name()),
                    request.column().comment()));
  }
  CELLAR_TRY(call->RunAll(statements));
  return AnswerTable(call, place, answer);
}

Status UpdateColumn(AdminCall* call, const v1::UpdateColumnRequest& request, v1::Table* answer) {
  const v1::Column& column = request.column();
  CELLAR_TRY_ASSIGN(const std::set<std::string> paths,
                    UpdatePaths(request.update_mask(), column,
                                {"name", "type", "not_null", "default_expression", "comment"}));
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  const std::string name = QuoteIdentifier(request.column_name());
  const std::string alter = AlterTable(place) + "ALTER COLUMN " + name + " ";
  std::vector<std::string> statements;
  if (paths.contains("type")) {
    CELLAR_TRY_ASSIGN(std::string type, TypeText(column.type()));
    if (!request.using_expression().empty()) {
      CELLAR_TRY_ASSIGN(const std::string value, ExpressionText(request.using_expression()));
      type += " USING (" + value + ")";
    }
    statements.push_back(alter + "TYPE " + type);
  } else if (!request.using_expression().empty()) {
    return BadRequest("using_expression is given, but the type does not change");
  }
  if (paths.contains("default_expression")) {
    std::string change = "DROP DEFAULT";
    if (!column.default_expression().empty()) {
      CELLAR_TRY_ASSIGN(const std::string value, ExpressionText(column.default_expression()));
      change = "SET DEFAULT (" + value + ")";
    }
    statements.push_back(alter + change);
  }
  if (paths.contains("not_null")) {
    statements.push_back(alter + (column.not_null() ? "SET NOT NULL" : "DROP NOT NULL"));
  }
  if (paths.contains("comment")) {
    statements.push_back(CommentText("COLUMN " + place.Relation() + "." + name, column.comment()));
  }
  if (paths.contains("name") && column.name() != request.column_name()) {
    statements.push_back(AlterTable(place) + "RENAME COLUMN " + name + " TO " +
                         QuoteIdentifier(column.name()));
  }
  CELLAR_TRY(call->RunAll(statements));
  return AnswerTable(call, place, answer);
}

Status DropColumn(AdminCall* call, const v1::DropColumnRequest& request, v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  std::string text = AlterTable(place) + "DROP COLUMN ";
  if (request.if_exists()) text += "IF EXISTS ";
  text += QuoteIdentifier(request.column_name());
  if (request.cascade()) text += " CASCADE";
  CELLAR_TRY(call->Run(text));
  return AnswerTable(call, place, answer);
}

Status CreateIndex(AdminCall* call, const v1::CreateIndexRequest& request, v1::Index* answer) {
  const v1::Index& index = request.index();
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  CELLAR_TRY_ASSIGN(const catalog::TablePtr before, call->FindRelation(place));
  if (request.if_not_exists() && !index.name().empty()) {
    if (const catalog::IndexDescriptor* there = before->FindIndex(index.name())) {
      PutIndex(*before, *there, answer);
      return Status();
    }
  }
  std::string text;
  if (IsKeyConstraint(index)) {
    CELLAR_TRY_ASSIGN(text, KeyConstraintText(index));
    text = AlterTable(place) + "ADD " + text;
  } else {
    CELLAR_TRY_ASSIGN(text, CreateIndexText(index, place.Relation(), false));
  }
  CELLAR_TRY_ASSIGN(const uint64_t job, call->RunOrLeave(text, request.wait(), place.name));
  CELLAR_TRY_ASSIGN(catalog::TablePtr now, call->FindRelation(place));
  const catalog::IndexDescriptor* made = nullptr;
  for (const catalog::IndexDescriptor& one : now->indexes) {
    if (index.name().empty() ? before->FindIndex(one.name) == nullptr : one.name == index.name()) {
      made = &one;
    }
  }
  if (made == nullptr) return NoIndex(index.name(), place);
  if (!index.comment().empty()) {
    CELLAR_TRY(call->Run(
        CommentText("INDEX " + sql::QuoteQualified(place.schema, made->name), index.comment())));
  }
  PutIndex(*now, *made, answer);
  answer->set_comment(index.comment());
  if (job != 0) answer->set_job(job);
  return Status();
}

Status UpdateIndex(AdminCall* call, const v1::UpdateIndexRequest& request, v1::Index* answer) {
  CELLAR_TRY_ASSIGN(const std::set<std::string> paths,
                    UpdatePaths(request.update_mask(), request.index(), {"name", "comment"}));
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  CELLAR_TRY_ASSIGN(const catalog::TablePtr before, call->FindRelation(place));
  const catalog::IndexDescriptor* index = before->FindIndex(request.index_name());
  if (index == nullptr) return NoIndex(request.index_name(), place);
  const std::string what = "INDEX " + sql::QuoteQualified(place.schema, request.index_name());
  std::vector<std::string> statements;
  std::string name = request.index_name();
  if (paths.contains("comment")) statements.push_back(CommentText(what, request.index().comment()));
  if (paths.contains("name") && request.index().name() != name) {
    name = request.index().name();
    statements.push_back("ALTER " + what + " RENAME TO " + QuoteIdentifier(name));
  }
  CELLAR_TRY(call->RunAll(statements));
  CELLAR_TRY_ASSIGN(const catalog::TablePtr now, call->FindRelation(place));
  index = now->FindIndex(name);
  if (index == nullptr) return NoIndex(name, place);
  PutIndex(*now, *index, answer);
  return Status();
}

Status DropIndex(AdminCall* call, const v1::DropIndexRequest& request, v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  CELLAR_TRY_ASSIGN(const catalog::TablePtr table, call->FindRelation(place));
  if (table->FindIndex(request.index_name()) != nullptr) {
    CELLAR_TRY(call->Run("DROP INDEX " + sql::QuoteQualified(place.schema, request.index_name())));
  } else if (!request.if_exists()) {
    return NoIndex(request.index_name(), place);
  }
  return AnswerTable(call, place, answer);
}

Status AddConstraint(AdminCall* call, const v1::AddConstraintRequest& request, v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  std::string text;
  bool validated = true;
  if (request.has_check()) {
    CELLAR_TRY_ASSIGN(text, CheckText(request.check()));
    validated = request.check().validated();
  } else if (request.has_foreign_key()) {
    CELLAR_TRY_ASSIGN(text, ForeignKeyText(request.foreign_key(), place));
    validated = request.foreign_key().validated();
  } else {
    return BadRequest("the request names no constraint");
  }
  return ChangeByJob(call, place,
                     AlterTable(place) + "ADD " + text + (validated ? "" : " NOT VALID"),
                     request.wait(), answer);
}

Status ValidateConstraint(AdminCall* call, const v1::ValidateConstraintRequest& request,
                          v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  return ChangeByJob(
      call, place,
      AlterTable(place) + "VALIDATE CONSTRAINT " + QuoteIdentifier(request.constraint_name()),
      request.wait(), answer);
}

Status DropConstraint(AdminCall* call, const v1::DropConstraintRequest& request,
                      v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const Place place, EnterTable(call, request.table()));
  std::string text = AlterTable(place) + "DROP CONSTRAINT ";
  if (request.if_exists()) text += "IF EXISTS ";
  text += QuoteIdentifier(request.constraint_name());
  if (request.cascade()) text += " CASCADE";
  CELLAR_TRY(call->Run(text));
  return AnswerTable(call, place, answer);
}

}  // namespace cellar::rpc::admin
