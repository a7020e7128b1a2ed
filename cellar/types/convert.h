// Values of the host language as values of SQL types, and back as far as it goes: what programs
// give as parameters and cells.
#pragma once

#include <cstdint>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/datum.h"
#include "cellar/types/text_io.h"
#include "cellar/types/type.h"

namespace cellar {

// As a value of `type`, its bytes in `arena`: a number of that range, or what ParseDatum makes of
// the value's text. Errors: 22003 out of range; those of ParseDatum.
Result<Datum> ConvertBool(bool value, Type type, const FormatSettings& format, Arena* arena);
Result<Datum> ConvertInt(int64_t value, Type type, const FormatSettings& format, Arena* arena);
Result<Datum> ConvertDouble(double value, Type type, const FormatSettings& format, Arena* arena);
// Borrows `bytes`. Errors: 42804 unless `type` is bytea, or uuid and there are 16 of them.
Result<Datum> ConvertBytes(std::string_view bytes, Type type);

// A value as a number: doubles cut, text by the digits that it begins with, what is out of range
// clamped; NULL is 0. bool: 0 or 1. date: days since 2000-01-01. timestamp, timestamptz:
// microseconds since 2000-01-01 00:00, of timestamptz in UTC. time, timetz: microseconds since
// midnight, of timetz in its own zone. interval: microseconds, days of 24 hours and months of 30
// days.
int64_t DatumAsInt(Datum value, Type type);
double DatumAsDouble(Datum value, Type type);

// A value's bytes in memory are its text. Of bpchar they are not: blanks are missing.
bool ShowsAsItLies(Type type);
// A value's bytes in memory mean something to programs: text, bytea and uuid.
bool HasPlainBytes(Type type);

}  // namespace cellar
