#include "cellar/engines/rocksdb/log_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace cellar::engines {
namespace {

using Side = LogGate::Side;

TEST(LogGate, LetsNobodyInAfterAFailure) {
  LogGate gate;
  {
    const LogPass append(&gate, Side::kAppend), sync(&gate, Side::kSync);
    EXPECT_TRUE(append.open());
    EXPECT_TRUE(sync.open());
  }
  {
    const LogPass append(&gate, Side::kAppend);
    gate.Fail(Side::kAppend);
    EXPECT_TRUE(gate.failed());
    EXPECT_FALSE(LogPass(&gate, Side::kSync).open());
    EXPECT_FALSE(LogPass(&gate, Side::kAppend).open());
  }
  gate.Renew();
  EXPECT_TRUE(LogPass(&gate, Side::kSync).open());
}

// The failing call returns when the other side is out of RocksDB, and not before.
TEST(LogGate, WaitsForTheOtherSide) {
  LogGate gate;
  std::atomic<bool> out{false};
  std::atomic<bool> in{false};
  std::thread syncing([&] {
    const LogPass sync(&gate, Side::kSync);
    in = true;
    while (!gate.failed()) std::this_thread::yield();
    out = true;
  });
  while (!in) std::this_thread::yield();
  {
    const LogPass append(&gate, Side::kAppend);
    gate.Fail(Side::kAppend);
    EXPECT_TRUE(out);
  }
  syncing.join();
}

// Both sides fail at once, over and over: nobody waits for ever, nobody is inside with the other
// after a failure has returned.
TEST(LogGate, FailsOnBothSidesAtOnce) {
  for (int round = 0; round < 300; ++round) {
    LogGate gate;
    std::atomic<int> returned{0};
    const auto run = [&](Side side) {
      while (true) {
        const LogPass pass(&gate, side);
        if (!pass.open()) return;
        // Neither has failed before this call began.
        EXPECT_EQ(returned, 0);
        gate.Fail(side);
        ++returned;
        return;
      }
    };
    std::thread other(run, Side::kSync);
    run(Side::kAppend);
    other.join();
    EXPECT_GE(returned, 1);
  }
}

}  // namespace
}  // namespace cellar::engines
