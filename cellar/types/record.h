// Records in expressions: what ROW(a, b) makes.
//
// In-memory bytes (a Datum's kBytes of kRecord; not persisted): a mark of this process: u64,
// fields: u32; then per field
//   [type id: u8][array: u8][NULL: u8][name size: u8][modifier: i32][size: u32][name][bytes],
//   words as 8 bytes; of kEnum, the address of its definition between name and bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/types/datum.h"
#include "cellar/types/text_io.h"
#include "cellar/types/type.h"

namespace cellar {

struct RecordField {
  Type type;
  Datum value;            // borrows from the record
  std::string_view name;  // likewise; up to 255 bytes, empty when it has none
};

// Errors: 54000 for a record larger than a new value may be.
Result<std::string_view> MakeRecord(const std::vector<RecordField>& fields, Arena* arena);
// Whether MakeRecord made these bytes: the mark is not to be guessed, because fields of enums hold
// addresses. Cost: O(1).
bool IsRecord(std::string_view bytes);
// No fields if the bytes are not a record.
std::vector<RecordField> RecordFields(std::string_view record);
// record_out: (1,"a b",). Each level of nesting doubles quotes: text that grows beyond what a new
// value may be, or settings.max_text_bytes, is cut off behind that.
void AppendRecordText(std::string_view record, const FormatSettings& settings, std::string* out);
// Column by column; NULLs are greatest and equal. Errors: 42804 when types or numbers of columns
// differ.
Result<int> CompareRecords(std::string_view a, std::string_view b);
// CompareDatums of a type that may hold records, with those errors.
Result<int> CompareWithRecords(Datum a, Datum b, Type type);
// Records that are equal under CompareRecords have the same hash.
uint64_t HashRecord(std::string_view record);
// record_send: number of fields, then per field type oid, length (-1 is NULL) and the field's own
// binary form.
void AppendRecordBinary(std::string_view record, std::string* out);

}  // namespace cellar
