// Which keys were written by which recent commits, for validating what transactions have read.
//
// Invariants:
//   1. For every key written by commit v, the slot of its hash holds at least v before v's group is
//      written: a point read at r is unchanged if its slot is <= r. A greater slot is looked into
//      by full hashes in the ring, as far as that reaches.
//   2. The ring holds the keys or ranges of all commits in [oldest, newest]; a range read at
//      r < oldest - 1 is refused.
//   3. System records, whose keys begin with 00, are noted exactly: what Require answers of them is
//      never a false alarm. Of other keys that holds from their first Require on.
//   4. Validation by the committing thread runs in commit order and before marking its own writes,
//      so that the order of validation is the order of writing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/kv/read_set.h"
#include "cellar/kv/write_buffer.h"

namespace cellar::kv {

// Whether a key is that of a system record, which must be told apart exactly.
inline bool IsSystemKey(std::string_view key) { return !key.empty() && key[0] == '\0'; }
// Where keys of data begin.
inline constexpr std::string_view kFirstDataKey = "\1";

// What one commit writes, as far as others' reads care.
struct WriteSet {
  const WriteBuffer* buffer = nullptr;  // keys
  std::vector<uint64_t> hashes;         // of the buffer's final keys, in key order
  std::vector<std::string> more_keys;   // that are not in the buffer
  std::vector<std::pair<std::string, std::string>> ranges;  // instead of keys: deletions, bulk
  bool unmarked = false;  // the keys change no meaning: only `ranges` conflict
};

// Thread-safe, but Mark is for one thread at a time.
class ConflictIndex {
 public:
  // 1 << slots_log2 slots of 8 bytes, and a ring of 1 << ring_bytes_log2 bytes; memory is taken
  // from the system as it is used.
  ConflictIndex(int slots_log2, int ring_bytes_log2, uint64_t version);
  ConflictIndex(const ConflictIndex&) = delete;
  ConflictIndex& operator=(const ConflictIndex&) = delete;
  ~ConflictIndex();

  // Whether everything in `reads` is as it was read, counting all commits marked so far, where
  // commits up to `checked` are known not to conflict. Call reads.Prepare() before. Cost: a load
  // per point, and a look at every commit since the reads if there are ranges or a load was
  // alarming.
  bool Unchanged(const ReadSet& reads, uint64_t checked = 0) const;
  // Whether the hash was not written after `version`.
  bool PointUnchanged(uint64_t hash, uint64_t version) const {
    return LastWrite(hash) <= version && point_floor_.load(std::memory_order_acquire) <= version;
  }
  // The same of a key, exactly as far as the ring reaches: a look at every commit since, when the
  // other is alarmed.
  bool KeyUnchanged(std::string_view key, uint64_t hash, uint64_t version) const;
  bool RangeUnchanged(const ReadRange& range) const;
  // Whether the key was not written after `version`; from now on that is known exactly.
  bool Require(std::string_view key, uint64_t version);
  // Notes commit `version`, the successor of the newest.
  void Mark(const WriteSet& writes, uint64_t version);

  uint64_t newest() const { return newest_.load(std::memory_order_acquire); }
  // Version of the newest commit with unmarked writes.
  uint64_t newest_unmarked() const { return newest_unmarked_.load(std::memory_order_acquire); }
  // Greatest version that may have written the key.
  uint64_t LastWrite(uint64_t hash) const;
  // The same, counting ranges that may hold it.
  uint64_t LastWriteOrRange(uint64_t hash) const {
    return std::max(LastWrite(hash), point_floor_.load(std::memory_order_acquire));
  }

 private:
  static constexpr uint64_t kWatched = uint64_t{1} << 63;
  static constexpr size_t kMaxCommits = 1 << 16;
  bool PointsUnchanged(const ReadSet& reads, uint64_t checked) const;
  bool RangesUnchanged(std::span<const ReadRange> ranges, uint64_t checked) const;
  bool RequirementHolds(const Requirement& requirement) const;
  void MarkPoints(const WriteSet& writes, uint64_t version);
  void MarkSlot(uint64_t hash, uint64_t version, bool* watched);
  void NoteWatched(std::string_view key, uint64_t version);
  void Record(const WriteSet& writes, uint64_t version);
  char* Reserve(size_t bytes, uint64_t version);

  const uint64_t mask_;
  uint64_t* slots_;  // from calloc, whose pages stay unused until written
  std::atomic<uint64_t> point_floor_;
  std::atomic<uint64_t> newest_;
  std::atomic<uint64_t> newest_unmarked_{0};

  mutable std::shared_mutex mutex_;                       // guards all below
  std::map<std::string, uint64_t, std::less<>> watched_;  // last write of these keys
  std::vector<ReadRange> system_ranges_;                  // written, that may hold system records
  const uint64_t ring_bytes_;
  std::unique_ptr<char[]> ring_;
  std::unique_ptr<uint64_t[]> starts_;  // of commit v at v % kMaxCommits; offsets that only grow
  uint64_t head_ = 0;
  uint64_t oldest_;
};

}  // namespace cellar::kv
