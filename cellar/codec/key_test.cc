// Known chains of values, the rules of whole keys, bounds and system records (docs/formats/key.md).
#include "cellar/codec/key.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cellar/codec/random_values.h"
#include "cellar/types/array.h"
#include "cellar/types/collation.h"
#include "cellar/types/datetime.h"
#include "cellar/types/numeric.h"
#include "cellar/types/text_io.h"

namespace cellar::codec {
namespace {

using testing::FromHex;
using testing::ToHex;
using namespace std::string_view_literals;  // NOLINT: texts with zero bytes

const KeyColumn kInt{MakeType(TypeId::kInt8)};
const KeyColumn kText{MakeType(TypeId::kText)};
const KeyColumn kBytes{MakeType(TypeId::kBytea)};

std::string Encode(Datum value, const KeyColumn& column) {
  std::string key;
  AppendKeyField(value, column, &key);
  return key;
}

KeyColumn Descending(KeyColumn column) {
  column.direction = Direction::kDescending;
  return column;
}

// Values in strictly increasing order, as one column, as DESC, and as the second column behind
// texts.
void ExpectChain(const std::vector<Datum>& chain, KeyColumn column) {
  const std::vector<std::string_view> texts = {""sv, "\0"sv, "a"sv, "a\0"sv, "\xFF\xFF"sv};
  for (size_t i = 0; i + 1 < chain.size(); ++i) {
    std::string a = Encode(chain[i], column), b = Encode(chain[i + 1], column);
    EXPECT_LT(a, b) << "place " << i << ": " << ToHex(a) << " and " << ToHex(b);
    EXPECT_FALSE(b.starts_with(a)) << "place " << i;
    EXPECT_GT(Encode(chain[i], Descending(column)), Encode(chain[i + 1], Descending(column))) << i;
    for (std::string_view text : texts) {
      std::string prefix = Encode(Datum::Bytes(text), kText);
      EXPECT_LT(prefix + a, prefix + b);
    }
  }
  // The last value behind one text sorts before the first behind the next.
  for (size_t i = 0; i + 1 < texts.size(); ++i) {
    std::string low = Encode(Datum::Bytes(texts[i]), kText) + Encode(chain.back(), column);
    std::string high = Encode(Datum::Bytes(texts[i + 1]), kText) + Encode(chain.front(), column);
    EXPECT_LT(low, high);
  }
}

TEST(KeyChain, Integers) {
  std::vector<Datum> chain;
  for (int64_t v : {INT64_MIN,       INT64_MIN + 1,    int64_t{-65536},
                    int64_t{-65535}, int64_t{-257},    int64_t{-256},
                    int64_t{-255},   int64_t{-10},     int64_t{-9},
                    int64_t{-8},     int64_t{-1},      int64_t{0},
                    int64_t{1},      int64_t{55},      int64_t{56},
                    int64_t{255},    int64_t{256},     int64_t{65535},
                    int64_t{65536},  int64_t{1} << 31, (int64_t{1} << 53) + 1,
                    INT64_MAX}) {
    chain.push_back(Datum::Int(v));
  }
  ExpectChain(chain, kInt);
}

TEST(KeyChain, UnsignedIntegersGoOnAboveSignedOnes) {
  std::string a, b, c;
  AppendKeyInt(INT64_MAX, &a);
  AppendKeyUint(uint64_t{1} << 63, &b);
  AppendKeyUint(UINT64_MAX, &c);
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
  std::string_view in = c;
  EXPECT_EQ(*TakeKeyUint(&in), UINT64_MAX);
  in = c;
  EXPECT_EQ(TakeKeyInt(&in).status().code(), Code::kCorruption);
  EXPECT_EQ(in.size(), c.size());
}

TEST(KeyChain, AllIntegerTypesShareOneEncoding) {
  for (TypeId id : {TypeId::kInt2, TypeId::kInt4, TypeId::kOid}) {
    EXPECT_EQ(Encode(Datum::Int(300), {MakeType(id)}), Encode(Datum::Int(300), kInt));
  }
}

TEST(KeyChain, BytesOfEveryKindAndLength) {
  std::vector<std::string> strings = {
      std::string(""),          std::string("\0", 1),     std::string("\0\0", 2),
      std::string("\0\x01", 2), std::string("\0\xFF", 2), std::string("\x01"),
      std::string("a"),         std::string("a\0", 2),    std::string("a\0b", 3),
      std::string("aa"),        std::string("ab"),        std::string("b"),
      std::string("\xFE"),      std::string("\xFF"),      std::string("\xFF\0", 2),
      std::string("\xFF\xFF")};
  for (size_t n : {7, 8, 9, 15, 16, 17, 65536})
    strings.push_back("\xFF\xFF" + std::string(n, '\xFF'));
  std::vector<Datum> chain;
  for (const std::string& s : strings) chain.push_back(Datum::Bytes(s));
  ExpectChain(chain, kBytes);
}

TEST(KeyChain, ZeroBytesAtEveryPlaceOfEveryLength) {
  Arena arena;
  for (size_t size = 1; size <= 70; ++size) {
    for (size_t zero = 0; zero < size; ++zero) {
      std::string text(size, 'x');
      text[zero] = '\0';
      std::string key = Encode(Datum::Bytes(text), kBytes);
      EXPECT_EQ(ToHex(key), "61" + ToHex(text.substr(0, zero)) + "00ff" +
                                ToHex(text.substr(zero + 1)) + "0001");
      for (const KeyColumn& column : {kBytes, Descending(kBytes)}) {
        key = Encode(Datum::Bytes(text), column);
        std::string_view in = key;
        EXPECT_EQ(TakeKeyField(&in, column, &arena)->bytes(), text);
      }
    }
  }
}

TEST(KeyChain, Floats) {
  const double kMax = std::numeric_limits<double>::max();
  std::vector<Datum> chain;
  for (double v :
       {-HUGE_VAL, -kMax, -1.0, -5e-324, 0.0, 5e-324, 1.0, kMax, HUGE_VAL, std::nan("")}) {
    chain.push_back(Datum::Double(v));
  }
  const KeyColumn column{MakeType(TypeId::kFloat8)};
  ExpectChain(chain, column);
  EXPECT_EQ(Encode(Datum::Double(-0.0), column), Encode(Datum::Double(0.0), column));
  EXPECT_EQ(Encode(Datum::Double(-std::nan("")), column),
            Encode(Datum::Double(std::nan("7")), column));
  const KeyColumn single{MakeType(TypeId::kFloat4)};
  chain.clear();
  for (float v : {-HUGE_VALF, -1.0F, -1e-45F, 0.0F, 1e-45F, 1.0F, HUGE_VALF, std::nanf("")}) {
    chain.push_back(Datum::Double(v));
  }
  ExpectChain(chain, single);
}

TEST(KeyChain, Decimals) {
  Arena arena;
  std::vector<Datum> chain;
  for (std::string_view text :
       {"-Infinity", "-1e400",  "-100",  "-99.99",   "-10",   "-1.01",     "-1.001", "-1",
        "-0.01",     "-1e-300", "0",     "1e-300",   "0.001", "0.0010001", "0.01",   "0.099",
        "0.1",       "1",       "1.001", "1.1",      "9.9",   "10",        "10.1",   "99.99",
        "100",       "1e23",    "1e400", "Infinity", "NaN"}) {
    chain.push_back(Datum::Bytes(*numeric::Parse(text, &arena)));
  }
  const KeyColumn column{MakeType(TypeId::kNumeric)};
  ExpectChain(chain, column);
  EXPECT_EQ(Encode(Datum::Bytes(*numeric::Parse("1.0", &arena)), column),
            Encode(Datum::Bytes(*numeric::Parse("1.000", &arena)), column));
}

TEST(KeyChain, Timestamps) {
  std::vector<Datum> chain;
  for (int64_t v : {kTimestampNegativeInfinity, kMinTimestamp, -946684800000001, -946684800000000,
                    kEndTimestamp - 1, kTimestampInfinity}) {
    chain.push_back(Datum::Int(v));
  }
  ExpectChain(chain, {MakeType(TypeId::kTimestamp)});
  ExpectChain(chain, {MakeType(TypeId::kTimestamptz)});
}

TEST(KeyChain, IntervalsOfOneLengthAreOneKeyAndDifferentValues) {
  Arena arena;
  const KeyColumn column{MakeType(TypeId::kInterval)};
  Datum month = MakeDatum(Interval{0, 0, 1}, &arena);
  Datum days = MakeDatum(Interval{0, 30, 0}, &arena);
  Datum hours = MakeDatum(Interval{720 * kMicrosPerHour, 0, 0}, &arena);
  EXPECT_EQ(Encode(month, column), Encode(days, column));
  EXPECT_EQ(Encode(month, column), Encode(hours, column));
  EXPECT_FALSE(KeyLosesInformation(month, column.type));
  EXPECT_TRUE(KeyLosesInformation(days, column.type));
  EXPECT_TRUE(KeyLosesInformation(hours, column.type));
  std::vector<Datum> chain;
  for (Interval v : {Interval{INT64_MIN, INT32_MIN, INT32_MIN}, Interval{-1, 0, 0},
                     Interval{0, 0, 0}, Interval{1, 0, 0}, Interval{0, 1, 0}, Interval{0, 0, 1},
                     Interval{1, 0, 1}, Interval{INT64_MAX, INT32_MAX, INT32_MAX}}) {
    chain.push_back(MakeDatum(v, &arena));
  }
  ExpectChain(chain, column);
}

TEST(KeyChain, TimesWithZonesSortByInstantAndThenByZone) {
  Arena arena;
  std::vector<Datum> chain;
  for (TimeTz v : {TimeTz{0, -3600}, TimeTz{kMicrosPerHour, 0}, TimeTz{0, 3600}, TimeTz{0, 3601}}) {
    chain.push_back(MakeDatum(v, &arena));
  }
  ExpectChain(chain, {MakeType(TypeId::kTimetz)});
}

Datum ArrayDatum(const std::vector<Datum>& elements, int32_t bound, Arena* arena) {
  ArrayBuilder builder(MakeType(TypeId::kInt4));
  for (Datum d : elements) builder.Add(d);
  return Datum::Bytes(builder.Finish(arena, bound));
}

TEST(KeyChain, ArraysSortByElementsThenShape) {
  Arena arena;
  Datum one = Datum::Int(1), two = Datum::Int(2);
  ArrayBuilder builder(MakeType(TypeId::kInt4));
  for (Datum d : {one, two, one, two}) builder.Add(d);
  int32_t lengths[] = {2, 2};
  Datum square = Datum::Bytes(builder.Finish(lengths, {}, &arena));
  std::vector<Datum> chain = {ArrayDatum({}, 1, &arena),
                              ArrayDatum({one}, -3, &arena),
                              ArrayDatum({one}, 0, &arena),
                              ArrayDatum({one}, 1, &arena),
                              ArrayDatum({one}, 2, &arena),
                              ArrayDatum({one, two}, 1, &arena),
                              ArrayDatum({one, two, one, two}, 1, &arena),
                              square,
                              ArrayDatum({one, Datum()}, 1, &arena),
                              ArrayDatum({two}, 1, &arena),
                              ArrayDatum({Datum()}, 1, &arena)};
  const KeyColumn column{ArrayOf(TypeId::kInt4)};
  ExpectChain(chain, column);
  for (const KeyColumn& c : {column, Descending(column)}) {
    for (Datum value : chain) {
      std::string key = Encode(value, c);
      std::string_view in = key;
      EXPECT_EQ(TakeKeyField(&in, c, &arena)->bytes(), value.bytes()) << ToHex(key);
    }
  }
}

TEST(KeyChain, NoFieldLeaksIntoTheNext) {
  std::vector<KeyColumn> columns = {kText, kText};
  auto key = [&columns](std::string_view a, std::string_view b) {
    std::string out;
    std::vector<Datum> values = {Datum::Bytes(a), Datum::Bytes(b)};
    AppendKeyFields(values, columns, &out);
    return out;
  };
  for (Direction first : {Direction::kAscending, Direction::kDescending}) {
    for (Direction second : {Direction::kAscending, Direction::kDescending}) {
      columns[0].direction = first;
      columns[1].direction = second;
      bool ascending = first == Direction::kAscending;
      EXPECT_EQ(key("Bo", "burns") < key("Bob", "urns"), ascending);
      EXPECT_EQ(key("\x03", "\xFF\x01") < key("\x03\0"sv, "\x02"), ascending);
      EXPECT_EQ(key("a", "b") < key("a", "c"), second == Direction::kAscending);
    }
  }
}

TEST(KeyBounds, EqualityOnATextExcludesItsExtensions) {
  std::string prefix = Encode(Datum::Bytes("foo"), kText);
  EXPECT_FALSE(Encode(Datum::Bytes("foo\0bar"sv), kText).starts_with(prefix));
  EXPECT_FALSE(Encode(Datum::Bytes("foob"sv), kText).starts_with(prefix));
}

TEST(KeyBounds, ScanOfAPrefixOfFFEndsWithTheField) {
  std::string table = TablePrefix(TableId{100}, IndexId{0});
  // x LIKE 'FF FF%': what begins with the unterminated text.
  std::string prefix = table + "\x61\xFF\xFF";
  KeyRange range = PrefixRange(prefix);
  EXPECT_EQ(range.end, table + "\x62");
  EXPECT_LT(range.end, PrefixEnd(table));
  std::string inside = table + Encode(Datum::Bytes("\xFF\xFF\xFF\xFF"), kBytes);
  EXPECT_GE(inside, range.start);
  EXPECT_LT(inside, range.end);
}

TEST(KeyBounds, PrefixEndIncrementsTheLastByteThatIsNotFF) {
  EXPECT_EQ(PrefixEnd("a"), "b");
  EXPECT_EQ(PrefixEnd("a\xFF\xFF"), "b");
  EXPECT_EQ(PrefixEnd("\0"sv), "\x01");
  EXPECT_EQ(PrefixEnd("\xFF\xFF"), "");
  EXPECT_EQ(PrefixEnd(""), "");
}

bool Contains(const KeyRange& range, const std::string& key) {
  return range.start <= key && (range.end.empty() || key < range.end);
}

TEST(KeyBounds, NullsAndValuesHaveRangesOfTheirOwn) {
  const std::string prefix = TablePrefix(TableId{300}, IndexId{8});
  for (const KeyColumn& column : testing::AllColumnsOf(MakeType(TypeId::kInt4))) {
    std::string null = prefix + Encode(Datum(), column) + Encode(Datum::Int(9), kInt);
    std::string null_alone = prefix + Encode(Datum(), column);
    FinishKey(&null_alone);
    KeyRange nulls = NullRange(prefix, column.nulls), values = NonNullRange(prefix);
    for (const std::string& key : {null, null_alone}) {
      EXPECT_TRUE(Contains(nulls, key));
      EXPECT_FALSE(Contains(values, key));
      EXPECT_TRUE(Contains(PrefixRange(prefix), key));
    }
    const std::string four = prefix + Encode(Datum::Int(4), column);
    for (int64_t v : {int64_t{INT32_MIN}, int64_t{-1}, int64_t{3}, int64_t{4}, int64_t{5},
                      int64_t{INT32_MAX}}) {
      std::string key = prefix + Encode(Datum::Int(v), column);
      EXPECT_TRUE(Contains(values, key));
      EXPECT_FALSE(Contains(nulls, key));
      // x < 4 and x > 4, whichever way the column runs.
      KeyRange below{values.start, four}, above{PrefixEnd(four), values.end};
      bool ascending = column.direction == Direction::kAscending;
      EXPECT_EQ(Contains(ascending ? below : above, key), v < 4);
      EXPECT_EQ(Contains(ascending ? above : below, key), v > 4);
      EXPECT_FALSE(Contains(below, null) || Contains(above, null));
    }
  }
}

TEST(KeyBounds, NullDiffersFromEmptyValues) {
  Arena arena;
  const KeyColumn array{ArrayOf(TypeId::kInt4)};
  std::vector<std::string> keys = {Encode(Datum(), kBytes), Encode(Datum::Bytes(""), kBytes),
                                   Encode(Datum::Bytes("\0"sv), kBytes),
                                   Encode(ArrayDatum({}, 1, &arena), array),
                                   Encode(ArrayDatum({Datum()}, 1, &arena), array)};
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]);
  }
}

TEST(WholeKey, NeverEndsInAZeroByte) {
  std::string key = TablePrefix(TableId{1}, IndexId{256});
  ASSERT_EQ(key.back(), '\0');
  std::string unfinished = key;
  FinishKey(&key);
  EXPECT_EQ(key, unfinished + "\x01");
  EXPECT_TRUE(AtKeyEnd("\x01"));
  EXPECT_TRUE(AtKeyEnd(""));
  EXPECT_FALSE(AtKeyEnd("\x02"));
  EXPECT_FALSE(AtKeyEnd("\x01\x01"));
  std::string plain = "a";
  FinishKey(&plain);
  EXPECT_EQ(plain, "a");
}

TEST(WholeKey, PartitionAndRangeKeyTogetherAreTheRowsFields) {
  std::vector<KeyColumn> columns = {kText, Descending(kInt), kInt};
  std::vector<Datum> values = {Datum::Bytes("eu"), Datum::Int(-700), Datum()};
  std::string whole;
  AppendKeyFields(values, columns, &whole);
  for (size_t n = 0; n <= 3; ++n) {
    EXPECT_EQ(EncodePartitionKey(values, columns, n) + EncodeRangeKey(values, columns, n), whole);
  }
}

TEST(WholeKey, SystemRecordsLieBelowAllData) {
  std::string data = TablePrefix(TableId{1});
  EXPECT_EQ(ToHex(NameKey(NamespaceId{1}, "emp")), "006e616d652d1660656d700001");
  EXPECT_EQ(ToHex(DescriptorKey(100)), "00646573632d4d64");
  EXPECT_EQ(ToHex(DescriptorKey(256)), "00646573632d4e010001");
  EXPECT_LT(NameKey(NamespaceId{UINT64_MAX}, "\xFF"), data);
  EXPECT_LT(SystemKey("zone", {1, 2}), data);
  EXPECT_TRUE(SystemKey("zone", {1}).starts_with(SystemPrefix("zone")));
}

TEST(WholeKey, IsTheDocumentedExample) {
  std::string key = TablePrefix(TableId{100}, IndexId{0});
  std::vector<KeyColumn> columns = {kText, Descending(kInt)};
  std::vector<Datum> values = {Datum::Bytes("Ann"), Datum::Int(7)};
  AppendKeyFields(values, columns, &key);
  AppendKeyInt(0, &key);
  FinishKey(&key);
  EXPECT_EQ(ToHex(key), "4d641560416e6e0001e315");
}

TEST(KeyText, ReadsWholeKeysWithoutTheSchema) {
  std::string key = TablePrefix(TableId{100}, IndexId{0});
  AppendKeyField(Datum::Bytes("O'Hara"), kText, &key);
  AppendKeyField(Datum::Int(-300), Descending(kInt), &key);
  AppendKeyField(Datum(), kInt, &key);
  AppendKeyInt(256, &key);
  FinishKey(&key);
  DecodedKey read = *DecodeKey(key);
  ASSERT_EQ(read.fields.size(), 6U);
  EXPECT_EQ(read.word, "");
  EXPECT_TRUE(read.end_marker);
  EXPECT_EQ(read.fields[2].type, "TEXT");
  EXPECT_EQ(read.fields[2].tag, 0x60);
  EXPECT_EQ(read.fields[2].offset, 3U);
  EXPECT_EQ(read.fields[3].type, "INT");
  EXPECT_EQ(read.fields[3].direction, Direction::kDescending);
  EXPECT_EQ(read.fields[3].value, "-300");
  EXPECT_EQ(PrintKey(key), "/100/0/'O''Hara'/-300 desc/NULL/256");
  EXPECT_EQ(PrintKey(NameKey(NamespaceId{1}, "emp")), "name-/1/'emp'");
  EXPECT_EQ(PrintKey("\x16\x02"), "/1/x02");
}

TEST(KeyText, NamesTheOffsetOfTheByteThatMakesNoSense) {
  std::string key = TablePrefix(TableId{100}, IndexId{0});
  size_t offset = key.size() + 3;
  key += FromHex("60610005");  // an escape that does not exist
  Result<DecodedKey> read = DecodeKey(key);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), Code::kCorruption);
  EXPECT_EQ(read.status().message(),
            fmt::format("key makes no sense at byte {}: unknown escape", offset));
  EXPECT_FALSE(DecodeKey("").ok());
  EXPECT_FALSE(DecodeKey("\x16\x01").ok());  // END behind a byte that is not 00
  EXPECT_FALSE(DecodeKey("\x16\xFE").ok());  // a bound is no key
  EXPECT_FALSE(DecodeKey("\x16\x5E").ok());  // a reserved tag
  EXPECT_FALSE(DecodeKey("\0Name-"sv).ok());
}

TEST(KeyText, BoundsTheNestingOfForeignBytes) {
  std::string key(100000, '\x71');
  EXPECT_FALSE(DecodeKey(key).ok());
  std::string_view in = key;
  EXPECT_FALSE(SkipKeyField(&in).ok());
}

TEST(KeyTuple, ComesBackAndSortsAsItsFieldsDo) {
  Arena arena;
  Type types[] = {MakeType(TypeId::kInt4), MakeType(TypeId::kText)};
  std::vector<std::vector<Datum>> chain = {{Datum::Int(1), Datum::Bytes("")},
                                           {Datum::Int(1), Datum::Bytes("a")},
                                           {Datum::Int(1), Datum()},
                                           {Datum::Int(2), Datum::Bytes("")},
                                           {Datum(), Datum::Bytes("")}};
  std::string previous;
  for (const std::vector<Datum>& values : chain) {
    std::string key, down;
    AppendKeyTuple(values, types, Direction::kAscending, &key);
    AppendKeyTuple(values, types, Direction::kDescending, &down);
    EXPECT_LT(previous, key);
    previous = key;
    std::string_view in = down;
    std::vector<Datum> back = *TakeKeyTuple(&in, types, Direction::kDescending, &arena);
    EXPECT_TRUE(in.empty());
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(back[i].is_null(), values[i].is_null());
      if (back[i].is_null()) continue;
      EXPECT_EQ(CompareDatums(back[i], values[i], types[i]), 0);
    }
    EXPECT_TRUE(DecodeKeyFields(down).ok());
  }
}

TEST(KeyField, CollatedTextIsItsSortKey) {
  for (const Direction direction : {Direction::kAscending, Direction::kDescending}) {
    KeyColumn column = kText;
    column.direction = direction;
    column.type.collation = FindBuiltInCollation("de-x-icu");
    const std::string key = Encode(Datum::Bytes("Öl"), column);
    std::string sort_key;
    AppendSortKey("Öl", *column.type.collation, &sort_key);
    KeyColumn bytes{MakeType(TypeId::kBytea), direction};
    std::string expected = Encode(Datum::Bytes(sort_key), bytes);
    expected[0] = direction == Direction::kAscending ? '\x62' : '\x9D';
    EXPECT_EQ(ToHex(key), ToHex(expected));
    Arena arena;
    std::string_view in = key;
    EXPECT_EQ(TakeKeyField(&in, column, &arena)->bytes(), "Öl");
    EXPECT_FALSE(KeyLosesInformation(Datum::Bytes("Öl"), column.type));
  }
  // Without the text behind the sort key the key is not one of a deterministic collation.
  KeyColumn column = kText;
  column.type.collation = FindBuiltInCollation("de-x-icu");
  Arena arena;
  std::string_view in = "\x62\x2A\x00\x01"sv;
  EXPECT_EQ(TakeKeyField(&in, column, &arena).status().code(), Code::kCorruption);
}

TEST(KeyField, TextsThatACollationTakesAsEqualHaveOneKey) {
  Collation any_case;
  any_case.oid = 20000;
  any_case.name = "any_case";
  any_case.locale = "und-u-ks-level2";
  any_case.deterministic = false;
  any_case.version = CollationVersion(any_case.locale);
  KeyColumn column = kText;
  column.type.collation = Intern(any_case);
  EXPECT_EQ(Encode(Datum::Bytes("GRÜN"), column), Encode(Datum::Bytes("grün"), column));
  EXPECT_NE(Encode(Datum::Bytes("resume"), column), Encode(Datum::Bytes("résumé"), column));
  EXPECT_TRUE(KeyLosesInformation(Datum::Bytes("a"), column.type));
}

TEST(KeyField, PaddedCharactersLoseTheirBlanks) {
  const KeyColumn column{MakeType(TypeId::kBpchar)};
  EXPECT_EQ(Encode(Datum::Bytes("ab  "), column), Encode(Datum::Bytes("ab"), column));
}

TEST(KeyField, KeyTypesAreThoseWithAnOrder) {
  EXPECT_TRUE(IsKeyType(MakeType(TypeId::kUuid)));
  EXPECT_TRUE(IsKeyType(ArrayOf(TypeId::kNumeric)));
  EXPECT_FALSE(IsKeyType(MakeType(TypeId::kJson)));
  EXPECT_FALSE(IsKeyType(ArrayOf(TypeId::kJsonb)));
  EXPECT_FALSE(IsKeyType(MakeType(TypeId::kUnknown)));
}

}  // namespace
}  // namespace cellar::codec
