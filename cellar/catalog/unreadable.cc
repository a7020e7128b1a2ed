#include "cellar/catalog/unreadable.h"

#include <algorithm>
#include <utility>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/snapshot_data.h"

namespace cellar::catalog {
namespace {

Status& Met() {
  thread_local Status met;
  return met;
}

}  // namespace

std::vector<UnreadableObject> ListUnreadable(const CatalogSnapshot& catalog) {
  std::vector<UnreadableObject> out;
  catalog.data().unreadable.VisitAll([&](uint64_t id, const std::string& why) {
    out.push_back({id, why});
    return true;
  });
  return out;
}

bool HasUnreadable(const CatalogSnapshot& catalog) {
  bool any = false;
  catalog.data().unreadable.VisitAll([&](uint64_t, const std::string&) {
    any = true;
    return false;
  });
  return any;
}

bool IsUnreadable(const CatalogSnapshot& catalog, uint64_t id) {
  return catalog.data().unreadable.Find(id) != nullptr;
}

uint64_t FindUnreadable(const CatalogSnapshot& catalog, NamespaceId parent, std::string_view name,
                        NameKind kind) {
  const UnreadableName* found = catalog.data().unreadable_names.Find(NameView{parent.value, name});
  if (found == nullptr) return 0;
  return kind == NameKind::kNamespace ? found->space : found->relation;
}

Status UnreadableError(const CatalogSnapshot& catalog, uint64_t id) {
  const std::string* why = catalog.data().unreadable.Find(id);
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                  "the descriptor of object {} is unreadable: {}", id, why == nullptr ? "" : *why)
      .WithHint(
          "Other objects are not concerned. Its name, id and data stay as they are; CHECK DATABASE "
          "lists what is damaged, and a backup has the descriptor.");
}

void ForgetUnreadableMet() {
  if (!Met().ok()) Met() = Status();
}
void NoteUnreadableMet(Status error) { Met() = std::move(error); }
const Status& UnreadableMet() { return Met(); }

Status ExplainUnreadable(Status status) {
  if (status.ok() || Met().ok()) return status;
  static constexpr std::string_view kNotThere[] = {
      sqlstate::kUndefinedTable, sqlstate::kUndefinedObject, sqlstate::kInvalidSchemaName,
      sqlstate::kInvalidCatalogName};
  const bool missing = status.code() == Code::kNotFound || status.code() == Code::kExists ||
                       status.code() == Code::kInternal ||
                       std::find(std::begin(kNotThere), std::end(kNotThere), status.sqlstate()) !=
                           std::end(kNotThere);
  return missing ? std::exchange(Met(), Status()) : status;
}

}  // namespace cellar::catalog
