// Time zones: compiled tz files (RFC 8536), POSIX TZ strings, fixed offsets and abbreviations.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <vector>

#include "cellar/types/datetime.h"
#include "cellar/types/datetime_internal.h"
#include "cellar/types/zone_abbreviations.h"

namespace cellar {
namespace {

constexpr char kZoneDirectory[] = "/usr/share/zoneinfo";
constexpr size_t kMaxZoneNameBytes = 255;
constexpr size_t kMaxZoneFileBytes = 256 << 10;
constexpr size_t kMaxCachedZones = 1024;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
char Upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
std::string ToLower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = Lower(c);
  return out;
}

struct LocalType {
  int offset = 0;  // seconds east
  bool is_dst = false;
  std::string abbreviation;
};

// When a POSIX rule changes the clock, every year.
struct RuleDate {
  enum Kind { kMonthWeekDay, kJulianNoLeap, kZeroBased } kind = kMonthWeekDay;
  int month = 1, week = 1, day = 0;  // or day of the year
  int time = 7200;                   // seconds after local midnight

  // Seconds since 1970 of the change in `year`, in local time.
  int64_t LocalSeconds(int64_t year) const {
    int64_t days;
    if (kind == kMonthWeekDay) {
      const int64_t first = DaysFromCivil(year, month, 1);
      int64_t in_month = (day - internal::DayOfWeek(first) + 7) % 7 + (week - 1) * 7;
      if (in_month >= DaysInMonth(year, month)) in_month -= 7;
      days = first + in_month;
    } else {
      days = DaysFromCivil(year, 1, 1) + day - (kind == kJulianNoLeap ? 1 : 0);
      if (kind == kJulianNoLeap && day >= 60 && DaysInMonth(year, 2) == 29) ++days;
    }
    return (days + kUnixEpochDays) * 86400 + time;
  }
};

struct PosixRule {
  LocalType standard;
  LocalType daylight;
  bool has_daylight = false;
  RuleDate start, end;  // of daylight-saving time
};

// Reads "CET-1CEST,M3.5.0,M10.5.0/3". As PostgreSQL has it a name may hold whatever is neither
// digit, sign nor comma, the standard one may be empty, and a semicolon may begin the rules.
class PosixReader {
 public:
  explicit PosixReader(std::string_view text) : text_(text) {}

  bool Read(PosixRule* out) {
    if (!ReadName(&out->standard.abbreviation) || !ReadOffset(&out->standard.offset)) return false;
    if (AtEnd()) return true;
    out->has_daylight = true;
    out->daylight.is_dst = true;
    if (!ReadName(&out->daylight.abbreviation) || out->daylight.abbreviation.empty()) return false;
    out->daylight.offset = out->standard.offset + 3600;
    if (!AtEnd() && text_[at_] != ',' && text_[at_] != ';' && !ReadOffset(&out->daylight.offset))
      return false;
    if (AtEnd()) {  // the rule of the United States
      out->start = {RuleDate::kMonthWeekDay, 3, 2, 0, 7200};
      out->end = {RuleDate::kMonthWeekDay, 11, 1, 0, 7200};
      return true;
    }
    return (Take(',') || Take(';')) && ReadDate(&out->start) && Take(',') && ReadDate(&out->end) &&
           AtEnd();
  }

 private:
  bool AtEnd() const { return at_ == text_.size(); }
  bool Take(char c) {
    if (AtEnd() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool ReadName(std::string* out) {
    const size_t first = at_;
    if (Take('<')) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) return false;
      *out = text_.substr(at_, end - at_);
      at_ = end + 1;
      return true;
    }
    while (!AtEnd() && !IsDigit(text_[at_]) && text_[at_] != ',' && text_[at_] != '-' &&
           text_[at_] != '+') {
      ++at_;
    }
    *out = text_.substr(first, at_ - first);
    return true;
  }
  bool ReadNumber(int max, int* out) {
    const size_t first = at_;
    int value = 0;
    while (!AtEnd() && IsDigit(text_[at_]) && value <= max) {
      value = value * 10 + (text_[at_++] - '0');
    }
    *out = value;
    return at_ != first && value <= max;
  }
  // [+-]hh[:mm[:ss]] in seconds.
  bool ReadTime(int* out) {
    bool negative = false;
    if (!AtEnd() && (text_[at_] == '-' || text_[at_] == '+')) negative = text_[at_++] == '-';
    int hours = 0, minutes = 0, seconds = 0;
    if (!ReadNumber(167, &hours)) return false;
    if (Take(':')) {
      if (!ReadNumber(59, &minutes)) return false;
      if (Take(':') && !ReadNumber(60, &seconds)) return false;
    }
    *out = (hours * 60 + minutes) * 60 + seconds;
    if (negative) *out = -*out;
    return true;
  }
  // POSIX counts west as positive.
  bool ReadOffset(int* east) {
    int west = 0;
    if (!ReadTime(&west)) return false;
    *east = -west;
    return true;
  }
  bool ReadDate(RuleDate* out) {
    if (Take('M')) {
      out->kind = RuleDate::kMonthWeekDay;
      if (!ReadNumber(12, &out->month) || out->month < 1 || !Take('.') ||
          !ReadNumber(5, &out->week) || out->week < 1 || !Take('.') || !ReadNumber(6, &out->day)) {
        return false;
      }
    } else {
      out->kind = Take('J') ? RuleDate::kJulianNoLeap : RuleDate::kZeroBased;
      if (!ReadNumber(365, &out->day)) return false;
      if (out->kind == RuleDate::kJulianNoLeap && out->day < 1) return false;
    }
    out->time = 7200;
    return !Take('/') || ReadTime(&out->time);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

struct TimeZone::Rep {
  std::vector<int64_t> transitions;  // seconds since 1970, ascending
  std::vector<uint8_t> kinds;  // index into types, in force from the transition of the same place
  std::vector<LocalType> types;
  size_t first_type = 0;
  bool has_rule = false;
  PosixRule rule;
  std::string only;  // of an abbreviation: the types that count; empty: all

  struct Change {
    int64_t at;
    const LocalType* type;
  };

  // The changes of one year, ascending.
  void RuleChanges(int64_t year, Change out[2]) const {
    out[0] = {rule.start.LocalSeconds(year) - rule.standard.offset, &rule.daylight};
    out[1] = {rule.end.LocalSeconds(year) - rule.daylight.offset, &rule.standard};
    if (out[1].at < out[0].at) std::swap(out[0], out[1]);
  }
  static int64_t YearOf(int64_t seconds) {
    int64_t year;
    int month, day;
    CivilFromDays(internal::FloorDiv(seconds, 86400) - kUnixEpochDays, &year, &month, &day);
    return year;
  }
  // Of what a clock there shows.
  int OffsetOfLocal(int64_t local) const;
  bool InRule(int64_t seconds) const {
    return has_rule && (transitions.empty() || seconds >= transitions.back());
  }

  // The last type of the name `only` at or before the time, or else the first behind it; null if
  // the zone has none.
  const LocalType* NamedAt(int64_t seconds) const {
    const LocalType& there = TypeAt(seconds);
    if (there.abbreviation == only) return &there;
    if (InRule(seconds) && rule.has_daylight) {
      if (rule.standard.abbreviation == only) return &rule.standard;
      if (rule.daylight.abbreviation == only) return &rule.daylight;
    }
    const auto next = std::upper_bound(transitions.begin(), transitions.end(), seconds);
    const auto at = static_cast<size_t>(next - transitions.begin());
    for (size_t i = at; i-- > 0;) {
      if (types[kinds[i]].abbreviation == only) return &types[kinds[i]];
    }
    if (types[first_type].abbreviation == only) return &types[first_type];
    for (size_t i = at; i < kinds.size(); ++i) {
      if (types[kinds[i]].abbreviation == only) return &types[kinds[i]];
    }
    return nullptr;
  }

  const LocalType& TypeAt(int64_t seconds) const {
    if (InRule(seconds)) {
      if (!rule.has_daylight) return rule.standard;
      Change changes[2];
      RuleChanges(YearOf(seconds), changes);
      if (seconds < changes[0].at) return *changes[1].type;  // as at the end of the year before
      return seconds < changes[1].at ? *changes[0].type : *changes[1].type;
    }
    auto next = std::upper_bound(transitions.begin(), transitions.end(), seconds);
    if (next == transitions.begin()) return types[first_type];
    return types[kinds[static_cast<size_t>(next - transitions.begin()) - 1]];
  }

  // The first change after `seconds`; false if there is none.
  bool NextChange(int64_t seconds, Change* out) const {
    auto next = std::upper_bound(transitions.begin(), transitions.end(), seconds);
    if (next != transitions.end()) {
      *out = {*next, &types[kinds[static_cast<size_t>(next - transitions.begin())]]};
      return true;
    }
    if (!has_rule || !rule.has_daylight) return false;
    const int64_t year = YearOf(seconds);
    for (int64_t y = year; y <= year + 1; ++y) {
      Change changes[2];
      RuleChanges(y, changes);
      for (const Change& change : changes) {
        if (change.at > seconds) {
          *out = change;
          return true;
        }
      }
    }
    return false;
  }
};

// Makes zones from files and POSIX strings.
class TimeZoneLoader {
 public:
  // By any name but an abbreviation; null if unknown.
  static std::shared_ptr<const TimeZone> Load(std::string_view value);

  static std::shared_ptr<TimeZone> Make(std::string name) {
    std::shared_ptr<TimeZone> zone(std::make_unique<Access>());
    zone->name_ = std::move(name);
    return zone;
  }

  static std::shared_ptr<const TimeZone> Fixed(int offset, bool is_dst, std::string name,
                                               std::string abbreviation) {
    auto zone = Make(std::move(name));
    zone->fixed_offset_ = offset;
    zone->rep_ = std::make_unique<TimeZone::Rep>();
    zone->rep_->types.push_back({offset, is_dst, std::move(abbreviation)});
    return zone;
  }

  // From a file below kZoneDirectory whose path equals `name` but for case.
  static std::shared_ptr<const TimeZone> FromFile(std::string_view name) {
    std::string path;
    if (!FindPath(name, &path)) return nullptr;
    std::ifstream file(std::string(kZoneDirectory) + "/" + path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    auto zone = Make(path);
    zone->rep_ = std::make_unique<TimeZone::Rep>();
    if (bytes.size() > kMaxZoneFileBytes || !ReadFile(bytes, zone->rep_.get())) return nullptr;
    Simplify(zone.get());
    return zone;
  }

  // What an abbreviation means in a zone.
  static std::shared_ptr<const TimeZone> Named(std::string abbreviation, std::string_view zone) {
    const std::shared_ptr<const TimeZone> all = Load(zone);
    if (all == nullptr || all->rep_ == nullptr) return nullptr;
    auto out = Make(abbreviation);
    out->rep_ = std::make_unique<TimeZone::Rep>(*all->rep_);
    out->rep_->only = std::move(abbreviation);
    // A zone that never had the name means itself.
    if (out->rep_->NamedAt(0) == nullptr) out->rep_->only.clear();
    Simplify(out.get());
    return out;
  }

  static std::shared_ptr<const TimeZone> FromPosix(std::string_view text) {
    std::string name(text);
    for (char& c : name) c = Upper(c);
    auto zone = Make(name);
    zone->rep_ = std::make_unique<TimeZone::Rep>();
    zone->rep_->has_rule = true;
    if (!PosixReader(name).Read(&zone->rep_->rule)) return nullptr;
    const PosixRule& rule = zone->rep_->rule;
    zone->rep_->types.push_back(rule.standard);
    Simplify(zone.get());
    return zone;
  }

 private:
  struct Access : TimeZone {};

  static void Simplify(TimeZone* zone) {
    const TimeZone::Rep& rep = *zone->rep_;
    zone->fixed_ = rep.transitions.empty() && !(rep.has_rule && rep.rule.has_daylight);
    zone->fixed_offset_ = rep.TypeAt(0).offset;
  }

  static bool FindPath(std::string_view name, std::string* path) {
    if (name.empty() || name.size() > kMaxZoneNameBytes) return false;
    for (char c : name) {
      const bool allowed = (Lower(c) >= 'a' && Lower(c) <= 'z') || (c >= '0' && c <= '9') ||
                           c == '/' || c == '_' || c == '-' || c == '+';
      if (!allowed) return false;
    }
    namespace fs = std::filesystem;
    std::error_code error;
    std::string directory = kZoneDirectory;
    std::string_view rest = name;
    while (true) {
      const size_t slash = rest.find('/');
      const std::string_view part = rest.substr(0, slash);
      if (part.empty()) return false;
      std::string match;
      if (fs::exists(directory + "/" + std::string(part), error)) {
        match = part;
      } else {
        const std::string lower = ToLower(part);
        for (fs::directory_iterator it(directory, error), end; !error && it != end;
             it.increment(error)) {
          std::string entry = it->path().filename().string();
          if (ToLower(entry) == lower) {
            match = std::move(entry);
            break;
          }
        }
        if (match.empty()) return false;
      }
      directory += "/" + match;
      *path += (path->empty() ? "" : "/") + match;
      if (slash == std::string_view::npos) break;
      rest.remove_prefix(slash + 1);
    }
    return fs::is_regular_file(directory, error);
  }

  static int64_t ReadBig(std::string_view bytes, size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = (value << 8) | static_cast<uint8_t>(bytes[at + i]);
    return size == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
  }

  // One header of six counts and its data; `width` is that of times.
  static bool ReadFile(std::string_view bytes, TimeZone::Rep* rep) {
    constexpr size_t kHeader = 44;
    if (bytes.size() < kHeader || bytes.substr(0, 4) != "TZif") return false;
    const char version = bytes[4];
    size_t width = 4;
    auto data_size = [](std::string_view b, size_t w) {
      const auto leaps = static_cast<size_t>(ReadBig(b, 28, 4));
      const auto count = [&](size_t at) { return static_cast<size_t>(ReadBig(b, at, 4)); };
      return count(32) * (w + 1) + count(36) * 6 + count(40) + leaps * (w + 4) + count(24) +
             count(20);
    };
    if (version >= '2') {  // a second block with 64-bit times follows
      const size_t skip = kHeader + data_size(bytes, 4);
      if (bytes.size() < skip + kHeader) return false;
      bytes.remove_prefix(skip);
      width = 8;
    }
    const size_t size = data_size(bytes, width);
    if (bytes.size() < kHeader + size) return false;
    const auto times = static_cast<size_t>(ReadBig(bytes, 32, 4));
    const auto types = static_cast<size_t>(ReadBig(bytes, 36, 4));
    const auto characters = static_cast<size_t>(ReadBig(bytes, 40, 4));
    if (types == 0) return false;
    size_t at = kHeader;
    for (size_t i = 0; i < times; ++i, at += width) {
      rep->transitions.push_back(ReadBig(bytes, at, width));
    }
    for (size_t i = 0; i < times; ++i, ++at) {
      const auto kind = static_cast<uint8_t>(bytes[at]);
      if (kind >= types) return false;
      rep->kinds.push_back(kind);
    }
    const std::string_view names = bytes.substr(at + types * 6, characters);
    for (size_t i = 0; i < types; ++i, at += 6) {
      const auto name_at = static_cast<uint8_t>(bytes[at + 5]);
      if (name_at >= names.size()) return false;
      std::string_view name = names.substr(name_at);
      rep->types.push_back({static_cast<int>(ReadBig(bytes, at, 4)), bytes[at + 4] != 0,
                            std::string(name.substr(0, name.find('\0')))});
    }
    if (version >= '2') {
      std::string_view footer = bytes.substr(kHeader + size);
      if (footer.size() >= 2 && footer.front() == '\n') {
        footer.remove_prefix(1);
        footer = footer.substr(0, footer.find('\n'));
        rep->has_rule = !footer.empty() && PosixReader(footer).Read(&rep->rule);
      }
    }
    return true;
  }
};

TimeZone::TimeZone() = default;
TimeZone::~TimeZone() = default;

const TimeZone& TimeZone::Utc() {
  static const std::shared_ptr<const TimeZone> utc = TimeZoneLoader::Fixed(0, false, "UTC", "UTC");
  return *utc;
}

std::shared_ptr<const TimeZone> TimeZone::FixedOffset(int seconds_east, std::string name) {
  std::string abbreviation =
      fmt::format("{}{:02}", seconds_east < 0 ? '-' : '+', std::abs(seconds_east) / 3600);
  if (seconds_east % 3600 != 0) {
    abbreviation += fmt::format(":{:02}", std::abs(seconds_east) / 60 % 60);
  }
  if (seconds_east % 60 != 0) abbreviation += fmt::format(":{:02}", std::abs(seconds_east) % 60);
  if (name.empty()) {
    std::string west = abbreviation;
    west[0] = seconds_east < 0 ? '+' : '-';
    name = fmt::format("<{}>{}", abbreviation, west);
  }
  return TimeZoneLoader::Fixed(seconds_east, false, std::move(name), std::move(abbreviation));
}

std::shared_ptr<const TimeZone> TimeZone::Find(std::string_view name) {
  const std::string lower = ToLower(name);
  std::string upper(name);
  for (char& c : upper) c = Upper(c);
  if (const auto* changing = internal::FindChangingAbbreviation(lower)) {
    // Without the zone's file the abbreviation has the offset of the other table, if it is there.
    if (auto zone = TimeZoneLoader::Named(upper, changing->zone)) return zone;
  }
  if (const internal::ZoneAbbreviation* entry = internal::FindZoneAbbreviation(lower)) {
    return TimeZoneLoader::Fixed(entry->minutes_east * 60, entry->is_dst, upper, upper);
  }
  return TimeZoneLoader::Load(name);
}

std::shared_ptr<const TimeZone> TimeZoneLoader::Load(std::string_view value) {
  if (value.empty() || value.size() > kMaxZoneNameBytes) return nullptr;
  const std::string lower = ToLower(value);
  if (lower == "utc" || lower == "gmt") {
    const std::string name = lower == "utc" ? "UTC" : "GMT";
    return Fixed(0, false, name, name);
  }
  // Zones are immutable and few; loading one costs a file, and literals name them row by row.
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const TimeZone>> cache;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = cache.find(lower);
    if (found != cache.end()) return found->second;
  }
  std::shared_ptr<const TimeZone> zone = FromFile(value);
  if (zone == nullptr) zone = FromPosix(value);
  if (zone != nullptr) {
    std::lock_guard<std::mutex> lock(mutex);
    if (cache.size() >= kMaxCachedZones) cache.clear();
    cache.emplace(lower, zone);
  }
  return zone;
}

std::shared_ptr<const TimeZone> TimeZone::FindForSetting(std::string_view value) {
  std::string_view number = value;
  if (!number.empty() && number[0] == '+') number.remove_prefix(1);
  double hours = 0;
  auto parsed = std::from_chars(number.data(), number.data() + number.size(), hours);
  if (parsed.ec == std::errc() && parsed.ptr == number.data() + number.size() && hours > -168 &&
      hours < 168) {
    return FixedOffset(static_cast<int>(hours * 3600), "");
  }
  std::shared_ptr<const TimeZone> zone = TimeZoneLoader::Load(value);
  // A session's zone counts in minutes: PostgreSQL takes others for zones with leap seconds.
  return zone != nullptr && zone->OffsetAt(0) % 60 == 0 ? zone : nullptr;
}

int TimeZone::OffsetAt(int64_t utc_micros) const {
  if (fixed_) return fixed_offset_;
  const int64_t seconds = internal::FloorDiv(utc_micros, kMicrosPerSecond) + kUnixEpochSeconds;
  return (rep_->only.empty() ? rep_->TypeAt(seconds) : *rep_->NamedAt(seconds)).offset;
}

int TimeZone::OffsetAt(int64_t utc_micros, bool* is_dst, std::string_view* abbreviation) const {
  const int64_t seconds = internal::FloorDiv(utc_micros, kMicrosPerSecond) + kUnixEpochSeconds;
  const LocalType& type = rep_->only.empty() ? rep_->TypeAt(seconds) : *rep_->NamedAt(seconds);
  *is_dst = type.is_dst;
  *abbreviation = type.abbreviation;
  return type.offset;
}

int TimeZone::OffsetOfLocal(int64_t local_micros) const {
  if (fixed_) return fixed_offset_;
  const int64_t local = internal::FloorDiv(local_micros, kMicrosPerSecond) + kUnixEpochSeconds;
  const int offset = rep_->OffsetOfLocal(local);
  // An abbreviation is looked up at the time that the zone's own clock shows.
  return rep_->only.empty() ? offset : rep_->NamedAt(local - offset)->offset;
}

int TimeZone::Rep::OffsetOfLocal(int64_t local) const {
  const int before = TypeAt(local - 86400).offset;
  Change change;
  if (!NextChange(local - 86400, &change)) return before;
  const int after = change.type->offset;
  const int64_t with_before = local - before, with_after = local - after;
  if (with_before < change.at && with_after < change.at) return before;
  if (with_before > change.at && with_after >= change.at) return after;
  // A reading that never was, or was twice.
  return with_before > with_after ? before : after;
}

}  // namespace cellar
