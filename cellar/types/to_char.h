// to_char, to_date, to_timestamp and to_number: PostgreSQL's format patterns (manual, section 9.8).
// Names of months and days are English (locale C).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/arena.h"
#include "cellar/base/status.h"
#include "cellar/types/datetime.h"
#include "cellar/types/text_io.h"

namespace cellar {

// Appends nothing for an infinity's NULL: callers ask IsFiniteTimestamp first. Cost: parses the
// pattern each time, about 20 ns a node.
Status TimestampToChar(int64_t micros, std::string_view pattern, std::string* out);
Status TimestampTzToChar(int64_t micros, std::string_view pattern, const TimeZone* zone,
                         std::string* out);
Status IntervalToChar(Interval value, std::string_view pattern, std::string* out);

// Errors: 22007 'invalid value "x" for "YYYY"', 22008.
Result<int64_t> ToDate(std::string_view text, std::string_view pattern);
Result<int64_t> ToTimestampTz(std::string_view text, std::string_view pattern,
                              const TimeZone* zone);

Status NumericToChar(std::string_view numeric, std::string_view pattern, std::string* out);
// `max` of the value's type: what V makes of it must fit. Errors: 22003.
Status Int64ToChar(int64_t value, std::string_view pattern, std::string* out,
                   int64_t max = INT64_MAX);
// `digits` of the value's type: 15, or 6 of a float4.
Status DoubleToChar(double value, std::string_view pattern, std::string* out, int digits = 15);
Result<std::string_view> ToNumber(std::string_view text, std::string_view pattern, Arena* arena);

}  // namespace cellar
