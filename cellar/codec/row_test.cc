// Packed rows: round trips, changes of format, trailers, and that no damaged value does harm.
#include "cellar/codec/row.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "cellar/codec/key.h"
#include "cellar/codec/random_values.h"
#include "cellar/types/collation.h"

namespace cellar::codec {
namespace {

using testing::FromHex;
using testing::RandomValues;
using testing::Rounds;
using testing::ToHex;

constexpr uint64_t kSeed = 20240608;

bool Identical(Datum a, Datum b, Type type) {
  if (a.is_null() || b.is_null()) return a.is_null() == b.is_null();
  switch (PhysicalOf(type)) {
    case Physical::kInt64: return a.int_value() == b.int_value();
    case Physical::kDouble:
      return std::bit_cast<uint64_t>(a.double_value()) == std::bit_cast<uint64_t>(b.double_value());
    case Physical::kBytes: return a.bytes() == b.bytes();
  }
  return false;
}

std::vector<Type> AllTypes() {
  std::vector<Type> types;
  for (TypeId id :
       {TypeId::kBool, TypeId::kInt2, TypeId::kInt4, TypeId::kInt8, TypeId::kOid, TypeId::kFloat4,
        TypeId::kFloat8, TypeId::kNumeric, TypeId::kText, TypeId::kVarchar, TypeId::kBpchar,
        TypeId::kBytea, TypeId::kDate, TypeId::kTime, TypeId::kTimetz, TypeId::kTimestamp,
        TypeId::kTimestamptz, TypeId::kInterval, TypeId::kUuid}) {
    types.push_back(MakeType(id));
  }
  for (TypeId id : {TypeId::kInt4, TypeId::kText, TypeId::kNumeric}) types.push_back(ArrayOf(id));
  return types;
}

// A random format of up to `most` columns; about one in four is a key column.
RowFormat RandomFormat(RandomValues* random, size_t most) {
  std::vector<Type> types = AllTypes();
  std::vector<RowColumn> columns(random->Below(most + 1));
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i] = {ColumnId{static_cast<uint32_t>(i + 1)}, types[random->Below(types.size())],
                  random->OneIn(4)};
  }
  return *RowFormat::Make(static_cast<uint32_t>(random->Below(300)), std::move(columns));
}

std::vector<WantedColumn> WantAll(const RowFormat& format) {
  std::vector<WantedColumn> wanted;
  for (const RowColumn& column : format.columns()) {
    wanted.push_back({column.id, column.type, static_cast<uint32_t>(wanted.size()), {}});
  }
  return wanted;
}

RowBatch BatchFor(const RowFormat& format, size_t rows) {
  std::vector<Type> types;
  for (const RowColumn& column : format.columns()) types.push_back(column.type);
  RowBatch batch;
  batch.Reset(types);
  batch.Resize(rows);
  return batch;
}

// What a reader has after it decoded the key: key columns in the form that keys give back.
void FillKeyColumns(const RowFormat& format, std::span<const Datum> values, size_t row,
                    RowBatch* batch) {
  for (size_t i = 0; i < values.size(); ++i) {
    const RowColumn& column = format.columns()[i];
    if (!column.in_key) continue;
    KeyColumn key_column{column.type};
    std::string key;
    AppendKeyField(values[i], key_column, &key);
    std::string_view in = key;
    batch->column(i).Set(row, *TakeKeyField(&in, key_column, batch->arena()));
  }
}

TEST(Row, EveryColumnComesBackIdenticalWithWhatItsKeyLost) {
  RandomValues random(kSeed);
  Arena arena;
  const size_t rounds = Rounds(20000, 5000000);
  for (size_t i = 0; i < rounds; ++i) {
    arena.Reset();
    RowFormat format = RandomFormat(&random, 12);
    std::vector<Datum> values;
    for (const RowColumn& column : format.columns()) {
      values.push_back(random.ValueOrNull(column.type, &arena));
    }
    std::string row = "before";
    ASSERT_TRUE(RowEncoder::Append(format, values, &row).ok());
    ASSERT_TRUE(row.starts_with("before"));
    std::string value = row.substr(6);
    ASSERT_EQ(*RowFormatIdOf(value), format.id());
    RowBatch batch = BatchFor(format, 1);
    FillKeyColumns(format, values, 0, &batch);
    RowBytes bytes = random.OneIn(2) ? RowBytes::kBorrow : RowBytes::kCopy;
    RowDecoder decoder = *RowDecoder::Make(format, WantAll(format), bytes);
    Status status = decoder.Decode(value, 0, &batch);
    ASSERT_TRUE(status.ok()) << status.ToString() << " " << ToHex(value);
    if (bytes == RowBytes::kCopy) std::fill(value.begin(), value.end(), 'x');
    for (size_t c = 0; c < values.size(); ++c) {
      ASSERT_TRUE(Identical(values[c], batch.column(c).Get(0), format.columns()[c].type))
          << "round " << i << ", column " << c << ": " << ToHex(row);
    }
  }
}

TEST(Row, BatchesEncodeAsSingleRowsDo) {
  RandomValues random(kSeed + 1);
  Arena arena;
  RowFormat format = *RowFormat::Make(7, {{ColumnId{1}, MakeType(TypeId::kInt8), true},
                                          {ColumnId{2}, MakeType(TypeId::kText)},
                                          {ColumnId{3}, MakeType(TypeId::kNumeric), true},
                                          {ColumnId{4}, MakeType(TypeId::kFloat8)}});
  RowBatch batch = BatchFor(format, 0);
  std::vector<std::string> expected;
  for (size_t row = 0; row < 300; ++row) {
    std::vector<Datum> values;
    for (const RowColumn& column : format.columns()) {
      values.push_back(random.ValueOrNull(column.type, &arena));
    }
    batch.AppendRow(values);
    ASSERT_TRUE(RowEncoder::Append(format, values, &expected.emplace_back()).ok());
  }
  const uint32_t positions[] = {0, 1, 2, 3};
  std::vector<std::string_view> views(expected.begin(), expected.end());
  for (size_t row = 0; row < 300; ++row) {
    std::string value;
    ASSERT_TRUE(RowEncoder::Append(format, batch, row, positions, &value).ok());
    ASSERT_EQ(ToHex(value), ToHex(expected[row]));
  }
  // And decode as a block.
  RowDecoder decoder = *RowDecoder::Make(format,
                                         {{ColumnId{4}, MakeType(TypeId::kFloat8), 3, {}},
                                          {ColumnId{2}, MakeType(TypeId::kText), 1, {}}},
                                         RowBytes::kBorrow);
  RowBatch out = BatchFor(format, 310);
  ASSERT_TRUE(decoder.Decode(views, 10, &out).ok());
  for (size_t row = 0; row < 300; ++row) {
    for (size_t c : {1, 3}) {
      ASSERT_TRUE(Identical(batch.column(c).Get(row), out.column(c).Get(row + 10),
                            format.columns()[c].type));
    }
  }
}

TEST(Row, LongValuesUseWideOffsets) {
  RowFormat format = *RowFormat::Make(
      1, {{ColumnId{1}, MakeType(TypeId::kText)}, {ColumnId{2}, MakeType(TypeId::kText)}});
  for (size_t size : {size_t{65534}, size_t{65535}, size_t{65536}, size_t{200000}}) {
    std::string a(size - 3, 'a');
    std::vector<Datum> values = {Datum::Bytes(a), Datum::Bytes("xyz")};
    std::string value;
    ASSERT_TRUE(RowEncoder::Append(format, values, &value).ok());
    EXPECT_EQ(value.size(), 3 + (size > 65535 ? 8 : 4) + size);
    RowBatch batch = BatchFor(format, 1);
    ASSERT_TRUE(RowDecoder::Make(format, WantAll(format), RowBytes::kBorrow)
                    ->Decode(value, 0, &batch)
                    .ok());
    EXPECT_EQ(batch.column(0).Get(0).bytes(), a);
    EXPECT_EQ(batch.column(1).Get(0).bytes(), "xyz");
  }
}

TEST(Row, OldFormatsAnswerFrozenDefaultsAndForgetDroppedColumns) {
  const Type kInt = MakeType(TypeId::kInt4), kText = MakeType(TypeId::kText);
  RowFormat old_format = *RowFormat::Make(1, {{ColumnId{1}, kInt}, {ColumnId{2}, kText}});
  RowFormat new_format = *RowFormat::Make(2, {{ColumnId{1}, kInt}, {ColumnId{3}, kText}});
  std::string old_value, new_value;
  std::vector<Datum> values = {Datum::Int(5), Datum::Bytes("dropped")};
  ASSERT_TRUE(RowEncoder::Append(old_format, values, &old_value).ok());
  values[1] = Datum::Bytes("own");
  ASSERT_TRUE(RowEncoder::Append(new_format, values, &new_value).ok());
  for (RowBytes bytes : {RowBytes::kBorrow, RowBytes::kCopy}) {
    std::vector<WantedColumn> wanted = {
        {ColumnId{3}, kText, 0, Value(kText, Datum::Bytes("frozen"))},
        {ColumnId{1}, MakeType(TypeId::kInt8), 1, {}},
        {ColumnId{4}, kInt, 2, {}}};
    RowDecoders decoders;
    decoders.Add(*RowDecoder::Make(old_format, wanted, bytes));
    decoders.Add(*RowDecoder::Make(new_format, wanted, bytes));
    RowBatch batch;
    std::vector<Type> types = {kText, MakeType(TypeId::kInt8), kInt};
    batch.Reset(types);
    batch.Resize(4);
    std::vector<std::string_view> block = {old_value, new_value, new_value, old_value};
    ASSERT_TRUE(decoders.Decode(block, 0, &batch).ok());
    EXPECT_EQ(batch.column(0).Get(0).bytes(), "frozen");
    EXPECT_EQ(batch.column(0).Get(1).bytes(), "own");
    EXPECT_EQ(batch.column(0).Get(2).bytes(), "own");
    EXPECT_EQ(batch.column(0).Get(3).bytes(), "frozen");
    for (size_t row = 0; row < 4; ++row) {
      EXPECT_EQ(batch.column(1).Get(row).int_value(), 5);
      EXPECT_TRUE(batch.column(2).IsNull(row));
    }
  }
}

TEST(Row, UnknownFormatsAreCorruption) {
  RowFormat format = *RowFormat::Make(1, {{ColumnId{1}, MakeType(TypeId::kInt4)}});
  RowFormat other = *RowFormat::Make(200, {{ColumnId{1}, MakeType(TypeId::kInt4)}});
  std::string value;
  std::vector<Datum> values = {Datum::Int(5)};
  ASSERT_TRUE(RowEncoder::Append(other, values, &value).ok());
  RowDecoder decoder = *RowDecoder::Make(format, WantAll(format), RowBytes::kBorrow);
  RowDecoders decoders;
  decoders.Add(decoder);
  RowBatch batch = BatchFor(format, 1);
  EXPECT_EQ(decoder.Decode(value, 0, &batch).code(), Code::kCorruption);
  std::string_view one = value;
  Status status = decoders.Decode({&one, 1}, 0, &batch);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_EQ(status.message(), "row value has unknown row format 200");
}

TEST(Row, TypesThatDoNotFitAreRefused) {
  RowFormat format = *RowFormat::Make(1, {{ColumnId{1}, MakeType(TypeId::kInt8)}});
  EXPECT_FALSE(
      RowDecoder::Make(format, {{ColumnId{1}, MakeType(TypeId::kInt4), 0, {}}}, RowBytes::kCopy)
          .ok());
  EXPECT_FALSE(
      RowDecoder::Make(format, {{ColumnId{1}, MakeType(TypeId::kText), 0, {}}}, RowBytes::kCopy)
          .ok());
  EXPECT_FALSE(RowFormat::Make(1, {{ColumnId{1}, MakeType(TypeId::kUnknown)}}).ok());
  EXPECT_FALSE(RowFormat::Make(1, {{ColumnId{1}, MakeType(TypeId::kInt8)},
                                   {ColumnId{1}, MakeType(TypeId::kInt8)}})
                   .ok());
}

TEST(Row, TrailerKeepsOnlyWhatKeysLose) {
  Arena arena;
  Collation collation;
  collation.oid = 20000;
  collation.name = "any_case";
  collation.locale = "und-u-ks-level2";
  collation.deterministic = false;
  Type any_case = MakeType(TypeId::kText);
  any_case.collation = Intern(collation);
  RowFormat format = *RowFormat::Make(1, {{ColumnId{1}, MakeType(TypeId::kNumeric), true},
                                          {ColumnId{2}, MakeType(TypeId::kFloat8), true},
                                          {ColumnId{3}, any_case, true}});
  std::vector<Datum> plain = {Datum::Bytes(numeric::Make(15, 1, &arena)), Datum::Double(0.0),
                              Datum()};
  std::string value;
  ASSERT_TRUE(RowEncoder::Append(format, plain, &value).ok());
  EXPECT_EQ(ToHex(value), "0101");
  value.clear();
  ASSERT_TRUE(RowEncoder::AppendUnlessEmpty(format, plain, &value).ok());
  EXPECT_EQ(value, "");
  RowDecoder decoder = *RowDecoder::Make(format, WantAll(format), RowBytes::kBorrow);
  RowBatch batch = BatchFor(format, 1);
  EXPECT_TRUE(decoder.Decode(value, 0, &batch).ok());

  std::vector<Datum> lossy = {Datum::Bytes(numeric::Make(150, 2, &arena)), Datum::Double(-0.0),
                              Datum::Bytes("Ä")};
  ASSERT_TRUE(RowEncoder::AppendUnlessEmpty(format, lossy, &value).ok());
  EXPECT_EQ(ToHex(value), "4101010a01029600000000000000020800000000000000800302c384");
  ASSERT_TRUE(decoder.Decode(value, 0, &batch).ok());
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_TRUE(Identical(batch.column(c).Get(0), lossy[c], format.columns()[c].type));
  }
}

// Uses every value that decoding handed out, as printing and computing would.
uint64_t Touch(const RowBatch& batch, const RowFormat& format) {
  uint64_t sum = 0;
  for (size_t c = 0; c < batch.num_columns(); ++c) {
    const RowColumn& column = format.columns()[c];
    if (!column.in_key) sum += HashDatum(batch.column(c).Get(0), column.type);
  }
  return sum;
}

TEST(Row, EveryTruncationIsRefusedAndNoBitFlipDoesHarm) {
  RandomValues random(kSeed + 2);
  Arena arena;
  uint64_t touched = 0;
  const size_t rounds = Rounds(300, 100000);
  for (size_t i = 0; i < rounds; ++i) {
    arena.Reset();
    RowFormat format = RandomFormat(&random, 8);
    std::vector<Datum> values;
    for (const RowColumn& column : format.columns()) {
      values.push_back(random.ValueOrNull(column.type, &arena));
    }
    std::string value;
    ASSERT_TRUE(RowEncoder::Append(format, values, &value).ok());
    RowDecoder decoder = *RowDecoder::Make(format, WantAll(format), RowBytes::kBorrow);
    RowBatch batch = BatchFor(format, 1);
    for (size_t n = 0; n < value.size(); ++n) {
      if (n == 0 && format.stored_columns() == 0) continue;  // the empty index entry
      std::string cut = value.substr(0, n);  // a heap copy: over-reads are seen by the sanitizer
      bool has_trailer = (static_cast<uint8_t>(value[0]) & 0x40) != 0;
      Status status = decoder.Decode(cut, 0, &batch);
      // A trailer may end behind one of its entries.
      ASSERT_TRUE(has_trailer || status.code() == Code::kCorruption) << ToHex(cut);
    }
    for (size_t bit = 0; bit < 8 * value.size(); ++bit) {
      std::string flipped = value;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      Status status = decoder.Decode(flipped, 0, &batch);
      ASSERT_TRUE(status.ok() || status.code() == Code::kCorruption);
      if (status.ok()) touched += Touch(batch, format);
    }
  }
  EXPECT_NE(touched, 0U);
}

TEST(Row, ForeignBytesAreRefused) {
  RowFormat format = *RowFormat::Make(1, {{ColumnId{1}, MakeType(TypeId::kText)}});
  RowDecoder decoder = *RowDecoder::Make(format, WantAll(format), RowBytes::kBorrow);
  RowBatch batch = BatchFor(format, 1);
  struct Case {
    const char* hex;
    const char* message;
  };
  for (const Case& c :
       {Case{"", "it is empty"}, Case{"0101", "it is too short"},
        Case{"0201000000", "it is not a row"}, Case{"0102000000", "it is of another row format"},
        Case{"0101000500", "its offsets point past its end"},
        Case{"010100000041", "it is too long"}, Case{"010101010041", "a NULL has bytes"},
        Case{"4101000000", "its trailer is missing"},
        Case{"41010000000105", "its trailer is broken"}}) {
    Status status = decoder.Decode(FromHex(c.hex), 0, &batch);
    EXPECT_EQ(status.code(), Code::kCorruption) << c.hex;
    EXPECT_EQ(status.message(), fmt::format("row value makes no sense: {}", c.message)) << c.hex;
  }
}

TEST(Cell, ComesBackWithItsType) {
  RandomValues random(kSeed + 3);
  Arena arena;
  for (Type type : AllTypes()) {
    for (int i = 0; i < 200; ++i) {
      Datum value = random.ValueOrNull(type, &arena);
      std::string cell;
      AppendCell(value, type, &cell);
      Result<Datum> back = ParseCell(cell, type);
      ASSERT_TRUE(back.ok()) << TypeName(type);
      ASSERT_TRUE(Identical(value, *back, type));
      Type other = type.id == TypeId::kBool ? MakeType(TypeId::kText) : MakeType(TypeId::kBool);
      ASSERT_EQ(ParseCell(cell, other).ok(), value.is_null());
      ASSERT_FALSE(ParseCell(cell.substr(0, 1), type).ok());
    }
  }
  std::string cell;
  AppendCell(Datum::Int(7), MakeType(TypeId::kInt4), &cell);
  EXPECT_EQ(ToHex(cell), "03030700000000000000");
  EXPECT_EQ(ParseCell(cell, MakeType(TypeId::kInt8))->int_value(), 7);
  EXPECT_FALSE(ParseCell(cell, MakeType(TypeId::kInt2)).ok());
}

}  // namespace
}  // namespace cellar::codec
