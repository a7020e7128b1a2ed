// What the catalog and its editor share. Private to the layer.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cellar/catalog/snapshot_data.h"
#include "cellar/kv/doubt.h"

namespace cellar::catalog {

// The value behind a name key: docs/formats/catalog.md.
struct NameRecord {
  uint64_t namespace_id = 0;
  uint64_t relation_id = 0;
  bool is_index = false;
  IndexId index;

  bool empty() const { return namespace_id == 0 && relation_id == 0; }
};
std::string EncodeNameRecord(const NameRecord& record);
// Of the record of `key`, as of all here that are given one, with its checksum (codec/sealed.h).
Result<NameRecord> DecodeNameRecord(std::string_view key, std::string_view value);
Status PutNameRecord(std::string_view key, const NameRecord& record, kv::Transaction* transaction);

// All names that a relation has in its namespace, and what their records say.
using Names = std::map<NameInParent, NameRecord>;
Names NamesOf(const TableDescriptor& table);

std::string IdKey();
Result<uint64_t> DecodeIdSequence(std::string_view value);
Status PutIdSequence(uint64_t next, kv::Transaction* transaction);

// A descriptor of either kind, as found behind a `desc-` key.
struct AnyDescriptor {
  TablePtr table;
  NamespacePtr space;
  bool removed = false;  // of a change: the record is gone
};
Result<AnyDescriptor> DecodeAny(std::string_view key, std::string_view value,
                                uint64_t commit_version);
Status PutDescriptor(const TableDescriptor& table, kv::Transaction* transaction);
Status PutDescriptor(const NamespaceDescriptor& space, kv::Transaction* transaction);
// Ids that the object has taken from the sequence: its own, its storage's, those of its indexes,
// constraints, enum type and labels. The greatest of them.
uint64_t GreatestIdOf(const TableDescriptor& table);

// Thread-safe.
struct Catalog::Impl {
  // The next id of the sequence. Cost: an engine commit per kIdBlock ids.
  Result<uint64_t> AllocateId();
  SnapshotPtr Current() const;
  Status Reload();

  kv::Engine* engine = nullptr;
  kv::Doubt doubt;

  std::mutex publish_mutex;  // held by those who replace `current`
  mutable std::mutex current_mutex;
  SnapshotPtr current;

  std::mutex id_mutex;
  uint64_t next_id = 0, end_id = 0;
};

// Everything that one transaction has changed, newest state last.
struct CatalogEditor::Impl {
  struct State {
    std::shared_ptr<CatalogSnapshot::Data> data;  // of `snapshot`
    SnapshotPtr snapshot;
  };

  Catalog::Impl* catalog = nullptr;
  kv::Transaction* transaction = nullptr;
  std::vector<State> states;           // states[i] is what savepoint i returns to
  std::vector<AnyDescriptor> changes;  // changes[i] made states[i + 1] of states[i]

  const State& now() const { return states.back(); }
  void Push(AnyDescriptor change);
  // One entry an object, its last, so that a transaction of many changes publishes each once.
  std::vector<AnyDescriptor> LastChanges() const;
};

}  // namespace cellar::catalog
