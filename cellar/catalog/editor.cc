// Changes to the catalog inside one transaction.
//
// What keeps concurrent editors right, at any isolation level:
//   1. A name that is taken is read and written by the same transaction: the first committer wins.
//   2. A descriptor that is changed is required to be the one that was read.
//   3. Who puts an object into a namespace requires the namespace's descriptor; who drops a
//      namespace conflicts with every change among its names. So neither can slip past the other.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/catalog_internal.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/catalog/validation.h"
#include "cellar/codec/key.h"

namespace cellar::catalog {
namespace {

int64_t NowMicros() {
  // Since 2000-01-01 UTC, as timestamps are.
  constexpr int64_t kEpochMicros = int64_t{946684800} * 1000000;
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
             .count() -
         kEpochMicros;
}

Status NamespaceExists(NamespaceId parent, std::string_view name) {
  if (parent == kRootNamespace) {
    return SqlError(Code::kExists, sqlstate::kDuplicateDatabase, "database \"{}\" already exists",
                    name);
  }
  return SqlError(Code::kExists, sqlstate::kDuplicateSchema, "schema \"{}\" already exists", name);
}

Status RelationExists(std::string_view name) {
  return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists", name);
}

bool SameHolder(const NameRecord& a, const NameRecord& b) {
  return a.relation_id == b.relation_id && a.is_index == b.is_index && a.index == b.index;
}

// Moves a relation's names from `before` to `after`. Cost: one trip.
Status MoveNames(const CatalogSnapshot& catalog, const Names& before, const Names& after,
                 kv::Transaction* transaction) {
  std::set<NameInParent> touched;
  for (const auto& [name, record] : before) {
    auto found = after.find(name);
    if (found == after.end() || !SameHolder(found->second, record)) touched.insert(name);
  }
  for (const auto& [name, record] : after) {
    if (!before.contains(name)) touched.insert(name);
  }
  if (touched.empty()) return Status();

  std::vector<std::string> keys;
  for (const auto& [parent, name] : touched) {
    keys.push_back(codec::NameKey(NamespaceId{parent}, name));
  }
  std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<kv::PinnedValue> values(keys.size());
  auto found = std::make_unique<bool[]>(keys.size());
  CELLAR_TRY(transaction->MultiGet(views, values, std::span<bool>(found.get(), keys.size())));

  size_t i = 0;
  for (const NameInParent& name : touched) {
    NameRecord record;
    if (found[i]) {
      CELLAR_TRY_ASSIGN(record, DecodeNameRecord(keys[i], values[i].view()));
    }
    auto target = after.find(name);
    if (target == after.end()) {
      record.relation_id = 0;
      record.is_index = false;
      record.index = IndexId{};
    } else {
      if (record.relation_id != 0 && !before.contains(name)) {
        return IsUnreadable(catalog, record.relation_id)
                   ? UnreadableError(catalog, record.relation_id)
                   : RelationExists(name.second);
      }
      record.relation_id = target->second.relation_id;
      record.is_index = target->second.is_index;
      record.index = target->second.index;
    }
    if (record.empty()) {
      CELLAR_TRY(transaction->Delete(keys[i]));
    } else {
      CELLAR_TRY(PutNameRecord(keys[i], record, transaction));
    }
    ++i;
  }
  return Status();
}

// Sets or clears the namespace part of a name record. Cost: one trip.
Status SetNamespaceName(const CatalogSnapshot& catalog, NamespaceId parent, std::string_view name,
                        uint64_t id, kv::Transaction* transaction) {
  const std::string key = codec::NameKey(parent, name);
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(bool found, transaction->Get(key, &value));
  NameRecord record;
  if (found) {
    CELLAR_TRY_ASSIGN(record, DecodeNameRecord(key, value.view()));
  }
  if (id != 0 && record.namespace_id != 0) {
    return IsUnreadable(catalog, record.namespace_id)
               ? UnreadableError(catalog, record.namespace_id)
               : NamespaceExists(parent, name);
  }
  record.namespace_id = id;
  if (record.empty()) return transaction->Delete(key);
  return PutNameRecord(key, record, transaction);
}

// A sequence of ids that goes wrong must not write over what is there.
Status RequireNew(uint64_t id, kv::Transaction* transaction) {
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(const bool found, transaction->Get(codec::DescriptorKey(id), &value));
  if (!found) return Status();
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                  "id {} was handed out for a new object, but an object has it", id)
      .WithHint("Run REPAIR DATABASE.");
}

// Would a copy that is being made of `a` be one of `b`, and its description fit?
bool SameShape(const TableDescriptor& a, const TableDescriptor& b) {
  const auto same_column = [](const ColumnDescriptor& x, const ColumnDescriptor& y) {
    return x.id == y.id && x.name == y.name && x.type == y.type && x.not_null == y.not_null &&
           x.dropped == y.dropped && x.generated_sql == y.generated_sql && x.identity == y.identity;
  };
  const auto same_index = [](const IndexDescriptor& x, const IndexDescriptor& y) {
    return x.id == y.id && x.name == y.name && x.state == y.state && x.constraint == y.constraint;
  };
  const auto same_group = [](const ColumnGroup& x, const ColumnGroup& y) {
    return x.id == y.id && x.name == y.name && x.columns == y.columns;
  };
  return a.layout == b.layout && a.storage_id() == b.storage_id() &&
         std::equal(a.groups.begin(), a.groups.end(), b.groups.begin(), b.groups.end(),
                    same_group) &&
         std::equal(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(),
                    same_column) &&
         std::equal(a.indexes.begin(), a.indexes.end(), b.indexes.begin(), b.indexes.end(),
                    same_index);
}

Status IsRewritten(const TableDescriptor& table) {
  return SqlError(Code::kInvalid, sqlstate::kObjectInUse,
                  "table \"{}\" is being rewritten by job {}", table.name, table.job)
      .WithHint("Wait for its end (SHOW JOBS), or cancel it (CANCEL JOB).");
}

Status RequireNamespace(const NamespaceDescriptor& space, kv::Transaction* transaction) {
  if (space.commit_version == kUncommitted) return Status();
  return transaction->Require(codec::DescriptorKey(space.id.value), space.commit_version);
}

Result<NamespacePtr> LivingNamespace(const CatalogSnapshot& snapshot, NamespaceId id) {
  NamespacePtr space = snapshot.GetNamespace(id);
  if (space == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                    "schema with id {} does not exist", id.value);
  }
  if (IsUnreadable(snapshot, id.value)) return UnreadableError(snapshot, id.value);
  return space;
}

Status NamespaceNotEmpty(const NamespaceDescriptor& space) {
  if (space.parent == kRootNamespace) {
    return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                    "cannot drop database {} because other objects depend on it", space.name)
        .WithHint("Drop the objects in it first.");
  }
  return SqlError(Code::kInvalid, sqlstate::kDependentObjectsStillExist,
                  "cannot drop schema {} because other objects depend on it", space.name)
      .WithHint("Use DROP ... CASCADE to drop the dependent objects too.");
}

template <typename Descriptor>
void MarkDropped(const DropMark& mark, Descriptor* object) {
  object->state = ObjectState::kDropped;
  object->dropped_at_micros = NowMicros();
  object->dropped_at_ticks = mark.ticks;
  object->drop_group = mark.group;
  object->keep_micros = mark.keep_micros;
  object->dropped_by = mark.by;
}

template <typename Descriptor>
void MarkLiving(Descriptor* object) {
  object->state = ObjectState::kPublic;
  object->dropped_at_micros = object->dropped_at_ticks = 0;
  object->drop_group = 0;
  object->keep_micros.reset();
  object->dropped_by.clear();
}

Status IsCollected(std::string_view name) {
  return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                  "\"{}\" is being deleted from the recycle bin", name);
}

}  // namespace

std::string CounterNameOf(const TableDescriptor& table) {
  std::string name = codec::SystemPrefix("count");
  codec::AppendKeyUint(table.storage_id().value, &name);
  return name;
}

Names NamesOf(const TableDescriptor& table) {
  Names names;
  NameRecord record;
  record.relation_id = table.id.value;
  names[{table.parent.value, table.name}] = record;
  for (const IndexDescriptor& index : table.indexes) {
    if (index.name.empty()) continue;
    record.is_index = true;
    record.index = index.id;
    names[{table.parent.value, index.name}] = record;
  }
  return names;
}

void CatalogEditor::Impl::Push(AnyDescriptor change) {
  State next = now();
  next.data = std::make_shared<CatalogSnapshot::Data>(*now().data);
  if (change.removed) {
    if (change.table) next.data->Remove(*change.table);
    if (change.space) next.data->Remove(*change.space);
  } else {
    if (change.table) next.data->Set(change.table);
    if (change.space) next.data->Set(change.space);
  }
  ++next.data->generation;
  next.snapshot = std::make_shared<const CatalogSnapshot>(next.data);
  changes.push_back(std::move(change));
  states.push_back(std::move(next));
}

std::vector<AnyDescriptor> CatalogEditor::Impl::LastChanges() const {
  std::vector<AnyDescriptor> last;
  std::set<std::pair<bool, uint64_t>> seen;  // whether it is a table, and its id
  for (auto at = changes.rbegin(); at != changes.rend(); ++at) {
    const bool is_table = at->table != nullptr;
    if (seen.emplace(is_table, is_table ? at->table->id.value : at->space->id.value).second)
      last.push_back(*at);
  }
  std::reverse(last.begin(), last.end());
  return last;
}

CatalogEditor::CatalogEditor(Catalog* catalog, kv::Transaction* transaction)
    : CatalogEditor(catalog, transaction, catalog->Current()) {}

CatalogEditor::CatalogEditor(Catalog* catalog, kv::Transaction* transaction, SnapshotPtr base)
    : impl_(std::make_unique<Impl>()) {
  impl_->catalog = catalog->impl_.get();
  impl_->transaction = transaction;
  Impl::State first;
  first.data = std::make_shared<CatalogSnapshot::Data>(base->data());
  first.snapshot = std::move(base);
  impl_->states.push_back(std::move(first));
}

CatalogEditor::~CatalogEditor() = default;

SnapshotPtr CatalogEditor::snapshot() const { return impl_->now().snapshot; }

Result<NamespacePtr> CatalogEditor::CreateNamespace(NamespaceId parent, std::string_view name,
                                                    std::string_view owner) {
  CELLAR_TRY_ASSIGN(NamespacePtr holder, LivingNamespace(*snapshot(), parent));
  CELLAR_TRY(CheckNamespaceName(*holder, name));
  if (holder->parent == kRootNamespace && name == "public") return NamespaceExists(parent, name);
  NamespaceDescriptor space;
  CELLAR_TRY_ASSIGN(space.id.value, AllocateId());
  space.parent = parent;
  space.name = name;
  space.version = 1;
  space.owner = owner;
  space.commit_version = kUncommitted;
  CELLAR_TRY(RequireNamespace(*holder, impl_->transaction));
  CELLAR_TRY(SetNamespaceName(*snapshot(), parent, name, space.id.value, impl_->transaction));
  CELLAR_TRY(RequireNew(space.id.value, impl_->transaction));
  CELLAR_TRY(PutDescriptor(space, impl_->transaction));
  AnyDescriptor change;
  change.space = std::make_shared<const NamespaceDescriptor>(std::move(space));
  NamespacePtr made = change.space;
  impl_->Push(std::move(change));
  return made;
}

Status CatalogEditor::RenameNamespace(NamespaceId id, std::string_view new_name) {
  CELLAR_TRY_ASSIGN(NamespacePtr old, LivingNamespace(*snapshot(), id));
  if (id == kRootNamespace) return InvalidError("the root namespace cannot be renamed");
  CELLAR_TRY_ASSIGN(NamespacePtr holder, LivingNamespace(*snapshot(), old->parent));
  CELLAR_TRY(CheckNamespaceName(*holder, new_name));
  if (holder->parent == kRootNamespace && new_name == "public") {
    return NamespaceExists(holder->id, new_name);
  }
  if (old->name == new_name) return NamespaceExists(old->parent, new_name);
  NamespaceDescriptor space = *old;
  space.name = new_name;
  return WriteNamespace(*old, std::move(space));
}

Status CatalogEditor::UpdateNamespace(NamespaceDescriptor space) {
  CELLAR_TRY_ASSIGN(NamespacePtr old, LivingNamespace(*snapshot(), space.id));
  space.name = old->name;
  space.parent = old->parent;
  space.state = old->state;
  return WriteNamespace(*old, std::move(space));
}

Status CatalogEditor::WriteNamespace(const NamespaceDescriptor& old, NamespaceDescriptor space) {
  kv::Transaction* transaction = impl_->transaction;
  CELLAR_TRY(RequireNamespace(old, transaction));
  const bool living = space.state == ObjectState::kPublic;
  const bool lived = old.state == ObjectState::kPublic;
  const bool moved = space.name != old.name || space.parent != old.parent;
  if (living && (!lived || moved)) {
    CELLAR_TRY(
        SetNamespaceName(*snapshot(), space.parent, space.name, space.id.value, transaction));
  }
  if (lived && (!living || moved)) {
    CELLAR_TRY(SetNamespaceName(*snapshot(), old.parent, old.name, 0, transaction));
  }
  space.version = old.version + 1;
  space.commit_version = kUncommitted;
  CELLAR_TRY(PutDescriptor(space, transaction));
  AnyDescriptor change;
  change.space = std::make_shared<const NamespaceDescriptor>(std::move(space));
  impl_->Push(std::move(change));
  return Status();
}

Status CatalogEditor::DropNamespace(NamespaceId id, const DropMark& mark) {
  CELLAR_TRY_ASSIGN(NamespacePtr old, LivingNamespace(*snapshot(), id));
  if (id == kRootNamespace) return InvalidError("the root namespace cannot be dropped");
  // Every name in it; a name key of the namespace is `name-` int(id) and then TEXT.
  std::string prefix = codec::SystemPrefix("name");
  codec::AppendKeyUint(id.value, &prefix);
  const codec::KeyRange range = codec::PrefixRange(prefix);
  kv::ScanOptions options;
  options.limit = 1;
  options.keys_only = true;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    impl_->transaction->Scan(range.start, range.end, options));
  kv::Block block;
  CELLAR_TRY_ASSIGN(bool any, cursor->NextBlock(&block));
  if (any) {
    if (const uint64_t held = impl_->now().data->UnreadableIn(id)) {
      return UnreadableError(*snapshot(), held);
    }
    return NamespaceNotEmpty(*old);
  }
  CELLAR_TRY(impl_->transaction->AddReadConflict(range.start, range.end));
  NamespaceDescriptor space = *old;
  MarkDropped(mark, &space);
  return WriteNamespace(*old, std::move(space));
}

Result<NamespacePtr> CatalogEditor::RequireDropped(NamespaceId id) {
  NamespacePtr old = snapshot()->GetDroppedNamespace(id);
  if (old == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                    "namespace {} is not in the recycle bin", id.value);
  }
  CELLAR_TRY(RequireNamespace(*old, impl_->transaction));
  return old;
}

Status CatalogEditor::UndropNamespace(NamespaceId id, std::string_view new_name) {
  CELLAR_TRY_ASSIGN(NamespacePtr old, RequireDropped(id));
  if (old->state == ObjectState::kCollecting) return IsCollected(old->name);
  CELLAR_TRY_ASSIGN(NamespacePtr holder, LivingNamespace(*snapshot(), old->parent));
  CELLAR_TRY(CheckNamespaceName(*holder, new_name));
  if (holder->parent == kRootNamespace && new_name == "public") {
    return NamespaceExists(holder->id, new_name);
  }
  CELLAR_TRY(RequireNamespace(*holder, impl_->transaction));
  NamespaceDescriptor space = *old;
  space.name = new_name;
  MarkLiving(&space);
  return WriteNamespace(*old, std::move(space));
}

Status CatalogEditor::UpdateDroppedNamespace(NamespaceDescriptor space) {
  CELLAR_TRY_ASSIGN(NamespacePtr old, RequireDropped(space.id));
  if (old->state == ObjectState::kCollecting) return IsCollected(old->name);
  return WriteNamespace(*old, std::move(space));
}

Status CatalogEditor::RemoveNamespace(NamespaceId id) {
  CELLAR_TRY_ASSIGN(NamespacePtr old, RequireDropped(id));
  CELLAR_TRY(impl_->transaction->Delete(codec::DescriptorKey(id.value)));
  impl_->Push(AnyDescriptor{nullptr, std::move(old), true});
  return Status();
}

Status CatalogEditor::FillIn(const TableDescriptor* old, TableDescriptor* table) {
  for (ColumnDescriptor& column : table->columns) {
    table->next_column_id = std::max(table->next_column_id, column.id.value + 1);
  }
  for (ColumnDescriptor& column : table->columns) {
    if (column.id.value == 0) column.id.value = table->next_column_id++;
  }
  CELLAR_TRY(BindEnums(old, table));
  if (table->kind == RelationKind::kTable) AddHiddenPrimaryKey(table);
  // The primary index stands first, whatever order the caller gave.
  std::stable_partition(table->indexes.begin(), table->indexes.end(),
                        [](const IndexDescriptor& index) { return index.primary; });
  for (IndexDescriptor& index : table->indexes) {
    if (OrdersByRowId(*table, index)) index.name.clear();  // older stores gave it one
    if (index.oid == 0 && index.id.value == 0) continue;
    const uint32_t width = index.primary ? codec::kIndexIdsOfPrimary : 1;
    table->next_index_id = std::max(table->next_index_id, index.id.value + width);
  }
  for (IndexDescriptor& index : table->indexes) {
    if (index.oid == 0 && index.id.value == 0) {
      index.id.value = table->next_index_id;
      table->next_index_id += index.primary ? codec::kIndexIdsOfPrimary : 1;
    }
    CELLAR_TRY(FillOid(&index.oid));
  }
  for (CheckConstraint& check : table->checks) CELLAR_TRY(FillOid(&check.oid));
  for (ForeignKey& key : table->foreign_keys) CELLAR_TRY(FillOid(&key.oid));
  if (table->kind == RelationKind::kTable) AddRowFormat(old, table);
  if (table->kind == RelationKind::kType) {
    // The definition follows the object's name and gets the oids that it lacks.
    EnumType type = *table->enumeration;
    type.name = table->name;
    type.oid = table->oid();
    CELLAR_TRY(FillOid(&type.array_oid));
    for (EnumLabel& label : type.labels) CELLAR_TRY(FillOid(&label.oid));
    table->enumeration = Intern(std::move(type));
  }
  if (table->kind == RelationKind::kCollation) {
    Collation collation = *table->collation;
    collation.name = table->name;
    collation.oid = table->oid();
    table->collation = Intern(std::move(collation));
  }
  return CheckTableDescriptor(*table);
}

Status CatalogEditor::BindEnums(const TableDescriptor* old, TableDescriptor* table) {
  const bool lived = old != nullptr && old->state == ObjectState::kPublic;
  std::set<uint32_t> seen;
  for (const ColumnDescriptor& column : std::vector<ColumnDescriptor>(table->columns)) {
    const EnumType* definition = column.type.enumeration;
    if (column.dropped || definition == nullptr || !seen.insert(definition->oid).second) continue;
    if (lived && HasEnumColumn(*old, definition->oid)) continue;
    const TablePtr type = snapshot()->GetTypeByOid(definition->oid);
    if (type == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "type \"{}\" does not exist",
                      definition->name);
    }
    ReplaceEnum(type->enumeration, table);
    // Conflicts with whoever drops or changes the type meanwhile.
    if (type->commit_version != kUncommitted) CELLAR_TRY(UpdateTable(*type).status());
  }
  for (const Collation* one : CollationsOf(*table)) {
    if (one->built_in || (lived && HasCollation(*old, one->oid)) ||
        !HasCollation(*table, one->oid)) {
      continue;
    }
    const TablePtr made = snapshot()->GetTable(TableId{one->oid - TableDescriptor::kFirstOid});
    if (made == nullptr || made->kind != RelationKind::kCollation) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                      "collation \"{}\" does not exist", one->name);
    }
    ReplaceCollation(made->collation, table);
    if (made->commit_version != kUncommitted) CELLAR_TRY(UpdateTable(*made).status());
  }
  return Status();
}

Status CatalogEditor::FillOid(uint32_t* oid) {
  if (*oid != 0) return Status();
  CELLAR_TRY_ASSIGN(uint64_t id, AllocateId());
  *oid = static_cast<uint32_t>(id) + TableDescriptor::kFirstOid;
  return Status();
}

Result<TablePtr> CatalogEditor::WriteTable(const TableDescriptor* old, TableDescriptor table) {
  const bool living = table.state == ObjectState::kPublic;
  const bool lived = old != nullptr && old->state == ObjectState::kPublic;
  const Names before = lived ? NamesOf(*old) : Names();
  const Names after = living ? NamesOf(table) : Names();
  CELLAR_TRY(MoveNames(*snapshot(), before, after, impl_->transaction));
  table.commit_version = kUncommitted;
  if (old == nullptr) CELLAR_TRY(RequireNew(table.id.value, impl_->transaction));
  CELLAR_TRY(PutDescriptor(table, impl_->transaction));
  AnyDescriptor change;
  change.table = std::make_shared<const TableDescriptor>(std::move(table));
  TablePtr made = change.table;
  impl_->Push(std::move(change));
  return made;
}

Result<TablePtr> CatalogEditor::CreateTable(TableDescriptor table) {
  CELLAR_TRY_ASSIGN(NamespacePtr holder, LivingNamespace(*snapshot(), table.parent));
  CELLAR_TRY(RequireNamespace(*holder, impl_->transaction));
  CELLAR_TRY_ASSIGN(table.id.value, AllocateId());
  table.version = 1;
  table.state = ObjectState::kPublic;
  CELLAR_TRY(FillIn(nullptr, &table));
  if (table.kind == RelationKind::kTable) {
    table.counted_since_micros = NowMicros();
    CELLAR_TRY(impl_->transaction->CreateCounter(CounterNameOf(table)));
  }
  return WriteTable(nullptr, std::move(table));
}

Result<TablePtr> CatalogEditor::UpdateTable(TableDescriptor table) {
  TablePtr old = snapshot()->GetTable(table.id);
  if (old == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                    table.name);
  }
  if (old->version != table.version) {
    return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                    "relation \"{}\" was changed by another transaction", table.name);
  }
  if (table.parent != old->parent) {
    CELLAR_TRY_ASSIGN(NamespacePtr holder, LivingNamespace(*snapshot(), table.parent));
    CELLAR_TRY(RequireNamespace(*holder, impl_->transaction));
  }
  CELLAR_TRY(RequireCurrent(*old, impl_->transaction));
  if (old->job != 0 && old->job == table.job && !SameShape(*old, table)) return IsRewritten(*old);
  table.version = old->version + 1;
  table.state = ObjectState::kPublic;
  CELLAR_TRY(FillIn(old.get(), &table));
  return WriteTable(old.get(), std::move(table));
}

Status CatalogEditor::DropTable(TableId id, const DropMark& mark) {
  TablePtr old = snapshot()->GetTable(id);
  if (old == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable,
                    "relation with id {} does not exist", id.value);
  }
  CELLAR_TRY(RequireCurrent(*old, impl_->transaction));
  TableDescriptor table = *old;
  table.version = old->version + 1;
  MarkDropped(mark, &table);
  return WriteTable(old.get(), std::move(table)).status();
}

Result<TablePtr> CatalogEditor::RequireDropped(TableId id) {
  TablePtr old = snapshot()->GetDroppedTable(id);
  if (old == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable,
                    "relation with id {} is not in the recycle bin", id.value);
  }
  CELLAR_TRY(RequireCurrent(*old, impl_->transaction));
  return old;
}

Result<TablePtr> CatalogEditor::UndropTable(TableDescriptor table) {
  CELLAR_TRY_ASSIGN(TablePtr old, RequireDropped(table.id));
  if (old->state == ObjectState::kCollecting) return IsCollected(old->name);
  CELLAR_TRY_ASSIGN(NamespacePtr holder, LivingNamespace(*snapshot(), table.parent));
  CELLAR_TRY(RequireNamespace(*holder, impl_->transaction));
  table.version = old->version + 1;
  MarkLiving(&table);
  table.truncated = false;
  table.lost_keys.clear();
  CELLAR_TRY(FillIn(old.get(), &table));
  return WriteTable(old.get(), std::move(table));
}

Status CatalogEditor::UpdateDroppedTable(TableDescriptor table) {
  CELLAR_TRY_ASSIGN(TablePtr old, RequireDropped(table.id));
  if (old->state == ObjectState::kCollecting) return IsCollected(old->name);
  table.version = old->version + 1;
  return WriteTable(old.get(), std::move(table)).status();
}

Status CatalogEditor::RemoveTable(TableId id) {
  TablePtr old = snapshot()->GetTable(id);
  if (old != nullptr) {
    CELLAR_TRY(RequireCurrent(*old, impl_->transaction));
    CELLAR_TRY(MoveNames(*snapshot(), NamesOf(*old), Names(), impl_->transaction));
  } else {
    CELLAR_TRY_ASSIGN(old, RequireDropped(id));
  }
  CELLAR_TRY(impl_->transaction->Delete(codec::DescriptorKey(id.value)));
  impl_->Push(AnyDescriptor{std::move(old), nullptr, true});
  return Status();
}

Status CatalogEditor::TruncateTable(TableId id, const DropMark& mark) {
  TablePtr old = snapshot()->GetTable(id);
  if (old == nullptr || old->kind != RelationKind::kTable) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "table with id {} does not exist",
                    id.value);
  }
  if (old->job != 0) return IsRewritten(*old);
  TableDescriptor taken = *old;
  taken.storage = old->storage_id();
  taken.version = 1;
  taken.truncated = true;
  MarkDropped(mark, &taken);
  CELLAR_TRY_ASSIGN(taken.id.value, AllocateId());
  // It shall be able to live beside the table.
  for (ColumnDescriptor& column : taken.columns) {
    column.sequence = {};
    column.identity = Identity::kNone;
  }
  for (IndexDescriptor& index : taken.indexes) {
    index.oid = 0;
    CELLAR_TRY(FillOid(&index.oid));
  }
  for (CheckConstraint& check : taken.checks) {
    check.oid = 0;
    CELLAR_TRY(FillOid(&check.oid));
  }
  for (ForeignKey& key : taken.foreign_keys) {
    key.oid = 0;
    CELLAR_TRY(FillOid(&key.oid));
    if (key.referenced_table == old->id) key.referenced_table = taken.id;
  }
  TableDescriptor emptied = *old;
  CELLAR_TRY_ASSIGN(emptied.storage.value, AllocateId());
  emptied.counted_since_micros = NowMicros();
  CELLAR_TRY(impl_->transaction->CreateCounter(CounterNameOf(emptied)));
  CELLAR_TRY(UpdateTable(std::move(emptied)).status());
  return WriteTable(nullptr, std::move(taken)).status();
}

Status CatalogEditor::RestartSequence(TableId id) {
  TablePtr old = snapshot()->GetTable(id);
  if (old == nullptr || old->kind != RelationKind::kSequence) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable,
                    "sequence with id {} does not exist", id.value);
  }
  TableDescriptor sequence = *old;
  CELLAR_TRY_ASSIGN(sequence.storage.value, AllocateId());
  return UpdateTable(std::move(sequence)).status();
}

Result<uint64_t> CatalogEditor::AllocateId() { return impl_->catalog->AllocateId(); }

size_t CatalogEditor::Savepoint() const { return impl_->states.size() - 1; }

void CatalogEditor::RollbackTo(size_t savepoint) {
  if (savepoint + 1 >= impl_->states.size()) return;
  impl_->states.resize(savepoint + 1);
  impl_->changes.resize(savepoint);
}

bool CatalogEditor::changed() const { return !impl_->changes.empty(); }

}  // namespace cellar::catalog
