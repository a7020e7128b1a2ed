#include "cellar/base/memory_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "cellar/base/arena.h"
#include "cellar/base/machine_memory.h"
#include "cellar/base/sqlstate.h"

namespace cellar {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

// A process of its own, for the test.
MemoryAccountPtr Root(size_t limit) {
  return MemoryAccount::Make(MemoryAccount::Process(), "test", "--test", limit);
}

TEST(MemoryAccount, ChargesThoseAboveInSteps) {
  const MemoryAccountPtr root = Root(64 * kMebibyte);
  const size_t before = root->used();
  const MemoryAccountPtr child =
      MemoryAccount::Make(root.get(), "statement", "--statement-mb", MemoryAccount::kNoLimit);
  EXPECT_TRUE(child->TryCharge(1000, nullptr));
  EXPECT_EQ(child->used(), 1000u);
  const size_t step = root->used();
  EXPECT_GE(step, before + 1000);
  EXPECT_TRUE(child->TryCharge(1000, nullptr));
  EXPECT_EQ(root->used(), step);  // of what was taken before
  EXPECT_TRUE(child->TryCharge(10 * kMebibyte, nullptr));
  EXPECT_GE(root->used(), 10 * kMebibyte);
  EXPECT_LE(root->used(), 13 * kMebibyte);
  child->Release(10 * kMebibyte);
  EXPECT_LE(root->used(), 2 * kMebibyte);
  child->Release(2000);
  EXPECT_EQ(child->used(), 0u);
}

TEST(MemoryAccount, RefusesBeyondItsLimitAndSaysWhoAndWhy) {
  const MemoryAccountPtr root = Root(64 * kMebibyte);
  const MemoryAccountPtr child =
      MemoryAccount::Make(root.get(), "statement", "--statement-mb", 4 * kMebibyte);
  EXPECT_TRUE(child->Charge(3 * kMebibyte).ok());
  const Status status = child->Charge(2 * kMebibyte);
  EXPECT_EQ(status.sqlstate(), sqlstate::kOutOfMemory);
  EXPECT_EQ(status.detail(),
            "The statement asked for 2097152 bytes beside the 3145728 that it uses; --statement-mb "
            "lets it have 4194304.");
  EXPECT_EQ(child->used(), 3 * kMebibyte);
  EXPECT_TRUE(child->Charge(kMebibyte).ok());
  EXPECT_FALSE(child->Charge(SIZE_MAX).ok());
  child->Release(4 * kMebibyte);
}

TEST(MemoryAccount, IsRefusedByThoseAbove) {
  const MemoryAccountPtr root = Root(4 * kMebibyte);
  const MemoryAccountPtr child =
      MemoryAccount::Make(root.get(), "statement", "--statement-mb", MemoryAccount::kNoLimit);
  MemoryRefusal refusal;
  EXPECT_FALSE(child->TryCharge(5 * kMebibyte, &refusal));
  EXPECT_STREQ(refusal.account, "test");
  EXPECT_EQ(child->used(), 0u);
  // The last bytes come without a whole step.
  EXPECT_TRUE(child->TryCharge(4 * kMebibyte - 4096, &refusal));
  child->Release(4 * kMebibyte - 4096);
}

TEST(MemoryAccount, LivesUntilAllIsGivenBack) {
  const MemoryAccountPtr root = Root(64 * kMebibyte);
  const size_t before = root->used();
  MemoryAccountPtr child =
      MemoryAccount::Make(root.get(), "statement", "--statement-mb", MemoryAccount::kNoLimit);
  CountedArray<char> kept;
  {
    const MemoryScope scope(child.get());
    kept = MakeCountedArray<char>(kMebibyte);
  }
  child.reset();
  EXPECT_GE(root->used(), kMebibyte);
  kept.reset();
  EXPECT_EQ(root->used(), before);
}

TEST(MemoryAccount, ArenasThrowAndTheirOwnersGoOn) {
  const MemoryAccountPtr root = Root(64 * kMebibyte);
  const MemoryAccountPtr child =
      MemoryAccount::Make(root.get(), "statement", "--statement-mb", 4 * kMebibyte);
  Arena arena;
  const auto fill = [&]() -> Status {
    const MemoryScope scope(child.get());
    while (true) arena.Allocate(1000);
  };
  const Status status = CatchOutOfMemory(fill);
  EXPECT_EQ(status.sqlstate(), sqlstate::kOutOfMemory);
  EXPECT_GT(child->used(), 3 * kMebibyte);
  EXPECT_EQ(MemoryAccount::Current(), nullptr);
  arena.Reset();
  EXPECT_LE(child->used(), 4096u);
}

TEST(MemoryAccount, TurnsTheAllocatorsRefusalInto53200) {
  const auto take = []() -> Status {
    const CountedArray<char> never = MakeCountedArray<char>(SIZE_MAX / 2 + 2);
    return Status();
  };
  EXPECT_EQ(CatchOutOfMemory(take).sqlstate(), sqlstate::kOutOfMemory);
}

TEST(MemoryAccount, IsSharedByThreads) {
  const MemoryAccountPtr root = Root(MemoryAccount::kNoLimit);
  const size_t before = root->used();
  {
    const MemoryAccountPtr child =
        MemoryAccount::Make(root.get(), "statement", "--statement-mb", 64 * kMebibyte);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&child, t] {
        const MemoryScope scope(child.get());
        std::vector<CountedArray<char>> held;
        for (size_t i = 0; i < 2000; ++i) {
          held.push_back(MakeCountedArray<char>(1024 + (i * 7919 + static_cast<size_t>(t)) % 9000));
          if (held.size() > 100) held.erase(held.begin(), held.begin() + 60);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(child->used(), 0u);
  }
  EXPECT_EQ(root->used(), before);
}

TEST(MemoryAccount, CountsWhatContainersHold) {
  const MemoryAccountPtr root = Root(64 * kMebibyte);
  {
    const MemoryScope scope(root.get());
    CountedVector<uint64_t> numbers(100000);
    EXPECT_EQ(root->used(), 800000u);
    numbers.push_back(1);
    EXPECT_GT(root->used(), 800000u);
  }
  EXPECT_EQ(root->used(), 0u);
}

TEST(MemoryCharge, ThrowsWhereNoStatusCanBeReturned) {
  const MemoryAccountPtr root = Root(kMebibyte);
  MemoryCharge charge(root.get());
  charge.Add(1000);
  EXPECT_EQ(charge.bytes(), 1000u);
  EXPECT_THROW(charge.Add(2 * kMebibyte), OutOfMemory);
  EXPECT_EQ(charge.bytes(), 1000u);
  charge.Clear();
  EXPECT_EQ(root->used(), 0u);
}

TEST(MachineMemory, IsAShareOfWhatThereIs) {
  EXPECT_GT(DefaultProcessMemory(), 16 * kMebibyte);
  EXPECT_LT(DefaultProcessMemory(), SIZE_MAX / 2);
}

}  // namespace
}  // namespace cellar
