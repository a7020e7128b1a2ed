#include "cellar/table/index_builder.h"

#include <algorithm>

#include "cellar/table/errors.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

constexpr size_t kRunBytes = size_t{64} << 20;
constexpr uint32_t kNowhere = UINT32_MAX;
constexpr size_t kProbedAtOnce = 1024;  // keys

}  // namespace

ScanSpec WholeTable(const TablePtr& table, const CompiledTable& compiled) {
  ScanSpec spec;
  spec.table = table;
  spec.index = compiled.primary().index->id;
  spec.spans = {Span{}};
  spec.columns.assign(compiled.living_ids().begin(), compiled.living_ids().end());
  return spec;
}

// ---- EntryMaker ----

EntryMaker::EntryMaker(const CompiledTable& compiled, const IndexCodec& index, PiecePool* pool)
    : compiled_(compiled),
      pool_(pool),
      index_(index),
      ref_positions_(compiled.primary().key_positions) {
  const size_t living = compiled.living().size();
  std::vector<uint32_t> places(compiled.types().size(), kNowhere);
  for (const std::vector<uint32_t>* positions : {&index_.all_positions, &ref_positions_}) {
    for (const uint32_t position : *positions) {
      places[position] = 0;
      whole_rows_ |= position >= living;
    }
  }
  if (whole_rows_) {
    columns_.assign(compiled.living_ids().begin(), compiled.living_ids().end());
    return;
  }
  for (size_t position = 0; position < living; ++position) {
    if (places[position] == kNowhere) continue;
    places[position] = static_cast<uint32_t>(columns_.size());
    columns_.push_back(compiled.living_ids()[position]);
  }
  for (std::vector<uint32_t>* positions :
       {&index_.key_positions, &index_.rest_positions, &index_.entry_positions,
        &index_.all_positions, &ref_positions_}) {
    for (uint32_t& position : *positions) position = places[position];
  }
}

ScanSpec EntryMaker::Scan(const TablePtr& table) const {
  ScanSpec spec = WholeTable(table, compiled_);
  spec.columns = columns_;
  return spec;
}

void EntryMaker::AppendRef(const RowBatch& scanned, size_t row, std::string* ref) const {
  codec::AppendKeyFields(scanned, row, ref_positions_, compiled_.primary().key_columns, ref);
}

Status EntryMaker::Add(const RowBatch& scanned) {
  if (whole_rows_) {
    CELLAR_TRY(indexed_.Compute(compiled_, scanned));
  }
  const RowBatch& rows = whole_rows_ ? indexed_.rows() : scanned;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!index_.Holds(rows, row)) continue;
    ref_.clear();
    key_.clear();
    value_.clear();
    AppendRef(rows, row, &ref_);
    index_.AppendKey(rows, row, ref_, &key_);
    CELLAR_TRY(index_.AppendValue(rows, row, ref_, &scratch_, &value_));
    const bool asks = index_.unique && !index_.EscapesUniqueness(rows, row);
    sorter_.Add(std::string_view(key_).substr(index_.prefix.size()), value_, asks);
    if (sorter_.full()) pool_->Add(sorter_.Take());
  }
  return Status();
}

void EntryMaker::Finish() {
  if (!sorter_.empty()) pool_->Add(sorter_.Take());
}

// ---- IndexBuilder ----

IndexBuilder::IndexBuilder(AccessContext* context, const CompiledTable& compiled,
                           const IndexCodec& index, Write write)
    : context_(context),
      compiled_(compiled),
      index_(index),
      write_(write),
      pool_(kRunBytes),
      maker_(compiled, index, &pool_) {}

Status IndexBuilder::Add(const RowBatch& scanned) {
  CELLAR_TRY(maker_.Add(scanned));
  return pool_.full() ? FlushPool() : Status();
}

Status IndexBuilder::Flush() {
  maker_.Finish();
  return FlushPool();
}

Status IndexBuilder::FlushPool() {
  std::vector<SortedPiece> pieces = pool_.TakeAll();
  if (index_.unique && write_ == Write::kPut) CELLAR_TRY(CheckAbsent(pieces));
  CELLAR_TRY(WriteAll(pieces));
  pool_.Release(std::move(pieces));
  return Status();
}

// In key order: a transaction may then write it straight to a file.
Status IndexBuilder::WriteAll(std::span<const SortedPiece> pieces) {
  PieceMerge merge(pieces);
  std::string key = index_.prefix;
  std::string_view last;
  while (merge.Next()) {
    key.resize(index_.prefix.size());
    key.append(merge.key());
    if (merge.asks() && merge.key() == last) return Duplicate(key);
    last = merge.key();
    ++entries_;
    if (!merge.asks() || write_ == Write::kPut) {
      CELLAR_TRY(context_->transaction->Put(key, merge.value()));
      continue;
    }
    Status status = context_->transaction->PutIfAbsent(key, merge.value());
    if (status.code() == Code::kConstraint) {
      const std::string_view known = context_->transaction->duplicate_key();
      return Duplicate(known.starts_with(index_.prefix) ? known : key);
    }
    CELLAR_TRY(std::move(status));
  }
  return Status();
}

// Against what there was before, and earlier runs, which are among the transaction's own writes.
Status IndexBuilder::CheckAbsent(std::span<const SortedPiece> pieces) {
  PieceMerge merge(pieces);
  StringList names;
  std::vector<std::string_view> probes;
  std::vector<kv::PinnedValue> values;
  std::vector<uint8_t> found;
  for (bool more = true; more;) {
    names.Clear();
    probes.clear();
    while (names.size() < kProbedAtOnce && (more = merge.Next())) {
      if (!merge.asks()) continue;
      names.buffer()->append(index_.prefix).append(merge.key());
      names.End();
    }
    for (size_t i = 0; i < names.size(); ++i) probes.push_back(names[i]);
    CELLAR_TRY(context_->MultiGet(probes, nullptr, &values, &found));
    const auto at = std::find(found.begin(), found.end(), 1);
    if (at != found.end()) return Duplicate(probes[static_cast<size_t>(at - found.begin())]);
  }
  return Status();
}

Status IndexBuilder::Duplicate(std::string_view key) const {
  return DuplicateKey(compiled_, index_, key, context_->format, DuplicateCause::kIndexBuild);
}

}  // namespace cellar::table
