// Filters: as expressions of SQL, and as ranges of keys.
#include <algorithm>
#include <cmath>

#include "cellar/base/sqlstate.h"
#include "cellar/session/tables_internal.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session::tables {
namespace {

using Op = Filter::Op;

// Ranges that a filter may cut the index into; beyond, it is left to the rows.
constexpr size_t kMaxRanges = 1000;

Status WrongArguments() {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                  "a node of the filter has a wrong number of arguments");
}

Result<std::string> LiteralText(const Filter& filter, bool text_typed) {
  const Cell& cell = filter.literal();
  std::string text;
  switch (cell.kind()) {
    case Cell::Kind::kNull: text = "NULL"; break;
    case Cell::Kind::kBool: text = cell.int_value() != 0 ? "true" : "false"; break;
    case Cell::Kind::kInt: text = fmt::format("({})", cell.int_value()); break;
    case Cell::Kind::kDouble: {
      std::string number;
      AppendDatumText(Datum::Double(cell.double_value()), MakeType(TypeId::kFloat8),
                      FormatSettings(), &number);
      text = fmt::format("'{}'::float8", number);
      break;
    }
    case Cell::Kind::kText:
      if (!IsValidText(cell.bytes())) {
        return SqlError(Code::kInvalid, sqlstate::kCharacterNotInRepertoire,
                        "a literal of the filter is no valid text");
      }
      text = sql::QuoteLiteral(cell.bytes());
      if (text_typed && filter.literal_type().empty()) text += "::text";
      break;
    case Cell::Kind::kBytes: {
      text = "'\\x";
      for (unsigned char byte : cell.bytes()) text += fmt::format("{:02x}", byte);
      text += "'::bytea";
      break;
    }
  }
  if (filter.literal_type().empty()) return text;
  // Parsed by itself first, so that it is a type and nothing else.
  CELLAR_TRY_ASSIGN(ast::TypeName type, sql::ParseTypeName(filter.literal_type()));
  if (cell.kind() == Cell::Kind::kBytes) text.resize(text.size() - std::string("::bytea").size());
  return fmt::format("CAST({} AS {})", text, sql::DeparseType(type));
}

std::string_view SymbolOf(Op op) {
  switch (op) {
    case Op::kAnd: return "AND";
    case Op::kOr: return "OR";
    case Op::kXor:
    case Op::kNotEqual: return "<>";
    case Op::kEqual: return "=";
    case Op::kLess: return "<";
    case Op::kLessOrEqual: return "<=";
    case Op::kGreater: return ">";
    case Op::kGreaterOrEqual: return ">=";
    case Op::kConcat: return "||";
    case Op::kAdd: return "+";
    case Op::kSubtract: return "-";
    case Op::kMultiply: return "*";
    case Op::kDivide: return "/";
    case Op::kModulo: return "%";
    default: return "";
  }
}

Status Print(const Filter& filter, std::string_view table, bool text_typed, std::string* out) {
  const std::vector<Filter>& args = filter.args();
  auto print = [&](size_t i, bool typed = false) { return Print(args[i], table, typed, out); };
  auto need = [&](size_t count) { return args.size() == count ? Status() : WrongArguments(); };
  switch (filter.op()) {
    case Op::kLiteral: {
      CELLAR_TRY_ASSIGN(std::string text, LiteralText(filter, text_typed));
      *out += text;
      return Status();
    }
    case Op::kColumn:
      *out += fmt::format("{}.{}", table, sql::QuoteIdentifier(filter.column()));
      return Status();
    case Op::kAnd:
    case Op::kOr:
      if (args.empty()) {
        *out += filter.op() == Op::kAnd ? "true" : "false";
        return Status();
      }
      *out += "(";
      for (size_t i = 0; i < args.size(); ++i) {
        if (i > 0) *out += filter.op() == Op::kAnd ? " AND " : " OR ";
        CELLAR_TRY(print(i));
      }
      *out += ")";
      return Status();
    case Op::kNot:
    case Op::kNegate:
      CELLAR_TRY(need(1));
      *out += filter.op() == Op::kNot ? "(NOT " : "(- ";
      CELLAR_TRY(print(0));
      *out += ")";
      return Status();
    case Op::kIsNull:
    case Op::kIsNotNull:
      CELLAR_TRY(need(1));
      *out += "(";
      CELLAR_TRY(print(0));
      *out += filter.op() == Op::kIsNull ? " IS NULL)" : " IS NOT NULL)";
      return Status();
    case Op::kIn:
      if (args.empty()) return WrongArguments();
      if (args.size() == 1) {
        *out += "false";
        return Status();
      }
      *out += "(";
      CELLAR_TRY(print(0));
      *out += " IN (";
      for (size_t i = 1; i < args.size(); ++i) {
        if (i > 1) *out += ", ";
        CELLAR_TRY(print(i));
      }
      *out += "))";
      return Status();
    case Op::kXor:
      CELLAR_TRY(need(2));
      *out += "(CAST(";
      CELLAR_TRY(print(0));
      *out += " AS bool) <> CAST(";
      CELLAR_TRY(print(1));
      *out += " AS bool))";
      return Status();
    case Op::kStartsWith:
      CELLAR_TRY(need(2));
      *out += "(substr(";
      CELLAR_TRY(print(0, true));
      *out += ", 1, length(";
      CELLAR_TRY(print(1, true));
      *out += ")) = ";
      CELLAR_TRY(print(1, true));
      *out += ")";
      return Status();
    case Op::kEndsWith:
      CELLAR_TRY(need(2));
      *out += "(substr(";
      CELLAR_TRY(print(0, true));
      *out += ", greatest(length(";
      CELLAR_TRY(print(0, true));
      *out += ") - length(";
      CELLAR_TRY(print(1, true));
      *out += ") + 1, 1)) = ";
      CELLAR_TRY(print(1, true));
      *out += ")";
      return Status();
    case Op::kContains:
      CELLAR_TRY(need(2));
      *out += "(position(";
      CELLAR_TRY(print(1, true));
      *out += " IN ";
      CELLAR_TRY(print(0, true));
      *out += ") > 0)";
      return Status();
    default: break;
  }
  const std::string_view symbol = SymbolOf(filter.op());
  if (symbol.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "unknown operator {} in the filter", static_cast<int>(filter.op()));
  }
  CELLAR_TRY(need(2));
  const bool typed = filter.op() == Op::kConcat;
  *out += "(";
  CELLAR_TRY(print(0, typed));
  *out += fmt::format(" {} ", symbol);
  CELLAR_TRY(print(1, typed));
  *out += ")";
  return Status();
}

// "2024-02-29", "2024-02-29 12:00", "..T12:00:00.5", with a time zone "+01:00", "-08" or "Z" for
// those that have one: what means the same whatever the settings and the time are.
bool IsPlainDateTime(std::string_view text, TypeId type) {
  size_t at = 0;
  auto digits = [&](size_t least, size_t most) {
    const size_t start = at;
    while (at < text.size() && at - start < most && text[at] >= '0' && text[at] <= '9') ++at;
    return at - start >= least;
  };
  auto take = [&](std::string_view any) {
    if (at == text.size() || any.find(text[at]) == std::string_view::npos) return false;
    ++at;
    return true;
  };
  const bool date = digits(4, 4) && take("-") && digits(2, 2) && take("-") && digits(2, 2);
  if (!date || type == TypeId::kDate) return date && at == text.size();
  if (take(" T")) {
    if (!digits(2, 2) || !take(":") || !digits(2, 2)) return false;
    if (take(":") && !digits(2, 2)) return false;
    if (take(".") && !digits(1, 6)) return false;
  }
  if (type == TypeId::kTimestamp) return at == text.size();
  if (type != TypeId::kTimestamptz) return false;
  if (take("Z")) return at == text.size();
  return take("+-") && digits(2, 2) && (!take(":") || digits(2, 2)) && at == text.size();
}

// Is a literal's type the column's own?
bool NamesType(std::string_view name, Type type) {
  type.modifier = -1;
  if (name == FormatType(type)) return true;
  switch (type.id) {
    case TypeId::kTimestamp: return name == "timestamp";
    case TypeId::kTimestamptz: return name == "timestamptz";
    default: return false;
  }
}

// The literal as a value of the column that it is compared with, when the comparison is one of the
// column's own type.
std::optional<Datum> ComparedWith(const Filter& literal, Type type, Arena* arena) {
  if (literal.op() != Op::kLiteral) return std::nullopt;
  if (!literal.literal_type().empty() && !NamesType(literal.literal_type(), type))
    return std::nullopt;
  const Cell& cell = literal.literal();
  type.modifier = -1;  // a value that is too long for the column is compared as it is
  if (type.array) return std::nullopt;
  switch (cell.kind()) {
    case Cell::Kind::kInt:
      if (!IsInteger(type) && type.id != TypeId::kNumeric &&
          !(type.id == TypeId::kFloat8 && std::abs(cell.int_value()) < (int64_t{1} << 53))) {
        return std::nullopt;
      }
      break;
    case Cell::Kind::kDouble:
      if (type.id != TypeId::kFloat8) return std::nullopt;
      break;
    case Cell::Kind::kBool:
      if (type.id != TypeId::kBool) return std::nullopt;
      break;
    case Cell::Kind::kBytes:
      if (type.id != TypeId::kBytea) return std::nullopt;
      break;
    case Cell::Kind::kText:
      // Blanks at the end of char(n) do not count; 'now' and the like are no constants.
      if (type.id == TypeId::kBpchar) return std::nullopt;
      if (IsDateTime(type) && !IsPlainDateTime(cell.bytes(), type.id)) return std::nullopt;
      break;
    case Cell::Kind::kNull: return std::nullopt;
  }
  Result<Datum> value = cell.To(type, arena);
  if (!value.ok() || value->is_null()) return std::nullopt;
  return *value;
}

std::optional<FilterOp> ScanOpOf(Op op, bool flipped) {
  switch (op) {
    case Op::kEqual: return FilterOp::kEqual;
    case Op::kNotEqual: return FilterOp::kNotEqual;
    case Op::kLess: return flipped ? FilterOp::kGreater : FilterOp::kLess;
    case Op::kLessOrEqual: return flipped ? FilterOp::kGreaterOrEqual : FilterOp::kLessOrEqual;
    case Op::kGreater: return flipped ? FilterOp::kLess : FilterOp::kGreater;
    case Op::kGreaterOrEqual: return flipped ? FilterOp::kLessOrEqual : FilterOp::kGreaterOrEqual;
    default: return std::nullopt;
  }
}

class Cutter {
 public:
  Cutter(const catalog::TableDescriptor& table, std::span<const codec::KeyColumn> columns,
         std::span<const codec::ColumnId> ids, Arena* arena)
      : table_(table), columns_(columns), ids_(ids), arena_(arena) {}

  std::vector<KeyRange> Run(const Filter& filter) {
    if (filter.op() == Op::kAnd) {
      for (const Filter& arg : filter.args()) conjuncts_.push_back(&arg);
    } else {
      conjuncts_.push_back(&filter);
    }
    std::vector<std::vector<Datum>> prefixes(1);
    for (size_t at = 0; at < columns_.size(); ++at) {
      if (columns_[at].type.collation != nullptr) break;
      std::optional<std::vector<Datum>> values = EqualTo(at);
      if (!values || values->size() * prefixes.size() > kMaxRanges) return Bounded(prefixes, at);
      std::vector<std::vector<Datum>> longer;
      for (const std::vector<Datum>& prefix : prefixes) {
        for (const Datum value : *values) {
          longer.push_back(prefix);
          longer.back().push_back(value);
        }
      }
      prefixes = std::move(longer);
      if (at + 1 == columns_.size()) return Bounded(prefixes, at + 1);
    }
    return Bounded(prefixes, prefixes.empty() ? 0 : prefixes[0].size());
  }

 private:
  bool IsColumn(const Filter& filter, size_t at) const {
    if (filter.op() != Op::kColumn) return false;
    const catalog::ColumnDescriptor* column = table_.FindColumn(ids_[at]);
    return column != nullptr && column->name == filter.column();
  }

  // The values that the column has where the filter is true; nullopt: others too.
  std::optional<std::vector<Datum>> EqualTo(size_t at) {
    for (const Filter* conjunct : conjuncts_) {
      const std::vector<Filter>& args = conjunct->args();
      if (conjunct->op() == Op::kEqual && args.size() == 2) {
        for (size_t side : {size_t{0}, size_t{1}}) {
          if (!IsColumn(args[side], at)) continue;
          std::optional<Datum> value = ComparedWith(args[1 - side], columns_[at].type, arena_);
          if (value) return std::vector<Datum>{*value};
        }
      }
      if (conjunct->op() == Op::kIsNull && args.size() == 1 && IsColumn(args[0], at)) {
        return std::vector<Datum>{Datum()};
      }
      if (conjunct->op() == Op::kIn && args.size() > 1 && IsColumn(args[0], at)) {
        std::vector<Datum> values;
        for (size_t i = 1; i < args.size(); ++i) {
          std::optional<Datum> value = ComparedWith(args[i], columns_[at].type, arena_);
          if (!value) break;
          values.push_back(*value);
        }
        if (values.size() + 1 == args.size()) return values;
      }
    }
    return std::nullopt;
  }

  struct Limit {
    std::optional<Datum> value;
    bool inclusive = false;
  };

  void Narrow(Limit* limit, Datum value, bool inclusive, bool lower, Type type) {
    if (limit->value) {
      const int order = CompareDatums(value, *limit->value, type);
      const bool tighter = lower ? order > 0 : order < 0;
      if (!tighter && !(order == 0 && !inclusive)) return;
    }
    limit->value = value;
    limit->inclusive = inclusive;
  }

  // The least text that is greater than all that begin with `prefix`; none: there is no such.
  std::optional<Datum> AfterPrefix(std::string_view prefix) {
    std::string next(prefix);
    // Texts are ordered by bytes; a bound need be no text itself.
    while (!next.empty() && static_cast<unsigned char>(next.back()) == 0xff) next.pop_back();
    if (next.empty()) return std::nullopt;
    next.back() = static_cast<char>(static_cast<unsigned char>(next.back()) + 1);
    return Datum::Bytes(arena_->Copy(next));
  }

  std::vector<KeyRange> Bounded(const std::vector<std::vector<Datum>>& prefixes, size_t at) {
    Limit lower, upper;
    bool not_null = false;
    if (at < columns_.size() && columns_[at].type.collation == nullptr) {
      const Type type = columns_[at].type;
      for (const Filter* conjunct : conjuncts_) {
        const std::vector<Filter>& args = conjunct->args();
        if (conjunct->op() == Op::kIsNotNull && args.size() == 1 && IsColumn(args[0], at)) {
          not_null = true;
        }
        if (args.size() != 2) continue;
        if (conjunct->op() == Op::kStartsWith && IsColumn(args[0], at) &&
            (type.id == TypeId::kText || type.id == TypeId::kVarchar ||
             type.id == TypeId::kBytea) &&
            !type.array) {
          std::optional<Datum> value = ComparedWith(args[1], type, arena_);
          if (!value) continue;
          Narrow(&lower, *value, true, true, type);
          std::optional<Datum> end = AfterPrefix(value->bytes());
          if (end) Narrow(&upper, *end, false, false, type);
          continue;
        }
        for (size_t side : {size_t{0}, size_t{1}}) {
          if (!IsColumn(args[side], at)) continue;
          std::optional<Datum> value = ComparedWith(args[1 - side], type, arena_);
          if (!value) continue;
          const bool flipped = side == 1;
          switch (conjunct->op()) {
            case Op::kLess:
            case Op::kLessOrEqual:
              Narrow(flipped ? &lower : &upper, *value, conjunct->op() == Op::kLessOrEqual, flipped,
                     type);
              break;
            case Op::kGreater:
            case Op::kGreaterOrEqual:
              Narrow(flipped ? &upper : &lower, *value, conjunct->op() == Op::kGreaterOrEqual,
                     !flipped, type);
              break;
            default: break;
          }
        }
      }
    }
    not_null |= lower.value.has_value() || upper.value.has_value();
    std::vector<KeyRange> ranges;
    for (const std::vector<Datum>& prefix : prefixes) {
      KeyRange range;
      range.from.values = range.to.values = prefix;
      range.to.after = true;
      if (not_null) {
        const bool descending = columns_[at].direction == codec::Direction::kDescending;
        const Limit& first = descending ? upper : lower;
        const Limit& last = descending ? lower : upper;
        const bool nulls_first = columns_[at].nulls == codec::NullPlacement::kFirst;
        if (first.value) {
          range.from.values.push_back(*first.value);
          range.from.after = !first.inclusive;
        } else if (nulls_first) {
          range.from.values.push_back(Datum());
          range.from.after = true;
        }
        if (last.value) {
          range.to.values.push_back(*last.value);
          range.to.after = last.inclusive;
        } else if (!nulls_first) {
          range.to.values.push_back(Datum());
          range.to.after = false;
        }
      }
      range.from.SetBytes(columns_);
      range.to.SetBytes(columns_);
      ranges.push_back(std::move(range));
    }
    NormaliseRanges(&ranges);
    return ranges;
  }

  const catalog::TableDescriptor& table_;
  std::span<const codec::KeyColumn> columns_;
  std::span<const codec::ColumnId> ids_;
  Arena* arena_;
  std::vector<const Filter*> conjuncts_;
};

}  // namespace

Result<std::string> FilterText(const Filter& filter, std::string_view table) {
  if (filter.depth() > Filter::kMaxDepth || filter.nodes() > Filter::kMaxNodes) {
    return SqlError(Code::kLimit, sqlstate::kStatementTooComplex, "filter too complex")
        .WithDetail(fmt::format("It has {} levels and {} nodes; {} and {} are the most.",
                                filter.depth(), filter.nodes(), Filter::kMaxDepth,
                                Filter::kMaxNodes));
  }
  std::string text;
  CELLAR_TRY(Print(filter, table, false, &text));
  return text;
}

Result<BoundFilter> BindFilter(Session::Impl* s, const KnownTable& known, const Filter& filter) {
  const catalog::TableDescriptor& table = *known.table;
  const std::string name = sql::QuoteIdentifier(table.name);
  CELLAR_TRY_ASSIGN(std::string text, FilterText(filter, name));
  CELLAR_TRY_ASSIGN(ast::ExprPtr parsed, sql::ParseExpression(text));
  FoldingPlanner planner(*s);
  sql::PlannerContext& context = planner.context;
  BoundFilter bound;
  Result<sql::ExprPtr> expr = sql::BindTableExpression(*parsed, &table, Type(), context);
  if (!expr.ok()) return std::move(expr).status().WithLocation(-1);
  bound.expr = std::move(*expr);
  if (bound.expr->type != MakeType(TypeId::kBool)) {
    return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                    "the filter must be of type boolean, not {}", FormatType(bound.expr->type));
  }
  std::vector<codec::ColumnId> living;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (!column.dropped) living.push_back(column.id);
  }
  sql::VisitExprMutable(bound.expr.get(), [&](sql::Expr* part) {
    if (part->kind != sql::ExprKind::kColumn) return;
    const codec::ColumnId id = living[static_cast<size_t>(part->index)];
    auto at = std::find(bound.columns.begin(), bound.columns.end(), id);
    part->index = static_cast<int>(at - bound.columns.begin());
    if (at == bound.columns.end()) bound.columns.push_back(id);
  });
  return bound;
}

std::vector<table::ColumnFilter> ScanFiltersOf(const Filter& filter,
                                               const catalog::TableDescriptor& table,
                                               Arena* arena) {
  std::vector<table::ColumnFilter> filters;
  auto column_of = [&](const Filter& node) -> const catalog::ColumnDescriptor* {
    if (node.op() != Op::kColumn) return nullptr;
    const catalog::ColumnDescriptor* column = table.FindColumn(node.column());
    if (column == nullptr || column->hidden || column->type.collation != nullptr) {
      return nullptr;
    }
    return codec::IsKeyType(column->type) ? column : nullptr;
  };
  auto add = [&](const Filter& conjunct) {
    const std::vector<Filter>& args = conjunct.args();
    if (conjunct.op() == Op::kIsNull || conjunct.op() == Op::kIsNotNull) {
      const catalog::ColumnDescriptor* column = args.size() == 1 ? column_of(args[0]) : nullptr;
      if (column == nullptr) return;
      const FilterOp op = conjunct.op() == Op::kIsNull ? FilterOp::kIsNull : FilterOp::kIsNotNull;
      filters.push_back({column->id, {op, Datum()}});
      return;
    }
    if (args.size() != 2) return;
    for (size_t side : {size_t{0}, size_t{1}}) {
      const catalog::ColumnDescriptor* column = column_of(args[side]);
      const std::optional<FilterOp> op = ScanOpOf(conjunct.op(), side == 1);
      if (column == nullptr || !op) continue;
      const std::optional<Datum> value = ComparedWith(args[1 - side], column->type, arena);
      if (!value) continue;
      filters.push_back({column->id, {*op, CopyDatum(*value, column->type, arena)}});
      return;
    }
  };
  if (filter.op() == Op::kAnd) {
    for (const Filter& conjunct : filter.args()) add(conjunct);
  } else {
    add(filter);
  }
  return filters;
}

std::vector<KeyRange> RangesOf(const Filter& filter, const catalog::TableDescriptor& table,
                               std::span<const codec::KeyColumn> columns,
                               std::span<const codec::ColumnId> ids, Arena* arena) {
  return Cutter(table, columns, ids, arena).Run(filter);
}

}  // namespace cellar::session::tables
