// The tables that every store of the comparison holds: ten columns, or these five times over, made
// from the row's number alone, so that all hold the same.
#pragma once

#include <cstdint>
#include <string>

namespace cellar::bench {

// id bigint, the primary key, from 0 · k integer, a permutation of the ids, for the secondary index
// · at timestamp (microseconds since 2000), rising with the id · price double with two decimals
// below 100,000 · name text of 8-24 characters · kind text, one of 6 · qty integer below 100 · flag
// boolean · note text of 20-44 characters · code bigint of 40 bits, one in ten NULL.
struct Row {
  int64_t id = 0;
  int32_t k = 0;
  int64_t at = 0;
  double price = 0;
  std::string name, kind;
  int32_t qty = 0;
  bool flag = false;
  std::string note;
  bool has_code = true;
  int64_t code = 0;
};

inline constexpr int kColumns = 10, kKinds = 6;

// A table; its columns are those of Row, then id_2, k_2 and so on for each further copy, which
// holds another row.
struct Shape {
  std::string table;
  int64_t rows = 0;
  int copies = 1;
};

enum class Dialect : uint8_t { kPostgres, kSqlite, kDuckDb };

// The statements of all stores, which differ in the types of columns and in DuckDB's having no
// keys.
struct Sql {
  std::string create_table, create_index, by_id, by_k, range, sum, count, count_filtered, q6,
      group_by, scan, insert, update;
};
Sql MakeSql(const Shape& shape, Dialect dialect);

// The row of this id, in a table of `rows` rows. Ids beyond `rows` are rows to insert; their k lies
// beyond those of the table.
Row MakeRow(int64_t id, int64_t rows);
// The k of a row; the ids below `rows` map to all numbers below `rows`, scattered.
int32_t KOf(int64_t id, int64_t rows);

// The row's values in PostgreSQL's CSV format, without the end of the line. Nothing needs quotes.
void AppendCsv(const Row& row, std::string* out);
void WriteCsv(const Shape& shape, const std::string& path);
std::string ReadFile(const std::string& path);
// Microseconds since 2000 of a text that AppendCsv made.
int64_t ParseTimestamp(const char* text);

// xorshift; the same sequence for the same seed on every store.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x123456789ABCDEFu) {}
  uint64_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(bound));
  }

 private:
  uint64_t state_;
};

}  // namespace cellar::bench
