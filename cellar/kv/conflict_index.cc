#include "cellar/kv/conflict_index.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "cellar/base/check.h"
#include "cellar/kv/hash.h"
#include "cellar/kv/key_spans.h"

namespace cellar::kv {
namespace {

// A commit that would take more of the ring is noted as a few ranges.
constexpr uint64_t kLargestPart = 8;

// Ring record: u32 keys, u32 ranges, u64 hash per key, then (u32 size, bytes) per key and per bound
// of a range.
void PutString(std::string_view bytes, char** out) {
  const auto size = static_cast<uint32_t>(bytes.size());
  std::memcpy(*out, &size, 4);
  std::memcpy(*out + 4, bytes.data(), bytes.size());
  *out += 4 + bytes.size();
}

std::string_view TakeString(const char** at) {
  uint32_t size;
  std::memcpy(&size, *at, 4);
  const std::string_view bytes(*at + 4, size);
  *at += 4 + size;
  return bytes;
}

// `ranges` are sorted and disjoint. Which one holds the key, or null.
const ReadRange* RangeOf(std::span<const ReadRange> ranges, std::string_view key) {
  if (ranges.size() == 1) return ranges[0].Contains(key) ? &ranges[0] : nullptr;
  auto after = std::upper_bound(
      ranges.begin(), ranges.end(), key,
      [](std::string_view wanted, const ReadRange& range) { return wanted < range.start; });
  if (after == ranges.begin()) return nullptr;
  --after;
  return after->Contains(key) ? &*after : nullptr;
}

}  // namespace

ConflictIndex::ConflictIndex(int slots_log2, int ring_bytes_log2, uint64_t version)
    : mask_((uint64_t{1} << slots_log2) - 1),
      slots_(static_cast<uint64_t*>(std::calloc(mask_ + 1, sizeof(uint64_t)))),
      point_floor_(0),
      newest_(version),
      ring_bytes_(uint64_t{1} << ring_bytes_log2),
      ring_(std::make_unique_for_overwrite<char[]>(ring_bytes_)),
      starts_(std::make_unique_for_overwrite<uint64_t[]>(kMaxCommits)),
      oldest_(version + 1) {
  CELLAR_CHECK(slots_ != nullptr);
}

ConflictIndex::~ConflictIndex() { std::free(slots_); }

uint64_t ConflictIndex::LastWrite(uint64_t hash) const {
  return std::atomic_ref<uint64_t>(slots_[hash & mask_]).load(std::memory_order_acquire) &
         ~kWatched;
}

bool ConflictIndex::Unchanged(const ReadSet& reads, uint64_t checked) const {
  if (!reads.points().empty() && !PointsUnchanged(reads, checked)) return false;
  if (!reads.ranges().empty() && !RangesUnchanged(reads.ranges(), checked)) return false;
  for (const Requirement& requirement : reads.requirements()) {
    if (!RequirementHolds(requirement)) return false;
  }
  return true;
}

bool ConflictIndex::PointsUnchanged(const ReadSet& reads, uint64_t checked) const {
  const std::span<const uint64_t> points = reads.points();
  const std::span<const ReadSet::Segment> segments = reads.segments();
  const uint64_t floor = point_floor_.load(std::memory_order_acquire);
  bool alarm = false;
  uint64_t since = UINT64_MAX;
  for (size_t i = 0; i < segments.size(); ++i) {
    const size_t end = i + 1 < segments.size() ? segments[i + 1].begin : points.size();
    const uint64_t version = segments[i].version;
    since = std::min(since, version);
    alarm |= floor > version;
    for (size_t j = segments[i].begin; j < end; ++j) alarm |= LastWrite(points[j]) > version;
  }
  if (!alarm) return true;

  std::vector<std::pair<uint64_t, uint64_t>> sorted;  // hash, version
  sorted.reserve(points.size());
  for (size_t i = 0; i < segments.size(); ++i) {
    const size_t end = i + 1 < segments.size() ? segments[i + 1].begin : points.size();
    for (size_t j = segments[i].begin; j < end; ++j) {
      sorted.emplace_back(points[j], segments[i].version);
    }
  }
  std::sort(sorted.begin(), sorted.end());
  since = std::max(since, checked);
  std::shared_lock lock(mutex_);
  const uint64_t newest = newest_.load(std::memory_order_relaxed);
  if (since < newest && since + 1 < oldest_) return false;
  for (uint64_t version = since + 1; version <= newest; ++version) {
    const char* at = ring_.get() + starts_[version % kMaxCommits] % ring_bytes_;
    uint32_t counts[2];
    std::memcpy(counts, at, sizeof(counts));
    at += sizeof(counts);
    for (uint32_t i = 0; i < counts[0]; ++i, at += sizeof(uint64_t)) {
      uint64_t hash;
      std::memcpy(&hash, at, sizeof(hash));
      // The least version of equal hashes comes first, and it decides.
      const auto found =
          std::lower_bound(sorted.begin(), sorted.end(), std::pair(hash, uint64_t{0}));
      if (found != sorted.end() && found->first == hash && found->second < version) return false;
    }
    if (counts[1] == 0) continue;
    for (uint32_t i = 0; i < counts[0]; ++i) TakeString(&at);
    for (uint32_t i = 0; i < counts[1]; ++i) {
      const std::string_view start = TakeString(&at);
      const std::string_view end = TakeString(&at);
      for (const ReadRange& range : reads.bounds()) {
        if (version > range.version && range.Overlaps(start, end)) return false;
      }
    }
  }
  return true;
}

bool ConflictIndex::KeyUnchanged(std::string_view key, uint64_t hash, uint64_t version) const {
  const uint64_t marked = LastWriteOrRange(hash);
  if (marked <= version) return true;
  std::shared_lock lock(mutex_);
  const uint64_t newest = newest_.load(std::memory_order_relaxed);
  // Marked, but not in the ring yet; or in it no more.
  if (marked > newest || version + 1 < oldest_) return false;
  for (uint64_t commit = version + 1; commit <= newest; ++commit) {
    const char* at = ring_.get() + starts_[commit % kMaxCommits] % ring_bytes_;
    uint32_t counts[2];
    std::memcpy(counts, at, sizeof(counts));
    at += sizeof(counts);
    for (uint32_t i = 0; i < counts[0]; ++i, at += sizeof(uint64_t)) {
      uint64_t written;
      std::memcpy(&written, at, sizeof(written));
      if (written == hash) return false;
    }
    if (counts[1] == 0) continue;
    for (uint32_t i = 0; i < counts[0]; ++i) TakeString(&at);
    for (uint32_t i = 0; i < counts[1]; ++i) {
      const std::string_view start = TakeString(&at);
      const std::string_view end = TakeString(&at);
      if (key >= start && (end.empty() || key < end)) return false;
    }
  }
  return true;
}

bool ConflictIndex::RangeUnchanged(const ReadRange& range) const {
  return RangesUnchanged({&range, 1}, 0);
}

bool ConflictIndex::RangesUnchanged(std::span<const ReadRange> ranges, uint64_t checked) const {
  uint64_t since = UINT64_MAX;
  for (const ReadRange& range : ranges) since = std::min(since, range.version);
  since = std::max(since, checked);
  std::shared_lock lock(mutex_);
  const uint64_t newest = newest_.load(std::memory_order_relaxed);
  if (since >= newest) return true;
  if (since + 1 < oldest_) return false;
  for (uint64_t version = since + 1; version <= newest; ++version) {
    const char* at = ring_.get() + starts_[version % kMaxCommits] % ring_bytes_;
    uint32_t counts[2];
    std::memcpy(counts, at, sizeof(counts));
    at += sizeof(counts) + counts[0] * sizeof(uint64_t);
    for (uint32_t i = 0; i < counts[0]; ++i) {
      const ReadRange* range = RangeOf(ranges, TakeString(&at));
      if (range != nullptr && version > range->version) return false;
    }
    for (uint32_t i = 0; i < counts[1]; ++i) {
      const std::string_view start = TakeString(&at);
      const std::string_view end = TakeString(&at);
      for (const ReadRange& range : ranges) {
        if (version > range.version && range.Overlaps(start, end)) return false;
      }
    }
  }
  return true;
}

bool ConflictIndex::Require(std::string_view key, uint64_t version) {
  const uint64_t hash = HashKey(key);
  {
    std::shared_lock lock(mutex_);
    auto found = watched_.find(key);
    if (found != watched_.end()) return found->second <= version;
  }
  std::unique_lock lock(mutex_);
  // Set the flag first: a concurrent Mark either leaves its version in the slot that we read, or
  // sees the flag and waits for the lock to note the key.
  const uint64_t slot =
      std::atomic_ref<uint64_t>(slots_[hash & mask_]).fetch_or(kWatched, std::memory_order_acq_rel);
  uint64_t last = 0;
  if (IsSystemKey(key)) {
    for (const ReadRange& range : system_ranges_) {
      if (range.Contains(key)) last = std::max(last, range.version);
    }
  } else {
    last = std::max(slot & ~kWatched, point_floor_.load(std::memory_order_acquire));
  }
  const auto found = watched_.try_emplace(std::string(key), last).first;
  return found->second <= version;
}

bool ConflictIndex::RequirementHolds(const Requirement& requirement) const {
  std::shared_lock lock(mutex_);
  auto found = watched_.find(requirement.key);
  return found != watched_.end() && found->second <= requirement.version;
}

void ConflictIndex::Mark(const WriteSet& writes, uint64_t version) {
  if (writes.unmarked) newest_unmarked_.store(version, std::memory_order_release);
  if (!writes.unmarked || !writes.ranges.empty()) MarkPoints(writes, version);
  Record(writes, version);
}

void ConflictIndex::MarkSlot(uint64_t hash, uint64_t version, bool* watched) {
  std::atomic_ref<uint64_t> slot(slots_[hash & mask_]);
  uint64_t old = slot.load(std::memory_order_relaxed);
  while (!slot.compare_exchange_weak(old, version | (old & kWatched), std::memory_order_acq_rel)) {
  }
  *watched |= (old & kWatched) != 0;
}

void ConflictIndex::NoteWatched(std::string_view key, uint64_t version) {
  if (IsSystemKey(key)) {
    watched_.insert_or_assign(std::string(key), version);
    return;
  }
  auto found = watched_.find(key);
  if (found != watched_.end()) found->second = version;
}

void ConflictIndex::MarkPoints(const WriteSet& writes, uint64_t version) {
  const WriteBuffer* buffer = writes.unmarked ? nullptr : writes.buffer;
  bool watched = false;
  for (const uint64_t hash : writes.hashes) MarkSlot(hash, version, &watched);
  for (const std::string& key : writes.more_keys) {
    MarkSlot(HashKey(key), version, &watched);
    watched |= IsSystemKey(key);
  }
  if (!writes.ranges.empty()) point_floor_.store(version, std::memory_order_release);
  // System records come first in key order, so one look tells whether there are any.
  watched |= buffer != nullptr && buffer->keys() != 0 && IsSystemKey(buffer->At({0, 0})->key());
  if (!watched && writes.ranges.empty()) return;
  std::unique_lock lock(mutex_);
  if (watched && buffer != nullptr) {
    buffer->ForEachFinal([&](const WriteBuffer::Node& node) { NoteWatched(node.key(), version); });
  }
  for (const std::string& key : writes.more_keys) NoteWatched(key, version);
  for (const auto& [start, end] : writes.ranges) {
    if (start < kFirstDataKey) system_ranges_.push_back({start, end, version});
    for (auto it = watched_.lower_bound(start);
         it != watched_.end() && (end.empty() || it->first < end); ++it) {
      it->second = version;
    }
  }
}

void ConflictIndex::Record(const WriteSet& writes, uint64_t version) {
  size_t bytes = 8, keys = 0, range_bytes = 0;
  for (const auto& [start, end] : writes.ranges) range_bytes += 8 + start.size() + end.size();
  if (!writes.unmarked && writes.buffer != nullptr) {
    writes.buffer->ForEachFinal([&](const WriteBuffer::Node& node) {
      bytes += sizeof(uint64_t) + 4 + node.key_bytes;
      ++keys;
    });
  }
  for (const std::string& key : writes.more_keys) bytes += sizeof(uint64_t) + 4 + key.size();
  keys += writes.more_keys.size();
  std::vector<std::pair<std::string, std::string>> joined;
  if (bytes > ring_bytes_ / kLargestPart) {
    KeySpans spans;
    writes.buffer->ForEachFinal([&](const WriteBuffer::Node& node) { spans.Add(node.key()); });
    joined = spans.Take();
    for (const std::string& key : writes.more_keys) joined.emplace_back(key, key + '\0');
    keys = 0;
    bytes = 8;
    for (const auto& [start, end] : joined) range_bytes += 8 + start.size() + end.size();
  }
  std::unique_lock lock(mutex_);
  if (bytes + range_bytes > ring_bytes_ / 2) {  // absurdly long keys: refuse all open range reads
    oldest_ = version + 1;
    newest_.store(version, std::memory_order_release);
    return;
  }
  char* out = Reserve(bytes + range_bytes, version);
  const uint32_t counts[2] = {static_cast<uint32_t>(keys),
                              static_cast<uint32_t>(joined.size() + writes.ranges.size())};
  std::memcpy(out, counts, sizeof(counts));
  out += sizeof(counts);
  if (keys != 0) {
    std::memcpy(out, writes.hashes.data(), writes.hashes.size() * sizeof(uint64_t));
    out += writes.hashes.size() * sizeof(uint64_t);
    for (const std::string& key : writes.more_keys) {
      const uint64_t hash = HashKey(key);
      std::memcpy(out, &hash, sizeof(hash));
      out += sizeof(hash);
    }
    writes.buffer->ForEachFinal(
        [&](const WriteBuffer::Node& node) { PutString(node.key(), &out); });
    for (const std::string& key : writes.more_keys) PutString(key, &out);
  }
  for (const auto& [start, end] : joined) {
    PutString(start, &out);
    PutString(end, &out);
  }
  for (const auto& [start, end] : writes.ranges) {
    PutString(start, &out);
    PutString(end, &out);
  }
  newest_.store(version, std::memory_order_release);
}

char* ConflictIndex::Reserve(size_t bytes, uint64_t version) {
  uint64_t start = head_;
  if (start % ring_bytes_ + bytes > ring_bytes_) {
    start += ring_bytes_ - start % ring_bytes_;
  }
  head_ = start + bytes;
  if (version - oldest_ >= kMaxCommits) oldest_ = version - kMaxCommits + 1;
  while (oldest_ < version && starts_[oldest_ % kMaxCommits] + ring_bytes_ < head_) ++oldest_;
  starts_[version % kMaxCommits] = start;
  return ring_.get() + start % ring_bytes_;
}

}  // namespace cellar::kv
