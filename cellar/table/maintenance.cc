#include "cellar/table/maintenance.h"

#include <algorithm>

#include "cellar/table/backfill.h"
#include "cellar/table/index_builder.h"
#include "cellar/table/page_merge.h"
#include "cellar/table/split_scan.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

// What an unknown number of rows is taken for.
constexpr uint64_t kManyRows = 1000;

// Whatever the isolation, a row that another transaction adds meanwhile must not be missed.
Status GuardRows(AccessContext* context, const CompiledTable& compiled) {
  const codec::KeyRange range = codec::PrefixRange(compiled.primary().prefix);
  return context->transaction->AddReadConflict(range.start, range.end);
}

}  // namespace

Status BuildIndexOf(AccessContext* context, const TablePtr& table, IndexId index_id) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  const IndexCodec* index = compiled->FindIndex(index_id);
  if (index == nullptr || index->primary) {
    return InternalError("table \"{}\" has no secondary index {}", table->name, index_id.value);
  }
  CELLAR_TRY(GuardRows(context, *compiled));
  const bool bulk = context->bulk == table->storage_id();
  IndexBuilder builder(context, *compiled, *index,
                       bulk ? IndexBuilder::Write::kPutIfAbsent : IndexBuilder::Write::kPut);
  CELLAR_TRY_ASSIGN(std::unique_ptr<Reader> reader, OpenScan(context, builder.Scan(table)));
  RowBatch rows;
  while (true) {
    CELLAR_TRY_ASSIGN(bool more, reader->Next(&rows));
    if (!more) return builder.Flush();
    CELLAR_TRY(builder.Add(rows));
  }
}

Status ClearIndexOf(AccessContext* context, const TableDescriptor& table, IndexId index_id) {
  const IndexDescriptor* index = table.FindIndex(index_id);
  if (index == nullptr || index->primary) context->GuardPages(table);
  uint32_t width = 1;
  if (index != nullptr && index->primary) width = codec::kIndexIdsOfPrimary;
  if (index != nullptr && IsBeingBuilt(*index)) width = kIndexIdsOfBuild;
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
                    OpenScan(context, WholeTable(from, *compiled_from)));
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
