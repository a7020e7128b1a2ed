// Values to and from PostgreSQL's text and binary formats (the wire, COPY, casts, literals, the
// shell).
//
// Source of the rules: PostgreSQL 15 manual, chapters 8 and 55. Locale and collation are C,
// encoding UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/datum.h"
#include "cellar/types/type.h"

namespace cellar {

enum class DateOrder : uint8_t { kMdy, kDmy, kYmd };
enum class DateStyle : uint8_t { kIso, kPostgres, kSql, kGerman };
enum class IntervalStyle : uint8_t { kPostgres, kPostgresVerbose, kSqlStandard, kIso8601 };
enum class ByteaOutput : uint8_t { kHex, kEscape };

class TimeZone;  // types/datetime.h

// Session settings that change how values read and print. Immutable while a statement runs.
struct FormatSettings {
  DateStyle date_style = DateStyle::kIso;
  DateOrder date_order = DateOrder::kMdy;
  IntervalStyle interval_style = IntervalStyle::kPostgres;
  ByteaOutput bytea_output = ByteaOutput::kHex;
  int extra_float_digits = 1;
  const TimeZone* time_zone = nullptr;  // null is UTC; outlives the settings
  int64_t now_micros = 0;            // transaction time, for 'now', 'today'; since 2000-01-01 UTC
  size_t max_text_bytes = SIZE_MAX;  // see AppendDatumText
};

// Parses `text` as PostgreSQL's type input function would, then applies type.modifier as an
// implicit assignment cast does (varchar too long: 22001 unless the excess is blanks; numeric is
// rounded, 22003 on overflow). Bytes are allocated in `arena`. Errors: kInvalid with SQLSTATE
// 22P02, 22003, 22007, 22008, 22021..., PostgreSQL's message ('invalid input syntax for type
// integer: "x"').
Result<Datum> ParseDatum(std::string_view text, Type type, const FormatSettings& settings,
                         Arena* arena);

// Appends the text form of a non-NULL value (bool: "t"/"f"). What makes *out longer than
// settings.max_text_bytes is cut off soon behind that: callers that set it look at the size.
void AppendDatumText(Datum value, Type type, const FormatSettings& settings, std::string* out);

// Appends PostgreSQL's binary send format of a non-NULL value, without a length word.
void AppendDatumBinary(Datum value, Type type, std::string* out);
// Errors: kInvalid with SQLSTATE 22P03 (08P01 for a short buffer).
Result<Datum> ParseDatumBinary(std::string_view bytes, Type type, Arena* arena);

// The conversion that type.modifier asks of a value already of type.id: truncation or rounding when
// `explicit_cast`, an error (22001, 22003) when data would be lost by assignment.
Result<Datum> ApplyModifier(Datum value, Type type, bool explicit_cast, Arena* arena);

// True when `text` is valid UTF-8 without NUL.
bool IsValidText(std::string_view text);

}  // namespace cellar
