// What a CatalogSnapshot holds. Private to the layer.
#pragma once

#include <string>
#include <utility>

#include "cellar/catalog/catalog.h"
#include "cellar/catalog/persistent_map.h"

namespace cellar::catalog {

// A name in a namespace as its parent's id and itself.
using NameInParent = std::pair<uint64_t, std::string>;
// The same without owning the text, for look-ups.
struct NameView {
  uint64_t parent;
  std::string_view name;
};
inline int Compare(const NameInParent& a, const NameView& b) {
  if (a.first != b.parent) return a.first < b.parent ? -1 : 1;
  return std::string_view(a.second).compare(b.name);
}
inline bool operator<(const NameInParent& a, const NameView& b) { return Compare(a, b) < 0; }
inline bool operator<(const NameView& a, const NameInParent& b) { return Compare(b, a) > 0; }

// Who has a relation name: a relation, or an index of it.
struct RelationName {
  TableId table;
  bool is_index = false;
  IndexId index;
};

// Whose descriptor does not read, of those that a name stands for; 0: nobody's.
struct UnreadableName {
  uint64_t space = 0, relation = 0;
};

// Objects and the names derived from them. Set and its kin keep the derived maps right.
struct CatalogSnapshot::Data {
  PersistentMap<uint64_t, NamespacePtr> namespaces;  // by id, living
  PersistentMap<uint64_t, TablePtr> tables;
  PersistentMap<uint64_t, NamespacePtr> dropped_namespaces;
  PersistentMap<uint64_t, TablePtr> dropped_tables;
  PersistentMap<NameInParent, uint64_t> namespace_names;
  PersistentMap<NameInParent, RelationName> relation_names;
  PersistentMap<uint64_t, RelationName> index_oids;
  PersistentMap<uint64_t, uint64_t> types;     // oid, also of the array type, to id; living
  PersistentMap<uint64_t, uint64_t> storages;  // storage id to table id, where they differ
  PersistentMap<std::pair<uint64_t, uint64_t>, bool> referencing;  // (referenced, referencing)
  // Ids of descriptors that do not read, and why; their names, by the name records. Of a namespace
  // `namespaces` has what its name record tells, so that what lies in it has a parent.
  PersistentMap<uint64_t, std::string> unreadable;
  PersistentMap<NameInParent, UnreadableName> unreadable_names;
  uint64_t generation = 0;
  uint64_t greatest_id = 1;  // of all that were ever in it

  // Replaces the object of this id, whatever its state.
  void Set(const NamespacePtr& space);
  void Set(const TablePtr& table);
  // Of a namespace, the first unreadable object in it; 0: none.
  uint64_t UnreadableIn(NamespaceId parent) const;
  // The object is gone for ever.
  void Remove(const NamespaceDescriptor& space);
  void Remove(const TableDescriptor& table);

 private:
  void Forget(const TableDescriptor& table);
  void ForgetStorage(const TableDescriptor& table);
};

}  // namespace cellar::catalog
