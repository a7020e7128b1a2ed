#include "cellar/types/numeric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cellar::numeric {
namespace {

std::string Text(std::string_view n) {
  std::string out;
  AppendText(n, &out);
  return out;
}
std::string Text(Result<std::string_view> n) {
  return n.ok() ? Text(*n) : std::string(n.status().message());
}

// Values of all in-memory forms: lengths around int64 and int128, scales around 255.
std::vector<std::string> RandomNumbers(size_t count) {
  std::mt19937_64 random(20240229);
  std::vector<std::string> out = {"0",
                                  "-0.0",
                                  "1",
                                  "-1",
                                  "9223372036854775807",
                                  "-9223372036854775808",
                                  "9223372036854775808",
                                  "100",
                                  "0.001",
                                  "170141183460469231731687303715884105727",
                                  "1e300",
                                  "1e-300"};
  while (out.size() < count) {
    std::string text = random() % 2 == 0 ? "-" : "";
    const size_t before = random() % 45;
    const size_t after = random() % 10 == 0 ? random() % 300 : random() % 12;
    for (size_t i = 0; i < before; ++i) text += static_cast<char>('0' + random() % 10);
    if (before == 0) text += '0';
    if (after > 0) text += '.';
    for (size_t i = 0; i < after; ++i)
      text += random() % 3 == 0 ? '0' : static_cast<char>('0' + random() % 10);
    out.push_back(text);
  }
  return out;
}

TEST(Numeric, KeepsEveryDigitThroughTextBinaryAndKeyDigits) {
  Arena arena;
  for (const std::string& text : RandomNumbers(2000)) {
    const std::string_view n = *Parse(text, &arena);
    EXPECT_EQ(*Parse(Text(n), &arena), n) << text;
    std::string binary;
    AppendBinary(n, &binary);
    EXPECT_EQ(*ParseBinary(binary, &arena), n) << text;
    if (SignOf(n) == 0) continue;
    KeyDigits digits;
    ToKeyDigits(n, &digits);
    ASSERT_FALSE(digits.digits().empty());
    EXPECT_NE(digits.digits().front(), 0) << text;
    EXPECT_NE(digits.digits().back(), 0) << text;
    auto back =
        FromKeyDigits(digits.negative, digits.exponent, digits.digits(), DisplayScale(n), &arena);
    ASSERT_TRUE(back.ok()) << text;
    EXPECT_EQ(*back, n) << text;
    auto shortest = FromKeyDigits(digits.negative, digits.exponent, digits.digits(), 0, &arena);
    EXPECT_EQ(Compare(*shortest, n), 0) << text;
    EXPECT_EQ(DisplayScale(*shortest), *MinScale(n)) << text;
    arena.Reset();
  }
}

TEST(Numeric, HasKeyDigitsInTheOrderOfValues) {
  Arena arena;
  std::vector<std::string> numbers = RandomNumbers(600);
  for (size_t i = 1; i < numbers.size(); ++i) {
    const std::string_view a = Abs(*Parse(numbers[i - 1], &arena), &arena);
    const std::string_view b = Abs(*Parse(numbers[i], &arena), &arena);
    if (SignOf(a) == 0 || SignOf(b) == 0) continue;
    KeyDigits x, y;
    ToKeyDigits(a, &x);
    ToKeyDigits(b, &y);
    int order = x.exponent != y.exponent ? (x.exponent < y.exponent ? -1 : 1) : 0;
    if (order == 0) {
      auto p = x.digits(), q = y.digits();
      if (std::lexicographical_compare(p.begin(), p.end(), q.begin(), q.end()))
        order = -1;
      else if (std::lexicographical_compare(q.begin(), q.end(), p.begin(), p.end()))
        order = 1;
    }
    EXPECT_EQ(order, Compare(a, b)) << numbers[i - 1] << " " << numbers[i];
  }
}

TEST(Numeric, RefusesKeyDigitsThatNoEncoderWrites) {
  Arena arena;
  auto code = [&](std::vector<uint8_t> digits, int32_t exponent) {
    return FromKeyDigits(false, exponent, digits, 0, &arena).status().code();
  };
  EXPECT_EQ(code({}, 0), Code::kCorruption);
  EXPECT_EQ(code({0, 1}, 0), Code::kCorruption);
  EXPECT_EQ(code({1, 0}, 0), Code::kCorruption);
  EXPECT_EQ(code({1, 100}, 0), Code::kCorruption);
  EXPECT_EQ(code({1}, 1000000), Code::kCorruption);
  EXPECT_EQ(code({1}, -1000000), Code::kCorruption);
}

TEST(Numeric, RefusesEveryTruncationOfItsBinaryForm) {
  Arena arena;
  std::string binary;
  AppendBinary(*Parse("-12345678.9012", &arena), &binary);
  for (size_t n = 0; n < binary.size(); ++n) {
    EXPECT_FALSE(ParseBinary(std::string_view(binary).substr(0, n), &arena).ok()) << n;
  }
}

TEST(Numeric, HasAFloorAtEveryScale) {
  constexpr int128_t kBeyond = int128_t{1} << 64;
  Arena arena;
  std::vector<std::string> numbers = RandomNumbers(800);
  for (const char* text : {"NaN", "Infinity", "-Infinity", "9223372036854775807.99", "-0.001",
                           "-9223372036854775808.01", "18446744073709551616", "1e-300"}) {
    numbers.push_back(text);
  }
  for (const std::string& text : numbers) {
    const std::string_view n = *Parse(text, &arena);
    for (int scale : {0, 1, 2, 7, 40, 255}) {
      SCOPED_TRACE(text + " at " + std::to_string(scale));
      bool equal;
      const int128_t floor = FloorAtScale(n, scale, &equal);
      if (floor == kBeyond || floor == -kBeyond) {
        EXPECT_FALSE(equal);
        const int least = floor > 0 ? 1 : -1;
        EXPECT_EQ(Compare(n, Make(floor / 2, scale, &arena)), least);
        continue;
      }
      EXPECT_EQ(Compare(Make(floor, scale, &arena), n), equal ? 0 : -1);
      EXPECT_EQ(Compare(Make(floor + 1, scale, &arena), n), 1);
    }
  }
}

TEST(Numeric, AddsAndSubtractsBackToWhereItWas) {
  Arena arena;
  std::vector<std::string> numbers = RandomNumbers(800);
  for (size_t i = 1; i < numbers.size(); ++i) {
    const std::string_view a = *Parse(numbers[i - 1], &arena), b = *Parse(numbers[i], &arena);
    EXPECT_EQ(Compare(*Subtract(*Add(a, b, &arena), b, &arena), a), 0) << numbers[i - 1];
    EXPECT_EQ(Compare(*Multiply(a, b, &arena), *Multiply(b, a, &arena)), 0);
    if (SignOf(b) != 0) {
      // a = b * div(a, b) + a % b
      const std::string_view whole = *DivideTruncated(a, b, &arena);
      EXPECT_EQ(Compare(*Add(*Multiply(b, whole, &arena), *Modulo(a, b, &arena), &arena), a), 0)
          << numbers[i - 1] << " " << numbers[i];
    }
  }
}

TEST(Numeric, ConvertsToIntegersRoundingHalfAway) {
  Arena arena;
  auto n = [&](std::string_view text) { return *Parse(text, &arena); };
  EXPECT_EQ(*ToInt64(n("2.5")), 3);
  EXPECT_EQ(*ToInt64(n("-2.5")), -3);
  EXPECT_EQ(*ToInt64(n("9223372036854775807.4")), INT64_MAX);
  EXPECT_EQ(ToInt64(n("9223372036854775807.5")).status().message(), "bigint out of range");
  EXPECT_EQ(*ToInt64(n("-9223372036854775808.4")), INT64_MIN);
  EXPECT_EQ(ToInt32(n("2147483648")).status().message(), "integer out of range");
  EXPECT_EQ(ToInt16(n("-32769")).status().message(), "smallint out of range");
  EXPECT_EQ(ToInt64(n("NaN")).status().message(), "cannot convert NaN to bigint");
  EXPECT_EQ(ToInt32(n("-Infinity")).status().message(), "cannot convert infinity to integer");
  EXPECT_EQ(ToInt64(n("1e60")).status().sqlstate(), "22003");
}

TEST(Numeric, ConvertsToAndFromDoubles) {
  Arena arena;
  EXPECT_EQ(Text(FromDouble(0.1, &arena)), "0.1");
  EXPECT_EQ(Text(FromDouble(1e20, &arena)), "100000000000000000000");
  EXPECT_EQ(Text(FromDouble(1.0 / 3, &arena)), "0.333333333333333");
  EXPECT_EQ(Text(FromFloat(0.1f, &arena)), "0.1");
  EXPECT_EQ(Text(FromFloat(16777216.0f, &arena)), "16777200");
  EXPECT_EQ(*ToDouble(*Parse("0.1", &arena)), 0.1);
  EXPECT_EQ(*ToDouble(*Parse("123456789012345678901234567890", &arena)),
            123456789012345678901234567890.0);
  EXPECT_EQ(ToDouble(*Parse("1e400", &arena)).status().sqlstate(), "22003");
  EXPECT_EQ(ToDouble(*Parse("-1e-400", &arena)).status().sqlstate(), "22003");
  EXPECT_EQ(ToFloat(*Parse("1e40", &arena)).status().sqlstate(), "22003");
}

TEST(Numeric, BoundsItsSize) {
  Arena arena;
  EXPECT_TRUE(Parse("1e131071", &arena).ok());
  EXPECT_EQ(Text(Parse("1e131072", &arena)), "value overflows numeric format");
  const std::string_view big = *Parse("9e131071", &arena);
  EXPECT_EQ(Text(Add(big, big, &arena)), "value overflows numeric format");
  EXPECT_EQ(Text(Multiply(big, big, &arena)), "value overflows numeric format");
  EXPECT_TRUE(Parse("1e-16383", &arena).ok());
  EXPECT_FALSE(Parse("1e-16384", &arena).ok());
}

TEST(NumericAccumulator, SumsExactlyAcrossScalesAndSizes) {
  Arena arena;
  std::mt19937_64 random(7);
  std::vector<std::string> numbers = RandomNumbers(500);
  Accumulator sum;
  std::string plain(FromInt64(0, &arena));
  Accumulator halves[2];
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string_view n = *Parse(numbers[i], &arena);
    sum.Add(n);
    halves[i % 2].Add(n);
    plain = *Add(plain, n, &arena);
    if (i % 50 == 0) {
      EXPECT_EQ(Text(sum.Sum(&arena)), Text(std::string_view(plain))) << i;
    }
  }
  EXPECT_EQ(Text(sum.Sum(&arena)), Text(std::string_view(plain)));
  halves[0].Merge(halves[1]);
  EXPECT_EQ(halves[0].count(), sum.count());
  EXPECT_EQ(Text(halves[0].Sum(&arena)), Text(std::string_view(plain)));
  for (const std::string& text : numbers) sum.Remove(*Parse(text, &arena));
  EXPECT_EQ(sum.count(), 0);
  EXPECT_EQ(SignOf(*sum.Sum(&arena)), 0);
}

TEST(NumericAccumulator, AveragesIntegersAndInfinities) {
  Arena arena;
  Accumulator sum;
  for (int64_t i : {1, 2, 4}) sum.AddInt(i);
  EXPECT_EQ(Text(sum.Average(&arena)), "2.3333333333333333");
  Accumulator copy = sum;
  copy.Add(MakeInfinity(false));
  EXPECT_EQ(Text(copy.Sum(&arena)), "Infinity");
  copy.Add(MakeInfinity(true));
  EXPECT_EQ(Text(copy.Sum(&arena)), "NaN");
  EXPECT_EQ(Text(sum.Sum(&arena)), "7");
}

// Expected values: PostgreSQL 15.
TEST(NumericVariance, AgreesWithPostgreSql) {
  Arena arena;
  VarianceAccumulator all;
  for (const char* text : {"1", "2", "4", "8.5", "-3.25"}) {
    ASSERT_TRUE(all.Add(*Parse(text, &arena)).ok());
  }
  EXPECT_EQ(Text(all.Variance(true, &arena)), "18.4500000000000000");
  EXPECT_EQ(Text(all.Variance(false, &arena)), "14.7600000000000000");
  EXPECT_EQ(Text(all.StandardDeviation(true, &arena)), "4.2953463189829059");
  EXPECT_EQ(Text(all.StandardDeviation(false, &arena)), "3.8418745424597092");
}

}  // namespace
}  // namespace cellar::numeric
