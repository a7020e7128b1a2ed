// Objects whose descriptors do not read (docs/decisions/0028-unreadable-descriptors.md): the store
// opens without them. They have no place in a snapshot's lists and look-ups; that they exist is
// kept beside: their ids and names are in use, and their data is nobody's to delete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cellar/catalog/catalog.h"

namespace cellar::catalog {

struct UnreadableObject {
  uint64_t id;
  std::string why;
};

// In the order of ids.
std::vector<UnreadableObject> ListUnreadable(const CatalogSnapshot& catalog);
bool HasUnreadable(const CatalogSnapshot& catalog);
bool IsUnreadable(const CatalogSnapshot& catalog, uint64_t id);

enum class NameKind : uint8_t { kNamespace, kRelation };
// The unreadable object that a name stands for, also as an index of it; 0: none.
uint64_t FindUnreadable(const CatalogSnapshot& catalog, NamespaceId parent, std::string_view name,
                        NameKind kind);
// XX001, about an object of IsUnreadable.
Status UnreadableError(const CatalogSnapshot& catalog, uint64_t id);

// Look-ups, which can only answer that there is nothing, note for their thread what unreadable
// object they have met, so that whoever reports the failure can tell the reason.
void ForgetUnreadableMet();
void NoteUnreadableMet(Status error);
// XX001 of the last one met since ForgetUnreadableMet, or OK.
const Status& UnreadableMet();
// Puts it in the place of an error that says of an object that it is not there, or is there
// already.
Status ExplainUnreadable(Status status);

}  // namespace cellar::catalog
