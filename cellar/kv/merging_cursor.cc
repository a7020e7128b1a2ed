#include "cellar/kv/merging_cursor.h"

#include <algorithm>

#include "cellar/kv/occ_transaction.h"

namespace cellar::kv {
namespace {

bool HasOwnWrites(const WriteBuffer* buffer, const SpillSet* runs, std::string_view start,
                  std::string_view end) {
  if (runs != nullptr && !runs->empty()) return true;
  if (buffer == nullptr || buffer->empty()) return false;
  if (buffer->HasRangeDeletions()) return true;
  const WriteBuffer::Position at = buffer->LowerBound(start);
  return at != buffer->End() && (end.empty() || buffer->At(at)->key() < end);
}

}  // namespace

MergingCursor::MergingCursor(OccTransaction* transaction, std::string_view start,
                             std::string_view end, const ScanOptions& options, At at)
    : transaction_(transaction),
      start_(start),
      end_(end),
      options_(options),
      at_(std::move(at)),
      merges_(at_.seq != 0 &&
              HasOwnWrites(transaction->buffer_.get(), transaction->runs_.get(), start, end)),
      target_bytes_(std::min(options.first_block_bytes, options.block_bytes)),
      ended_(!end.empty() && start >= end) {
  transaction_->cursors_.push_back(this);
}

MergingCursor::~MergingCursor() {
  if (!transaction_->live_) return;
  ReadRange range;
  if (TrackedRange(&range)) transaction_->reads_.AddRange(range.start, range.end, range.version);
  std::erase(transaction_->cursors_, this);
}

bool MergingCursor::TrackedRange(ReadRange* range) const {
  if (!at_.tracked) return false;
  range->version = at_.version;
  range->start = start_;
  range->end = end_;
  if (exhausted_) return true;
  if (returned_ == 0) return false;
  if (options_.reverse) {
    range->start = last_read_;
  } else {
    (range->end = last_read_).push_back('\0');
  }
  return true;
}

size_t MergingCursor::NextTarget() {
  const size_t target = target_bytes_;
  target_bytes_ = std::min(target_bytes_ * 4, options_.block_bytes);
  return target;
}

Status MergingCursor::OpenBase() {
  CELLAR_TRY(transaction_->CheckLive());
  if (base_ == nullptr && !ended_) {
    base_ = at_.snapshot->Scan(start_, end_,
                               {.reverse = options_.reverse,
                                .keys_only = options_.keys_only,
                                .fill_cache = options_.fill_cache});
  }
  return {};
}

Result<bool> MergingCursor::NextView(std::string_view* key, std::string_view* value) {
  if (merges_) {
    if (view_next_ == view_block_.size()) {
      view_next_ = 0;
      CELLAR_TRY_ASSIGN(const bool more, NextBlock(&view_block_));
      if (!more) return false;
    }
    *key = view_block_.key(view_next_);
    *value = view_block_.value(view_next_++);
    return true;
  }
  CELLAR_TRY(OpenBase());
  if (ended_ || (options_.limit != 0 && returned_ >= options_.limit)) return false;
  ++transaction_->stats_.trips;
  CELLAR_TRY_ASSIGN(const bool more, base_->NextView(key, value));
  if (!more) {
    ended_ = exhausted_ = true;
    base_ = nullptr;
    return false;
  }
  ++returned_;
  ++transaction_->stats_.reads;
  if (at_.tracked) last_read_ = *key;
  return true;
}

Result<bool> MergingCursor::NextBlock(Block* block) {
  block->Clear();
  CELLAR_TRY(OpenBase());
  if (ended_) return false;
  bool more;
  if (merges_) {
    CELLAR_TRY_ASSIGN(more, NextMerged(NextTarget(), block));
  } else {
    ++transaction_->stats_.trips;
    const uint64_t left = options_.limit == 0 ? 0 : options_.limit - returned_;
    CELLAR_TRY_ASSIGN(more, base_->NextBlock(NextTarget(), left, block));
  }
  if (!more) {
    ended_ = exhausted_ = true;
    base_ = nullptr;
    return false;
  }
  NoteRead(*block);
  return true;
}

void MergingCursor::NoteRead(const Block& block) {
  returned_ += block.size();
  transaction_->stats_.reads += block.size();
  if (at_.tracked) last_read_ = block.key(block.size() - 1);
  if (options_.limit != 0 && returned_ >= options_.limit) {
    ended_ = true;
    base_ = nullptr;
  }
}

Status MergingCursor::PrepareOwn() {
  if (own_ != nullptr && own_changes_ == transaction_->changes_) return {};
  own_start_ = start_;
  own_end_ = end_;
  if (has_frontier_) {
    if (options_.reverse) {
      own_end_ = frontier_;
    } else {
      (own_start_ = frontier_).push_back('\0');
    }
  }
  own_ = std::make_unique<OwnCursor>(
      transaction_->buffer_.get(), transaction_->runs_.get(), own_start_, own_end_,
      OwnCursor::Options{
          .reverse = options_.reverse, .keys_only = options_.keys_only, .seq = at_.seq});
  own_changes_ = transaction_->changes_;
  return own_->Start();
}

Status MergingCursor::RefillBase(size_t target_bytes) {
  ++transaction_->stats_.trips;
  base_next_ = 0;
  const uint64_t left = options_.limit == 0 ? 0 : options_.limit - returned_;
  CELLAR_TRY_ASSIGN(const bool more, base_->NextBlock(target_bytes, left, &base_block_));
  if (!more) {
    base_block_.Clear();
    base_ended_ = true;
  }
  return {};
}

bool MergingCursor::OwnFirst(std::string_view own, std::string_view base) const {
  return options_.reverse ? own > base : own < base;
}

bool MergingCursor::Hidden(std::string_view base_key) const {
  const WriteBuffer& buffer = *transaction_->buffer_;
  return buffer.HasRangeDeletions() && buffer.RangeDeleted(base_key, 0, at_.seq);
}

Result<bool> MergingCursor::NextMerged(size_t target_bytes, Block* block) {
  CELLAR_TRY(PrepareOwn());
  const bool hides = transaction_->buffer_->HasRangeDeletions();
  const uint64_t left = options_.limit == 0 ? UINT64_MAX : options_.limit - returned_;
  std::string_view last;  // the last key merged, in block or base_block_ or the own writes
  while (block->bytes() < target_bytes && block->size() < left) {
    if (base_next_ >= base_block_.size() && !base_ended_) {
      if (!last.empty()) {
        frontier_ = last;
        has_frontier_ = true;
        last = {};
      }
      CELLAR_TRY(RefillBase(target_bytes));
      const size_t size = base_block_.size();
      if (size != 0 && block->empty() && !hides &&
          (!own_->valid() || !OwnFirst(own_->key(), base_block_.key(size - 1))) &&
          (!own_->valid() || own_->key() != base_block_.key(size - 1))) {
        std::swap(*block, base_block_);
        base_block_.Clear();
        frontier_ = block->key(size - 1);
        has_frontier_ = true;
        return true;
      }
    }
    const bool has_base = base_next_ < base_block_.size();
    if (!own_->valid()) {
      if (!has_base) break;
      last = base_block_.key(base_next_);
      if (!hides || !Hidden(last)) block->Append(last, base_block_.value(base_next_));
      ++base_next_;
      continue;
    }
    const int order = has_base ? own_->key().compare(base_block_.key(base_next_)) : 0;
    if (has_base && order != 0 && (order > 0) != options_.reverse) {
      last = base_block_.key(base_next_);
      if (!hides || !Hidden(last)) block->Append(last, base_block_.value(base_next_));
      ++base_next_;
      continue;
    }
    if (!own_->deleted()) block->Append(own_->key(), own_->value());
    frontier_ = own_->key();
    has_frontier_ = true;
    last = {};
    if (has_base && order == 0) ++base_next_;
    CELLAR_TRY(own_->Next());
  }
  if (!last.empty()) {
    frontier_ = last;
    has_frontier_ = true;
  }
  return !block->empty();
}

}  // namespace cellar::kv
