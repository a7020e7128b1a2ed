// Counters: every commit adds, nobody conflicts, every snapshot sees the sums of its own state.
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <thread>

#include "cellar/kv/counters.h"
#include "engines.h"

namespace cellar::kv {
namespace {

const std::string kName("\0count-\x4D\x64", 9);

std::string NameOfCounter(int number) {
  std::string name("\0count-", 7);
  return name + static_cast<char>(0x16 + number);
}

class Counter : public EngineTest {
 protected:
  std::optional<CounterValues> Read(std::string_view name) {
    auto got = engine_->Begin()->GetCounter(name);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    return got.ok() ? *got : std::nullopt;
  }
  void Add(std::string_view name, int64_t first, int64_t second = 0) {
    auto transaction = engine_->Begin();
    ASSERT_OK(transaction->AddToCounter(name, {first, second}));
    ASSERT_OK(transaction->Commit().status());
  }
  void Create(std::string_view name) {
    auto transaction = engine_->Begin();
    ASSERT_OK(transaction->CreateCounter(name));
    ASSERT_OK(transaction->Commit().status());
  }
  void Reopen() {
    if (GetParam() == EngineKind::kMemory) return;
    ASSERT_OK(engine_->Close());
    engine_.reset();
    engine_ = OpenEngine(GetParam(), directory_.store());
  }
};
CELLAR_ENGINE_SUITE(Counter);

TEST_P(Counter, CountsOnceItExists) {
  Add(kName, 5);
  EXPECT_EQ(Read(kName), std::nullopt);
  Create(kName);
  EXPECT_EQ(Read(kName), CounterValues{});
  Add(kName, 5, -2);
  Create(kName);
  Add(kName, 2);
  EXPECT_EQ(Read(kName), (CounterValues{7, -2}));
  Reopen();
  EXPECT_EQ(Read(kName), (CounterValues{7, -2}));
  Add(kName, 1);
  EXPECT_EQ(Read(kName), (CounterValues{8, -2}));
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->DropCounter(kName));
  EXPECT_EQ(*transaction->GetCounter(kName), std::nullopt);
  ASSERT_OK(transaction->Commit().status());
  EXPECT_EQ(Read(kName), std::nullopt);
  Add(kName, 1);
  EXPECT_EQ(Read(kName), std::nullopt);
}

TEST_P(Counter, ATransactionSeesItsSnapshotAndItself) {
  Create(kName);
  Add(kName, 10);
  auto transaction = engine_->Begin();
  EXPECT_EQ(*transaction->GetCounter(kName), (CounterValues{10}));
  Add(kName, 1);
  EXPECT_EQ(*transaction->GetCounter(kName), (CounterValues{10}));
  ASSERT_OK(transaction->AddToCounter(kName, {100}));
  const SavepointId savepoint = transaction->Savepoint();
  ASSERT_OK(transaction->AddToCounter(kName, {1000}));
  ASSERT_OK(transaction->AddToCounter(kName, {1000}));
  ASSERT_OK(transaction->DropCounter(kName));
  ASSERT_OK(transaction->CreateCounter(kName));
  ASSERT_OK(transaction->AddToCounter(kName, {3}));
  EXPECT_EQ(*transaction->GetCounter(kName), (CounterValues{3}));
  ASSERT_OK(transaction->RollbackTo(savepoint));
  EXPECT_EQ(*transaction->GetCounter(kName), (CounterValues{110}));
  ASSERT_OK(transaction->AddToCounter(kName, {1}));
  ASSERT_OK(transaction->Commit().status());
  EXPECT_EQ(Read(kName), (CounterValues{112}));
}

TEST_P(Counter, AnAbortedTransactionAddsNothing) {
  Create(kName);
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->AddToCounter(kName, {100}));
  transaction->Abort();
  EXPECT_EQ(Read(kName), CounterValues{});
  TransactionOptions options;
  options.read_only = true;
  EXPECT_FALSE(engine_->Begin(options)->AddToCounter(kName, {1}).ok());
}

TEST_P(Counter, SpilledCommitsCountToo) {
  Create(kName);
  for (int round = 1; round <= 5; ++round) {
    auto transaction = engine_->Begin();
    for (int i = 0; i < 500; ++i) {
      ASSERT_OK(transaction->Put(Key(i + round * 1000), std::string(100, 'x')));
    }
    ASSERT_OK(transaction->AddToCounter(kName, {500, round}));
    ASSERT_OK(transaction->Commit().status());
    EXPECT_EQ(Read(kName), (CounterValues{500 * round, round * (round + 1) / 2}));
    if (round == 2) Add(kName, 0);
    if (round == 3) Reopen();
  }
  Reopen();
  EXPECT_EQ(Read(kName), (CounterValues{2500, 15}));
  // One record is left once an ordinary commit has come by.
  Add(kName, 1);
  EXPECT_EQ(ScanAll(engine_->Begin().get(), kName, CounterEnd(kName)).size(), 1u);
  EXPECT_EQ(Read(kName), (CounterValues{2501, 15}));
}

TEST_P(Counter, NeverDiffersFromTheKeysOfASnapshot) {
  // Each commit puts or deletes keys and counts them; any snapshot's keys are as many as it says.
  constexpr int kThreads = 3, kNames = 2, kKeys = 60;
  const int commits = 300;
  for (int name = 0; name < kNames; ++name) Create(NameOfCounter(name));
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread) + 1);
      for (int commit = 0; commit < commits; ++commit) {
        TransactionOptions options;
        options.durable = random() % 8 == 0;
        auto transaction = engine_->Begin(options);
        bool ok = true;
        const int writes = random() % 20 == 0 ? 200 : 3;
        for (int i = 0; i < writes && ok; ++i) {
          const int name = static_cast<int>(random() % kNames);
          const std::string key = std::string(1, static_cast<char>('a' + name)) +
                                  Key(static_cast<int>(random() % kKeys));
          PinnedValue value;
          Result<bool> found = transaction->Get(key, &value);
          ok = found.ok();
          if (!ok) break;
          ok = (*found ? transaction->Delete(key) : transaction->Put(key, "x")).ok() &&
               transaction->AddToCounter(NameOfCounter(name), {*found ? -1 : 1, 1}).ok();
        }
        if (!ok || !transaction->Commit().ok()) ++refused;
      }
    });
  }
  for (int look = 0; look < 200; ++look) {
    auto reader = engine_->Begin();
    for (int name = 0; name < kNames; ++name) {
      const std::string prefix(1, static_cast<char>('a' + name));
      const auto counted = reader->GetCounter(NameOfCounter(name));
      ASSERT_OK(counted.status());
      const std::string end(1, static_cast<char>('b' + name));
      EXPECT_EQ((**counted)[0], static_cast<int64_t>(ScanAll(reader.get(), prefix, end).size()));
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(refused, kThreads * commits);
  Reopen();
  auto reader = engine_->Begin();
  for (int name = 0; name < kNames; ++name) {
    const std::string prefix(1, static_cast<char>('a' + name)),
        end(1, static_cast<char>('b' + name));
    EXPECT_EQ((**reader->GetCounter(NameOfCounter(name)))[0],
              static_cast<int64_t>(ScanAll(reader.get(), prefix, end).size()));
  }
}

TEST(CounterRecords, KeysEncodeTheirVersion) {
  EXPECT_EQ(CounterKey("n", 0), "n\x15");
  EXPECT_EQ(CounterKey("n", 55), "n\x4C");
  EXPECT_EQ(CounterKey("n", 56), "n\x4D\x38");
  EXPECT_EQ(CounterKey("n", 256), std::string("n\x4E\x01\0\x01", 5));
  EXPECT_LT(CounterKey("n", UINT64_MAX), CounterEnd("n"));
}

TEST(CounterRecords, DamageIsAnError) {
  EXPECT_EQ(DecodeCounters("short").status().code(), Code::kCorruption);
  const CounterValues values{1, -2, INT64_MAX, INT64_MIN, 0, 7};
  EXPECT_EQ(*DecodeCounters(EncodeCounters(values)), values);
}

}  // namespace
}  // namespace cellar::kv
