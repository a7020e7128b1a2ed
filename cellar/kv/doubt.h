// For whoever keeps in memory what the store holds: that a commit has ended with an unknown outcome
// (kCommitUnknown), until it is known, or has failed, after which the store may take for changed
// what is not.
#pragma once

#include <atomic>
#include <cstdint>

#include "cellar/kv/engine.h"

namespace cellar::kv {

// Thread-safe.
class Doubt {
 public:
  // After such a commit.
  void Note(Engine* engine) {
    // It is among those that have begun.
    const uint64_t version = engine->latest_version();
    uint64_t before = version_.load(std::memory_order_relaxed);
    while (before < version && !version_.compare_exchange_weak(before, version)) {
    }
  }
  bool any() const { return version_.load(std::memory_order_acquire) != 0; }
  // True for one caller once what was noted is known: transactions that begin from now on see it,
  // or never will, and memory is to be read again. If that fails, note it again. Cost, while there
  // is any: a snapshot.
  bool Settle(Engine* engine) {
    uint64_t version = version_.load(std::memory_order_acquire);
    if (version == 0) return false;
    TransactionOptions options;
    options.read_only = true;
    if (engine->Begin(options)->snapshot_version() < version) return false;
    return version_.compare_exchange_strong(version, 0);
  }

 private:
  std::atomic<uint64_t> version_{0};  // 0: none
};

}  // namespace cellar::kv
