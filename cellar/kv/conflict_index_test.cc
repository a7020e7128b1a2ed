#include "cellar/kv/conflict_index.h"

#include <gtest/gtest.h>

#include <random>

#include "cellar/kv/hash.h"

namespace cellar::kv {
namespace {

// A small index: hashes collide, and the ring forgets soon.
class ConflictIndexTest : public testing::Test {
 protected:
  ConflictIndexTest() : index_(4, 14, 0) {}

  uint64_t Write(const std::vector<std::string>& keys,
                 const std::vector<std::pair<std::string, std::string>>& ranges = {}) {
    WriteBuffer buffer;
    for (const std::string& key : keys) buffer.Add(WriteKind::kPut, key, "v", 0);
    WriteSet writes;
    writes.buffer = &buffer;
    buffer.ForEachFinal(
        [&](const WriteBuffer::Node& node) { writes.hashes.push_back(HashKey(node.key())); });
    writes.ranges = ranges;
    index_.Mark(writes, ++version_);
    return version_;
  }
  bool Point(std::string_view key, uint64_t version) {
    ReadSet reads;
    reads.AddPoint(key, HashKey(key), version);
    return index_.Unchanged(reads);
  }
  bool Range(std::string_view start, std::string_view end, uint64_t version) {
    ReadSet reads;
    reads.AddRange(start, end, version);
    return index_.Unchanged(reads);
  }

  ConflictIndex index_;
  uint64_t version_ = 0;
};

TEST_F(ConflictIndexTest, SeesWritesAfterTheReadOnly) {
  Write({"a"});
  EXPECT_FALSE(Point("a", 0));
  EXPECT_TRUE(Point("a", 1));
  EXPECT_FALSE(Range("a", "b", 0));
  EXPECT_TRUE(Range("a", "b", 1));
  EXPECT_TRUE(Range("b", "c", 0));
  EXPECT_FALSE(Range("", "", 0));
}

TEST_F(ConflictIndexTest, CollidingHashesAreToldApartByTheRing) {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("k" + std::to_string(i));
  Write(keys);
  EXPECT_TRUE(Point("other", 0));  // all sixteen slots are taken
  EXPECT_FALSE(Point("k42", 0));
}

TEST_F(ConflictIndexTest, WhatTheRingForgotCountsAsChanged) {
  for (int i = 0; i < 3000; ++i) Write({"k" + std::to_string(i)});
  EXPECT_FALSE(Range("x", "y", 0));
  EXPECT_FALSE(Point("x", 0));
  EXPECT_TRUE(Range("x", "y", version_ - 100));
  EXPECT_TRUE(Point("x", version_ - 100));
  EXPECT_FALSE(Range("k", "l", version_ - 1));
}

TEST_F(ConflictIndexTest, WrittenRangesChangeThePointsInThem) {
  Write({}, {{"m", "n"}});
  EXPECT_TRUE(Point("x", 0));
  EXPECT_FALSE(Point("mm", 0));
  EXPECT_FALSE(Range("mm", "z", 0));
  EXPECT_TRUE(Range("n", "z", 0));
  EXPECT_TRUE(index_.KeyUnchanged("x", HashKey("x"), 0));
  EXPECT_TRUE(index_.KeyUnchanged("n", HashKey("n"), 0));
  EXPECT_FALSE(index_.KeyUnchanged("m", HashKey("m"), 0));
  EXPECT_TRUE(index_.KeyUnchanged("m", HashKey("m"), version_));
  // Points of one index, on both sides of the range, are taken for points between them.
  ReadSet reads;
  for (const char* key : {"lllll1", "mmmmm1", "mmmmm9"})
    reads.AddPoint(key, HashKey(key), version_);
  Write({}, {{"mmmmm3", "mmmmm4"}});
  EXPECT_FALSE(index_.Unchanged(reads));
  ReadSet others;
  for (const char* key : {"lllll1", "mmmmm1"}) others.AddPoint(key, HashKey(key), version_ - 1);
  EXPECT_TRUE(index_.Unchanged(others));
}

TEST_F(ConflictIndexTest, KeysAreKnownExactlyAsFarAsTheRingReaches) {
  for (int i = 0; i < 200; ++i) Write({"k" + std::to_string(i)});
  const uint64_t before = version_;
  EXPECT_TRUE(index_.KeyUnchanged("x", HashKey("x"), before - 100));
  Write({"x"});
  EXPECT_FALSE(index_.KeyUnchanged("x", HashKey("x"), before));
  EXPECT_TRUE(index_.KeyUnchanged("y", HashKey("y"), before));
  for (int i = 0; i < 3000; ++i) Write({"k" + std::to_string(i)});
  EXPECT_FALSE(index_.KeyUnchanged("x", HashKey("x"), before));
}

TEST_F(ConflictIndexTest, HugeCommitsBecomeRanges) {
  std::vector<std::string> keys;
  for (int i = 10000; i < 12000; ++i) keys.push_back("k" + std::to_string(i));
  Write(keys);
  EXPECT_FALSE(Range("k10500", "k10501", 0));
  EXPECT_FALSE(Range("k11999", "z", 0));
  EXPECT_TRUE(Range("a", "k10000", 0));
  EXPECT_TRUE(Range("l", "z", 0));
}

TEST_F(ConflictIndexTest, RequiredKeysAreWatchedExactly) {
  EXPECT_TRUE(index_.Require("schema", 0));
  for (int i = 0; i < 200; ++i) Write({"k" + std::to_string(i)});
  EXPECT_TRUE(index_.Require("schema", 0));
  const uint64_t written = Write({"schema"});
  EXPECT_FALSE(index_.Require("schema", written - 1));
  EXPECT_TRUE(index_.Require("schema", written));
  ReadSet reads;
  reads.AddRequirement("schema", written);
  EXPECT_TRUE(index_.Unchanged(reads));
  Write({}, {{"s", "t"}});
  EXPECT_FALSE(index_.Unchanged(reads));
}

TEST_F(ConflictIndexTest, SystemRecordsAreKnownExactlyBeforeTheyAreRequired) {
  const std::string one("\0desc-1", 7), two("\0desc-2", 7), three("\0desc-3", 7);
  const uint64_t made = Write({one, "data"});
  for (int i = 0; i < 500; ++i) Write({"k" + std::to_string(i)});
  Write({}, {{"k", "l"}});
  EXPECT_TRUE(index_.Require(two, 0));
  EXPECT_TRUE(index_.Require(one, made));
  EXPECT_FALSE(index_.Require(one, made - 1));
  const uint64_t changed = Write({two});
  EXPECT_FALSE(index_.Require(two, changed - 1));
  EXPECT_TRUE(index_.Require(one, made));
  Write({}, {{std::string("\0d", 2), std::string("\0e", 2)}});
  EXPECT_FALSE(index_.Require(one, made));
  EXPECT_FALSE(index_.Require(three, changed));
  EXPECT_TRUE(index_.Require(three, version_));
}

TEST_F(ConflictIndexTest, NeverMissesAChange) {
  std::mt19937 random(std::random_device{}());
  std::vector<std::vector<std::string>> commits;
  const auto key = [&] {
    return std::string(1 + random() % 3, static_cast<char>('a' + random() % 6));
  };
  for (int i = 0; i < 500; ++i) {
    commits.push_back({key(), key()});
    Write(commits.back());
    const uint64_t since = version_ - random() % std::min<uint64_t>(version_ + 1, 20);
    ReadSet reads;
    std::vector<std::string> points{key(), key()};
    for (const std::string& point : points) reads.AddPoint(point, HashKey(point), since);
    const std::string start = key(), end = key();
    if (start < end) reads.AddRange(start, end, since);
    reads.Prepare();
    bool changed = false;
    for (uint64_t v = since; v < version_; ++v) {
      for (const std::string& written : commits[v]) {
        changed |= written == points[0] || written == points[1];
        changed |= start < end && written >= start && written < end;
      }
    }
    // With full hashes in the ring nothing here is a false alarm either.
    EXPECT_EQ(index_.Unchanged(reads), !changed);
  }
}

TEST(ReadSet, LargeSetsWidenButNeverForget) {
  ReadSet reads;
  for (int i = 0; i < 20000; ++i) {
    const std::string start = "r" + std::to_string(100000 + i * 3);
    reads.AddRange(start, start + "x", 5);
  }
  reads.Prepare();
  EXPECT_LE(reads.ranges().size(), 2 * ReadSet::kMaxRanges);
  for (int i = 0; i < 20000; i += 97) {
    const std::string key = "r" + std::to_string(100000 + i * 3);
    EXPECT_TRUE(std::any_of(reads.ranges().begin(), reads.ranges().end(),
                            [&](const ReadRange& range) { return range.Contains(key); }));
  }
}

}  // namespace
}  // namespace cellar::kv
