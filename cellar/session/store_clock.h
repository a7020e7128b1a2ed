// The store's own clock: how long it has been open in all, whatever the wall clock says. What must
// not happen too early because somebody set the date is counted in it. Private to this layer.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "cellar/kv/engine.h"

namespace cellar::session {

// Thread-safe.
class StoreClock {
 public:
  // `boot_micros`: a clock that only grows, while this process runs; null: the system's.
  explicit StoreClock(kv::Engine* engine, std::function<int64_t()> boot_micros = {});

  // Goes on from the last saved time, and where that does not read from `least`: a time that has
  // been, so that nothing is deleted early. Call it once, before anything else.
  Status Load(int64_t least = 0);
  // Microseconds. After a crash up to the time since the last Save may come again.
  int64_t Ticks() const;
  // Cost: an engine commit.
  Status Save();

 private:
  kv::Engine* engine_;
  std::function<int64_t()> boot_micros_;
  int64_t base_ = 0, opened_ = 0;  // written by Load alone
  std::mutex mutex_;
  int64_t saved_ = 0;  // guarded by mutex_
};

}  // namespace cellar::session
