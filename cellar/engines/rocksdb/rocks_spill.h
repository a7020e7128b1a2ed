// Sorted files of large transactions, in RocksDB's file format so that they can be ingested.
#pragma once

#include <memory>
#include <string>

#include "cellar/base/status.h"
#include "cellar/kv/storage.h"

namespace rocksdb {
struct Options;
}

namespace cellar::engines {

// A writer of the file `path`; both options are borrowed.
Result<std::unique_ptr<kv::SpillWriter>> MakeRocksSpillWriter(const rocksdb::Options& write_options,
                                                              const rocksdb::Options& read_options,
                                                              std::string path);
// Writes the file `path` with nothing but range deletions.
Status WriteRangeDeletions(const rocksdb::Options& options, const std::string& path,
                           std::span<const kv::WriteBuffer::RangeDeletion> ranges);
// The same for a file of counters' records, of different keys.
Status WriteCounters(const rocksdb::Options& options, const std::string& path,
                     std::span<const kv::CounterWrite> counters);
// The path of a file made here.
const std::string& SpillPath(const kv::SpillFile& file);

// Above every key that Cellar makes, for ranges without an upper bound.
std::string_view BeyondAllKeys();

}  // namespace cellar::engines
