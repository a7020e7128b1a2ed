// What lies under the keys of rows beside whole rows: patches, the changed columns of a row whose
// other columns lie in a page; and long rows.
//
// A patch names columns by their ids, so it outlives changes of the table's row format. The bytes
// are specified in docs/formats/row.md, "PATCH". Changing any of them is a format change.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/codec/ids.h"
#include "cellar/types/batch.h"

namespace cellar::codec {

// What a value of a row's own key is, by its first byte; an empty value is a tombstone.
enum class DeltaKind : uint8_t { kTombstone, kRow, kPatch, kLongRow };
// Errors: kCorruption for any other kind of value.
Result<DeltaKind> DeltaKindOf(std::string_view value);

// Builds one patch: Begin, then a column at a time, in any order, each once.
void BeginPatch(std::string* out);
void AppendPatchColumn(ColumnId column, Datum value, Type type, std::string* out);

// Reads a patch column by column. Borrowed.
class PatchReader {
 public:
  // Errors: kCorruption.
  static Result<PatchReader> Make(std::string_view patch);
  // False at the end. `*bytes` is what Value reads.
  Result<bool> Next(ColumnId* column, std::string_view* bytes, bool* null);
  // The value of the column just returned, which was stored as `type` or a narrower integer;
  // borrowed. Errors: kCorruption.
  static Result<Datum> Value(std::string_view bytes, Type type);

 private:
  std::string_view rest_;
};

// ---- LONG ROW: a row some of whose values lie under keys of their own ----

struct LongValue {
  ColumnId column;
  size_t bytes;
};

struct LongRow {
  std::vector<LongValue> values;
  std::string_view row;  // the ROW, in which these are NULL
};

// The ROW follows.
void AppendLongRowHead(std::span<const LongValue> values, std::string* out);
// Errors: kCorruption.
Result<LongRow> ParseLongRow(std::string_view value);

}  // namespace cellar::codec
