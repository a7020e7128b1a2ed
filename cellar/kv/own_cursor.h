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

// One source of a merge: a file of a run. One thread at a time.
class RunSource {
 public:
  RunSource(std::unique_ptr<RawCursor> cursor, bool deletes, uint64_t last_seq)
      : last_seq(last_seq), deletes(deletes), cursor_(std::move(cursor)) {}

  Status Start() { return Refill(); }
  bool valid() const { return next_ < block_.size(); }
  std::string_view key() const { return block_.key(next_); }
  std::string_view value() const { return block_.value(next_); }
  uint64_t ordinal() const { return ordinal_; }  // of the pair within the scan
  Status Next() {
    ++ordinal_;
    if (++next_ < block_.size()) return {};
    return Refill();
  }

  const uint64_t last_seq;  // of its run
  const bool deletes;

 private:
  Status Refill();

  std::unique_ptr<RawCursor> cursor_;
  Block block_;
  size_t next_ = 0;
  uint64_t ordinal_ = 0;
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
