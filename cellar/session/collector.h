// Empties the recycle bin: deletes what has been in it for as long as it was to be kept, or was
// purged. Private to this layer.
//
// An object goes in small transactions: one that says so in its descriptor, from which on it cannot
// come back; some that delete its keys; one that deletes the descriptor. Whatever is interrupted
// goes on from the descriptors that are left.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "cellar/catalog/catalog.h"
#include "cellar/session/store_clock.h"

namespace cellar::session {

// How long a dropped object is kept when nobody said so.
inline constexpr int64_t kDefaultKeepMicros = int64_t{7} * 24 * 3600 * 1000000;

// What is left of an object's time in the bin; 0: none.
template <typename Descriptor>
int64_t MicrosLeft(const Descriptor& dropped, int64_t ticks) {
  const int64_t keep = dropped.keep_micros.value_or(kDefaultKeepMicros);
  // After a crash the clock may stand before the drop.
  const int64_t elapsed = ticks > dropped.dropped_at_ticks ? ticks - dropped.dropped_at_ticks : 0;
  return keep > elapsed ? keep - elapsed : 0;
}

// The system keys of an object beside its descriptor.
std::string SequenceRecordKey(catalog::TableId storage);
// The last value that may have been handed out, and whether it was; nothing before the first one.
// Errors: kCorruption; those of the engine.
Result<std::optional<std::pair<int64_t, bool>>> ReadSequenceRecord(catalog::TableId storage,
                                                                   kv::Transaction* reader);

enum class CollectAction : uint8_t {
  kNothing,  // there is nothing to do now
  kBegun,    // an object whose time is over cannot come back any more
  kDeleted,  // some of its keys are gone
  kRemoved,  // the object is gone
};
struct CollectStep {
  CollectAction action = CollectAction::kNothing;
  uint64_t keys = 0;  // deleted
};

// One thread at a time.
class Collector {
 public:
  // All outlive it. `forget`: the storage of an object that is gone, for caches.
  Collector(catalog::Catalog* catalog, const StoreClock* clock,
            std::function<void(catalog::TableId)> forget)
      : catalog_(catalog), clock_(clock), forget_(std::move(forget)) {}

  // Does the next thing there is to do, in one or two transactions: at most kKeysAStep keys.
  // Errors: kConflict when somebody was quicker; others as the engine gives them. Then nothing, or
  // the whole step, has happened.
  Result<CollectStep> Step();

  static constexpr uint64_t kKeysAStep = 10000;

 private:
  Result<CollectStep> Begin(catalog::TableDescriptor table);
  Result<CollectStep> Continue(const catalog::TableDescriptor& table);
  Result<CollectStep> Remove(const catalog::TableDescriptor& table);
  Result<CollectStep> Remove(const catalog::NamespaceDescriptor& space);

  catalog::Catalog* catalog_;
  const StoreClock* clock_;
  std::function<void(catalog::TableId)> forget_;
  struct Progress {
    std::string position;  // keys before it are gone
    uint64_t keys = 0;
  };
  std::unordered_map<uint64_t, Progress> progress_;  // by storage id
};

// The thread that steps a Collector now and then, at most half of the time, and saves the clock.
// Thread-safe.
class CollectService {
 public:
  CollectService(Collector* collector, StoreClock* clock) : collector_(collector), clock_(clock) {}
  ~CollectService() { Stop(); }
  CollectService(const CollectService&) = delete;
  CollectService& operator=(const CollectService&) = delete;

  void Start();
  // Waits for the running step, and saves the clock. No Start after it.
  void Stop();
  // There is something to do.
  void Wake();

 private:
  using Clock = std::chrono::steady_clock;
  void Run();
  void CollectAll();
  bool Wait(Clock::duration duration, bool wakes);

  Collector* collector_;
  StoreClock* clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, woken_ = false;  // guarded by mutex_
  std::thread thread_;
  bool reported_ = false;  // of the thread only
};

}  // namespace cellar::session
