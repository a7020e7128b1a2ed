#include "cellar/table/maintenance.h"

#include <algorithm>
#include <unordered_set>

#include "cellar/base/sqlstate.h"
#include "cellar/table/backfill.h"
#include "cellar/table/errors.h"
#include "cellar/table/page_merge.h"
#include "cellar/table/split_scan.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

// What an unknown number of rows is taken for.
constexpr uint64_t kManyRows = 1000;
// Index entries are sorted in runs of this many bytes before they are written.
constexpr size_t kRunBytes = size_t{16} << 20;

ScanSpec WholeTable(const TablePtr& table, const CompiledTable& compiled, bool with_row_ref) {
  ScanSpec spec;
  spec.table = table;
  spec.index = compiled.primary().index->id;
  spec.spans = {Span{}};
  spec.columns.assign(compiled.living_ids().begin(), compiled.living_ids().end());
  spec.with_row_ref = with_row_ref;
  return spec;
}

// Whatever the isolation, a row that another transaction adds meanwhile must not be missed.
Status GuardRows(AccessContext* context, const CompiledTable& compiled) {
  const codec::KeyRange range = codec::PrefixRange(compiled.primary().prefix);
  return context->transaction->AddReadConflict(range.start, range.end);
}

// Adds entries of one index for a batch of rows that are all there.
class IndexBuilder {
 public:
  IndexBuilder(AccessContext* context, const CompiledTable& compiled, const IndexCodec& index)
      : context_(context), compiled_(compiled), index_(index) {
    bulk_ = context->bulk == compiled.table().storage_id();
  }

  // Flush after the last batch.
  Status Add(const RowBatch& whole_rows) {
    CELLAR_TRY(indexed_.Compute(compiled_, whole_rows));
    const RowBatch& rows = indexed_.rows();
    refs_.Clear();
    if (!index_.unique) return AddToRun(rows);
    keys_.Clear();
    AppendRefs(compiled_, rows, &refs_);
    for (size_t row = 0; row < rows.size(); ++row) {
      if (index_.Holds(rows, row)) index_.AppendKey(rows, row, refs_[row], keys_.buffer());
      keys_.End();
    }
    if (!bulk_) CELLAR_TRY(CheckUnique(rows));
    std::string value;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (keys_[row].empty()) continue;
      value.clear();
      CELLAR_TRY(index_.AppendValue(rows, row, refs_[row], &scratch_, &value));
      if (!bulk_ || index_.EscapesUniqueness(rows, row)) {
        CELLAR_TRY(context_->transaction->Put(keys_[row], value));
        continue;
      }
      Status status = context_->transaction->PutIfAbsent(keys_[row], value);
      if (status.code() == Code::kConstraint) return Duplicate(keys_[row]);
      CELLAR_TRY(std::move(status));
    }
    return Status();
  }

  // Writes the entries of the run in key order: a random place in the write buffer costs several
  // cache misses, the next one none.
  Status Flush() {
    std::sort(run_.begin(), run_.end(), [this](const RunEntry& a, const RunEntry& b) {
      return a.order != b.order ? a.order < b.order : run_bytes_[a.place] < run_bytes_[b.place];
    });
    for (const RunEntry& entry : run_) {
      CELLAR_TRY(context_->transaction->Put(run_bytes_[entry.place], run_bytes_[entry.place + 1]));
    }
    run_.clear();
    run_bytes_.Clear();
    return Status();
  }

 private:
  struct RunEntry {
    uint64_t order;  // the first bytes behind the index's prefix
    uint32_t place;  // of the key in run_bytes_; the value follows
  };

  // Entries that cannot be refused wait for their neighbours.
  Status AddToRun(const RowBatch& rows) {
    AppendRefs(compiled_, rows, &refs_);
    for (size_t row = 0; row < rows.size(); ++row) {
      if (!index_.Holds(rows, row)) continue;
      const auto place = static_cast<uint32_t>(run_bytes_.size());
      index_.AppendKey(rows, row, refs_[row], run_bytes_.buffer());
      run_bytes_.End();
      uint64_t order = 0;
      const std::string_view key = run_bytes_[place].substr(index_.prefix.size());
      for (size_t i = 0; i < sizeof order; ++i) {
        order = order << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
      }
      Status status = index_.AppendValue(rows, row, refs_[row], &scratch_, run_bytes_.buffer());
      run_bytes_.End();
      CELLAR_TRY(std::move(status));
      run_.push_back({order, place});
    }
    if (run_bytes_.buffer()->size() < kRunBytes) return Status();
    return Flush();
  }

  Status Duplicate(std::string_view key) {
    const std::string_view known = context_->transaction->duplicate_key();
    if (known.starts_with(index_.prefix)) key = known;
    return DuplicateKey(compiled_, index_, key, context_->format, DuplicateCause::kIndexBuild);
  }

  // Entries of earlier batches are among the transaction's own writes.
  Status CheckUnique(const RowBatch& rows) {
    std::unordered_set<std::string_view> added;
    std::vector<std::string_view> probes;
    std::vector<size_t> probe_rows;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (keys_[row].empty() || index_.EscapesUniqueness(rows, row)) continue;
      if (!added.insert(keys_[row]).second) {
        return DuplicateKey(compiled_, index_, rows, row, context_->format,
                            DuplicateCause::kIndexBuild);
      }
      probes.push_back(keys_[row]);
      probe_rows.push_back(row);
    }
    std::vector<uint8_t> found;
    CELLAR_TRY(context_->MultiGet(probes, &pins_, &found));
    for (size_t i = 0; i < probes.size(); ++i) {
      if (!found[i]) continue;
      // A row that was written while the index was write-only has its entry already.
      std::string scratch;
      RowBatch scratch_row;
      CELLAR_TRY_ASSIGN(std::string_view ref,
                        index_.FindRef(probes[i], pins_[i].view(), &scratch, &scratch_row));
      if (ref == refs_[probe_rows[i]]) continue;
      return DuplicateKey(compiled_, index_, rows, probe_rows[i], context_->format,
                          DuplicateCause::kIndexBuild);
    }
    return Status();
  }

  AccessContext* context_;
  const CompiledTable& compiled_;
  const IndexCodec& index_;
  bool bulk_ = false;
  IndexedRows indexed_;
  StringList refs_, keys_;
  StringList run_bytes_;
  std::vector<RunEntry> run_;
  std::vector<Datum> scratch_;
  std::vector<kv::PinnedValue> pins_;
};

}  // namespace

Status BuildIndexOf(AccessContext* context, const TablePtr& table, IndexId index_id) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  const IndexCodec* index = compiled->FindIndex(index_id);
  if (index == nullptr || index->primary) {
    return InternalError("table \"{}\" has no secondary index {}", table->name, index_id.value);
  }
  CELLAR_TRY(GuardRows(context, *compiled));
  IndexBuilder builder(context, *compiled, *index);
  CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader,
                    OpenScan(context, WholeTable(table, *compiled, false)));
  RowBatch rows;
  while (true) {
    CELLAR_TRY_ASSIGN(bool more, reader->Next(&rows));
    if (!more) return builder.Flush();
    CELLAR_TRY(builder.Add(rows));
  }
}

namespace {

void SetUp(const BackfillContext& in, AccessContext* context) {
  context->transaction = in.transaction;
  context->cancel = in.cancel;
  context->store = in.store;
}

}  // namespace

Status BackfillIndex(const BackfillContext& in, const TablePtr& table, IndexId index_id,
                     uint64_t max_rows, std::string* position, BackfillStep* out) {
  AccessContext own;
  SetUp(in, &own);
  AccessContext* context = &own;
  *out = BackfillStep();
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  const IndexCodec* index = compiled->FindIndex(index_id);
  if (index == nullptr || index->primary) {
    return InternalError("table \"{}\" has no secondary index {}", table->name, index_id.value);
  }
  const std::string& prefix = compiled->primary().prefix;
  KeyItem range;
  range.start = prefix + *position;
  range.end = codec::PrefixEnd(prefix);
  IndexBuilder builder(context, *compiled, *index);
  ScanSpec spec = WholeTable(table, *compiled, false);
  // What is read beyond the rows wanted is more for others to conflict with.
  spec.limit_hint = max_rows;
  CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader,
                    OpenRangeScan(context, std::move(spec), {std::move(range)}));
  RowBatch rows;
  std::string last;
  while (out->rows < max_rows) {
    CELLAR_TRY_ASSIGN(bool more, reader->Next(&rows));
    if (!more) {
      out->done = true;
      break;
    }
    if (rows.size() == 0) continue;
    CELLAR_TRY(builder.Add(rows));
    out->rows += rows.size();
    last.clear();
    codec::AppendKeyFields(rows, rows.size() - 1, compiled->primary().key_positions,
                           compiled->primary().key_columns, &last);
  }
  CELLAR_TRY(builder.Flush());
  if (!last.empty()) *position = codec::PrefixEnd(last);  // behind all parts of that row
  return Status();
}

Result<uint64_t> CountEntries(const BackfillContext& in, const TableDescriptor& table,
                              IndexId index_id) {
  AccessContext own;
  SetUp(in, &own);
  AccessContext* context = &own;
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
  const IndexCodec* index = compiled->FindIndex(index_id);
  if (index == nullptr)
    return InternalError("table \"{}\" has no index {}", table.name, index_id.value);
  const codec::KeyRange range = codec::PrefixRange(index->prefix);
  kv::ScanOptions options;
  options.keys_only = true;
  options.fill_cache = false;
  options.mode = kv::ReadMode::kSnapshot;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    context->transaction->Scan(range.start, range.end, options));
  kv::Block block;
  uint64_t entries = 0;
  while (true) {
    CELLAR_TRY(context->CheckCancel());
    CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
    if (!more) return entries;
    entries += block.size();
  }
}

Status ClearIndexOf(AccessContext* context, const TableDescriptor& table, IndexId index_id) {
  const IndexDescriptor* index = table.FindIndex(index_id);
  const uint32_t width = index != nullptr && index->primary ? codec::kIndexIdsOfPrimary : 1;
  const std::string start = codec::TablePrefix(table.storage_id(), index_id);
  const std::string last =
      codec::TablePrefix(table.storage_id(), IndexId{index_id.value + width - 1});
  return context->transaction->DeleteRange(start, codec::PrefixEnd(last));
}

Status RewriteTable(AccessContext* context, const TablePtr& from, const TablePtr& to,
                    const std::function<Status(const RowBatch& from, RowBatch* to)>& convert) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled_from, CompiledTable::Of(*from));
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled_to, CompiledTable::Of(*to));
  CELLAR_TRY(GuardRows(context, *compiled_from));
  // A cursor shows what was there when it was opened, so the old entries may go at once, and new
  // rows may take their keys.
  CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader,
                    OpenScan(context, WholeTable(from, *compiled_from, false)));
  RowBatch old_rows, new_rows;
  int64_t rows = 0, bytes = 0;
  const bool in_place = from->storage_id() == to->storage_id();
  CELLAR_TRY_ASSIGN(bool more, reader->Next(&old_rows));
  if (from->storage_id() == to->storage_id()) {
    for (const IndexDescriptor& index : from->indexes) {
      CELLAR_TRY(ClearIndexOf(context, *from, index.id));
    }
  }
  while (more) {
    new_rows.Reset(compiled_to->living_types());
    CELLAR_TRY(convert(old_rows, &new_rows));
    if (new_rows.size() != old_rows.size()) {
      return InternalError("rewriting {} rows made {}", old_rows.size(), new_rows.size());
    }
    rows += static_cast<int64_t>(new_rows.size());
    bytes += ValueBytes(new_rows, nullptr) - (in_place ? ValueBytes(old_rows, nullptr) : 0);
    CELLAR_TRY(InsertRows(context, to, &new_rows, ConflictPolicy(), nullptr));
    CELLAR_TRY_ASSIGN(more, reader->Next(&old_rows));
  }
  return in_place ? CountUpdated(context->transaction, *compiled_to, 0, bytes)
                  : CountInserted(context->transaction, *compiled_to, rows, bytes);
}

namespace {

Result<uint64_t> CountFewPagedRows(AccessContext* context, const CompiledTable& table) {
  const codec::KeyRange range = codec::PrefixRange(table.primary().prefix);
  kv::ScanOptions options;
  options.mode = kv::ReadMode::kSnapshot;
  PageMerge merge(context, &table, range.start, range.end, options, WantedValues::Of({}));
  MergeRun run;
  uint64_t rows = 0;
  while (rows < kManyRows) {
    CELLAR_TRY(merge.Next(true, &run));
    if (run.kind == MergeRun::Kind::kEnd) break;
    rows += run.kind == MergeRun::Kind::kRows ? run.keys.size() : run.count;
  }
  return rows;
}

Result<uint64_t> CountFewSplitRows(AccessContext* context, const CompiledTable& table) {
  CELLAR_TRY_ASSIGN(const std::shared_ptr<const ScanCodec> nothing,
                    table.Scan(table.primary().index->id, std::span<const ColumnId>(), false,
                               ScanBytes::kBorrow));
  const codec::KeyRange range = codec::PrefixRange(table.primary().prefix);
  SplitScan::Options options;
  options.mode = kv::ReadMode::kSnapshot;
  SplitScan scan(context, &table, nothing.get(), range.start, range.end, std::move(options));
  std::vector<std::string_view> keys;
  std::vector<StoredRow> stored;
  uint64_t rows = 0;
  while (rows < kManyRows) {
    CELLAR_TRY_ASSIGN(const bool more, scan.Next(&keys, &stored));
    if (!more) break;
    rows += stored.size();
  }
  return std::min(rows, kManyRows);
}

}  // namespace

Result<uint64_t> CountFewRows(AccessContext* context, const TableDescriptor& table) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(table));
  if (compiled->paged()) return CountFewPagedRows(context, *compiled);
  if (compiled->split()) return CountFewSplitRows(context, *compiled);
  const codec::KeyRange range = codec::PrefixRange(compiled->primary().prefix);
  kv::ScanOptions options;
  options.keys_only = true;
  options.limit = kManyRows;
  options.first_block_bytes = options.block_bytes;
  options.mode = kv::ReadMode::kSnapshot;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    context->transaction->Scan(range.start, range.end, options));
  kv::Block block;
  uint64_t rows = 0;
  while (true) {
    CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
    if (!more) return rows;
    rows += block.size();
  }
}

}  // namespace cellar::table
