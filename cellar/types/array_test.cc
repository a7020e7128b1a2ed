#include "cellar/types/array.h"

#include <gtest/gtest.h>

#include <random>

namespace cellar {
namespace {

constexpr Type kInt4 = MakeType(TypeId::kInt4);
constexpr Type kText = MakeType(TypeId::kText);

std::string_view Read(std::string_view text, Type element, Arena* arena) {
  return *ParseArray(text, element, FormatSettings(), arena);
}
std::string Print(std::string_view bytes, Type element) {
  std::string out;
  AppendArrayText(bytes, element, FormatSettings(), &out);
  return out;
}

TEST(Array, GivesElementsBySubscript) {
  Arena arena;
  ArrayView view(Read("[3:5]={a,NULL,\"c d\"}", kText, &arena), kText);
  EXPECT_EQ(view.dimensions(), 1);
  EXPECT_EQ(view.size(), 3u);
  EXPECT_EQ(view.At(3).bytes(), "a");
  EXPECT_TRUE(view.At(4).is_null());
  EXPECT_EQ(view.At(5).bytes(), "c d");
  EXPECT_TRUE(view.At(2).is_null());
  EXPECT_TRUE(view.At(6).is_null());
  ArrayView square(Read("{{1,2},{3,4}}", kInt4, &arena), kInt4);
  const int64_t inside[] = {2, 1}, outside[] = {3, 1}, few[] = {1};
  EXPECT_EQ(square.At(inside).int_value(), 3);
  EXPECT_TRUE(square.At(outside).is_null());
  EXPECT_TRUE(square.At(few).is_null());
  EXPECT_TRUE(square.At(int64_t{1}).is_null());
}

TEST(Array, ConcatenatesAsPostgreSql) {
  Arena arena;
  struct Case {
    const char *a, *b, *expected;
  };
  constexpr Case kCases[] = {
      {"{1,2}", "{3}", "{1,2,3}"},
      {"{}", "{3}", "{3}"},
      {"{1}", "{}", "{1}"},
      {"{{1,2},{3,4}}", "{5,6}", "{{1,2},{3,4},{5,6}}"},
      {"{5,6}", "{{1,2},{3,4}}", "{{5,6},{1,2},{3,4}}"},
      {"{{1,2}}", "{{3,4}}", "{{1,2},{3,4}}"},
      {"[0:1]={1,2}", "{3}", "[0:2]={1,2,3}"},
  };
  for (const Case& c : kCases) {
    auto result =
        ConcatenateArrays(Read(c.a, kInt4, &arena), Read(c.b, kInt4, &arena), kInt4, &arena);
    ASSERT_TRUE(result.ok()) << c.a << c.b;
    EXPECT_EQ(Print(*result, kInt4), c.expected);
  }
  EXPECT_EQ(ConcatenateArrays(Read("{{1,2}}", kInt4, &arena), Read("{1,2,3}", kInt4, &arena), kInt4,
                              &arena)
                .status()
                .sqlstate(),
            "2202E");
  EXPECT_EQ(Print(*AppendElement(Read("{}", kInt4, &arena), Datum::Int(1), kInt4, &arena), kInt4),
            "{1}");
  EXPECT_EQ(Print(*PrependElement(Datum(), Read("{1}", kInt4, &arena), kInt4, &arena), kInt4),
            "{NULL,1}");
  EXPECT_FALSE(AppendElement(Read("{{1}}", kInt4, &arena), Datum::Int(1), kInt4, &arena).ok());
}

TEST(Array, KeepsAnyTextThroughTextAndBinary) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    Arena arena;
    ArrayBuilder builder(kText);
    const size_t count = random() % 6;
    for (size_t i = 0; i < count; ++i) {
      if (random() % 5 == 0) {
        builder.Add(Datum());
        continue;
      }
      std::string text;
      for (size_t k = random() % 6; k > 0; --k) text += " \"\\{},aNULl\t"[random() % 12];
      builder.Add(Datum::Bytes(arena.Copy(text)));
    }
    const std::string_view bytes = builder.Finish(&arena);
    const std::string text = Print(bytes, kText);
    EXPECT_EQ(Read(text, kText, &arena), bytes) << text;
    std::string binary;
    AppendArrayBinary(bytes, kText, &binary);
    EXPECT_EQ(*ParseArrayBinary(binary, kText, &arena), bytes) << text;
  }
}

TEST(Array, RefusesEveryTruncationOfItsBinaryForm) {
  Arena arena;
  std::string binary;
  AppendArrayBinary(Read("{{1,NULL},{3,4}}", kInt4, &arena), kInt4, &binary);
  for (size_t n = 0; n < binary.size(); ++n) {
    EXPECT_FALSE(ParseArrayBinary(std::string_view(binary).substr(0, n), kInt4, &arena).ok()) << n;
  }
  EXPECT_TRUE(ParseArrayBinary(binary, kInt4, &arena).ok());
  EXPECT_EQ(ParseArrayBinary(binary, MakeType(TypeId::kInt8), &arena).status().sqlstate(), "42804");
}

TEST(Array, BoundsItsDimensions) {
  Arena arena;
  EXPECT_EQ(ParseArray("{{{{{{{1}}}}}}}", kInt4, FormatSettings(), &arena).status().sqlstate(),
            "54000");
  EXPECT_EQ(ParseArray("[1:2147483647]={1}", kInt4, FormatSettings(), &arena).status().code(),
            Code::kLimit);
}

// Bytes that are not such an array are an empty one, and elements end with the bytes.
TEST(Array, ReadsNothingBehindItsBytes) {
  Arena arena;
  const std::string_view ints = Read("{1,2,3}", kInt4, &arena),
                         texts = Read("{a,bc}", kText, &arena);
  EXPECT_TRUE(ArrayView(ints, kInt4).valid());
  EXPECT_TRUE(ArrayView(texts, kText).valid());
  EXPECT_FALSE(ArrayView(ints, kText).valid());
  EXPECT_FALSE(ArrayView(texts, kInt4).valid());
  EXPECT_EQ(ArrayView(texts, kInt4).size(), 0u);
  for (size_t size = 0; size < texts.size(); ++size) {
    EXPECT_FALSE(ArrayView(texts.substr(0, size), kText).valid()) << size;
  }
  // Any change of any byte: no element reaches behind the last one.
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(round % 2 == 0 ? texts : ints);
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const std::string copy = bytes;  // of its exact size, for the address sanitizer
    ArrayView view(copy, kText);
    for (size_t i = 0; i < view.size(); ++i) {
      const Datum value = view.Get(i);
      if (value.is_null() || value.bytes().empty()) continue;
      ASSERT_GE(value.bytes().data(), copy.data());
      ASSERT_LE(value.bytes().data() + value.bytes().size(), copy.data() + copy.size());
    }
  }
}

TEST(Array, StacksArraysOfOneShape) {
  Arena arena;
  ArrayStacker stacker(kInt4);
  EXPECT_TRUE(*stacker.Add(Read("{1,2}", kInt4, &arena)));
  EXPECT_TRUE(*stacker.Add(Read("{NULL,4}", kInt4, &arena)));
  EXPECT_FALSE(*stacker.Add(Read("{5}", kInt4, &arena)));
  ArrayStacker good(kInt4);
  EXPECT_TRUE(*good.Add(Read("{1,2}", kInt4, &arena)));
  EXPECT_TRUE(*good.Add(Read("{NULL,4}", kInt4, &arena)));
  EXPECT_EQ(Print(*good.Finish(&arena), kInt4), "{{1,2},{NULL,4}}");
  ArrayStacker deep(kInt4);
  EXPECT_TRUE(*deep.Add(Read("{{{{{{1}}}}}}", kInt4, &arena)));
  EXPECT_EQ(deep.Finish(&arena).status().sqlstate(), "54000");
}

TEST(Array, IsBoundedAsItGrows) {
  ArrayBuilder builder(kText);
  const std::string megabyte(1 << 20, 'x');
  Status status;
  size_t count = 0;
  while (status.ok() && count < 1000) {
    status = builder.TryAdd(Datum::Bytes(megabyte));
    count += status.ok();
  }
  EXPECT_EQ(status.sqlstate(), "54000");
  EXPECT_EQ(count, 255u);
}

TEST(Array, RefusesSubscriptsBehindTheLast) {
  Arena arena;
  const std::string_view last = Read("[2147483646:2147483646]={1}", kInt4, &arena);
  EXPECT_EQ(AppendElement(last, Datum::Int(2), kInt4, &arena).status().sqlstate(), "54000");
  EXPECT_EQ(ConcatenateArrays(last, last, kInt4, &arena).status().sqlstate(), "54000");
}

}  // namespace
}  // namespace cellar
