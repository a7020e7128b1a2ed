// The cursor of a transaction: the snapshot merged with the own writes, block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/kv/engine.h"
#include "cellar/kv/own_cursor.h"
#include "cellar/kv/read_set.h"
#include "cellar/kv/storage.h"

namespace cellar::kv {

class OccTransaction;

class MergingCursor : public Cursor {
 public:
  // What it reads at, and whether that counts.
  struct At {
    std::shared_ptr<const SnapshotReader> snapshot;
    uint64_t version;  // of the snapshot
    uint64_t seq;      // the own writes with greater sequence numbers do not show
    bool tracked;
  };
  MergingCursor(OccTransaction* transaction, std::string_view start, std::string_view end,
                const ScanOptions& options, At at);
  ~MergingCursor() override;

  Result<bool> NextBlock(Block* block) override;
  Result<bool> NextView(std::string_view* key, std::string_view* value) override;

  uint64_t seq() const { return at_.seq; }
  bool merges() const { return merges_; }
  // What has been read so far; false if that is nothing that counts.
  bool TrackedRange(ReadRange* range) const;

 private:
  Status OpenBase();
  Result<bool> NextMerged(size_t target_bytes, Block* block);
  Status PrepareOwn();
  Status RefillBase(size_t target_bytes);
  bool OwnFirst(std::string_view own, std::string_view base) const;
  bool Hidden(std::string_view base_key) const;
  void NoteRead(const Block& block);
  size_t NextTarget();

  OccTransaction* const transaction_;
  const std::string start_, end_;
  const ScanOptions options_;
  const At at_;
  const bool merges_;  // there are own writes in the range

  std::unique_ptr<RawCursor> base_;
  Block base_block_;
  size_t base_next_ = 0;
  bool base_ended_ = false;

  std::unique_ptr<OwnCursor> own_;
  uint64_t own_changes_ = 0;  // of the transaction when own_ was made
  std::string frontier_;      // the last key that was merged
  bool has_frontier_ = false;
  std::string own_start_, own_end_;

  size_t target_bytes_;
  uint64_t returned_ = 0;
  bool ended_ = false;
  bool exhausted_ = false;  // ended because the range did, not by the limit
  std::string last_read_;
  Block view_block_;  // NextView's, when own writes are merged
  size_t view_next_ = 0;
};

}  // namespace cellar::kv
