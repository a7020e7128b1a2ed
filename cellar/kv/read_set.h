// What a transaction has read and wants validated: hashes of keys, and key ranges.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cellar::kv {

// [start, end) as read at `version`; an empty `end` means no upper bound.
struct ReadRange {
  std::string start;
  std::string end;
  uint64_t version;

  bool Contains(std::string_view key) const { return key >= start && (end.empty() || key < end); }
  bool Overlaps(std::string_view other_start, std::string_view other_end) const {
    return (other_end.empty() || start < other_end) && (end.empty() || other_start < end);
  }
};

// "`key` must not have been written after `version`."
struct Requirement {
  std::string key;
  uint64_t version;
};

// Bounded: past kMaxPoints keys turn into ranges, past kMaxRanges neighbouring ranges are joined.
// Both only widen what is validated: conflicts may be false, never missed. One thread at a time.
//
// Points are known by hash, and by the keys between which those of an index lie: that tells whether
// somebody who wrote a range (a bulk load, a range deletion) may have changed them.
class ReadSet {
 public:
  static constexpr size_t kMaxPoints = 1 << 20;
  static constexpr size_t kMaxRanges = 4096;

  // Points read at one version; hashes() is cut into these.
  struct Segment {
    uint64_t version;
    size_t begin;
  };

  void AddPoint(std::string_view key, uint64_t hash, uint64_t version) {
    if (segments_.empty() || segments_.back().version != version) {
      segments_.push_back({version, points_.size()});
    }
    if (points_.size() < kMaxPoints) {
      points_.push_back(hash);
      Extend(&bounds_, key, version);
    } else {
      Extend(&escalated_, key, version);
    }
  }
  void AddRange(std::string_view start, std::string_view end, uint64_t version);
  // One that was added lately is not added again: every statement of a transaction asks for its
  // tables.
  void AddRequirement(std::string_view key, uint64_t version) {
    constexpr size_t kLately = 32;
    const size_t count = requirements_.size();
    for (size_t i = 0; i < count && i < kLately; ++i) {
      const Requirement& other = requirements_[count - 1 - i];
      if (other.version == version && other.key == key) return;
    }
    requirements_.push_back({std::string(key), version});
  }
  // Sorts the ranges and joins those that touch. Call before ranges() is used for validation.
  void Prepare();
  // Everything was found unchanged up to `version`: validate only what comes later.
  void AdvanceTo(uint64_t version);
  void Clear();

  bool empty() const { return points_.empty() && ranges_.empty() && requirements_.empty(); }
  std::span<const uint64_t> points() const { return points_; }
  std::span<const Segment> segments() const { return segments_; }
  std::span<const ReadRange> ranges() const { return ranges_; }
  // Ranges that hold all points.
  std::span<const ReadRange> bounds() const { return bounds_; }
  std::span<const Requirement> requirements() const { return requirements_; }

 private:
  static void Extend(std::vector<ReadRange>* ranges, std::string_view key, uint64_t version);
  void Join(size_t limit);

  std::vector<uint64_t> points_;
  std::vector<Segment> segments_;
  std::vector<ReadRange> ranges_;
  std::vector<ReadRange> escalated_;  // of points, one per leading bytes of keys
  std::vector<ReadRange> bounds_;
  std::vector<Requirement> requirements_;
};

}  // namespace cellar::kv
