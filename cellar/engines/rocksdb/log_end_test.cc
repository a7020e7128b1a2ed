#include "cellar/engines/rocksdb/log_end.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cellar/base/status.h"

namespace cellar::engines {
namespace {

class LogEndFile : public testing::Test {
 protected:
  LogEndFile() {
    std::string path = testing::TempDir() + "cellar_log_end_XXXXXX";
    directory_ = ::mkdtemp(path.data());
  }
  ~LogEndFile() override { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_ + "/" + std::string(kLogEndFile); }
  std::string Content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void SetContent(const std::string& content) {
    std::ofstream(path(), std::ios::binary) << content;
  }

  std::string directory_;
};

TEST_F(LogEndFile, BytesAreFrozen) {
  LogEnd end;
  end.change = 0x0102030405;
  end.stopped = true;
  end.generation = 7;
  const std::string bytes = EncodeLogEnd(end);
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  EXPECT_EQ(hex,
            "63656c6c61726c65"
            "00000001"
            "00000001"
            "0000000000000007"
            "0000000102030405"
            "00000000"
            "9d0dfb90");
}

TEST_F(LogEndFile, TheNewestIntactSlotCounts) {
  EXPECT_FALSE(ReadLogEnd(directory_)->has_value());
  auto keeper = LogEndKeeper::Start(directory_, {.change = 5, .generation = 40});
  ASSERT_TRUE(keeper.ok());
  EXPECT_EQ((*ReadLogEnd(directory_))->change, 5u);
  EXPECT_EQ((*ReadLogEnd(directory_))->generation, 42u);
  (*keeper)->Note(9);
  (*keeper)->Note(8);  // never back
  ASSERT_TRUE((*keeper)->Stop(9).ok());
  const LogEnd end = **ReadLogEnd(directory_);
  EXPECT_EQ(end.change, 9u);
  EXPECT_TRUE(end.stopped);
  const std::string good = Content();
  // Every single flipped bit of the newest slot leaves the one before.
  for (size_t bit = 0; bit < EncodeLogEnd(end).size() * 8; ++bit) {
    std::string bad = good;
    bad[512 * (end.generation % 2) + bit / 8] ^= static_cast<char>(1 << bit % 8);
    SetContent(bad);
    const Result<std::optional<LogEnd>> read = ReadLogEnd(directory_);
    ASSERT_TRUE(read.ok()) << bit;
    EXPECT_EQ((*read)->change, 5u) << bit;
  }
  for (const size_t size : {0u, 1u, 511u, 512u, 513u, 1023u}) {
    SetContent(good.substr(0, size));
    const Result<std::optional<LogEnd>> read = ReadLogEnd(directory_);
    if (size == 0) {
      EXPECT_FALSE(read->has_value());
    } else if (!read.ok()) {
      EXPECT_EQ(read.status().code(), Code::kCorruption) << size;
    }
  }
  SetContent(std::string(1024, 'x'));
  EXPECT_EQ(ReadLogEnd(directory_).status().code(), Code::kCorruption);
}

TEST_F(LogEndFile, IsWrittenWhileTheStoreIsOpen) {
  auto keeper = LogEndKeeper::Start(directory_, {.change = 1});
  ASSERT_TRUE(keeper.ok());
  (*keeper)->Note(70);
  for (int i = 0; i < 100 && (*ReadLogEnd(directory_))->change != 70; ++i) {
    // tidy: allow(sleep) it is written once a second
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ((*ReadLogEnd(directory_))->change, 70u);
  EXPECT_FALSE((*ReadLogEnd(directory_))->stopped);
}

}  // namespace
}  // namespace cellar::engines
