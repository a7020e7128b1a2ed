// The rows that every store of the comparison holds: ten columns, made from their number alone, so
// that no store reads files and all hold the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cellar::bench {

// id bigint, the primary key, from 0 · k integer, a permutation of the ids, for the secondary index
// · at timestamp (microseconds since 2000) · price double with two decimals · name text of 8-24
// characters · kind text, one of 20 · qty integer below 100 · flag boolean · note text of 20-44
// characters · code bigint of 40 bits, one in ten NULL.
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

inline constexpr const char* kCreateTable =
    "CREATE TABLE rows (id bigint PRIMARY KEY, k integer NOT NULL, at timestamp NOT NULL, "
    "price double precision NOT NULL, name text NOT NULL, kind text NOT NULL, "
    "qty integer NOT NULL, flag boolean NOT NULL, note text NOT NULL, code bigint)";
inline constexpr const char* kCreateIndex = "CREATE INDEX rows_k ON rows (k)";

// The row of this id, in a table of `rows` rows. Ids beyond `rows` are rows to insert; their k lies
// beyond those of the table.
Row MakeRow(int64_t id, int64_t rows);
std::vector<Row> MakeRows(int64_t rows);
// The k of a row; the ids below `rows` map to all numbers below `rows`, scattered.
int32_t KOf(int64_t id, int64_t rows);

// Appends the row as a line of COPY's text format.
void AppendCopyLine(const Row& row, std::string* out);
// The rows as pieces of COPY text, about a mebibyte each.
std::vector<std::string> CopyText(const std::vector<Row>& rows);

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
