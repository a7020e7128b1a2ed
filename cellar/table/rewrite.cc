#include "cellar/table/rewrite.h"

#include <algorithm>
#include <vector>

#include "cellar/table/change_log.h"
#include "cellar/table/maintenance.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

constexpr size_t kChunkRows = 1024;  // of the log, in one fetch

// ---- The log

codec::KeyRange RangeOf(const TableDescriptor& table, IndexId index) {
  return codec::PrefixRange(codec::TablePrefix(table.storage_id(), index));
}

Status TakeRefs(std::string_view value, std::vector<std::string>* refs) {
  while (!value.empty()) {
    CELLAR_TRY_ASSIGN(const std::string_view ref, TakeLogString(&value));
    refs->emplace_back(ref);
  }
  return Status();
}

// Do both name a row by the same bytes?
bool SameRefs(const TableDescriptor& from, const TableDescriptor& to) {
  const auto& a = from.primary().key;
  const auto& b = to.primary().key;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) {
    return x.column == y.column && x.direction == y.direction && x.nulls == y.nulls &&
           from.FindColumn(x.column)->type == to.FindColumn(y.column)->type;
  });
}

// One step's work.
class Step {
 public:
  Step(const BackfillContext& in, TablePtr from, TablePtr to, const ConvertRows& convert,
       RewriteProgress* progress)
      : access_(in.transaction, in.cancel, in.store),
        from_(std::move(from)),
        to_(std::move(to)),
        convert_(convert),
        progress_(*progress) {
    context_.transaction = in.transaction;
    context_.cancel = in.cancel;
    context_.store = in.store;
  }

  Status Run(uint64_t max_rows) {
    CELLAR_TRY_ASSIGN(compiled_from_, CompiledTable::Of(*from_));
    CELLAR_TRY_ASSIGN(compiled_to_, CompiledTable::Of(*to_));
    mapped_ = !SameRefs(*from_, *to_);
    map_prefix_ = codec::TablePrefix(from_->storage_id(), RefMapOf(*from_));
    progress_.changes = 0;
    std::vector<std::string> refs;
    CELLAR_TRY(LogFollower::Run(
        context_.transaction, RangeOf(*from_, ChangeLogOf(*from_)),
        [&](std::string_view value) { return TakeRefs(value, &refs); },
        [&](LogFollower::Pass pass) { return Follow(&refs, pass); }));
    return progress_.done ? Status() : CopyOn(max_rows);
  }

 private:
  // Empties *refs.
  Status Follow(std::vector<std::string>* refs, LogFollower::Pass pass) {
    std::sort(refs->begin(), refs->end());
    refs->erase(std::unique(refs->begin(), refs->end()), refs->end());
    if (!progress_.done) {
      // Rows that the copy has not come to yet.
      std::string key;
      std::erase_if(*refs, [&](const std::string& ref) {
        key.clear();
        AppendRowPlace(compiled_from_->primary(), ref, &key);
        return key >= progress_.position;
      });
    }
    // Before it comes, too: another piece of the log may have named the same row.
    CELLAR_TRY(
        InChunks(*refs, [this](std::span<const std::string_view> some) { return Remove(some); }));
    if (pass != LogFollower::Pass::kRemove) {
      progress_.changes += refs->size();
      CELLAR_TRY(InChunks(
          *refs, [this](std::span<const std::string_view> some) { return CopyAgain(some); }));
    }
    refs->clear();
    return Status();
  }

  template <typename Visit>
  static Status InChunks(const std::vector<std::string>& refs, Visit&& visit) {
    std::vector<std::string_view> some;
    for (size_t start = 0; start < refs.size(); start += kChunkRows) {
      some.assign(refs.begin() + static_cast<ptrdiff_t>(start),
                  refs.begin() + static_cast<ptrdiff_t>(std::min(refs.size(), start + kChunkRows)));
      CELLAR_TRY(visit(some));
    }
    return Status();
  }

  // Fetches those rows that are there, and leaves their refs in *refs.
  Status Fetch(const TablePtr& table, const CompiledTable& compiled,
               std::vector<std::string_view>* refs, RowBatch* rows) {
    std::vector<uint8_t> found;
    CELLAR_TRY(access_.Fetch(table, *refs, compiled.living_ids(), rows, &found));
    size_t present = 0;
    for (size_t i = 0; i < refs->size(); ++i) {
      if (found[i]) (*refs)[present++] = (*refs)[i];
    }
    refs->resize(present);
    return Status();
  }

  Status Remove(std::span<const std::string_view> old_refs) {
    std::vector<std::string_view> refs(old_refs.begin(), old_refs.end());
    std::vector<kv::PinnedValue> pins;
    if (mapped_) {
      StringList names;
      for (std::string_view ref : old_refs) {
        names.buffer()->append(map_prefix_).append(ref);
        names.End();
      }
      std::vector<std::string_view> keys;
      for (size_t i = 0; i < names.size(); ++i) keys.push_back(names[i]);
      std::vector<uint8_t> found;
      CELLAR_TRY(context_.MultiGet(keys, nullptr, &pins, &found));
      refs.clear();
      for (size_t i = 0; i < keys.size(); ++i) {
        if (!found[i]) continue;
        refs.push_back(pins[i].view());
        CELLAR_TRY(context_.transaction->Delete(keys[i]));
      }
    }
    if (refs.empty()) return Status();
    RowBatch rows;
    CELLAR_TRY(Fetch(to_, *compiled_to_, &refs, &rows));
    if (refs.empty()) return Status();
    CELLAR_TRY(DeleteRows(&context_, to_, refs, rows));
    progress_.rows -= static_cast<int64_t>(rows.size());
    progress_.bytes -= ValueBytes(rows, nullptr);
    return Status();
  }

  Status CopyAgain(std::span<const std::string_view> old_refs) {
    std::vector<std::string_view> refs(old_refs.begin(), old_refs.end());
    RowBatch rows;
    CELLAR_TRY(Fetch(from_, *compiled_from_, &refs, &rows));
    return rows.size() == 0 ? Status() : Copy(rows);
  }

  Status Copy(const RowBatch& rows) {
    RowBatch copies;
    copies.Reset(compiled_to_->living_types());
    CELLAR_TRY(convert_(rows, &copies));
    if (copies.size() != rows.size()) {
      return InternalError("rewriting {} rows made {}", rows.size(), copies.size());
    }
    CELLAR_TRY(InsertRows(&context_, to_, &copies, ConflictPolicy(), nullptr));
    progress_.rows += static_cast<int64_t>(copies.size());
    progress_.bytes += ValueBytes(copies, nullptr);
    if (!mapped_) return Status();
    StringList old_refs, new_refs;
    AppendRefs(*compiled_from_, rows, &old_refs);
    AppendRefs(*compiled_to_, copies, &new_refs);
    std::string key;
    for (size_t row = 0; row < rows.size(); ++row) {
      key.assign(map_prefix_).append(old_refs[row]);
      CELLAR_TRY(context_.transaction->Put(key, new_refs[row]));
    }
    return Status();
  }

  Status CopyOn(uint64_t max_rows) {
    const IndexCodec& primary = compiled_from_->primary();
    KeyItem range;
    range.start = primary.prefix + progress_.position;
    range.end = codec::PrefixEnd(primary.prefix);
    ScanSpec spec;
    spec.table = from_;
    spec.index = primary.index->id;
    spec.spans = {Span{}};
    spec.columns.assign(compiled_from_->living_ids().begin(), compiled_from_->living_ids().end());
    CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader,
                      OpenRangeScan(&context_, std::move(spec), {std::move(range)}));
    RowBatch rows;
    std::string last, place;
    for (uint64_t count = 0; count < max_rows; count += rows.size()) {
      CELLAR_TRY_ASSIGN(bool more, reader->Next(&rows));
      if (!more) {
        progress_.done = true;
        break;
      }
      if (rows.size() == 0) continue;
      CELLAR_TRY(Copy(rows));
      last.clear();
      codec::AppendKeyFields(rows, rows.size() - 1, primary.key_positions, primary.key_columns,
                             &last);
    }
    if (last.empty()) return Status();
    AppendRowPlace(primary, last, &place);
    place.pop_back();
    progress_.position = codec::PrefixEnd(place);  // behind all parts of that row
    return Status();
  }

  Access access_;
  AccessContext context_;
  const TablePtr from_, to_;
  const ConvertRows& convert_;
  RewriteProgress& progress_;
  const CompiledTable* compiled_from_ = nullptr;
  const CompiledTable* compiled_to_ = nullptr;
  bool mapped_ = false;
  std::string map_prefix_;
};

}  // namespace

Status LogChanges(AccessContext* context, const TableDescriptor& table,
                  std::span<const std::string_view> refs) {
  if (table.job == 0 || refs.empty()) return Status();
  WaitForPause(context->store, table.storage_id());
  std::string key = codec::TablePrefix(table.storage_id(), ChangeLogOf(table));
  AppendLogName(&key);
  std::string value;
  for (std::string_view ref : refs) AppendLogString(ref, &value);
  return context->transaction->Put(key, value);
}

Status RewriteSome(const BackfillContext& in, const TablePtr& from, const TablePtr& to,
                   const ConvertRows& convert, uint64_t max_rows, RewriteProgress* progress) {
  return Step(in, from, to, convert, progress).Run(max_rows);
}

Status FinishRewrite(const BackfillContext& in, const TablePtr& from, const TablePtr& to,
                     const RewriteProgress& progress) {
  kv::Transaction* transaction = in.transaction;
  const codec::KeyRange log = RangeOf(*from, ChangeLogOf(*from));
  CELLAR_TRY(transaction->AddReadConflict(log.start, log.end));
  CELLAR_TRY_ASSIGN(const std::optional<TableUsage> usage, UsageOf(*from, transaction));
  if (usage.has_value()) {
    if (usage->rows != progress.rows) {
      return SqlError(Code::kCorruption, "XX001",
                      "the copy of table \"{}\" has {} rows, the table {}", from->name,
                      progress.rows, usage->rows);
    }
    CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*to));
    CELLAR_TRY(CountUpdated(transaction, *compiled, 0, progress.bytes - usage->bytes));
  }
  AccessContext context;
  context.transaction = transaction;
  for (const IndexDescriptor& index : from->indexes) {
    CELLAR_TRY(ClearIndexOf(&context, *from, index.id));
  }
  const std::string own = codec::TablePrefix(from->storage_id(), RefMapOf(*from));
  return transaction->DeleteRange(own, log.end);
}

codec::KeyRange RangeOfRewrite(const TableDescriptor& to) {
  uint32_t first = to.next_index_id;
  for (const IndexDescriptor& index : to.indexes) first = std::min(first, index.id.value);
  const IndexId last{to.next_index_id + kIndexIdsOfRewrite - 1};
  return {codec::TablePrefix(to.storage_id(), IndexId{first}), RangeOf(to, last).end};
}

Status ClearRewrite(const TableDescriptor& to, kv::Transaction* transaction) {
  const codec::KeyRange range = RangeOfRewrite(to);
  return transaction->DeleteRange(range.start, range.end);
}

}  // namespace cellar::table
