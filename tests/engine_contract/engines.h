// The engines under test and helpers: every contract test runs on each of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/engines/rocksdb/rocks_engine.h"
#include "cellar/kv/engine.h"

namespace cellar::kv {

// A directory that goes with the object.
class TempDirectory {
 public:
  TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory();
  const std::string& path() const { return path_; }
  std::string store() const { return path_ + "/store"; }

 private:
  std::string path_;
};

enum class EngineKind { kMemory, kRocks, kRocksSpilling };
std::string KindName(EngineKind kind);
// Small caches and buffers; kRocksSpilling spills every few kilobytes.
engines::RocksOptions TestOptions(const std::string& directory);
std::unique_ptr<Engine> OpenEngine(EngineKind kind, const std::string& directory);

// Each test of the suite gets a fresh engine of its parameter's kind.
class EngineTest : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override { engine_ = OpenEngine(GetParam(), directory_.store()); }

  void Put(std::string_view key, std::string_view value);
  std::optional<std::string> Read(std::string_view key);

  TempDirectory directory_;
  std::unique_ptr<Engine> engine_;
};

std::string NameOf(const testing::TestParamInfo<EngineKind>& info);
#define CELLAR_ENGINE_SUITE(Suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                 \
      All, Suite,                                                                           \
      testing::Values(EngineKind::kMemory, EngineKind::kRocks, EngineKind::kRocksSpilling), \
      NameOf)

using Pairs = std::vector<std::pair<std::string, std::string>>;
std::optional<std::string> Get(Transaction* transaction, std::string_view key,
                               ReadMode mode = ReadMode::kTracked);
Pairs ScanAll(Transaction* transaction, std::string_view start, std::string_view end,
              const ScanOptions& options = {});
std::string Key(int number);  // eight digits after "k"

#define ASSERT_OK(expr)                                 \
  do {                                                  \
    const auto& ok_status_ = (expr);                    \
    ASSERT_TRUE(ok_status_.ok()) << ToText(ok_status_); \
  } while (false)
#define EXPECT_OK(expr)                                 \
  do {                                                  \
    const auto& ok_status_ = (expr);                    \
    EXPECT_TRUE(ok_status_.ok()) << ToText(ok_status_); \
  } while (false)

inline std::string ToText(const Status& status) { return status.ToString(); }
template <typename T>
std::string ToText(const Result<T>& result) {
  return result.status().ToString();
}
template <typename T>
Code CodeOf(const Result<T>& result) {
  return result.status().code();
}
inline Code CodeOf(const Status& status) { return status.code(); }
template <typename T>
std::string StateOf(const Result<T>& result) {
  return std::string(result.status().sqlstate());
}
inline std::string StateOf(const Status& status) { return std::string(status.sqlstate()); }

}  // namespace cellar::kv
