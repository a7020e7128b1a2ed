// Keeps tables of layout `pages` sealed while their store is open: one thread that looks at them
// now and then, and seals what has gathered enough unsealed rows. Private to this layer.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "cellar/catalog/catalog.h"
#include "cellar/table/sealer.h"

namespace cellar::session {

// When to seal: by the thread, never, or at the end of every commit (`cellar.seal`).
enum class SealMode : uint8_t { kAuto, kOff, kAlways };
Result<SealMode> ParseSealMode(std::string_view name);  // 22023

// Whether a table in this state is due, given how many unsealed bytes it was left with.
bool SealIsDue(const table::StorageState& state, uint64_t left_bytes);
// The unsealed bytes that a table of this size may have.
uint64_t SealAllowance(const table::StorageState& state);

// cellar.seal_rate as built in, in bytes.
inline constexpr uint64_t kDefaultSealRate = 64 << 20;

// Thread-safe.
class SealService {
 public:
  // All outlive it.
  SealService(catalog::Catalog* catalog, table::Sealer* sealer)
      : catalog_(catalog), sealer_(sealer) {}
  ~SealService() { Stop(); }
  SealService(const SealService&) = delete;
  SealService& operator=(const SealService&) = delete;

  void Start();
  // Waits for the running step. No Start after it.
  void Stop();
  // The thread rests while one more Pause than Resume has been called.
  void Pause();
  void Resume();
  // Bytes of pages written in a second at most; 0: no limit.
  void set_rate(uint64_t bytes_per_second) {
    rate_.store(bytes_per_second, std::memory_order_relaxed);
  }

 private:
  using Clock = std::chrono::steady_clock;
  // What is remembered of a table between looks.
  struct Watch {
    Clock::time_point next_look;
    uint64_t left_bytes = 0;  // unsealed ones, as the engine reports them, after the last sealing
    uint64_t seen_changes = 0;
    int quiet_looks = 0;
    uint64_t seen_in = 0;  // the round it was last listed in
    bool reported = false;
  };

  void Run();
  void LookAtAll();
  void Look(const catalog::TablePtr& table, Watch* watch);
  Status Seal(const catalog::TablePtr& table);
  // False when the service stops or is paused.
  bool Wait(Clock::duration duration);

  catalog::Catalog* catalog_;
  table::Sealer* sealer_;
  std::atomic<uint64_t> rate_{kDefaultSealRate};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  int pauses_ = 0;         // guarded by mutex_
  std::thread thread_;
  // Of the thread only.
  std::unordered_map<uint64_t, Watch> watches_;
  uint64_t round_ = 0;
};

}  // namespace cellar::session
