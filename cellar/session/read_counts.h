// The thread that writes down how many rows were read of each table. Private to this layer.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "cellar/table/access.h"

namespace cellar::session {

// Thread-safe. After a crash, the reads of the last ten seconds are not counted.
class ReadCounts {
 public:
  // Outlives it.
  explicit ReadCounts(table::TableStore* tables) : tables_(tables) {}
  ~ReadCounts() { Stop(); }
  ReadCounts(const ReadCounts&) = delete;
  ReadCounts& operator=(const ReadCounts&) = delete;

  void Start();
  // Writes down the rest; again at each further call. No Start after it.
  void Stop();

 private:
  void Run();

  table::TableStore* const tables_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cellar::session
