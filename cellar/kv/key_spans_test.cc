#include "cellar/kv/key_spans.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace cellar::kv {
namespace {

using Ranges = std::vector<std::pair<std::string, std::string>>;

std::string Key(char table, int row) {
  std::string key(1, table);
  for (int shift = 24; shift >= 0; shift -= 8) key.push_back(static_cast<char>(row >> shift));
  return key;
}

bool Holds(const Ranges& ranges, const std::string& key) {
  for (const auto& [start, end] : ranges) {
    if (key >= start && (end.empty() || key < end)) return true;
  }
  return false;
}

TEST(KeySpans, FewKeysStayAlone) {
  KeySpans spans;
  EXPECT_TRUE(spans.empty());
  spans.Add("a");
  spans.Add("c");
  spans.Add("c");
  const std::string end("c\0", 2);
  EXPECT_EQ(spans.Take(), (Ranges{{"a", std::string("a\0", 2)}, {"c", end}}));
  EXPECT_TRUE(spans.empty());
}

TEST(KeySpans, WhatLiesBetweenTwoTablesBelongsToOthers) {
  KeySpans spans;
  for (const char table : {'a', 'f', 'm'}) {
    for (int row = 0; row < 100000; row += 3) spans.Add(Key(table, row));
  }
  const Ranges ranges = spans.Take();
  EXPECT_LE(ranges.size(), KeySpans::kMost);
  for (const char table : {'a', 'f', 'm'}) EXPECT_TRUE(Holds(ranges, Key(table, 99)));
  for (const char table : {'b', 'e', 'g', 'l', 'n'}) {
    for (int row = 0; row < 100000; row += 997) EXPECT_FALSE(Holds(ranges, Key(table, row)));
  }
}

TEST(KeySpans, CoverWhatWasAdded) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<KeySpans> parts(1 + random() % 3);
    std::set<std::string> all;
    const size_t alphabet = round % 2 == 0 ? 3 : 256;
    for (KeySpans& part : parts) {
      std::set<std::string> keys;
      for (size_t i = random() % 400; i > 0; --i) {
        std::string key;
        for (size_t size = 1 + random() % (round % 5 == 0 ? 300 : 6); key.size() < size;) {
          key.push_back(static_cast<char>(255 - random() % alphabet));
        }
        keys.insert(key);
      }
      for (const std::string& key : keys) part.Add(key);
      all.insert(keys.begin(), keys.end());
    }
    std::vector<const KeySpans*> pointers;
    for (const KeySpans& part : parts) pointers.push_back(&part);
    const Ranges ranges = KeySpans::Union(pointers).Take();
    EXPECT_LE(ranges.size(), KeySpans::kMost);
    for (const std::string& key : all) EXPECT_TRUE(Holds(ranges, key));
    for (size_t i = 0; i < ranges.size(); ++i) {
      EXPECT_TRUE(ranges[i].second.empty() || ranges[i].first < ranges[i].second);
      EXPECT_TRUE(i == 0 || ranges[i - 1].second <= ranges[i].first);
    }
  }
}

TEST(KeySpans, BoundsOfLongKeysAreShort) {
  KeySpans spans;
  spans.Add(std::string(1 << 20, 'x'));
  spans.Add(std::string(1 << 20, '\xff'));
  const Ranges ranges = spans.Take();
  ASSERT_EQ(ranges.size(), 2u);
  for (const auto& [start, end] : ranges) EXPECT_LE(start.size() + end.size(), 512u);
  EXPECT_EQ(ranges[1].second, "");
}

}  // namespace
}  // namespace cellar::kv
