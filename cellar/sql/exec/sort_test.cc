#include "cellar/sql/exec/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cellar::sql::exec {
namespace {

class SortTest : public ::testing::TestWithParam<size_t> {
 protected:
  // Few values, so that stability shows, some of them NULL.
  void Fill(size_t rows, int64_t values) {
    column_.Reset(MakeType(TypeId::kInt8));
    column_.Resize(rows);
    std::mt19937_64 random(rows);
    for (size_t i = 0; i < rows; ++i) {
      column_.Set(i, Datum::Int(static_cast<int64_t>(random() % static_cast<uint64_t>(values))));
      if (random() % 10 == 0) column_.SetNull(i);
    }
    columns_ = {{&column_, column_.type(), true, false}};
    order_.resize(rows);
    for (uint32_t i = 0; i < rows; ++i) order_[i] = i;
    wanted_.assign(order_.begin(), order_.end());
    std::stable_sort(wanted_.begin(), wanted_.end(),
                     [this](uint32_t a, uint32_t b) { return CompareRows(columns_, a, b) < 0; });
  }

  ColumnVector column_;
  std::vector<SortColumn> columns_;
  CountedVector<uint32_t> order_;
  std::vector<uint32_t> wanted_;
};

TEST_P(SortTest, IsStable) {
  for (int64_t values : {1, 3, 1000000}) {
    Fill(GetParam(), values);
    ASSERT_TRUE(SortRows(columns_, nullptr, &order_).ok());
    EXPECT_TRUE(std::equal(order_.begin(), order_.end(), wanted_.begin(), wanted_.end()));
  }
}

TEST_P(SortTest, FindsTheFirst) {
  for (size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{5000}, GetParam() / 2, GetParam()}) {
    Fill(GetParam(), 1000);
    ASSERT_TRUE(SortFirstRows(columns_, count, nullptr, &order_).ok());
    ASSERT_EQ(order_.size(), std::min(count, wanted_.size()));
    EXPECT_TRUE(std::equal(order_.begin(), order_.end(), wanted_.begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, SortTest, ::testing::Values(0, 1, 2, 511, 512, 513, 4096, 70001));

TEST_P(SortTest, HearsTheToken) {
  Fill(GetParam() + 20000, 1000);
  CancelToken cancel;
  cancel.Cancel(CancelToken::Reason::kUser);
  EXPECT_EQ(SortRows(columns_, &cancel, &order_).code(), Code::kCancelled);
  EXPECT_EQ(SortFirstRows(columns_, 100, &cancel, &order_).code(), Code::kCancelled);
}

TEST(Poller, LooksOnceInSoManySteps) {
  static_assert(kStepsBetweenPolls <= 10000);
  CancelToken cancel;
  cancel.Cancel(CancelToken::Reason::kUser);
  Poller poller(&cancel);
  size_t steps = 1;
  while (poller.Step().ok()) ++steps;
  EXPECT_EQ(steps, kStepsBetweenPolls);
  EXPECT_FALSE(poller.Step(kStepsBetweenPolls).ok());
  EXPECT_TRUE(Poller(nullptr).Step(kStepsBetweenPolls).ok());
}

}  // namespace
}  // namespace cellar::sql::exec
