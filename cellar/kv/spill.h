// What a large transaction has moved from its write buffer to sorted files.
//
// Invariants:
//   1. Runs are disjoint in sequence numbers and in ascending order of them; all are older than the
//      write buffer. A view (of a statement, a cursor or a savepoint) at s contains a plain run
//      wholly or not at all.
//   2. A plain run's puts and deletions lie in two files, since a reader of one file does not see
//      tombstones; no key is in both. Range deletions stay in the write buffer, and their
//      sequence numbers are bounds of runs.
//   3. Where many views would cut the writes into many small runs, they become one versioned run:
//      a file in which each key has all the versions that some view needs, newest first. Such a
//      view contains the versions up to its s.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/kv/conflict_index.h"
#include "cellar/kv/key_spans.h"
#include "cellar/kv/storage.h"
#include "cellar/kv/write_buffer.h"

namespace cellar::kv {

// Membership filter over key hashes with about 1 % false positives at 10 bits a key.
class KeyFilter {
 public:
  explicit KeyFilter(size_t keys) : words_(keys * 10 / 64 + 8) {}
  void Add(uint64_t hash);
  bool MayContain(uint64_t hash) const;

 private:
  std::vector<uint64_t> words_;
};

// One version of a key. In a versioned run the value of a key is a list of these, newest first:
// u64 seq, u8 kind, u32 length and the value's bytes, in the machine's byte order, as nobody but
// this process reads them.
struct RunVersion {
  uint64_t seq = 0;
  WriteKind kind = WriteKind::kPut;
  std::string_view value;
};
void AppendVersion(const RunVersion& version, std::string* list);
// The newest version with version.seq <= seq, borrowed from `list`; false if there is none. Errors:
// kCorruption.
Result<bool> FindVersion(std::string_view list, uint64_t seq, RunVersion* version);

struct SpillRun {
  // Of a versioned run, rolling back lowers last_seq: younger versions are there no more.
  uint64_t first_seq = 0, last_seq = 0;
  bool versioned = false;                // then `puts` has all keys
  std::string first, last;               // keys
  void NoteKey(std::string_view key);    // for the two below
  std::vector<std::string> system_keys;  // those that begin with 00
  KeySpans spans;                        // of the others
  std::unique_ptr<SpillFile> puts, deletes;
  uint64_t put_count = 0, delete_count = 0;
  std::vector<bool> unproven;  // one per put, in key order: a PutIfAbsent still to be checked
  bool has_unproven = false;

  // Cost: the first call reads the files to make a filter of their keys, some 100 ns each. Most
  // runs are never asked.
  Result<bool> MayContain(uint64_t hash);

  std::optional<KeyFilter> filter;
};

// One thread at a time.
class SpillSet {
 public:
  explicit SpillSet(Storage* storage) : storage_(storage) {}

  bool empty() const { return runs_.empty() && open_ == nullptr; }
  // Without the one that is open.
  const std::vector<std::unique_ptr<SpillRun>>& runs() const { return runs_; }
  // Changes whenever the runs do.
  uint64_t generation() const { return generation_; }

  // Writes the keys of the buffer's view at `last_seq`, without what a view at `after_seq` holds,
  // as one run.
  Status Add(const WriteBuffer& buffer, uint64_t after_seq, uint64_t last_seq);
  // The same as one versioned run. `bounds`: the views' sequence numbers, ascending.
  Status AddVersioned(const WriteBuffer& buffer, uint64_t after_seq, uint64_t last_seq,
                      std::span<const uint64_t> bounds);
  // As Add, but more writes may follow with Append until Close ends the run. Meanwhile no other
  // calls but these, and the buffer must have no younger writes.
  Status Open(const WriteBuffer& buffer, uint64_t after_seq, uint64_t last_seq);
  bool is_open() const { return open_ != nullptr; }
  // Behind all keys of the open run, so that Append may take it.
  bool Appends(std::string_view key) const { return key > std::string_view(open_->run->last); }
  Status Append(WriteKind kind, std::string_view key, std::string_view value);
  // No run is open afterwards, whatever it answers.
  Status Close();
  // The newest write of `key` in runs that a view at `seq` contains.
  // Range deletions are those of `buffer`.
  Result<WriteBuffer::Found> Find(std::string_view key, uint64_t seq, const WriteBuffer& buffer,
                                  PinnedValue* value);
  // Is there a write of `key` in runs that a view at `seq` does not contain?
  Result<bool> WroteSince(std::string_view key, uint64_t seq);
  void RollbackTo(uint64_t seq);
  // Calls to the snapshot that Finish has made.
  uint64_t trips() const { return trips_; }

  // Turns the runs into files that do not overlap, in order, ready to ingest. Checks what is still
  // unproven against `base`; a duplicate answers kConstraint and sets `*duplicate`. What is written
  // is added to `*writes`: system records key by key, everything else as ranges.
  // Range deletions are those of `buffer`; they apply to `base` before the files do.
  Status Finish(const SnapshotReader& base, const WriteBuffer& buffer, std::string* duplicate,
                std::vector<std::unique_ptr<SpillFile>>* files, WriteSet* writes);

 private:
  static constexpr uint64_t kFileBytes = 128 << 20;  // of merged files

  Status Merge(std::span<SpillRun* const> runs, const SnapshotReader& base,
               const WriteBuffer& buffer, std::string* duplicate,
               std::vector<std::unique_ptr<SpillFile>>* files);
  Status Prove(SpillRun* run, const SnapshotReader& base, const WriteBuffer& buffer,
               std::string* duplicate);

  struct OpenRun {
    std::unique_ptr<SpillRun> run;
    std::unique_ptr<SpillWriter> puts, deletes;
  };

  Storage* const storage_;
  std::vector<std::unique_ptr<SpillRun>> runs_;
  std::unique_ptr<OpenRun> open_;
  uint64_t generation_ = 0;
  uint64_t trips_ = 0;
};

// Tells for ascending keys whether a snapshot has them. A cursor reads ahead, so that keys which
// lie close together, or where the snapshot has nothing, cost no read of their own. Keys with much
// between them are looked up one by one, which filters make cheaper than a cursor's seek.
class PresenceProbe {
 public:
  // `last` is the greatest key that will be asked for: nothing behind it is looked at. Calls to the
  // snapshot are added to `*trips`.
  PresenceProbe(const SnapshotReader& base, std::string_view last, uint64_t* trips)
      : base_(base), end_(last), trips_(trips) {
    end_.push_back('\0');
  }
  Result<bool> Contains(std::string_view key);
  // The snapshot has nothing at or behind the last key that was asked for.
  bool ended() const { return ended_; }

 private:
  static constexpr size_t kLeastBytes = 512, kMostBytes = 16 << 10;  // to read ahead
  static constexpr int kSeeks = 2;     // in a row, before the cursor is given up
  static constexpr int kSingles = 32;  // look-ups, before it is tried again

  const SnapshotReader& base_;
  std::string end_;
  std::unique_ptr<RawCursor> cursor_;
  Block block_;
  size_t next_ = 0;
  size_t bytes_ = kLeastBytes;
  bool ended_ = false;
  int seeks_ = 0;
  int singles_ = 0;
  uint64_t* const trips_;
};

Status DuplicateKey(std::string_view key, std::string* duplicate);

}  // namespace cellar::kv
