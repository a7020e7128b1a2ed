// Opening, publishing and reloading the catalog, and its one sequence of ids.
#include "cellar/catalog/catalog.h"

#include <algorithm>
#include <functional>

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/catalog_internal.h"
#include "cellar/codec/key.h"

namespace cellar::catalog {
namespace {

// Ids taken from the store at once; those not handed out when the process ends are lost.
constexpr uint64_t kIdBlock = 32;
constexpr int kMaxRetries = 100;
// The second is empty: tools connect to it before they know of others.
constexpr std::string_view kFirstDatabases[] = {"cellar", "postgres"};
constexpr std::string_view kFirstOwner = "cellar";

NamespaceDescriptor FirstNamespace(NamespaceId id, NamespaceId parent, std::string_view name) {
  NamespaceDescriptor space;
  space.id = id;
  space.parent = parent;
  space.name = name;
  space.version = 1;
  space.owner = kFirstOwner;
  return space;
}

// Writes root, first databases and the id sequence.
Status InitializeStore(kv::Transaction* transaction) {
  CELLAR_TRY(PutDescriptor(FirstNamespace(kRootNamespace, NamespaceId{}, ""), transaction));
  uint64_t next = kRootNamespace.value + 1;
  for (const std::string_view name : kFirstDatabases) {
    const NamespaceId id{next++};
    CELLAR_TRY(PutDescriptor(FirstNamespace(id, kRootNamespace, name), transaction));
    NameRecord record;
    record.namespace_id = id.value;
    CELLAR_TRY(PutNameRecord(codec::NameKey(kRootNamespace, name), record, transaction));
  }
  return PutIdSequence(next, transaction);
}

Result<bool> HasDescriptors(kv::Transaction* transaction) {
  const codec::KeyRange range = codec::PrefixRange(codec::SystemPrefix("desc"));
  kv::ScanOptions options;
  options.limit = 1;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    transaction->Scan(range.start, range.end, options));
  kv::Block block;
  return cursor->NextBlock(&block);
}

// Makes the first records of a store that has none.
Status EnsureInitialized(kv::Engine* engine) {
  for (int attempt = 0; attempt < kMaxRetries; ++attempt) {
    std::unique_ptr<kv::Transaction> transaction = engine->Begin();
    kv::PinnedValue value;
    CELLAR_TRY_ASSIGN(bool found, transaction->Get(IdKey(), &value));
    // A store that has lost one of them is damaged, not new.
    if (!found) {
      CELLAR_TRY_ASSIGN(found, HasDescriptors(transaction.get()));
    }
    if (found) return Status();
    CELLAR_TRY(InitializeStore(transaction.get()));
    Result<uint64_t> committed = transaction->Commit();
    if (!committed.ok() && committed.status().code() != Code::kConflict) {
      return committed.status();
    }
  }
  return MakeError(Code::kUnavailable, "store is being initialised by others without end");
}

// Calls visit(key, value) for all records of a system word.
Status ForEachRecord(kv::Transaction* transaction, std::string_view word,
                     const std::function<void(std::string_view, std::string_view)>& visit) {
  const codec::KeyRange range = codec::PrefixRange(codec::SystemPrefix(word));
  kv::ScanOptions scan;
  scan.mode = kv::ReadMode::kSnapshot;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    transaction->Scan(range.start, range.end, scan));
  kv::Block block;
  while (true) {
    CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
    if (!more) return Status();
    for (size_t i = 0; i < block.size(); ++i) visit(block.key(i), block.value(i));
  }
}

// A descriptor that does not read keeps nobody from the others. A key that names no object is
// CHECK's to tell.
void LoadDescriptor(std::string_view key, std::string_view value, uint64_t version,
                    CatalogSnapshot::Data* data) {
  std::string_view in = key.substr(codec::SystemPrefix("desc").size());
  const Result<uint64_t> id = codec::TakeKeyUint(&in);
  if (!id.ok() || codec::DescriptorKey(*id) != key) return;
  Result<AnyDescriptor> object = DecodeAny(key, value, version);
  data->greatest_id = std::max(data->greatest_id, *id);
  if (!object.ok()) {
    data->unreadable.Set(*id, std::string(object.status().message()));
    return;
  }
  const AnyDescriptor& descriptor = object.value();
  const uint64_t own = descriptor.table ? descriptor.table->id.value : descriptor.space->id.value;
  if (own != *id) {
    data->unreadable.Set(*id, fmt::format("it is that of object {}", own));
    return;
  }
  if (descriptor.table) data->Set(descriptor.table);
  if (descriptor.space) data->Set(descriptor.space);
}

// What names tell of objects whose descriptors do not.
void LoadNameOfUnreadable(std::string_view key, std::string_view value, uint64_t version,
                          CatalogSnapshot::Data* data) {
  std::string_view in = key.substr(codec::SystemPrefix("name").size());
  const Result<uint64_t> parent = codec::TakeKeyUint(&in);
  if (!parent.ok()) return;
  const Result<std::string> name = codec::TakeKeyText(&in);
  const Result<NameRecord> record = DecodeNameRecord(key, value);
  if (!name.ok() || !in.empty() || !record.ok()) return;
  UnreadableName holder;
  if (data->unreadable.Find(record->namespace_id) != nullptr) holder.space = record->namespace_id;
  if (data->unreadable.Find(record->relation_id) != nullptr) {
    holder.relation = record->relation_id;
  }
  if (holder.space == 0 && holder.relation == 0) return;
  data->unreadable_names.Set({*parent, *name}, holder);
  if (holder.space == 0) return;
  // Nobody owns it but those who may do all.
  NamespaceDescriptor space =
      FirstNamespace(NamespaceId{holder.space}, NamespaceId{*parent}, *name);
  space.owner.clear();
  space.commit_version = version;
  data->namespaces.Set(holder.space, std::make_shared<const NamespaceDescriptor>(space));
}

Result<std::shared_ptr<CatalogSnapshot::Data>> LoadAll(kv::Transaction* transaction,
                                                       uint64_t* version) {
  *version = transaction->snapshot_version();
  auto data = std::make_shared<CatalogSnapshot::Data>();
  CELLAR_TRY(ForEachRecord(transaction, "desc", [&](std::string_view key, std::string_view value) {
    LoadDescriptor(key, value, *version, data.get());
  }));
  bool any = false;
  data->unreadable.VisitAll([&any](uint64_t, const std::string&) {
    any = true;
    return false;
  });
  if (!any) return data;
  if (data->unreadable.Find(kRootNamespace.value) != nullptr) {
    NamespaceDescriptor root = FirstNamespace(kRootNamespace, NamespaceId{}, "");
    root.commit_version = *version;
    data->namespaces.Set(root.id.value, std::make_shared<const NamespaceDescriptor>(root));
  }
  CELLAR_TRY(ForEachRecord(transaction, "name", [&](std::string_view key, std::string_view value) {
    LoadNameOfUnreadable(key, value, *version, data.get());
  }));
  return data;
}

Result<std::shared_ptr<CatalogSnapshot::Data>> LoadAll(kv::Engine* engine, uint64_t* version) {
  kv::TransactionOptions options;
  options.read_only = true;
  return LoadAll(engine->Begin(options).get(), version);
}

uint64_t CommitVersionOf(const AnyDescriptor& object) {
  return object.table ? object.table->commit_version : object.space->commit_version;
}

// The version of the object as `data` has it, living or dropped; 0 when it has none.
uint64_t KnownVersion(const CatalogSnapshot::Data& data, const AnyDescriptor& object) {
  auto find = [](const auto& living, const auto& dropped, uint64_t id) -> uint64_t {
    if (const auto* found = living.Find(id)) return (*found)->commit_version;
    if (const auto* found = dropped.Find(id)) return (*found)->commit_version;
    return 0;
  };
  if (object.table) return find(data.tables, data.dropped_tables, object.table->id.value);
  return find(data.namespaces, data.dropped_namespaces, object.space->id.value);
}

// Newest wins: publishes of two transactions may come in either order.
void SetIfNewer(const AnyDescriptor& object, CatalogSnapshot::Data* data) {
  if (KnownVersion(*data, object) > CommitVersionOf(object)) return;
  if (object.removed) {
    if (object.table) data->Remove(*object.table);
    if (object.space) data->Remove(*object.space);
    return;
  }
  if (object.table) data->Set(object.table);
  if (object.space) data->Set(object.space);
}

AnyDescriptor WithCommitVersion(const AnyDescriptor& object, uint64_t version) {
  AnyDescriptor out;
  out.removed = object.removed;
  if (object.table) {
    TableDescriptor table = *object.table;
    table.commit_version = version;
    out.table = std::make_shared<const TableDescriptor>(std::move(table));
  } else {
    NamespaceDescriptor space = *object.space;
    space.commit_version = version;
    out.space = std::make_shared<const NamespaceDescriptor>(std::move(space));
  }
  return out;
}

uint64_t IdOf(const AnyDescriptor& object) {
  return object.table ? object.table->id.value : object.space->id.value;
}
uint64_t VersionOf(const AnyDescriptor& object) {
  return object.table ? object.table->version : object.space->version;
}

// Has the engine follow the descriptor exactly, so that requiring it never gives a false alarm
// (kv::Transaction::Require). When the engine cannot tell any more whether the record has changed
// since it was read, reads it again.
Result<AnyDescriptor> Watch(kv::Engine* engine, AnyDescriptor object) {
  constexpr int kAttempts = 3;
  const std::string key = codec::DescriptorKey(IdOf(object));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    kv::TransactionOptions options;
    options.read_only = true;
    std::unique_ptr<kv::Transaction> transaction = engine->Begin(options);
    if (transaction->Require(key, CommitVersionOf(object)).ok()) break;
    const uint64_t snapshot = transaction->snapshot_version();
    kv::PinnedValue value;
    CELLAR_TRY_ASSIGN(bool found, transaction->Get(key, &value, kv::ReadMode::kSnapshot));
    if (!found) break;
    CELLAR_TRY_ASSIGN(AnyDescriptor stored, DecodeAny(key, value.view(), snapshot));
    if (VersionOf(stored) != VersionOf(object)) break;  // its writer publishes it
    object = std::move(stored);
  }
  return object;
}

Status WatchAll(kv::Engine* engine, CatalogSnapshot::Data* data) {
  std::vector<AnyDescriptor> objects;
  auto add_space = [&](uint64_t id, const NamespacePtr& space) {
    if (data->unreadable.Find(id) == nullptr) objects.push_back({nullptr, space});
    return true;
  };
  data->namespaces.VisitAll(add_space);
  data->dropped_namespaces.VisitAll(add_space);
  auto add_table = [&](uint64_t, const TablePtr& table) {
    objects.push_back({table, nullptr});
    return true;
  };
  data->tables.VisitAll(add_table);
  data->dropped_tables.VisitAll(add_table);
  for (AnyDescriptor& object : objects) {
    CELLAR_TRY_ASSIGN(AnyDescriptor watched, Watch(engine, object));
    if (CommitVersionOf(watched) == CommitVersionOf(object)) continue;
    if (watched.table) data->Set(watched.table);
    if (watched.space) data->Set(watched.space);
  }
  return Status();
}

}  // namespace

Catalog::Catalog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Catalog::~Catalog() = default;

Result<std::unique_ptr<Catalog>> Catalog::Open(kv::Engine* engine) {
  CELLAR_TRY(EnsureInitialized(engine));
  auto impl = std::make_unique<Impl>();
  impl->engine = engine;
  auto catalog = std::make_unique<Catalog>(std::move(impl));
  CELLAR_TRY(catalog->Reload());
  if (catalog->Current()->GetNamespace(kRootNamespace) == nullptr) {
    return CorruptionError("store has no root namespace");
  }
  return catalog;
}

Result<SnapshotPtr> ReadCatalog(kv::Transaction* transaction) {
  uint64_t version = 0;
  CELLAR_TRY_ASSIGN(std::shared_ptr<CatalogSnapshot::Data> data, LoadAll(transaction, &version));
  // None that is published has this one.
  constexpr uint64_t kOfSnapshot = uint64_t{1} << 63;
  data->generation = kOfSnapshot | version;
  return std::make_shared<const CatalogSnapshot>(std::move(data));
}

Status Catalog::Reload() { return impl_->Reload(); }

Status Catalog::Impl::Reload() {
  std::lock_guard publishing(publish_mutex);
  uint64_t version = 0;
  CELLAR_TRY_ASSIGN(std::shared_ptr<CatalogSnapshot::Data> data, LoadAll(engine, &version));
  if (current != nullptr) {
    const CatalogSnapshot::Data& old = current->data();
    auto keep_newer = [&](uint64_t, const auto& object) {
      if (object->commit_version > version) data->Set(object);
      return true;
    };
    old.namespaces.VisitAll(keep_newer);
    old.dropped_namespaces.VisitAll(keep_newer);
    old.tables.VisitAll(keep_newer);
    old.dropped_tables.VisitAll(keep_newer);
    data->generation = old.generation + 1;
  }
  CELLAR_TRY(WatchAll(engine, data.get()));
  auto snapshot = std::make_shared<const CatalogSnapshot>(std::move(data));
  std::lock_guard lock(current_mutex);
  current = std::move(snapshot);
  return Status();
}

SnapshotPtr Catalog::Impl::Current() const {
  std::lock_guard lock(current_mutex);
  return current;
}

SnapshotPtr Catalog::Current() const {
  if (impl_->doubt.Settle(impl_->engine) && !impl_->Reload().ok()) {
    impl_->doubt.Note(impl_->engine);
  }
  return impl_->Current();
}

Result<uint64_t> Catalog::Commit(const CatalogEditor& editor, const kv::CommitOptions& options) {
  Result<uint64_t> version = editor.impl_->transaction->Commit(options);
  if (version.ok()) {
    Publish(editor, *version);
  } else if (version.status().code() != Code::kConflict && editor.changed()) {
    // Even of one that is not there the engine may take the descriptors for changed.
    impl_->doubt.Note(impl_->engine);
  }
  return version;
}

void Catalog::Publish(const CatalogEditor& editor, uint64_t commit_version) {
  const std::vector<AnyDescriptor> changes = editor.impl_->LastChanges();
  if (changes.empty()) return;
  std::lock_guard publishing(impl_->publish_mutex);
  auto data = std::make_shared<CatalogSnapshot::Data>(impl_->Current()->data());
  for (const AnyDescriptor& change : changes) {
    AnyDescriptor object = WithCommitVersion(change, commit_version);
    // If it cannot be read again now, those who use it learn so themselves.
    if (object.removed) {
      SetIfNewer(object, data.get());
      continue;
    }
    if (Result<AnyDescriptor> watched = Watch(impl_->engine, object); watched.ok()) {
      object = std::move(watched).value();
    }
    SetIfNewer(object, data.get());
  }
  ++data->generation;
  auto snapshot = std::make_shared<const CatalogSnapshot>(std::move(data));
  std::lock_guard lock(impl_->current_mutex);
  impl_->current = std::move(snapshot);
}

kv::Engine* Catalog::engine() const { return impl_->engine; }

Result<uint64_t> Catalog::Impl::AllocateId() {
  std::lock_guard lock(id_mutex);
  if (next_id < end_id) return next_id++;
  const SnapshotPtr current = Current();
  for (int attempt = 0; attempt < kMaxRetries; ++attempt) {
    std::unique_ptr<kv::Transaction> transaction = engine->Begin();
    kv::PinnedValue value;
    CELLAR_TRY_ASSIGN(bool found, transaction->Get(IdKey(), &value));
    // A sequence that was lost or set back goes on behind all ids that are known to be in use.
    uint64_t next = current->data().greatest_id + 1;
    if (found) {
      CELLAR_TRY_ASSIGN(const uint64_t stored, DecodeIdSequence(value.view()));
      next = std::max(next, stored);
    }
    CELLAR_TRY(PutIdSequence(next + kIdBlock, transaction.get()));
    // TRUNCATE needs an id too.
    Result<uint64_t> committed = transaction->Commit({.makes_room = true});
    if (committed.ok()) {
      next_id = next;
      end_id = next + kIdBlock;
      return next_id++;
    }
    // After an unknown outcome the block may or may not be ours: taking another one is safe.
    const Code code = committed.status().code();
    if (code != Code::kConflict && code != Code::kCommitUnknown) return committed.status();
  }
  return MakeError(Code::kUnavailable, "the sequence of ids is contended without end");
}

namespace {

// What data and plans depend on.
std::string BareBytes(TableDescriptor table) {
  table.version = 0;
  table.parent = NamespaceId{};
  table.state = ObjectState::kPublic;
  table.dropped_at_micros = table.dropped_at_ticks = 0;
  table.drop_group = 0;
  table.keep_micros.reset();
  for (std::string* text : {&table.name, &table.dropped_by, &table.owner, &table.comment}) {
    text->clear();
  }
  table.acl = Acl();
  for (ColumnDescriptor& column : table.columns) {
    column.name.clear();
    column.comment.clear();
    column.acl = Acl();
  }
  for (IndexDescriptor& index : table.indexes) {
    for (std::string* text : {&index.name, &index.comment, &index.constraint_comment}) {
      text->clear();
    }
  }
  for (CheckConstraint& check : table.checks) check.comment.clear();
  for (ForeignKey& key : table.foreign_keys) key.comment.clear();
  return EncodeTable(table);
}

}  // namespace

Result<bool> DescribesSnapshot(const TableDescriptor& table, kv::Transaction* transaction,
                               const kv::ReadView* view) {
  const std::string key = codec::DescriptorKey(table.id.value);
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(const bool found,
                    transaction->Get(key, &value, {kv::ReadMode::kSnapshot, view}));
  if (!found) return false;
  CELLAR_TRY_ASSIGN(const AnyDescriptor stored, DecodeAny(key, value.view(), 0));
  if (stored.table == nullptr) return false;
  return stored.table->version == table.version || BareBytes(*stored.table) == BareBytes(table);
}

Status RequireCurrent(const TableDescriptor& table, kv::Transaction* transaction) {
  if (table.commit_version == kUncommitted) return Status();
  // A snapshot older than the descriptor shows data that the descriptor does not speak of: an index
  // not built yet, rows of a dropped table. Before the first read there is no snapshot to be old.
  if (transaction->stats().trips != 0 && transaction->snapshot_version() < table.commit_version) {
    return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                    "could not serialize access due to a concurrent change of relation \"{}\"",
                    table.name);
  }
  return transaction->Require(codec::DescriptorKey(table.id.value), table.commit_version);
}

}  // namespace cellar::catalog
