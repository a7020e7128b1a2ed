// Look-ups in an immutable snapshot of the catalog.
#include <algorithm>

#include "cellar/catalog/catalog_internal.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/catalog/validation.h"

namespace cellar::catalog {

uint64_t GreatestIdOf(const TableDescriptor& table) {
  uint64_t greatest = std::max(table.id.value, table.storage.value);
  const auto note = [&greatest](uint32_t oid) {
    if (oid < TableDescriptor::kFirstOid) return;
    greatest = std::max<uint64_t>(greatest, oid - TableDescriptor::kFirstOid);
  };
  for (const IndexDescriptor& index : table.indexes) note(index.oid);
  for (const CheckConstraint& check : table.checks) note(check.oid);
  for (const ForeignKey& foreign : table.foreign_keys) note(foreign.oid);
  if (table.enumeration != nullptr) {
    note(table.enumeration->array_oid);
    for (const EnumLabel& label : table.enumeration->labels) note(label.oid);
  }
  return greatest;
}

void CatalogSnapshot::Data::Set(const NamespacePtr& space) {
  uint64_t id = space->id.value;
  greatest_id = std::max(greatest_id, id);
  if (const NamespacePtr* old = namespaces.Find(id)) {
    NameInParent name{(*old)->parent.value, (*old)->name};
    const uint64_t* holder = namespace_names.Find(name);
    if (holder != nullptr && *holder == id) namespace_names.Erase(name);
  }
  if (space->state != ObjectState::kPublic) {
    namespaces.Erase(id);
    dropped_namespaces.Set(id, space);
    return;
  }
  dropped_namespaces.Erase(id);
  namespaces.Set(id, space);
  if (space->id != kRootNamespace) {
    namespace_names.Set({space->parent.value, space->name}, id);
  }
}

// A name is taken away only from the object that holds it: publishes of two transactions, one of
// which reused a name that the other freed, may come in either order.
void CatalogSnapshot::Data::Forget(const TableDescriptor& table) {
  auto forget_name = [&](const std::string& name) {
    NameInParent key{table.parent.value, name};
    const RelationName* holder = relation_names.Find(key);
    if (holder != nullptr && holder->table == table.id) relation_names.Erase(key);
  };
  forget_name(table.name);
  for (const IndexDescriptor& index : table.indexes) {
    if (!index.name.empty()) forget_name(index.name);
    if (index.oid != 0) index_oids.Erase(index.oid);
  }
  if (table.enumeration != nullptr) {
    types.Erase(table.enumeration->oid);
    types.Erase(table.enumeration->array_oid);
  }
  for (const ForeignKey& key : table.foreign_keys) {
    referencing.Erase({key.referenced_table.value, table.id.value});
  }
}

void CatalogSnapshot::Data::ForgetStorage(const TableDescriptor& table) {
  const uint64_t* holder = storages.Find(table.storage.value);
  if (holder != nullptr && *holder == table.id.value) storages.Erase(table.storage.value);
}

uint64_t CatalogSnapshot::Data::UnreadableIn(NamespaceId parent) const {
  uint64_t id = 0;
  unreadable_names.VisitFrom(NameView{parent.value, ""},
                             [&](const NameInParent& name, const UnreadableName& holder) {
                               if (name.first == parent.value) {
                                 id = holder.relation != 0 ? holder.relation : holder.space;
                               }
                               return false;
                             });
  return id;
}

void CatalogSnapshot::Data::Remove(const NamespaceDescriptor& space) {
  dropped_namespaces.Erase(space.id.value);
}

void CatalogSnapshot::Data::Remove(const TableDescriptor& table) {
  const uint64_t id = table.id.value;
  if (const TablePtr* old = tables.Find(id)) {
    TablePtr keep = *old;
    Forget(*keep);
  }
  ForgetStorage(table);
  tables.Erase(id);
  dropped_tables.Erase(id);
}

void CatalogSnapshot::Data::Set(const TablePtr& table) {
  uint64_t id = table->id.value;
  greatest_id = std::max(greatest_id, GreatestIdOf(*table));
  if (const TablePtr* old = tables.Find(id)) {
    TablePtr keep = *old;
    Forget(*keep);
    ForgetStorage(*keep);
  }
  if (table->storage.value != 0) storages.Set(table->storage.value, id);
  if (table->state != ObjectState::kPublic) {
    tables.Erase(id);
    dropped_tables.Set(id, table);
    return;
  }
  dropped_tables.Erase(id);
  tables.Set(id, table);
  RelationName own;
  own.table = table->id;
  relation_names.Set({table->parent.value, table->name}, own);
  for (const IndexDescriptor& index : table->indexes) {
    RelationName name;
    name.table = table->id;
    name.is_index = true;
    name.index = index.id;
    if (!index.name.empty()) relation_names.Set({table->parent.value, index.name}, name);
    if (index.oid != 0) index_oids.Set(index.oid, name);
  }
  if (table->enumeration != nullptr) {
    types.Set(table->enumeration->oid, id);
    types.Set(table->enumeration->array_oid, id);
  }
  for (const ForeignKey& key : table->foreign_keys) {
    referencing.Set({key.referenced_table.value, id}, true);
  }
}

namespace {

// A look-up found nothing: is it there, but unreadable?
void NoteMissing(const CatalogSnapshot& catalog, uint64_t id) {
  if (IsUnreadable(catalog, id)) NoteUnreadableMet(UnreadableError(catalog, id));
}
void NoteMissing(const CatalogSnapshot& catalog, NamespaceId parent, std::string_view name,
                 NameKind kind) {
  const uint64_t id = FindUnreadable(catalog, parent, name, kind);
  if (id != 0) NoteUnreadableMet(UnreadableError(catalog, id));
}

}  // namespace

NamespacePtr CatalogSnapshot::FindNamespace(NamespaceId parent, std::string_view name) const {
  const uint64_t* id = data_->namespace_names.Find(NameView{parent.value, name});
  if (id != nullptr) return GetNamespace(NamespaceId{*id});
  NoteMissing(*this, parent, name, NameKind::kNamespace);
  return nullptr;
}

NamespacePtr CatalogSnapshot::GetNamespace(NamespaceId id) const {
  const NamespacePtr* found = data_->namespaces.Find(id.value);
  return found == nullptr ? nullptr : *found;
}

namespace {

// A type or a collation: no relation, though its name is among theirs.
bool IsDefinition(const TableDescriptor& table) {
  return table.kind == RelationKind::kType || table.kind == RelationKind::kCollation;
}

TablePtr Holder(const CatalogSnapshot& snapshot, NamespaceId parent, std::string_view name) {
  const RelationName* found = snapshot.data().relation_names.Find(NameView{parent.value, name});
  if (found == nullptr) NoteMissing(snapshot, parent, name, NameKind::kRelation);
  if (found == nullptr || found->is_index) return nullptr;
  return snapshot.GetTable(found->table);
}

TablePtr OfKind(TablePtr table, RelationKind kind) {
  return table != nullptr && table->kind == kind ? table : nullptr;
}

std::vector<TablePtr> ListIn(const CatalogSnapshot& snapshot, NamespaceId parent,
                             bool definitions) {
  std::vector<TablePtr> out;
  snapshot.data().relation_names.VisitFrom(
      NameView{parent.value, ""}, [&](const NameInParent& name, const RelationName& holder) {
        if (name.first != parent.value) return false;
        if (holder.is_index) return true;
        TablePtr table = snapshot.GetTable(holder.table);
        if (IsDefinition(*table) == definitions) out.push_back(std::move(table));
        return true;
      });
  return out;
}

std::vector<TablePtr> ListAll(const CatalogSnapshot& snapshot, bool definitions) {
  std::vector<TablePtr> out;
  snapshot.data().tables.VisitAll([&](uint64_t, const TablePtr& table) {
    if (IsDefinition(*table) == definitions) out.push_back(table);
    return true;
  });
  return out;
}

}  // namespace

TablePtr CatalogSnapshot::FindTable(NamespaceId parent, std::string_view name) const {
  TablePtr table = Holder(*this, parent, name);
  return table == nullptr || IsDefinition(*table) ? nullptr : table;
}

TablePtr CatalogSnapshot::FindType(NamespaceId parent, std::string_view name) const {
  return OfKind(Holder(*this, parent, name), RelationKind::kType);
}

TablePtr CatalogSnapshot::FindCollation(NamespaceId parent, std::string_view name) const {
  return OfKind(Holder(*this, parent, name), RelationKind::kCollation);
}

TablePtr CatalogSnapshot::GetTypeByOid(uint32_t oid) const {
  const uint64_t* id = data_->types.Find(uint64_t{oid});
  if (id != nullptr) return GetTable(TableId{*id});
  if (oid >= TableDescriptor::kFirstOid) NoteMissing(*this, oid - TableDescriptor::kFirstOid);
  return nullptr;
}

TablePtr CatalogSnapshot::GetTable(TableId id) const {
  const TablePtr* found = data_->tables.Find(id.value);
  if (found != nullptr) return *found;
  NoteMissing(*this, id.value);
  return nullptr;
}

TablePtr CatalogSnapshot::GetTableByOid(uint32_t oid) const {
  if (oid < TableDescriptor::kFirstOid) return nullptr;
  TablePtr table = GetTable(TableId{oid - TableDescriptor::kFirstOid});
  return table == nullptr || IsDefinition(*table) ? nullptr : table;
}

namespace {

TablePtr OwnerOf(const CatalogSnapshot& snapshot, const RelationName* name,
                 const IndexDescriptor** index) {
  *index = nullptr;
  if (name == nullptr || !name->is_index) return nullptr;
  TablePtr table = snapshot.GetTable(name->table);
  if (table != nullptr) *index = table->FindIndex(name->index);
  return *index == nullptr ? nullptr : table;
}

}  // namespace

TablePtr CatalogSnapshot::FindTableOfIndex(NamespaceId parent, std::string_view index_name,
                                           const IndexDescriptor** index) const {
  const RelationName* found = data_->relation_names.Find(NameView{parent.value, index_name});
  if (found == nullptr) NoteMissing(*this, parent, index_name, NameKind::kRelation);
  TablePtr table = OwnerOf(*this, found, index);
  if (table == nullptr || !OrdersByRowId(*table, **index)) return table;
  *index = nullptr;
  return nullptr;
}

TablePtr CatalogSnapshot::FindTableOfIndexOid(uint32_t oid, const IndexDescriptor** index) const {
  return OwnerOf(*this, data_->index_oids.Find(uint64_t{oid}), index);
}

std::vector<NamespacePtr> CatalogSnapshot::ListNamespaces(NamespaceId parent) const {
  std::vector<NamespacePtr> out;
  data_->namespace_names.VisitFrom(NameView{parent.value, ""},
                                   [&](const NameInParent& name, uint64_t id) {
                                     if (name.first != parent.value) return false;
                                     out.push_back(GetNamespace(NamespaceId{id}));
                                     return true;
                                   });
  return out;
}

std::vector<TablePtr> CatalogSnapshot::ListTables(NamespaceId parent) const {
  return ListIn(*this, parent, false);
}
std::vector<TablePtr> CatalogSnapshot::ListTypes(NamespaceId parent) const {
  return ListIn(*this, parent, true);
}
std::vector<TablePtr> CatalogSnapshot::ListAllTables() const { return ListAll(*this, false); }
std::vector<TablePtr> CatalogSnapshot::ListAllTypes() const { return ListAll(*this, true); }

std::vector<TablePtr> CatalogSnapshot::ListDroppedTables() const {
  std::vector<TablePtr> out;
  data_->dropped_tables.VisitAll([&](uint64_t, const TablePtr& table) {
    out.push_back(table);
    return true;
  });
  return out;
}

std::vector<NamespacePtr> CatalogSnapshot::ListDroppedNamespaces() const {
  std::vector<NamespacePtr> out;
  data_->dropped_namespaces.VisitAll([&](uint64_t, const NamespacePtr& space) {
    out.push_back(space);
    return true;
  });
  return out;
}

TablePtr CatalogSnapshot::GetTableByStorage(TableId storage) const {
  TableId id = storage;
  if (const uint64_t* holder = data_->storages.Find(storage.value)) id.value = *holder;
  TablePtr table = GetTable(id);
  if (table == nullptr) table = GetDroppedTable(id);
  return table != nullptr && table->storage_id() == storage ? table : nullptr;
}

TablePtr CatalogSnapshot::GetDroppedTable(TableId id) const {
  const TablePtr* found = data_->dropped_tables.Find(id.value);
  return found == nullptr ? nullptr : *found;
}

NamespacePtr CatalogSnapshot::GetDroppedNamespace(NamespaceId id) const {
  const NamespacePtr* found = data_->dropped_namespaces.Find(id.value);
  return found == nullptr ? nullptr : *found;
}

std::vector<TablePtr> CatalogSnapshot::ListReferencing(TableId id) const {
  std::vector<TablePtr> out;
  data_->referencing.VisitFrom(std::pair<uint64_t, uint64_t>(id.value, 0),
                               [&](const std::pair<uint64_t, uint64_t>& pair, bool) {
                                 if (pair.first != id.value) return false;
                                 TablePtr table = GetTable(TableId{pair.second});
                                 if (table != nullptr) out.push_back(std::move(table));
                                 return true;
                               });
  return out;
}

std::string CatalogSnapshot::PathOf(const TableDescriptor& table) const {
  return PathOf(table.parent) + "/" + table.name;
}

std::string CatalogSnapshot::PathOf(NamespaceId id) const {
  std::string path;
  // A chain longer than this is a cycle in damaged descriptors.
  constexpr int kMaxDepth = 1000;
  for (int depth = 0; id != kRootNamespace && depth < kMaxDepth; ++depth) {
    NamespacePtr space = GetNamespace(id);
    if (space == nullptr) space = GetDroppedNamespace(id);
    if (space == nullptr) return "/?" + path;
    path = "/" + space->name + path;
    id = space->parent;
  }
  return path;
}

uint64_t CatalogSnapshot::generation() const { return data_->generation; }

}  // namespace cellar::catalog
