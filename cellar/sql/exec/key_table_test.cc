#include "cellar/sql/exec/key_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace cellar::sql::exec {
namespace {

// Ids by key text, in order of first appearance: what a KeyTable must say.
class Model {
 public:
  uint32_t IdOf(const RowBatch& batch, size_t row, bool* fresh) {
    std::string key;
    for (const ColumnVector& column : batch.columns()) {
      if (column.IsNull(row)) {
        key += "null|";
      } else if (column.physical() == Physical::kInt64) {
        key += std::to_string(column.ints()[row]) + "|";
      } else {
        key += std::string(column.bytes()[row]) + "|";
      }
    }
    const auto [at, inserted] = ids_.emplace(key, static_cast<uint32_t>(ids_.size()));
    *fresh = inserted;
    return at->second;
  }
  size_t size() const { return ids_.size(); }

 private:
  std::map<std::string, uint32_t> ids_;
};

class KeyTableTest : public ::testing::Test {
 protected:
  void Use(std::vector<Type> types) {
    types_ = std::move(types);
    table_.Reset(types_);
    model_ = Model();
  }
  RowBatch& Start(size_t rows) {
    batch_.Reset(types_);
    batch_.Resize(rows);
    return batch_;
  }
  // Words of a dictionary of their own, in an order of their own, some of them absent.
  void FillCoded(size_t column, std::vector<std::string_view> words) {
    std::shuffle(words.begin(), words.end(), random_);
    ColumnVector& vector = batch_.column(column);
    uint8_t* codes = vector.SetDictionary(words);
    for (size_t i = 0; i < batch_.size(); ++i) {
      codes[i] = static_cast<uint8_t>(random_() % (words.size() / 2 + 1));
      vector.bytes()[i] = words[codes[i]];
    }
  }
  void FillInts(size_t column, int64_t low, int64_t high, bool nulls) {
    std::uniform_int_distribution<int64_t> any(low, high);
    for (size_t i = 0; i < batch_.size(); ++i) {
      batch_.column(column).ints()[i] = any(random_);
      if (nulls && random_() % 5 == 0) batch_.column(column).SetNull(i);
    }
  }
  void Check() {
    std::vector<const ColumnVector*> keys;
    for (const ColumnVector& column : batch_.columns()) keys.push_back(&column);
    std::vector<uint32_t> ids(batch_.size());
    std::vector<uint8_t> fresh(batch_.size(), 7);
    const bool one = table_.FindOrInsert(keys, batch_.size(), ids.data(), fresh.data());
    bool all_same = true;
    for (size_t i = 0; i < batch_.size(); ++i) {
      bool is_fresh = false;
      ASSERT_EQ(ids[i], model_.IdOf(batch_, i, &is_fresh)) << "row " << i;
      ASSERT_EQ(fresh[i], is_fresh ? 1 : 0) << "row " << i;
      all_same = all_same && ids[i] == ids[0];
    }
    EXPECT_EQ(one, all_same);
    EXPECT_EQ(table_.size(), model_.size());
    std::vector<uint32_t> found(batch_.size());
    table_.Find(keys, batch_.size(), found.data());
    EXPECT_EQ(found, ids);
  }

  std::mt19937_64 random_{5};
  std::vector<Type> types_;
  RowBatch batch_;
  KeyTable table_;
  Model model_;
};

const Type kText = MakeType(TypeId::kText), kInt8 = MakeType(TypeId::kInt8);

TEST_F(KeyTableTest, CodesMeanOtherWordsInEachBatch) {
  Use({kText});
  for (int round = 0; round < 50; ++round) {
    Start(1 + random_() % 300);
    FillCoded(0, {"a", "b", "c", "", "longer than the others", "e"});
    Check();
  }
  Start(40);
  for (size_t i = 0; i < 40; ++i) batch_.column(0).bytes()[i] = i % 2 == 0 ? "b" : "new";
  Check();
  Start(40);
  FillCoded(0, {"z"});
  Check();
}

TEST_F(KeyTableTest, SeveralColumnsWithCodes) {
  Use({kText, kText});
  for (int round = 0; round < 50; ++round) {
    Start(1 + random_() % 300);
    FillCoded(0, {"a", "b", "c"});
    FillCoded(1, {"x", "y", "a", "b"});
    Check();
  }
  // Too many codes together.
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back("w" + std::to_string(i));
  const std::vector<std::string_view> words(texts.begin(), texts.end());
  Start(1000);
  FillCoded(0, words);
  FillCoded(1, words);
  Check();
}

TEST_F(KeyTableTest, Integers) {
  for (const auto& [low, high] :
       {std::pair<int64_t, int64_t>{-3, 3}, {-1000, 1000}, {0, 0}, {INT64_MIN, INT64_MAX}}) {
    for (bool nulls : {false, true}) {
      Use({kInt8});
      for (int round = 0; round < 10; ++round) {
        Start(1 + random_() % 700);
        FillInts(0, low, high, nulls);
        Check();
      }
    }
  }
}

TEST_F(KeyTableTest, TextsWithoutCodes) {
  const std::string_view words[] = {"",    "a",    "b",     "ab",       "ba",        "aba",
                                    "abc", "abcd", "abcde", "abcdefgh", "abcdefghi", "abcdefghj"};
  for (bool nulls : {false, true}) {
    Use({kText});
    for (int round = 0; round < 20; ++round) {
      Start(1 + random_() % 300);
      for (size_t i = 0; i < batch_.size(); ++i) {
        batch_.column(0).bytes()[i] = words[random_() % std::size(words)];
        if (nulls && random_() % 5 == 0) batch_.column(0).SetNull(i);
      }
      Check();
    }
  }
}

TEST_F(KeyTableTest, ResetForgets) {
  Use({kInt8});
  Start(10);
  FillInts(0, 1, 3, false);
  Check();
  Use({kInt8});
  EXPECT_EQ(table_.size(), 0u);
  Start(10);
  FillInts(0, 2, 3, false);
  Check();
  Use({kText});
  Start(100);
  FillCoded(0, {"p", "q", "r"});
  Check();
  Use({kText});
  Start(100);
  FillCoded(0, {"p", "q", "r"});
  Check();
}

}  // namespace
}  // namespace cellar::sql::exec
