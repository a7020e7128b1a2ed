#include "cellar/kv/read_set.h"

#include <algorithm>

namespace cellar::kv {
namespace {

// Keys that share this many leading bytes mostly belong to one index.
constexpr size_t kSharedPrefix = 4;
constexpr size_t kMaxExtended = 64;

bool EndBefore(const std::string& a, const std::string& b) {
  return !a.empty() && (b.empty() || a < b);
}

}  // namespace

void ReadSet::AddRange(std::string_view start, std::string_view end, uint64_t version) {
  ranges_.push_back({std::string(start), std::string(end), version});
  if (ranges_.size() >= 2 * kMaxRanges) Join(kMaxRanges);
}

void ReadSet::Extend(std::vector<ReadRange>* ranges, std::string_view key, uint64_t version) {
  const std::string_view prefix = key.substr(0, kSharedPrefix);
  ReadRange* range = nullptr;
  for (ReadRange& candidate : *ranges) {
    if (std::string_view(candidate.start).substr(0, kSharedPrefix) == prefix ||
        ranges->size() >= kMaxExtended) {
      range = &candidate;
      break;
    }
  }
  if (range == nullptr) {
    ranges->push_back({std::string(key), std::string(key), version});
    ranges->back().end.push_back('\0');
    return;
  }
  range->version = std::min(range->version, version);
  if (key < range->start) range->start = key;
  if (key >= range->end) (range->end = key).push_back('\0');
}

void ReadSet::Prepare() {
  for (ReadRange& range : escalated_) ranges_.push_back(std::move(range));
  escalated_.clear();
  if (ranges_.size() > 1) Join(kMaxRanges);
}

void ReadSet::Join(size_t limit) {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const ReadRange& a, const ReadRange& b) { return a.start < b.start; });
  size_t kept = 0;
  for (size_t i = 1; i < ranges_.size(); ++i) {
    ReadRange& last = ranges_[kept];
    if (last.end.empty() || ranges_[i].start <= last.end) {
      if (EndBefore(last.end, ranges_[i].end)) last.end = std::move(ranges_[i].end);
      last.version = std::min(last.version, ranges_[i].version);
    } else if (++kept != i) {
      ranges_[kept] = std::move(ranges_[i]);
    }
  }
  ranges_.resize(kept + 1);
  while (ranges_.size() > limit) {
    size_t out = 0;
    for (size_t i = 0; i < ranges_.size(); i += 2, ++out) {
      ReadRange joined = std::move(ranges_[i]);
      if (i + 1 < ranges_.size()) {
        joined.end = std::move(ranges_[i + 1].end);
        joined.version = std::min(joined.version, ranges_[i + 1].version);
      }
      ranges_[out] = std::move(joined);
    }
    ranges_.resize(out);
  }
}

void ReadSet::AdvanceTo(uint64_t version) {
  segments_.clear();
  if (!points_.empty()) segments_.push_back({version, 0});
  for (ReadRange& range : ranges_) range.version = std::max(range.version, version);
  for (ReadRange& range : escalated_) range.version = std::max(range.version, version);
  for (ReadRange& range : bounds_) range.version = std::max(range.version, version);
}

void ReadSet::Clear() {
  points_.clear();
  segments_.clear();
  ranges_.clear();
  escalated_.clear();
  bounds_.clear();
  requirements_.clear();
}

}  // namespace cellar::kv
