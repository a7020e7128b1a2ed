// Random interleavings of transactions, run in step on an engine and on a model made of the memory
// engine: every read must agree, and what one commits the other must commit.
#include <gmock/gmock.h>

#include <random>

#include "cellar/kv/memory_engine.h"
#include "engines.h"

namespace cellar::kv {
namespace {

class History : public testing::TestWithParam<EngineKind> {
 protected:
  struct Twin {
    std::unique_ptr<Transaction> real, model;
    std::vector<std::pair<SavepointId, SavepointId>> savepoints;
  };

  int Random(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }
  std::string RandomKey() {
    std::string key = "k";
    for (int i = Random(3); i >= 0; --i) key.push_back("ab\0\xff"[Random(4)]);
    return key;
  }
  std::string RandomValue() {
    return std::string(static_cast<size_t>(Random(8) == 0 ? Random(3000) : Random(20)),
                       static_cast<char>('a' + Random(26)));
  }
  void Step(Twin* twin);
  void Start(Twin* twin);
  void Finish(Twin* twin);
  void SameOutcome(Twin* twin, const Status& real, const Status& model);

  std::mt19937 random_;
  TempDirectory directory_;
  std::unique_ptr<Engine> real_, model_;
  int commits_ = 0;
};
CELLAR_ENGINE_SUITE(History);

void History::Start(Twin* twin) {
  TransactionOptions options;
  // Under snapshot isolation, keys of files are validated as ranges and those of buffers as points,
  // and which of these is more careful depends; elsewhere the model never refuses what the engine
  // lets through.
  if (GetParam() != EngineKind::kRocksSpilling && Random(4) == 0) {
    options.isolation = Isolation::kSnapshot;
  }
  options.durable = false;
  options.bulk = Random(4) == 0;
  twin->real = real_->Begin(options);
  twin->model = model_->Begin(options);
  twin->savepoints.clear();
}

void History::Finish(Twin* twin) {
  if (Random(5) == 0) {
    twin->real->Abort();
    twin->model->Abort();
    return;
  }
  Result<uint64_t> real = twin->real->Commit();
  if (!real.ok()) {
    // Files of a spilled transaction may widen what conflicts, so only success must agree.
    ASSERT_THAT(CodeOf(real), testing::AnyOf(Code::kConflict, Code::kConstraint)) << ToText(real);
    if (CodeOf(real) == Code::kConstraint) {
      EXPECT_EQ(CodeOf(twin->model->Commit()), Code::kConstraint);
    }
    twin->model->Abort();
    return;
  }
  ASSERT_OK(twin->model->Commit());
  ++commits_;
}

// Engines may differ in when they find a bulk load's duplicate, but not in whether they do.
void History::SameOutcome(Twin* twin, const Status& real, const Status& model) {
  if (real.ok() && model.ok()) return;
  EXPECT_EQ(real.ok() ? CodeOf(twin->real->Commit()) : real.code(), Code::kConstraint);
  EXPECT_EQ(model.ok() ? CodeOf(twin->model->Commit()) : model.code(), Code::kConstraint);
  *twin = {};
}

void History::Step(Twin* twin) {
  if (twin->real == nullptr) return Start(twin);
  Transaction* real = twin->real.get();
  Transaction* model = twin->model.get();
  std::string start = RandomKey(), end = Random(5) == 0 ? "l" : RandomKey();
  switch (Random(12)) {
    case 0:
    case 1: {
      const ReadMode mode = Random(3) == 0 ? ReadMode::kSnapshot : ReadMode::kTracked;
      ASSERT_EQ(Get(real, start, mode), Get(model, start, mode));
      break;
    }
    case 2: {
      ScanOptions options;
      options.reverse = Random(2) == 0;
      options.limit = static_cast<uint64_t>(Random(3) == 0 ? 1 + Random(5) : 0);
      options.block_bytes = options.first_block_bytes = static_cast<size_t>(1 + Random(4000));
      ASSERT_EQ(ScanAll(real, start, end, options), ScanAll(model, start, end, options));
      break;
    }
    case 3:
    case 4:
    case 5: {
      const std::string value = RandomValue();
      SameOutcome(twin, real->Put(start, value), model->Put(start, value));
      break;
    }
    case 6: {
      SameOutcome(twin, real->Delete(start), model->Delete(start));
      break;
    }
    case 7:
      if (Random(4) == 0) {
        SameOutcome(twin, real->DeleteRange(start, end), model->DeleteRange(start, end));
      }
      break;
    case 8: {
      const std::string value = RandomValue();
      SameOutcome(twin, real->PutIfAbsent(start, value), model->PutIfAbsent(start, value));
      break;
    }
    case 9: twin->savepoints.emplace_back(real->Savepoint(), model->Savepoint()); break;
    case 10:
      if (!twin->savepoints.empty()) {
        const auto at =
            twin->savepoints.begin() + Random(static_cast<int>(twin->savepoints.size()));
        ASSERT_OK(real->RollbackTo(at->first));
        ASSERT_OK(model->RollbackTo(at->second));
        twin->savepoints.erase(at + 1, twin->savepoints.end());
      }
      break;
    case 11:
      Finish(twin);
      *twin = {};
      break;
  }
}

TEST_P(History, AgreesWithTheModel) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  random_.seed(seed);
  real_ = OpenEngine(GetParam(), directory_.store());
  model_ = MakeMemoryEngine();
  std::vector<Twin> twins(4);
  for (int step = 0; step < 6000 && !HasFailure(); ++step) {
    Step(&twins[static_cast<size_t>(Random(4))]);
    if (step % 1000 == 999 && GetParam() != EngineKind::kMemory && !HasFailure()) {
      // Everything committed survives closing, or compaction.
      for (Twin& twin : twins) twin = {};
      if (step % 2000 == 999) {
        real_ = nullptr;
        real_ = OpenEngine(GetParam(), directory_.store());
      } else {
        ASSERT_OK(real_->Compact("", ""));
      }
    }
  }
  EXPECT_GT(commits_, 50);
  EXPECT_TRUE(ScanAll(real_->Begin().get(), "k", "l") == ScanAll(model_->Begin().get(), "k", "l"));
}

}  // namespace
}  // namespace cellar::kv
