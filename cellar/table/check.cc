// CHECK: every index of a table against its rows, both ways, at one snapshot. With pages, first
// these and the delta over them (check_pages.h); in key ranges that are damaged, rows are unknown
// and entries are not compared.
//
// By sums: the entries that the rows should have and those that are there are two sets, which are
// the same when their counts and the sums of their hashes are.
//
// One by one, from the rows: each row's entries are computed and looked up, so a missing entry and
// one that says something else are found, and with them two rows that share a unique key. From the
// entries: each entry's row is fetched and its entry computed, so a dangling entry and one that its
// row does not have are found. Counts are compared beside, and rows are decoded in full.
#include "cellar/table/check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cellar/catalog/records_check.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/table/backfill.h"
#include "cellar/table/check_forms.h"
#include "cellar/table/check_pages.h"
#include "cellar/table/check_parts.h"
#include "cellar/table/compiled.h"
#include "cellar/table/errors.h"
#include "cellar/table/keys_dump.h"
#include "cellar/table/maintenance.h"
#include "cellar/table/reader.h"
#include "cellar/table/split_scan.h"
#include "cellar/table/usage.h"
#include "cellar/table/writer.h"
#include "cellar/types/stored_value.h"

namespace cellar::table {
namespace {

// Findings beyond this are counted only: a table that lost an index needs no million of them.
constexpr size_t kMaxFindingsPerIndex = 100;

// A multiset of entries: how many, and two sums over hashes of key and value, modulo 2^64.
struct EntrySums {
  uint64_t count = 0, plain = 0, mixed = 0;

  void Add(std::string_view key, std::string_view value) {
    const Type bytes = MakeType(TypeId::kBytea);
    const uint64_t hash = HashDatum(Datum::Bytes(key), bytes) * 0x9E3779B97F4A7C15 ^
                          HashDatum(Datum::Bytes(value), bytes);
    ++count;
    plain += hash;
    mixed += (hash ^ hash >> 31) * 0xBF58476D1CE4E5B9;
  }
  bool operator==(const EntrySums&) const = default;
};

class Checker {
 public:
  // `sums`: compare by sums, else one by one.
  Checker(const CompiledTable& compiled, AccessContext* context, bool sums,
          const std::vector<codec::KeyRange>& of_jobs, std::vector<CheckFinding>* findings)
      : compiled_(compiled),
        context_(context),
        sums_(sums),
        of_jobs_(of_jobs),
        findings_(findings),
        forms_(&compiled) {}

  // Pages that do not read, after Run.
  uint64_t unread_pages() const { return pages_ == nullptr ? 0 : pages_->unread_pages(); }

  Status Run(uint64_t* rows) {
    CELLAR_TRY_ASSIGN(whole_, compiled_.Scan(compiled_.primary().index->id, compiled_.living_ids(),
                                             true, ScanBytes::kBorrow));
    CELLAR_TRY(compiled_.paged()   ? CheckPages()
               : compiled_.split() ? CheckSplitRows()
                                   : CheckRows());
    for (const IndexCodec& index : compiled_.indexes()) {
      // What is being built has only part of its entries.
      if (index.primary || index.index->state != catalog::IndexState::kPublic) continue;
      CELLAR_TRY(sums_ ? CompareSums(index) : CheckEntries(index));
    }
    CELLAR_TRY(CheckStrangeIndexes());
    CELLAR_TRY(CheckCount());
    for (const auto& [index, count] : found_) {
      if (count <= kMaxFindingsPerIndex) continue;
      findings_->push_back({compiled_.table().name, index,
                            fmt::format("{} more findings", count - kMaxFindingsPerIndex)});
    }
    *rows = rows_;
    return Status();
  }

 private:
  void FindAbout(const IndexCodec& index, CheckFinding::About about, std::string text) {
    const std::string& name = index.index->name;
    if (++found_[name] > kMaxFindingsPerIndex) return;
    std::string where = index.primary
                            ? fmt::format("table {}: ", compiled_.table().name)
                            : fmt::format("index {} of table {}: ", name, compiled_.table().name);
    findings_->push_back({compiled_.table().name, name, where + text, about});
  }
  void Find(const IndexCodec& index, std::string text) {
    using enum CheckFinding::About;
    FindAbout(index, index.primary ? kRows : kOther, std::move(text));
  }

  // Calls visit(block) for all pairs of a range.
  template <typename Visit>
  Status ForEachBlock(const codec::KeyRange& range, bool keys_only, Visit&& visit) {
    kv::ScanOptions options;
    options.mode = kv::ReadMode::kSnapshot;
    options.keys_only = keys_only;
    options.first_block_bytes = options.block_bytes;
    options.fill_cache = false;
    CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                      context_->transaction->Scan(range.start, range.end, options));
    kv::Block block;
    while (true) {
      CELLAR_TRY(context_->CheckCancel());
      CELLAR_TRY_ASSIGN(bool more, cursor->NextBlock(&block));
      if (!more) return Status();
      CELLAR_TRY(visit(block));
    }
  }

  // Decodes rows into batch_; those that make no sense are reported and left out. `places` says
  // where each row of the batch came from. `walk`: they are met by their own keys, once.
  Status DecodeRows(std::span<const std::string_view> keys, std::span<const StoredRow> rows,
                    bool walk, std::vector<uint32_t>* places) {
    places->clear();
    batch_.Reset(whole_->types());
    batch_.Resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const size_t row = places->size();
      std::string scratch;
      RowBatch scratch_row;
      const IndexCodec& primary = compiled_.primary();
      const Result<std::string_view> ref = primary.FindRef(keys[i], {}, &scratch, &scratch_row);
      Status status = ref.status();
      if (status.ok() && primary.shards != 0) {
        scratch.clear();
        AppendRowKey(primary, *ref, &scratch);
        if (scratch != keys[i]) status = CorruptionError("it lies in another shard than its own");
      }
      if (status.ok()) {
        status = whole_->DecodeStored(keys.subspan(i, 1), rows.subspan(i, 1), row, &batch_);
      }
      if (status.code() == Code::kCorruption) {
        Find(compiled_.primary(),
             fmt::format("row {} is damaged: {}", codec::PrintKey(keys[i]), status.message()));
        continue;
      }
      CELLAR_TRY(std::move(status));
      places->push_back(static_cast<uint32_t>(i));
      if (!walk || rows[i].page != nullptr) continue;
      status = forms_.CheckRow(rows[i].value, batch_, row);
      if (status.code() == Code::kCorruption) {
        Find(compiled_.primary(),
             fmt::format("row {} is damaged: {}", codec::PrintKey(keys[i]), status.message()));
        continue;
      }
      CELLAR_TRY(std::move(status));
    }
    batch_.Resize(places->size());
    batch_.SetSize(places->size());
    return Status();
  }

  std::string_view RefOf(size_t row) const {
    return batch_.column(compiled_.living_ids().size()).bytes()[row];
  }

  Status CheckRows() {
    const codec::KeyRange range = codec::PrefixRange(compiled_.primary().prefix);
    return ForEachBlock(range, false, [&](const kv::Block& block) -> Status {
      std::vector<std::string_view> keys, values;
      for (size_t i = 0; i < block.size(); ++i) {
        keys.push_back(block.key(i));
        values.push_back(block.value(i));
      }
      return CheckPackedRows(keys, values, true);
    });
  }

  Status CheckSplitRows() {
    const codec::KeyRange range = codec::PrefixRange(compiled_.primary().prefix);
    SplitScan::Options options;
    options.mode = kv::ReadMode::kSnapshot;
    options.stray = [this](std::string_view key) {
      Find(compiled_.primary(), fmt::format("key {} is no part of a row", codec::PrintKey(key)));
    };
    options.part = [this](const RowPart& part, std::string_view key, std::string_view value) {
      const Status status = forms_.CheckPart(part, value);
      if (status.ok()) return;
      Find(compiled_.primary(), fmt::format("the part of a row at key {} is damaged: {}",
                                            codec::PrintKey(key), status.message()));
    };
    SplitScan scan(context_, &compiled_, whole_.get(), range.start, range.end, std::move(options));
    std::vector<std::string_view> keys;
    std::vector<StoredRow> rows;
    while (true) {
      CELLAR_TRY(context_->CheckCancel());
      CELLAR_TRY_ASSIGN(const bool more, scan.Next(&keys, &rows));
      if (!more) return Status();
      std::vector<uint32_t> places;
      CELLAR_TRY(DecodeRows(keys, rows, true, &places));
      rows_ += keys.size();
      CheckKeys();
      CELLAR_TRY(CheckBatch());
    }
  }

  Status CheckPages() {
    PageCheck::Sink sink;
    sink.find = [this](std::string text) { Find(compiled_.primary(), std::move(text)); };
    sink.page_rows = [this](RowBatch* rows) {
      std::swap(batch_, *rows);
      rows_ += batch_.size();
      return CheckBatch();
    };
    sink.delta_rows = [this](std::span<const std::string_view> keys,
                             std::span<const std::string_view> values,
                             bool readable) { return CheckPackedRows(keys, values, readable); };
    pages_ = std::make_unique<PageCheck>(context_, &compiled_, whole_.get(), std::move(sink));
    return pages_->Run();
  }

  // `readable`: they count, and have entries.
  Status CheckPackedRows(std::span<const std::string_view> keys,
                         std::span<const std::string_view> values, bool readable) {
    std::vector<StoredRow> rows(values.size());
    for (size_t i = 0; i < values.size(); ++i) rows[i].value = values[i];
    std::vector<uint32_t> places;
    CELLAR_TRY(DecodeRows(keys, rows, true, &places));
    if (!readable) return Status();
    rows_ += keys.size();
    CheckKeys();
    return CheckBatch();
  }

  // Are the rows of batch_ those that their keys say?
  void CheckKeys() {
    const IndexCodec& primary = compiled_.primary();
    std::string key;
    for (size_t row = 0; row < batch_.size(); ++row) {
      key.clear();
      codec::AppendKeyFields(batch_, row, primary.key_positions, primary.key_columns, &key);
      if (key == RefOf(row)) continue;
      std::string place;
      AppendRowKey(primary, RefOf(row), &place);
      Find(primary, fmt::format("row {} is of another key", codec::PrintKey(place)));
    }
  }

  // Could the values have been stored?
  void CheckValues() {
    for (size_t i = 0; i < compiled_.living().size(); ++i) {
      const catalog::ColumnDescriptor& column = compiled_.living_column(i);
      for (size_t row = 0; row < batch_.size(); ++row) {
        const Status status = CheckStoredValue(batch_.column(i).Get(row), column.type);
        if (status.ok()) continue;
        Find(compiled_.primary(), fmt::format("column {} of row ({}) is damaged: {}", column.name,
                                              DescribeRef(RefOf(row)), status.message()));
      }
    }
  }

  // The rows of batch_ and their entries.
  Status CheckBatch() {
    CheckNulls();
    CheckValues();
    const Status computed = indexed_.Compute(compiled_, batch_);
    if (computed.code() == Code::kInvalid || computed.code() == Code::kCorruption) {
      // A value that no statement could have stored.
      std::string place;
      if (batch_.size() != 0) AppendRowKey(compiled_.primary(), RefOf(0), &place);
      Find(compiled_.primary(),
           fmt::format("an expression of an index fails for one of the {} rows from {} on: {}",
                       batch_.size(), codec::PrintKey(place), computed.message()));
      return Status();
    }
    CELLAR_TRY(computed);
    for (const IndexCodec& index : compiled_.indexes()) {
      if (index.primary || index.index->state != catalog::IndexState::kPublic) continue;
      CELLAR_TRY(sums_ ? AddEntriesOfRows(index) : CheckEntriesOfRows(index));
    }
    return Status();
  }

  Status AddEntriesOfRows(const IndexCodec& index) {
    EntrySums& sums = row_sums_[index.index->id.value];
    std::string key, value;
    const RowBatch& rows = indexed_.rows();
    for (size_t row = 0; row < rows.size(); ++row) {
      if (!index.Holds(rows, row)) continue;
      key.clear();
      value.clear();
      index.AppendKey(rows, row, RefOf(row), &key);
      CELLAR_TRY(index.AppendValue(rows, row, RefOf(row), &datums_, &value));
      sums.Add(key, value);
    }
    return Status();
  }

  Status CompareSums(const IndexCodec& index) {
    // Of rows in damaged pages nothing is known, and the damage was found.
    if (pages_ != nullptr && pages_->found_damage()) return Status();
    EntrySums entries;
    CELLAR_TRY(ForEachBlock(codec::PrefixRange(index.prefix), false, [&](const kv::Block& block) {
      for (size_t i = 0; i < block.size(); ++i) entries.Add(block.key(i), block.value(i));
      return Status();
    }));
    const EntrySums& rows = row_sums_[index.index->id.value];
    if (entries == rows) return Status();
    Find(index, fmt::format("its {} entries are not those of the {} rows", entries.count, rows_));
    return Status();
  }

  void CheckNulls() {
    for (size_t i = 0; i < compiled_.living().size(); ++i) {
      const catalog::ColumnDescriptor& column = compiled_.living_column(i);
      if (!column.not_null || !batch_.column(i).has_nulls()) continue;
      for (size_t row = 0; row < batch_.size(); ++row) {
        if (!batch_.column(i).IsNull(row)) continue;
        Find(compiled_.primary(),
             fmt::format("row ({}) has NULL in column {}", DescribeRef(RefOf(row)), column.name));
      }
    }
  }

  // The rows' entries must be there and say what they should.
  Status CheckEntriesOfRows(const IndexCodec& index) {
    StringList keys;
    std::vector<std::string_view> views;
    const RowBatch& rows = indexed_.rows();
    std::vector<uint32_t> held;
    for (size_t row = 0; row < rows.size(); ++row) {
      if (!index.Holds(rows, row)) continue;
      held.push_back(static_cast<uint32_t>(row));
      index.AppendKey(rows, row, RefOf(row), keys.buffer());
      keys.End();
    }
    held_[&index] += held.size();
    for (size_t i = 0; i < held.size(); ++i) views.push_back(keys[i]);
    std::vector<uint8_t> found;
    CELLAR_TRY(context_->MultiGet(views, nullptr, &pins_, &found));
    std::string value, scratch;
    RowBatch scratch_row;
    for (size_t i = 0; i < held.size(); ++i) {
      const uint32_t row = held[i];
      const std::string_view ref = RefOf(row);
      if (!found[i]) {
        Find(index, fmt::format("no entry for row ({})", DescribeRef(ref)));
        continue;
      }
      value.clear();
      CELLAR_TRY(index.AppendValue(rows, row, ref, &datums_, &value));
      if (pins_[i].view() == value) continue;
      Result<std::string_view> other =
          index.FindRef(views[i], pins_[i].view(), &scratch, &scratch_row);
      if (other.ok() && index.unique && other.value() != ref) {
        Find(index, fmt::format("rows ({}) and ({}) share one key", DescribeRef(ref),
                                DescribeRef(other.value())));
      } else {
        Find(index, fmt::format("the entry of row ({}) holds other values", DescribeRef(ref)));
      }
    }
    return Status();
  }

  // The entries' rows must be there and have those entries.
  Status CheckEntries(const IndexCodec& index) {
    uint64_t entries = 0;
    CELLAR_TRY(ForEachBlock(codec::PrefixRange(index.prefix), false, [&](const kv::Block& block) {
      return CheckRowsOfEntries(index, block, &entries);
    }));
    const bool partial = index.predicate_position >= 0;
    const uint64_t expected = partial ? held_[&index] : rows_;
    // Whether damaged rows should have entries in a partial index is not known.
    const bool known = !partial || found_.count(compiled_.primary().index->name) == 0;
    if (entries != expected && known) {
      Find(index, fmt::format("{} entries for {} rows", entries, expected));
    }
    return Status();
  }

  // Adds to *entries those whose rows are known, or none.
  Status CheckRowsOfEntries(const IndexCodec& index, const kv::Block& block, uint64_t* entries) {
    StringList row_keys;
    std::vector<std::string_view> entry_keys;
    std::string scratch;
    RowBatch scratch_row;
    for (size_t i = 0; i < block.size(); ++i) {
      Result<std::string_view> ref =
          index.FindRef(block.key(i), block.value(i), &scratch, &scratch_row);
      if (!ref.ok()) {
        ++*entries;
        Find(index, fmt::format("entry {} is damaged: {}", codec::PrintKey(block.key(i)),
                                ref.status().message()));
        continue;
      }
      if (pages_ != nullptr && pages_->IsDamaged(ref.value())) continue;
      ++*entries;
      AppendRowKey(compiled_.primary(), ref.value(), row_keys.buffer());
      row_keys.End();
      entry_keys.push_back(block.key(i));
    }
    std::vector<std::string_view> views;
    for (size_t i = 0; i < row_keys.size(); ++i) views.push_back(row_keys[i]);
    Status status = CompareEntries(index, views, entry_keys);
    if (status.code() != Code::kCorruption) return status;
    // One of many: which, a page tells only when it is asked for alone.
    for (size_t i = 0; i < views.size(); ++i) {
      status = CompareEntries(index, {&views[i], 1}, {&entry_keys[i], 1});
      if (status.code() != Code::kCorruption) {
        CELLAR_TRY(std::move(status));
        continue;
      }
      Find(index, fmt::format("the row of entry {} does not read: {}",
                              codec::PrintKey(entry_keys[i]), status.message()));
    }
    return Status();
  }

  // Finds nothing when it answers kCorruption.
  Status CompareEntries(const IndexCodec& index, std::span<const std::string_view> row_keys,
                        std::span<const std::string_view> entry_keys) {
    std::vector<StoredRow> stored;
    std::vector<uint8_t> found;
    CELLAR_TRY(fetcher_.Fetch(context_, compiled_, row_keys, nullptr, &stored, &found));
    std::vector<std::string_view> keys;
    std::vector<StoredRow> rows;
    std::vector<size_t> entries;
    for (size_t i = 0; i < row_keys.size(); ++i) {
      if (!found[i]) {
        FindAbout(index, CheckFinding::About::kLoneEntry,
                  fmt::format("entry without a row, key {}", codec::PrintKey(entry_keys[i])));
        continue;
      }
      keys.push_back(row_keys[i]);
      rows.push_back(stored[i]);
      entries.push_back(i);
    }
    std::vector<uint32_t> places;
    CELLAR_TRY(DecodeRows(keys, rows, false, &places));
    CELLAR_TRY(indexed_.Compute(compiled_, batch_));
    std::string key;
    for (size_t row = 0; row < batch_.size(); ++row) {
      const std::string_view entry = entry_keys[entries[places[row]]];
      key.clear();
      if (index.Holds(indexed_.rows(), row)) {
        index.AppendKey(indexed_.rows(), row, RefOf(row), &key);
      }
      if (key == entry) continue;  // its value was compared from the row's side
      Find(index, fmt::format("entry {} is not that of its row ({})", codec::PrintKey(entry),
                              DescribeRef(RefOf(row))));
    }
    return Status();
  }

  Status CheckStrangeIndexes() {
    for (const codec::KeyRange& gap : UnownedRanges(compiled_, of_jobs_)) {
      CELLAR_TRY(CheckGap(gap, "index"));
    }
    for (const codec::KeyRange& gap : RangesOfNoColumn(compiled_)) {
      CELLAR_TRY(CheckGap(gap, "column"));
    }
    return Status();
  }

  Status CheckCount() {
    if (pages_ != nullptr && pages_->found_damage()) return Status();
    const Result<std::optional<TableUsage>> found =
        UsageOf(compiled_.table(), context_->transaction);
    if (found.status().code() == Code::kCorruption) {
      findings_->push_back({compiled_.table().name, "",
                            fmt::format("table {}: its count is damaged: {}",
                                        compiled_.table().name, found.status().message())});
      return Status();
    }
    CELLAR_TRY_ASSIGN(const std::optional<TableUsage> usage, found);
    if (!usage && compiled_.table().counted_since_micros != 0) {
      findings_->push_back({compiled_.table().name, "",
                            fmt::format("table {}: its count is missing, {} rows are there",
                                        compiled_.table().name, rows_)});
    }
    if (usage && usage->rows != static_cast<int64_t>(rows_)) {
      findings_->push_back({compiled_.table().name, "",
                            fmt::format("table {}: {} rows are counted, {} are there",
                                        compiled_.table().name, usage->rows, rows_)});
    }
    return Status();
  }

  Status CheckGap(const codec::KeyRange& gap, std::string_view owner) {
    CELLAR_TRY_ASSIGN(std::optional<std::string> first, FirstKey(context_->transaction, gap));
    if (!first) return Status();
    FindAbout(compiled_.primary(), CheckFinding::About::kOther,
              fmt::format("keys of no {}, the first is {}", owner, codec::PrintKey(*first)));
    return Status();
  }

  const CompiledTable& compiled_;
  AccessContext* context_;
  const bool sums_;
  const std::vector<codec::KeyRange>& of_jobs_;
  std::vector<CheckFinding>* findings_;
  FormCheck forms_;
  std::map<uint32_t, EntrySums> row_sums_;  // by index id
  std::shared_ptr<const ScanCodec> whole_;
  uint64_t rows_ = 0;
  std::map<const IndexCodec*, uint64_t> held_;  // rows that have entries
  std::map<std::string, uint64_t> found_;       // findings by index
  RowBatch batch_;
  IndexedRows indexed_;  // of batch_
  RowFetcher fetcher_;
  std::unique_ptr<PageCheck> pages_;  // with layout `pages`
  std::vector<kv::PinnedValue> pins_;
  std::vector<Datum> datums_;
};

}  // namespace

Status CheckKeys(const catalog::CatalogSnapshot& catalog, kv::Transaction* transaction,
                 const CheckOptions& options, std::vector<CheckFinding>* findings) {
  if (options.mode == CheckMode::kFull) {
    CELLAR_TRY(DumpKeys(transaction, catalog, DumpOptions(), [&](const DumpedKey& key) -> Status {
                 if (options.cancel != nullptr) CELLAR_TRY(options.cancel->Check());
                 if (!key.readable) findings->push_back({"", "", key.ToString()});
                 return Status();
               }).status());
  }
  std::set<uint64_t> known;
  for (const TablePtr& table : catalog.ListAllTables()) known.insert(table->storage_id().value);
  for (const TablePtr& table : catalog.ListDroppedTables()) {
    known.insert(table->storage_id().value);
  }
  const std::vector<catalog::UnreadableObject> unreadable = catalog::ListUnreadable(catalog);
  for (const catalog::UnreadableObject& object : unreadable) known.insert(object.id);
  codec::KeyRange rest{std::string(1, '\x01'), ""};  // system records begin with 00
  while (true) {
    if (options.cancel != nullptr) CELLAR_TRY(options.cancel->Check());
    CELLAR_TRY_ASSIGN(std::optional<std::string> first, FirstKey(transaction, rest));
    if (!first) return Status();
    std::string_view in = *first;
    Result<uint64_t> id = codec::TakeKeyUint(&in);
    if (!id.ok()) {
      findings->push_back(
          {"", "", fmt::format("key {} belongs to no table", codec::PrintKey(*first))});
      rest.start = *first + '\0';
      continue;
    }
    if (known.count(*id) == 0) {
      findings->push_back(
          {"", "",
           fmt::format("keys of table {}, which {}, the first is {}", *id,
                       unreadable.empty() ? "is not in the catalog"
                                          : "no descriptor that reads has in the catalog",
                       codec::PrintKey(*first))});
    }
    rest.start = codec::PrefixRange(codec::TablePrefix(codec::TableId{*id})).end;
  }
}

Status CheckStore(const catalog::CatalogSnapshot& catalog, const std::vector<TablePtr>& tables,
                  kv::Transaction* transaction, const CheckOptions& options, CheckTotals* totals,
                  std::vector<CheckFinding>* findings) {
  std::vector<std::string> records;
  CELLAR_TRY(catalog::CheckRecords(transaction, &records));
  for (std::string& text : records) findings->push_back({"", "", std::move(text)});
  for (const TablePtr& table : tables) {
    uint64_t rows = 0;
    std::vector<CheckFinding> found;
    CELLAR_TRY(CheckTable(table, transaction, options, &rows, &found));
    for (CheckFinding& finding : found) {
      finding.table = catalog.PathOf(*table);
      findings->push_back(std::move(finding));
    }
    ++totals->tables;
    totals->rows += rows;
  }
  return CheckKeys(catalog, transaction, options, findings);
}

Result<std::string> ProblemOfRowIds(AccessContext* context, const TablePtr& table,
                                    const CompiledTable& compiled, int64_t* greatest) {
  if (compiled.row_id_position() < 0) return std::string();
  const Result<int64_t> found = GreatestRowId(context, table);
  if (found.status().code() == Code::kCorruption) return std::string();  // which was found already
  CELLAR_TRY_ASSIGN(*greatest, found);
  const Result<std::optional<int64_t>> next = NextRowId(*table, context->transaction);
  if (next.status().code() == Code::kCorruption)
    return fmt::format("the record of the next row id is damaged: {}", next.status().message());
  CELLAR_TRY(next.status());
  if (!next->has_value() && *greatest > 0)
    return std::string("the record of the next row id is missing");
  if (next->has_value() && **next <= *greatest) {
    return fmt::format("the next row id is {}, but there is a row {}", **next, *greatest);
  }
  return std::string();
}

namespace {

Status CheckRowIds(AccessContext* context, const TablePtr& table, const CompiledTable& compiled,
                   std::vector<CheckFinding>* findings) {
  int64_t greatest = 0;
  CELLAR_TRY_ASSIGN(const std::string problem,
                    ProblemOfRowIds(context, table, compiled, &greatest));
  if (!problem.empty())
    findings->push_back({table->name, "", fmt::format("table {}: {}", table->name, problem)});
  return Status();
}

}  // namespace

Status CheckTable(const TablePtr& table, kv::Transaction* transaction, const CheckOptions& options,
                  uint64_t* rows, uint64_t* unread_pages, std::vector<CheckFinding>* findings) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  AccessContext context;
  context.transaction = transaction;
  context.cancel = options.cancel;
  context.mode = kv::ReadMode::kSnapshot;
  std::vector<CheckFinding> found;
  if (options.mode != CheckMode::kFull) {
    Checker checker(*compiled, &context, true, options.of_jobs, &found);
    CELLAR_TRY(checker.Run(rows));
    *unread_pages = checker.unread_pages();
    CELLAR_TRY(CheckRowIds(&context, table, *compiled, &found));
    if (options.mode == CheckMode::kFast || found.empty()) {
      findings->insert(findings->end(), found.begin(), found.end());
      return Status();
    }
  }
  Checker checker(*compiled, &context, false, options.of_jobs, findings);
  CELLAR_TRY(checker.Run(rows));
  *unread_pages = checker.unread_pages();
  return CheckRowIds(&context, table, *compiled, findings);
}

Status CheckTable(const TablePtr& table, kv::Transaction* transaction, const CheckOptions& options,
                  uint64_t* rows, std::vector<CheckFinding>* findings) {
  uint64_t unread_pages = 0;
  return CheckTable(table, transaction, options, rows, &unread_pages, findings);
}

}  // namespace cellar::table
