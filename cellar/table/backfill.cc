#include "cellar/table/backfill.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cellar/base/memory_account.h"
#include "cellar/base/sqlstate.h"
#include "cellar/table/change_log.h"
#include "cellar/table/compiled.h"
#include "cellar/table/errors.h"
#include "cellar/table/index_builder.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

constexpr size_t kChunkRows = 1024;  // of the log, in one fetch

codec::KeyRange RangeOf(const TableDescriptor& table, IndexId index) {
  return codec::PrefixRange(codec::TablePrefix(table.storage_id(), index));
}

IndexId LogOf(IndexId index) { return IndexId{index.value + 1}; }

Result<const IndexCodec*> FindBuilt(const CompiledTable& compiled, IndexId index_id) {
  const IndexCodec* index = compiled.FindIndex(index_id);
  if (index != nullptr && !index->primary) return index;
  return InternalError("table \"{}\" has no secondary index {}", compiled.table().name,
                       index_id.value);
}

struct Note {
  std::string ref, key;
  auto operator<=>(const Note&) const = default;
};

// Of rows [start, end); both are RowRefs.
Result<std::unique_ptr<Reader>> OpenRows(AccessContext* context, ScanSpec spec,
                                         std::string_view start, std::string_view end) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*spec.table));
  const std::string& prefix = compiled->primary().prefix;
  KeyItem range;
  range.start.append(prefix).append(start);
  range.end = end.empty() ? codec::PrefixEnd(prefix) : prefix + std::string(end);
  return OpenRangeScan(context, std::move(spec), {std::move(range)});
}

std::atomic<uint64_t> rows_for_two_threads{kRowsForTwoThreads};

// A thread that makes the entries of some rows, in a snapshot of its own. Signals are blocked in it
// as in the thread that starts it.
class OtherHalf {
 public:
  // All outlive it.
  OtherHalf(const BackfillContext& in, const TablePtr& table, const CompiledTable& compiled,
            const IndexCodec& index, PiecePool* pool)
      : in_(in), table_(table), compiled_(compiled), index_(index), pool_(pool) {}
  ~OtherHalf() {
    pool_->Stop();
    if (thread_.joinable()) thread_.join();
  }
  OtherHalf(const OtherHalf&) = delete;
  OtherHalf& operator=(const OtherHalf&) = delete;

  // False: the system has no thread to give.
  bool Start(const std::string& start, const std::string& end) {
    try {
      thread_ = std::thread([this, start, end] {
        status_ = CatchOutOfMemory([&] { return Read(start, end); });
        ended_.store(true, std::memory_order_release);
        pool_->Leave();
      });
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  // After it has ended; what came of it.
  Status Join() {
    thread_.join();
    return status_;
  }

 private:
  Status Read(const std::string& start, const std::string& end) {
    kv::TransactionOptions options;
    options.isolation = kv::Isolation::kSnapshot;
    options.read_only = true;
    const std::unique_ptr<kv::Transaction> transaction = in_.engine->Begin(options);
    AccessContext context;
    context.transaction = transaction.get();
    context.cancel = in_.cancel;
    context.store = in_.store;
    EntryMaker maker(compiled_, index_, pool_);
    CELLAR_TRY_ASSIGN(const std::unique_ptr<Reader> reader,
                      OpenRows(&context, maker.Scan(table_), start, end));
    RowBatch rows;
    while (pool_->AwaitRoom()) {
      CELLAR_TRY(context.CheckCancel());
      CELLAR_TRY_ASSIGN(const bool more, reader->Next(&rows));
      if (!more) break;
      CELLAR_TRY(maker.Add(rows));
      rows_.fetch_add(rows.size(), std::memory_order_relaxed);
    }
    maker.Finish();
    return Status();
  }

  const BackfillContext in_;
  const TablePtr table_;
  const CompiledTable& compiled_;
  const IndexCodec& index_;
  PiecePool* const pool_;
  Status status_;
  std::atomic<uint64_t> rows_{0};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

class Step {
 public:
  Step(const BackfillContext& in, const TablePtr& table, const CompiledTable& compiled,
       const IndexCodec& index, BuildProgress* progress)
      : in_(in),
        access_(in.transaction, in.cancel, in.store),
        table_(table),
        compiled_(compiled),
        index_(index),
        progress_(*progress) {
    context_.transaction = in.transaction;
    context_.cancel = in.cancel;
    context_.store = in.store;
  }

  Status Run(uint64_t max_rows, const std::function<Status(uint64_t)>& pace) {
    progress_.changes = 0;
    // Before the first rows nothing of the log concerns the index; what it says of rows that the
    // first step reads is said again by the next one.
    const bool first = progress_.position.empty() && !progress_.done;
    if (!first) CELLAR_TRY(Follow());
    if (progress_.done) return Status();
    return ReadOn(max_rows, pace,
                  first ? IndexBuilder::Write::kPutIfAbsent : IndexBuilder::Write::kPut);
  }

 private:
  Status TakeNotes(std::string_view value, std::vector<Note>* notes) const {
    std::string place;
    while (!value.empty()) {
      CELLAR_TRY_ASSIGN(const std::string_view ref, TakeLogString(&value));
      CELLAR_TRY_ASSIGN(const std::string_view key, TakeLogString(&value));
      // Rows that have not been read yet.
      place.clear();
      AppendRowPlace(compiled_.primary(), ref, &place);
      if (!progress_.done && place >= progress_.position) continue;
      notes->push_back({std::string(ref), std::string(key)});
    }
    return Status();
  }

  Status Follow() {
    std::vector<Note> notes;
    return LogFollower::Run(
        context_.transaction, RangeOf(*table_, LogOf(index_.index->id)),
        [&](std::string_view value) { return TakeNotes(value, &notes); },
        [&](LogFollower::Pass pass) -> Status {
          std::sort(notes.begin(), notes.end());
          notes.erase(std::unique(notes.begin(), notes.end()), notes.end());
          if (pass != LogFollower::Pass::kAdd) CELLAR_TRY(RemoveNoted(notes));
          if (pass != LogFollower::Pass::kRemove) CELLAR_TRY(AddNoted(notes));
          notes.clear();
          return Status();
        });
  }

  Status RemoveNoted(const std::vector<Note>& notes) {
    std::vector<const Note*> chunk;
    for (const Note& note : notes) {
      if (note.key.empty()) continue;
      chunk.push_back(&note);
      if (chunk.size() < kChunkRows) continue;
      CELLAR_TRY(Remove(chunk));
      chunk.clear();
    }
    return Remove(chunk);
  }

  Status AddNoted(const std::vector<Note>& notes) {
    std::vector<std::string_view> refs;
    for (const Note& note : notes) {
      if (!refs.empty() && refs.back() == note.ref) continue;
      if (refs.size() == kChunkRows) {
        CELLAR_TRY(AddAgain(refs));
        refs.clear();
      }
      refs.push_back(note.ref);
      ++progress_.changes;
    }
    return AddAgain(refs);
  }

  Result<std::string_view> RefOf(std::string_view key, std::string_view value) {
    Result<std::string_view> ref = index_.FindRef(key, value, &scratch_, &scratch_row_);
    if (!ref.ok()) return DamagedEntry(*table_, *index_.index, ref.status());
    return ref;
  }

  // Entries that are still those of their rows.
  Status Remove(std::span<const Note* const> notes) {
    if (notes.empty()) return Status();
    StringList names;
    for (const Note* note : notes) {
      names.buffer()->append(index_.prefix).append(note->key);
      names.End();
    }
    std::vector<std::string_view> keys;
    for (size_t i = 0; i < names.size(); ++i) keys.push_back(names[i]);
    CELLAR_TRY(context_.MultiGet(keys, nullptr, &pins_, &found_));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!found_[i]) continue;
      CELLAR_TRY_ASSIGN(const std::string_view ref, RefOf(keys[i], pins_[i].view()));
      // Two rows that had one key, one after the other, are two notes.
      if (ref != notes[i]->ref) continue;
      CELLAR_TRY(context_.transaction->Delete(keys[i]));
      --progress_.entries;
    }
    return Status();
  }

  // Entries of rows as they are now.
  Status AddAgain(std::span<const std::string_view> refs) {
    if (refs.empty()) return Status();
    RowBatch stored;
    std::vector<uint8_t> present;
    CELLAR_TRY(access_.Fetch(table_, refs, compiled_.living_ids(), &stored, &present));
    CELLAR_TRY(indexed_.Compute(compiled_, stored));
    const RowBatch& rows = indexed_.rows();
    StringList own_refs, names;
    AppendRefs(compiled_, rows, &own_refs);
    for (size_t row = 0; row < rows.size(); ++row) {
      if (index_.Holds(rows, row)) index_.AppendKey(rows, row, own_refs[row], names.buffer());
      names.End();
    }
    std::vector<std::string_view> keys;
    std::vector<size_t> places;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (names[row].empty()) continue;
      keys.push_back(names[row]);
      places.push_back(row);
    }
    CELLAR_TRY(context_.MultiGet(keys, nullptr, &pins_, &found_));
    std::unordered_map<std::string_view, size_t> added;
    std::string value;
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string_view own = own_refs[places[i]];
      bool other = !added.emplace(keys[i], i).second;
      if (!other && found_[i]) {
        // Read by the first step and noted before it: the row has its entry already.
        CELLAR_TRY_ASSIGN(const std::string_view ref, RefOf(keys[i], pins_[i].view()));
        other = ref != own;
      }
      if (other) {
        return DuplicateKey(compiled_, index_, rows, places[i], context_.format,
                            DuplicateCause::kIndexBuild);
      }
      value.clear();
      CELLAR_TRY(index_.AppendValue(rows, places[i], own, &datums_, &value));
      CELLAR_TRY(context_.transaction->Put(keys[i], value));
      if (!found_[i]) ++progress_.entries;
    }
    return Status();
  }

  Status ReadOn(uint64_t max_rows, const std::function<Status(uint64_t)>& pace,
                IndexBuilder::Write write) {
    IndexBuilder builder(&context_, compiled_, index_, write);
    CELLAR_TRY_ASSIGN(const RowRanges ranges, Divide(max_rows));
    CELLAR_TRY(ranges.second_start.empty() ? ReadAlone(max_rows, pace, &builder)
                                           : ReadTogether(ranges, max_rows, pace, &builder));
    CELLAR_TRY(builder.Flush());
    progress_.entries += static_cast<int64_t>(builder.entries());
    return Status();
  }

  Status ReadAlone(uint64_t max_rows, const std::function<Status(uint64_t)>& pace,
                   IndexBuilder* builder) {
    CELLAR_TRY_ASSIGN(const std::unique_ptr<Reader> reader,
                      OpenRows(&context_, builder->Scan(table_), progress_.position, {}));
    RowBatch rows;
    std::string last, place;
    for (uint64_t count = 0; count < max_rows;) {
      CELLAR_TRY(context_.CheckCancel());
      CELLAR_TRY_ASSIGN(bool more, reader->Next(&rows));
      if (!more) {
        progress_.done = true;
        break;
      }
      if (rows.size() == 0) continue;
      CELLAR_TRY(builder->Add(rows));
      count += rows.size();
      progress_.rows += rows.size();
      last.clear();
      builder->AppendRef(rows, rows.size() - 1, &last);
      if (pace != nullptr) CELLAR_TRY(pace(progress_.rows));
    }
    if (last.empty()) return Status();
    AppendRowPlace(compiled_.primary(), last, &place);
    place.pop_back();
    progress_.position = codec::PrefixEnd(place);  // behind all parts of that row
    return Status();
  }

  // ---- With a second thread

  // Two ranges of rows, of about the same size: from the position to second_start, and from there
  // to the end. The parts of a row are all in one. Empty second_start: the rows are not worth it.
  struct RowRanges {
    std::string second_start, end;  // RowRefs; end: empty for that of the table
  };

  Result<RowRanges> Divide(uint64_t max_rows) {
    RowRanges ranges;
    if (in_.engine == nullptr || std::thread::hardware_concurrency() < 2) return ranges;
    if (compiled_.primary().shards != 0) return ranges;
    CELLAR_TRY_ASSIGN(const std::optional<TableUsage> usage, UsageOf(*table_, in_.transaction));
    if (!usage.has_value()) return ranges;
    const auto all = static_cast<uint64_t>(std::max<int64_t>(0, usage->rows));
    const uint64_t read = progress_.position.empty() ? 0 : std::min(all, progress_.rows);
    const uint64_t left = all - read;
    if (left < rows_for_two_threads.load(std::memory_order_relaxed)) return ranges;
    const double part = left <= max_rows ? 1 : static_cast<double>(max_rows) / left;
    CELLAR_TRY_ASSIGN(ranges.second_start, RefNear(part / 2));
    if (part < 1) {
      CELLAR_TRY_ASSIGN(ranges.end, RefNear(part));
      if (ranges.end <= ranges.second_start) ranges.second_start.clear();
    }
    return ranges;
  }

  uint64_t BytesBefore(std::string_view ref) const {
    const auto bytes = [&](const std::string& prefix) {
      return in_.engine->ApproximateBytes(prefix + progress_.position, prefix + std::string(ref));
    };
    return bytes(compiled_.primary().prefix) +
           (compiled_.paged() ? bytes(compiled_.page_prefix()) : 0);
  }

  // A RowRef that has about this part of the bytes behind the position before it; empty if none is
  // found.
  Result<std::string> RefNear(double part) {
    const auto place = [](uint64_t number) {
      std::string bytes(sizeof number, '\0');
      for (size_t i = 0; i < sizeof number; ++i) {
        bytes[i] = static_cast<char>(number >> (8 * (sizeof number - 1 - i)));
      }
      return bytes;
    };
    uint64_t low = 0;
    for (size_t i = 0; i < sizeof low; ++i) {
      const auto& position = progress_.position;
      low = low << 8 | (i < position.size() ? static_cast<unsigned char>(position[i]) : 0);
    }
    uint64_t high = UINT64_MAX;
    const auto wanted = static_cast<uint64_t>(part * BytesBefore(place(high)));
    while (high - low > 1) {
      const uint64_t middle = low + (high - low) / 2;
      (BytesBefore(place(middle)) < wanted ? low : high) = middle;
    }
    for (const bool paged : {true, false}) {
      if (paged && !compiled_.paged()) continue;
      const std::string& prefix = paged ? compiled_.page_prefix() : compiled_.primary().prefix;
      CELLAR_TRY_ASSIGN(std::string ref, RefFrom(prefix, place(high)));
      if (ref > progress_.position) return ref;
    }
    return std::string();
  }

  // That of the first key from there on: no row begins between a RowRef and its parts.
  Result<std::string> RefFrom(const std::string& prefix, const std::string& place) {
    kv::ScanOptions options;
    options.keys_only = true;
    options.limit = 1;
    options.mode = kv::ReadMode::kSnapshot;
    CELLAR_TRY_ASSIGN(
        const std::unique_ptr<kv::Cursor> cursor,
        context_.transaction->Scan(prefix + place, codec::PrefixEnd(prefix), options));
    kv::Block block;
    CELLAR_TRY_ASSIGN(const bool more, cursor->NextBlock(&block));
    if (!more) return std::string();
    const std::string_view ref = block.key(0).substr(prefix.size());
    std::string_view rest = ref;
    for (size_t i = 0; i < compiled_.primary().key_columns.size(); ++i) {
      if (!codec::SkipKeyField(&rest).ok()) return std::string();
    }
    return std::string(ref.substr(0, ref.size() - rest.size()));
  }

  Status ReadTogether(const RowRanges& ranges, uint64_t max_rows,
                      const std::function<Status(uint64_t)>& pace, IndexBuilder* builder) {
    // The other snapshot must not be older than this: changes between the two are in the log behind
    // this one, which the next step follows.
    static_cast<void>(context_.transaction->snapshot_version());
    OtherHalf other(in_, table_, compiled_, index_, builder->pool());
    if (!other.Start(ranges.second_start, ranges.end)) return ReadAlone(max_rows, pace, builder);
    CELLAR_TRY_ASSIGN(
        const std::unique_ptr<Reader> reader,
        OpenRows(&context_, builder->Scan(table_), progress_.position, ranges.second_start));
    RowBatch rows;
    uint64_t count = 0;
    while (true) {
      CELLAR_TRY(context_.CheckCancel());
      CELLAR_TRY_ASSIGN(bool more, reader->Next(&rows));
      if (!more) break;
      CELLAR_TRY(builder->Add(rows));
      count += rows.size();
      if (pace != nullptr) CELLAR_TRY(pace(progress_.rows + count + other.rows()));
    }
    while (!other.ended()) {
      builder->pool()->AwaitFull();
      if (builder->pool()->full()) CELLAR_TRY(builder->FlushPool());
      if (pace != nullptr) CELLAR_TRY(pace(progress_.rows + count + other.rows()));
    }
    CELLAR_TRY(other.Join());
    progress_.rows += count + other.rows();
    progress_.done = ranges.end.empty();
    if (!progress_.done) progress_.position = ranges.end;
    return Status();
  }

  const BackfillContext& in_;
  Access access_;
  AccessContext context_;
  const TablePtr& table_;
  const CompiledTable& compiled_;
  const IndexCodec& index_;
  BuildProgress& progress_;
  IndexedRows indexed_;
  std::vector<kv::PinnedValue> pins_;
  std::vector<uint8_t> found_;
  std::vector<Datum> datums_;
  std::string scratch_;
  RowBatch scratch_row_;
};

}  // namespace

void SetRowsForTwoThreads(uint64_t rows) { rows_for_two_threads.store(rows); }

Status BuildSome(const BackfillContext& in, const TablePtr& table, IndexId index_id,
                 uint64_t max_rows, const std::function<Status(uint64_t rows)>& pace,
                 BuildProgress* progress) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  CELLAR_TRY_ASSIGN(const IndexCodec* index, FindBuilt(*compiled, index_id));
  return Step(in, table, *compiled, *index, progress).Run(max_rows, pace);
}

Status BuildDuplicate(const TableDescriptor& table, IndexId index_id, std::string_view key) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
  CELLAR_TRY_ASSIGN(const IndexCodec* index, FindBuilt(*compiled, index_id));
  return DuplicateKey(*compiled, *index, key, FormatSettings(), DuplicateCause::kIndexBuild);
}

Status FinishBuild(const BackfillContext& in, const TableDescriptor& table, IndexId index_id,
                   const BuildProgress& progress) {
  const codec::KeyRange log = RangeOf(table, LogOf(index_id));
  CELLAR_TRY(in.transaction->AddReadConflict(log.start, log.end));
  CELLAR_TRY(in.transaction->DeleteRange(log.start, log.end));
  const catalog::IndexDescriptor* index = table.FindIndex(index_id);
  if (index == nullptr || !index->predicate.empty()) return Status();
  CELLAR_TRY_ASSIGN(const std::optional<TableUsage> usage, UsageOf(table, in.transaction));
  if (!usage.has_value() || usage->rows == progress.entries) return Status();
  return SqlError(Code::kCorruption, "XX001", "index \"{}\" has {} entries for {} rows",
                  index->name, progress.entries, usage->rows);
}

codec::KeyRange RangeOfBuild(const TableDescriptor& table, IndexId index) {
  return {codec::TablePrefix(table.storage_id(), index), RangeOf(table, LogOf(index)).end};
}

Status ClearBuild(const TableDescriptor& table, IndexId index, kv::Transaction* transaction) {
  const codec::KeyRange range = RangeOfBuild(table, index);
  return transaction->DeleteRange(range.start, range.end);
}

void BuildNotes::Add(const IndexCodec& index, std::string_view ref, std::string_view key) {
  AppendLogString(ref, &value_);
  AppendLogString(key.empty() ? key : key.substr(index.prefix.size()), &value_);
}

Status BuildNotes::Write(AccessContext* context, const TableDescriptor& table,
                         const IndexCodec& index) {
  if (value_.empty()) return Status();
  WaitForPause(context->store, table.storage_id());
  std::string key = codec::TablePrefix(table.storage_id(), LogOf(index.index->id));
  AppendLogName(&key);
  return context->transaction->Put(key, value_);
}

}  // namespace cellar::table
