// The log scanner alone; what it guards is tested on real stores in tests/engine_contract.
#include "cellar/engines/rocksdb/wal_guard.h"

#include <gtest/gtest.h>

namespace cellar::engines {
namespace {

TEST(WalGuard, FindsNothingInNothing) {
  LogExtent extent;
  ScanLog("", &extent);
  EXPECT_EQ(extent.last_sequence, 0u);
}

TEST(WalGuard, TakesZeroesForUnusedSpace) {
  LogExtent extent;
  ScanLog(std::string(100000, '\0'), &extent);
  EXPECT_EQ(extent.last_sequence, 0u);
  EXPECT_EQ(extent.bytes, 100000u);
}

TEST(WalGuard, FindsNoRecordsInNoise) {
  std::string noise(200000, '\0');
  uint64_t state = 7;
  for (char& byte : noise) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  LogExtent extent;
  ScanLog(noise, &extent);
  EXPECT_EQ(extent.last_sequence, 0u);
}

}  // namespace
}  // namespace cellar::engines
