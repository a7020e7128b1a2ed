// Resolution, sets and aggregates through the registry.
#include "cellar/sql/expr/function.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "cellar/sql/expr/like.h"
#include "cellar/sql/expr/quote.h"
#include "cellar/sql/expr/test_parser.h"
#include "cellar/types/array.h"

namespace cellar::sql {
namespace {

std::string Print(Datum value, Type type) {
  if (value.is_null()) return "NULL";
  std::string out;
  AppendDatumText(value, type, FormatSettings(), &out);
  return out;
}

TEST(Registry, SignaturesAreUnique) {
  std::set<std::string> seen;
  for (const FunctionSpec& spec : AllFunctions()) {
    std::string key(spec.name);
    for (Type type : spec.args) key += "," + TypeName(type);
    if (spec.compatible) key += " compatible";
    if (spec.nonarray) key += " nonarray";
    EXPECT_TRUE(seen.insert(key).second) << key;
    EXPECT_TRUE(spec.scalar != nullptr || spec.set != nullptr) << key;
  }
  EXPECT_GT(seen.size(), 1000u);
}

TEST(Registry, FunctionsHaveTheirKnownIds) {
  size_t known = 0;
  for (const FunctionSpec& spec : AllFunctions()) {
    known += spec.oid != 0;
    if (spec.name == "abs" && spec.args[0].id == TypeId::kInt4) {
      EXPECT_EQ(spec.oid, 1397u);
    }
    if (spec.name == "nextval") {
      EXPECT_EQ(spec.oid, 1574u);
    }
  }
  EXPECT_GT(known, 900u);
}

TEST(Registry, ComparisonsHaveMates) {
  for (const FunctionSpec& spec : AllFunctions()) {
    if (spec.comparison == FunctionSpec::Comparison::kNone) continue;
    if (spec.args[0].id == TypeId::kXid) continue;
    EXPECT_NE(Commutator(spec), nullptr) << spec.name << " " << TypeName(spec.args[0]);
  }
  const Type int4 = MakeType(TypeId::kInt4), int8 = MakeType(TypeId::kInt8);
  const Type pair[2] = {int4, int8};
  Result<ResolvedFunction> less = ResolveOperator("<", pair);
  ASSERT_TRUE(less.ok());
  const FunctionSpec* mate = Commutator(*less->spec);
  EXPECT_EQ(mate->name, ">");
  EXPECT_EQ(mate->args[0], int8);
  EXPECT_EQ(Negator(*less->spec)->name, ">=");
  EXPECT_EQ(EqualityOperator(MakeType(TypeId::kVarchar))->args[0].id, TypeId::kText);
  EXPECT_EQ(EqualityOperator(MakeType(TypeId::kJson)), nullptr);
  EXPECT_EQ(LessOperator(ArrayOf(TypeId::kInt4))->args[0].id, TypeId::kAnyarray);
}

TEST(Casts, ContextsDecide) {
  const Type int4 = MakeType(TypeId::kInt4), int8 = MakeType(TypeId::kInt8),
             text = MakeType(TypeId::kText), boolean = MakeType(TypeId::kBool);
  EXPECT_TRUE(CanCast(int4, int8, CastContext::kImplicit));
  EXPECT_FALSE(CanCast(int8, int4, CastContext::kImplicit));
  EXPECT_TRUE(CanCast(int8, int4, CastContext::kAssignment));
  EXPECT_FALSE(CanCast(int4, boolean, CastContext::kAssignment));
  EXPECT_TRUE(CanCast(int4, boolean, CastContext::kExplicit));
  EXPECT_FALSE(CanCast(int4, text, CastContext::kImplicit));
  EXPECT_TRUE(CanCast(int4, text, CastContext::kAssignment));
  EXPECT_FALSE(CanCast(text, int4, CastContext::kAssignment));
  EXPECT_TRUE(CanCast(text, int4, CastContext::kExplicit));
  EXPECT_TRUE(CanCast(ArrayOf(TypeId::kInt4), ArrayOf(TypeId::kInt8), CastContext::kImplicit));
  EXPECT_FALSE(CanCast(ArrayOf(TypeId::kInt8), ArrayOf(TypeId::kInt4), CastContext::kImplicit));
}

TEST(Casts, AssignmentRefusesWhatAnExplicitCastCuts) {
  EvalContext context;
  Type varchar2 = MakeType(TypeId::kVarchar, 6);
  ExprPtr text = MakeConstant(Value(MakeType(TypeId::kText), Datum::Bytes("abc")));
  Result<ExprPtr> assigned = CastTo(CloneExpr(*text), varchar2, CastContext::kAssignment, &context);
  ASSERT_FALSE(assigned.ok());
  EXPECT_EQ(assigned.status().sqlstate(), "22001");
  Result<ExprPtr> cut = CastTo(std::move(text), varchar2, CastContext::kExplicit, &context);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(Print((*cut)->constant.datum(), varchar2), "ab");
}

// ---- Sets ----

std::vector<std::string> SetOf(std::string_view text) {
  Arena arena;
  EvalContext context;
  context.set_arena(&arena);
  Result<ExprPtr> call = testing::Bind(text, {}, &context);
  std::vector<std::string> out;
  if (!call.ok()) return {call.status().ToString()};
  if ((*call)->kind != ExprKind::kCall || (*call)->function->set == nullptr) return {"not a set"};
  std::vector<Datum> args;
  for (const ExprPtr& arg : (*call)->args) {
    Result<Datum> value = EvalScalar(*arg, context);
    if (!value.ok()) return {value.status().ToString()};
    args.push_back(*value);
  }
  auto rows = (*call)->function->set(context, **call, args);
  if (!rows.ok()) return {std::string(rows.status().message())};
  if (*rows == nullptr) return out;
  std::vector<ColumnVector> columns;
  for (const auto& [name, type] : (*call)->function->set_columns) {
    columns.emplace_back(type.id == TypeId::kAnyelement ? ElementTypeOf((*call)->args[0]->type)
                                                        : type);
  }
  std::vector<ColumnVector*> targets;
  for (ColumnVector& column : columns) targets.push_back(&column);
  // Few at a time, to go on within what was asked for.
  while (true) {
    Result<size_t> made = (*rows)->Next(context, 2, targets);
    if (!made.ok()) return {std::string(made.status().message())};
    if (*made == 0) break;
  }
  for (size_t row = 0; row < columns[0].size(); ++row) {
    std::string line;
    for (const ColumnVector& column : columns) {
      if (!line.empty()) line += "|";
      line += Print(column.Get(row), column.type());
    }
    out.push_back(line);
  }
  return out;
}

using Lines = std::vector<std::string>;

TEST(Sets, ReturnRowsAsPostgreSql) {
  EXPECT_EQ(SetOf("generate_series(1, 3)"), (Lines{"1", "2", "3"}));
  EXPECT_EQ(SetOf("generate_series(3, 1)"), Lines{});
  EXPECT_EQ(SetOf("generate_series(3, 1, -1)"), (Lines{"3", "2", "1"}));
  EXPECT_EQ(SetOf("generate_series(1, 3, 0)"), Lines{"step size cannot equal zero"});
  EXPECT_EQ(SetOf("generate_series(9223372036854775806, 9223372036854775807)"),
            (Lines{"9223372036854775806", "9223372036854775807"}));
  EXPECT_EQ(SetOf("generate_series(1.0, 2.0, 0.5)"), (Lines{"1.0", "1.5", "2.0"}));
  EXPECT_EQ(SetOf("generate_series(timestamp '2024-01-31', timestamp '2024-03-31', "
                  "interval '1 month')"),
            (Lines{"2024-01-31 00:00:00", "2024-02-29 00:00:00", "2024-03-29 00:00:00"}));
  EXPECT_EQ(SetOf("unnest(array[1,null,3])"), (Lines{"1", "NULL", "3"}));
  EXPECT_NE(SetOf("unnest(array[1,2], array['a'])")[0].find("does not exist"), std::string::npos);
  EXPECT_EQ(SetOf("unnest('1 2'::int2vector)"), (Lines{"1", "2"}));
  EXPECT_EQ(SetOf("generate_subscripts(array[5,6], 1)"), (Lines{"1", "2"}));
  EXPECT_EQ(SetOf("generate_subscripts(array[5,6], 1, true)"), (Lines{"2", "1"}));
  EXPECT_EQ(SetOf("regexp_matches('foobar', 'o', 'g')"), (Lines{"{o}", "{o}"}));
  EXPECT_EQ(SetOf("regexp_split_to_table('a,b', ',')"), (Lines{"a", "b"}));
  EXPECT_EQ(SetOf("string_to_table('a,b', ',')"), (Lines{"a", "b"}));
  EXPECT_EQ(SetOf("json_each('{\"a\":1,\"b\":\"x\"}')"), (Lines{"a|1", "b|\"x\""}));
  EXPECT_EQ(SetOf("jsonb_array_elements_text('[1,\"x\",null]')"), (Lines{"1", "x", "NULL"}));
  EXPECT_EQ(SetOf("json_object_keys('{\"b\":1,\"a\":2}')"), (Lines{"b", "a"}));
  EXPECT_EQ(SetOf("_pg_expandarray(array[7,8])"), (Lines{"7|1", "8|2"}));
}

// ---- Aggregates ----

// Adds the rows to one group and a second, empty group; "first|second".
std::string Aggregate(std::string_view name, const Lines& values, Type type,
                      std::string_view separator = "") {
  Arena arena;
  EvalContext context;
  context.set_arena(&arena);
  std::vector<Type> types = {type};
  if (!separator.empty()) types.push_back(MakeType(TypeId::kText));
  Result<ResolvedAggregate> resolved = ResolveAggregate(name, types, false);
  if (!resolved.ok()) return resolved.status().ToString();
  ColumnVector column(resolved->arg_types[0]), separators(MakeType(TypeId::kText));
  std::vector<uint32_t> rows, groups;
  for (const std::string& value : values) {
    Datum datum;
    if (value != "NULL") {
      Result<Datum> parsed = ParseDatum(value, resolved->arg_types[0], context.format, &arena);
      if (!parsed.ok()) return parsed.status().ToString();
      datum = *parsed;
    }
    if (!datum.is_null() || !resolved->spec->strict) {
      rows.push_back(static_cast<uint32_t>(column.size()));
      groups.push_back(0);
    }
    column.Append(datum);
    separators.Append(Datum::Bytes(separator));
  }
  std::unique_ptr<AggregateState> state = resolved->spec->make(resolved->arg_types);
  state->Resize(1);
  state->Resize(2);
  std::vector<const ColumnVector*> args = {&column};
  if (!separator.empty()) args.push_back(&separators);
  Status added = state->Add(context, args, {rows.data(), rows.size()}, groups.data());
  if (!added.ok()) return std::string(added.message());
  ColumnVector result(resolved->result);
  Status finished = state->Finish(context, 0, 2, &result);
  if (!finished.ok()) return std::string(finished.message());
  return Print(result.Get(0), resolved->result) + "|" + Print(result.Get(1), resolved->result);
}

// Adds the values one row a group index, and all rows at once, in two batches each, the second with
// every other row; what both say.
template <typename T>
std::pair<std::string, std::string> BothWays(std::string_view name, Type type,
                                             const std::vector<T>& values) {
  EvalContext context;
  Arena arena;
  context.set_arena(&arena);
  const ResolvedAggregate resolved = *ResolveAggregate(name, {&type, 1}, false);
  ColumnVector column(type);
  for (T value : values) {
    if constexpr (std::is_same_v<T, double>)
      column.Append(Datum::Double(value));
    else
      column.Append(Datum::Int(value));
  }
  std::vector<uint32_t> some;
  for (uint32_t i = 0; i < values.size(); i += 2) some.push_back(i);
  const std::vector<uint32_t> groups(values.size(), 1);
  const ColumnVector* args[] = {&column};
  const auto run = [&](bool at_once) -> std::string {
    std::unique_ptr<AggregateState> state = resolved.spec->make({&type, 1});
    state->Resize(2);
    for (Selection rows :
         {Selection{nullptr, values.size()}, Selection{some.data(), some.size()}}) {
      const Status added = at_once ? state->AddToGroup(context, args, rows, 1)
                                   : state->Add(context, args, rows, groups.data());
      if (!added.ok()) return std::string(added.message());
    }
    ColumnVector result(resolved.result);
    EXPECT_TRUE(state->Finish(context, 0, 2, &result).ok());
    return Print(result.Get(0), resolved.result) + "|" + Print(result.Get(1), resolved.result);
  };
  return {run(false), run(true)};
}

TEST(Aggregates, RowsOfOneGroupAddUpAsRowsOfMany) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<std::vector<double>> doubles = {{},
                                                    {1.5},
                                                    {0.1, 0.2, 0.3, 1e16, -1e16},
                                                    {0.0, -0.0},
                                                    {-0.0, 0.0},
                                                    {nan, 1, 2},
                                                    {1, nan},
                                                    {inf, 1, -1},
                                                    {inf, -inf},
                                                    {1e308, 1e308},
                                                    {nan, nan},
                                                    {-inf, 1e308, 1e308},
                                                    {3, 1, 2, 5, 4},
                                                    {1e308, -1e308, 1e308}};
  for (const char* name : {"sum", "avg", "min", "max", "count"}) {
    for (const std::vector<double>& values : doubles) {
      for (TypeId id : {TypeId::kFloat4, TypeId::kFloat8}) {
        const auto [each, at_once] = BothWays(name, MakeType(id), values);
        EXPECT_EQ(each, at_once) << name << " of " << values.size();
      }
    }
    for (const std::vector<int64_t>& values : std::vector<std::vector<int64_t>>{
             {}, {1}, {3, -1, 2}, {INT32_MAX, INT32_MAX}, {INT32_MIN, 5, INT32_MIN}}) {
      for (TypeId id : {TypeId::kInt2, TypeId::kInt4, TypeId::kInt8}) {
        const auto [each, at_once] = BothWays(name, MakeType(id), values);
        EXPECT_EQ(each, at_once) << name << " of " << values.size();
      }
    }
    const auto [each, at_once] =
        BothWays<int64_t>(name, MakeType(TypeId::kInt8), {INT64_MAX, INT64_MAX, INT64_MIN});
    EXPECT_EQ(each, at_once) << name;
  }
  EXPECT_EQ(BothWays<double>("sum", MakeType(TypeId::kFloat8), {1e308, 1e308}).second,
            "value out of range: overflow");
  EXPECT_EQ(BothWays<double>("sum", MakeType(TypeId::kFloat8), {inf, 1e308, 1e308}).second,
            "NULL|Infinity");
  EXPECT_EQ(BothWays<double>("max", MakeType(TypeId::kFloat8), {1, nan, inf}).second, "NULL|NaN");
  EXPECT_EQ(BothWays<double>("min", MakeType(TypeId::kFloat8), {nan, nan, 1, nan}).second,
            "NULL|1");
}

TEST(Aggregates, SumOfIntegersNoticesThatItOverflows) {
  EvalContext context;
  const Type type = MakeType(TypeId::kInt4);
  std::unique_ptr<AggregateState> state =
      ResolveAggregate("sum", {&type, 1}, false)->spec->make({&type, 1});
  state->Resize(1);
  ColumnVector column(type);
  column.Append(Datum::Int(INT64_MAX - 1));  // stands for billions of rows
  column.Append(Datum::Int(1));
  const ColumnVector* args[] = {&column};
  const uint32_t zero = 0, second = 1;
  ASSERT_TRUE(state->Add(context, args, {nullptr, 1}, &zero).ok());
  ASSERT_TRUE(state->AddToGroup(context, args, {&second, 1}, 0).ok());
  EXPECT_EQ(state->AddToGroup(context, args, {&second, 1}, 0).sqlstate(), "22003");
}

TEST(Aggregates, AnswerAsPostgreSql) {
  const Type int2 = MakeType(TypeId::kInt2), int4 = MakeType(TypeId::kInt4),
             int8 = MakeType(TypeId::kInt8), float4 = MakeType(TypeId::kFloat4),
             float8 = MakeType(TypeId::kFloat8), numeric = MakeType(TypeId::kNumeric),
             text = MakeType(TypeId::kText), boolean = MakeType(TypeId::kBool),
             interval = MakeType(TypeId::kInterval), date = MakeType(TypeId::kDate);
  EXPECT_EQ(Aggregate("count", {"1", "NULL", "2"}, int4), "2|0");
  EXPECT_EQ(Aggregate("sum", {"2147483647", "NULL", "2147483647"}, int4), "4294967294|NULL");
  EXPECT_EQ(Aggregate("sum", {"9223372036854775807", "9223372036854775807"}, int8),
            "18446744073709551614|NULL");
  EXPECT_EQ(Aggregate("sum", {"1.5", "2.25"}, numeric), "3.75|NULL");
  EXPECT_EQ(Aggregate("sum", {"0.1", "0.2"}, float8), "0.30000000000000004|NULL");
  EXPECT_EQ(Aggregate("sum", {"0.1", "0.2"}, float4), "0.3|NULL");
  EXPECT_EQ(Aggregate("sum", {"1 day", "02:00"}, interval), "1 day 02:00:00|NULL");
  EXPECT_EQ(Aggregate("avg", {"1", "2"}, int4), "1.5000000000000000|NULL");
  EXPECT_EQ(Aggregate("avg", {"1", "2", "2"}, int2), "1.6666666666666667|NULL");
  EXPECT_EQ(Aggregate("avg", {"1.0", "2.00"}, numeric), "1.5000000000000000|NULL");
  EXPECT_EQ(Aggregate("avg", {"1", "2"}, float8), "1.5|NULL");
  EXPECT_EQ(Aggregate("avg", {"1 day", "2 days"}, interval), "1 day 12:00:00|NULL");
  EXPECT_EQ(Aggregate("min", {"3", "1", "NULL", "2"}, int4), "1|NULL");
  EXPECT_EQ(Aggregate("max", {"b", "a", "c"}, text), "c|NULL");
  EXPECT_EQ(Aggregate("max", {"NaN", "1"}, float8), "NaN|NULL");
  EXPECT_EQ(Aggregate("min", {"2024-01-02", "2024-01-01"}, date), "2024-01-01|NULL");
  EXPECT_EQ(Aggregate("max", {"1.10", "1.1", "0.5"}, numeric), "1.1|NULL");
  EXPECT_EQ(Aggregate("min", {"{2}", "{1,5}"}, ArrayOf(TypeId::kInt4)), "{1,5}|NULL");
  EXPECT_EQ(Aggregate("max", {"x", "y"}, MakeType(TypeId::kVarchar)), "y|NULL");
  EXPECT_EQ(Aggregate("bool_and", {"t", "f", "NULL"}, boolean), "f|NULL");
  EXPECT_EQ(Aggregate("bool_or", {"t", "f"}, boolean), "t|NULL");
  EXPECT_EQ(Aggregate("bit_and", {"6", "3"}, int4), "2|NULL");
  EXPECT_EQ(Aggregate("bit_or", {"6", "3"}, int4), "7|NULL");
  EXPECT_EQ(Aggregate("string_agg", {"a", "NULL", "b"}, text, ", "), "a, b|NULL");
  EXPECT_EQ(Aggregate("array_agg", {"1", "NULL", "2"}, int4), "{1,NULL,2}|NULL");
  EXPECT_EQ(Aggregate("array_agg", {"{1}", "{2}"}, ArrayOf(TypeId::kInt4)), "{{1},{2}}|NULL");
  EXPECT_EQ(Aggregate("json_agg", {"1", "NULL"}, int4), "[1, null]|NULL");
  EXPECT_EQ(Aggregate("jsonb_agg", {"a", "b"}, text), "[\"a\", \"b\"]|NULL");
  EXPECT_EQ(Aggregate("stddev", {"1", "2", "4"}, int4), "1.5275252316519467|NULL");
  EXPECT_EQ(Aggregate("var_pop", {"1", "2", "4"}, numeric), "1.5555555555555556|NULL");
  EXPECT_EQ(Aggregate("variance", {"1"}, int4), "NULL|NULL");
  EXPECT_EQ(Aggregate("var_pop", {"1"}, int4), "0|NULL");
  EXPECT_EQ(Aggregate("stddev_pop", {"1", "2", "4"}, float8), "1.247219128924647|NULL");
  EXPECT_EQ(Aggregate("sum", {"a"}, text), "invalid: function sum(text) does not exist [42883]");
  EXPECT_EQ(Aggregate("mode", {"1", "2", "2", "3", "3"}, int4), "2|NULL");
  Result<ResolvedAggregate> star = ResolveAggregate("count", {}, true);
  ASSERT_TRUE(star.ok());
  EXPECT_TRUE(star->spec->args.empty());
}

TEST(Like, PrefixesAreWhatAnIndexMayUse) {
  EXPECT_EQ(LikePrefix("abc%").prefix, "abc");
  EXPECT_TRUE(LikePrefix("abc%").any_suffix);
  EXPECT_FALSE(LikePrefix("abc%d").any_suffix);
  EXPECT_TRUE(LikePrefix("a\\%b").exact);
  EXPECT_EQ(LikePrefix("a\\%b").prefix, "a%b");
  EXPECT_EQ(LikePrefix("a_c").prefix, "a");
  EXPECT_EQ(LikePrefix("%").prefix, "");
}

TEST(Quote, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(QuoteIdent("abc_1"), "abc_1");
  EXPECT_EQ(QuoteIdent("Abc"), "\"Abc\"");
  EXPECT_EQ(QuoteIdent("select"), "\"select\"");
  EXPECT_EQ(QuoteText("it's"), "'it''s'");
  EXPECT_EQ(QuoteText("a\\b"), "E'a\\\\b'");
}

}  // namespace
}  // namespace cellar::sql
