// Modes, queues, deadlocks and groups of the lock table.
#include "cellar/kv/lock_table.h"

#include <gtest/gtest.h>

#include <future>
#include <random>
#include <thread>

#include "cellar/base/sqlstate.h"

namespace cellar::kv {
namespace {

using std::chrono::milliseconds;
constexpr LockKind kRow = LockKind::kRow, kTable = LockKind::kTable;

class LockTableTest : public ::testing::Test {
 protected:
  static LockOptions In(LockMode mode, LockWait wait = LockWait::kBlock) {
    LockOptions options;
    options.mode = mode;
    options.wait = wait;
    return options;
  }
  // Would it be got at once?
  static bool Gets(LockOwner* owner, LockKind kind, LockMode mode, std::string_view name = "a") {
    Result<bool> got = owner->Acquire(kind, name, In(mode, LockWait::kSkip));
    return got.ok() && *got;
  }
  // Begins to wait, and comes back once it does.
  std::future<Status> Waits(LockOwner* owner, LockKind kind, LockMode mode, std::string_view name,
                            milliseconds deadlock_after = milliseconds(60000)) {
    std::future<Status> status = std::async(std::launch::async, [=, this] {
      LockOptions options = In(mode);
      options.deadlock_after = deadlock_after;
      return owner->Acquire(kind, name, options).status();
    });
    while (table_.Blockers(owner->group()).empty()) std::this_thread::yield();
    return status;
  }
  static bool Done(std::future<Status>& status) {
    return status.wait_for(milliseconds(0)) == std::future_status::ready;
  }

  LockTable table_;
};

TEST_F(LockTableTest, RowsConflictAsPostgresSays) {
  const LockMode modes[] = {kForKeyShare, kForShare, kForNoKeyUpdate, kForUpdate};
  const bool pass[4][4] = {{true, true, true, false},
                           {true, true, false, false},
                           {true, false, false, false},
                           {false, false, false, false}};
  for (int held = 0; held < 4; ++held) {
    for (int wanted = 0; wanted < 4; ++wanted) {
      LockOwner one(&table_, 1), two(&table_, 2);
      EXPECT_TRUE(Gets(&one, kRow, modes[held]));
      EXPECT_EQ(Gets(&two, kRow, modes[wanted]), pass[held][wanted]) << held << " " << wanted;
    }
  }
}

TEST_F(LockTableTest, TablesConflictAsPostgresSays) {
  // Rows of the manual's table 13.2: X where they exclude each other.
  const char* conflicts[kLockModes] = {"       X", "      XX", "    XXXX", "   XXXXX",
                                       "  XX XXX", "  XXXXXX", " XXXXXXX", "XXXXXXXX"};
  for (size_t held = 0; held < kLockModes; ++held) {
    for (size_t wanted = 0; wanted < kLockModes; ++wanted) {
      LockOwner one(&table_, 1), two(&table_, 2);
      EXPECT_TRUE(Gets(&one, kTable, static_cast<LockMode>(held)));
      EXPECT_EQ(Gets(&two, kTable, static_cast<LockMode>(wanted)), conflicts[held][wanted] == ' ')
          << held << " " << wanted;
    }
  }
}

TEST_F(LockTableTest, AGroupDoesNotExcludeItself) {
  LockOwner session(&table_, 1), transaction(&table_, 1), other(&table_, 2);
  EXPECT_TRUE(Gets(&session, LockKind::kAdvisory, LockMode::kExclusive));
  EXPECT_TRUE(Gets(&transaction, LockKind::kAdvisory, LockMode::kExclusive));
  EXPECT_TRUE(session.Release(LockKind::kAdvisory, "a", LockMode::kExclusive));
  EXPECT_FALSE(session.Release(LockKind::kAdvisory, "a", LockMode::kExclusive));
  EXPECT_FALSE(Gets(&other, LockKind::kAdvisory, LockMode::kExclusive));
  transaction.ReleaseAll();
  EXPECT_TRUE(Gets(&other, LockKind::kAdvisory, LockMode::kExclusive));
}

TEST_F(LockTableTest, WhatWasTakenSinceAMarkGoes) {
  LockOwner one(&table_, 1), two(&table_, 2);
  EXPECT_TRUE(Gets(&one, kRow, kForShare));
  const size_t mark = one.mark();
  EXPECT_TRUE(Gets(&one, kRow, kForUpdate));
  EXPECT_TRUE(Gets(&one, kRow, kForUpdate, "b"));
  EXPECT_FALSE(Gets(&two, kRow, kForShare));
  one.RollbackTo(mark);
  EXPECT_TRUE(Gets(&two, kRow, kForUpdate, "b"));
  EXPECT_TRUE(Gets(&two, kRow, kForShare));
  EXPECT_FALSE(Gets(&two, kRow, kForNoKeyUpdate)) << "the share lock from before stays";
}

TEST_F(LockTableTest, WaitersOfTablesAreServedInTheirOrder) {
  LockOwner reader(&table_, 1), writer(&table_, 2), late(&table_, 3);
  EXPECT_TRUE(Gets(&reader, kTable, LockMode::kAccessShare));
  std::future<Status> waits = Waits(&writer, kTable, LockMode::kAccessExclusive, "a");
  EXPECT_FALSE(Gets(&late, kTable, LockMode::kAccessShare)) << "it would overtake the writer";
  std::future<Status> behind = Waits(&late, kTable, LockMode::kAccessShare, "a");
  EXPECT_EQ(table_.Blockers(3), std::vector<uint64_t>{2});
  EXPECT_TRUE(Gets(&reader, kTable, LockMode::kRowExclusive)) << "who holds may have more";
  reader.ReleaseAll();
  EXPECT_TRUE(waits.get().ok());
  EXPECT_FALSE(Done(behind));
  writer.ReleaseAll();
  EXPECT_TRUE(behind.get().ok());
}

TEST_F(LockTableTest, SharersOfARowPassAWaiter) {
  LockOwner one(&table_, 1), two(&table_, 2), three(&table_, 3);
  EXPECT_TRUE(Gets(&one, kRow, kForShare));
  std::future<Status> waits = Waits(&two, kRow, kForUpdate, "a");
  EXPECT_TRUE(Gets(&three, kRow, kForShare));
  one.ReleaseAll();
  EXPECT_FALSE(Done(waits));
  three.ReleaseAll();
  EXPECT_TRUE(waits.get().ok());
}

TEST_F(LockTableTest, WhoLooksFirstIsRefused) {
  LockOwner one(&table_, 1), two(&table_, 2);
  EXPECT_TRUE(Gets(&one, kRow, kForUpdate, "a"));
  EXPECT_TRUE(Gets(&two, kRow, kForUpdate, "b"));
  std::future<Status> patient = Waits(&one, kRow, kForUpdate, "b");
  std::future<Status> looks = std::async(
      std::launch::async, [&] { return two.Acquire(kRow, "a", In(kForUpdate)).status(); });
  const Status refused = looks.get();
  EXPECT_EQ(refused.sqlstate(), sqlstate::kDeadlockDetected);
  EXPECT_EQ(table_.deadlocks(), 1u);
  EXPECT_FALSE(Done(patient));
  two.ReleaseAll();
  EXPECT_TRUE(patient.get().ok());
}

TEST_F(LockTableTest, SharersThatBothWantMoreAreADeadlock) {
  LockOwner one(&table_, 1), two(&table_, 2);
  EXPECT_TRUE(Gets(&one, kRow, kForShare));
  EXPECT_TRUE(Gets(&two, kRow, kForShare));
  std::future<Status> waits = Waits(&one, kRow, kForUpdate, "a");
  EXPECT_EQ(two.Acquire(kRow, "a", In(kForUpdate)).status().sqlstate(),
            sqlstate::kDeadlockDetected);
  two.ReleaseAll();
  EXPECT_TRUE(waits.get().ok());
}

// One waits behind a waiter who waits for it: it goes first.
TEST_F(LockTableTest, AQueueIsChangedWhereThatEndsADeadlock) {
  LockOwner one(&table_, 1), two(&table_, 2), three(&table_, 3);
  EXPECT_TRUE(Gets(&one, kTable, LockMode::kAccessShare, "a"));
  EXPECT_TRUE(Gets(&two, kTable, LockMode::kAccessExclusive, "b"));
  std::future<Status> exclusive = Waits(&three, kTable, LockMode::kAccessExclusive, "a");
  // It stands behind 3, who waits for 1, who will wait for it.
  std::future<Status> share = Waits(&two, kTable, LockMode::kAccessShare, "a");
  std::future<Status> looks = std::async(std::launch::async, [&] {
    return one.Acquire(kTable, "b", In(LockMode::kAccessShare)).status();
  });
  EXPECT_TRUE(share.get().ok());
  EXPECT_FALSE(Done(exclusive));
  two.ReleaseAll();
  EXPECT_TRUE(looks.get().ok());
  one.ReleaseAll();
  EXPECT_TRUE(exclusive.get().ok());
  EXPECT_EQ(table_.deadlocks(), 0u);
}

TEST_F(LockTableTest, ListsWhatUsersMayKnow) {
  LockOwner one(&table_, 1), two(&table_, 2);
  EXPECT_TRUE(Gets(&one, kTable, LockMode::kRowExclusive, "t"));
  EXPECT_TRUE(Gets(&one, kRow, kForUpdate, "r"));
  std::future<Status> waits = Waits(&two, kRow, kForShare, "r");
  const std::vector<LockInfo> list = table_.List();
  ASSERT_EQ(list.size(), 2u);
  for (const LockInfo& info : list) {
    EXPECT_EQ(info.granted, info.kind == kTable);
    EXPECT_EQ(info.name, info.granted ? "t" : "r");
    EXPECT_EQ(info.group, info.granted ? 1u : 2u);
  }
  EXPECT_EQ(table_.Blockers(2), std::vector<uint64_t>{1});
  EXPECT_TRUE(table_.Blockers(1).empty());
  one.ReleaseAll();
  EXPECT_TRUE(waits.get().ok());
  EXPECT_TRUE(table_.Blockers(2).empty());
}

// Random requests of many threads, with timeouts, savepoints and deadlocks: nobody shares what
// excludes others, nobody waits for ever, and nothing is left.
TEST_F(LockTableTest, ManyThreads) {
  constexpr int kThreads = 8, kNames = 6;
  std::atomic<int> exclusive[kNames] = {}, share[kNames] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int round = 0; round < 400; ++round) {
        LockOwner owner(&table_, static_cast<uint64_t>(t) + 1);
        int mine[kNames] = {};  // 1: share, 2: exclusive
        for (int step = 0; step < 4; ++step) {
          const int name = static_cast<int>(random() % kNames);
          const bool updates = random() % 2 == 0;
          LockOptions options = In(updates ? kForUpdate : kForShare);
          options.wait = random() % 4 == 0 ? LockWait::kSkip : LockWait::kBlock;
          if (random() % 4 == 0) options.timeout = milliseconds(1);
          options.deadlock_after = milliseconds(random() % 3);
          const size_t mark = owner.mark();
          Result<bool> got = owner.Acquire(kRow, std::to_string(name), options);
          if (!got.ok()) break;
          if (!*got) continue;
          if (updates && mine[name] != 2) {
            if (mine[name] == 1) share[name].fetch_sub(1);
            EXPECT_EQ(exclusive[name].fetch_add(1), 0);
            EXPECT_EQ(share[name].load(), 0);
            const bool back = random() % 4 == 0;
            if (back) {
              exclusive[name].fetch_sub(1);
              if (mine[name] == 1) share[name].fetch_add(1);
              owner.RollbackTo(mark);
            } else {
              mine[name] = 2;
            }
          } else if (mine[name] == 0) {
            share[name].fetch_add(1);
            EXPECT_EQ(exclusive[name].load(), 0);
            mine[name] = 1;
          }
        }
        for (int name = 0; name < kNames; ++name) {
          if (mine[name] == 1) share[name].fetch_sub(1);
          if (mine[name] == 2) exclusive[name].fetch_sub(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(table_.List().empty());
  LockOwner last(&table_, 99);
  for (int name = 0; name < kNames; ++name) {
    EXPECT_TRUE(Gets(&last, kRow, kForUpdate, std::to_string(name)));
  }
}

}  // namespace
}  // namespace cellar::kv
