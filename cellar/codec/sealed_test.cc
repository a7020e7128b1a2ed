#include "cellar/codec/sealed.h"

#include <gtest/gtest.h>

#include "cellar/codec/key.h"

namespace cellar::codec {
namespace {

TEST(Sealed, GivesBackItsContent) {
  for (const std::string content : {"", "x", "some content of a record"}) {
    const std::string value = Seal("key", content);
    const Result<std::string_view> got = Unseal("key", value);
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_EQ(*got, content);
  }
}

TEST(Sealed, TheExampleOfTheFormat) {
  std::string hex;
  for (const char byte : Seal(DescriptorKey(2), "abc")) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  EXPECT_EQ(hex, "e5017a1f9121616263");
}

TEST(Sealed, WhatWasNeverSealedIsItsOwnContent) {
  for (const std::string value : {"", "\x0a\x02\x08\x01", "2\noid 10\nflags login\n"}) {
    const Result<std::string_view> got = Unseal("key", value);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(*got, value);
  }
}

TEST(Sealed, EveryFlippedBitIsFound) {
  const std::string good = Seal(DescriptorKey(77), "what a descriptor holds");
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string value = good;
    value[bit / 8] = static_cast<char>(value[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(Unseal(DescriptorKey(77), value).ok()) << bit;
  }
}

TEST(Sealed, EveryOtherKeyAndLengthIsFound) {
  const std::string good = Seal(DescriptorKey(77), "what a descriptor holds");
  EXPECT_EQ(Unseal(DescriptorKey(78), good).status().code(), Code::kCorruption);
  EXPECT_EQ(Unseal(NameKey(NamespaceId{1}, "a"), good).status().code(), Code::kCorruption);
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_FALSE(Unseal(DescriptorKey(77), good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Unseal(DescriptorKey(77), good + "x").ok());
  // Bytes may not pass from the key to the content.
  EXPECT_FALSE(Unseal("a", std::string(Seal("ab", "c")).insert(6, "b")).ok());
}

TEST(Sealed, ANewerVersionIsNamedAsNewer) {
  std::string newer = Seal("key", "content");
  newer[1] = 3;
  newer[2] = static_cast<char>(newer[2] ^ 0x55);
  EXPECT_EQ(Unseal("key", newer).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace cellar::codec
