// Packed values of rows: all columns of a row (or of one column group) that are not in its key.
//
// A value names the format id it was written with; a format id stands for a fixed list of columns
// and types, so that decoders are compiled once per id and adding or dropping a column rewrites no
// row. Key columns are not repeated, except that a trailer keeps those values that their key form
// does not give back exactly (KeyLosesInformation). The bytes are specified in docs/formats/row.md
// (version 1). Changing any of them is a format change, not an edit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/codec/ids.h"
#include "cellar/types/batch.h"
#include "cellar/types/datum.h"
#include "cellar/types/type.h"

namespace cellar::codec {

// Row values are at most this long.
inline constexpr size_t kMaxRowBytes = size_t{1} << 30;
inline constexpr size_t kMaxRowColumns = 4096;
// The format id of index entries: an index's columns never change, so its descriptor is enough.
inline constexpr uint32_t kIndexRowFormat = 0;

struct RowColumn {
  ColumnId id;
  Type type;
  // The column is a field of the key: only what the key loses is stored.
  bool in_key = false;
};

// Where each column lies in the values of one format id. Immutable; thread-safe; cheap to move.
class RowFormat {
 public:
  // Columns in the order in which encoders are handed values. Errors: kInvalid for a type that
  // cannot be stored, too many columns, or a repeated id.
  static Result<RowFormat> Make(uint32_t format_id, std::vector<RowColumn> columns);

  uint32_t id() const { return id_; }
  std::span<const RowColumn> columns() const { return columns_; }
  // Columns whose values are stored: all but key columns.
  size_t stored_columns() const { return stored_; }

 private:
  friend class RowEncoder;
  friend class RowDecoder;
  // How a value is stored. Fixed ones at `at` of the fixed section; kVar... with the at-th end
  // offset.
  enum class Storage : uint8_t {
    kKey,
    kBool,
    kInt4,
    kUint4,
    kInt8,
    kFloat4,
    kFloat8,
    kBytes12,
    kBytes16,
    kVar,         // bytes that mean the same whatever they are
    kVarChecked,  // numeric and arrays: checked when decoded
  };
  struct Slot {
    Storage storage;
    uint16_t null_bit;
    uint32_t at;
  };
  static Storage StorageOf(Type type);
  static size_t FixedBytes(Storage storage);

  uint32_t id_ = 0;
  std::vector<RowColumn> columns_;
  std::vector<Slot> slots_;           // parallel to columns_
  std::vector<uint32_t> lossy_keys_;  // ordinals of key columns that may need the trailer
  std::string header_;                // format byte and format id
  size_t stored_ = 0;
  uint32_t bitmap_bytes_ = 0;
  uint32_t fixed_bytes_ = 0;
  uint32_t var_columns_ = 0;
};

// Makes values. Stateless.
class RowEncoder {
 public:
  // Appends the value of one row: values[i] is that of format.columns()[i], key columns included.
  // Errors: kLimit (SQLSTATE 54000) beyond kMaxRowBytes; *out is then unchanged.
  static Status Append(const RowFormat& format, std::span<const Datum> values, std::string* out);
  // The same from row `row` of a batch: column i of the format is batch.column(positions[i]).
  static Status Append(const RowFormat& format, const RowBatch& batch, size_t row,
                       std::span<const uint32_t> positions, std::string* out);
  // For index entries: appends nothing when there is nothing to store (no stored columns, and keys
  // that lose nothing). RowDecoder reads the empty value so.
  static Status AppendUnlessEmpty(const RowFormat& format, std::span<const Datum> values,
                                  std::string* out);
  static Status AppendUnlessEmpty(const RowFormat& format, const RowBatch& batch, size_t row,
                                  std::span<const uint32_t> positions, std::string* out);

 private:
  template <typename GetValue>
  static Status AppendRow(const RowFormat& format, GetValue get, bool unless_empty,
                          std::string* out);
};

// A column that a reader wants.
struct WantedColumn {
  ColumnId id;
  // As the table has it now. Integers may be wider than the format's, and modifiers may differ.
  Type type;
  // Of the batch.
  uint32_t position = 0;
  // What rows answer whose format does not have the column (the column's frozen default).
  Value default_value;
};

enum class RowBytes : uint8_t {
  kBorrow,  // text and the like point into the value decoded
  kCopy,    // into the batch's arena
};

// Decodes values of one format into columns of a batch. Immutable; thread-safe. Defaults' bytes are
// borrowed from the decoder in both modes... unless copied: kCopy copies them too.
class RowDecoder {
 public:
  // A wanted column that is in the format's key is written only by rows whose trailer holds it:
  // decode the key first. Errors: kInvalid when a column's type does not fit the stored one.
  static Result<RowDecoder> Make(const RowFormat& format, std::vector<WantedColumn> wanted,
                                 RowBytes bytes);

  uint32_t format_id() const { return format_.id(); }

  // Fills row first_row + i from values[i]; the batch's columns have those rows already (Resize).
  // Errors: kCorruption when bytes make no sense or are of another format; rows from there on are
  // then undefined.
  Status Decode(std::span<const std::string_view> values, size_t first_row, RowBatch* batch) const;
  Status Decode(std::string_view value, size_t row, RowBatch* batch) const {
    return Decode(std::span<const std::string_view>(&value, 1), row, batch);
  }

 private:
  using Storage = RowFormat::Storage;
  struct Step {
    Storage storage;
    uint16_t null_bit;
    uint32_t at;
    uint32_t position;
    Type type;  // as stored, for checks
    ColumnId id;
  };
  struct Target;
  const char* DecodeRow(std::string_view value, size_t row, Target* targets, RowBatch* batch) const;
  const char* DecodeTrailer(std::string_view trailer, size_t row, RowBatch* batch) const;

  RowFormat format_;
  std::vector<Step> steps_;             // stored columns
  std::vector<Step> key_steps_;         // key columns, for the trailer
  std::vector<WantedColumn> defaults_;  // columns that the format does not have
  RowBytes bytes_ = RowBytes::kBorrow;
};

// The decoders of one scan, by format id. Immutable once filled; thread-safe.
class RowDecoders {
 public:
  void Add(RowDecoder decoder);
  // As RowDecoder's, for values of any of the formats. kCorruption for a format id that was not
  // added.
  Status Decode(std::span<const std::string_view> values, size_t first_row, RowBatch* batch) const;

 private:
  const RowDecoder* Find(uint32_t format_id) const;
  std::vector<RowDecoder> decoders_;
};

// The format id of a row value. Errors: kCorruption.
Result<uint32_t> RowFormatIdOf(std::string_view value);

// ---- Single values with their type (docs/formats/row.md, "Cells") ----

// Appends format byte, type and value (NULL too). The type's modifier is not stored.
void AppendCell(Datum value, Type type, std::string* out);
// Reads a whole cell that was written as `type` or a narrower integer. Bytes are borrowed from
// `cell`. Errors: kCorruption.
Result<Datum> ParseCell(std::string_view cell, Type type);

// Are these bytes a value of this kBytes type, so that its accessors may read them? Used on
// everything that comes from disk. Text is not checked for UTF-8.
bool IsValidStored(std::string_view bytes, Type type);

}  // namespace cellar::codec
