#include "cellar/table/index_builder.h"

#include <algorithm>

#include "cellar/table/errors.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

constexpr size_t kRunBytes = size_t{16} << 20;
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

Status IndexBuilder::Add(const RowBatch& whole_rows) {
  CELLAR_TRY(indexed_.Compute(compiled_, whole_rows));
  const RowBatch& rows = indexed_.rows();
  refs_.Clear();
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
    run_.push_back({order, place, index_.unique && !index_.EscapesUniqueness(rows, row)});
  }
  return run_bytes_.buffer()->size() < kRunBytes ? Status() : Flush();
}

// In key order: a random place in the write buffer costs several cache misses, the next one none.
Status IndexBuilder::Flush() {
  std::sort(run_.begin(), run_.end(), [this](const Entry& a, const Entry& b) {
    return a.order != b.order ? a.order < b.order : run_bytes_[a.place] < run_bytes_[b.place];
  });
  if (index_.unique) CELLAR_TRY(CheckUnique());
  for (const Entry& entry : run_) {
    const std::string_view key = run_bytes_[entry.place];
    const std::string_view value = run_bytes_[entry.place + 1];
    if (!entry.asks || write_ == Write::kPut) {
      CELLAR_TRY(context_->transaction->Put(key, value));
      continue;
    }
    Status status = context_->transaction->PutIfAbsent(key, value);
    if (status.code() == Code::kConstraint) {
      const std::string_view known = context_->transaction->duplicate_key();
      return Duplicate(known.starts_with(index_.prefix) ? known : key);
    }
    CELLAR_TRY(std::move(status));
  }
  entries_ += run_.size();
  run_.clear();
  run_bytes_.Clear();
  return Status();
}

// Within the run, and with kPut against everything else. Earlier runs are among the transaction's
// own writes.
Status IndexBuilder::CheckUnique() {
  for (size_t i = 1; i < run_.size(); ++i) {
    if (!run_[i].asks || run_[i].order != run_[i - 1].order) continue;
    if (run_bytes_[run_[i].place] == run_bytes_[run_[i - 1].place]) {
      return Duplicate(run_bytes_[run_[i].place]);
    }
  }
  if (write_ == Write::kPutIfAbsent) return Status();
  std::vector<std::string_view> probes;
  std::vector<kv::PinnedValue> values;
  std::vector<uint8_t> found;
  for (size_t next = 0; next < run_.size();) {
    probes.clear();
    for (; next < run_.size() && probes.size() < kProbedAtOnce; ++next) {
      if (run_[next].asks) probes.push_back(run_bytes_[run_[next].place]);
    }
    CELLAR_TRY(context_->MultiGet(probes, &values, &found));
    const auto at = std::find(found.begin(), found.end(), 1);
    if (at != found.end()) return Duplicate(probes[static_cast<size_t>(at - found.begin())]);
  }
  return Status();
}

Status IndexBuilder::Duplicate(std::string_view key) const {
  return DuplicateKey(compiled_, index_, key, context_->format, DuplicateCause::kIndexBuild);
}

}  // namespace cellar::table
