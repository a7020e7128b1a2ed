#include "cellar/session/zones.h"

#include <algorithm>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/types/datetime.h"
#include "cellar/types/text_io.h"

namespace cellar::session {
namespace {

constexpr std::string_view kNames[] = {"retention",  "row_quota", "byte_quota", "read_rate",
                                       "write_rate", "priority",  "placement"};

Status BadValue(const sql::ast::Option& option, std::string_view wanted) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "invalid value for option \"{}\": \"{}\"", option.name, option.ToText())
      .WithDetail(fmt::format("It must be {}.", wanted));
}

Result<int64_t> NumberOf(const sql::ast::Option& option, std::string_view text, int64_t least) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least) {
    return BadValue(option, fmt::format("a whole number, {} at least", least));
  }
  return number;
}

// "500", "10kB", "1 GB".
Result<int64_t> BytesOf(const sql::ast::Option& option) {
  std::string text = option.ToText();
  static constexpr std::pair<std::string_view, int> kUnits[] = {
      {"kB", 10}, {"MB", 20}, {"GB", 30}, {"TB", 40}, {"B", 0}};
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    text.resize(text.size() - unit.size());
    shift = bits;
    break;
  }
  while (text.ends_with(' ')) text.pop_back();
  CELLAR_TRY_ASSIGN(const int64_t number, NumberOf(option, text, 0));
  if (number > INT64_MAX >> shift) return BadValue(option, "less than 8388608 TB");
  return number << shift;
}

Result<int64_t> RetentionOf(const sql::ast::Option& option) {
  CELLAR_TRY_ASSIGN(const Interval interval, ParseInterval(option.ToText(), -1, FormatSettings()));
  constexpr int64_t kDay = int64_t{86400} * 1000000, kMostDays = 1000000;
  const int64_t days = int64_t{interval.months} * 30 + interval.days;
  if (days < 0 || days > kMostDays || interval.micros < 0 || interval.micros > kMostDays * kDay) {
    return BadValue(option, "between nothing and a million days");
  }
  return days * kDay + interval.micros;
}

}  // namespace

bool IsZoneOption(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Status ApplyZoneOption(const sql::ast::Option& option, bool reset, catalog::ZoneSettings* zone) {
  const std::string& name = option.name;
  if (name == "placement") {
    zone->placement = reset ? "" : option.ToText();
    return Status();
  }
  if (name == "priority") {
    zone->priority.reset();
    if (reset) return Status();
    CELLAR_TRY_ASSIGN(const int64_t number, NumberOf(option, option.ToText(), INT32_MIN));
    if (number > INT32_MAX) return BadValue(option, "an int4");
    zone->priority = static_cast<int32_t>(number);
    return Status();
  }
  std::optional<int64_t>* target = name == "retention"    ? &zone->retention_micros
                                   : name == "row_quota"  ? &zone->row_quota
                                   : name == "byte_quota" ? &zone->byte_quota
                                   : name == "read_rate"  ? &zone->read_rate
                                                          : &zone->write_rate;
  target->reset();
  if (reset) return Status();
  if (name == "retention") {
    CELLAR_TRY_ASSIGN(*target, RetentionOf(option));
  } else if (name == "byte_quota") {
    CELLAR_TRY_ASSIGN(*target, BytesOf(option));
  } else {
    CELLAR_TRY_ASSIGN(*target, NumberOf(option, option.ToText(), name == "row_quota" ? 0 : 1));
  }
  return Status();
}

std::vector<std::string> ZoneTexts(const catalog::ZoneSettings& zone) {
  std::vector<std::string> texts;
  const auto add = [&](const char* name, const auto& value) {
    if (value) texts.push_back(fmt::format("{}={}", name, *value));
  };
  if (zone.retention_micros) {
    std::string text = "retention=";
    Interval interval;
    constexpr int64_t kDay = int64_t{86400} * 1000000;
    interval.days = static_cast<int32_t>(*zone.retention_micros / kDay);
    interval.micros = *zone.retention_micros % kDay;
    AppendInterval(interval, FormatSettings(), &text);
    texts.push_back(std::move(text));
  }
  add("row_quota", zone.row_quota);
  add("byte_quota", zone.byte_quota);
  add("read_rate", zone.read_rate);
  add("write_rate", zone.write_rate);
  add("priority", zone.priority);
  if (!zone.placement.empty()) texts.push_back("placement=" + zone.placement);
  return texts;
}

catalog::ZoneSettings EffectiveZone(const catalog::CatalogSnapshot& catalog,
                                    catalog::ZoneSettings zone, catalog::NamespaceId space) {
  for (catalog::NamespacePtr holder = catalog.GetNamespace(space); holder != nullptr;
       holder = catalog.GetNamespace(holder->parent)) {
    const catalog::ZoneSettings& above = holder->zone;
    if (!zone.retention_micros) zone.retention_micros = above.retention_micros;
    if (!zone.priority) zone.priority = above.priority;
    if (zone.placement.empty()) zone.placement = above.placement;
    if (holder->id == catalog::kRootNamespace) break;
  }
  return zone;
}

}  // namespace cellar::session
