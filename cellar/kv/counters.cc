#include "cellar/kv/counters.h"

#include <cstring>
#include <memory>

namespace cellar::kv {
namespace {

// Tags of the integers 0 and up (docs/formats/key.md, section 3).
constexpr unsigned char kZeroTag = 0x15, kFirstLongTag = 0x4D;
constexpr uint64_t kLeastLong = 56;

Status Damaged(std::string_view name) {
  return CorruptionError("a record of counter \"{}\" does not read",
                         name.substr(name.empty() ? 0 : 1));
}

}  // namespace

std::string CounterKey(std::string_view name, uint64_t version) {
  std::string key(name);
  if (version < kLeastLong) {
    key += static_cast<char>(kZeroTag + version);
    return key;
  }
  int bytes = 8;
  while (version >> (8 * (bytes - 1)) == 0) --bytes;
  key += static_cast<char>(kFirstLongTag + bytes - 1);
  for (int i = bytes - 1; i >= 0; --i) key += static_cast<char>(version >> (8 * i) & 0xFF);
  if (key.back() == '\0') key += '\1';  // END
  return key;
}

std::string CounterEnd(std::string_view name) {
  std::string end(name);
  end += static_cast<char>(kFirstLongTag + 8);
  return end;
}

std::string EncodeCounters(const CounterValues& values) {
  std::string bytes;
  for (const int64_t value : values) {
    for (int i = 0; i < 8; ++i) {
      bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xFF);
    }
  }
  return bytes;
}

Result<CounterValues> DecodeCounters(std::string_view bytes) {
  CounterValues values{};
  if (bytes.size() != sizeof(values)) {
    return CorruptionError("a counter's record has {} bytes", bytes.size());
  }
  for (size_t value = 0; value < values.size(); ++value) {
    uint64_t bits = 0;
    for (int i = 7; i >= 0; --i) {
      bits = bits << 8 | static_cast<unsigned char>(bytes[value * 8 + static_cast<size_t>(i)]);
    }
    values[value] = static_cast<int64_t>(bits);
  }
  return values;
}

void AddCounters(const CounterValues& from, CounterValues* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    (*to)[i] =
        static_cast<int64_t>(static_cast<uint64_t>((*to)[i]) + static_cast<uint64_t>(from[i]));
  }
}

Result<std::optional<CounterValues>> SumCounters(std::string_view name, RawCursor* cursor,
                                                 std::vector<uint64_t>* versions) {
  std::optional<CounterValues> sum;
  Status damage;
  std::string_view key, value;
  while (true) {
    CELLAR_TRY_ASSIGN(const bool more, cursor->NextView(&key, &value));
    if (!more && !damage.ok()) return damage;
    if (!more) return sum;
    std::string_view suffix = key.substr(name.size());
    const auto tag = static_cast<unsigned char>(suffix.empty() ? 0 : suffix[0]);
    uint64_t version = 0;
    if (tag >= kZeroTag && tag < kFirstLongTag) {
      version = tag - kZeroTag;
    } else if (tag >= kFirstLongTag && suffix.size() >= size_t{1} + (tag - kFirstLongTag + 1)) {
      for (int i = 0; i <= tag - kFirstLongTag; ++i) {
        version = version << 8 | static_cast<unsigned char>(suffix[static_cast<size_t>(i) + 1]);
      }
    }
    if (CounterKey(name, version) != key) return Damaged(name);
    if (version != 0) versions->push_back(version);
    const Result<CounterValues> values = DecodeCounters(value);
    if (!values.ok()) {
      damage = values.status();
      continue;
    }
    if (!sum) sum.emplace();
    AddCounters(*values, &*sum);
  }
}

void ApplyChange(const CounterChange& change, std::optional<CounterValues>* counter) {
  switch (change.op) {
    case CounterOp::kDrop: counter->reset(); return;
    case CounterOp::kCreate:
      if (!*counter) counter->emplace();
      break;
    case CounterOp::kAdd: break;
  }
  if (*counter) AddCounters(change.values, &**counter);
}

Result<CounterTable::Known*> CounterTable::Find(const std::string& name, bool to_drop) {
  const auto found = known_.find(name);
  if (found != known_.end()) return &found->second;
  Known known;
  const std::shared_ptr<const SnapshotReader> reader = storage_->TakeSnapshot();
  const std::unique_ptr<RawCursor> cursor = reader->Scan(name, CounterEnd(name), RawScanOptions());
  Result<std::optional<CounterValues>> total = SumCounters(name, cursor.get(), &known.versions);
  if (!total.ok() && (!to_drop || total.status().code() != Code::kCorruption))
    return total.status();
  known.total = total.ok() ? *total : CounterValues{};
  return &known_.emplace(name, std::move(known)).first->second;
}

Status CounterTable::Prepare(std::span<const CounterChange> changes, uint64_t version, bool ingest,
                             std::vector<CounterWrite>* writes) {
  writes->clear();
  // All that may fail comes first.
  for (const CounterChange& change : changes)
    CELLAR_TRY(Find(change.name, change.op == CounterOp::kDrop).status());
  // One pass a counter: changes of one name follow each other in order, but others may lie between.
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::string& name = changes[i].name;
    bool done = false;
    for (size_t before = 0; before < i && !done; ++before) done = changes[before].name == name;
    if (done) continue;
    Known* known = &known_.at(name);
    const bool existed = known->total.has_value();
    bool dropped = false;
    CounterValues added{};
    for (size_t at = i; at < changes.size(); ++at) {
      if (changes[at].name != name) continue;
      dropped |= changes[at].op == CounterOp::kDrop;
      ApplyChange(changes[at], &known->total);
      if (changes[at].op != CounterOp::kDrop) AddCounters(changes[at].values, &added);
    }
    if (!existed && !known->total) continue;
    if (ingest && !dropped) {
      writes->push_back({CounterKey(name, version), EncodeCounters(added)});
      known->versions.push_back(version);
      continue;
    }
    for (const uint64_t old : known->versions) {
      writes->push_back({CounterKey(name, old), std::nullopt});
    }
    known->versions.clear();
    if (known->total) {
      writes->push_back({CounterKey(name, 0), EncodeCounters(*known->total)});
    } else {
      writes->push_back({CounterKey(name, 0), std::nullopt});
    }
  }
  return Status();
}

}  // namespace cellar::kv
