#include "cellar/table/index_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "cellar/table/errors.h"
#include "cellar/table/writer.h"

namespace cellar::table {
namespace {

constexpr size_t kRunBytes = size_t{64} << 20;
constexpr size_t kManyEntries = 1 << 14;
constexpr int kBucketBits = 12;
constexpr size_t kFetchAhead = 16;  // entries, whose bytes lie in the order of their rows
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

IndexBuilder::IndexBuilder(AccessContext* context, const CompiledTable& compiled,
                           const IndexCodec& index, Write write)
    : context_(context),
      compiled_(compiled),
      write_(write),
      whole_index_(index),
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

ScanSpec IndexBuilder::Scan(const TablePtr& table) const {
  ScanSpec spec = WholeTable(table, compiled_);
  spec.columns = columns_;
  return spec;
}

void IndexBuilder::AppendRef(const RowBatch& scanned, size_t row, std::string* ref) const {
  codec::AppendKeyFields(scanned, row, ref_positions_, compiled_.primary().key_columns, ref);
}

Status IndexBuilder::Add(const RowBatch& scanned) {
  if (whole_rows_) {
    CELLAR_TRY(indexed_.Compute(compiled_, scanned));
  }
  const RowBatch& rows = whole_rows_ ? indexed_.rows() : scanned;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!index_.Holds(rows, row)) continue;
    ref_.clear();
    AppendRef(rows, row, &ref_);
    entry_.assign(sizeof(Header), '\0');
    index_.AppendKey(rows, row, ref_, &entry_);
    Header header = {};
    header.key_bytes = static_cast<uint32_t>(entry_.size() - sizeof(Header));
    header.asks = index_.unique && !index_.EscapesUniqueness(rows, row);
    CELLAR_TRY(index_.AppendValue(rows, row, ref_, &scratch_, &entry_));
    header.value_bytes = static_cast<uint32_t>(entry_.size() - sizeof(Header)) - header.key_bytes;
    std::memcpy(entry_.data(), &header, sizeof(Header));
    Entry entry;
    entry.bytes = arena_.Copy(entry_).data();
    const std::string_view key = KeyOf(entry).substr(index_.prefix.size());
    entry.order = 0;
    for (size_t i = 0; i < sizeof entry.order; ++i) {
      entry.order = entry.order << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
    }
    // What it grows to will not be copied, and what is not used costs nothing.
    if (run_.size() == kManyEntries) {
      run_.reserve(kRunBytes / (sizeof(Entry) + arena_.footprint_bytes() / kManyEntries));
    }
    run_.push_back(entry);
    if (arena_.footprint_bytes() + run_.size() * sizeof(Entry) >= kRunBytes) CELLAR_TRY(Flush());
  }
  return Status();
}

IndexBuilder::Header IndexBuilder::HeaderOf(const Entry& entry) {
  Header header;
  std::memcpy(&header, entry.bytes, sizeof(Header));
  return header;
}

std::string_view IndexBuilder::KeyOf(const Entry& entry) {
  return {entry.bytes + sizeof(Header), HeaderOf(entry).key_bytes};
}

// The highest bits that differ part many entries into buckets that fit into the cache.
void IndexBuilder::Sort() {
  const auto before = [](const Entry& a, const Entry& b) { return Before(a, b); };
  if (std::is_sorted(run_.begin(), run_.end(), before)) return;
  if (run_.size() < kManyEntries) {
    std::sort(run_.begin(), run_.end(), before);
    return;
  }
  uint64_t differing = 0;
  for (const Entry& entry : run_) differing |= entry.order ^ run_.front().order;
  const int shift = std::max(0, static_cast<int>(std::bit_width(differing)) - kBucketBits);
  const auto bucket_of = [shift](const Entry& entry) {
    return entry.order >> shift & ((size_t{1} << kBucketBits) - 1);
  };
  std::vector<size_t> ends((size_t{1} << kBucketBits) + 1, 0);
  for (const Entry& entry : run_) ++ends[bucket_of(entry) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Entry> sorted(run_.size());
  for (const Entry& entry : run_) sorted[ends[bucket_of(entry)]++] = entry;
  // Each end is now where it says.
  size_t start = 0;
  for (const size_t end : ends) {
    std::sort(sorted.begin() + static_cast<ptrdiff_t>(start),
              sorted.begin() + static_cast<ptrdiff_t>(end), before);
    start = end;
  }
  run_ = std::move(sorted);
}

// In key order: a transaction may then write it straight to a file.
Status IndexBuilder::Flush() {
  Sort();
  if (index_.unique) CELLAR_TRY(CheckUnique());
  for (size_t i = 0; i < run_.size(); ++i) {
    if (i + kFetchAhead < run_.size()) __builtin_prefetch(run_[i + kFetchAhead].bytes);
    const Header header = HeaderOf(run_[i]);
    const std::string_view key = KeyOf(run_[i]);
    const std::string_view value(key.data() + key.size(), header.value_bytes);
    if (!header.asks || write_ == Write::kPut) {
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
  arena_ = Arena();
  return Status();
}

// Within the run, and with kPut against everything else. Earlier runs are among the transaction's
// own writes.
Status IndexBuilder::CheckUnique() {
  for (size_t i = 1; i < run_.size(); ++i) {
    if (!HeaderOf(run_[i]).asks || run_[i].order != run_[i - 1].order) continue;
    if (KeyOf(run_[i]) == KeyOf(run_[i - 1])) {
      return Duplicate(KeyOf(run_[i]));
    }
  }
  if (write_ == Write::kPutIfAbsent) return Status();
  std::vector<std::string_view> probes;
  std::vector<kv::PinnedValue> values;
  std::vector<uint8_t> found;
  for (size_t next = 0; next < run_.size();) {
    probes.clear();
    for (; next < run_.size() && probes.size() < kProbedAtOnce; ++next) {
      if (HeaderOf(run_[next]).asks) probes.push_back(KeyOf(run_[next]));
    }
    CELLAR_TRY(context_->MultiGet(probes, &values, &found));
    const auto at = std::find(found.begin(), found.end(), 1);
    if (at != found.end()) return Duplicate(probes[static_cast<size_t>(at - found.begin())]);
  }
  return Status();
}

Status IndexBuilder::Duplicate(std::string_view key) const {
  return DuplicateKey(compiled_, whole_index_, key, context_->format, DuplicateCause::kIndexBuild);
}

}  // namespace cellar::table
