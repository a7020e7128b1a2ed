// What goes over the wire comes back as it was; what a stranger made up does no harm.
#include <gtest/gtest.h>

#include <random>

#include "cellar/rpc/wire/convert.h"
#include "cellar/types/text_io.h"
#include "cellar/v1/data.pb.h"

namespace cellar::rpc {
namespace {

const Type kTypes[] = {
    MakeType(TypeId::kBool),     MakeType(TypeId::kInt2),        MakeType(TypeId::kInt4),
    MakeType(TypeId::kInt8),     MakeType(TypeId::kFloat8),      MakeType(TypeId::kNumeric),
    MakeType(TypeId::kText),     MakeType(TypeId::kVarchar, 44), MakeType(TypeId::kBytea),
    MakeType(TypeId::kDate),     MakeType(TypeId::kTime),        MakeType(TypeId::kTimestamp),
    MakeType(TypeId::kInterval), MakeType(TypeId::kUuid),        MakeType(TypeId::kJsonb),
    ArrayOf(TypeId::kInt4),      MakeType(TypeId::kTimestamptz)};

const char* Sample(Type type, std::mt19937* random) {
  const auto pick = [&](std::initializer_list<const char*> texts) {
    return texts.begin()[(*random)() % texts.size()];
  };
  if (type.array) return pick({"{}", "{1,NULL,3}", "{{1,2},{3,4}}"});
  switch (type.id) {
    case TypeId::kBool: return pick({"t", "f"});
    case TypeId::kInt2: return pick({"0", "-32768", "32767"});
    case TypeId::kInt4: return pick({"0", "-2147483648", "2147483647", "17"});
    case TypeId::kInt8: return pick({"0", "-9223372036854775808", "9223372036854775807", "-1"});
    case TypeId::kFloat8: return pick({"0", "-0", "1.5", "NaN", "Infinity", "1e-300"});
    case TypeId::kNumeric: return pick({"0", "1.50", "-123456789012345678901234567890.5", "NaN"});
    case TypeId::kBytea: return pick({"\\x", "\\x00ff", "\\x616263"});
    case TypeId::kDate: return pick({"2000-01-01", "infinity", "-infinity", "4713-01-01 BC"});
    case TypeId::kTime: return pick({"00:00:00", "23:59:59.999999", "24:00:00"});
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: return pick({"2024-02-29 12:34:56.789", "infinity", "1900-01-01"});
    case TypeId::kInterval: return pick({"1 mon 2 days 03:04:05", "-1 days"});
    case TypeId::kUuid:
      return pick({"00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"});
    case TypeId::kJsonb: return pick({"{\"a\": [1, null]}", "null", "\"x\""});
    default: return pick({"", "a", "\xc3\xa4\xe2\x82\xac", "longer than a few bytes"});
  }
}

RowBatch RandomRows(size_t rows, std::mt19937* random) {
  RowBatch batch;
  batch.Reset(kTypes);
  std::vector<Datum> row(std::size(kTypes));
  for (size_t i = 0; i < rows; ++i) {
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = Datum();
      if ((*random)() % 5 == 0) continue;
      row[c] = *ParseDatum(Sample(kTypes[c], random), kTypes[c], FormatSettings(), batch.arena());
    }
    batch.AppendRow(row);
  }
  return batch;
}

std::string Print(const RowBatch& batch) {
  std::string text;
  for (size_t row = 0; row < batch.size(); ++row) {
    for (size_t c = 0; c < batch.num_columns(); ++c) {
      const ColumnVector& column = batch.column(c);
      if (column.IsNull(row)) {
        text += "NULL";
      } else {
        AppendDatumText(column.Get(row), column.type(), FormatSettings(), &text);
      }
      text += '|';
    }
    text += '\n';
  }
  return text;
}

TEST(Rows, ComeBackAsTheyWere) {
  std::mt19937 random(7);
  for (size_t rows : {0, 1, 7, 8, 9, 1000}) {
    const RowBatch batch = RandomRows(rows, &random);
    v1::RowBlock block;
    PutRows(batch, 0, rows, true, &block);
    v1::RowBlock sent;
    ASSERT_TRUE(sent.ParseFromString(block.SerializeAsString()));
    const auto types = TypesOf(sent);
    ASSERT_TRUE(types.ok());
    ASSERT_TRUE(std::equal(types->begin(), types->end(), std::begin(kTypes)));
    RowBatch borrowed, taken;
    ASSERT_TRUE(BorrowRows(sent, kTypes, &borrowed).ok());
    EXPECT_EQ(Print(borrowed), Print(batch));
    ASSERT_TRUE(TakeRows(sent, kTypes, &taken, nullptr).ok());
    sent.Clear();  // taken rows have their own bytes
    EXPECT_EQ(Print(taken), Print(batch));
    if (rows > 3) {
      v1::RowBlock part;
      PutRows(batch, 2, rows - 1, false, &part);
      ASSERT_TRUE(BorrowRows(part, kTypes, &borrowed).ok());
      EXPECT_EQ(borrowed.size(), rows - 3);
      EXPECT_NE(Print(batch).find(Print(borrowed)), std::string::npos);
    }
  }
}

TEST(Rows, MadeUpOnesAreRefusedOrRead) {
  std::mt19937 random(11);
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const RowBatch batch = RandomRows(1 + random() % 4, &random);
    v1::RowBlock block;
    PutRows(batch, 0, batch.size(), true, &block);
    v1::ColumnBlock* column = block.mutable_columns(static_cast<int>(random() % std::size(kTypes)));
    switch (random() % 9) {
      case 0: block.set_rows(static_cast<uint32_t>(random())); break;
      case 1: column->add_ints(static_cast<int64_t>(random()) << (random() % 33)); break;
      case 2: column->add_lengths(static_cast<uint32_t>(random())); break;
      case 3: column->mutable_data()->append("\xff\x00", 2); break;
      case 4: column->set_nulls(std::string(random() % 5, '\x55')); break;
      case 5: column->set_unset(std::string(random() % 5, '\x01')); break;
      case 6: block.mutable_columns()->RemoveLast(); break;
      case 7:
        if (column->ints_size() > 0) column->set_ints(0, INT64_MAX - 5);
        break;
      default:
        for (char& c : *column->mutable_data()) c = static_cast<char>(random());
        break;
    }
    RowBatch taken, borrowed;
    std::vector<std::vector<uint8_t>> unset;
    if (!TakeRows(block, kTypes, &taken, &unset).ok()) {
      ++refused;
      continue;
    }
    Print(taken);
    ASSERT_TRUE(BorrowRows(block, kTypes, &borrowed).ok());
  }
  EXPECT_GT(refused, 5000u);
}

TEST(Rows, CellsMayBeLeftOut) {
  const Type types[] = {MakeType(TypeId::kInt8), MakeType(TypeId::kText)};
  v1::RowBlock block;
  block.set_rows(3);
  for (int i = 0; i < 3; ++i) block.add_columns()->Clear();
  block.mutable_columns()->RemoveLast();
  for (int64_t i : {1, 2, 3}) block.mutable_columns(0)->add_ints(i);
  for (uint32_t length : {1u, 0u, 1u}) block.mutable_columns(1)->add_lengths(length);
  block.mutable_columns(1)->set_data("ab");
  block.mutable_columns(1)->set_unset("\x02");
  RowBatch batch;
  std::vector<std::vector<uint8_t>> unset;
  ASSERT_TRUE(TakeRows(block, types, &batch, &unset).ok());
  EXPECT_TRUE(unset[0].empty());
  EXPECT_EQ(unset[1], (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_FALSE(TakeRows(block, types, &batch, nullptr).ok());
}

TEST(Filters, ComeBackAsTheyWere) {
  const Filter filter = (Col("age") + 1 < 30 && !Col("name").StartsWith("k")) ||
                        Col("day").In({Filter::Literal("2024-02-29", "date"), nullptr}) ||
                        (Col("data") == Filter(Cell::Bytes(std::string("\0\xff", 2)))) ||
                        Col("x").IsNull();
  v1::Expression message;
  PutFilter(filter, &message);
  const auto taken = TakeFilter(message);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->ToString(), filter.ToString());
}

TEST(Filters, DeepAndMalformedOnesAreRefused) {
  v1::Expression deep;
  deep.set_op(v1::OPERATOR_LITERAL);
  for (int i = 0; i < 95; ++i) {
    v1::Expression outer;
    outer.set_op(v1::OPERATOR_NOT);
    *outer.add_args() = deep;
    deep = outer;
  }
  EXPECT_EQ(TakeFilter(deep).status().sqlstate(), "54001");
  v1::Expression wide;
  wide.set_op(v1::OPERATOR_AND);
  for (int i = 0; i < 10001; ++i) wide.add_args()->set_op(v1::OPERATOR_LITERAL);
  EXPECT_EQ(TakeFilter(wide).status().sqlstate(), "54001");
  v1::Expression odd;
  EXPECT_EQ(TakeFilter(odd).status().sqlstate(), "22023");
  odd.set_op(v1::OPERATOR_LESS);
  odd.add_args()->set_op(v1::OPERATOR_LITERAL);
  EXPECT_EQ(TakeFilter(odd).status().sqlstate(), "22023");
  odd.set_op(static_cast<v1::Operator>(99));
  EXPECT_EQ(TakeFilter(odd).status().sqlstate(), "22023");
}

TEST(Errors, ComeBackAsTheyWere) {
  const Status error = SqlError(Code::kConstraint, "23505", "duplicate key")
                           .WithDetail("Key (a)=(1).")
                           .WithHint("Use another.")
                           .WithTable("public", "t")
                           .WithColumn("a")
                           .WithConstraint("t_pkey");
  v1::ErrorDetail detail;
  PutError(error, &detail);
  EXPECT_FALSE(detail.retryable());
  const Status taken = TakeError(detail);
  EXPECT_EQ(taken.ToString(), error.ToString());
  EXPECT_EQ(taken.sqlstate(), "23505");
  EXPECT_EQ(taken.constraint_name(), "t_pkey");
  EXPECT_EQ(GrpcCodeOf(error), 6);
  EXPECT_EQ(GrpcCodeOf(SqlError(Code::kInvalid, "42501", "no")), 7);
  EXPECT_EQ(GrpcCodeOf(SqlError(Code::kInvalid, "28P01", "no")), 16);
  EXPECT_EQ(GrpcCodeOf(SqlError(Code::kInvalid, "55000", "no")), 9);
  v1::ErrorDetail conflict;
  PutError(SqlError(Code::kConflict, "40001", "no"), &conflict);
  EXPECT_TRUE(conflict.retryable());
}

TEST(Schemas, ComeBackAsTheyWere) {
  TableSchema schema;
  schema.path = "/a/t";
  schema.id = 7;
  schema.version = 9;
  schema.columns = {{1, "id", MakeType(TypeId::kInt8), true, false, false, ""},
                    {2, "name", MakeType(TypeId::kVarchar, 44), false, true, false, "who"}};
  TableIndex primary;
  primary.name = "t_pkey";
  primary.primary = primary.unique = true;
  primary.key.push_back({0, "", MakeType(TypeId::kInt8), true, true, ""});
  primary.stored = {1};
  TableIndex lower;
  lower.name = "t_lower";
  lower.key.push_back({-1, "lower(name)", MakeType(TypeId::kText), false, false, ""});
  schema.indexes = {primary, lower};
  v1::TableSchema message, again;
  PutSchema(schema, &message);
  const SchemaPtr taken = TakeSchema(message);
  PutSchema(*taken, &again);
  EXPECT_EQ(again.SerializeAsString(), message.SerializeAsString());
  EXPECT_EQ(taken->columns[1].type, schema.columns[1].type);
  EXPECT_EQ(taken->indexes[0].key[0].column, 0);
  EXPECT_EQ(taken->indexes[1].key[0].type, MakeType(TypeId::kText));
}

}  // namespace
}  // namespace cellar::rpc
