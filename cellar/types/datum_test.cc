#include "cellar/types/datum.h"

#include <gtest/gtest.h>

#include "cellar/types/array.h"
#include "cellar/types/record.h"
#include "cellar/types/text_io.h"

namespace cellar {
namespace {

struct OrderCase {
  const char* type;
  const char* less;
  const char* greater;  // null: the two below are equal
  const char* same = nullptr;
};

constexpr OrderCase kOrder[] = {
    {"int4", "-5", "3"},
    {"bool", "f", "t"},
    {"float8", "1e300", "Infinity"},
    {"float8", "Infinity", "NaN"},
    {"float8", "-0", nullptr, "0"},
    {"float8", "NaN", nullptr, "NaN"},
    {"numeric", "1.0", nullptr, "1.00"},
    {"numeric", "0", nullptr, "-0.000"},
    {"numeric", "1e50", nullptr, "100000000000000000000000000000000000000000000000000.0"},
    {"numeric", "-Infinity", "-1e1000"},
    {"numeric", "1e1000", "Infinity"},
    {"numeric", "Infinity", "NaN"},
    {"numeric", "99999999999999999999", "100000000000000000000.5"},
    {"numeric", "-100000000000000000000.5", "-99999999999999999999"},
    {"text", "Z", "a"},
    {"text", "a", "ab"},
    {"bpchar", "a", nullptr, "a  "},
    {"bytea", "\\x00", "\\xff"},
    {"date", "-infinity", "2000-01-01"},
    {"interval", "29 days", "1 mon"},
    {"interval", "1 mon", nullptr, "30 days"},
    {"interval", "24:00:00", nullptr, "1 day"},
    {"interval", "-178000000 years", "178000000 years"},
    {"timetz", "10:00+02", "10:00+01"},
    {"uuid", "00000000-0000-0000-0000-000000000001", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
    {"jsonb", "{\"a\":1.0}", nullptr, "{\"a\":1}"},
    {"_int4", "{1,2}", "{1,2,0}"},
    {"_int4", "{1,2}", "{1,NULL}"},
    {"_numeric", "{1.0,2}", nullptr, "{1,2.00}"},
};

TEST(Datum, ComparesAndHashesByTypesRules) {
  for (const OrderCase& c : kOrder) {
    Arena arena;
    const Type type = *TypeFromName(c.type);
    auto parse = [&](const char* text) { return ParseDatum(text, type, FormatSettings(), &arena); };
    Result<Datum> a = parse(c.less);
    Result<Datum> b = parse(c.greater != nullptr ? c.greater : c.same);
    ASSERT_TRUE(a.ok() && b.ok()) << c.type << " " << c.less;
    if (c.greater == nullptr) {
      EXPECT_EQ(CompareDatums(*a, *b, type), 0) << c.type << " " << c.less << " " << c.same;
      EXPECT_EQ(HashDatum(*a, type), HashDatum(*b, type)) << c.type << " " << c.less;
    } else {
      EXPECT_LT(CompareDatums(*a, *b, type), 0) << c.type << " " << c.less << " " << c.greater;
      EXPECT_GT(CompareDatums(*b, *a, type), 0) << c.type << " " << c.less << " " << c.greater;
      EXPECT_NE(HashDatum(*a, type), HashDatum(*b, type)) << c.type << " " << c.less;
    }
  }
}

TEST(Value, OwnsItsBytes) {
  std::string text = "some bytes that will change";
  Value value(MakeType(TypeId::kText), Datum::Bytes(text));
  Value copy = value;
  text.assign(text.size(), 'x');
  EXPECT_EQ(value.datum().bytes(), "some bytes that will change");
  value = Value();
  EXPECT_TRUE(value.is_null());
  EXPECT_EQ(copy.datum().bytes(), "some bytes that will change");
}

// A type that is not the value's own gives neither an address nor memory behind it.
TEST(Datum, OfAnotherFormIsNothing) {
  const Datum integer = Datum::Int(7), real = Datum::Double(1.5), bytes = Datum::Bytes("abc");
  EXPECT_EQ(integer.bytes(), "");
  EXPECT_EQ(integer.double_value(), 0);
  EXPECT_EQ(real.int_value(), 0);
  EXPECT_EQ(real.bytes(), "");
  EXPECT_EQ(bytes.int_value(), 0);
  EXPECT_FALSE(bytes.bool_value());
  EXPECT_EQ(bytes.double_value(), 0);
  EXPECT_EQ(Datum().bytes(), "");
  EXPECT_EQ(Datum().int_value(), 0);
}

TEST(Datum, KnowsWhichTypesItMayHave) {
  Arena arena;
  const auto type = [](TypeId id) { return MakeType(id); };
  EXPECT_TRUE(HasForm(Datum(), type(TypeId::kInt4)));
  EXPECT_TRUE(HasForm(Datum::Int(1), type(TypeId::kInt4)));
  EXPECT_FALSE(HasForm(Datum::Int(1), type(TypeId::kText)));
  EXPECT_FALSE(HasForm(Datum::Bytes("a"), type(TypeId::kInt8)));
  EXPECT_FALSE(HasForm(Datum::Bytes("a"), type(TypeId::kInterval)));
  EXPECT_FALSE(HasForm(Datum::Bytes("a"), type(TypeId::kTimetz)));
  EXPECT_FALSE(HasForm(Datum::Bytes("a"), type(TypeId::kUuid)));
  const Datum array =
      Datum::Bytes(*ParseArray("{1,2}", type(TypeId::kInt4), FormatSettings(), &arena));
  EXPECT_TRUE(HasForm(array, ArrayOf(TypeId::kInt4)));
  EXPECT_FALSE(HasForm(array, ArrayOf(TypeId::kText)));
  EXPECT_FALSE(HasForm(array, type(TypeId::kRecord)));
  const Datum record =
      Datum::Bytes(*MakeRecord({{type(TypeId::kInt4), Datum::Int(1), "a"}}, &arena));
  EXPECT_TRUE(HasForm(record, type(TypeId::kRecord)));
  EXPECT_FALSE(HasForm(record, ArrayOf(TypeId::kInt4)));
  EXPECT_TRUE(RecordFields("just some text of a user").empty());
  EXPECT_EQ(RecordFields(record.bytes()).size(), 1u);
}

TEST(Value, SharesLongBytesAndChargesThem) {
  const MemoryAccountPtr account =
      MemoryAccount::Make(MemoryAccount::Process(), "test", "--test", 1 << 20);
  const std::string text(1000000, 'x');
  const Type type = MakeType(TypeId::kText);
  {
    const MemoryScope scope(account.get());
    const Value first(type, Datum::Bytes(text));
    const Value second = first, third = second;  // NOLINT: copies are what this is about
    EXPECT_EQ(first.datum().bytes(), text);
    EXPECT_EQ(third.datum().bytes().data(), first.datum().bytes().data());
    EXPECT_EQ(account->used(), text.size());
    EXPECT_THROW(Value(type, Datum::Bytes(text)), OutOfMemory);
  }
  EXPECT_EQ(account->used(), 0u);
  Value shorter(type, Datum::Bytes("abc"));
  const Value copy = shorter;
  shorter = Value(type, Datum::Bytes("d"));
  EXPECT_EQ(copy.datum().bytes(), "abc");
  EXPECT_EQ(shorter.datum().bytes(), "d");
}

}  // namespace
}  // namespace cellar
