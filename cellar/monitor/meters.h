// What a door counts while it serves: relaxed atomics, cheap enough for every request.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cellar::monitor {

// Durations in buckets that double from a microsecond to about half a minute. Thread-safe.
class LatencyHistogram {
 public:
  static constexpr size_t kBuckets = 26;  // the last one has no upper end
  // Of bucket `i`, in seconds.
  static double UpperSeconds(size_t i) { return 1e-6 * static_cast<double>(uint64_t{1} << i); }

  void Record(std::chrono::nanoseconds duration) {
    const auto nanos = static_cast<uint64_t>(std::max<int64_t>(0, duration.count()));
    const uint64_t micros = (nanos + 999) / 1000;
    const size_t at = micros <= 1 ? 0 : static_cast<size_t>(std::bit_width(micros - 1));
    counts_[std::min(at, kBuckets - 1)].fetch_add(1, std::memory_order_relaxed);
    nanos_.fetch_add(nanos, std::memory_order_relaxed);
  }
  uint64_t count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  double sum_seconds() const {
    return 1e-9 * static_cast<double>(nanos_.load(std::memory_order_relaxed));
  }

 private:
  std::array<std::atomic<uint64_t>, kBuckets> counts_{};
  std::atomic<uint64_t> nanos_{0};
};

// The first two characters of SQLSTATEs, counted. Thread-safe.
class ErrorClasses {
 public:
  void Record(std::string_view sqlstate) {
    const size_t at = Index(sqlstate);
    counts_[at].fetch_add(1, std::memory_order_relaxed);
  }
  // The classes that occurred, as {"40", 3}.
  std::vector<std::pair<std::string, uint64_t>> counts() const;

 private:
  static constexpr size_t kDigits = 36;
  static size_t Digit(char c) {
    if (c >= '0' && c <= '9') return static_cast<size_t>(c - '0');
    return c >= 'A' && c <= 'Z' ? static_cast<size_t>(c - 'A') + 10 : kDigits - 1;
  }
  static size_t Index(std::string_view sqlstate) {
    if (sqlstate.size() < 2) return kDigits * kDigits - 1;
    return Digit(sqlstate[0]) * kDigits + Digit(sqlstate[1]);
  }
  std::array<std::atomic<uint64_t>, kDigits * kDigits> counts_{};
};

// Of one door, since the server's start.
struct DoorMeters {
  explicit DoorMeters(std::string door_name) : door(std::move(door_name)) {}

  // One request, or one statement of a protocol that has several a request.
  void Request(std::chrono::nanoseconds duration) { latency.Record(duration); }
  void Error(std::string_view sqlstate) { errors.Record(sqlstate); }

  const std::string door;  // "sql", "table"
  LatencyHistogram latency;
  ErrorClasses errors;
  std::atomic<uint64_t> rows_sent{0}, rows_written{0}, bytes_sent{0}, bytes_received{0};
  std::atomic<int64_t> sessions{0};
  std::atomic<uint64_t> logins_refused{0};
};

}  // namespace cellar::monitor
