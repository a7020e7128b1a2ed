// CHECK: every index of a table against its rows, both ways, at one snapshot.
//
// From the rows: each row's entries are computed and looked up, so a missing entry and one that
// says something else are found, and with them two rows that share a unique key. From the entries:
// each entry's row is fetched and its entry computed, so a dangling entry and one that its row does
// not have are found. Counts are compared beside, and rows are decoded in full.
#include <algorithm>
#include <map>

#include "cellar/table/access.h"
#include "cellar/table/compiled.h"
#include "cellar/table/errors.h"
#include "cellar/table/reader.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

// Findings beyond this are counted only: a table that lost an index needs no million of them.
constexpr size_t kMaxFindingsPerIndex = 100;

class Checker {
 public:
  Checker(const CompiledTable& compiled, AccessContext* context,
          std::vector<CheckFinding>* findings)
      : compiled_(compiled), context_(context), findings_(findings) {}

  Status Run(uint64_t* rows) {
    CELLAR_TRY_ASSIGN(whole_, compiled_.Scan(compiled_.primary().index->id, compiled_.living_ids(),
                                             true, ScanBytes::kBorrow));
    CELLAR_TRY(CheckRows());
    for (const IndexCodec& index : compiled_.indexes()) {
      if (index.primary || !TakesEntries(*index.index)) continue;
      CELLAR_TRY(CheckEntries(index));
    }
    CELLAR_TRY(CheckStrangeIndexes());
    for (const auto& [index, count] : found_) {
      if (count <= kMaxFindingsPerIndex) continue;
      findings_->push_back({compiled_.table().name, index,
                            fmt::format("{} more findings", count - kMaxFindingsPerIndex)});
    }
    *rows = rows_;
    return Status();
  }

 private:
  void Find(const IndexCodec& index, std::string text) {
    const std::string& name = index.index->name;
    if (++found_[name] > kMaxFindingsPerIndex) return;
    std::string where = index.primary
                            ? fmt::format("table {}: ", compiled_.table().name)
                            : fmt::format("index {} of table {}: ", name, compiled_.table().name);
    findings_->push_back({compiled_.table().name, name, where + text});
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
  // where each row of the batch came from.
  Status DecodeRows(std::span<const std::string_view> keys,
                    std::span<const std::string_view> values, std::vector<uint32_t>* places) {
    places->clear();
    batch_.Reset(whole_->types());
    batch_.Resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const size_t row = places->size();
      Status status;
      std::string scratch;
      RowBatch scratch_row;
      if (Result<std::string_view> ref =
              compiled_.primary().FindRef(keys[i], values[i], &scratch, &scratch_row);
          !ref.ok()) {
        status = ref.status();
      } else {
        status = whole_->Decode(keys.subspan(i, 1), values.subspan(i, 1), row, &batch_);
      }
      if (status.code() == Code::kCorruption) {
        Find(compiled_.primary(),
             fmt::format("row {} is damaged: {}", codec::PrintKey(keys[i]), status.message()));
        continue;
      }
      CELLAR_TRY(std::move(status));
      places->push_back(static_cast<uint32_t>(i));
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
      rows_ += keys.size();
      std::vector<uint32_t> places;
      CELLAR_TRY(DecodeRows(keys, values, &places));
      CheckNulls();
      for (const IndexCodec& index : compiled_.indexes()) {
        if (index.primary || !TakesEntries(*index.index)) continue;
        CELLAR_TRY(CheckEntriesOfRows(index));
      }
      return Status();
    });
  }

  void CheckNulls() {
    for (size_t i = 0; i < compiled_.living().size(); ++i) {
      const catalog::ColumnDescriptor& column = compiled_.living_column(i);
      if (!column.not_null || !batch_.column(i).has_nulls()) continue;
      for (size_t row = 0; row < batch_.size(); ++row) {
        if (!batch_.column(i).IsNull(row)) continue;
        Find(compiled_.primary(),
             fmt::format("row ({}) has NULL in column {}", Describe(RefOf(row)), column.name));
      }
    }
  }

  // The rows' entries must be there and say what they should.
  Status CheckEntriesOfRows(const IndexCodec& index) {
    StringList keys;
    std::vector<std::string_view> views;
    for (size_t row = 0; row < batch_.size(); ++row) {
      index.AppendKey(batch_, row, RefOf(row), keys.buffer());
      keys.End();
    }
    for (size_t row = 0; row < batch_.size(); ++row) views.push_back(keys[row]);
    std::vector<uint8_t> found;
    CELLAR_TRY(context_->MultiGet(views, &pins_, &found));
    std::string value, scratch;
    RowBatch scratch_row;
    for (size_t row = 0; row < batch_.size(); ++row) {
      const std::string_view ref = RefOf(row);
      if (!found[row]) {
        Find(index, fmt::format("no entry for row ({})", Describe(ref)));
        continue;
      }
      value.clear();
      CELLAR_TRY(index.AppendValue(batch_, row, ref, &datums_, &value));
      if (pins_[row].view() == value) continue;
      Result<std::string_view> other =
          index.FindRef(views[row], pins_[row].view(), &scratch, &scratch_row);
      if (other.ok() && index.unique && other.value() != ref) {
        Find(index, fmt::format("rows ({}) and ({}) share one key", Describe(ref),
                                Describe(other.value())));
      } else {
        Find(index, fmt::format("the entry of row ({}) holds other values", Describe(ref)));
      }
    }
    return Status();
  }

  // The entries' rows must be there and have those entries.
  Status CheckEntries(const IndexCodec& index) {
    uint64_t entries = 0;
    CELLAR_TRY(ForEachBlock(codec::PrefixRange(index.prefix), false, [&](const kv::Block& block) {
      entries += block.size();
      return CheckRowsOfEntries(index, block);
    }));
    if (entries != rows_) {
      Find(index, fmt::format("{} entries for {} rows", entries, rows_));
    }
    return Status();
  }

  Status CheckRowsOfEntries(const IndexCodec& index, const kv::Block& block) {
    StringList row_keys;
    std::vector<size_t> entry_of;
    std::string scratch;
    RowBatch scratch_row;
    for (size_t i = 0; i < block.size(); ++i) {
      Result<std::string_view> ref =
          index.FindRef(block.key(i), block.value(i), &scratch, &scratch_row);
      if (!ref.ok()) {
        Find(index, fmt::format("entry {} is damaged: {}", codec::PrintKey(block.key(i)),
                                ref.status().message()));
        continue;
      }
      AppendRowKey(compiled_.primary(), ref.value(), row_keys.buffer());
      row_keys.End();
      entry_of.push_back(i);
    }
    std::vector<std::string_view> views;
    for (size_t i = 0; i < row_keys.size(); ++i) views.push_back(row_keys[i]);
    std::vector<uint8_t> found;
    CELLAR_TRY(context_->MultiGet(views, &pins_, &found));
    std::vector<std::string_view> keys, values;
    std::vector<size_t> entries;
    for (size_t i = 0; i < views.size(); ++i) {
      if (!found[i]) {
        Find(index,
             fmt::format("entry without a row, key {}", codec::PrintKey(block.key(entry_of[i]))));
        continue;
      }
      keys.push_back(views[i]);
      values.push_back(pins_[i].view());
      entries.push_back(entry_of[i]);
    }
    std::vector<uint32_t> places;
    CELLAR_TRY(DecodeRows(keys, values, &places));
    std::string key;
    for (size_t row = 0; row < batch_.size(); ++row) {
      const size_t entry = entries[places[row]];
      key.clear();
      index.AppendKey(batch_, row, RefOf(row), &key);
      if (key == block.key(entry)) continue;  // its value was compared from the row's side
      Find(index, fmt::format("entry {} is not that of its row ({})",
                              codec::PrintKey(block.key(entry)), Describe(RefOf(row))));
    }
    return Status();
  }

  // Keys of the table that no index owns, but for those that are being built or removed.
  Status CheckStrangeIndexes() {
    std::map<std::string, std::string> owned;  // start to end of each index
    for (const IndexCodec& index : compiled_.indexes()) {
      const uint32_t width = index.primary ? codec::kIndexIdsOfPrimary : 1;
      const IndexId last{index.index->id.value + width - 1};
      owned[index.prefix] = codec::PrefixEnd(codec::TablePrefix(compiled_.table().id, last));
    }
    codec::KeyRange gap = codec::PrefixRange(codec::TablePrefix(compiled_.table().id));
    const std::string end = gap.end;
    for (const auto& [start, stop] : owned) {
      gap.end = start;
      CELLAR_TRY(CheckGap(gap));
      gap.start = stop;
    }
    gap.end = end;
    return CheckGap(gap);
  }

  Status CheckGap(const codec::KeyRange& gap) {
    if (gap.start >= gap.end) return Status();
    kv::ScanOptions options;
    options.mode = kv::ReadMode::kSnapshot;
    options.keys_only = true;
    options.limit = 1;
    CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                      context_->transaction->Scan(gap.start, gap.end, options));
    kv::Block block;
    CELLAR_TRY_ASSIGN(bool any, cursor->NextBlock(&block));
    if (any) {
      Find(compiled_.primary(),
           fmt::format("keys of no index, the first is {}", codec::PrintKey(block.key(0))));
    }
    return Status();
  }

  static std::string Describe(std::string_view ref) {
    Result<codec::DecodedKey> fields = codec::DecodeKeyFields(ref);
    if (!fields.ok()) return "?";
    std::string out;
    for (const codec::DecodedField& field : fields.value().fields) {
      if (!out.empty()) out += ", ";
      out += field.value;
    }
    return out;
  }

  const CompiledTable& compiled_;
  AccessContext* context_;
  std::vector<CheckFinding>* findings_;
  std::shared_ptr<const ScanCodec> whole_;
  uint64_t rows_ = 0;
  std::map<std::string, uint64_t> found_;  // findings by index
  RowBatch batch_;
  std::vector<kv::PinnedValue> pins_;
  std::vector<Datum> datums_;
};

}  // namespace

Status CheckTable(const TablePtr& table, kv::Transaction* transaction, uint64_t* rows,
                  std::vector<CheckFinding>* findings) {
  CELLAR_TRY_ASSIGN(const CompiledTable* compiled, CompiledTable::Of(*table));
  AccessContext context;
  context.transaction = transaction;
  context.mode = kv::ReadMode::kSnapshot;
  return Checker(*compiled, &context, findings).Run(rows);
}

}  // namespace cellar::table
