// Sequence values. A sequence's record ("seq-" id) holds the last value that may have been handed
// out, so a crash skips what was reserved and never repeats. Values do not roll back.
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/codec/sealed.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {
namespace {

constexpr int64_t kReserved = 32;
constexpr int kMaxAttempts = 100;

// The record is text, "<value> <called>": docs/formats/catalog.md.
std::string Encode(int64_t value, bool called) {
  return fmt::format("{} {}", value, called ? 1 : 0);
}

Status Decode(std::string_view bytes, int64_t* value, bool* called) {
  auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), *value);
  if (error != std::errc() || end + 2 != bytes.data() + bytes.size() || *end != ' ') {
    return CorruptionError("sequence record does not read");
  }
  *called = end[1] == '1';
  return Status();
}

}  // namespace

Result<std::optional<std::pair<int64_t, bool>>> ReadSequenceRecord(catalog::TableId storage,
                                                                   kv::Transaction* reader) {
  const std::string key = SequenceRecordKey(storage);
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(const bool found, reader->Get(key, &value, {kv::ReadMode::kSnapshot}));
  std::optional<std::pair<int64_t, bool>> out;
  if (!found) return out;
  CELLAR_TRY_ASSIGN(const std::string_view record, codec::Unseal(key, value.view()));
  out.emplace();
  CELLAR_TRY(Decode(record, &out->first, &out->second));
  return out;
}

namespace {

Status Exhausted(const catalog::TableDescriptor& sequence, bool maximum) {
  return SqlError(Code::kLimit, "2200H", "nextval: reached {} value of sequence \"{}\" ({})",
                  maximum ? "maximum" : "minimum", sequence.name,
                  maximum ? sequence.sequence.max : sequence.sequence.min);
}

// The value after `value`, or nothing past the end.
std::optional<int64_t> Step(const catalog::SequenceOptions& options, int64_t value) {
  int64_t next;
  const bool overflow = __builtin_add_overflow(value, options.increment, &next);
  if (options.increment > 0 && (overflow || next > options.max)) {
    return options.cycle ? std::optional(options.min) : std::nullopt;
  }
  if (options.increment < 0 && (overflow || next < options.min)) {
    return options.cycle ? std::optional(options.max) : std::nullopt;
  }
  return next;
}

}  // namespace

std::shared_ptr<SequenceCache::State> SequenceCache::Find(catalog::TableId id) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<State>& state = states_[id.value];
  if (state == nullptr) state = std::make_shared<State>();
  return state;
}

void SequenceCache::Forget(catalog::TableId storage) {
  std::lock_guard lock(mutex_);
  states_.erase(storage.value);
}

void SequenceCache::Remove(catalog::TableId storage) {
  Forget(storage);
  std::unique_ptr<kv::Transaction> writer = engine_->Begin();
  // A record that is left says nothing to anybody.
  if (writer->Delete(SequenceRecordKey(storage)).ok()) (void)writer->Commit().ok();
}

Status SequenceCache::Load(const catalog::TableDescriptor& sequence, State* state) {
  if (state->loaded) return Status();
  kv::TransactionOptions options;
  options.read_only = true;
  std::unique_ptr<kv::Transaction> reader = engine_->Begin(options);
  CELLAR_TRY_ASSIGN(const auto found, ReadSequenceRecord(sequence.storage_id(), reader.get()));
  std::tie(state->last, state->called) =
      found.value_or(std::pair<int64_t, bool>(sequence.sequence.start, false));
  state->left = 0;
  state->loaded = true;
  return Status();
}

Status SequenceCache::Store(const catalog::TableDescriptor& sequence, int64_t value, bool called) {
  Status status;
  const std::string key = SequenceRecordKey(sequence.storage_id());
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::unique_ptr<kv::Transaction> writer = engine_->Begin();
    CELLAR_TRY(writer->Put(key, codec::Seal(key, Encode(value, called))));
    status = writer->Commit().status();
    if (status.code() != Code::kConflict) return status;
  }
  return status;
}

Result<int64_t> SequenceCache::Next(const catalog::TableDescriptor& sequence) {
  std::shared_ptr<State> state = Find(sequence.storage_id());
  std::lock_guard lock(state->mutex);
  CELLAR_TRY(Load(sequence, state.get()));
  const catalog::SequenceOptions& options = sequence.sequence;
  std::optional<int64_t> next = state->called ? Step(options, state->last) : state->last;
  if (!next) return Exhausted(sequence, options.increment > 0);
  if (state->left == 0) {
    // Reserve this value and some more: the record names the last of them.
    int64_t last = *next, count = 1;
    for (; count < std::max(kReserved, options.cache); ++count) {
      std::optional<int64_t> further = Step(options, last);
      if (!further || (options.increment > 0) != (*further > last)) break;  // the end, or around
      last = *further;
    }
    CELLAR_TRY(Store(sequence, last, true));
    state->left = count;
  }
  --state->left;
  state->last = *next;
  state->called = true;
  return *next;
}

Status SequenceCache::Set(const catalog::TableDescriptor& sequence, int64_t value, bool called) {
  const catalog::SequenceOptions& options = sequence.sequence;
  if (value < options.min || value > options.max) {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange,
                    "setval: value {} is out of bounds for sequence \"{}\" ({}..{})", value,
                    sequence.name, options.min, options.max);
  }
  std::shared_ptr<State> state = Find(sequence.storage_id());
  std::lock_guard lock(state->mutex);
  CELLAR_TRY(Store(sequence, value, called));
  state->last = value;
  state->called = called;
  state->left = 0;
  state->loaded = true;
  return Status();
}

Result<std::pair<int64_t, bool>> SequenceCache::Peek(const catalog::TableDescriptor& sequence) {
  std::shared_ptr<State> state = Find(sequence.storage_id());
  std::lock_guard lock(state->mutex);
  CELLAR_TRY(Load(sequence, state.get()));
  return std::pair<int64_t, bool>(state->last, state->called);
}

}  // namespace cellar::session
