// The own writes of a transaction in key order: the write buffer over its spilled runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/kv/spill.h"
#include "cellar/kv/write_buffer.h"

namespace cellar::kv {

// One source of a merge: a file of a run, as a view at `seq` sees it. One thread at a time; the run
// outlives it.
class RunSource {
 public:
  struct Range {
    std::string_view start, end;
  };
  // Of a file of the run, that of its puts or of its deletions.
  RunSource(const SpillRun& run, bool deletes, Range range, RawScanOptions options,
            uint64_t seq = WriteBuffer::kNewest);

  Status Start() {
    CELLAR_TRY(Refill());
    return Settle();
  }
  bool valid() const { return next_ < block_.size(); }
  std::string_view key() const { return block_.key(next_); }
  std::string_view value() const { return run_.versioned ? version_.value : block_.value(next_); }
  bool deleted() const { return run_.versioned ? version_.kind == WriteKind::kDelete : deletes_; }
  // Is still to be looked for in the snapshot.
  bool unproven() const;
  // Range deletions with greater numbers came after this write ..
  uint64_t seq() const { return run_.versioned ? version_.seq : run_.last_seq - 1; }
  // .. and those up to this one before it.
  uint64_t first_seq() const { return run_.versioned ? version_.seq : run_.first_seq; }
  uint64_t last_seq() const { return run_.last_seq; }  // of its run
  Status Next() {
    CELLAR_TRY(Step());
    return Settle();
  }

 private:
  Status Refill();
  Status Step();
  // Of a versioned run: goes on to the first key that the view has a version of.
  Status Settle();

  const SpillRun& run_;
  const bool deletes_;
  const uint64_t seq_;
  std::unique_ptr<RawCursor> cursor_;
  Block block_;
  size_t next_ = 0;
  uint64_t ordinal_ = 0;  // of the pair within the scan
  RunVersion version_;
};

// The view at `seq` between two bounds, upwards or downwards. The buffer must not change while it
// is used; build a new one then. One thread at a time.
class OwnCursor {
 public:
  struct Options {
    bool reverse = false;
    bool keys_only = false;
    uint64_t seq = WriteBuffer::kNewest;
  };
  // Borrows all arguments.
  OwnCursor(const WriteBuffer* buffer, const SpillSet* runs, std::string_view start,
            std::string_view end, const Options& options);

  Status Start();
  bool valid() const { return state_ != State::kEnd; }
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }
  bool deleted() const { return deleted_; }
  Status Next();

 private:
  enum class State : uint8_t { kEnd, kBuffer, kRun };

  bool SourceBefore(const RunSource* a, const RunSource* b) const;
  void SettleBuffer();
  Status Settle();
  Status AdvanceRuns();

  const WriteBuffer* const buffer_;
  const SpillSet* const runs_;
  const std::string_view start_, end_;
  const Options options_;

  WriteBuffer::Position at_, stop_;
  const WriteBuffer::Node* node_ = nullptr;  // of the buffer, at its current place; null at its end
  std::vector<std::unique_ptr<RunSource>> sources_;
  std::vector<RunSource*> heap_;

  State state_ = State::kEnd;
  std::string run_key_;  // runs advance block by block, so the key is kept
  std::string_view key_, value_;
  bool deleted_ = false;
};

}  // namespace cellar::kv
