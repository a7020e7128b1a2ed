#include "cellar/session/error_values.h"

#include <algorithm>

#include "cellar/session/acl.h"

namespace cellar::session {
namespace {

constexpr std::string_view kRow = "Failing row contains ", kKey = "Key (";
constexpr std::string_view kReferenced = " is still referenced from table ";
constexpr std::string_view kMissing = " is not present in table ";

bool MayRead(Session::Impl* session, const catalog::TableDescriptor& table,
             const std::vector<catalog::ColumnId>& columns) {
  if ((session->TableRights(table, session->user_oid).privileges & kSelect) != 0) return true;
  return std::all_of(columns.begin(), columns.end(), [&](catalog::ColumnId id) {
    const catalog::ColumnDescriptor* column = table.FindColumn(id);
    return column != nullptr &&
           (session->ColumnRights(table, *column, session->user_oid).privileges & kSelect) != 0;
  });
}

// Whether the values in `detail`, of a constraint of `table`, may be seen.
bool MaySeeValues(Session::Impl* session, const catalog::TableDescriptor& table,
                  std::string_view constraint, std::string_view detail) {
  std::vector<catalog::ColumnId> columns;
  const auto key = std::find_if(table.foreign_keys.begin(), table.foreign_keys.end(),
                                [&](const auto& one) { return one.name == constraint; });
  const auto index = std::find_if(table.indexes.begin(), table.indexes.end(),
                                  [&](const auto& one) { return one.name == constraint; });
  if (detail.starts_with(kKey) && key != table.foreign_keys.end()) {
    if (detail.find(kReferenced) == std::string_view::npos)
      return MayRead(session, table, key->columns);
    const catalog::TablePtr other = session->CurrentCatalog()->GetTable(
        key->referenced_table.value == 0 ? table.id : key->referenced_table);
    return other == nullptr || MayRead(session, *other, key->referenced_columns);
  }
  const bool plain = index != table.indexes.end() &&
                     std::all_of(index->key.begin(), index->key.end(),
                                 [](const auto& part) { return part.expression.empty(); });
  if (detail.starts_with(kKey) && plain) {
    for (const catalog::IndexColumn& part : index->key) columns.push_back(part.column);
  } else {
    for (const catalog::ColumnDescriptor& column : table.columns) {
      if (!column.dropped && !column.hidden) columns.push_back(column.id);
    }
  }
  return MayRead(session, table, columns);
}

}  // namespace

Status HideValues(Session::Impl* session, Status status) {
  const std::string_view detail = status.detail();
  if (status.code() != Code::kConstraint || session->IsSuperuser() || status.table_name().empty() ||
      !(detail.starts_with(kRow) || detail.starts_with(kKey)))
    return status;
  // Lower layers name the table without its schema: all of that name must be readable.
  const catalog::SnapshotPtr catalog = session->CurrentCatalog();
  std::vector<catalog::NamespaceId> spaces = {session->database_id};
  if (session->temporary_namespace.value != 0) spaces.push_back(session->temporary_namespace);
  for (const catalog::NamespacePtr& space : catalog->ListNamespaces(session->database_id))
    spaces.push_back(space->id);
  bool visible = true;
  for (const catalog::NamespaceId space : spaces) {
    const catalog::TablePtr table = catalog->FindTable(space, std::string(status.table_name()));
    if (table != nullptr)
      visible &= MaySeeValues(session, *table, status.constraint_name(), detail);
  }
  if (visible) return status;
  std::string left;
  for (const std::string_view rest : {kReferenced, kMissing}) {
    // The last one: a value may say the same.
    const size_t at = detail.rfind(rest);
    if (detail.starts_with(kKey) && at != std::string_view::npos)
      left = "Key" + std::string(detail.substr(at));
  }
  return std::move(status).WithDetail(std::move(left));
}

}  // namespace cellar::session
