// Counters: sums that every commit may change without reading them, and so without conflicts.
//
// A counter is a name, which begins with 00 as system records do, and kCounters sums. Its records
// lie behind `name` int(version), as keys encode integers (docs/formats/key.md): version 0 holds
// what ordinary commits have added up, another version what the ingestion of that commit has added
// beside; the sums are those of all records. The value of a record: kCounters times 8 bytes, little
// endian, two's complement.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/kv/storage.h"

namespace cellar::kv {

enum class CounterOp : uint8_t {
  kAdd,     // nothing, if the counter does not exist
  kCreate,  // makes the counter if it does not exist, and adds
  kDrop,
};
struct CounterChange {
  std::string name;
  CounterOp op;
  CounterValues values;
};

std::string CounterKey(std::string_view name, uint64_t version);
std::string EncodeCounters(const CounterValues& values);
Result<CounterValues> DecodeCounters(std::string_view bytes);
void AddCounters(const CounterValues& from, CounterValues* to);

// Adds up the records of `name` that `cursor`, over [name, CounterEnd(name)), gives; nullopt: none.
// *versions: those other than 0, also when a value does not read (kCorruption).
Result<std::optional<CounterValues>> SumCounters(std::string_view name, RawCursor* cursor,
                                                 std::vector<uint64_t>* versions);
std::string CounterEnd(std::string_view name);

// What a change makes of a counter.
void ApplyChange(const CounterChange& change, std::optional<CounterValues>* counter);

// Turns changes into records to write. One thread at a time: the one that orders the commits.
class CounterTable {
 public:
  explicit CounterTable(Storage* storage) : storage_(storage) {}

  // What the commit `version` writes for its changes. With `ingest`, as records of its own, so that
  // the file with them touches none that are in memory. Errors: those of reading what is stored.
  Status Prepare(std::span<const CounterChange> changes, uint64_t version, bool ingest,
                 std::vector<CounterWrite>* writes);
  // A write has failed: what is known may not be what is stored.
  void Forget() { known_.clear(); }

 private:
  struct Known {
    std::optional<CounterValues> total;
    std::vector<uint64_t> versions;  // of records beside the first one
  };
  // `to_drop`: what does not read is as good as anything else.
  Result<Known*> Find(const std::string& name, bool to_drop);

  Storage* const storage_;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace cellar::kv
