// Operators and functions of dates, times and intervals.
#include <cmath>

#include "cellar/sql/expr/registry.h"
#include "cellar/types/datetime.h"

namespace cellar::sql {
namespace {

constexpr Volatility kStable = Volatility::kStable;

Result<Datum> Int(Result<int64_t> value) {
  if (!value.ok()) return std::move(value).status();
  return Datum::Int(*value);
}
Result<Datum> Interv(EvalContext& context, Result<Interval> value) {
  if (!value.ok()) return std::move(value).status();
  return MakeDatum(*value, context.arena());
}
Result<Interval> Negated(Datum interval) { return Negate(IntervalOf(interval)); }

// ---- + and - ----

Result<Datum> DateInterval(int64_t date, Interval interval) {
  CELLAR_TRY_ASSIGN(int64_t timestamp, TimestampFromDate(date));
  return Int(AddInterval(timestamp, interval));
}

void AddArithmetic(Registry& r) {
  r.Add(
      "+(date, int4) date",
      CELLAR_SCALAR { return Int(AddDays(a[0].int_value(), a[1].int_value())); });
  r.Add(
      "+(int4, date) date",
      CELLAR_SCALAR { return Int(AddDays(a[1].int_value(), a[0].int_value())); });
  r.Add(
      "-(date, int4) date",
      CELLAR_SCALAR { return Int(AddDays(a[0].int_value(), -a[1].int_value())); });
  r.Add(
      "-(date, date) int4",
      CELLAR_SCALAR { return Int(SubtractDates(a[0].int_value(), a[1].int_value())); });
  r.Add(
      "+(date, interval) timestamp",
      CELLAR_SCALAR { return DateInterval(a[0].int_value(), IntervalOf(a[1])); });
  r.Add(
      "+(interval, date) timestamp",
      CELLAR_SCALAR { return DateInterval(a[1].int_value(), IntervalOf(a[0])); });
  r.Add(
      "-(date, interval) timestamp", CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(Interval interval, Negated(a[1]));
        return DateInterval(a[0].int_value(), interval);
      });
  r.Add(
      "+(date, time) timestamp",
      CELLAR_SCALAR { return Int(AddTimeToDate(a[0].int_value(), a[1].int_value())); });
  r.Add(
      "+(time, date) timestamp",
      CELLAR_SCALAR { return Int(AddTimeToDate(a[1].int_value(), a[0].int_value())); });
  r.Add(
      "+(date, timetz) timestamptz",
      CELLAR_SCALAR { return Int(AddTimeTzToDate(a[0].int_value(), TimeTzOf(a[1]))); });
  r.Add(
      "+(timetz, date) timestamptz",
      CELLAR_SCALAR { return Int(AddTimeTzToDate(a[1].int_value(), TimeTzOf(a[0]))); });
  r.Add(
      "+(timestamp, interval) timestamp",
      CELLAR_SCALAR { return Int(AddInterval(a[0].int_value(), IntervalOf(a[1]))); });
  r.Add(
      "+(interval, timestamp) timestamp",
      CELLAR_SCALAR { return Int(AddInterval(a[1].int_value(), IntervalOf(a[0]))); });
  r.Add(
      "-(timestamp, interval) timestamp", CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(Interval interval, Negated(a[1]));
        return Int(AddInterval(a[0].int_value(), interval));
      });
  r.Add(
      "+(timestamptz, interval) timestamptz",
      CELLAR_SCALAR {
        return Int(AddIntervalTz(a[0].int_value(), IntervalOf(a[1]), ZoneOf(context)));
      },
      kStable);
  r.Add(
      "+(interval, timestamptz) timestamptz",
      CELLAR_SCALAR {
        return Int(AddIntervalTz(a[1].int_value(), IntervalOf(a[0]), ZoneOf(context)));
      },
      kStable);
  r.Add(
      "-(timestamptz, interval) timestamptz",
      CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(Interval interval, Negated(a[1]));
        return Int(AddIntervalTz(a[0].int_value(), interval, ZoneOf(context)));
      },
      kStable);
  auto subtract = CELLAR_SCALAR {
    return Interv(context, SubtractTimestamps(a[0].int_value(), a[1].int_value()));
  };
  r.Add("-(timestamp, timestamp) interval", subtract);
  r.Add("-(timestamptz, timestamptz) interval", subtract);
  r.Add(
      "+(time, interval) time",
      CELLAR_SCALAR { return Datum::Int(AddIntervalToTime(a[0].int_value(), IntervalOf(a[1]))); });
  r.Add(
      "+(interval, time) time",
      CELLAR_SCALAR { return Datum::Int(AddIntervalToTime(a[1].int_value(), IntervalOf(a[0]))); });
  r.Add(
      "-(time, interval) time", CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(Interval interval, Negated(a[1]));
        return Datum::Int(AddIntervalToTime(a[0].int_value(), interval));
      });
  r.Add(
      "-(time, time) interval", CELLAR_SCALAR {
        return MakeDatum(SubtractTimes(a[0].int_value(), a[1].int_value()), context.arena());
      });
  r.Add(
      "+(timetz, interval) timetz", CELLAR_SCALAR {
        return MakeDatum(AddIntervalToTimeTz(TimeTzOf(a[0]), IntervalOf(a[1])), context.arena());
      });
  r.Add(
      "+(interval, timetz) timetz", CELLAR_SCALAR {
        return MakeDatum(AddIntervalToTimeTz(TimeTzOf(a[1]), IntervalOf(a[0])), context.arena());
      });
  r.Add(
      "-(timetz, interval) timetz", CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(Interval interval, Negated(a[1]));
        return MakeDatum(AddIntervalToTimeTz(TimeTzOf(a[0]), interval), context.arena());
      });
  r.Add(
      "+(interval, interval) interval",
      CELLAR_SCALAR { return Interv(context, Add(IntervalOf(a[0]), IntervalOf(a[1]))); });
  r.Add(
      "-(interval, interval) interval",
      CELLAR_SCALAR { return Interv(context, Subtract(IntervalOf(a[0]), IntervalOf(a[1]))); });
  r.Add(
      "-(interval) interval", CELLAR_SCALAR { return Interv(context, Negated(a[0])); });
  r.Add(
      "*(interval, float8) interval",
      CELLAR_SCALAR { return Interv(context, Multiply(IntervalOf(a[0]), a[1].double_value())); });
  r.Add(
      "*(float8, interval) interval",
      CELLAR_SCALAR { return Interv(context, Multiply(IntervalOf(a[1]), a[0].double_value())); });
  r.Add(
      "/(interval, float8) interval",
      CELLAR_SCALAR { return Interv(context, Divide(IntervalOf(a[0]), a[1].double_value())); });
}

// ---- Fields ----

template <TypeId id, bool as_numeric>
Result<Datum> Part(EvalContext& context, const Expr&, Args a) {
  std::optional<DateField> field = FindDateField(a[0].bytes());
  if (!field.has_value()) {
    // date_part of a date is that of its timestamp.
    const bool as_timestamp = id == TypeId::kDate && !as_numeric;
    return UnknownUnit(a[0].bytes(), MakeType(as_timestamp ? TypeId::kTimestamp : id));
  }
  if (as_numeric) {
    return Extract(*field, a[1], MakeType(id), ZoneOf(context), context.arena());
  }
  return DatePart(*field, a[1], MakeType(id), ZoneOf(context));
}

template <TypeId id>
void AddPart(Registry& r, std::string_view extract, std::string_view date_part) {
  const Volatility volatility = id == TypeId::kTimestamptz ? kStable : Volatility::kImmutable;
  r.Add(extract, Part<id, true>, volatility);
  r.Add(date_part, Part<id, false>, volatility);
}

Result<Datum> Truncate(EvalContext&, const Expr&, Args a) {
  if (!IsFiniteTimestamp(a[1].int_value())) return a[1];
  std::optional<DateField> field = FindDateField(a[0].bytes());
  if (!field.has_value()) return UnknownUnit(a[0].bytes(), MakeType(TypeId::kTimestamp));
  return Int(TruncateTimestamp(*field, a[1].int_value()));
}
Result<Datum> TruncateTz(EvalContext& context, const Expr&, Args a) {
  if (!IsFiniteTimestamp(a[1].int_value())) return a[1];
  std::shared_ptr<const TimeZone> zone;
  if (a.size() == 3) {
    CELLAR_TRY_ASSIGN(zone, FindZone(a[2].bytes()));
  }
  std::optional<DateField> field = FindDateField(a[0].bytes());
  if (!field.has_value()) return UnknownUnit(a[0].bytes(), MakeType(TypeId::kTimestamptz));
  if (a.size() == 2) return Int(TruncateTimestampTz(*field, a[1].int_value(), ZoneOf(context)));
  return Int(TruncateTimestampTz(*field, a[1].int_value(), zone.get()));
}
Result<Datum> TruncateInt(EvalContext& context, const Expr&, Args a) {
  std::optional<DateField> field = FindDateField(a[0].bytes());
  if (!field.has_value()) return UnknownUnit(a[0].bytes(), MakeType(TypeId::kInterval));
  return Interv(context, TruncateInterval(*field, IntervalOf(a[1])));
}

void AddFields(Registry& r) {
  AddPart<TypeId::kDate>(r, "extract(text, date) numeric", "date_part(text, date) float8");
  AddPart<TypeId::kTime>(r, "extract(text, time) numeric", "date_part(text, time) float8");
  AddPart<TypeId::kTimetz>(r, "extract(text, timetz) numeric", "date_part(text, timetz) float8");
  AddPart<TypeId::kTimestamp>(r, "extract(text, timestamp) numeric",
                              "date_part(text, timestamp) float8");
  AddPart<TypeId::kTimestamptz>(r, "extract(text, timestamptz) numeric",
                                "date_part(text, timestamptz) float8");
  AddPart<TypeId::kInterval>(r, "extract(text, interval) numeric",
                             "date_part(text, interval) float8");
  r.Add("date_trunc(text, timestamp) timestamp", Truncate);
  r.Add("date_trunc(text, timestamptz) timestamptz", TruncateTz, kStable);
  r.Add("date_trunc(text, timestamptz, text) timestamptz", TruncateTz, kStable);
  r.Add("date_trunc(text, interval) interval", TruncateInt);
  auto bin = CELLAR_SCALAR {
    return Int(BinTimestamp(IntervalOf(a[0]), a[1].int_value(), a[2].int_value()));
  };
  r.Add("date_bin(interval, timestamp, timestamp) timestamp", bin);
  r.Add("date_bin(interval, timestamptz, timestamptz) timestamptz", bin);
}

// ---- The clock ----

int64_t Clock(EvalContext& context) {
  return context.clock_micros != nullptr ? context.clock_micros() : context.statement_micros;
}

// The precision of CURRENT_TIMESTAMP(p); -1 without one.
int PrecisionOf(Args a) { return a.empty() ? -1 : static_cast<int>(a[0].int_value()); }

Result<int64_t> LocalNow(EvalContext& context, Args a) {
  CELLAR_TRY_ASSIGN(int64_t local,
                    TimestampFromTimestampTz(context.transaction_micros, ZoneOf(context)));
  return a.empty() ? local : RoundMicros(local, PrecisionOf(a));
}

void AddClock(Registry& r) {
  auto now = CELLAR_SCALAR {
    int64_t micros = context.transaction_micros;
    return Datum::Int(a.empty() ? micros : RoundMicros(micros, PrecisionOf(a)));
  };
  r.Add("now() timestamptz", now, kStable);
  r.Add("transaction_timestamp() timestamptz", now, kStable);
  r.Add("current_timestamp() timestamptz", now, kStable);
  r.Add("current_timestamp(int4) timestamptz", now, kStable);
  r.Add(
      "statement_timestamp() timestamptz",
      CELLAR_SCALAR { return Datum::Int(context.statement_micros); }, kStable);
  r.Add(
      "clock_timestamp() timestamptz", CELLAR_SCALAR { return Datum::Int(Clock(context)); },
      Volatility::kVolatile);
  auto local_timestamp = CELLAR_SCALAR { return Int(LocalNow(context, a)); };
  r.Add("localtimestamp() timestamp", local_timestamp, kStable);
  r.Add("localtimestamp(int4) timestamp", local_timestamp, kStable);
  auto local_time = CELLAR_SCALAR {
    CELLAR_TRY_ASSIGN(int64_t local, LocalNow(context, a));
    return Datum::Int(TimeFromTimestamp(local));
  };
  r.Add("localtime() time", local_time, kStable);
  r.Add("localtime(int4) time", local_time, kStable);
  auto current_time = CELLAR_SCALAR {
    TimeTz out = TimeTzFromTimestampTz(context.transaction_micros, ZoneOf(context));
    if (!a.empty()) out.micros = RoundMicros(out.micros, PrecisionOf(a));
    return MakeDatum(out, context.arena());
  };
  r.Add("current_time() timetz", current_time, kStable);
  r.Add("current_time(int4) timetz", current_time, kStable);
  r.Add(
      "current_date() date",
      CELLAR_SCALAR {
        return Datum::Int(DateFromTimestampTz(context.transaction_micros, ZoneOf(context)));
      },
      kStable);
  r.Add(
      "timeofday() text",
      CELLAR_SCALAR {
        FormatSettings settings = context.format;
        settings.date_style = DateStyle::kPostgres;
        std::string out;
        AppendTimestampTz(Clock(context), settings, &out);
        return TextOf(context, out);
      },
      Volatility::kVolatile);
}

// ---- Zones ----

Result<std::shared_ptr<const TimeZone>> ZoneFor(const Expr& call, Datum zone) {
  if (call.function->args[0].id == TypeId::kInterval) return ZoneFromInterval(IntervalOf(zone));
  return FindZone(zone.bytes());
}

void AddZones(Registry& r) {
  auto to_instant = CELLAR_SCALAR {
    if (!IsFiniteTimestamp(a[1].int_value())) return a[1];
    CELLAR_TRY_ASSIGN(std::shared_ptr<const TimeZone> zone, ZoneFor(call, a[0]));
    return Int(TimestampTzFromTimestamp(a[1].int_value(), zone.get()));
  };
  auto to_local = CELLAR_SCALAR {
    if (!IsFiniteTimestamp(a[1].int_value())) return a[1];
    CELLAR_TRY_ASSIGN(std::shared_ptr<const TimeZone> zone, ZoneFor(call, a[0]));
    return Int(TimestampFromTimestampTz(a[1].int_value(), zone.get()));
  };
  auto time = CELLAR_SCALAR {
    CELLAR_TRY_ASSIGN(std::shared_ptr<const TimeZone> zone, ZoneFor(call, a[0]));
    int east = zone->OffsetAt(context.transaction_micros);
    return MakeDatum(TimeTzAtZone(TimeTzOf(a[1]), east), context.arena());
  };
  r.Add("timezone(text, timestamp) timestamptz", to_instant);
  r.Add("timezone(interval, timestamp) timestamptz", to_instant);
  r.Add("timezone(text, timestamptz) timestamp", to_local);
  r.Add("timezone(interval, timestamptz) timestamp", to_local);
  r.Add("timezone(text, timetz) timetz", time, kStable);
  r.Add("timezone(interval, timetz) timetz", time, kStable);
}

// ---- Constructors ----

void AddMakers(Registry& r) {
  r.Add(
      "make_date(int4, int4, int4) date", CELLAR_SCALAR {
        return Int(MakeDate(a[0].int_value(), a[1].int_value(), a[2].int_value()));
      });
  r.Add(
      "make_time(int4, int4, float8) time", CELLAR_SCALAR {
        return Int(MakeTime(a[0].int_value(), a[1].int_value(), a[2].double_value()));
      });
  r.Add(
      "make_timestamp(int4, int4, int4, int4, int4, float8) timestamp", CELLAR_SCALAR {
        return Int(MakeTimestamp(a[0].int_value(), a[1].int_value(), a[2].int_value(),
                                 a[3].int_value(), a[4].int_value(), a[5].double_value()));
      });
  auto make_timestamptz = CELLAR_SCALAR {
    CELLAR_TRY_ASSIGN(int64_t local,
                      MakeTimestamp(a[0].int_value(), a[1].int_value(), a[2].int_value(),
                                    a[3].int_value(), a[4].int_value(), a[5].double_value()));
    if (a.size() == 6) return Int(TimestampTzFromTimestamp(local, ZoneOf(context)));
    const std::string_view name = a[6].bytes();
    if (!name.empty() && name[0] >= '0' && name[0] <= '9') {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "invalid input syntax for type numeric time zone: \"{}\"", name)
          .WithHint("Numeric time zones must have \"-\" or \"+\" as first character.");
    }
    if (!name.empty() && (name[0] == '+' || name[0] == '-')) {
      // As in literals: east is positive.
      const Result<Datum> time = ParseDatum("00:00" + std::string(name), MakeType(TypeId::kTimetz),
                                            context.format, context.arena());
      if (!time.ok()) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "numeric time zone \"{}\" out of range", name);
      }
      const auto zone = TimeZone::FixedOffset(-TimeTzOf(*time).zone, "");
      return Int(TimestampTzFromTimestamp(local, zone.get()));
    }
    CELLAR_TRY_ASSIGN(std::shared_ptr<const TimeZone> zone, FindZone(name));
    return Int(TimestampTzFromTimestamp(local, zone.get()));
  };
  r.Add("make_timestamptz(int4, int4, int4, int4, int4, float8) timestamptz", make_timestamptz,
        kStable);
  r.Add("make_timestamptz(int4, int4, int4, int4, int4, float8, text) timestamptz",
        make_timestamptz, kStable);
  auto make_interval = CELLAR_SCALAR {
    const auto part = [&](size_t i) { return i < a.size() ? a[i].int_value() : 0; };
    return Interv(context, MakeInterval(part(0), part(1), part(2), part(3), part(4), part(5),
                                        a.size() > 6 ? a[6].double_value() : 0));
  };
  for (const char* signature :
       {"make_interval() interval", "make_interval(int4) interval",
        "make_interval(int4, int4) interval", "make_interval(int4, int4, int4) interval",
        "make_interval(int4, int4, int4, int4) interval",
        "make_interval(int4, int4, int4, int4, int4) interval",
        "make_interval(int4, int4, int4, int4, int4, int4) interval",
        "make_interval(int4, int4, int4, int4, int4, int4, float8) interval"}) {
    r.Add(signature, make_interval);
  }
}

void AddIntervals(Registry& r) {
  r.Add(
      "justify_hours(interval) interval",
      CELLAR_SCALAR { return Interv(context, JustifyHours(IntervalOf(a[0]))); });
  r.Add(
      "justify_days(interval) interval",
      CELLAR_SCALAR { return Interv(context, JustifyDays(IntervalOf(a[0]))); });
  r.Add(
      "justify_interval(interval) interval",
      CELLAR_SCALAR { return Interv(context, JustifyInterval(IntervalOf(a[0]))); });
  r.Add(
      "age(timestamp, timestamp) interval",
      CELLAR_SCALAR { return Interv(context, Age(a[0].int_value(), a[1].int_value())); });
  r.Add(
      "age(timestamptz, timestamptz) interval",
      CELLAR_SCALAR {
        return Interv(context, AgeTz(a[0].int_value(), a[1].int_value(), ZoneOf(context)));
      },
      kStable);
  // age(x) counts from midnight of the current date.
  r.Add(
      "age(timestamp) interval",
      CELLAR_SCALAR {
        int64_t today = DateFromTimestampTz(context.transaction_micros, ZoneOf(context));
        return Interv(context, Age(today * kMicrosPerDay, a[0].int_value()));
      },
      kStable);
  r.Add(
      "age(timestamptz) interval",
      CELLAR_SCALAR {
        int64_t today = DateFromTimestampTz(context.transaction_micros, ZoneOf(context));
        CELLAR_TRY_ASSIGN(int64_t midnight, TimestampTzFromDate(today, ZoneOf(context)));
        return Interv(context, AgeTz(midnight, a[0].int_value(), ZoneOf(context)));
      },
      kStable);
  auto finite_timestamp = CELLAR_SCALAR {
    return Datum::Bool(IsFiniteTimestamp(a[0].int_value()));
  };
  r.Add(
      "isfinite(date) bool", CELLAR_SCALAR { return Datum::Bool(IsFiniteDate(a[0].int_value())); });
  r.Add("isfinite(timestamp) bool", finite_timestamp);
  r.Add("isfinite(timestamptz) bool", finite_timestamp);
  r.Add(
      "isfinite(interval) bool", CELLAR_SCALAR { return Datum::Bool(true); });
  r.Add(
      "date(timestamp) date",
      CELLAR_SCALAR { return Datum::Int(DateFromTimestamp(a[0].int_value())); });
  r.Add(
      "date(timestamptz) date",
      CELLAR_SCALAR { return Datum::Int(DateFromTimestampTz(a[0].int_value(), ZoneOf(context))); },
      kStable);
}

// ---- OVERLAPS ----

// The standard's rule over two half-open periods whose ends may be NULL and in either order;
// `compare` orders two ends.
template <typename Compare>
Datum Overlaps(Datum start_a, Datum end_a, Datum start_b, Datum end_b, Compare compare) {
  const auto sort = [&](Datum* start, Datum* end) {
    if (start->is_null() || (!end->is_null() && compare(*start, *end) > 0)) std::swap(*start, *end);
  };
  sort(&start_a, &end_a);
  sort(&start_b, &end_b);
  if (start_a.is_null() || start_b.is_null()) return Datum();
  int order = compare(start_a, start_b);
  if (order == 0) {
    return end_a.is_null() || end_b.is_null() ? Datum() : Datum::Bool(true);
  }
  const Datum end = order > 0 ? end_b : end_a;
  const Datum start = order > 0 ? start_a : start_b;
  const Datum other_end = order > 0 ? end_a : end_b;
  if (end.is_null()) return Datum();
  if (compare(start, end) < 0) return Datum::Bool(true);
  return other_end.is_null() ? Datum() : Datum::Bool(false);
}

// A length in place of an end.
Result<Datum> EndOf(EvalContext& context, TypeId type, Datum start, Datum end, bool is_length) {
  if (!is_length) return end;
  if (start.is_null() || end.is_null()) return Datum();
  Interval length = IntervalOf(end);
  if (type == TypeId::kTime) return Datum::Int(AddIntervalToTime(start.int_value(), length));
  if (type == TypeId::kTimestamptz) {
    return Int(AddIntervalTz(start.int_value(), length, ZoneOf(context)));
  }
  return Int(AddInterval(start.int_value(), length));
}

template <TypeId id>
Result<Datum> OverlapsOf(EvalContext& context, const Expr& call, Args a) {
  const auto is_length = [&](size_t i) { return call.function->args[i].id == TypeId::kInterval; };
  CELLAR_TRY_ASSIGN(Datum end_a, EndOf(context, id, a[0], a[1], is_length(1)));
  CELLAR_TRY_ASSIGN(Datum end_b, EndOf(context, id, a[2], a[3], is_length(3)));
  return Overlaps(a[0], end_a, a[2], end_b,
                  [](Datum x, Datum y) { return CompareDatums(x, y, MakeType(id)); });
}

void AddOverlaps(Registry& r) {
  for (const char* s : {"overlaps(timestamp, timestamp, timestamp, timestamp) bool",
                        "overlaps(timestamp, interval, timestamp, interval) bool",
                        "overlaps(timestamp, timestamp, timestamp, interval) bool",
                        "overlaps(timestamp, interval, timestamp, timestamp) bool"}) {
    r.Add(s, OverlapsOf<TypeId::kTimestamp>).strict = false;
  }
  for (const char* s : {"overlaps(timestamptz, timestamptz, timestamptz, timestamptz) bool",
                        "overlaps(timestamptz, interval, timestamptz, interval) bool",
                        "overlaps(timestamptz, timestamptz, timestamptz, interval) bool",
                        "overlaps(timestamptz, interval, timestamptz, timestamptz) bool"}) {
    r.Add(s, OverlapsOf<TypeId::kTimestamptz>, kStable).strict = false;
  }
  for (const char* s :
       {"overlaps(time, time, time, time) bool", "overlaps(time, interval, time, interval) bool",
        "overlaps(time, time, time, interval) bool", "overlaps(time, interval, time, time) bool"}) {
    r.Add(s, OverlapsOf<TypeId::kTime>).strict = false;
  }
  r.Add("overlaps(timetz, timetz, timetz, timetz) bool", OverlapsOf<TypeId::kTimetz>).strict =
      false;
}

}  // namespace

void RegisterDateTime(Registry& r) {
  AddArithmetic(r);
  AddFields(r);
  AddClock(r);
  AddZones(r);
  AddMakers(r);
  AddIntervals(r);
  AddOverlaps(r);
}

}  // namespace cellar::sql
