// How many rows a job takes at once, so that others are not held up. Private to this layer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "cellar/kv/engine.h"

namespace cellar::session {

// Call Begin before each step and End after its commit. One thread.
class JobPace {
 public:
  using Clock = std::chrono::steady_clock;

  explicit JobPace(kv::Engine* engine) : engine_(engine) {}

  uint64_t rows() const { return rows_; }
  void Begin() {
    commits_ = engine_->stats().commits;
    start_ = Clock::now();
  }
  // How long to rest. While nobody else commits, steps grow; if somebody does, half of the time is
  // theirs, and a step is not to last longer than kStepAmongOthers.
  Clock::duration End() {
    const Clock::duration took = Clock::now() - start_;
    if (engine_->stats().commits <= commits_ + 1) {
      rows_ = std::min(kMostRows, rows_ * 4);
      return Clock::duration::zero();
    }
    rows_ =
        took > kStepAmongOthers ? std::max(kLeastRows, rows_ / 2) : std::min(kFirstRows, rows_ * 2);
    return std::min<Clock::duration>(took, kLongestRest);
  }
  // Instead of End, when the commit was refused.
  void Refused() { rows_ = std::max(kLeastRows, rows_ / 8); }

 private:
  static constexpr uint64_t kFirstRows = 16384, kMostRows = 262144, kLeastRows = 16;
  static constexpr std::chrono::milliseconds kStepAmongOthers{50};
  static constexpr std::chrono::milliseconds kLongestRest{1000};

  kv::Engine* engine_;
  uint64_t rows_ = kFirstRows;
  uint64_t commits_ = 0;
  Clock::time_point start_;
};

}  // namespace cellar::session
