#include "cellar/engines/rocksdb/rocks_read.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>

#include <filesystem>

#include "cellar/engines/rocksdb/rocks_engine.h"

namespace cellar::engines {
namespace {

constexpr int kKeys = 5000;

class CoveredKeysTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = (std::filesystem::temp_directory_path() / "cellar_read_XXXXXX").string();
    ASSERT_NE(mkdtemp(directory_.data()), nullptr);
    Result<std::unique_ptr<kv::Engine>> engine = OpenRocksEngine({.directory = directory_});
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = std::move(*engine);
    Write([](kv::Transaction* transaction) {
      for (int i = 0; i < kKeys; ++i) EXPECT_TRUE(transaction->Put(Key("a", i), "v").ok());
    });
    Write(
        [](kv::Transaction* transaction) { EXPECT_TRUE(transaction->DeleteRange("a", "b").ok()); });
  }
  void TearDown() override {
    engine_.reset();
    std::filesystem::remove_all(directory_);
  }

  static std::string Key(std::string_view prefix, int i) {
    return fmt::format("{}{:06}", prefix, i);
  }
  void Write(const std::function<void(kv::Transaction*)>& writes) {
    const std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    writes(transaction.get());
    ASSERT_TRUE(transaction->Commit().ok());
  }
  // The last key of [start, end); empty: none.
  std::string Last(std::string_view start, std::string_view end) {
    const std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    kv::ScanOptions options;
    options.reverse = true;
    options.limit = 1;
    Result<std::unique_ptr<kv::Cursor>> cursor = transaction->Scan(start, end, options);
    EXPECT_TRUE(cursor.ok()) << cursor.status().ToString();
    kv::Block block;
    Result<bool> more = (*cursor)->NextBlock(&block);
    EXPECT_TRUE(more.ok()) << more.status().ToString();
    return *more ? std::string(block.key(0)) : "";
  }
  uint64_t ComparisonsOfLast(std::string_view start, std::string_view end) {
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
    rocksdb::get_perf_context()->Reset();
    EXPECT_EQ(Last(start, end), "");
    const uint64_t comparisons = rocksdb::get_perf_context()->user_key_comparison_count;
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
    return comparisons;
  }

  std::string directory_;
  std::unique_ptr<kv::Engine> engine_;
};

TEST_F(CoveredKeysTest, AreNotWalkedToFindThatARangeIsEmpty) {
  const uint64_t comparisons = ComparisonsOfLast("b", "c");
  EXPECT_GT(comparisons, 0u);
  EXPECT_LT(comparisons, static_cast<uint64_t>(kKeys) / 4);
}

TEST_F(CoveredKeysTest, HideNothingThatLives) {
  EXPECT_EQ(Last("a", "b"), "");
  EXPECT_EQ(Last("a", "c"), "");
  Write([](kv::Transaction* transaction) {
    EXPECT_TRUE(transaction->Put(Key("a", 7), "again").ok());
    EXPECT_TRUE(transaction->Put(Key("b", 1), "v").ok());
  });
  EXPECT_EQ(Last("a", "b"), Key("a", 7));
  EXPECT_EQ(Last("b", "c"), Key("b", 1));
  EXPECT_EQ(Last("a", "c"), Key("b", 1));
  EXPECT_EQ(Last("b", Key("b", 1)), "");
  EXPECT_EQ(Last(Key("a", 8), "b"), "");
}

}  // namespace
}  // namespace cellar::engines
