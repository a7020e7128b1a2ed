// Tables: making, reading and changing them as a whole.
#include "cellar/base/sqlstate.h"
#include "cellar/rpc/admin/handlers.h"
#include "cellar/rpc/admin/messages.h"
#include "cellar/rpc/admin/statements.h"

namespace cellar::rpc::admin {
namespace {

Status AnswerTable(AdminCall* call, const Place& place, v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const catalog::TablePtr table, call->FindRelation(place));
  if (table->kind != catalog::RelationKind::kTable) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a table",
                    place.name);
  }
  PutTable(*call->Catalog(), *table, answer);
  return Status();
}

std::vector<std::string> GroupTexts(const v1::Table& table) {
  std::vector<std::string> texts;
  for (const v1::ColumnGroup& group : table.groups()) {
    texts.push_back(QuoteIdentifier(group.name()) + " (" + NameList(group.columns()) + ")");
  }
  return texts;
}

Result<std::string> CreateText(const v1::Table& table, const Place& place, bool if_not_exists) {
  std::vector<std::string> parts;
  for (const v1::Column& column : table.columns()) {
    CELLAR_TRY_ASSIGN(std::string text, ColumnText(column));
    parts.push_back(std::move(text));
  }
  for (const v1::Index& index : table.indexes()) {
    if (!IsKeyConstraint(index)) continue;
    CELLAR_TRY_ASSIGN(std::string text, KeyConstraintText(index));
    parts.push_back(std::move(text));
  }
  for (const v1::CheckConstraint& check : table.checks()) {
    CELLAR_TRY_ASSIGN(std::string text, CheckText(check));
    parts.push_back(std::move(text));
  }
  for (const v1::ForeignKey& key : table.foreign_keys()) {
    CELLAR_TRY_ASSIGN(std::string text, ForeignKeyText(key, place));
    parts.push_back(std::move(text));
  }
  for (const std::string& group : GroupTexts(table)) parts.push_back("GROUP " + group);
  std::vector<std::string> options, unset;
  ZoneTexts(table.zone(), ZonePaths(table.zone()), &options, &unset);
  if (table.layout() != v1::LAYOUT_UNSPECIFIED) {
    CELLAR_TRY_ASSIGN(const std::string layout, LayoutText(table.layout()));
    options.push_back("layout = " + layout);
  }
  std::string text = if_not_exists ? "CREATE TABLE IF NOT EXISTS " : "CREATE TABLE ";
  text += place.Relation() + " (" + Join(parts) + ")";
  if (!options.empty()) text += " WITH (" + Join(options) + ")";
  return text;
}

}  // namespace

Status CreateTable(AdminCall* call, const v1::CreateTableRequest& request, v1::Table* answer) {
  const v1::Table& table = request.table();
  CELLAR_TRY_ASSIGN(const Place place, RelationPlace(table.path()));
  CELLAR_TRY(call->Enter(place.database));
  if (request.if_not_exists() && call->FindRelation(place).ok()) {
    return AnswerTable(call, place, answer);
  }
  CELLAR_TRY_ASSIGN(std::string text, CreateText(table, place, false));
  std::vector<std::string> statements = {std::move(text)};
  for (const v1::Index& index : table.indexes()) {
    if (!IsKeyConstraint(index)) {
      CELLAR_TRY_ASSIGN(std::string create, CreateIndexText(index, place.Relation(), false));
      statements.push_back(std::move(create));
    }
    if (index.comment().empty()) continue;
    if (index.name().empty()) return BadRequest("an index with a comment needs a name");
    statements.push_back(
        CommentText("INDEX " + sql::QuoteQualified(place.schema, index.name()), index.comment()));
  }
  for (const v1::Column& column : table.columns()) {
    if (column.comment().empty()) continue;
    statements.push_back(CommentText(
        "COLUMN " + place.Relation() + "." + QuoteIdentifier(column.name()), column.comment()));
  }
  if (!table.comment().empty()) {
    statements.push_back(CommentText("TABLE " + place.Relation(), table.comment()));
  }
  if (!table.owner().empty()) {
    statements.push_back("ALTER TABLE " + place.Relation() + " OWNER TO " +
                         QuoteIdentifier(table.owner()));
  }
  CELLAR_TRY(call->RunAll(statements));
  return AnswerTable(call, place, answer);
}

Status GetTable(AdminCall* call, const v1::GetTableRequest& request, v1::Table* answer) {
  CELLAR_TRY_ASSIGN(const Place place, RelationPlace(request.path()));
  CELLAR_TRY(call->Enter(place.database));
  CELLAR_TRY(AnswerTable(call, place, answer));
  return TrimTo(request.read_mask(), answer);
}

Status UpdateTable(AdminCall* call, const v1::UpdateTableRequest& request, v1::Table* answer) {
  const v1::Table& table = request.table();
  CELLAR_TRY_ASSIGN(const Place place, RelationPlace(table.path()));
  CELLAR_TRY_ASSIGN(
      const std::set<std::string> paths,
      UpdatePaths(request.update_mask(), table, {"owner", "comment", "zone", "layout", "groups"}));
  const std::string alter = "ALTER TABLE " + place.Relation();
  std::vector<std::string> statements, set, reset;
  ZoneTexts(table.zone(), paths, &set, &reset);
  AddOptionStatements(alter, set, reset, &statements);
  std::vector<std::string> storage;
  if (paths.contains("layout")) {
    CELLAR_TRY_ASSIGN(const std::string layout, LayoutText(table.layout()));
    storage.push_back("layout = " + layout);
  }
  if (paths.contains("groups")) {
    storage.push_back("groups = " + QuoteLiteral(Join(GroupTexts(table))));
  }
  if (!storage.empty()) statements.push_back(alter + " SET (" + Join(storage) + ")");
  if (paths.contains("comment")) {
    statements.push_back(CommentText("TABLE " + place.Relation(), table.comment()));
  }
  if (paths.contains("owner")) {
    statements.push_back(alter + " OWNER TO " + QuoteIdentifier(table.owner()));
  }
  CELLAR_TRY(call->Enter(place.database));
  CELLAR_TRY(call->Atomically([&]() -> Status {
    CELLAR_TRY_ASSIGN(const catalog::TablePtr now, call->FindRelation(place));
    CELLAR_TRY(call->CheckVersion(table.version(), now->version));
    for (const std::string& statement : statements) CELLAR_TRY(call->Run(statement));
    return Status();
  }));
  return AnswerTable(call, place, answer);
}

}  // namespace cellar::rpc::admin
