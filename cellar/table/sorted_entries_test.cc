// The sorting of index entries on their way into a file.
#include "cellar/table/sorted_entries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace cellar::table {
namespace {

using Entry = std::tuple<std::string, std::string, bool>;

std::vector<Entry> Merged(const std::vector<SortedPiece>& pieces) {
  std::vector<Entry> out;
  PieceMerge merge(pieces);
  while (merge.Next()) out.emplace_back(merge.key(), merge.value(), merge.asks());
  EXPECT_FALSE(merge.Next());
  return out;
}

TEST(SortedEntriesTest, PiecesOfAnyKeysMergeInOrder) {
  std::mt19937 random(7);
  const auto bytes = [&](size_t most, int values) {
    std::string out(random() % (most + 1), '\0');
    for (char& byte : out)
      byte = static_cast<char>(0xfe + random() % static_cast<unsigned>(values));
    return out;
  };
  for (const size_t count : {0, 1, 2, 255, 256, 5000}) {
    for (const size_t pieces : {1, 2, 3, 7, 64}) {
      std::vector<SortedPiece> sorted;
      std::vector<Entry> expected;
      for (size_t p = 0; p < pieces; ++p) {
        PieceSorter sorter;
        for (size_t i = 0; i < count / (p % 2 + 1); ++i) {
          // Equal first bytes, keys that begin others, and the greatest order of all.
          expected.emplace_back(bytes(12, 3), bytes(3, 200), random() % 2 == 0);
          const auto& [key, value, asks] = expected.back();
          sorter.Add(key, value, asks);
        }
        EXPECT_EQ(sorter.empty(), count / (p % 2 + 1) == 0);
        sorted.push_back(sorter.Take());
        EXPECT_TRUE(sorter.empty());
      }
      std::vector<Entry> found = Merged(sorted);
      EXPECT_TRUE(std::is_sorted(found.begin(), found.end(), [](const Entry& a, const Entry& b) {
        return std::get<0>(a) < std::get<0>(b);
      }));
      std::sort(found.begin(), found.end());
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(found, expected) << count << " entries, " << pieces << " pieces";
    }
  }
}

TEST(SortedEntriesTest, ASorterFillsUpAndStartsAnew) {
  PieceSorter sorter;
  const std::string key(1000, 'k');
  size_t entries = 0;
  while (!sorter.full()) {
    sorter.Add(key, "v", false);
    ++entries;
  }
  EXPECT_GT(entries, 400u);
  EXPECT_LT(entries, 600u);
  const SortedPiece full = sorter.Take();
  EXPECT_FALSE(sorter.full());
  sorter.Add("k", "w", true);
  std::vector<SortedPiece> last;
  last.push_back(sorter.Take());
  EXPECT_EQ(Merged(last), (std::vector<Entry>{{"k", "w", true}}));
}

SortedPiece PieceOf(const std::string& key) {
  PieceSorter sorter;
  sorter.Add(key, "", false);
  return sorter.Take();
}

TEST(SortedEntriesTest, APoolKeepsItsBoundBetweenThreads) {
  constexpr int kPieces = 200;
  constexpr size_t kMostBytes = 1000;
  PiecePool pool(kMostBytes);
  std::thread other([&] {
    for (int i = 0; i < kPieces && pool.AwaitRoom(); ++i) pool.Add(PieceOf(std::string(90, 'k')));
    pool.Leave();
  });
  size_t taken = 0, most = 0;
  while (taken < kPieces) {
    pool.AwaitFull();
    std::vector<SortedPiece> pieces = pool.TakeAll();
    taken += pieces.size();
    most = std::max(most, pieces.size());
    EXPECT_LE(pieces.size() * 90, kMostBytes + 90);
    pool.Release(std::move(pieces));
  }
  EXPECT_GT(most, 1u);
  other.join();
  EXPECT_FALSE(pool.full());
}

TEST(SortedEntriesTest, AStoppedPoolLetsGoOfWhoWaits) {
  PiecePool pool(1);
  pool.Add(PieceOf("k"));
  ASSERT_TRUE(pool.full());
  std::thread other([&] { EXPECT_FALSE(pool.AwaitRoom()); });
  pool.Stop();
  other.join();
}

}  // namespace
}  // namespace cellar::table
