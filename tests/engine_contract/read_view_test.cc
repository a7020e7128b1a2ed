// ReadView: one snapshot and the own writes before it, for every kind of read.
#include <gmock/gmock.h>

#include <map>
#include <random>

#include "engines.h"

namespace cellar::kv {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr std::string_view kCounter{"\0count-views", 12};

class ReadViews : public EngineTest {
 protected:
  static std::optional<std::string> At(Transaction* transaction, std::string_view key,
                                       const ReadViewPtr& view) {
    PinnedValue value;
    const Result<bool> found = transaction->Get(key, &value, {ReadMode::kTracked, view.get()});
    if (!found.ok()) ADD_FAILURE() << found.status().ToString();
    return found.ok() && *found ? std::optional(std::string(value.view())) : std::nullopt;
  }
  static Pairs ScanAt(Transaction* transaction, const ReadViewPtr& view, bool reverse = false) {
    return ScanAll(transaction, "k", "l", {.reverse = reverse, .view = view.get()});
  }
  static bool Wrote(Transaction* transaction, std::string_view key, const ReadViewPtr& view) {
    const Result<bool> wrote = transaction->WroteSince(key, *view);
    if (!wrote.ok()) ADD_FAILURE() << wrote.status().ToString();
    return wrote.ok() && *wrote;
  }
};
CELLAR_ENGINE_SUITE(ReadViews);

TEST_P(ReadViews, LaterWritesDoNotShow) {
  Put(Key(1), "old");
  Put(Key(2), "old");
  auto transaction = engine_->Begin();
  ASSERT_OK(transaction->Put(Key(3), "before"));
  const ReadViewPtr view = transaction->OpenView();
  ASSERT_OK(transaction->Put(Key(1), "new"));
  ASSERT_OK(transaction->Delete(Key(2)));
  ASSERT_OK(transaction->Put(Key(3), "after"));
  ASSERT_OK(transaction->Put(Key(4), "new"));
  EXPECT_EQ(At(transaction.get(), Key(1), view), "old");
  EXPECT_EQ(At(transaction.get(), Key(2), view), "old");
  EXPECT_EQ(At(transaction.get(), Key(3), view), "before");
  EXPECT_EQ(At(transaction.get(), Key(4), view), std::nullopt);
  EXPECT_THAT(ScanAt(transaction.get(), view),
              ElementsAre(Pair(Key(1), "old"), Pair(Key(2), "old"), Pair(Key(3), "before")));
  EXPECT_THAT(ScanAll(transaction.get(), "k", "l"),
              ElementsAre(Pair(Key(1), "new"), Pair(Key(3), "after"), Pair(Key(4), "new")));
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(Wrote(transaction.get(), Key(i), view)) << i;
  EXPECT_FALSE(Wrote(transaction.get(), Key(5), view));
  // A view that is opened later sees what was written before it.
  const ReadViewPtr nested = transaction->OpenView();
  EXPECT_FALSE(Wrote(transaction.get(), Key(1), nested));
  ASSERT_OK(transaction->DeleteRange(Key(1), Key(4)));
  EXPECT_EQ(At(transaction.get(), Key(1), nested), "new");
  EXPECT_EQ(At(transaction.get(), Key(1), view), "old");
  EXPECT_TRUE(Wrote(transaction.get(), Key(1), nested));
  EXPECT_FALSE(Wrote(transaction.get(), Key(4), nested));
  ASSERT_OK(transaction->Commit());
}

TEST_P(ReadViews, CommitsOfOthersDoNotShowOnceItHasRead) {
  Put(Key(1), "old");
  auto transaction = engine_->Begin({.isolation = Isolation::kSnapshot});
  EXPECT_EQ(Get(transaction.get(), Key(9)), std::nullopt);
  const ReadViewPtr read = transaction->OpenView();
  EXPECT_EQ(At(transaction.get(), Key(1), read), "old");
  const ReadViewPtr unread = transaction->OpenView();
  Put(Key(1), "new");
  ASSERT_OK(transaction->RefreshSnapshot());
  EXPECT_EQ(At(transaction.get(), Key(1), read), "old");
  EXPECT_EQ(At(transaction.get(), Key(1), unread), "old");
  EXPECT_LT(transaction->snapshot_version(read.get()), transaction->snapshot_version());
  EXPECT_EQ(Get(transaction.get(), Key(1)), "new");
}

// READ COMMITTED: the statement's view stays, the locked row is read anew.
TEST_P(ReadViews, LockingShowsTheNewestOnlyOfWhatIsReadForIt) {
  Put(Key(1), "old");
  Put(Key(2), "old");
  auto transaction = engine_->Begin({.isolation = Isolation::kSnapshot});
  const ReadViewPtr view = transaction->OpenView();
  EXPECT_EQ(At(transaction.get(), Key(1), view), "old");
  ASSERT_OK(transaction->Put(Key(3), "own"));
  Put(Key(1), "new");
  Put(Key(2), "new");
  const LockOptions options{.move_over_reads = true, .view = view.get()};
  const std::string first = Key(1), second = Key(2);
  const std::string_view keys[] = {first};
  auto locked = transaction->Lock(keys, options);
  ASSERT_OK(locked);
  EXPECT_TRUE(locked->snapshot_moved);
  EXPECT_EQ(At(transaction.get(), Key(1), view), "old");
  const ReadViewPtr newest = transaction->OpenView(view.get());
  EXPECT_EQ(At(transaction.get(), Key(1), newest), "new");
  EXPECT_EQ(At(transaction.get(), Key(3), newest), std::nullopt) << "own writes are the view's";
  // The snapshot has it already; that the view has not is what counts.
  const std::string_view more[] = {second};
  locked = transaction->Lock(more, options);
  ASSERT_OK(locked);
  EXPECT_TRUE(locked->snapshot_moved);
}

// SERIALIZABLE: what was read is the same in the newer snapshot, so the view goes on in that.
TEST_P(ReadViews, LockingTakesTheViewAlongWhereNothingReadHasChanged) {
  Put(Key(1), "old");
  Put(Key(2), "old");
  auto transaction = engine_->Begin();
  const ReadViewPtr view = transaction->OpenView();
  EXPECT_EQ(At(transaction.get(), Key(2), view), "old");
  Put(Key(1), "new");
  const std::string key = Key(1);
  const std::string_view keys[] = {key};
  auto locked = transaction->Lock(keys, {.view = view.get()});
  ASSERT_OK(locked);
  EXPECT_TRUE(locked->snapshot_moved);
  EXPECT_EQ(At(transaction.get(), Key(1), view), "new");
  ASSERT_OK(transaction->Put(Key(1), "own"));
  ASSERT_OK(transaction->Commit());
}

TEST_P(ReadViews, WhatIsReadAtAnOldViewIsValidated) {
  Put(Key(1), "old");
  auto transaction = engine_->Begin();
  const ReadViewPtr view = transaction->OpenView();
  ASSERT_OK(transaction->Put(Key(1), "own"));
  EXPECT_EQ(At(transaction.get(), Key(1), view), "old") << "not the own write, so it is tracked";
  Put(Key(1), "rival");
  EXPECT_EQ(CodeOf(transaction->Commit()), Code::kConflict);
}

TEST_P(ReadViews, CountersAreThoseOfTheView) {
  {
    auto setup = engine_->Begin();
    ASSERT_OK(setup->CreateCounter(kCounter));
    ASSERT_OK(setup->AddToCounter(kCounter, {100}));
    ASSERT_OK(setup->Commit());
  }
  auto transaction = engine_->Begin();
  const auto count = [&](const ReadViewPtr& view) {
    return (**transaction->GetCounter(kCounter, view.get()))[0];
  };
  ASSERT_OK(transaction->AddToCounter(kCounter, {10}));
  ReadViewPtr first = transaction->OpenView();
  ASSERT_OK(transaction->AddToCounter(kCounter, {1}));
  ASSERT_OK(transaction->AddToCounter(kCounter, {1}));
  ReadViewPtr second = transaction->OpenView();
  ASSERT_OK(transaction->AddToCounter(kCounter, {5}));
  EXPECT_EQ(count(first), 110);
  EXPECT_EQ(count(second), 112);
  EXPECT_EQ(count(nullptr), 117);
  first.reset();
  EXPECT_EQ(count(second), 112);
  EXPECT_EQ(count(nullptr), 117);
  second.reset();
  EXPECT_EQ(count(nullptr), 117);
  ASSERT_OK(transaction->Commit());
  EXPECT_EQ((**engine_->Begin()->GetCounter(kCounter))[0], 117);
}

TEST_P(ReadViews, AnotherTransactionsViewIsRefused) {
  auto one = engine_->Begin();
  const ReadViewPtr view = one->OpenView();
  auto other = engine_->Begin();
  PinnedValue value;
  EXPECT_EQ(CodeOf(other->Get(Key(1), &value, {ReadMode::kTracked, view.get()})), Code::kInternal);
  one.reset();
  EXPECT_EQ(CodeOf(other->Scan("k", "l", {.view = view.get()})), Code::kInternal);
}

// Neither many savepoints nor many views keep the writes in memory, or make a run of each.
TEST_P(ReadViews, ManyViewsAndSavepointsSpillIntoFewRuns) {
  constexpr int kMany = 600;
  auto transaction = engine_->Begin();
  std::vector<SavepointId> savepoints;
  std::vector<ReadViewPtr> views;
  for (int i = 0; i < kMany; ++i) {
    savepoints.push_back(transaction->Savepoint());
    views.push_back(transaction->OpenView());
    ASSERT_OK(transaction->Put(Key(i % 50), std::to_string(i) + std::string(100, 'v')));
    if (i % 7 == 0) ASSERT_OK(transaction->Delete(Key((i + 1) % 50)));
  }
  if (GetParam() == EngineKind::kRocksSpilling) {
    EXPECT_GT(transaction->stats().spilled_bytes, 0u);
    EXPECT_LT(engine_->stats().spilled_runs, static_cast<uint64_t>(kMany) / 4);
  }
  const auto value_at = [&](int i, int key) -> std::optional<std::string> {
    const auto value = At(transaction.get(), Key(key), views[static_cast<size_t>(i)]);
    return value.has_value() ? std::optional(value->substr(0, value->size() - 100)) : value;
  };
  const auto expected = [&](int i, int key) -> std::optional<std::string> {
    for (int step = i - 1; step >= 0; --step) {
      if (step % 7 == 0 && (step + 1) % 50 == key) return std::nullopt;
      if (step % 50 == key) return std::to_string(step);
    }
    return std::nullopt;
  };
  for (int i = 0; i < kMany; i += 37) {
    for (int key = 0; key < 50; key += 3) EXPECT_EQ(value_at(i, key), expected(i, key)) << i;
  }
  views.resize(kMany / 2);
  ASSERT_OK(transaction->RollbackTo(savepoints[kMany / 2]));
  for (int key = 0; key < 50; ++key) {
    const auto value = Get(transaction.get(), Key(key));
    EXPECT_EQ(value.has_value() ? std::optional(value->substr(0, value->size() - 100)) : value,
              expected(kMany / 2, key));
  }
  views.clear();
  ASSERT_OK(transaction->Commit());
  for (int key = 0; key < 50; ++key) {
    const auto value = Read(Key(key));
    EXPECT_EQ(value.has_value() ? std::optional(value->substr(0, value->size() - 100)) : value,
              expected(kMany / 2, key));
  }
}

// Random writes, views, savepoints and reads beside a model; engines that spill do so all the time.
TEST_P(ReadViews, EveryReadIsThatOfAModel) {
  constexpr int kKeys = 60;
  struct Model {
    ReadViewPtr view;
    std::map<std::string, std::string> rows;
    std::map<std::string, bool> written;  // since the view was opened
    int64_t count = 0;
  };
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    auto transaction = engine_->Begin();
    ASSERT_OK(transaction->CreateCounter(kCounter));
    Model now;
    for (const auto& [key, value] : ScanAll(transaction.get(), "k", "l")) now.rows[key] = value;
    now.count = (**transaction->GetCounter(kCounter))[0];
    std::vector<Model> views;
    struct Saved {
      SavepointId id;
      Model now;
      std::vector<Model> views;  // as they were
    };
    std::vector<Saved> savepoints;
    const auto note = [&](const std::string& key) {
      for (Model& model : views) model.written[key] = true;
    };
    const auto check = [&](const Model& model) {
      for (int i = 0; i < 4; ++i) {
        const std::string key = Key(pick(kKeys));
        const auto row = model.rows.find(key);
        EXPECT_EQ(At(transaction.get(), key, model.view),
                  row == model.rows.end() ? std::nullopt : std::optional(row->second));
        if (model.view != nullptr) {
          EXPECT_EQ(Wrote(transaction.get(), key, model.view), model.written.contains(key));
        }
      }
      const bool reverse = pick(2) == 0;
      Pairs all(model.rows.begin(), model.rows.end());
      if (reverse) std::reverse(all.begin(), all.end());
      EXPECT_EQ(ScanAt(transaction.get(), model.view, reverse), all);
      EXPECT_EQ((**transaction->GetCounter(kCounter, model.view.get()))[0], model.count);
    };
    for (int step = 0; step < 400 && !HasFailure(); ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(step));
      const std::string key = Key(pick(kKeys));
      switch (pick(16)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4: {
          const std::string value = std::to_string(step) + std::string(pick(300), 'v');
          ASSERT_OK(transaction->Put(key, value));
          now.rows[key] = value;
          note(key);
          break;
        }
        case 5:
        case 6:
          ASSERT_OK(transaction->Delete(key));
          now.rows.erase(key);
          note(key);
          break;
        case 7: {
          const std::string end = Key(pick(kKeys));
          if (pick(3) != 0 || end <= key) break;
          ASSERT_OK(transaction->DeleteRange(key, end));
          now.rows.erase(now.rows.lower_bound(key), now.rows.lower_bound(end));
          for (int i = 0; i < kKeys; ++i) {
            if (Key(i) >= key && Key(i) < end) note(Key(i));
          }
          break;
        }
        case 8:
          ASSERT_OK(transaction->AddToCounter(kCounter, {1}));
          ++now.count;
          break;
        case 9:
        case 10: {
          Model model = now;
          model.view = transaction->OpenView();
          model.written.clear();
          views.push_back(std::move(model));
          break;
        }
        case 11:
          if (!views.empty()) views.erase(views.begin() + pick(static_cast<int>(views.size())));
          break;
        case 12: savepoints.push_back({transaction->Savepoint(), now, views}); break;
        case 13: {
          if (savepoints.empty() || pick(2) == 0) break;
          savepoints.resize(static_cast<size_t>(pick(static_cast<int>(savepoints.size()))) + 1);
          ASSERT_OK(transaction->RollbackTo(savepoints.back().id));
          now = savepoints.back().now;
          // Views that are younger than the savepoint saw what is gone.
          views = savepoints.back().views;
          break;
        }
        case 14:
          if (savepoints.empty() || pick(2) == 0) break;
          ASSERT_OK(transaction->ReleaseSavepoint(savepoints.back().id));
          savepoints.pop_back();
          break;
        default:
          check(now);
          if (!views.empty())
            check(views[static_cast<size_t>(pick(static_cast<int>(views.size())))]);
      }
    }
    views.clear();
    savepoints.clear();
    ASSERT_OK(transaction->Commit());
    EXPECT_EQ(ScanAll(engine_->Begin().get(), "k", "l"), Pairs(now.rows.begin(), now.rows.end()));
  }
}

}  // namespace
}  // namespace cellar::kv
