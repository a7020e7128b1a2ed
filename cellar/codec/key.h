// Order-preserving bytes of keys.
//
// Invariants, for values a and b of one key column:
//   1. a sorts before b, as the column's direction and NULL placement ask, exactly when its bytes
//   sort
//      before b's as unsigned bytes (memcmp). Values that SQL calls equal have equal bytes.
//   2. No field is a proper prefix of another field of the same column, so fields may be
//   concatenated.
//   3. Tags give type and direction: a key can be read without its schema.
//   4. No finished key ends in a zero byte.
// The bytes are specified in docs/formats/key.md (version 1). Changing any of them is a format
// change, not an edit. What equal values differ in (scale, sign of zero, ...) is kept in the row's
// value: row.h.
#pragma once

#include <cstdint>
#include <initializer_list>
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

// Values are persisted in descriptors.
enum class Direction : uint8_t { kAscending = 1, kDescending = 2 };
enum class NullPlacement : uint8_t { kFirst = 1, kLast = 2 };

struct KeyColumn {
  Type type;
  Direction direction = Direction::kAscending;
  NullPlacement nulls = NullPlacement::kLast;
};

// May a value of this type be a key field? False for json, jsonb and the catalog's vector types.
bool IsKeyType(Type type);

// ---- Fields ----

// Appends one field. The column's type is a key type. Cost: no allocation beyond the string's
// growth.
void AppendKeyField(Datum value, const KeyColumn& column, std::string* key);
// The same for each value; the spans have one length.
void AppendKeyFields(std::span<const Datum> values, std::span<const KeyColumn> columns,
                     std::string* key);
// One row of a batch: field i is batch.column(positions[i]).
void AppendKeyFields(const RowBatch& batch, size_t row, std::span<const uint32_t> positions,
                     std::span<const KeyColumn> columns, std::string* key);

// Ascending integers: ids, and every integer type alike.
void AppendKeyInt(int64_t value, std::string* key);
void AppendKeyUint(uint64_t value, std::string* key);
// Ascending TEXT and BYTES.
void AppendKeyText(std::string_view text, std::string* key);
void AppendKeyBytes(std::string_view bytes, std::string* key);
// A row value inside a key: its fields ascending, NULLs last; `direction` is the whole tuple's.
void AppendKeyTuple(std::span<const Datum> values, std::span<const Type> types, Direction direction,
                    std::string* key);

// Decodes the field at the front of *in and advances *in past it. Bytes of the result lie in
// `arena`. Errors: kCorruption when the bytes are no such field of this column (wrong tag or
// direction, truncated, not the canonical form, integer outside the type); *in is then unchanged.
// Values come back in the form that keys keep: see KeyLosesInformation.
Result<Datum> TakeKeyField(std::string_view* in, const KeyColumn& column, Arena* arena);
Result<int64_t> TakeKeyInt(std::string_view* in);
Result<uint64_t> TakeKeyUint(std::string_view* in);
Result<std::string> TakeKeyText(std::string_view* in);
Result<std::vector<Datum>> TakeKeyTuple(std::string_view* in, std::span<const Type> types,
                                        Direction direction, Arena* arena);
// Advances *in past one field of any type, reading its tag. Errors as above.
Status SkipKeyField(std::string_view* in);

// Decodes the fields of many keys into batches. Immutable; thread-safe.
class KeyDecoder {
 public:
  // positions[i] is the batch column that field i goes to, or -1 to skip it.
  KeyDecoder(std::vector<KeyColumn> columns, std::vector<int> positions);
  // Decodes the fields at the front of *in into row `row`, which the batch's columns have,
  // advancing *in. Bytes lie in the batch's arena. Errors: kCorruption; the row's values are then
  // undefined.
  Status Decode(std::string_view* in, size_t row, RowBatch* batch) const;

 private:
  struct Step {
    KeyColumn column;
    int position;
    uint8_t kind;
    uint8_t null_byte;
    uint8_t mask;             // FF for a descending column
    int64_t least, greatest;  // of an integer
  };
  std::vector<Step> steps_;
};

// True when TakeKeyField would give back a value that prints or computes otherwise than `value`:
// numeric with trailing zeros, -0.0, a NaN of unusual bits, an interval not in justified form,
// text whose collation takes unequal bytes as equal. Such values of primary key columns are kept in
// the row's trailer (row.h).
bool KeyLosesInformation(Datum value, Type type);

// ---- Whole keys (docs/formats/key.md, section 4) ----

// What every key of an index begins with; half-open range of the whole index: [prefix,
// PrefixEnd(prefix)).
void AppendTablePrefix(TableId table, IndexId index, std::string* key);
std::string TablePrefix(TableId table, IndexId index);
// All indexes of a table.
std::string TablePrefix(TableId table);
// Ends a key that will be stored or looked up: appends 01 when it ends in 00.
void FinishKey(std::string* key);
// Takes what FinishKey may have added, and says whether nothing else is left.
bool AtKeyEnd(std::string_view rest);

// A client can compute both from a record and the key definition alone; the partition key is the
// first `partition_columns` fields, the range key the rest; concatenated they are the row's key
// fields.
std::string EncodePartitionKey(std::span<const Datum> values, std::span<const KeyColumn> columns,
                               size_t partition_columns);
std::string EncodeRangeKey(std::span<const Datum> values, std::span<const KeyColumn> columns,
                           size_t partition_columns);

// ---- Bounds, where `prefix` is what precedes a column ----

// The least string greater than everything that begins with `prefix`; empty when there is none (""
// and all-FF prefixes): unbounded.
std::string PrefixEnd(std::string_view prefix);
// Every non-NULL value of the next column lies in [BelowValues, AboveValues).
std::string BelowValues(std::string_view prefix);
std::string AboveValues(std::string_view prefix);
// A half-open range of keys. An empty `end` is unbounded.
struct KeyRange {
  std::string start, end;
  bool operator==(const KeyRange&) const = default;
};
// All keys that begin with `prefix`.
KeyRange PrefixRange(std::string_view prefix);
// The keys whose next field is NULL, or is not.
KeyRange NullRange(std::string_view prefix, NullPlacement nulls);
KeyRange NonNullRange(std::string_view prefix);

// ---- System records: they begin with 00, which no data key does ----

std::string NameKey(NamespaceId parent, std::string_view name);
std::string DescriptorKey(uint64_t id);
// 00 "<word>-" and integer fields, finished. `word` is lower-case letters, digits and '_'; each is
// listed in docs/formats/key.md.
std::string SystemKey(std::string_view word, std::initializer_list<uint64_t> fields = {});
// The same unfinished, for keys with other fields and for ranges: append fields, then FinishKey.
std::string SystemPrefix(std::string_view word);

// ---- Reading keys without their schema ----

struct DecodedField {
  uint8_t tag = 0;                              // as in the ascending form; 00 or FF for NULL
  std::string_view type;                        // "INT", "TEXT", ..., "NULL"
  Direction direction = Direction::kAscending;  // a NULL's is not known: ascending
  bool is_null = false;
  std::string
      value;  // as PostgreSQL prints it; text in single quotes, bytes as '\x..', arrays in {}
  size_t offset = 0;  // of the tag in the key
};
struct DecodedKey {
  std::string word;  // of a system record ("name"); empty for data keys
  std::vector<DecodedField> fields;
  bool end_marker = false;  // the key was closed with 01
};
// Reads a whole stored key, of a system record (first byte 00) or of data. Errors: kCorruption
// naming the offset of the byte that makes no sense.
Result<DecodedKey> DecodeKey(std::string_view key);
// The same for a bare sequence of fields (a partition key, a prefix), which may begin with a NULL.
Result<DecodedKey> DecodeKeyFields(std::string_view fields);
// "/100/0/'Bob'/-5 desc/NULL" for logs and EXPLAIN; bytes that make no sense are appended in hex.
std::string PrintKey(std::string_view key);

}  // namespace cellar::codec
