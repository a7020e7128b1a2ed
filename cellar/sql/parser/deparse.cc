#include "cellar/sql/parser/deparse.h"

#include <fmt/format.h>

#include "cellar/sql/parser/deparser.h"
#include "cellar/sql/parser/keywords.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/parser/pretty.h"

namespace cellar::sql {

using namespace ast;  // NOLINT: every name here is a node

std::string QuoteIdentifier(std::string_view name) {
  bool plain = !name.empty() && ((name[0] >= 'a' && name[0] <= 'z') || name[0] == '_');
  for (char c : name) {
    plain = plain && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
  }
  if (plain) {
    const KeywordCategory category = FindKeyword(name);
    if (category == KeywordCategory::kNone || category == KeywordCategory::kUnreserved) {
      return std::string(name);
    }
  }
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string QuoteQualified(std::string_view schema, std::string_view name) {
  if (schema.empty()) return QuoteIdentifier(name);
  return QuoteIdentifier(schema) + "." + QuoteIdentifier(name);
}

std::string QuoteLiteral(std::string_view value) {
  std::string out;
  out.reserve(value.size() + 2);
  if (value.find('\\') != std::string_view::npos) out += 'E';
  out += '\'';
  for (char c : value) {
    if (c == '\'' || c == '\\') out += c;
    out += c;
  }
  return out + '\'';
}

namespace {

// What format_type says for the types whose SQL name differs from the catalog's.
struct TypeSpelling {
  std::string_view catalog_name;
  std::string_view sql_name;
  std::string_view after_typmod;
};
constexpr TypeSpelling kTypes[] = {
    {"bool", "boolean", ""},
    {"int2", "smallint", ""},
    {"int4", "integer", ""},
    {"int8", "bigint", ""},
    {"float4", "real", ""},
    {"float8", "double precision", ""},
    {"varchar", "character varying", ""},
    {"varbit", "bit varying", ""},
    {"time", "time", " without time zone"},
    {"timetz", "time", " with time zone"},
    {"timestamp", "timestamp", " without time zone"},
    {"timestamptz", "timestamp", " with time zone"},
};

std::string_view IntervalFields(int32_t mask) {
  struct Fields {
    int32_t mask;
    std::string_view words;
  };
  constexpr Fields kFields[] = {
      {kIntervalYear, " year"},
      {kIntervalMonth, " month"},
      {kIntervalDay, " day"},
      {kIntervalHour, " hour"},
      {kIntervalMinute, " minute"},
      {kIntervalSecond, " second"},
      {kIntervalYear | kIntervalMonth, " year to month"},
      {kIntervalDay | kIntervalHour, " day to hour"},
      {kIntervalDay | kIntervalHour | kIntervalMinute, " day to minute"},
      {kIntervalDay | kIntervalHour | kIntervalMinute | kIntervalSecond, " day to second"},
      {kIntervalHour | kIntervalMinute, " hour to minute"},
      {kIntervalHour | kIntervalMinute | kIntervalSecond, " hour to second"},
      {kIntervalMinute | kIntervalSecond, " minute to second"},
  };
  for (const Fields& fields : kFields) {
    if (fields.mask == mask) return fields.words;
  }
  return "";
}

}  // namespace

std::string DeparseType(const TypeName& type) {
  std::string out = type.setof ? "SETOF " : "";
  const bool builtin = type.name.schema.empty() || type.name.schema == "pg_catalog";
  const std::string& name = type.name.name;
  std::string_view after;
  std::vector<int32_t> typmods = type.typmods;
  if (builtin && name == "interval") {
    out += "interval";
    if (!typmods.empty()) {
      out += IntervalFields(typmods[0]);
      typmods.erase(typmods.begin());
    }
  } else if (builtin && name == "bpchar" && !typmods.empty()) {
    out += "character";
  } else {
    bool known = false;
    for (const TypeSpelling& spelling : kTypes) {
      if (!builtin || spelling.catalog_name != name) continue;
      out += spelling.sql_name;
      after = spelling.after_typmod;
      known = true;
      break;
    }
    if (!known && builtin && FindKeyword(name) != KeywordCategory::kReserved && name != "char") {
      out +=
          name == "numeric" || (name == "bit" && !typmods.empty()) ? name : QuoteIdentifier(name);
    } else if (!known) {
      if (!type.name.catalog.empty()) out += QuoteIdentifier(type.name.catalog) + ".";
      out += QuoteQualified(type.name.schema, name);
    }
  }
  if (!typmods.empty()) {
    out += '(';
    for (size_t i = 0; i < typmods.size(); ++i) {
      out += (i == 0 ? "" : ",") + std::to_string(typmods[i]);
    }
    out += ')';
  }
  out += after;
  if (type.pct_type) out += "%TYPE";
  for (int32_t bound : type.array_bounds) {
    out += bound < 0 ? "[]" : fmt::format("[{}]", bound);
  }
  return out;
}

void Deparser::Name(const QualifiedName& name) {
  if (!name.catalog.empty()) out_ += QuoteIdentifier(name.catalog) + ".";
  if (!name.schema.empty()) out_ += QuoteIdentifier(name.schema) + ".";
  out_ += QuoteIdentifier(name.name);
}

void Deparser::Names(const NameList& names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out_ += ", ";
    out_ += QuoteIdentifier(names[i]);
  }
}

void Deparser::Op(const QualifiedName& op) {
  if (op.schema.empty() || op.schema == "pg_catalog") {
    out_ += op.name;
  } else {
    out_ += "OPERATOR(" + QuoteIdentifier(op.schema) + "." + op.name + ")";
  }
}

void Deparser::List(const ExprList& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out_ += ", ";
    Expression(*list[i]);
  }
}

void Deparser::Sort(const std::vector<SortBy>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out_ += ", ";
    Expression(*list[i].expr);
    switch (list[i].direction) {
      case SortDirection::kDefault: break;
      case SortDirection::kAsc: out_ += " ASC"; break;
      case SortDirection::kDesc: out_ += " DESC"; break;
      case SortDirection::kUsing: out_ += " USING ", Op(list[i].using_op); break;
    }
    if (list[i].nulls == SortNulls::kFirst) out_ += " NULLS FIRST";
    if (list[i].nulls == SortNulls::kLast) out_ += " NULLS LAST";
  }
}

void Deparser::Constant(const Const& constant) {
  switch (constant.const_kind) {
    case ConstKind::kNull: out_ += "NULL"; break;
    case ConstKind::kBool: out_ += constant.boolean ? "true" : "false"; break;
    case ConstKind::kInteger:
      out_ += constant.integer < 0 ? fmt::format("'{}'::integer", constant.integer)
                                   : std::to_string(constant.integer);
      break;
    case ConstKind::kNumeric: {
      const std::string& digits = constant.text;
      const bool integral = digits.find_first_of(".eE") == std::string::npos;
      const bool wide =
          digits.size() > 19 || (digits.size() == 19 && digits > "9223372036854775807");
      if (digits[0] == '-') {
        out_ += QuoteLiteral(digits) + (integral && digits.size() < 20 ? "::bigint" : "::numeric");
      } else if (integral && !wide) {
        out_ += QuoteLiteral(digits) + "::bigint";
      } else {
        out_ += digits;
      }
      break;
    }
    case ConstKind::kString: out_ += QuoteLiteral(constant.text); break;
    case ConstKind::kBitString:
      out_ += constant.text[0] == 'x' ? "X'" : "B'";
      out_ += constant.text.substr(1) + "'";
      break;
  }
}

// Operators of one class read from the left without parentheses between them.
namespace {
int ChainClass(const QualifiedName& op) {
  if (!op.schema.empty()) return -1;
  if (op.name == "+" || op.name == "-") return 1;
  if (op.name == "*" || op.name == "/" || op.name == "%") return 2;
  return op.name == "||" ? 3 : -1;
}
}  // namespace

void Deparser::Chain(const OperatorChain& chain) {
  const size_t begin = out_.size();
  size_t opens = 1;
  Expression(*chain.first);
  int last = 0;
  for (const OperatorChain::Link& link : chain.links) {
    const int now = ChainClass(link.op);
    if (last != 0 && (now != last || now < 0)) {
      out_ += ')';
      ++opens;
    }
    last = now;
    out_ += ' ';
    Op(link.op);
    out_ += ' ';
    Expression(*link.right);
  }
  out_ += ')';
  out_.insert(begin, opens, '(');
}

void Deparser::Frame(const WindowDef& window) {
  auto bound = [&](FrameBound kind, const ExprPtr& offset) {
    switch (kind) {
      case FrameBound::kUnboundedPreceding: out_ += "UNBOUNDED PRECEDING"; break;
      case FrameBound::kUnboundedFollowing: out_ += "UNBOUNDED FOLLOWING"; break;
      case FrameBound::kCurrentRow: out_ += "CURRENT ROW"; break;
      case FrameBound::kOffsetPreceding: Expression(*offset), out_ += " PRECEDING"; break;
      case FrameBound::kOffsetFollowing: Expression(*offset), out_ += " FOLLOWING"; break;
    }
  };
  out_ += window.frame_mode == FrameMode::kRange  ? "RANGE "
          : window.frame_mode == FrameMode::kRows ? "ROWS "
                                                  : "GROUPS ";
  if (window.frame_between) out_ += "BETWEEN ";
  bound(window.frame_start, window.start_offset);
  if (window.frame_between) {
    out_ += " AND ";
    bound(window.frame_end, window.end_offset);
  }
  switch (window.exclusion) {
    case FrameExclusion::kNone: break;
    case FrameExclusion::kCurrentRow: out_ += " EXCLUDE CURRENT ROW"; break;
    case FrameExclusion::kGroup: out_ += " EXCLUDE GROUP"; break;
    case FrameExclusion::kTies: out_ += " EXCLUDE TIES"; break;
  }
}

void Deparser::Window(const WindowDef& window) {
  out_ += '(';
  std::string_view space;
  auto part = [&] {
    out_ += space;
    space = " ";
  };
  if (!window.ref_name.empty()) part(), out_ += QuoteIdentifier(window.ref_name);
  if (!window.partition_by.empty()) {
    part(), out_ += "PARTITION BY ";
    List(window.partition_by);
  }
  if (!window.order_by.empty()) {
    part(), out_ += "ORDER BY ";
    Sort(window.order_by);
  }
  if (window.has_frame) part(), Frame(window);
  out_ += ')';
}

// EXTRACT, POSITION and the like. False: print it as an ordinary call.
bool Deparser::SqlSyntaxCall(const FuncCall& call) {
  const std::string& name = call.name.name;
  const ExprList& args = call.args;
  auto paren = [&](const char* open, std::initializer_list<std::pair<size_t, const char*>> parts) {
    out_ += open;
    for (const auto& [index, after] : parts) {
      Expression(*args[index]);
      out_ += after;
    }
    return true;
  };
  const auto* word = args.empty() || !args[0]->Is<Const>() ? nullptr : &args[0]->As<Const>();
  if (name == "timezone" && args.size() == 2) {
    return paren("(", {{1, " AT TIME ZONE "}, {0, ")"}});
  }
  if (name == "extract" && args.size() == 2 && word != nullptr) {
    out_ += "EXTRACT(" +
            (QuoteIdentifier(word->text) == word->text ? word->text : QuoteLiteral(word->text));
    return paren(" FROM ", {{1, ")"}});
  }
  if (name == "overlaps" && args.size() == 4) {
    return paren("((", {{0, ", "}, {1, ") OVERLAPS ("}, {2, ", "}, {3, "))"}});
  }
  if (name == "position" && args.size() == 2) return paren("POSITION(", {{1, " IN "}, {0, ")"}});
  if (name == "overlay" && args.size() == 3) {
    return paren("OVERLAY(", {{0, " PLACING "}, {1, " FROM "}, {2, ")"}});
  }
  if (name == "overlay" && args.size() == 4) {
    return paren("OVERLAY(", {{0, " PLACING "}, {1, " FROM "}, {2, " FOR "}, {3, ")"}});
  }
  if (name == "substring" && args.size() == 2)
    return paren("SUBSTRING(", {{0, " FROM "}, {1, ")"}});
  if (name == "substring" && args.size() == 3) {
    return paren("SUBSTRING(", {{0, " FROM "}, {1, " FOR "}, {2, ")"}});
  }
  if ((name == "btrim" || name == "ltrim" || name == "rtrim") && !args.empty() &&
      args.size() <= 2) {
    out_ += name == "btrim" ? "TRIM(BOTH " : name == "ltrim" ? "TRIM(LEADING " : "TRIM(TRAILING ";
    if (args.size() == 2) return paren("", {{1, " FROM "}, {0, ")"}});
    return paren("FROM ", {{0, ")"}});
  }
  if (name == "pg_collation_for" && args.size() == 1) return paren("COLLATION FOR (", {{0, ")"}});
  if ((name == "normalize" || name == "is_normalized") && !args.empty() && args.size() <= 2) {
    std::string form;
    if (args.size() == 2 && args[1]->Is<Const>()) form = args[1]->As<Const>().text;
    if (name == "normalize") {
      out_ += "NORMALIZE(";
      Expression(*args[0]);
      out_ += (form.empty() ? "" : ", " + form) + ")";
    } else {
      out_ += '(';
      Expression(*args[0]);
      out_ += " IS " + (form.empty() ? "" : form + " ") + "NORMALIZED)";
    }
    return true;
  }
  return false;
}

void Deparser::Call(const FuncCall& call) {
  if (call.sql_syntax && SqlSyntaxCall(call)) return;
  if (call.name.schema == "pg_catalog") {
    out_ += QuoteIdentifier(call.name.name);
  } else {
    Name(call.name);
  }
  out_ += '(';
  if (call.distinct) out_ += "DISTINCT ";
  if (call.star) out_ += '*';
  const bool sequence =
      call.name.name == "nextval" || call.name.name == "currval" || call.name.name == "setval";
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (i > 0) out_ += ", ";
    if (call.variadic && i + 1 == call.args.size()) out_ += "VARIADIC ";
    Expression(*call.args[i]);
    if (i == 0 && sequence && call.args[0]->Is<Const>()) out_ += "::regclass";
  }
  if (!call.order_by.empty() && !call.within_group) {
    out_ += " ORDER BY ";
    Sort(call.order_by);
  }
  out_ += ')';
  if (call.within_group) {
    out_ += " WITHIN GROUP (ORDER BY ";
    Sort(call.order_by);
    out_ += ')';
  }
  if (call.filter != nullptr) {
    out_ += " FILTER (WHERE ";
    Expression(*call.filter);
    out_ += ')';
  }
  if (call.over != nullptr) {
    out_ += " OVER ";
    if (!call.over->name.empty()) {
      out_ += QuoteIdentifier(call.over->name);
    } else {
      Window(*call.over);
    }
  }
}

void Deparser::Like(const LikeExpr& like) {
  out_ += '(';
  Expression(*like.arg);
  out_ += like.negated ? " NOT" : "";
  out_ += like.like_kind == LikeKind::kLike    ? " LIKE "
          : like.like_kind == LikeKind::kILike ? " ILIKE "
                                               : " SIMILAR TO ";
  Expression(*like.pattern);
  if (like.escape != nullptr) {
    out_ += " ESCAPE ";
    Expression(*like.escape);
  }
  out_ += ')';
}

void Deparser::Case(const CaseExpr& expr) {
  out_ += "CASE";
  if (expr.arg != nullptr) out_ += ' ', Expression(*expr.arg);
  for (const CaseExpr::When& when : expr.whens) {
    out_ += " WHEN ";
    Expression(*when.condition);
    out_ += " THEN ";
    Expression(*when.result);
  }
  if (expr.default_result != nullptr) {
    out_ += " ELSE ";
    Expression(*expr.default_result);
  }
  out_ += " END";
}

void Deparser::SubQuery(const SubLink& link) {
  switch (link.sub_kind) {
    case SubLinkKind::kExists: out_ += "(EXISTS ("; break;
    case SubLinkKind::kArray: out_ += "ARRAY("; break;
    case SubLinkKind::kExpr: out_ += '('; break;
    case SubLinkKind::kAll:
    case SubLinkKind::kAny:
      out_ += '(';
      Expression(*link.test);
      out_ += ' ';
      if (link.is_in) {
        out_ += "IN (";
      } else {
        Op(link.op);
        out_ += link.sub_kind == SubLinkKind::kAll ? " ALL (" : " ANY (";
      }
      break;
  }
  Select(*link.select);
  out_ += ')';
  if (link.sub_kind != SubLinkKind::kArray && link.sub_kind != SubLinkKind::kExpr) out_ += ')';
}

void Deparser::Steps(const std::vector<IndirectionStep>& steps) {
  for (const IndirectionStep& step : steps) {
    switch (step.step_kind) {
      case IndirectionStep::Kind::kField: out_ += "." + QuoteIdentifier(step.field); break;
      case IndirectionStep::Kind::kStar: out_ += ".*"; break;
      case IndirectionStep::Kind::kSubscript:
        out_ += '[';
        Expression(*step.upper);
        out_ += ']';
        break;
      case IndirectionStep::Kind::kSlice:
        out_ += '[';
        if (step.lower != nullptr) Expression(*step.lower);
        out_ += ':';
        if (step.upper != nullptr) Expression(*step.upper);
        out_ += ']';
        break;
    }
  }
}

void Deparser::SqlValue(const SqlValueFunction& value) {
  switch (value.function) {
    case SqlValueKind::kCurrentDate: out_ += "CURRENT_DATE"; break;
    case SqlValueKind::kCurrentTime: out_ += "CURRENT_TIME"; break;
    case SqlValueKind::kCurrentTimestamp: out_ += "CURRENT_TIMESTAMP"; break;
    case SqlValueKind::kLocalTime: out_ += "LOCALTIME"; break;
    case SqlValueKind::kLocalTimestamp: out_ += "LOCALTIMESTAMP"; break;
    case SqlValueKind::kCurrentRole: out_ += "CURRENT_ROLE"; break;
    case SqlValueKind::kCurrentUser: out_ += "CURRENT_USER"; break;
    case SqlValueKind::kUser: out_ += "USER"; break;
    case SqlValueKind::kSessionUser: out_ += "SESSION_USER"; break;
    case SqlValueKind::kCurrentCatalog: out_ += "CURRENT_CATALOG"; break;
    case SqlValueKind::kCurrentSchema: out_ += "CURRENT_SCHEMA"; break;
  }
  if (value.precision >= 0) out_ += fmt::format("({})", value.precision);
}

void Deparser::Cast(const TypeCast& cast) {
  const bool bare =
      cast.arg->Is<Const>() && (cast.arg->As<Const>().const_kind == ConstKind::kString ||
                                cast.arg->As<Const>().const_kind == ConstKind::kNull);
  if (!bare && !pretty_) out_ += '(';
  Expression(*cast.arg);
  if (!bare && !pretty_) out_ += ')';
  out_ += "::" + DeparseType(cast.type);
}

namespace {

// What Parenthesised writes between parentheses of its own.
bool HasParentheses(const Expr& expr) {
  switch (expr.kind) {
    case NodeKind::kOperator:
    case NodeKind::kAnyAll:
    case NodeKind::kDistinctFrom:
    case NodeKind::kIn:
    case NodeKind::kLike:
    case NodeKind::kBetween:
    case NodeKind::kBool:
    case NodeKind::kNullTest:
    case NodeKind::kBooleanTest:
    case NodeKind::kCollate: return true;
    case NodeKind::kSubLink: {
      const SubLinkKind kind = expr.As<SubLink>().sub_kind;
      return kind != SubLinkKind::kArray && kind != SubLinkKind::kExpr;
    }
    default: return false;
  }
}

// 1: + and -, 2: *, / and %, 0: others.
int ArithmeticLevel(const Expr& expr) {
  if (!expr.Is<OperatorExpr>() || expr.As<OperatorExpr>().left == nullptr) return 0;
  const std::string& name = expr.As<OperatorExpr>().op.name;
  if (name == "+" || name == "-") return 1;
  return name == "*" || name == "/" || name == "%" ? 2 : 0;
}

// Whether pretty text leaves out the parentheses of `expr` below `parent`: PostgreSQL's rules,
// which ask for fewer than the grammar would.
bool ReadsAlone(const Expr& expr, const Expr* parent) {
  if (parent == nullptr) return true;
  const bool in_logic = parent->Is<BoolExpr>();
  switch (parent->kind) {
    case NodeKind::kFuncCall: return !parent->As<FuncCall>().sql_syntax;
    case NodeKind::kCase:
    case NodeKind::kCoalesce:
    case NodeKind::kMinMax:
    case NodeKind::kNullIf:
    case NodeKind::kArray:
    case NodeKind::kRow: return true;
    default: break;
  }
  switch (expr.kind) {
    case NodeKind::kBool: {
      const BoolOp own = expr.As<BoolExpr>().op;
      if (!in_logic) return false;
      const BoolOp outer = parent->As<BoolExpr>().op;
      return own == BoolOp::kOr ? outer == BoolOp::kOr : outer == BoolOp::kAnd;
    }
    case NodeKind::kOperator: {
      const int level = ArithmeticLevel(expr), outer = ArithmeticLevel(*parent);
      if (level == 0 || outer == 0) return in_logic;
      return level > outer || (level == outer && parent->As<OperatorExpr>().left.get() == &expr);
    }
    case NodeKind::kAnyAll:
    case NodeKind::kIn:
    case NodeKind::kCollate: return false;
    default: return in_logic;
  }
}

}  // namespace

void Deparser::Expression(const Expr& expr) {
  const Expr* parent = std::exchange(parent_, &expr);
  const size_t begin = out_.size();
  Parenthesised(expr);
  parent_ = parent;
  if (pretty_ && HasParentheses(expr) && ReadsAlone(expr, parent)) {
    out_.pop_back();
    out_.erase(begin, 1);
  }
}

void Deparser::Parenthesised(const Expr& expr) {
  auto binary = [&](const ExprPtr& left, std::string_view middle, const ExprPtr& right,
                    std::string_view end = ")") {
    out_ += '(';
    Expression(*left);
    out_ += middle;
    Expression(*right);
    out_ += end;
  };
  auto call = [&](std::string_view name, const ExprList& args) {
    out_ += name;
    out_ += '(';
    List(args);
    out_ += ')';
  };
  switch (expr.kind) {
    case NodeKind::kConst: Constant(expr.As<Const>()); break;
    case NodeKind::kColumnRef: {
      const auto& ref = expr.As<ColumnRef>();
      for (size_t i = 0; i < ref.parts.size(); ++i) {
        if (i > 0) out_ += '.';
        out_ += QuoteIdentifier(ref.parts[i]);
      }
      if (ref.star) out_ += ref.parts.empty() ? "*" : ".*";
      break;
    }
    case NodeKind::kParamRef: out_ += fmt::format("${}", expr.As<ParamRef>().number); break;
    case NodeKind::kOperator: {
      const auto& op = expr.As<OperatorExpr>();
      out_ += '(';
      if (op.left != nullptr) Expression(*op.left), out_ += ' ';
      Op(op.op);
      if (op.right != nullptr) out_ += ' ', Expression(*op.right);
      out_ += ')';
      break;
    }
    case NodeKind::kOperatorChain: Chain(expr.As<OperatorChain>()); break;
    case NodeKind::kAnyAll: {
      const auto& any = expr.As<AnyAllExpr>();
      out_ += '(';
      Expression(*any.left);
      out_ += ' ';
      Op(any.op);
      out_ += any.all ? " ALL (" : " ANY (";
      Expression(*any.right);
      out_ += "))";
      break;
    }
    case NodeKind::kDistinctFrom: {
      const auto& distinct = expr.As<DistinctExpr>();
      binary(distinct.left, distinct.negated ? " IS NOT DISTINCT FROM " : " IS DISTINCT FROM ",
             distinct.right);
      break;
    }
    case NodeKind::kNullIf:
      out_ += "NULLIF";
      binary(expr.As<NullIfExpr>().left, ", ", expr.As<NullIfExpr>().right);
      break;
    case NodeKind::kIn: {
      const auto& in = expr.As<InExpr>();
      out_ += '(';
      Expression(*in.arg);
      out_ += in.negated ? " NOT IN (" : " IN (";
      List(in.list);
      out_ += "))";
      break;
    }
    case NodeKind::kLike: Like(expr.As<LikeExpr>()); break;
    case NodeKind::kBetween: {
      const auto& between = expr.As<BetweenExpr>();
      out_ += '(';
      Expression(*between.arg);
      out_ += between.negated ? " NOT BETWEEN " : " BETWEEN ";
      if (between.symmetric) out_ += "SYMMETRIC ";
      Expression(*between.low);
      out_ += " AND ";
      Expression(*between.high);
      out_ += ')';
      break;
    }
    case NodeKind::kBool: {
      const auto& logic = expr.As<BoolExpr>();
      out_ += logic.op == BoolOp::kNot ? "(NOT " : "(";
      for (size_t i = 0; i < logic.args.size(); ++i) {
        if (i > 0) out_ += logic.op == BoolOp::kAnd ? " AND " : " OR ";
        Expression(*logic.args[i]);
      }
      out_ += ')';
      break;
    }
    case NodeKind::kNullTest:
      out_ += '(';
      Expression(*expr.As<NullTest>().arg);
      out_ += expr.As<NullTest>().negated ? " IS NOT NULL)" : " IS NULL)";
      break;
    case NodeKind::kBooleanTest: {
      const auto& test = expr.As<BooleanTest>();
      out_ += '(';
      Expression(*test.arg);
      out_ += test.negated ? " IS NOT " : " IS ";
      out_ += test.test == BooleanTestKind::kTrue    ? "TRUE)"
              : test.test == BooleanTestKind::kFalse ? "FALSE)"
                                                     : "UNKNOWN)";
      break;
    }
    case NodeKind::kCase: Case(expr.As<CaseExpr>()); break;
    case NodeKind::kCoalesce: call("COALESCE", expr.As<CoalesceExpr>().args); break;
    case NodeKind::kMinMax:
      call(expr.As<MinMaxExpr>().greatest ? "GREATEST" : "LEAST", expr.As<MinMaxExpr>().args);
      break;
    case NodeKind::kFuncCall: Call(expr.As<FuncCall>()); break;
    case NodeKind::kNamedArg:
      out_ += QuoteIdentifier(expr.As<NamedArgExpr>().name) + " => ";
      Expression(*expr.As<NamedArgExpr>().arg);
      break;
    case NodeKind::kTypeCast: Cast(expr.As<TypeCast>()); break;
    case NodeKind::kSubLink: SubQuery(expr.As<SubLink>()); break;
    case NodeKind::kArray:
      out_ += "ARRAY[";
      List(expr.As<ArrayExpr>().elements);
      out_ += ']';
      break;
    case NodeKind::kIndirection: {
      const auto& indirection = expr.As<IndirectionExpr>();
      const IndirectionStep::Kind first = indirection.steps[0].step_kind;
      const bool subscript =
          first == IndirectionStep::Kind::kSubscript || first == IndirectionStep::Kind::kSlice;
      const bool bare =
          subscript && (indirection.arg->Is<ColumnRef>() || indirection.arg->Is<ParamRef>());
      if (!bare) out_ += '(';
      Expression(*indirection.arg);
      if (!bare) out_ += ')';
      Steps(indirection.steps);
      break;
    }
    case NodeKind::kRow:
      call(expr.As<RowExpr>().explicit_row ? "ROW" : "", expr.As<RowExpr>().args);
      break;
    case NodeKind::kSqlValueFunction: SqlValue(expr.As<SqlValueFunction>()); break;
    case NodeKind::kCollate: {
      const auto& collate = expr.As<CollateExpr>();
      out_ += '(';
      Expression(*collate.arg);
      out_ += " COLLATE ";
      Name(collate.collation);
      out_ += ')';
      break;
    }
    case NodeKind::kDefault: out_ += "DEFAULT"; break;
    case NodeKind::kGroupingFunc: call("GROUPING", expr.As<GroupingFunc>().args); break;
    case NodeKind::kGroupingSet: {
      const auto& set = expr.As<GroupingSet>();
      switch (set.set_kind) {
        case GroupingSetKind::kEmpty:
        case GroupingSetKind::kSimple: call("", set.content); break;
        case GroupingSetKind::kRollup: call("ROLLUP ", set.content); break;
        case GroupingSetKind::kCube: call("CUBE ", set.content); break;
        case GroupingSetKind::kSets: call("GROUPING SETS ", set.content); break;
      }
      break;
    }
    case NodeKind::kCurrentOf:
      out_ += "CURRENT OF " + QuoteIdentifier(expr.As<CurrentOfExpr>().cursor);
      break;
    case NodeKind::kUnsupportedExpr: out_ += expr.As<UnsupportedExpr>().what; break;
    default: break;
  }
}

std::string DeparseExpr(const Expr& expr) {
  Deparser deparser;
  deparser.Expression(expr);
  return deparser.Take();
}

std::string DeparsePretty(const Expr& expr) {
  Deparser deparser(false, true);
  deparser.Expression(expr);
  return deparser.Take();
}

std::string PrettyExpression(const std::string& sql) {
  const Result<ExprPtr> parsed = ParseExpression(sql);
  return parsed.ok() ? DeparsePretty(**parsed) : sql;
}

std::string DeparseDefault(const Expr& expr, std::string_view type) {
  std::string out = DeparseExpr(expr);
  if (expr.Is<Const>() && (expr.As<Const>().const_kind == ConstKind::kString ||
                           expr.As<Const>().const_kind == ConstKind::kNull)) {
    out += "::";
    out += type;
  }
  return out;
}

}  // namespace cellar::sql
