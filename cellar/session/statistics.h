// What the planner knows of tables' values: gathered by one scan of a table, kept in the store and
// in memory, and renewed in the background when a tenth of a table has changed. Private to this
// layer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>

#include "cellar/base/cancel.h"
#include "cellar/catalog/catalog.h"
#include "cellar/catalog/statistics.h"
#include "cellar/table/access.h"

namespace cellar::session {

// Whether so many changed rows since statistics were gathered of `rows` call for new ones.
bool StatisticsAreStale(double rows, int64_t changes_since);

// Thread-safe.
class StatisticsService {
 public:
  using Pointer = std::shared_ptr<const catalog::TableStatistics>;

  // All outlive it.
  StatisticsService(kv::Engine* engine, catalog::Catalog* catalog, table::TableStore* tables)
      : engine_(engine), catalog_(catalog), tables_(tables) {}
  ~StatisticsService() { Stop(); }
  StatisticsService(const StatisticsService&) = delete;
  StatisticsService& operator=(const StatisticsService&) = delete;

  // What is known, as of the last Gather; null: nothing. Cost: one Get the first time. What does
  // not read is as if it were not there: ANALYZE writes it anew.
  Pointer Find(const catalog::TableDescriptor& table);
  // Scans the table's committed rows and keeps what it finds about `columns` (empty: all). Cost: a
  // scan of all these columns, about 20 ns a value of a sealed table.
  Status Gather(const catalog::TablePtr& table, std::span<const catalog::ColumnId> columns,
                bool automatic, const CancelToken* cancel);

  // The thread that renews.
  void Start();
  // Waits for it; it gives up what it is doing. No Start after it.
  void Stop();

 private:
  void Run();
  void LookAtAll();
  Result<bool> IsStale(const catalog::TableDescriptor& table, int64_t* changes);

  kv::Engine* engine_;
  catalog::Catalog* catalog_;
  table::TableStore* tables_;
  CancelToken cancel_;  // of the thread
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;                           // guarded by mutex_
  std::unordered_map<uint64_t, Pointer> known_;     // guarded by mutex_; by storage id; null: none
  std::unordered_map<uint64_t, int64_t> given_up_;  // of the thread: changes at the last failure
  std::thread thread_;
};

}  // namespace cellar::session
