// A RocksDB database as a kv::Storage. See docs/decisions/0004-transactions-on-rocksdb.md.
#pragma once

#include <memory>

#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/kv/storage.h"
#include "cellar/kv/store_header.h"

namespace cellar::engines {

struct OpenedStorage {
  std::unique_ptr<kv::Storage> storage;
  std::unique_ptr<kv::StoreHeader> header;  // null: the database has no header record
  bool empty = false;                       // it has no records at all
  uint64_t last_sequence = 0;
};

// Opens the database in an existing directory, made anew if `create`; with `read_only` nothing on
// disk changes.
Result<OpenedStorage> OpenRocksStorage(const RocksOptions& options, bool create, bool read_only);
// Begins to keep the record of the log's end (log_end.h), after one of this generation.
Status KeepLogEnd(kv::Storage* storage, uint64_t generation);
// The header of another store than any there is.
kv::StoreHeader NewStoreHeader();
// Writes the header record durably.
Status WriteStoreHeader(kv::Storage* storage, const kv::StoreHeader& header);

}  // namespace cellar::engines
