// Functions over long values: they stop when the statement is cancelled, and refuse to make values
// beyond the bound before they take memory for them.
#include <gtest/gtest.h>

#include "cellar/base/interrupt.h"
#include "cellar/sql/expr/test_parser.h"
#include "cellar/types/batch.h"

namespace cellar::sql {
namespace {

// How an expression over the long text v ends: its SQLSTATE, or "ok".
std::string EndHere(std::string_view text, std::string_view v, const CancelToken* cancel) {
  Arena arena;
  EvalContext context;
  context.set_arena(&arena);
  const Type type = MakeType(TypeId::kText);
  Result<ExprPtr> expr = testing::Bind(text, {{"v", type}}, &context);
  if (!expr.ok()) return expr.status().ToString();
  RowBatch batch;
  batch.Reset({&type, 1});
  const Datum row[] = {Datum::Bytes(v)};
  batch.AppendRow(row);
  context.cancel = cancel;
  const Expr& e = **expr;
  Status status;
  if (e.kind == ExprKind::kCall && e.function->set != nullptr) {
    std::vector<Datum> args;
    for (const ExprPtr& arg : e.args) {
      Result<Datum> value = EvalRow(*arg, context, &batch, 0);
      if (!value.ok()) return value.status().ToString();
      args.push_back(*value);
    }
    Result<SetRowsPtr> rows = e.function->set(context, e, args);
    if (!rows.ok()) return std::string(rows.status().sqlstate());
    ColumnVector column(e.type);
    ColumnVector* const columns[] = {&column};
    Result<size_t> got = size_t{1};
    while (got.ok() && *got != 0) got = (*rows)->Next(context, kBatchRows, columns);
    status = got.status();
  } else {
    status = EvalRow(e, context, &batch, 0).status();
  }
  return status.ok() ? "ok" : std::string(status.sqlstate());
}

// The same with the thread listening, as the door of a session has it.
std::string EndOf(std::string_view text, std::string_view v, const CancelToken* cancel) {
  std::string end;
  const Status status = CatchInterrupted([&] {
    const InterruptScope scope(cancel);
    end = EndHere(text, v, cancel);
    return Status();
  });
  return status.ok() ? end : std::string(status.sqlstate());
}

// Each of these goes through megabytes, or makes them: with a statement that is already cancelled
// none is through.
TEST(LongValues, StopWhenCancelled) {
  CancelToken cancelled;
  cancelled.Cancel(CancelToken::Reason::kUser);
  std::string v;
  while (v.size() < (5 << 18)) v += "ab, c";
  for (const char* text : {"repeat(v, 20)",
                           "lpad(v, 3000000, 'xy')",
                           "rpad(v, 3000000)",
                           "replace(v, 'a', 'xyz')",
                           "translate(v, 'abc', 'xyz')",
                           "reverse(v)",
                           "upper(v)",
                           "lower(v)",
                           "initcap(v)",
                           "string_to_array(v, ',')",
                           "string_to_array(v, null)",
                           "split_part(v, ',', 100000000)",
                           "split_part(v, ',', -2)",
                           "regexp_replace(v, '[a-c]', 'x', 'g')",
                           "regexp_split_to_array(v, ',')",
                           "regexp_count(v, 'a')",
                           "regexp_matches(v, 'a', 'g')",
                           "regexp_split_to_table(v, ',')",
                           "string_to_table(v, ',')",
                           "to_json(v)",
                           "json_build_array(v)",
                           "format('%s%s', v, v)",
                           "concat(v, v)",
                           "concat_ws(',', v, v)",
                           "unistr(v)",
                           "encode(convert_to(v, 'utf8'), 'escape')",
                           "array_fill(length(v), array[100000]) @> array[7]",
                           "array_position(string_to_array(v, ','), 'x')",
                           "jsonb_build_object('a', v, 'b', v)",
                           "convert_from(convert_to(v, 'latin1'), 'latin1')",
                           "btrim(v, 'abc ,')",
                           "strpos(v, 'abcabc')",
                           "replace(v, 'abcabc', '')",
                           "v like '%abcabc%'",
                           "v like '%a_a_a_a_z%'",
                           "v ilike '%z'",
                           "md5(v)",
                           "sha256(convert_to(v, 'utf8'))",
                           "encode(convert_to(v, 'utf8'), 'hex')",
                           "encode(convert_to(v, 'utf8'), 'base64')",
                           "decode(v, 'escape')",
                           "quote_literal(v)::bytea",
                           "row(row(row(row(v))))::text",
                           "array_fill(v, array[2])::text",
                           "('{' || v || '}')::text[]",
                           "to_json(v)::jsonb",
                           "to_jsonb(v) = to_jsonb(v)",
                           "normalize(v)"}) {
    EXPECT_EQ(EndOf(text, v, nullptr), "ok") << text;
    EXPECT_EQ(EndOf(text, v, &cancelled), "57014") << text;
  }
}

// Steps are counted over all calls: many short values are interrupted as one long one is.
TEST(LongValues, ArePolledOnceInTenThousandStepsOrAMegabyte) {
  CancelToken cancelled;
  cancelled.Cancel(CancelToken::Reason::kUser);
  EvalContext context;
  context.cancel = &cancelled;
  size_t steps = 0, bytes = 0;
  while (context.Step().ok()) ++steps;
  EXPECT_LT(steps, 10'000u);
  while (context.StepOver(1000).ok()) bytes += 1000;
  EXPECT_LT(bytes, size_t{1} << 20);
  EXPECT_FALSE(context.StepOver(1 << 20).ok());
}

// Together these would take hundreds of gigabytes.
TEST(LongValues, AreBoundedBeforeTheyAreMade) {
  const std::string v(1'000'000, 'x');
  for (const char* text :
       {"repeat(v, 269)", "repeat(v, 2147483647)", "lpad(v, 2147483647)",
        "rpad(v, 300000000, 'ab')", "format('%300000000s', v)", "array_fill(v, array[300])",
        "array_fill(length(v), array[20000000])", "array_fill(length(v), array[9999, 9999, 9])",
        "array_fill(length(v), array[1], array[2147483647])", "replace(v, 'x', v)"}) {
    EXPECT_EQ(EndOf(text, v, nullptr), "54000") << text;
  }
}

// These grow: no more than the bound is made.
TEST(LongValues, AreBoundedAsTheyGrow) {
  const std::string v(1'000'000, 'x');
  for (const char* text :
       {"concat_ws(repeat(v, 90), v, v, v, v)", "repeat(v, 150) || repeat(v, 150)",
        "string_to_array(repeat(v, 20), null)"}) {
    EXPECT_EQ(EndOf(text, v, nullptr), "54000") << text;
  }
}

// What a function makes beside its result is not counted where it is made: a call takes from the
// account as much again as its arguments hold.
TEST(LongValues, AreChargedWhileAFunctionLooksAtThem) {
  const std::string v(2'000'000, 'x');
  const MemoryAccountPtr account =
      MemoryAccount::Make(MemoryAccount::Process(), "test", "--test", size_t{5} << 20);
  const MemoryScope scope(account.get());
  EXPECT_EQ(EndOf("length(v)", v, nullptr), "ok");
  EXPECT_EQ(EndOf("strpos(v, v)", v, nullptr), "53200");
}

}  // namespace
}  // namespace cellar::sql
