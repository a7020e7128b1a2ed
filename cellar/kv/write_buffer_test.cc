#include "cellar/kv/write_buffer.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

namespace cellar::kv {
namespace {

using Found = WriteBuffer::Found;
using Model = std::map<std::string, std::optional<std::string>>;  // nothing: deleted

std::optional<std::string> Look(const WriteBuffer& buffer, std::string_view key, uint64_t seq) {
  const WriteBuffer::Node* node = nullptr;
  switch (buffer.Find(key, seq, &node)) {
    case Found::kNothing: return "nothing";
    case Found::kDeleted: return std::nullopt;
    case Found::kPut: return "=" + std::string(node->value());
  }
  return "unknown";
}

Model Walk(const WriteBuffer& buffer, uint64_t seq, bool backwards) {
  Model seen;
  const auto note = [&](WriteBuffer::Position at) {
    const WriteBuffer::Node* node = buffer.At(at, seq);
    if (node == nullptr) return;
    EXPECT_EQ(seen.count(std::string(node->key())), 0u);
    const bool put = node->kind != WriteKind::kDelete;
    seen[std::string(node->key())] = put ? std::optional<std::string>(node->value()) : std::nullopt;
  };
  if (backwards) {
    for (auto at = buffer.End(); at != buffer.Begin();) note(at = buffer.Previous(at));
  } else {
    for (auto at = buffer.Begin(); at != buffer.End(); at = buffer.Next(at)) note(at);
  }
  return seen;
}

TEST(WriteBuffer, KeepsEveryViewUnderRandomWritesAndRollbacks) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  WriteBuffer buffer;
  buffer.KeepUndo(true);
  std::vector<std::pair<uint64_t, Model>> views{{0, {}}};  // at growing sequence numbers
  for (int step = 0; step < 1500; ++step) {
    Model now = views.back().second;
    const int roll = static_cast<int>(random() % 100);
    const int number = static_cast<int>(random() % 600);
    // Some keys are prefixes of others, some differ only behind eight bytes.
    std::string key = "prefix__" + std::to_string(roll < 50 ? step : number);
    if (random() % 4 == 0) key.resize(random() % key.size() + 1);
    if (random() % 50 == 0) key.push_back('\0');
    if (roll == 0 && views.size() > 10) {
      const size_t back = random() % 10;
      views.resize(views.size() - back);
      buffer.RollbackTo(views.back().first);
      continue;
    }
    if (roll < 20) {
      buffer.Add(WriteKind::kDelete, key, {}, 0);
      now[key] = std::nullopt;
    } else {
      const std::string value = std::to_string(step);
      buffer.Add(WriteKind::kPut, key, value, 0);
      now[key] = value;
    }
    views.emplace_back(buffer.seq(), std::move(now));
  }
  for (size_t i = 0; i < views.size(); i += 31) {
    const auto& [seq, model] = views[i];
    EXPECT_EQ(Walk(buffer, seq, false), model);
    EXPECT_EQ(Walk(buffer, seq, true), model);
  }
  const Model& last = views.back().second;
  EXPECT_EQ(buffer.keys(), last.size());
  for (const auto& [key, value] : last) {
    EXPECT_EQ(Look(buffer, key, WriteBuffer::kNewest),
              value ? std::optional<std::string>("=" + *value) : std::nullopt);
    const auto at = buffer.LowerBound(key);
    ASSERT_NE(at, buffer.End());
    EXPECT_EQ(buffer.At(at)->key(), key);
  }
}

TEST(WriteBuffer, ARangeDeletionHidesOlderWritesOnly) {
  WriteBuffer buffer;
  buffer.Add(WriteKind::kPut, "b", "old", 0);
  const uint64_t before = buffer.seq();
  buffer.AddRangeDeletion("a", "c", 0);
  EXPECT_EQ(Look(buffer, "b", WriteBuffer::kNewest), std::nullopt);
  EXPECT_EQ(Look(buffer, "bb", WriteBuffer::kNewest), std::nullopt);
  EXPECT_EQ(Look(buffer, "c", WriteBuffer::kNewest), "nothing");
  EXPECT_EQ(Look(buffer, "b", before), "=old");
  buffer.Add(WriteKind::kPut, "b", "new", 0);
  EXPECT_EQ(Look(buffer, "b", WriteBuffer::kNewest), "=new");
  int finals = 0;
  buffer.ForEachFinal([&](const WriteBuffer::Node& node) {
    ++finals;
    EXPECT_EQ(node.value(), "new");
  });
  EXPECT_EQ(finals, 1);
}

TEST(WriteBuffer, TellsWhatAWriteReplaces) {
  WriteBuffer buffer;
  EXPECT_EQ(buffer.Add(WriteKind::kPutIfAbsent, "a", "1", 0), nullptr);
  const WriteBuffer::Node* replaced = buffer.Add(WriteKind::kPut, "a", "2", 0);
  ASSERT_NE(replaced, nullptr);
  EXPECT_EQ(replaced->kind, WriteKind::kPutIfAbsent);
  buffer.ClearKeys();
  EXPECT_EQ(Look(buffer, "a", WriteBuffer::kNewest), "nothing");
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.seq(), 2u);
}

}  // namespace
}  // namespace cellar::kv
