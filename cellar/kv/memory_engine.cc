#include "cellar/kv/memory_engine.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>

#include "cellar/kv/occ_engine.h"
#include "cellar/kv/storage.h"

namespace cellar::kv {
namespace {

struct Version {
  uint64_t version;
  std::optional<std::string> value;  // nothing: deleted
};
using Versions = std::vector<Version>;  // ascending
using Map = std::map<std::string, Versions, std::less<>>;

const std::string* ValueAt(const Versions& versions, uint64_t version) {
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->version <= version) return it->value ? &*it->value : nullptr;
  }
  return nullptr;
}

// What snapshots and the storage share.
struct State {
  mutable std::shared_mutex mutex;  // guards map and newest
  Map map;
  uint64_t newest = 0;

  std::mutex snapshots_mutex;  // guards snapshots
  std::multiset<uint64_t> snapshots;
};

class MemoryCursor : public RawCursor {
 public:
  MemoryCursor(const State* state, uint64_t version, std::string_view start, std::string_view end,
               const RawScanOptions& options)
      : state_(state), version_(version), start_(start), end_(end), options_(options) {}

  Result<bool> NextBlock(size_t target_bytes, uint64_t limit, Block* block) override {
    block->Clear();
    if (ended_) return false;
    std::shared_lock lock(state_->mutex);
    const auto full = [&] {
      return !block->empty() &&
             (block->bytes() >= target_bytes || (limit != 0 && block->size() >= limit));
    };
    const auto add = [&](const Map::value_type& entry) {
      const std::string* value = ValueAt(entry.second, version_);
      if (value == nullptr) return;
      block->Append(entry.first, options_.keys_only ? std::string_view() : *value);
    };
    const Map& map = state_->map;
    auto low = map.lower_bound(start_);
    auto high = end_.empty() ? map.end() : map.lower_bound(end_);
    if (!end_.empty() && start_ >= end_) high = low;
    if (options_.reverse) {
      while (high != low && !full()) add(*--high);
      ended_ = high == low;
      if (!ended_) end_ = high->first;
    } else {
      for (; low != high && !full(); ++low) add(*low);
      ended_ = low == high;
      if (!ended_) start_ = low->first;
    }
    return !block->empty();
  }

 private:
  const State* const state_;
  const uint64_t version_;
  std::string start_, end_;
  const RawScanOptions options_;
  bool ended_ = false;
};

class MemorySnapshot : public SnapshotReader {
 public:
  MemorySnapshot(State* state, uint64_t version) : state_(state), version_(version) {}
  ~MemorySnapshot() override {
    std::lock_guard lock(state_->snapshots_mutex);
    state_->snapshots.erase(state_->snapshots.find(version_));
  }

  Result<bool> Get(std::string_view key, PinnedValue* value) const override {
    std::shared_lock lock(state_->mutex);
    auto found = state_->map.find(key);
    const std::string* bytes =
        found == state_->map.end() ? nullptr : ValueAt(found->second, version_);
    if (bytes == nullptr) {
      value->Reset();
      return false;
    }
    value->Assign(*bytes);
    return true;
  }
  Status MultiGet(std::span<const std::string_view> keys, std::span<PinnedValue> values,
                  std::span<bool> found) const override {
    for (size_t i = 0; i < keys.size(); ++i) {
      CELLAR_TRY_ASSIGN(found[i], Get(keys[i], &values[i]));
    }
    return {};
  }
  std::unique_ptr<RawCursor> Scan(std::string_view start, std::string_view end,
                                  const RawScanOptions& options) const override {
    return std::make_unique<MemoryCursor>(state_, version_, start, end, options);
  }

 private:
  State* const state_;
  const uint64_t version_;
};

class MemoryStorage : public Storage {
 public:
  Limits limits() const override {
    Limits limits;
    limits.max_key_bytes = 1 << 20;
    limits.native_ranges = false;
    return limits;
  }
  uint64_t opened_version() const override { return 0; }

  std::shared_ptr<const SnapshotReader> TakeSnapshot() override {
    std::shared_lock lock(state_.mutex);
    std::lock_guard snapshots_lock(state_.snapshots_mutex);
    state_.snapshots.insert(state_.newest);
    return std::make_shared<MemorySnapshot>(&state_, state_.newest);
  }
  Result<bool> GetLatest(std::string_view key, PinnedValue* value) override {
    return TakeSnapshot()->Get(key, value);
  }

  Status Admit(size_t, bool) override { return {}; }
  Status Write(std::span<const GroupMember> group, bool* failed) override {
    std::unique_lock lock(state_.mutex);
    const uint64_t needed = OldestSnapshot();
    for (const GroupMember& member : group) {
      for (const WriteBuffer::RangeDeletion& range : member.writes->range_deletions()) {
        auto at = state_.map.lower_bound(range.start);
        while (at != state_.map.end() && (range.end.empty() || at->first < range.end)) {
          at = Apply(at, {member.version, std::nullopt}, needed);
        }
      }
      member.writes->ForEachFinal([&](const WriteBuffer::Node& node) {
        std::optional<std::string> value;
        if (node.kind != WriteKind::kDelete) value = node.value();
        const auto at = state_.map.try_emplace(std::string(node.key())).first;
        Apply(at, {member.version, std::move(value)}, needed);
      });
      for (const CounterWrite& counter : member.counters) {
        const auto at = state_.map.try_emplace(counter.key).first;
        Apply(at, {member.version, counter.value}, needed);
      }
      state_.newest = member.version;
    }
    return {};
  }

  Status SyncLog(bool* failed) override { return {}; }

  size_t spill_bytes() const override { return SIZE_MAX; }
  Result<std::unique_ptr<SpillWriter>> NewSpillFile() override {
    return InternalError("the memory engine does not spill");
  }
  Status Ingest(std::span<const std::unique_ptr<SpillFile>> files,
                std::span<const WriteBuffer::RangeDeletion> range_deletions,
                std::span<const CounterWrite> counters, bool unread, uint64_t version,
                bool* failed) override {
    return InternalError("the memory engine does not spill");
  }

  uint64_t ApproximateBytes(std::string_view start, std::string_view end) override {
    uint64_t bytes = 0;
    ForEachLive(start, end, [&](const std::string& key, const std::string& value) {
      bytes += key.size() + value.size();
    });
    return bytes;
  }
  std::vector<std::string> SplitPoints(std::string_view start, std::string_view end,
                                       size_t parts) override {
    const uint64_t step = ApproximateBytes(start, end) / parts + 1;
    std::vector<std::string> points;
    uint64_t bytes = 0;
    ForEachLive(start, end, [&](const std::string& key, const std::string& value) {
      if (bytes >= step * (points.size() + 1)) points.push_back(key);
      bytes += key.size() + value.size();
    });
    return points;
  }
  Status Compact(std::string_view start, std::string_view end) override {
    std::unique_lock lock(state_.mutex);
    const uint64_t needed = OldestSnapshot();
    auto at = state_.map.lower_bound(start);
    while (at != state_.map.end() && (end.empty() || at->first < end)) at = Prune(at, needed);
    return {};
  }
  Status Sync() override { return {}; }
  void AddStats(EngineStats* stats) const override {}
  Status Close() override { return {}; }

 private:
  // No snapshot reads below this.
  uint64_t OldestSnapshot() {
    std::lock_guard lock(state_.snapshots_mutex);
    return state_.snapshots.empty() ? state_.newest : *state_.snapshots.begin();
  }
  // Adds a version and drops those that nobody can read; the next entry.
  Map::iterator Apply(Map::iterator at, Version version, uint64_t needed) {
    Versions& versions = at->second;
    if (!versions.empty() && versions.back().version == version.version) {
      versions.back() = std::move(version);
    } else {
      versions.push_back(std::move(version));
    }
    return Prune(at, needed);
  }
  Map::iterator Prune(Map::iterator at, uint64_t needed) {
    Versions& versions = at->second;
    size_t dead = 0;
    while (dead + 1 < versions.size() && versions[dead + 1].version <= needed) ++dead;
    versions.erase(versions.begin(), versions.begin() + static_cast<ptrdiff_t>(dead));
    const bool gone = versions.size() == 1 && !versions[0].value && versions[0].version <= needed;
    return gone ? state_.map.erase(at) : std::next(at);
  }
  template <typename Fn>
  void ForEachLive(std::string_view start, std::string_view end, Fn&& fn) const {
    std::shared_lock lock(state_.mutex);
    // The view keeps clang 14 from a comparison it cannot resolve.
    for (auto at = state_.map.lower_bound(start);
         at != state_.map.end() && (end.empty() || std::string_view(at->first) < end); ++at) {
      const std::string* value = ValueAt(at->second, state_.newest);
      if (value != nullptr) fn(at->first, *value);
    }
  }

  State state_;
};

}  // namespace

std::unique_ptr<Engine> MakeMemoryEngine() {
  return std::make_unique<OccEngine>(std::make_unique<MemoryStorage>());
}

}  // namespace cellar::kv
