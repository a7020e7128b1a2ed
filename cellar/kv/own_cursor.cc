#include "cellar/kv/own_cursor.h"

#include <algorithm>

namespace cellar::kv {
namespace {

constexpr size_t kSourceBlockBytes = 64 << 10;

}  // namespace

RunSource::RunSource(const SpillRun& run, bool deletes, Range range, RawScanOptions options,
                     uint64_t seq)
    : run_(run), deletes_(deletes), seq_(std::min(seq, run.last_seq)) {
  // The versions are in the values.
  options.keys_only &= !run.versioned;
  cursor_ = (deletes ? run.deletes : run.puts)->Scan(range.start, range.end, options);
}

Status RunSource::Refill() {
  next_ = 0;
  CELLAR_TRY_ASSIGN(const bool more, cursor_->NextBlock(kSourceBlockBytes, 0, &block_));
  if (!more) block_.Clear();
  return {};
}

Status RunSource::Step() {
  ++ordinal_;
  return ++next_ < block_.size() ? Status() : Refill();
}

Status RunSource::Settle() {
  while (run_.versioned && valid()) {
    CELLAR_TRY_ASSIGN(const bool any, FindVersion(block_.value(next_), seq_, &version_));
    if (any) break;
    CELLAR_TRY(Step());
  }
  return {};
}

bool RunSource::unproven() const {
  if (run_.versioned) return version_.kind == WriteKind::kPutIfAbsent;
  return !deletes_ && run_.has_unproven && run_.unproven[ordinal_];
}

OwnCursor::OwnCursor(const WriteBuffer* buffer, const SpillSet* runs, std::string_view start,
                     std::string_view end, const Options& options)
    : buffer_(buffer), runs_(runs), start_(start), end_(end), options_(options) {}

Status OwnCursor::Start() {
  const WriteBuffer::Position low = buffer_->LowerBound(start_);
  const WriteBuffer::Position high = end_.empty() ? buffer_->End() : buffer_->LowerBound(end_);
  if (options_.reverse) {
    // at_ is one past the current place, and stop_ is the lower end.
    at_ = high;
    stop_ = low;
  } else {
    at_ = low;
    stop_ = high;
  }
  if (!end_.empty() && start_ >= end_) at_ = stop_;
  SettleBuffer();
  if (runs_ != nullptr) {
    for (const std::unique_ptr<SpillRun>& at : runs_->runs()) {
      const SpillRun& run = *at;
      if ((run.versioned ? run.first_seq : run.last_seq) > options_.seq) break;
      const RawScanOptions scan{.reverse = options_.reverse, .keys_only = options_.keys_only};
      for (const bool deletes : {false, true}) {
        if ((deletes ? run.deletes : run.puts) == nullptr) continue;
        sources_.push_back(std::make_unique<RunSource>(run, deletes, RunSource::Range{start_, end_},
                                                       scan, options_.seq));
        CELLAR_TRY(sources_.back()->Start());
        if (sources_.back()->valid()) heap_.push_back(sources_.back().get());
      }
    }
    std::make_heap(heap_.begin(), heap_.end(),
                   [this](RunSource* a, RunSource* b) { return SourceBefore(b, a); });
  }
  return Settle();
}

// Whether `a` comes out first: by key, and the newer of equal keys.
bool OwnCursor::SourceBefore(const RunSource* a, const RunSource* b) const {
  const int order = a->key().compare(b->key());
  if (order != 0) return options_.reverse ? order > 0 : order < 0;
  return a->last_seq() > b->last_seq();
}

// Moves node_ to the first place from at_ on that the view holds.
void OwnCursor::SettleBuffer() {
  node_ = nullptr;
  if (options_.reverse) {
    for (; at_ != stop_; at_ = buffer_->Previous(at_)) {
      node_ = buffer_->At(buffer_->Previous(at_), options_.seq);
      if (node_ != nullptr) return;
    }
  } else {
    for (; at_ != stop_; at_ = buffer_->Next(at_)) {
      node_ = buffer_->At(at_, options_.seq);
      if (node_ != nullptr) return;
    }
  }
}

// Makes the first of buffer and runs current.
Status OwnCursor::Settle() {
  const RunSource* run = heap_.empty() ? nullptr : heap_.front();
  bool from_buffer = node_ != nullptr;
  if (from_buffer && run != nullptr) {
    const int order = node_->key().compare(run->key());
    from_buffer = order == 0 || (options_.reverse ? order > 0 : order < 0);
  }
  if (from_buffer) {
    state_ = State::kBuffer;
    key_ = node_->key();
    value_ = options_.keys_only ? std::string_view() : node_->value();
    deleted_ =
        node_->kind == WriteKind::kDelete ||
        (buffer_->HasRangeDeletions() && buffer_->RangeDeleted(key_, node_->seq, options_.seq));
  } else if (run != nullptr) {
    state_ = State::kRun;
    run_key_ = run->key();
    key_ = run_key_;
    value_ = run->value();
    deleted_ = run->deleted() || (buffer_->HasRangeDeletions() &&
                                  buffer_->RangeDeleted(key_, run->seq(), options_.seq));
  } else {
    state_ = State::kEnd;
  }
  return {};
}

Status OwnCursor::Next() {
  const bool runs_have_it = !heap_.empty() && heap_.front()->key() == key_;
  if (runs_have_it) {
    if (state_ == State::kBuffer) run_key_ = key_;
    CELLAR_TRY(AdvanceRuns());
  }
  if (state_ == State::kBuffer) {
    at_ = options_.reverse ? buffer_->Previous(at_) : buffer_->Next(at_);
    SettleBuffer();
  }
  return Settle();
}

// Steps every source past run_key_.
Status OwnCursor::AdvanceRuns() {
  const auto after = [this](RunSource* a, RunSource* b) { return SourceBefore(b, a); };
  while (!heap_.empty() && heap_.front()->key() == run_key_) {
    std::pop_heap(heap_.begin(), heap_.end(), after);
    CELLAR_TRY(heap_.back()->Next());
    if (heap_.back()->valid()) {
      std::push_heap(heap_.begin(), heap_.end(), after);
    } else {
      heap_.pop_back();
    }
  }
  return {};
}

}  // namespace cellar::kv
