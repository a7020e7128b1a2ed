// Functions that format: format, quoting, to_char and its opposites, sizes.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "cellar/sql/expr/quote.h"
#include "cellar/sql/expr/registry.h"
#include "cellar/sql/expr/text_util.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"
#include "cellar/types/to_char.h"

namespace cellar::sql {
namespace {

// Words that may not be used as a column or table name without quotes (every class of key words but
// "unreserved", as quote_ident has it).
bool IsReservedWord(std::string_view word) {
  static const std::unordered_set<std::string_view> words = {"all",
                                                             "analyse",
                                                             "analyze",
                                                             "and",
                                                             "any",
                                                             "array",
                                                             "as",
                                                             "asc",
                                                             "asymmetric",
                                                             "authorization",
                                                             "between",
                                                             "bigint",
                                                             "binary",
                                                             "bit",
                                                             "boolean",
                                                             "both",
                                                             "case",
                                                             "cast",
                                                             "char",
                                                             "character",
                                                             "check",
                                                             "coalesce",
                                                             "collate",
                                                             "collation",
                                                             "column",
                                                             "concurrently",
                                                             "constraint",
                                                             "create",
                                                             "cross",
                                                             "current_catalog",
                                                             "current_date",
                                                             "current_role",
                                                             "current_schema",
                                                             "current_time",
                                                             "current_timestamp",
                                                             "current_user",
                                                             "dec",
                                                             "decimal",
                                                             "default",
                                                             "deferrable",
                                                             "desc",
                                                             "distinct",
                                                             "do",
                                                             "else",
                                                             "end",
                                                             "except",
                                                             "exists",
                                                             "extract",
                                                             "false",
                                                             "fetch",
                                                             "float",
                                                             "for",
                                                             "foreign",
                                                             "freeze",
                                                             "from",
                                                             "full",
                                                             "grant",
                                                             "greatest",
                                                             "group",
                                                             "grouping",
                                                             "having",
                                                             "ilike",
                                                             "in",
                                                             "initially",
                                                             "inner",
                                                             "inout",
                                                             "int",
                                                             "integer",
                                                             "intersect",
                                                             "interval",
                                                             "into",
                                                             "is",
                                                             "isnull",
                                                             "join",
                                                             "lateral",
                                                             "leading",
                                                             "least",
                                                             "left",
                                                             "like",
                                                             "limit",
                                                             "localtime",
                                                             "localtimestamp",
                                                             "national",
                                                             "natural",
                                                             "nchar",
                                                             "none",
                                                             "normalize",
                                                             "not",
                                                             "notnull",
                                                             "null",
                                                             "nullif",
                                                             "numeric",
                                                             "offset",
                                                             "on",
                                                             "only",
                                                             "or",
                                                             "order",
                                                             "out",
                                                             "outer",
                                                             "overlaps",
                                                             "overlay",
                                                             "placing",
                                                             "position",
                                                             "precision",
                                                             "primary",
                                                             "real",
                                                             "references",
                                                             "returning",
                                                             "right",
                                                             "row",
                                                             "select",
                                                             "session_user",
                                                             "setof",
                                                             "similar",
                                                             "smallint",
                                                             "some",
                                                             "substring",
                                                             "symmetric",
                                                             "table",
                                                             "tablesample",
                                                             "then",
                                                             "time",
                                                             "timestamp",
                                                             "to",
                                                             "trailing",
                                                             "treat",
                                                             "trim",
                                                             "true",
                                                             "union",
                                                             "unique",
                                                             "user",
                                                             "using",
                                                             "values",
                                                             "varchar",
                                                             "variadic",
                                                             "verbose",
                                                             "when",
                                                             "where",
                                                             "window",
                                                             "with",
                                                             "xmlattributes",
                                                             "xmlconcat",
                                                             "xmlelement",
                                                             "xmlexists",
                                                             "xmlforest",
                                                             "xmlnamespaces",
                                                             "xmlparse",
                                                             "xmlpi",
                                                             "xmlroot",
                                                             "xmlserialize",
                                                             "xmltable"};
  return words.contains(word);
}

}  // namespace

std::string QuoteIdent(std::string_view name) {
  bool plain = !name.empty() && !(name[0] >= '0' && name[0] <= '9') && name[0] != '$';
  for (char c : name) {
    plain = plain && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
  }
  if (plain && !IsReservedWord(name)) return std::string(name);
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string QuoteText(std::string_view text) {
  std::string out;
  if (text.find('\\') != std::string_view::npos) out += 'E';
  out += '\'';
  for (char c : text) {
    if (c == '\'' || c == '\\') out += c;
    out += c;
  }
  return out + '\'';
}

namespace {

// format(): %[n$][-][width|*|*n$](s|I|L) and %%. One call.
class FormatCall {
 public:
  FormatCall(EvalContext& context, const Expr& call, Args args)
      : context_(context), call_(call), args_(args), in_(args[0].bytes()) {}

  Result<Datum> Run() {
    while (pos_ < in_.size()) {
      char c = in_[pos_++];
      CELLAR_TRY(MayGrow(context_, out_, 1));
      if (c != '%') {
        out_ += c;
        continue;
      }
      if (pos_ >= in_.size()) return Unterminated();
      if (in_[pos_] == '%') {
        out_ += '%';
        ++pos_;
        continue;
      }
      CELLAR_TRY(Specifier());
    }
    return TextOf(context_, out_);
  }

 private:
  static Status Error(std::string message) {
    return Status(Code::kInvalid, std::move(message))
        .WithSqlState(sqlstate::kInvalidParameterValue);
  }
  static Status OutOfRange() {
    return SqlError(Code::kInvalid, sqlstate::kNumericValueOutOfRange, "number is out of range");
  }
  static Status Unterminated() {
    return Error("unterminated format() type specifier").WithHint("For a single \"%\" use \"%%\".");
  }

  // -1 when there is no number.
  Result<int64_t> Number() {
    if (pos_ >= in_.size() || in_[pos_] < '0' || in_[pos_] > '9') return int64_t{-1};
    int64_t value = 0;
    while (pos_ < in_.size() && in_[pos_] >= '0' && in_[pos_] <= '9') {
      value = value * 10 + (in_[pos_++] - '0');
      if (value > INT32_MAX) return OutOfRange();
    }
    return value;
  }

  Result<int64_t> TakeArgument(int64_t position) {
    if (position < 0)
      position = ++next_;
    else
      next_ = position;
    if (position == 0) {
      return Error("format specifies argument 0, but arguments are numbered from 1");
    }
    if (static_cast<size_t>(position) >= args_.size())
      return Error("too few arguments for format()");
    return position;
  }

  // A width that is given as an argument: any that reads as an integer; 0 for NULL. Errors: 22003.
  Result<int64_t> WidthOf(size_t at) {
    if (args_[at].is_null()) return int64_t{0};
    const Type type = MakeType(TypeId::kInt4);
    CELLAR_TRY_ASSIGN(const Datum width,
                      ParseDatum(OutputText(args_[at], call_.args[at]->type, context_), type,
                                 context_.format, context_.arena()));
    if (width.int_value() == INT32_MIN) return OutOfRange();
    return width.int_value();
  }

  Status Specifier() {
    int64_t position = -1, width = -1;
    CELLAR_TRY_ASSIGN(int64_t number, Number());
    if (number >= 0) {
      if (pos_ < in_.size() && in_[pos_] == '$') {
        position = number;
        ++pos_;
        if (position == 0) {
          return Error("format specifies argument 0, but arguments are numbered from 1");
        }
      } else {
        width = number;
      }
    }
    bool left = false;
    while (pos_ < in_.size() && in_[pos_] == '-') left = true, ++pos_;
    if (width < 0 && pos_ < in_.size() && in_[pos_] == '*') {
      ++pos_;
      CELLAR_TRY_ASSIGN(int64_t index, Number());
      if (index >= 0) {
        if (pos_ >= in_.size() || in_[pos_] != '$') {
          return Error("width argument position must be ended by \"$\"");
        }
        ++pos_;
      }
      CELLAR_TRY_ASSIGN(int64_t at, TakeArgument(index));
      CELLAR_TRY_ASSIGN(width, WidthOf(static_cast<size_t>(at)));
      if (width < 0) left = true, width = -width;
    } else if (width < 0) {
      CELLAR_TRY_ASSIGN(width, Number());
    }
    if (pos_ >= in_.size()) return Unterminated();
    char kind = in_[pos_];
    if (kind != 's' && kind != 'I' && kind != 'L') {
      return Error(fmt::format("unrecognized format() type specifier \"{}\"",
                               in_.substr(pos_, CharSize(kind))))
          .WithHint("For a single \"%\" use \"%%\".");
    }
    ++pos_;
    CELLAR_TRY_ASSIGN(int64_t at, TakeArgument(position));
    return Append(static_cast<size_t>(at), kind, std::max<int64_t>(width, 0), left);
  }

  Status Append(size_t at, char kind, int64_t width, bool left) {
    std::string text;
    if (args_[at].is_null()) {
      if (kind == 'I') {
        return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                        "null values cannot be formatted as an SQL identifier");
      }
      if (kind == 'L') text = "NULL";
    } else {
      text = OutputText(args_[at], call_.args[at]->type, context_);
      CELLAR_TRY(MayGrow(context_, out_, text.size()));
      if (kind == 'I') text = QuoteIdent(text);
      if (kind == 'L') text = QuoteText(text);
    }
    const int64_t chars = static_cast<int64_t>(CountChars(text));
    const auto pad = static_cast<size_t>(std::max<int64_t>(0, width - chars));
    CELLAR_TRY(MayGrow(context_, out_, text.size() + pad));
    if (!left) out_.append(pad, ' ');
    out_ += text;
    if (left) out_.append(pad, ' ');
    return Status();
  }

  EvalContext& context_;
  const Expr& call_;
  Args args_;
  std::string_view in_;
  size_t pos_ = 0;
  int64_t next_ = 0;
  std::string out_;
};

Result<Datum> Format(EvalContext& context, const Expr& call, Args a) {
  if (a[0].is_null()) return Datum();
  return FormatCall(context, call, a).Run();
}

template <typename F>
Result<Datum> Printed(EvalContext& context, F f) {
  std::string out;
  CELLAR_TRY(f(&out));
  return TextOf(context, out);
}

// pg_size_pretty: a whole number of the greatest unit that leaves four digits or more. Values stay
// doubled from the second unit on, so that the last step can round.
Result<std::string> PrettySize(EvalContext& context, std::string_view size) {
  static constexpr struct {
    std::string_view name;
    int64_t limit;
    int bits;
    bool round;
  } kUnits[] = {{"bytes", 10240, 0, false}, {"kB", 20479, 10, true}, {"MB", 20479, 20, true},
                {"GB", 20479, 30, true},    {"TB", 20479, 40, true}, {"PB", 20479, 50, true}};
  Arena* const arena = context.arena();
  const auto whole = [arena](int64_t value) { return numeric::FromInt64(value, arena); };
  for (size_t i = 0; i < std::size(kUnits); ++i) {
    const auto& unit = kUnits[i];
    if (i + 1 == std::size(kUnits) ||
        numeric::Compare(numeric::Abs(size, arena), whole(unit.limit)) < 0) {
      if (unit.round) {
        const bool negative = numeric::SignOf(size) < 0;
        CELLAR_TRY_ASSIGN(size, numeric::Add(size, whole(negative ? -1 : 1), arena));
        CELLAR_TRY_ASSIGN(size, numeric::DivideTruncated(size, whole(2), arena));
      }
      std::string text;
      numeric::AppendText(size, &text);
      return text + " " + std::string(unit.name);
    }
    const auto& next = kUnits[i + 1];
    const int shift = next.bits - unit.bits - (next.round ? 1 : 0) + (unit.round ? 1 : 0);
    CELLAR_TRY_ASSIGN(size, numeric::DivideTruncated(size, whole(int64_t{1} << shift), arena));
  }
  return InternalError("pg_size_pretty found no unit");
}

Result<Datum> SizeBytes(EvalContext& context, const Expr&, Args a) {
  std::string_view text = a[0].bytes();
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  size_t end = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.' ||
                               text[end] == '-' || text[end] == '+' ||
                               ((text[end] == 'e' || text[end] == 'E') && end + 1 < text.size() &&
                                (text[end + 1] == '-' || text[end + 1] == '+' ||
                                 (text[end + 1] >= '0' && text[end + 1] <= '9'))))) {
    ++end;
  }
  Status invalid = SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                            "invalid size: \"{}\"", a[0].bytes());
  Result<std::string_view> number = numeric::Parse(text.substr(0, end), context.arena());
  if (!number.ok()) return invalid;
  text.remove_prefix(end);
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  std::string unit;
  AppendLower(text, &unit);
  int bits = unit.empty() || unit == "bytes" || unit == "b" ? 0
             : unit == "kb"                                 ? 10
             : unit == "mb"                                 ? 20
             : unit == "gb"                                 ? 30
             : unit == "tb"                                 ? 40
             : unit == "pb"                                 ? 50
                                                            : -1;
  if (bits < 0) {
    return std::move(invalid)
        .WithDetail(fmt::format("Invalid size unit: \"{}\".", text))
        .WithHint("Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".");
  }
  std::string_view factor = numeric::FromInt64(int64_t{1} << bits, context.arena());
  CELLAR_TRY_ASSIGN(std::string_view product, numeric::Multiply(*number, factor, context.arena()));
  CELLAR_TRY_ASSIGN(int64_t out, numeric::ToInt64(product));
  return Datum::Int(out);
}

// quote_literal. Quotes double at most.
Result<Datum> Quoted(EvalContext& context, std::string_view text) {
  CELLAR_TRY(CheckValueSize(text.size()));
  return TextOf(context, QuoteText(text));
}

void AddToChar(Registry& r) {
  r.Add(
      "to_char(timestamp, text) text",
      CELLAR_SCALAR {
        if (!IsFiniteTimestamp(a[0].int_value()) || a[1].bytes().empty()) return Datum();
        return Printed(context, [&](std::string* out) {
          return TimestampToChar(a[0].int_value(), a[1].bytes(), out);
        });
      },
      Volatility::kStable);
  r.Add(
      "to_char(timestamptz, text) text",
      CELLAR_SCALAR {
        if (!IsFiniteTimestamp(a[0].int_value()) || a[1].bytes().empty()) return Datum();
        return Printed(context, [&](std::string* out) {
          return TimestampTzToChar(a[0].int_value(), a[1].bytes(), ZoneOf(context), out);
        });
      },
      Volatility::kStable);
  r.Add(
      "to_char(interval, text) text",
      CELLAR_SCALAR {
        if (a[1].bytes().empty()) return Datum();
        return Printed(context, [&](std::string* out) {
          return IntervalToChar(IntervalOf(a[0]), a[1].bytes(), out);
        });
      },
      Volatility::kStable);
  r.Add(
      "to_char(numeric, text) text",
      CELLAR_SCALAR {
        return Printed(context, [&](std::string* out) {
          return NumericToChar(a[0].bytes(), a[1].bytes(), out);
        });
      },
      Volatility::kStable);
  auto ints = CELLAR_SCALAR {
    return Printed(context, [&](std::string* out) {
      const bool is_int4 = call.function->args[0].id == TypeId::kInt4;
      return Int64ToChar(a[0].int_value(), a[1].bytes(), out, is_int4 ? INT32_MAX : INT64_MAX);
    });
  };
  r.Add("to_char(int4, text) text", ints, Volatility::kStable);
  r.Add("to_char(int8, text) text", ints, Volatility::kStable);
  auto doubles = CELLAR_SCALAR {
    return Printed(context, [&](std::string* out) {
      const bool is_float4 = call.function->args[0].id == TypeId::kFloat4;
      return DoubleToChar(a[0].double_value(), a[1].bytes(), out, is_float4 ? 6 : 15);
    });
  };
  r.Add("to_char(float4, text) text", doubles, Volatility::kStable);
  r.Add("to_char(float8, text) text", doubles, Volatility::kStable);
  r.Add(
      "to_number(text, text) numeric",
      CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(std::string_view out,
                          ToNumber(a[0].bytes(), a[1].bytes(), context.arena()));
        return Datum::Bytes(out);
      },
      Volatility::kStable);
  r.Add(
      "to_date(text, text) date",
      CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(int64_t out, ToDate(a[0].bytes(), a[1].bytes()));
        return Datum::Int(out);
      },
      Volatility::kStable);
  r.Add(
      "to_timestamp(text, text) timestamptz",
      CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(int64_t out, ToTimestampTz(a[0].bytes(), a[1].bytes(), ZoneOf(context)));
        return Datum::Int(out);
      },
      Volatility::kStable);
  r.Add(
      "to_timestamp(float8) timestamptz", CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(int64_t out, TimestampTzFromUnix(a[0].double_value()));
        return Datum::Int(out);
      });
}

}  // namespace

void RegisterTextFormats(Registry& r) {
  r.Add("format(text) text", Format, Volatility::kStable).strict = false;
  r.Add("format(text, any...) text", Format, Volatility::kStable).strict = false;
  r.Add(
      "quote_ident(text) text", CELLAR_SCALAR {
        CELLAR_TRY(CheckValueSize(a[0].bytes().size()));
        return TextOf(context, QuoteIdent(a[0].bytes()));
      });
  r.Add(
      "quote_literal(text) text", CELLAR_SCALAR { return Quoted(context, a[0].bytes()); });
  r.Add(
      "quote_literal(anyelement) text",
      CELLAR_SCALAR { return Quoted(context, CastText(a[0], call.args[0]->type, context)); },
      Volatility::kStable);
  auto nullable = CELLAR_SCALAR {
    if (a[0].is_null()) return Datum::Bytes("NULL");
    return Quoted(context, CastText(a[0], call.args[0]->type, context));
  };
  r.Add("quote_nullable(text) text", nullable).strict = false;
  r.Add("quote_nullable(anyelement) text", nullable, Volatility::kStable).strict = false;
  r.Add(
      "pg_size_pretty(int8) text", CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(
            const std::string text,
            PrettySize(context, numeric::FromInt64(a[0].int_value(), context.arena())));
        return TextOf(context, text);
      });
  r.Add(
      "pg_size_pretty(numeric) text", CELLAR_SCALAR {
        CELLAR_TRY_ASSIGN(const std::string text, PrettySize(context, a[0].bytes()));
        return TextOf(context, text);
      });
  r.Add("pg_size_bytes(text) int8", SizeBytes);
  AddToChar(r);
}

}  // namespace cellar::sql
