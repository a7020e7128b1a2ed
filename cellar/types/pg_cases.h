// For tests: tables of what PostgreSQL answers, and calls that answer in the same words.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"
#include "cellar/types/text_io.h"
#include "cellar/types/to_char.h"

namespace cellar {

struct TextCase {
  const char* type;
  const char* text;
  const char* expected;  // text, or "ERROR sqlstate message | detail"
};

struct FunctionCase {
  const char* function;
  const char* a;
  const char* b;
  const char* c;
  const char* expected;
};

// Settings of a session, with the zone that they borrow.
class Session {
 public:
  Session(DateStyle style, DateOrder order, IntervalStyle intervals, std::string_view zone)
      : zone_(TimeZone::FindForSetting(zone)) {
    settings_.date_style = style;
    settings_.date_order = order;
    settings_.interval_style = intervals;
    settings_.time_zone = zone_.get();
    settings_.now_micros = 9509 * kMicrosPerDay + 12 * kMicrosPerHour;  // a day in January 2026
  }
  const FormatSettings& settings() const { return settings_; }

 private:
  std::shared_ptr<const TimeZone> zone_;
  FormatSettings settings_;
};

inline std::string Describe(const Status& status, bool with_sqlstate = true) {
  std::string out = "ERROR ";
  if (with_sqlstate) out += std::string(status.sqlstate()) + " ";
  out += status.message();
  if (!status.detail().empty()) out += " | " + std::string(status.detail());
  return out;
}

inline std::string Print(Result<Datum> value, Type type, const FormatSettings& settings) {
  if (!value.ok()) return Describe(value.status());
  if (value->is_null()) return "NULL";
  std::string out;
  AppendDatumText(*value, type, settings, &out);
  return out;
}

inline std::string ReadAndPrint(std::string_view type_name, std::string_view text,
                                const FormatSettings& settings = FormatSettings()) {
  Arena arena;
  const Type type = *TypeFromName(type_name);
  return Print(ParseDatum(text, type, settings, &arena), type, settings);
}

inline std::string HexOf(std::string_view bytes) {
  std::string out;
  for (char c : bytes) out += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return out;
}

// A function of dates on arguments in text.
std::string CallDateFunction(const FunctionCase& c, const FormatSettings& settings);
// to_char and its kin.
std::string CallFormatFunction(const FunctionCase& c, const FormatSettings& settings);
// An operator or function of NUMERIC; errors without SQLSTATE.
std::string CallNumericFunction(const FunctionCase& c);

}  // namespace cellar
