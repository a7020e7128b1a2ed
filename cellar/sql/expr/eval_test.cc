// The batch evaluator against the row evaluator, and what only batches show.
#include "cellar/sql/expr/eval.h"

#include <gtest/gtest.h>

#include <random>

#include "cellar/sql/expr/test_parser.h"
#include "cellar/types/numeric.h"

namespace cellar::sql {
namespace {

using testing::Bind;
using testing::TestColumn;

const std::vector<TestColumn>& Columns() {
  static const std::vector<TestColumn> columns = {
      {"a", MakeType(TypeId::kInt4)},    {"b", MakeType(TypeId::kInt4)},
      {"s", MakeType(TypeId::kInt2)},    {"l", MakeType(TypeId::kInt8)},
      {"f", MakeType(TypeId::kFloat8)},  {"g", MakeType(TypeId::kFloat8)},
      {"n", MakeType(TypeId::kNumeric)}, {"t", MakeType(TypeId::kText)},
      {"v", MakeType(TypeId::kVarchar)}, {"p", MakeType(TypeId::kBool)},
      {"q", MakeType(TypeId::kBool)},    {"d", MakeType(TypeId::kDate)},
      {"i", ArrayOf(TypeId::kInt4)}};
  return columns;
}

// Small values, so that comparisons and divisions by zero happen; about a fifth are NULL.
RowBatch RandomBatch(std::mt19937_64& random, size_t rows) {
  std::vector<Type> types;
  for (const TestColumn& column : Columns()) types.push_back(column.type);
  RowBatch batch;
  batch.Reset(types);
  Arena arena;
  const FormatSettings settings;
  std::vector<Datum> row(types.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < types.size(); ++c) {
      const int64_t small = static_cast<int64_t>(random() % 7) - 3;
      row[c] = Datum();
      if (random() % 5 == 0) continue;
      if (types[c].array) {
        row[c] = *ParseDatum("{1,2,NULL,3}", types[c], settings, &arena);
      } else if (PhysicalOf(types[c]) == Physical::kDouble) {
        row[c] = Datum::Double(small == 3 ? std::nan("") : static_cast<double>(small) / 2);
      } else if (types[c].id == TypeId::kNumeric) {
        row[c] = Datum::Bytes(numeric::FromInt64(small, &arena));
      } else if (types[c].id == TypeId::kBool) {
        row[c] = Datum::Bool(small > 0);
      } else if (PhysicalOf(types[c]) == Physical::kInt64) {
        row[c] = Datum::Int(small);
      } else {
        static constexpr std::string_view kTexts[] = {"", "a", "ab", "abc", "b", "größe", "x%"};
        row[c] = Datum::Bytes(kTexts[random() % 7]);
      }
    }
    batch.AppendRow(row);
  }
  return batch;
}

class Evaluation : public ::testing::Test {
 protected:
  Evaluation() { context_.set_arena(&arena_); }
  ExprPtr Read(std::string_view text) {
    Result<ExprPtr> expr = Bind(text, Columns(), &context_);
    EXPECT_TRUE(expr.ok()) << text << ": " << expr.status().ToString();
    return expr.ok() ? std::move(*expr) : nullptr;
  }
  static std::string Print(Datum value, Type type) {
    if (value.is_null()) return "NULL";
    std::string out;
    AppendDatumText(value, type, FormatSettings(), &out);
    return out;
  }

  Arena arena_;
  EvalContext context_;
};

constexpr std::string_view kExpressions[] = {"a",
                                             "5",
                                             "a + b",
                                             "a - 1",
                                             "a * b",
                                             "a + l",
                                             "s + a",
                                             "l * 2",
                                             "a % 2",
                                             "-a",
                                             "f + g",
                                             "f * 2",
                                             "n + n",
                                             "n * a",
                                             "a::float8",
                                             "l::int4",
                                             "a::text",
                                             "v",
                                             "v || t",
                                             "t || a",
                                             "lower(t)",
                                             "length(t)",
                                             "a = b",
                                             "a <> b",
                                             "a < b",
                                             "a <= b",
                                             "a > b",
                                             "a >= b",
                                             "a = 1",
                                             "1 < a",
                                             "a < 2",
                                             "f = g",
                                             "f < g",
                                             "f >= 0.5",
                                             "n = 1",
                                             "n < n",
                                             "t = 'a'",
                                             "t < v",
                                             "t >= 'ab'",
                                             "p",
                                             "not p",
                                             "p and q",
                                             "p or q",
                                             "p and q or not p",
                                             "a = 1 and b = 2",
                                             "a = 1 or b = 2 or t = 'a'",
                                             "a is null",
                                             "t is not null",
                                             "p is true",
                                             "p is not true",
                                             "p is false",
                                             "p is unknown",
                                             "p is not unknown",
                                             "case when p then a when q then b end",
                                             "case when a <> 0 then 10 / a else 0 end",
                                             "case a when 1 then 'one' when 2 then 'two' end",
                                             "coalesce(a, b, 0)",
                                             "coalesce(t, v)",
                                             "nullif(a, b)",
                                             "greatest(a, b, 1)",
                                             "least(f, g)",
                                             "a in (1, 2)",
                                             "a not in (1, 2)",
                                             "a in (1, null)",
                                             "a in (b, 1)",
                                             "t in ('a', 'b')",
                                             "a in (-3,-2,-1,0,1,2,3,4,5,6)",
                                             "t in ('a','b','c','d','e','f','g','h','i','j')",
                                             "n in (1,2,3,4,5,6,7,8,9,10)",
                                             "a not in (1,2,3,4,5,6,7,8,9,10,null)",
                                             "f in (0.5, 1)",
                                             "a = any (i)",
                                             "a > all (i)",
                                             "a = any (array[1,2])",
                                             "a = any (array[1,2,3,4,5,6,7,8,9,10,null])",
                                             "a <> all (array[1,2])",
                                             "t like 'a%'",
                                             "t like '%b%'",
                                             "t not like '_'",
                                             "t like v",
                                             "t ilike 'A%'",
                                             "t ~ '^a'",
                                             "t !~ 'b'",
                                             "t ~* 'AB'",
                                             "t ~ v",
                                             "d = date '2000-01-02'",
                                             "d + a",
                                             "d < timestamp '2000-01-01 12:00'",
                                             "a is distinct from b",
                                             "a is not distinct from b",
                                             "a between b and 2",
                                             "(a, b) < (b, a)",
                                             "row(a, b) is null",
                                             "array[a, b]",
                                             "i[a]",
                                             "i[2] + a",
                                             "b <> 0 and a / b > 0",
                                             "b = 0 or a / b > 0",
                                             "regexp_replace(t, 'a', 'b')",
                                             "substring(t, 1, 2)",
                                             "concat(a, t)",
                                             "upper(coalesce(v, 'none'))",
                                             "abs(a) + abs(b)",
                                             "a & b",
                                             "a << 2",
                                             "now() is null",
                                             "random() < 2",
                                             "date_trunc('month', d)",
                                             "extract(year from d)",
                                             "a::numeric(5,2)",
                                             "t::char(2)",
                                             "v::varchar(1)",
                                             "(a + b) * (a - b)",
                                             "a = 1 and p",
                                             "not (a = 1 or b = 1)"};

TEST_F(Evaluation, BatchesAgreeWithRows) {
  std::mt19937_64 random(20241127);
  for (std::string_view text : kExpressions) {
    ExprPtr expr = Read(text);
    ASSERT_NE(expr, nullptr);
    Evaluator evaluator(expr.get());
    for (size_t rows : {1u, 0u, 37u, 200u}) {
      RowBatch batch = RandomBatch(random, rows);
      std::vector<uint32_t> some;
      for (uint32_t r = 0; r < rows; ++r) {
        if (random() % 3 != 0) some.push_back(r);
      }
      const Selection selections[] = {{nullptr, rows}, {some.data(), some.size()}};
      for (Selection selection : selections) {
        Result<const ColumnVector*> vector = evaluator.Eval(batch, selection, context_);
        ASSERT_TRUE(vector.ok()) << text << ": " << vector.status().ToString();
        ASSERT_EQ((*vector)->size(), rows) << text;
        std::vector<uint32_t> expected, passing;
        for (size_t i = 0; i < selection.count; ++i) {
          Result<Datum> value = EvalRow(*expr, context_, &batch, selection[i]);
          ASSERT_TRUE(value.ok()) << text;
          ASSERT_EQ(Print((*vector)->Get(selection[i]), expr->type), Print(*value, expr->type))
              << text << " row " << selection[i];
          if (!value->is_null() && value->bool_value()) expected.push_back(selection[i]);
        }
        if (expr->type.id != TypeId::kBool) continue;
        Status filtered = evaluator.Filter(batch, selection, context_, &passing);
        ASSERT_TRUE(filtered.ok());
        EXPECT_EQ(passing, expected) << text;
      }
    }
  }
}

TEST_F(Evaluation, ErrorsOfSkippedRowsDoNotHappen) {
  std::mt19937_64 random(7);
  RowBatch batch = RandomBatch(random, 100);
  ExprPtr guarded = Read("case when a = 0 then 0 else 6 / a end");
  ExprPtr bare = Read("6 / a");
  EXPECT_TRUE(Evaluator(guarded.get()).Eval(batch, {nullptr, 100}, context_).ok());
  Result<const ColumnVector*> failed = Evaluator(bare.get()).Eval(batch, {nullptr, 100}, context_);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().sqlstate(), "22012");
  EXPECT_EQ(failed.status().message(), "division by zero");
}

TEST_F(Evaluation, ParametersAndSlotsAreReadAtEachCall) {
  auto parameter = std::make_unique<Expr>();
  parameter->kind = ExprKind::kParameter;
  parameter->type = MakeType(TypeId::kInt4);
  Datum values[1] = {Datum::Int(5)};
  context_.parameters = values;
  Evaluator evaluator(parameter.get());
  RowBatch batch;
  batch.Reset({});
  batch.SetSize(3);
  EXPECT_EQ((*evaluator.Eval(batch, {nullptr, 3}, context_))->Get(2).int_value(), 5);
  values[0] = Datum::Int(6);
  EXPECT_EQ((*evaluator.Eval(batch, {nullptr, 3}, context_))->Get(0).int_value(), 6);
  parameter->index = 4;
  EXPECT_EQ(evaluator.Eval(batch, {nullptr, 3}, context_).status().sqlstate(), "42P02");
}

// A subplan that answers its slot plus one.
class PlusOne : public SubplanRunner {
 public:
  Result<Datum> Run(const Expr&, std::span<const Datum>, EvalContext& context) override {
    ++runs;
    Datum slot = context.exec_parameters[2];
    return slot.is_null() ? Datum() : Datum::Int(slot.int_value() + 1);
  }
  int runs = 0;
};

TEST_F(Evaluation, SubplansRunForEachRowWithTheirSlots) {
  std::mt19937_64 random(3);
  RowBatch batch = RandomBatch(random, 50);
  auto subplan = std::make_unique<Expr>();
  subplan->kind = ExprKind::kSubplan;
  subplan->type = MakeType(TypeId::kInt4);
  subplan->slots = {2};
  subplan->slot_values.push_back(Read("a"));
  PlusOne runner;
  context_.subplans = &runner;
  Evaluator evaluator(subplan.get());
  Result<const ColumnVector*> vector = evaluator.Eval(batch, {nullptr, 50}, context_);
  ASSERT_TRUE(vector.ok());
  for (size_t r = 0; r < 50; ++r) {
    Datum a = batch.column(0).Get(r), out = (*vector)->Get(r);
    ASSERT_EQ(a.is_null(), out.is_null());
    if (a.is_null()) continue;
    EXPECT_EQ(out.int_value(), a.int_value() + 1);
  }
  EXPECT_EQ(runner.runs, 50);
}

TEST_F(Evaluation, ConstantsFoldAndPrint) {
  struct Case {
    std::string_view text, printed;
  };
  const std::vector<std::string> names = {"a", "b", "s", "l", "f", "g", "n",
                                          "t", "v", "p", "q", "d", "i"};
  for (const Case& c : std::initializer_list<Case>{
           {"a > 5", "(a > 5)"},
           {"t like 'x%'", "(t ~~ 'x%'::text)"},
           {"v = 'x'", "((v)::text = 'x'::text)"},
           {"a = '5'", "(a = 5)"},
           {"l > 5", "(l > 5)"},
           {"a = 1 and p", "((a = 1) AND p)"},
           {"not p", "(NOT p)"},
           {"a is null", "(a IS NULL)"},
           {"lower(t)", "lower(t)"},
           {"a::text", "(a)::text"},
           {"d = '2024-01-05'", "(d = '2024-01-05'::date)"},
           {"coalesce(a, 0)", "COALESCE(a, 0)"},
           {"case when p then 1 else 2 end", "CASE WHEN p THEN 1 ELSE 2 END"},
           {"a = any ('{1,2}')", "(a = ANY ('{1,2}'::integer[]))"}}) {
    EXPECT_EQ(ExprToString(*Read(c.text), names), c.printed);
  }
  EXPECT_TRUE(IsConstantExpr(*Read("1 + 2")));
  EXPECT_FALSE(IsConstantExpr(*Read("a + 2")));
  EXPECT_FALSE(IsConstantExpr(*Read("now()")));
  EXPECT_TRUE(IsRowIndependent(*Read("now()")));
  EXPECT_FALSE(IsRowIndependent(*Read("random()")));
  EXPECT_TRUE(ExprEquals(*Read("a + length(t)"), *CloneExpr(*Read("a + length(t)"))));
  EXPECT_FALSE(ExprEquals(*Read("n + 1.0"), *Read("n + 1.00")));
}

}  // namespace
}  // namespace cellar::sql
