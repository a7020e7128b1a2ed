#include "cellar/session/store_clock.h"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "cellar/codec/key.h"

namespace cellar::session {
namespace {

std::string RecordKey() { return codec::SystemKey("clock"); }

int64_t BootMicros() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

}  // namespace

StoreClock::StoreClock(kv::Engine* engine, std::function<int64_t()> boot_micros)
    : engine_(engine), boot_micros_(boot_micros ? std::move(boot_micros) : BootMicros) {}

Status StoreClock::Load(int64_t least) {
  kv::TransactionOptions options;
  options.read_only = true;
  std::unique_ptr<kv::Transaction> reader = engine_->Begin(options);
  kv::PinnedValue value;
  CELLAR_TRY_ASSIGN(bool found, reader->Get(RecordKey(), &value));
  if (found) {
    const std::string_view text = value.view();
    const char* end = text.data() + text.size();
    if (std::from_chars(text.data(), end, base_).ptr != end || base_ < 0) {
      base_ = 0;  // the bin's objects say more
    }
  }
  base_ = std::max(base_, least);
  saved_ = base_;
  opened_ = boot_micros_();
  return Status();
}

int64_t StoreClock::Ticks() const { return base_ + std::max<int64_t>(0, boot_micros_() - opened_); }

Status StoreClock::Save() {
  std::lock_guard lock(mutex_);
  const int64_t now = Ticks();
  if (now <= saved_) return Status();
  std::unique_ptr<kv::Transaction> writer = engine_->Begin();
  CELLAR_TRY(writer->Put(RecordKey(), std::to_string(now)));
  CELLAR_TRY(writer->Commit({.makes_room = true}).status());  // dropping asks for the time
  saved_ = now;
  return Status();
}

}  // namespace cellar::session
