// REPAIR: what CHECK finds and what can be mended without the rows' ever being the poorer for it.
#include <set>

#include "cellar/catalog/records_check.h"
#include "cellar/table/backfill.h"
#include "cellar/table/check_parts.h"
#include "cellar/table/maintenance.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

// Rebuilds one index; what a failure has written is taken back.
Status RebuildIndex(const TablePtr& table, const IndexDescriptor& index, AccessContext* context,
                    RepairReport* report) {
  const std::string name = fmt::format("index {} of table {}", index.name, table->name);
  const kv::SavepointId savepoint = context->transaction->Savepoint();
  Status status = ClearIndexOf(context, *table, index.id);
  if (status.ok()) status = BuildIndexOf(context, table, index.id);
  if (status.ok()) {
    report->done.push_back(name + ": rebuilt");
    return status;
  }
  if (status.code() != Code::kConstraint && status.code() != Code::kCorruption) return status;
  CELLAR_TRY(context->transaction->RollbackTo(savepoint));
  report->left.push_back(fmt::format("{}: not rebuilt, {}{}{}", name, status.message(),
                                     status.detail().empty() ? "" : ": ", status.detail()));
  return Status();
}

// Could the value be that of a row, a page, or a part of them? Entries of secondary indexes hold
// nothing, or a ROW of row format 0 (docs/formats/row.md).
bool MayBeRow(std::string_view value) {
  if (value.empty()) return false;
  constexpr unsigned char kKindBits = 0x3F, kRow = 1;
  const bool row = (static_cast<unsigned char>(value[0]) & kKindBits) == kRow;
  return !row || value.size() < 2 || value[1] != 0;
}

// Removes the keys of a range that no index owns, unless one of them could be a row: then what has
// lost them is their owner.
Status RemoveStrayKeys(const CompiledTable& compiled, const codec::KeyRange& gap,
                       AccessContext* context, RepairReport* report) {
  const IndexId primary = compiled.primary().index->id;
  codec::KeyRange rows =
      codec::PrefixRange(codec::TablePrefix(compiled.table().storage_id(), IndexId{primary.value}));
  rows.end =
      codec::PrefixRange(codec::TablePrefix(compiled.table().storage_id(),
                                            IndexId{primary.value + codec::kIndexIdsOfPrimary - 1}))
          .end;
  kv::ScanOptions options;
  options.mode = kv::ReadMode::kSnapshot;
  options.fill_cache = false;
  CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                    context->transaction->Scan(gap.start, gap.end, options));
  std::string first, row;
  uint64_t keys = 0;
  kv::Block block;
  while (row.empty()) {
    CELLAR_TRY(context->CheckCancel());
    CELLAR_TRY_ASSIGN(const bool more, cursor->NextBlock(&block));
    if (!more) break;
    for (size_t i = 0; i < block.size() && row.empty(); ++i) {
      const std::string_view key = block.key(i);
      if (keys++ == 0) first = key;
      const bool beside_rows = key >= rows.start && key < rows.end;
      if (beside_rows || MayBeRow(block.value(i))) row = key;
    }
  }
  if (keys == 0) return Status();
  if (!row.empty()) {
    report->left.push_back(
        fmt::format("table {}: keys of no index, the first is {}; not removed, {} may be a row",
                    compiled.table().name, codec::PrintKey(first), codec::PrintKey(row)));
    return Status();
  }
  CELLAR_TRY(context->transaction->DeleteRange(gap.start, gap.end));
  report->done.push_back(fmt::format("table {}: removed {} keys of no index, the first was {}",
                                     compiled.table().name, keys, codec::PrintKey(first)));
  return Status();
}

}  // namespace

Status RepairRecords(const catalog::CatalogSnapshot& catalog, kv::Transaction* transaction,
                     const CheckOptions& options, RepairReport* report) {
  CELLAR_TRY(catalog::RepairRecords(transaction, &report->done, &report->left));
  std::vector<CheckFinding> strange;
  CELLAR_TRY(CheckKeys(catalog, transaction, options, &strange));
  for (CheckFinding& finding : strange) report->left.push_back(std::move(finding.text));
  return Status();
}

Status RepairTable(const TablePtr& table, kv::Transaction* transaction, const CheckOptions& options,
                   RepairReport* report) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  std::vector<CheckFinding> findings;
  uint64_t rows = 0, unread_pages = 0;
  CELLAR_TRY(CheckTable(table, transaction, options, &rows, &unread_pages, &findings));
  AccessContext context;
  context.transaction = transaction;
  context.cancel = options.cancel;
  bool rows_certain = true;
  std::set<std::string> damaged;
  for (const CheckFinding& finding : findings) {
    if (finding.about == CheckFinding::About::kRows) {
      report->left.push_back(finding.text);
      rows_certain = false;
    } else if (finding.index != compiled->primary().index->name) {
      damaged.insert(finding.index);
    }
  }
  if (rows_certain) {
    for (const codec::KeyRange& gap : UnownedRanges(*compiled, options.of_jobs)) {
      CELLAR_TRY(RemoveStrayKeys(*compiled, gap, &context, report));
    }
    for (const codec::KeyRange& gap : RangesOfNoColumn(*compiled)) {
      CELLAR_TRY_ASSIGN(const std::optional<std::string> first, FirstKey(transaction, gap));
      if (!first) continue;
      report->left.push_back(fmt::format(
          "table {}: keys of no column, the first is {}; not removed, they may be of rows",
          table->name, codec::PrintKey(*first)));
    }
  }
  for (const IndexCodec& index : compiled->indexes()) {
    if (index.primary || damaged.count(index.index->name) == 0) continue;
    if (!rows_certain) {
      for (const CheckFinding& finding : findings) {
        if (finding.index == index.index->name) report->left.push_back(finding.text);
      }
      report->left.push_back(
          fmt::format("index {} of table {}: not rebuilt, it may hold what the table's rows have "
                      "lost",
                      index.index->name, table->name));
      continue;
    }
    for (const CheckFinding& finding : findings) {
      const bool lone = finding.about == CheckFinding::About::kLoneEntry;
      if (lone && finding.index == index.index->name) {
        report->done.push_back(finding.text + ": dropped, with what it told of that row");
      }
    }
    CELLAR_TRY(RebuildIndex(table, *index.index, &context, report));
  }
  int64_t greatest = 0;
  CELLAR_TRY_ASSIGN(const std::string problem,
                    ProblemOfRowIds(&context, table, *compiled, &greatest));
  if (!problem.empty()) {
    CELLAR_TRY(PutNextRowId(*table, greatest + 1, transaction));
    report->done.push_back(
        fmt::format("table {}: {}; it is {} now", table->name, problem, greatest + 1));
  }
  if (unread_pages != 0) {
    report->left.push_back(
        fmt::format("table {}: not counted, {} of its pages {} not read, and {} rows are elsewhere",
                    table->name, unread_pages, unread_pages == 1 ? "does" : "do", rows));
    return Status();
  }
  if (!rows_certain) {
    report->left.push_back(
        fmt::format("table {}: not counted, its rows are not certain", table->name));
    return Status();
  }
  const Result<std::optional<TableUsage>> usage = UsageOf(*table, transaction);
  if (usage.status().code() != Code::kCorruption) CELLAR_TRY(usage.status());
  if (usage.ok() && *usage && (*usage)->rows == static_cast<int64_t>(rows)) return Status();
  // Rows that come or go meanwhile would not be counted.
  const codec::KeyRange range = codec::PrefixRange(compiled->primary().prefix);
  CELLAR_TRY(transaction->AddReadConflict(range.start, range.end));
  Status counted = Recount(table, transaction);
  if (counted.code() == Code::kCorruption) {
    report->left.push_back(
        fmt::format("table {}: not counted, {}", table->name, counted.message()));
    return Status();
  }
  report->done.push_back(fmt::format("table {}: counted, {} rows", table->name, rows));
  return counted;
}

}  // namespace cellar::table
