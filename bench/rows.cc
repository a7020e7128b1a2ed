// Rows by number, and the statements over their tables.
#include "bench/rows.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>

#include "bench/store.h"

namespace cellar::bench {
namespace {

constexpr int64_t kMicrosPerDay = 86400000000;
// Days from March 1, 0000 to January 1, 2000.
constexpr int64_t kDaysTo2000 = 730425;
constexpr int64_t kFirstDay = 8000;
constexpr const char* kKindNames[kKinds] = {"standard", "express", "economy",
                                            "fragile",  "return",  "perishable"};

struct Column {
  const char *name, *type, *sqlite_type;
};
constexpr Column kTheColumns[kColumns] = {
    {"id", "bigint", "INTEGER"},    {"k", "integer", "INTEGER"},
    {"at", "timestamp", "INTEGER"}, {"price", "double precision", "REAL"},
    {"name", "text", "TEXT"},       {"kind", "text", "TEXT"},
    {"qty", "integer", "INTEGER"},  {"flag", "boolean", "INTEGER"},
    {"note", "text", "TEXT"},       {"code", "bigint", "INTEGER"},
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

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

void AppendTimestamp(int64_t at, std::string* out) {
  // Days since 2000-01-01 to a date: the civil calendar, counted from March.
  const int64_t days = at / kMicrosPerDay + kDaysTo2000;
  const int64_t era = days / 146097, of_era = days % 146097;
  const int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
  const int64_t shifted = (5 * of_year + 2) / 153;
  const int64_t day = of_year - (153 * shifted + 2) / 5 + 1;
  const int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  const int64_t year = years + era * 400 + (month <= 2 ? 1 : 0);
  const int64_t micros = at % kMicrosPerDay;
  fmt::format_to(std::back_inserter(*out), "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", year, month,
                 day, micros / 3600000000, micros / 60000000 % 60, micros / 1000000 % 60,
                 micros % 1000000);
}

std::string TimeLiteral(int64_t at, Dialect dialect) {
  if (dialect == Dialect::kSqlite) return fmt::format("{}", at);
  std::string text = "TIMESTAMP '";
  AppendTimestamp(at, &text);
  return text + "'";
}

}  // namespace

Sql MakeSql(const Shape& shape, Dialect dialect) {
  Sql sql;
  std::string columns, places;  // quoted, since "at" means something to DuckDB
  for (int i = 0; i < shape.copies * kColumns; ++i) {
    const Column& column = kTheColumns[i % kColumns];
    const std::string suffix = i < kColumns ? "" : fmt::format("_{}", i / kColumns + 1);
    const bool is_key = i == 0 && dialect != Dialect::kDuckDb;
    const bool nullable = i % kColumns == kColumns - 1;
    columns += fmt::format("{}\"{}{}\" {}{}", i == 0 ? "" : ", ", column.name, suffix,
                           dialect == Dialect::kSqlite ? column.sqlite_type : column.type,
                           is_key     ? " PRIMARY KEY"
                           : nullable ? ""
                                      : " NOT NULL");
    places += fmt::format("{}${}", i == 0 ? "" : ", ", i + 1);
  }
  const std::string& table = shape.table;
  sql.create_table = fmt::format("CREATE TABLE {} ({})", table, columns);
  sql.create_index = fmt::format("CREATE INDEX {0}_k ON {0} (k)", table);
  sql.by_id = fmt::format("SELECT * FROM {} WHERE id = $1", table);
  sql.by_k = fmt::format("SELECT * FROM {} WHERE k = $1", table);
  sql.range = fmt::format("SELECT * FROM {} WHERE id >= $1 AND id < $2", table);
  sql.sum = fmt::format("SELECT sum(qty) FROM {}", table);
  sql.count = fmt::format("SELECT count(*) FROM {}", table);
  sql.count_filtered = fmt::format("SELECT count(*) FROM {} WHERE qty < 24", table);
  const int64_t start = kFirstDay * kMicrosPerDay, length = shape.rows * 1000000;
  sql.q6 = fmt::format(
      "SELECT sum(price * qty) FROM {} WHERE \"at\" >= {} AND \"at\" < {} AND qty < 24 AND "
      "price BETWEEN 20000 AND 70000",
      table, TimeLiteral(start + length / 5 * 2, dialect),
      TimeLiteral(start + length / 5 * 3, dialect));
  sql.group_by = fmt::format(
      "SELECT kind, count(*), sum(qty), avg(price), max(\"at\") FROM {} GROUP BY kind", table);
  sql.scan = fmt::format("SELECT * FROM {}", table);
  sql.insert = fmt::format("INSERT INTO {} VALUES ({})", table, places);
  sql.update = fmt::format("UPDATE {} SET qty = qty + 1 WHERE id = $1", table);
  return sql;
}

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
  row.at = kFirstDay * kMicrosPerDay + id * 1000000 + random.Below(1000000);
  row.price = static_cast<double>(random.Below(10000000)) / 100;
  row.name = Letters(&random, static_cast<size_t>(8 + random.Below(17)));
  row.kind = kKindNames[random.Below(kKinds)];
  row.qty = static_cast<int32_t>(random.Below(100));
  row.flag = random.Below(2) == 1;
  row.note = Letters(&random, static_cast<size_t>(20 + random.Below(25)));
  row.has_code = random.Below(10) != 0;
  row.code = random.Below(int64_t{1} << 40);
  return row;
}

void AppendCsv(const Row& row, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{},{},", row.id, row.k);
  AppendTimestamp(row.at, out);
  fmt::format_to(std::back_inserter(*out), ",{:.2f},{},{},{},{},{},", row.price, row.name, row.kind,
                 row.qty, row.flag ? 't' : 'f', row.note);
  if (row.has_code) fmt::format_to(std::back_inserter(*out), "{}", row.code);
}

void WriteCsv(const Shape& shape, const std::string& path) {
  constexpr size_t kPieceBytes = 1 << 20;
  const FilePtr file(std::fopen(path.c_str(), "wb"));
  std::string piece;
  const auto write = [&] {
    if (file == nullptr || std::fwrite(piece.data(), 1, piece.size(), file.get()) != piece.size())
      Die("cannot write " + path);
    piece.clear();
  };
  for (int64_t id = 0; id < shape.rows; ++id) {
    for (int copy = 0; copy < shape.copies; ++copy) {
      if (copy > 0) piece += ',';
      AppendCsv(MakeRow(id + copy * shape.rows, shape.rows), &piece);
    }
    piece += '\n';
    if (piece.size() > kPieceBytes) write();
  }
  write();
  if (std::fflush(file.get()) != 0) Die("cannot write " + path);
}

std::string ReadFile(const std::string& path) {
  const FilePtr file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) Die("cannot read " + path);
  std::string text(std::filesystem::file_size(path), '\0');
  if (std::fread(text.data(), 1, text.size(), file.get()) != text.size())
    Die("cannot read " + path);
  return text;
}

int64_t ParseTimestamp(const char* text) {
  const auto number = [text](int from, int digits) {
    int64_t value = 0;
    for (int i = from; i < from + digits; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  const int64_t month = number(5, 2), year = number(0, 4) - (month <= 2 ? 1 : 0);
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + number(8, 2) - 1;
  const int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + of_year - kDaysTo2000;
  return ((days * 24 + number(11, 2)) * 60 + number(14, 2)) * 60000000 + number(17, 2) * 1000000 +
         number(20, 6);
}

}  // namespace cellar::bench
