// Pages: many consecutive rows of a table in one value, their columns side by side and encoded.
//
// A page holds every column of one row format (key columns too) as a chunk each, in the format's
// order, and its rows in key order. Rows are found by their key in one of two ways: when the
// primary key is one ascending integer-like column, by that column's chunk; else by a key chunk,
// which holds the encoded primary keys (RowRefs) without their common prefix.
//
// A page is responsible for the keys from its own (the key under which it is stored) up to its
// fence, whether they are there or not: a reader that holds a page whose fence is not above the key
// it looks for has the wrong page.
//
// The bytes are specified in docs/formats/page.md (version 3). Changing any of them is a format
// change, not an edit. Everything that comes from disk is checked before it is used: bytes that
// make no sense are kCorruption, whatever they are.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/codec/row.h"
#include "cellar/types/batch.h"
#include "cellar/types/filter.h"

namespace cellar::codec {

inline constexpr size_t kMaxPageRows = 1024;

// How the rows of a page are found by key.
enum class PageKeys : uint8_t {
  kInt,   // by the chunk of one ascending integer-like key column
  kRefs,  // by the key chunk
};

// Persisted.
enum class ChunkEncoding : uint8_t {
  kFrame = 1,       // int64: base + unsigned code of 0, 1, 2, 4 bits or 1..8 bytes
  kSequence = 2,    // int64: base + row * step
  kDecimal = 3,     // double: integer / 10^e, exact in every bit; the integers as kFrame
  kDouble = 4,      // double: 8 bytes
  kDictionary = 5,  // bytes: at most 256 different values, a code each
  kBytes = 6,       // bytes: lengths, then the bytes
  kLetters = 7,     // bytes of at most 64 different ones: lengths, then 1 to 6 bits a byte
  kScaled = 8,      // numeric: integer / 10^scale, shown with that scale; the integers as kFrame
};

// Does a chunk hold rows that pass a filter, as far as its header tells?
enum class Verdict : uint8_t { kNone, kSome, kAll };

// One column of a page, borrowed from the page's bytes. Cheap to copy: two cache lines.
class alignas(64) Chunk {
 public:
  Chunk() = default;
  // Checks everything that the other calls rely on, in time independent of the rows where the
  // encoding allows it. Errors: kCorruption, also when the chunk is of another physical form than
  // `type`. Values of numerics and arrays are checked when they are read.
  static Status Parse(std::string_view bytes, uint32_t rows, Type type, Chunk* out);

  // Was it parsed without an error, as of this type?
  bool IsOf(const Type& type) const { return rows_ != 0 && type_.SameKind(type); }
  ChunkEncoding encoding() const { return encoding_; }
  uint32_t rows() const { return rows_; }
  uint32_t null_count() const { return null_count_; }
  size_t size_bytes() const { return size_; }
  // Least and greatest values that are not NULL, of int64, double (NaN greatest) and kScaled
  // chunks; bytes live in the arena. False when they are not known.
  bool Bounds(Arena* arena, Datum* least, Datum* greatest) const;
  // Of kDictionary: the number of entries; else 0.
  uint32_t dictionary_size() const {
    return encoding_ == ChunkEncoding::kDictionary ? entries_ : 0;
  }
  // One or two words for people, as "frame, 2 bytes", "dictionary of 20".
  std::string Describe() const;

  // Writes rows [first, first + count) of the chunk to rows at.. of `column`, which has that size
  // and the chunk's physical form. Bytes are borrowed from the page, or, if borrows_page() is
  // false, from the arena. When the column is kBytes, at == 0, count is the column's whole size and
  // the encoding is kDictionary, or kScaled with no more possible values than rows, the column gets
  // its dictionary too (ColumnVector::SetDictionary).
  // Cost: 0.2-0.5 ns a value for narrow frames, about 1 ns for bytes; letters 0.05 ns each.
  Status Decode(uint32_t first, uint32_t count, size_t at, ColumnVector* column,
                Arena* arena) const;
  // The same for single rows, ascending.
  Status Gather(std::span<const uint32_t> rows, size_t at, ColumnVector* column,
                Arena* arena) const;
  // One value, borrowed in the same way. `row` < rows().
  Result<Datum> Get(uint32_t row, Arena* arena) const;
  // Do values point into the page?
  bool borrows_page() const {
    return encoding_ != ChunkEncoding::kLetters && encoding_ != ChunkEncoding::kScaled;
  }

  // Starts loading what Gather and Get need of a row: reading several columns of one row, the
  // misses of all of them are then waited for together.
  void PrefetchRow(uint32_t row) const {
    if (codes_ != nullptr) __builtin_prefetch(codes_ + size_t{row} * code_bits_ / 8);
    if (nulls_ != nullptr) __builtin_prefetch(nulls_ + row / 8);
    if (offsets_ == nullptr) return;
    const bool dictionary = encoding_ == ChunkEncoding::kDictionary;
    __builtin_prefetch(offsets_ + (dictionary ? 0 : size_t{row} / 16));
  }
  // The next step, for chunks of bytes, once what PrefetchRow asked for is there.
  void PrefetchBytes(uint32_t row) const;
  // By the header alone (and the dictionary).
  Verdict Judge(const ValueFilter& filter) const;
  // Clears mask[i] for rows first + i, i < count, that do not pass; on codes where possible.
  Status Filter(const ValueFilter& filter, uint32_t first, uint32_t count, uint8_t* mask) const;
  // The first row in [0, rows()] whose value is not less than `value`; for the kInt key chunk,
  // whose rows ascend and are not NULL.
  uint32_t LowerBound(int64_t value) const;

 private:
  std::string_view Entry(uint32_t code) const;
  uint32_t Anchor(uint32_t block) const;
  bool FindBytes(uint32_t row, uint64_t* at, uint64_t* size) const;
  bool IsNull(uint32_t row) const;
  int64_t IntAt(uint32_t row) const;
  double DoubleAt(uint32_t row) const;
  const char* ParseInts(std::string_view payload);
  const char* ParseDoubles(std::string_view payload);
  const char* ParseDictionary(std::string_view payload);
  const char* ParseBytes(std::string_view payload);
  const char* ParseLetters(std::string_view payload);
  // Bytes [at, at + size) of all values' bytes, which are there.
  const char* Text(uint64_t at, uint64_t size, Arena* arena) const;
  void DecodeNulls(uint32_t first, uint32_t count, uint8_t* out) const;
  const char* DecodeDictionary(uint32_t first, uint32_t count, size_t at,
                               ColumnVector* column) const;
  const char* DecodeBytes(uint32_t first, uint32_t count, std::string_view* out,
                          Arena* arena) const;
  void DecodeScaled(uint32_t first, uint32_t count, size_t at, ColumnVector* column,
                    Arena* arena) const;
  std::string_view Scaled(int64_t unscaled, Arena* arena) const;
  void FilterDoubles(const ValueFilter& filter, uint32_t first, uint32_t count,
                     uint8_t* mask) const;
  const char* FilterDictionary(const ValueFilter& filter, uint32_t first, uint32_t count,
                               uint8_t* mask) const;
  const char* FilterBytes(const ValueFilter& filter, uint32_t first, uint32_t count,
                          uint8_t* mask) const;

  // What a read of one row needs comes first, so that it lies in one cache line, or, of bytes, in
  // two.
  Type type_;
  uint16_t rows_ = 0;
  uint16_t null_count_ = 0;
  ChunkEncoding encoding_ = ChunkEncoding::kFrame;
  uint8_t code_bits_ = 0;
  uint8_t exponent_ = 0;         // kDecimal, kScaled
  bool wide_ = false;            // kDictionary, kBytes, kLetters: offsets are u32, not u16
  bool checked_ = false;         // values are numerics or arrays
  const char* nulls_ = nullptr;  // bits; null when no row is NULL
  const char* codes_ = nullptr;  // of kDouble: the values
  // Of kDouble the bits of doubles, of kDecimal and kScaled the integers. least_ is the base of
  // codes.
  int64_t least_ = 0;

  uint32_t entries_ = 0;           // kDictionary; kLetters: different letters
  uint32_t base_length_ = 0;       // kBytes, kLetters
  uint32_t bytes_size_ = 0;        // of bytes_; kLetters: of all values
  const char* offsets_ = nullptr;  // kDictionary: ends of entries; else of every 32nd row
  const char* bytes_ = nullptr;
  const char* letters_ = nullptr;  // kLetters: the different ones
  int64_t greatest_ = 0;
  int64_t step_ = 0;  // kSequence
  size_t size_ = 0;
};
static_assert(sizeof(Chunk) == 128);

// A page's header, parsed. Borrowed from the page's bytes. Reusable.
class PageView {
 public:
  // Cost: a few loads, and one per column. Errors: kCorruption.
  Status Parse(std::string_view bytes);

  uint32_t rows() const { return rows_; }  // 0 is possible: an empty page
  uint32_t columns() const { return columns_; }
  uint32_t format_id() const { return format_id_; }  // the row format of its columns
  PageKeys keys() const { return keys_; }
  // Encoded key (RowRef) of the first row that is not this page's any more; empty: none.
  std::string_view fence() const { return fence_; }
  // Is this page responsible for `ref`, given that it begins at or before it?
  bool Covers(std::string_view ref) const { return fence().empty() || ref < fence(); }
  size_t size_bytes() const { return bytes_.size(); }

  // Chunks parsed before, one for each column in the format's order, which GetChunk gives
  // back; those that are none (IsOf) are parsed as ever. They outlive the view.
  void UseParsed(std::span<const Chunk> chunks) {
    parsed_ = chunks.size() == columns_ ? chunks.data() : nullptr;
  }

  // Starts loading the header of a column's chunk.
  void PrefetchChunk(uint32_t column) const {
    if (parsed_ != nullptr) {
      const auto* chunk = reinterpret_cast<const char*>(parsed_ + (column < columns_ ? column : 0));
      __builtin_prefetch(chunk);
      __builtin_prefetch(chunk + sizeof(Chunk) / 2);
      return;
    }
    uint32_t start;
    std::memcpy(&start, offsets_ + 4 * size_t{column < columns_ ? column : 0}, sizeof start);
    __builtin_prefetch(bytes_.data() + start);
  }
  // Column i in the format's order. Errors: kCorruption.
  Status GetChunk(uint32_t column, Type type, Chunk* out) const;
  // The same without a copy, if it was parsed before; else null.
  const Chunk* Parsed(uint32_t column, const Type& type) const {
    return parsed_ != nullptr && column < columns_ && parsed_[column].IsOf(type) ? parsed_ + column
                                                                                 : nullptr;
  }

  // kRefs: the encoded key of a row: `prefix` and `suffix` concatenated.
  std::string_view key_prefix() const { return key_prefix_; }
  std::string_view key_suffix(uint32_t row) const;  // row < rows()
  // kRefs: the first row in [0, rows()] whose key is not less than `ref`.
  uint32_t LowerBound(std::string_view ref) const;

  // Compares the page with the checksum that it holds. For checks and for whoever rewrites pages;
  // reads rely on the engine's checksums. kCorruption when they differ. Cost: reads all bytes.
  Status VerifyChecksum() const;

 private:
  std::string_view bytes_;
  std::string_view fence_;
  std::string_view key_prefix_, key_suffixes_;
  const char* offsets_ = nullptr;  // u32 starts of the chunks, and where the last one ends
  const char* key_ends_ = nullptr;
  const Chunk* parsed_ = nullptr;
  uint32_t rows_ = 0, columns_ = 0, format_id_ = 0;
  bool wide_keys_ = false;
  PageKeys keys_ = PageKeys::kInt;
};

// What a page is made of.
struct PageRows {
  const RowFormat* format = nullptr;
  // Column i of the format is batch->column(positions[i]); key columns are among them. All values,
  // NULLs and lossy key values too, come back from the page exactly.
  const RowBatch* batch = nullptr;
  std::span<const uint32_t> positions;
  size_t first = 0, count = 0;  // rows of the batch, in key order; count <= kMaxPageRows
  PageKeys keys = PageKeys::kRefs;
  uint32_t key_column = 0;                 // kInt: ordinal in the format
  std::span<const std::string_view> refs;  // kRefs: of rows first.., `count` of them
  std::string_view fence;
};

// Appends a page. Errors: kLimit beyond kMaxRowBytes; *out is then unchanged. Cost: 20-60 ns a row
// of ten columns.
Status AppendPage(const PageRows& rows, std::string* out);

}  // namespace cellar::codec
