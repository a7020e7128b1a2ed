// Properties of key fields over random values: order, uniqueness, prefix-freedom, round trip, and
// that no damaged key does harm. CELLAR_LONG_TESTS=1 runs 10 million pairs per type and column
// kind.
#include <gtest/gtest.h>

#include "cellar/codec/key.h"
#include "cellar/codec/random_values.h"
#include "cellar/types/text_io.h"

namespace cellar::codec {
namespace {

using testing::AllColumnsOf;
using testing::CompareInColumn;
using testing::RandomValues;
using testing::Rounds;
using testing::SignOf;
using testing::ToHex;

constexpr uint64_t kSeed = 20240607;

std::string Encode(Datum value, const KeyColumn& column) {
  std::string key;
  AppendKeyField(value, column, &key);
  return key;
}

class KeyProperty : public ::testing::TestWithParam<Type> {};

std::string NameOf(const ::testing::TestParamInfo<Type>& info) { return TypeName(info.param); }

INSTANTIATE_TEST_SUITE_P(
    Types, KeyProperty,
    ::testing::Values(MakeType(TypeId::kBool), MakeType(TypeId::kInt2), MakeType(TypeId::kInt4),
                      MakeType(TypeId::kInt8), MakeType(TypeId::kOid), MakeType(TypeId::kFloat4),
                      MakeType(TypeId::kFloat8), MakeType(TypeId::kNumeric),
                      MakeType(TypeId::kText), MakeType(TypeId::kBpchar), MakeType(TypeId::kBytea),
                      MakeType(TypeId::kDate), MakeType(TypeId::kTime), MakeType(TypeId::kTimetz),
                      MakeType(TypeId::kTimestamp), MakeType(TypeId::kTimestamptz),
                      MakeType(TypeId::kInterval), MakeType(TypeId::kUuid), ArrayOf(TypeId::kInt4),
                      ArrayOf(TypeId::kText), ArrayOf(TypeId::kNumeric)),
    NameOf);

TEST_P(KeyProperty, BytesSortAsValuesAndNoneIsAPrefixOfAnother) {
  RandomValues random(kSeed);
  Arena arena;
  for (const KeyColumn& column : AllColumnsOf(GetParam())) {
    const size_t rounds = Rounds(60000, 10000000);
    for (size_t i = 0; i < rounds; ++i) {
      if (i % 1024 == 0) arena.Reset();
      Datum a = random.ValueOrNull(column.type, &arena);
      Datum b = random.ValueOrNull(column.type, &arena);
      std::string x = Encode(a, column);
      std::string y = Encode(b, column);
      ASSERT_EQ(SignOf(x.compare(y)), SignOf(CompareInColumn(a, b, column)))
          << "round " << i << ": " << ToHex(x) << " and " << ToHex(y);
      if (x != y) {
        ASSERT_FALSE(x.starts_with(y) || y.starts_with(x)) << ToHex(x) << " and " << ToHex(y);
      }
    }
  }
}

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

TEST_P(KeyProperty, FieldsComeBackEqualAndIdenticalUnlessTheKeyLosesInformation) {
  RandomValues random(kSeed + 1);
  Arena arena;
  size_t lost = 0;
  for (const KeyColumn& column : AllColumnsOf(GetParam())) {
    const size_t rounds = Rounds(20000, 10000000);
    for (size_t i = 0; i < rounds; ++i) {
      if (i % 1024 == 0) arena.Reset();
      Datum value = random.ValueOrNull(column.type, &arena);
      std::string key = Encode(value, column) + "rest";
      std::string_view in = key;
      Result<Datum> back = TakeKeyField(&in, column, &arena);
      ASSERT_TRUE(back.ok()) << back.status().ToString() << " " << ToHex(key);
      ASSERT_EQ(in, "rest");
      ASSERT_EQ(CompareInColumn(value, *back, column), 0) << ToHex(key);
      bool loses = KeyLosesInformation(value, column.type);
      ASSERT_EQ(Identical(value, *back, column.type), !loses) << ToHex(key);
      lost += loses ? 1 : 0;
      in = key;
      ASSERT_TRUE(SkipKeyField(&in).ok()) << ToHex(key);
      ASSERT_EQ(in, "rest");
    }
  }
  TypeId id = GetParam().id;
  bool may_lose = id == TypeId::kNumeric || id == TypeId::kFloat4 || id == TypeId::kFloat8 ||
                  id == TypeId::kInterval;
  EXPECT_EQ(lost > 0, may_lose);
}

// What decodes must encode to the same bytes: then a damaged key is either refused or another valid
// key.
void ExpectRefusedOrCanonical(std::string_view bytes, const KeyColumn& column, Arena* arena) {
  std::string_view in = bytes;
  Result<Datum> value = TakeKeyField(&in, column, arena);
  if (!value.ok()) {
    ASSERT_EQ(value.status().code(), Code::kCorruption);
    ASSERT_EQ(in, bytes) << "a failed read consumed bytes";
    in = bytes;
    (void)SkipKeyField(&in);
    return;
  }
  std::string again = Encode(*value, column);
  ASSERT_EQ(ToHex(bytes.substr(0, bytes.size() - in.size())), ToHex(again));
  std::string_view skipped = bytes;
  ASSERT_TRUE(SkipKeyField(&skipped).ok());
  ASSERT_EQ(skipped.size(), in.size());
}

TEST_P(KeyProperty, EveryTruncationIsRefusedAndEveryBitFlipIsRefusedOrCanonical) {
  RandomValues random(kSeed + 2);
  Arena arena;
  for (const KeyColumn& column : AllColumnsOf(GetParam())) {
    const size_t rounds = Rounds(100, 100000);
    for (size_t i = 0; i < rounds; ++i) {
      arena.Reset();
      std::string key = Encode(random.Value(column.type, &arena), column);
      for (size_t n = 0; n < key.size(); ++n) {
        std::string cut = key.substr(0, n);  // a heap copy: over-reads are seen by the sanitizer
        std::string_view in = cut;
        ASSERT_FALSE(TakeKeyField(&in, column, &arena).ok()) << ToHex(cut);
        ASSERT_FALSE(SkipKeyField(&in).ok()) << ToHex(cut);
      }
      for (size_t bit = 0; bit < 8 * key.size(); ++bit) {
        std::string flipped = key;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
        ExpectRefusedOrCanonical(flipped, column, &arena);
        (void)DecodeKey(flipped);
        if (HasFatalFailure()) return;
      }
    }
  }
}

std::string TextOf(Datum value, Type type);

std::string ArrayText(std::string_view bytes, Type element) {
  ArrayView array(bytes, element);
  std::string shape;
  std::string out;
  bool plain = array.dimensions() == 0 || (array.dimensions() == 1 && array.lower_bound(0) == 1);
  for (int i = 0; !plain && i < array.dimensions(); ++i) {
    shape +=
        fmt::format("[{}:{}]", array.lower_bound(i), array.lower_bound(i) + array.length(i) - 1);
  }
  for (size_t i = 0; i < array.size(); ++i) {
    out += (i > 0 ? "," : "") + TextOf(array.Get(i), element);
  }
  return shape + (plain ? "" : "=") + "{" + out + "}";
}

std::string TextOf(Datum value, Type type) {
  if (value.is_null()) return "NULL";
  if (type.array) return ArrayText(value.bytes(), ElementTypeOf(type));
  if (type.id == TypeId::kBytea) return "'\\x" + ToHex(value.bytes()) + "'";
  std::string text;
  AppendDatumText(value, type, FormatSettings{}, &text);
  if (!IsString(type)) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

TEST_P(KeyProperty, ReadingWithoutTheSchemaEqualsReadingWithIt) {
  RandomValues random(kSeed + 3);
  Arena arena;
  for (const KeyColumn& column : AllColumnsOf(GetParam())) {
    const size_t rounds = Rounds(1000, 1000000);
    for (size_t i = 0; i < rounds; ++i) {
      if (i % 256 == 0) arena.Reset();
      std::string key = Encode(random.ValueOrNull(column.type, &arena), column);
      std::string_view in = key;
      Datum typed = *TakeKeyField(&in, column, &arena);
      Result<DecodedKey> read = DecodeKeyFields(key);
      ASSERT_TRUE(read.ok()) << read.status().ToString() << " " << ToHex(key);
      ASSERT_EQ(read->fields.size(), 1U);
      const DecodedField& field = read->fields[0];
      ASSERT_EQ(field.is_null, typed.is_null());
      ASSERT_TRUE(field.is_null || field.direction == column.direction);
      ASSERT_EQ(field.value, TextOf(typed, column.type)) << ToHex(key);
    }
  }
}

TEST(KeyComposite, BytesSortAsRowsFieldByField) {
  const TypeId kTypes[] = {TypeId::kInt4, TypeId::kText, TypeId::kBytea, TypeId::kNumeric,
                           TypeId::kBool, TypeId::kDate, TypeId::kFloat8};
  RandomValues random(kSeed + 4);
  Arena arena;
  const size_t rounds = Rounds(30000, 10000000);
  for (size_t i = 0; i < rounds; ++i) {
    arena.Reset();
    std::vector<KeyColumn> columns(1 + random.Below(4));
    std::vector<Datum> a, b;
    int expected = 0;
    for (KeyColumn& column : columns) {
      column = AllColumnsOf(MakeType(kTypes[random.Below(std::size(kTypes))]))[random.Below(4)];
      a.push_back(random.ValueOrNull(column.type, &arena));
      b.push_back(random.OneIn(2) ? a.back() : random.ValueOrNull(column.type, &arena));
      if (expected == 0) expected = SignOf(CompareInColumn(a.back(), b.back(), column));
    }
    std::string x, y;
    AppendKeyFields(a, columns, &x);
    AppendKeyFields(b, columns, &y);
    ASSERT_EQ(SignOf(x.compare(y)), expected) << ToHex(x) << " and " << ToHex(y);
    bool prefix = x.starts_with(y) || y.starts_with(x);
    ASSERT_TRUE(expected == 0 || !prefix) << ToHex(x) << " and " << ToHex(y);
    std::string finished_x = x, finished_y = y;
    FinishKey(&finished_x);
    FinishKey(&finished_y);
    ASSERT_EQ(SignOf(finished_x.compare(finished_y)), expected);
    ASSERT_NE(finished_x.back(), '\0');

    std::string one_by_one;
    for (size_t c = 0; c < columns.size(); ++c) AppendKeyField(a[c], columns[c], &one_by_one);
    ASSERT_EQ(ToHex(x), ToHex(one_by_one));
    std::string_view in = finished_x;
    for (size_t c = 0; c < columns.size(); ++c) {
      Result<Datum> value = TakeKeyField(&in, columns[c], &arena);
      ASSERT_TRUE(value.ok()) << value.status().ToString();
      ASSERT_EQ(CompareInColumn(a[c], *value, columns[c]), 0);
    }
    ASSERT_TRUE(AtKeyEnd(in));
    Result<DecodedKey> read = DecodeKeyFields(finished_x);
    ASSERT_TRUE(read.ok()) << read.status().ToString() << " " << ToHex(finished_x);
    ASSERT_EQ(read->fields.size(), columns.size());
  }
}

TEST(KeyComposite, BatchesEncodeAndDecodeAsSingleFieldsDo) {
  RandomValues random(kSeed + 5);
  Arena arena;
  std::vector<Type> types = {MakeType(TypeId::kInt8), MakeType(TypeId::kText),
                             MakeType(TypeId::kNumeric), MakeType(TypeId::kUuid)};
  std::vector<KeyColumn> columns = {{types[2]},
                                    {types[1], Direction::kDescending, NullPlacement::kFirst},
                                    {types[0], Direction::kDescending, NullPlacement::kLast},
                                    {types[3]}};
  std::vector<uint32_t> positions = {2, 1, 0, 3};
  RowBatch batch;
  batch.Reset(types);
  for (size_t row = 0; row < 500; ++row) {
    std::vector<Datum> values;
    for (Type type : types) values.push_back(random.ValueOrNull(type, &arena));
    batch.AppendRow(values);
  }
  KeyDecoder decoder(columns, {-1, 1, 0, 2});
  std::vector<Type> out_types = {types[0], types[1], types[3]};
  RowBatch out;
  out.Reset(out_types);
  out.Resize(batch.size());
  for (size_t row = 0; row < batch.size(); ++row) {
    std::string key, expected;
    AppendKeyFields(batch, row, positions, columns, &key);
    for (size_t c = 0; c < columns.size(); ++c) {
      AppendKeyField(batch.column(positions[c]).Get(row), columns[c], &expected);
    }
    ASSERT_EQ(ToHex(key), ToHex(expected));
    key += "rest";
    std::string_view in = key;
    ASSERT_TRUE(decoder.Decode(&in, row, &out).ok());
    ASSERT_EQ(in, "rest");
    ASSERT_TRUE(Identical(out.column(0).Get(row), batch.column(0).Get(row), types[0]));
    ASSERT_TRUE(Identical(out.column(1).Get(row), batch.column(1).Get(row), types[1]));
    ASSERT_TRUE(Identical(out.column(2).Get(row), batch.column(3).Get(row), types[3]));
  }
}

TEST(KeyComposite, NoDamagedKeyDoesHarm) {
  RandomValues random(kSeed + 6);
  Arena arena;
  const size_t rounds = Rounds(20000, 10000000);
  for (size_t i = 0; i < rounds; ++i) {
    arena.Reset();
    std::string bytes;
    for (size_t n = random.Below(24); n > 0; --n) {
      bytes.push_back(static_cast<char>(random.OneIn(3) ? random.Below(0x80) : random.Bits()));
    }
    Result<DecodedKey> read = DecodeKey(bytes);
    if (!read.ok()) {
      ASSERT_EQ(read.status().code(), Code::kCorruption);
      ASSERT_NE(read.status().message().find("byte"), std::string_view::npos);
    }
    (void)PrintKey(bytes);
    std::string_view in = bytes;
    while (!in.empty() && SkipKeyField(&in).ok()) {
    }
    in = bytes;
    Type tuple[] = {MakeType(TypeId::kInt4), MakeType(TypeId::kText)};
    (void)TakeKeyTuple(&in, tuple, Direction::kAscending, &arena);
    (void)TakeKeyTuple(&in, tuple, Direction::kDescending, &arena);
  }
}

}  // namespace
}  // namespace cellar::codec
