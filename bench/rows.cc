// Rows by number.
#include "bench/rows.h"

#include <fmt/format.h>

#include <iterator>
#include <numeric>

namespace cellar::bench {
namespace {

constexpr int64_t kMicrosPerDay = 86400000000;
constexpr const char* kKinds[] = {"standard", "express",  "economy", "fragile",    "bulk",
                                  "gift",     "sample",   "return",  "exchange",   "repair",
                                  "rental",   "digital",  "hazard",  "perishable", "oversize",
                                  "document", "priority", "transit", "customs",    "archive"};

std::string Letters(Random* random, size_t length) {
  std::string text(length, ' ');
  uint64_t bits = 0;
  for (size_t i = 0; i < length; ++i) {
    if (i % 12 == 0) bits = random->Next();
    text[i] = static_cast<char>('a' + bits % 26);
    bits /= 26;
  }
  return text;
}

}  // namespace

int32_t KOf(int64_t id, int64_t rows) {
  if (id >= rows) return static_cast<int32_t>(id);
  // A multiplier without a common divisor makes it a permutation.
  int64_t multiplier = 1640531;
  while (std::gcd(multiplier, rows) != 1) ++multiplier;
  return static_cast<int32_t>((id * multiplier + 12345) % rows);
}

Row MakeRow(int64_t id, int64_t rows) {
  Random random(static_cast<uint64_t>(id) + 1);
  random.Next();
  Row row;
  row.id = id;
  row.k = KOf(id, rows);
  row.at = 8000 * kMicrosPerDay + id * 1000000 + random.Below(1000000);
  row.price = static_cast<double>(random.Below(10000000)) / 100;
  row.name = Letters(&random, static_cast<size_t>(8 + random.Below(17)));
  row.kind = kKinds[random.Below(static_cast<int64_t>(std::size(kKinds)))];
  row.qty = static_cast<int32_t>(random.Below(100));
  row.flag = random.Below(2) == 1;
  row.note = Letters(&random, static_cast<size_t>(20 + random.Below(25)));
  row.has_code = random.Below(10) != 0;
  row.code = random.Below(int64_t{1} << 40);
  return row;
}

std::vector<Row> MakeRows(int64_t rows) {
  std::vector<Row> made;
  made.reserve(static_cast<size_t>(rows));
  for (int64_t id = 0; id < rows; ++id) made.push_back(MakeRow(id, rows));
  return made;
}

void AppendCopyLine(const Row& row, std::string* out) {
  // Days since 2000-01-01 to a date: the civil calendar, counted from March.
  const int64_t days = row.at / kMicrosPerDay + 730425;
  const int64_t era = days / 146097, of_era = days % 146097;
  const int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
  const int64_t shifted = (5 * of_year + 2) / 153;
  const int64_t day = of_year - (153 * shifted + 2) / 5 + 1;
  const int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  const int64_t year = years + era * 400 + (month <= 2 ? 1 : 0);
  const int64_t micros = row.at % kMicrosPerDay;
  fmt::format_to(std::back_inserter(*out),
                 "{}\t{}\t{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}\t{:.2f}\t{}\t{}\t{}\t{}\t{}\t",
                 row.id, row.k, year, month, day, micros / 3600000000, micros / 60000000 % 60,
                 micros / 1000000 % 60, micros % 1000000, row.price, row.name, row.kind, row.qty,
                 row.flag ? 't' : 'f', row.note);
  if (row.has_code)
    fmt::format_to(std::back_inserter(*out), "{}\n", row.code);
  else
    *out += "\\N\n";
}

std::vector<std::string> CopyText(const std::vector<Row>& rows) {
  constexpr size_t kPieceBytes = 1 << 20;
  std::vector<std::string> pieces(1);
  for (const Row& row : rows) {
    if (pieces.back().size() > kPieceBytes) pieces.emplace_back();
    AppendCopyLine(row, &pieces.back());
  }
  return pieces;
}

}  // namespace cellar::bench
