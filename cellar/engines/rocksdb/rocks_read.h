// Reading RocksDB: values pinned in its cache, and iterators read block by block.
#pragma once

#include <memory>
#include <string_view>

#include "cellar/kv/block.h"
#include "cellar/kv/storage.h"

namespace rocksdb {
class Iterator;
class PinnableSlice;
struct ReadOptions;
}  // namespace rocksdb

namespace cellar::engines {

// The RocksDB slice inside a value, emptied, to be read into. Call value->Refresh() afterwards.
rocksdb::PinnableSlice* PinOf(kv::PinnedValue* value);

// Makes an iterator with the options, whose bounds it borrows from the cursor.
using MakeIterator = std::unique_ptr<rocksdb::Iterator> (*)(void* source,
                                                            const rocksdb::ReadOptions& options);

// A cursor over [start, end); `base` gives the snapshot and is copied; `source` is borrowed. With
// `looks_first` one that goes backwards asks whether there is anything before it passes by what
// range deletions cover: RocksDB walks that key by key, beyond the start of the range too.
std::unique_ptr<kv::RawCursor> MakeRocksCursor(const rocksdb::ReadOptions& base, void* source,
                                               MakeIterator make, std::string_view start,
                                               std::string_view end,
                                               const kv::RawScanOptions& options,
                                               bool looks_first = false);

}  // namespace cellar::engines
