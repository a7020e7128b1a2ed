#include "cellar/engines/rocksdb/rocks_read.h"

#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>

#include <string>

#include "cellar/engines/rocksdb/rocks_status.h"

namespace cellar::engines {
namespace {

using rocksdb::PinnableSlice;

static_assert(sizeof(PinnableSlice) <= kv::PinnedValue::kPinBytes);
static_assert(alignof(PinnableSlice) <= 16);

PinnableSlice* Cast(void* pin) { return static_cast<PinnableSlice*>(pin); }

constexpr kv::PinnedValue::PinOps kPinOps = {
    .move =
        [](void* from, void* to) {
          // Not by its constructor, which leaves a pinned one without a buffer for its next use.
          *std::construct_at(static_cast<PinnableSlice*>(to)) = std::move(*Cast(from));
        },
    .view =
        [](const void* pin) {
          const auto* slice = static_cast<const PinnableSlice*>(pin);
          return std::string_view(slice->data(), slice->size());
        },
    .clear = [](void* pin) { Cast(pin)->Reset(); },
    .destroy = [](void* pin) { std::destroy_at(Cast(pin)); },
};

// Scans that bypass the cache read far ahead instead.
constexpr size_t kReadAheadBytes = 2 << 20;

class RocksCursor : public kv::RawCursor {
 public:
  RocksCursor(const rocksdb::ReadOptions& base, void* source, MakeIterator make,
              std::string_view start, std::string_view end, const kv::RawScanOptions& options,
              bool looks_first)
      : reverse_(options.reverse),
        looks_first_(looks_first && options.reverse && !start.empty()),
        keys_only_(options.keys_only),
        empty_(!end.empty() && start >= end),
        start_(start),
        end_(end),
        lower_(start_),
        upper_(end_),
        read_(base),
        source_(source),
        make_(make) {
    if (!start_.empty()) read_.iterate_lower_bound = &lower_;
    if (!end_.empty()) read_.iterate_upper_bound = &upper_;
    read_.fill_cache = options.fill_cache;
    if (!options.fill_cache && read_.readahead_size == 0) read_.readahead_size = kReadAheadBytes;
  }

  Result<bool> NextBlock(size_t target_bytes, uint64_t limit, kv::Block* block) override {
    block->Clear();
    if (!Open()) return false;
    rocksdb::Iterator& it = *iterator_;
    uint64_t left = limit == 0 ? UINT64_MAX : limit;
    for (; left != 0 && block->bytes() < target_bytes && it.Valid(); --left) {
      const rocksdb::Slice key = it.key();
      const rocksdb::Slice value = keys_only_ ? rocksdb::Slice() : it.value();
      block->Append({key.data(), key.size()}, {value.data(), value.size()});
      Step();
    }
    if (!it.Valid()) {
      CELLAR_TRY(FromRocks(it.status(), "could not read the store"));
      if (block->empty()) empty_ = true;
    }
    return !block->empty();
  }

  Result<bool> NextView(std::string_view* key, std::string_view* value) override {
    const bool opens = iterator_ == nullptr;
    if (!Open()) return false;
    // The iterator stands on the pair handed out last, whose block it keeps in place; after an
    // error it stands on none.
    if (!opens && iterator_->Valid()) Step();
    if (!iterator_->Valid()) {
      CELLAR_TRY(FromRocks(iterator_->status(), "could not read the store"));
      empty_ = true;
      return false;
    }
    *key = iterator_->key().ToStringView();
    *value = keys_only_ ? std::string_view() : iterator_->value().ToStringView();
    return true;
  }

 private:
  // False when there is nothing to read.
  bool Open() {
    if (empty_ || iterator_ != nullptr) return !empty_;
    if (looks_first_) {
      // With what range deletions cover taken for living, the first key before `start` ends it.
      rocksdb::ReadOptions all = read_;
      all.ignore_range_deletions = true;
      const std::unique_ptr<rocksdb::Iterator> any = make_(source_, all);
      any->SeekToLast();
      empty_ = !any->Valid() && any->status().ok();
      if (empty_) return false;
    }
    iterator_ = make_(source_, read_);
    if (reverse_) {
      iterator_->SeekToLast();
    } else if (start_.empty()) {
      iterator_->SeekToFirst();
    } else {
      iterator_->Seek(start_);
    }
    return true;
  }

  void Step() {
    if (reverse_) {
      iterator_->Prev();
    } else {
      iterator_->Next();
    }
  }

  const bool reverse_, looks_first_, keys_only_;
  bool empty_;
  const std::string start_, end_;
  const rocksdb::Slice lower_, upper_;
  rocksdb::ReadOptions read_;
  void* const source_;
  const MakeIterator make_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace

PinnableSlice* PinOf(kv::PinnedValue* value) {
  if (value->ops() == &kPinOps) {
    PinnableSlice* slice = Cast(value->pin());
    slice->Reset();
    return slice;
  }
  value->DropPin();
  PinnableSlice* slice = std::construct_at(static_cast<PinnableSlice*>(value->pin()));
  value->SetPin(&kPinOps);
  return slice;
}

std::unique_ptr<kv::RawCursor> MakeRocksCursor(const rocksdb::ReadOptions& base, void* source,
                                               MakeIterator make, std::string_view start,
                                               std::string_view end,
                                               const kv::RawScanOptions& options,
                                               bool looks_first) {
  return std::make_unique<RocksCursor>(base, source, make, start, end, options, looks_first);
}

}  // namespace cellar::engines
