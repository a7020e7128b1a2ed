#include "cellar/catalog/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cellar/codec/key.h"
#include "cellar/codec/row.h"
#include "cellar/types/numeric.h"

namespace cellar::catalog {
namespace {

constexpr uint8_t kVersion = 1;
// One value's share of a range does not count where values are as many as rows.
constexpr double kManyRows = 1e15;

// Where a value lies on a line, for interpolation; NaN when its type has no such place.
double PlaceOf(Datum value, Type type) {
  if (type.array) return NAN;
  switch (PhysicalOf(type)) {
    case Physical::kInt64: return static_cast<double>(value.int_value());
    case Physical::kDouble: return value.double_value();
    case Physical::kBytes: break;
  }
  if (type.id == TypeId::kNumeric) return numeric::ToDoubleApproximate(value.bytes());
  return NAN;
}

void AppendU32(uint32_t value, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8) out->push_back(static_cast<char>(value >> shift));
}
void AppendU64(uint64_t value, std::string* out) {
  for (int shift = 0; shift < 64; shift += 8) out->push_back(static_cast<char>(value >> shift));
}
void AppendDouble(double value, std::string* out) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  AppendU64(bits, out);
}
void AppendValue(const Value& value, std::string* out) {
  std::string cell;
  codec::AppendCell(value.datum(), value.type(), &cell);
  AppendU32(static_cast<uint32_t>(cell.size()), out);
  *out += cell;
}

// Reads what was appended; after a short read everything is 0 and ok() false.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool done() const { return bytes_.empty(); }
  std::string_view Take(size_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return out;
  }
  uint64_t Number(size_t size) {
    uint64_t value = 0;
    const std::string_view bytes = Take(size);
    for (size_t i = 0; i < bytes.size(); ++i) {
      value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    }
    return value;
  }
  double Double() {
    const uint64_t bits = Number(8);
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

// The least text above all that begin with `prefix`; empty: there is none.
std::string EndOfPrefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<uint8_t>(end.back()) == 0xFF) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<uint8_t>(end.back()) + 1);
  return end;
}

// Share of the histogram's rows below `value`.
double ShareBelow(const ColumnStatistics& column, Datum value) {
  const std::vector<Value>& bounds = column.bounds;
  if (bounds.size() < 2) return 0.5;
  const auto above =
      std::lower_bound(bounds.begin(), bounds.end(), value, [&](const Value& bound, Datum wanted) {
        return CompareDatums(bound.datum(), wanted, column.type) < 0;
      });
  if (above == bounds.begin()) return 0;
  if (above == bounds.end()) return 1;
  double inside = 0.5;
  const double low = PlaceOf((above - 1)->datum(), column.type);
  const double high = PlaceOf(above->datum(), column.type);
  const double place = PlaceOf(value, column.type);
  if (std::isfinite(low) && std::isfinite(high) && std::isfinite(place) && high > low) {
    inside = std::clamp((place - low) / (high - low), 0.0, 1.0);
  }
  return (static_cast<double>(above - bounds.begin() - 1) + inside) /
         static_cast<double>(bounds.size() - 1);
}

}  // namespace

double ColumnStatistics::DistinctAmong(double rows) const {
  const double values = distinct < 0 ? -distinct * rows : distinct;
  return std::max(1.0, std::min(values, rows));
}

double ColumnStatistics::RestFraction() const {
  double rest = 1 - null_fraction;
  for (const double frequency : frequencies) rest -= frequency;
  return std::max(0.0, rest);
}

double ColumnStatistics::FractionEqual(Datum value, double rows) const {
  for (size_t i = 0; i < common.size(); ++i) {
    if (CompareDatums(common[i].datum(), value, type) == 0) return frequencies[i];
  }
  return RestFraction() / std::max(1.0, DistinctAmong(rows) - static_cast<double>(common.size()));
}

double ColumnStatistics::FractionBelow(Datum value, bool inclusive) const {
  double out = 0;
  bool known = false;
  for (size_t i = 0; i < common.size(); ++i) {
    const int order = CompareDatums(common[i].datum(), value, type);
    known = known || order == 0;
    if (order < 0 || (order == 0 && inclusive)) out += frequencies[i];
  }
  out += RestFraction() * ShareBelow(*this, value);
  if (inclusive && !known) out += FractionEqual(value, kManyRows);
  return std::clamp(out, 0.0, std::max(0.0, 1 - null_fraction));
}

double ColumnStatistics::FractionWithPrefix(std::string_view prefix) const {
  double out = 0;
  for (size_t i = 0; i < common.size(); ++i) {
    if (common[i].datum().bytes().starts_with(prefix)) out += frequencies[i];
  }
  const std::string end = EndOfPrefix(prefix);
  const double upper = end.empty() ? 1 : ShareBelow(*this, Datum::Bytes(end));
  return out + RestFraction() * std::max(0.0, upper - ShareBelow(*this, Datum::Bytes(prefix)));
}

const ColumnStatistics* TableStatistics::Find(ColumnId column) const {
  for (const ColumnStatistics& one : columns) {
    if (one.column == column) return &one;
  }
  return nullptr;
}

std::string StatisticsKey(const TableDescriptor& table) {
  return codec::SystemKey("stats", {table.storage_id().value});
}

std::string EncodeStatistics(const TableStatistics& statistics) {
  std::string out(1, static_cast<char>(kVersion));
  AppendDouble(statistics.rows, &out);
  AppendU64(static_cast<uint64_t>(statistics.changes), &out);
  AppendU64(static_cast<uint64_t>(statistics.gathered_micros), &out);
  out.push_back(statistics.automatic ? 1 : 0);
  AppendU32(static_cast<uint32_t>(statistics.columns.size()), &out);
  for (const ColumnStatistics& column : statistics.columns) {
    AppendU32(column.column.value, &out);
    AppendU32(static_cast<uint32_t>(column.type.id) | (column.type.array ? 1U << 31 : 0), &out);
    AppendDouble(column.null_fraction, &out);
    AppendDouble(column.average_width, &out);
    AppendDouble(column.distinct, &out);
    AppendU32(static_cast<uint32_t>(column.common.size()), &out);
    for (size_t i = 0; i < column.common.size(); ++i) {
      AppendDouble(column.frequencies[i], &out);
      AppendValue(column.common[i], &out);
    }
    AppendU32(static_cast<uint32_t>(column.bounds.size()), &out);
    for (const Value& bound : column.bounds) AppendValue(bound, &out);
  }
  return out;
}

Result<TableStatistics> DecodeStatistics(const TableDescriptor& table, std::string_view bytes) {
  const auto corrupt = [&] {
    return CorruptionError("statistics of table \"{}\" do not read", table.name);
  };
  Input input(bytes);
  if (input.Number(1) != kVersion) return corrupt();
  TableStatistics out;
  out.rows = input.Double();
  out.changes = static_cast<int64_t>(input.Number(8));
  out.gathered_micros = static_cast<int64_t>(input.Number(8));
  out.automatic = input.Number(1) != 0;
  const uint64_t columns = input.Number(4);
  for (uint64_t c = 0; c < columns && input.ok(); ++c) {
    ColumnStatistics column;
    column.column.value = static_cast<uint32_t>(input.Number(4));
    const uint64_t type = input.Number(4);
    const auto same = [&](const ColumnDescriptor& candidate) {
      return candidate.id == column.column && (static_cast<uint32_t>(candidate.type.id) |
                                               (candidate.type.array ? 1U << 31 : 0)) == type;
    };
    const auto at = std::find_if(table.columns.begin(), table.columns.end(), same);
    const bool wanted = at != table.columns.end();
    if (wanted) column.type = at->type;
    column.null_fraction = input.Double();
    column.average_width = input.Double();
    column.distinct = input.Double();
    const auto read_value = [&](std::vector<Value>* values) -> Status {
      const std::string_view cell = input.Take(input.Number(4));
      if (!input.ok()) return corrupt();
      if (!wanted) return Status();
      CELLAR_TRY_ASSIGN(const Datum value, codec::ParseCell(cell, column.type));
      if (value.is_null()) return corrupt();
      values->emplace_back(column.type, value);
      return Status();
    };
    const uint64_t common = input.Number(4);
    for (uint64_t i = 0; i < common && input.ok(); ++i) {
      column.frequencies.push_back(input.Double());
      CELLAR_TRY(read_value(&column.common));
    }
    const uint64_t bounds = input.Number(4);
    for (uint64_t i = 0; i < bounds && input.ok(); ++i) CELLAR_TRY(read_value(&column.bounds));
    if (wanted) out.columns.push_back(std::move(column));
  }
  if (!input.ok() || !input.done()) return corrupt();
  return out;
}

}  // namespace cellar::catalog
