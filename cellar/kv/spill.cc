#include "cellar/kv/spill.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "cellar/base/sqlstate.h"
#include "cellar/kv/hash.h"
#include "cellar/kv/own_cursor.h"

namespace cellar::kv {
namespace {

// Bit positions from one 64-bit hash: seven of them suit ten bits a key.
constexpr int kFilterProbes = 7;
constexpr size_t kFilterBlockBytes = 64 << 10;

}  // namespace

void KeyFilter::Add(uint64_t hash) {
  const uint64_t step = (hash >> 17) | (hash << 47);
  for (int i = 0; i < kFilterProbes; ++i, hash += step) {
    const uint64_t bit = hash % (words_.size() * 64);
    words_[bit / 64] |= uint64_t{1} << (bit % 64);
  }
}

bool KeyFilter::MayContain(uint64_t hash) const {
  const uint64_t step = (hash >> 17) | (hash << 47);
  for (int i = 0; i < kFilterProbes; ++i, hash += step) {
    const uint64_t bit = hash % (words_.size() * 64);
    if ((words_[bit / 64] >> (bit % 64) & 1) == 0) return false;
  }
  return true;
}

Status DuplicateKey(std::string_view key, std::string* duplicate) {
  *duplicate = key;
  return SqlError(Code::kConstraint, sqlstate::kUniqueViolation, "key exists already");
}

void AppendVersion(const RunVersion& version, std::string* list) {
  const auto kind = static_cast<char>(version.kind);
  const auto bytes = static_cast<uint32_t>(version.value.size());
  list->append(reinterpret_cast<const char*>(&version.seq), sizeof(version.seq));
  list->push_back(kind);
  list->append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  list->append(version.value);
}

Result<bool> FindVersion(std::string_view list, uint64_t seq, RunVersion* version) {
  constexpr size_t kHead = sizeof(uint64_t) + 1 + sizeof(uint32_t);
  while (!list.empty()) {
    uint32_t bytes = 0;
    if (list.size() >= kHead)
      std::memcpy(&bytes, list.data() + kHead - sizeof(bytes), sizeof(bytes));
    if (list.size() < kHead + bytes) return CorruptionError("a spill file has a broken version");
    std::memcpy(&version->seq, list.data(), sizeof(version->seq));
    version->kind = static_cast<WriteKind>(list[sizeof(uint64_t)]);
    version->value = list.substr(kHead, bytes);
    if (version->seq <= seq) return true;
    list.remove_prefix(kHead + bytes);
  }
  return false;
}

Result<bool> SpillRun::MayContain(uint64_t hash) {
  if (!filter.has_value()) {
    KeyFilter made(put_count + delete_count);
    for (SpillFile* file : {puts.get(), deletes.get()}) {
      if (file == nullptr) continue;
      const std::unique_ptr<RawCursor> cursor =
          file->Scan({}, {}, {.keys_only = true, .fill_cache = false});
      Block block;
      while (true) {
        CELLAR_TRY_ASSIGN(const bool more, cursor->NextBlock(kFilterBlockBytes, 0, &block));
        if (!more) break;
        for (size_t i = 0; i < block.size(); ++i) made.Add(HashKey(block.key(i)));
      }
    }
    filter = std::move(made);
  }
  return filter->MayContain(hash);
}

void SpillRun::NoteKey(std::string_view key) {
  if (IsSystemKey(key)) {
    system_keys.emplace_back(key);
  } else {
    spans.Add(key);
  }
}

Status SpillSet::Add(const WriteBuffer& buffer, uint64_t after_seq, uint64_t last_seq) {
  CELLAR_TRY(Open(buffer, after_seq, last_seq));
  return Close();
}

Status SpillSet::AddVersioned(const WriteBuffer& buffer, uint64_t after_seq, uint64_t last_seq,
                              std::span<const uint64_t> bounds) {
  auto run = std::make_unique<SpillRun>();
  run->first_seq = after_seq + 1;
  run->last_seq = last_seq;
  run->versioned = true;
  CELLAR_TRY_ASSIGN(const std::unique_ptr<SpillWriter> writer, storage_->NewSpillFile());
  std::string list;
  for (auto at = buffer.Begin(); at != buffer.End(); at = buffer.Next(at)) {
    list.clear();
    const WriteBuffer::Node* node = buffer.At(at, last_seq);
    uint64_t newer = UINT64_MAX;  // the number of the version kept last
    for (; node != nullptr && node->seq > after_seq; node = node->older) {
      // Is there a view that sees this one and not the newer?
      const auto view = std::lower_bound(bounds.begin(), bounds.end(), node->seq);
      if (newer != UINT64_MAX && (view == bounds.end() || *view >= newer)) continue;
      AppendVersion({node->seq, node->kind, node->value()}, &list);
      newer = node->seq;
    }
    if (list.empty()) continue;
    const std::string_view key = buffer.At(at)->key();
    CELLAR_TRY(writer->Put(key, list));
    if (run->put_count++ == 0) run->first = key;
    run->last = key;
    run->NoteKey(key);
  }
  if (run->put_count == 0) return {};
  CELLAR_TRY_ASSIGN(run->puts, writer->Finish());
  runs_.push_back(std::move(run));
  ++generation_;
  return {};
}

Status SpillSet::Open(const WriteBuffer& buffer, uint64_t after_seq, uint64_t last_seq) {
  open_ = std::make_unique<OpenRun>();
  open_->run = std::make_unique<SpillRun>();
  open_->run->first_seq = after_seq + 1;
  open_->run->last_seq = last_seq;
  for (auto at = buffer.Begin(); at != buffer.End(); at = buffer.Next(at)) {
    const WriteBuffer::Node* node = buffer.At(at, last_seq);
    if (node == nullptr || node->seq <= after_seq) continue;
    Status status = Append(node->kind, node->key(), node->value());
    if (status.ok()) continue;
    open_ = nullptr;
    return status;
  }
  return {};
}

Status SpillSet::Append(WriteKind kind, std::string_view key, std::string_view value) {
  SpillRun& run = *open_->run;
  const bool deletion = kind == WriteKind::kDelete;
  std::unique_ptr<SpillWriter>& writer = deletion ? open_->deletes : open_->puts;
  if (writer == nullptr) {
    CELLAR_TRY_ASSIGN(writer, storage_->NewSpillFile());
  }
  CELLAR_TRY(writer->Put(key, value));
  if (run.put_count + run.delete_count == 0) run.first = key;
  if (deletion) {
    ++run.delete_count;
  } else {
    ++run.put_count;
    run.unproven.push_back(kind == WriteKind::kPutIfAbsent);
    run.has_unproven |= kind == WriteKind::kPutIfAbsent;
  }
  run.last = key;
  run.NoteKey(key);
  return {};
}

Status SpillSet::Close() {
  const std::unique_ptr<OpenRun> open = std::move(open_);
  if (open == nullptr || (open->puts == nullptr && open->deletes == nullptr)) return {};
  SpillRun& run = *open->run;
  if (open->puts != nullptr) {
    CELLAR_TRY_ASSIGN(run.puts, open->puts->Finish());
  }
  if (open->deletes != nullptr) {
    CELLAR_TRY_ASSIGN(run.deletes, open->deletes->Finish());
  }
  if (!run.has_unproven) run.unproven = {};
  runs_.push_back(std::move(open->run));
  ++generation_;
  return {};
}

Result<WriteBuffer::Found> SpillSet::Find(std::string_view key, uint64_t seq,
                                          const WriteBuffer& buffer, PinnedValue* value) {
  const uint64_t hash = HashKey(key);
  for (auto it = runs_.rbegin(); it != runs_.rend(); ++it) {
    SpillRun& run = **it;
    if ((run.versioned ? run.first_seq : run.last_seq) > seq || key < run.first || key > run.last) {
      continue;
    }
    if (run.versioned) {
      CELLAR_TRY_ASSIGN(const bool may, run.MayContain(hash));
      RunVersion version;
      PinnedValue list;
      CELLAR_TRY_ASSIGN(bool found, may ? run.puts->Get(key, &list) : Result<bool>(false));
      if (found) {
        CELLAR_TRY_ASSIGN(found, FindVersion(list.view(), std::min(seq, run.last_seq), &version));
      }
      // Deletions of ranges that are younger than the run may hide older runs as well.
      if (buffer.HasRangeDeletions() &&
          buffer.RangeDeleted(key, found ? version.seq : run.last_seq, seq)) {
        return WriteBuffer::Found::kDeleted;
      }
      if (!found) continue;
      if (version.kind == WriteKind::kDelete) {
        value->Reset();
        return WriteBuffer::Found::kDeleted;
      }
      value->Assign(version.value);
      return WriteBuffer::Found::kPut;
    }
    if (buffer.HasRangeDeletions() && buffer.RangeDeleted(key, run.last_seq - 1, seq)) {
      return WriteBuffer::Found::kDeleted;
    }
    CELLAR_TRY_ASSIGN(const bool may, run.MayContain(hash));
    if (!may) continue;
    if (run.puts != nullptr) {
      CELLAR_TRY_ASSIGN(const bool found, run.puts->Get(key, value));
      if (found) return WriteBuffer::Found::kPut;
    }
    if (run.deletes != nullptr) {
      CELLAR_TRY_ASSIGN(const bool found, run.deletes->Get(key, value));
      if (found) {
        value->Reset();
        return WriteBuffer::Found::kDeleted;
      }
    }
  }
  if (buffer.HasRangeDeletions() && buffer.RangeDeleted(key, 0, seq)) {
    return WriteBuffer::Found::kDeleted;
  }
  return WriteBuffer::Found::kNothing;
}

Result<bool> SpillSet::WroteSince(std::string_view key, uint64_t seq) {
  const uint64_t hash = HashKey(key);
  PinnedValue value;
  for (auto it = runs_.rbegin(); it != runs_.rend() && (*it)->last_seq > seq; ++it) {
    SpillRun& run = **it;
    if (key < run.first || key > run.last) continue;
    CELLAR_TRY_ASSIGN(const bool may, run.MayContain(hash));
    if (!may) continue;
    if (run.versioned) {
      CELLAR_TRY_ASSIGN(bool found, run.puts->Get(key, &value));
      RunVersion version;
      if (found) {
        CELLAR_TRY_ASSIGN(found, FindVersion(value.view(), run.last_seq, &version));
      }
      if (found) return version.seq > seq;
      continue;
    }
    for (SpillFile* file : {run.puts.get(), run.deletes.get()}) {
      if (file == nullptr) continue;
      CELLAR_TRY_ASSIGN(const bool found, file->Get(key, &value));
      if (found) return true;
    }
  }
  return false;
}

void SpillSet::RollbackTo(uint64_t seq) {
  while (!runs_.empty() && runs_.back()->last_seq > seq) {
    ++generation_;
    SpillRun& run = *runs_.back();
    if (run.versioned && run.first_seq <= seq) {
      run.last_seq = seq;
      break;
    }
    runs_.pop_back();
  }
}

Result<bool> PresenceProbe::Contains(std::string_view key) {
  if (ended_) return false;
  if (singles_ > 0) {
    --singles_;
    ++*trips_;
    PinnedValue value;
    return base_.Get(key, &value);
  }
  for (bool read_on = cursor_ != nullptr, sought = false;; read_on = false) {
    while (next_ < block_.size() && block_.key(next_) < key) ++next_;
    if (next_ < block_.size()) {
      if (!sought) seeks_ = 0;
      return block_.key(next_) == key;
    }
    if (read_on) {
      bytes_ = std::min(bytes_ * 2, kMostBytes);
    } else {
      bytes_ = kLeastBytes;
      sought = true;
      if (++seeks_ > kSeeks) {
        seeks_ = 0;
        singles_ = kSingles;
        cursor_ = nullptr;
        block_.Clear();
        return Contains(key);
      }
      cursor_ = base_.Scan(key, end_, {.keys_only = true});
    }
    ++*trips_;
    next_ = 0;
    CELLAR_TRY_ASSIGN(const bool more, cursor_->NextBlock(bytes_, 0, &block_));
    if (!more) {
      ended_ = true;
      return false;
    }
  }
}

Status SpillSet::Prove(SpillRun* run, const SnapshotReader& base, const WriteBuffer& buffer,
                       std::string* duplicate) {
  PresenceProbe probe(base, run->last, &trips_);
  RunSource source(*run, false, {}, {.keys_only = true, .fill_cache = false});
  CELLAR_TRY(source.Start());
  while (source.valid()) {
    if (source.unproven() &&
        !(buffer.HasRangeDeletions() && buffer.RangeDeleted(source.key(), 0, run->first_seq))) {
      CELLAR_TRY_ASSIGN(const bool present, probe.Contains(source.key()));
      if (present) return DuplicateKey(source.key(), duplicate);
      if (probe.ended()) break;
    }
    CELLAR_TRY(source.Next());
  }
  return {};
}

namespace {

// Whether a range deletion younger than the run touches its keys.
bool MayBeCut(const WriteBuffer& buffer, const SpillRun& run) {
  for (const WriteBuffer::RangeDeletion& range : buffer.range_deletions()) {
    if (range.seq >= run.last_seq && range.start <= run.last &&
        (range.end.empty() || run.first < range.end)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Status SpillSet::Finish(const SnapshotReader& base, const WriteBuffer& buffer,
                        std::string* duplicate, std::vector<std::unique_ptr<SpillFile>>* files,
                        WriteSet* writes) {
  std::vector<SpillRun*> sorted;
  std::vector<const KeySpans*> spans;
  std::set<std::string> system_keys;
  for (const std::unique_ptr<SpillRun>& run : runs_) {
    sorted.push_back(run.get());
    spans.push_back(&run->spans);
    system_keys.insert(run->system_keys.begin(), run->system_keys.end());
  }
  writes->more_keys.assign(system_keys.begin(), system_keys.end());
  writes->ranges = KeySpans::Union(spans).Take();
  std::sort(sorted.begin(), sorted.end(),
            [](const SpillRun* a, const SpillRun* b) { return a->first < b->first; });
  for (size_t i = 0; i < sorted.size();) {
    std::string last = sorted[i]->last;
    size_t end = i + 1;
    for (; end < sorted.size() && sorted[end]->first <= last; ++end) {
      last = std::max(last, sorted[end]->last);
    }
    if (end == i + 1 && !sorted[i]->versioned && sorted[i]->deletes == nullptr &&
        !MayBeCut(buffer, *sorted[i])) {
      if (sorted[i]->has_unproven) CELLAR_TRY(Prove(sorted[i], base, buffer, duplicate));
      files->push_back(std::move(sorted[i]->puts));
    } else {
      CELLAR_TRY(Merge({sorted.data() + i, end - i}, base, buffer, duplicate, files));
    }
    i = end;
  }
  return {};
}

namespace {

// One key's writes, oldest first, through a merge of runs: what is known of the key so far.
struct Fate {
  std::string key;
  std::string value;
  bool deleted = false;
  uint64_t seq = 0;    // no write of the key so far is younger
  bool known = false;  // whether the key exists before the next write
  bool exists = false;
};

}  // namespace

Status SpillSet::Merge(std::span<SpillRun* const> runs, const SnapshotReader& base,
                       const WriteBuffer& buffer, std::string* duplicate,
                       std::vector<std::unique_ptr<SpillFile>>* files) {
  std::vector<std::unique_ptr<RunSource>> inputs;
  for (SpillRun* run : runs) {
    for (const bool deletes : {false, true}) {
      if ((deletes ? run->deletes : run->puts) == nullptr) continue;
      inputs.push_back(std::make_unique<RunSource>(*run, deletes, RunSource::Range{},
                                                   RawScanOptions{.fill_cache = false}));
      CELLAR_TRY(inputs.back()->Start());
    }
  }
  // A heap with the least key on top, the oldest run first among equals.
  const auto after = [](const RunSource* a, const RunSource* b) {
    const int order = a->key().compare(b->key());
    return order != 0 ? order > 0 : a->last_seq() > b->last_seq();
  };
  std::vector<RunSource*> heap;
  for (const std::unique_ptr<RunSource>& input : inputs) {
    if (input->valid()) heap.push_back(input.get());
  }
  std::make_heap(heap.begin(), heap.end(), after);

  std::string_view last;
  for (const SpillRun* run : runs) last = std::max<std::string_view>(last, run->last);
  PresenceProbe probe(base, last, &trips_);
  std::unique_ptr<SpillWriter> writer;
  const bool cut = buffer.HasRangeDeletions();
  Fate fate;
  while (!heap.empty()) {
    fate.key = heap.front()->key();
    fate.known = fate.exists = false;
    fate.seq = 0;
    while (!heap.empty() && heap.front()->key() == fate.key) {
      std::pop_heap(heap.begin(), heap.end(), after);
      RunSource* source = heap.back();
      if (cut && buffer.RangeDeleted(fate.key, fate.seq, source->first_seq())) {
        fate.known = true;
        fate.exists = false;
      }
      if (source->unproven()) {
        if (!fate.known) {
          CELLAR_TRY_ASSIGN(fate.exists, probe.Contains(fate.key));
        }
        if (fate.exists) return DuplicateKey(fate.key, duplicate);
      }
      fate.known = true;
      fate.seq = source->seq();  // a range deletion may be the last of the run's bounds
      fate.exists = !source->deleted();
      fate.deleted = source->deleted();
      fate.value = source->value();
      CELLAR_TRY(source->Next());
      if (source->valid()) {
        std::push_heap(heap.begin(), heap.end(), after);
      } else {
        heap.pop_back();
      }
    }
    // The deletion itself is ingested below the files, so nothing needs to stand for the key.
    if (cut && buffer.RangeDeleted(fate.key, fate.seq, WriteBuffer::kNewest)) continue;
    if (writer == nullptr) {
      CELLAR_TRY_ASSIGN(writer, storage_->NewSpillFile());
    }
    CELLAR_TRY(fate.deleted ? writer->Delete(fate.key) : writer->Put(fate.key, fate.value));
    if (writer->file_bytes() >= kFileBytes) {
      CELLAR_TRY_ASSIGN(std::unique_ptr<SpillFile> file, writer->Finish());
      files->push_back(std::move(file));
      writer = nullptr;
    }
  }
  if (writer != nullptr) {
    CELLAR_TRY_ASSIGN(std::unique_ptr<SpillFile> file, writer->Finish());
    files->push_back(std::move(file));
  }
  return {};
}

}  // namespace cellar::kv
