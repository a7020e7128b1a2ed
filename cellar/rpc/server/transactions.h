// Transactions that span calls.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "cellar/rpc/server/identity.h"
#include "cellar/table.h"

namespace grpc {
class ServerContext;
}

namespace cellar::rpc {

struct OpenTransaction {
  std::mutex mutex;  // one call at a time; guards what follows
  // Streams that read in it. They let go of the mutex while they wait for their clients, and end
  // before the transaction does.
  std::set<grpc::ServerContext*> scans;
  std::condition_variable scan_ended;
  bool ending = false;
  std::shared_ptr<TableStore> store;
  std::unique_ptr<TableTransaction> transaction;  // null: it has ended
  std::chrono::steady_clock::time_point last_used;

  std::string user;                // immutable
  std::chrono::milliseconds idle;  // immutable
};

// Thread-safe. A thread rolls back those that nobody uses.
class TransactionTable {
 public:
  explicit TransactionTable(size_t limit);
  ~TransactionTable();

  // Its name. Errors: 53300.
  Result<std::string> Add(const std::string& user, std::shared_ptr<TableStore> store,
                          std::unique_ptr<TableTransaction> transaction,
                          std::chrono::milliseconds idle);
  // Error: 25P01 when there is none of that name that is this user's.
  Result<std::shared_ptr<OpenTransaction>> Find(const std::string& name, const std::string& user);
  void Remove(const std::string& name);

 private:
  void SweepLoop();

  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;                                                 // guarded by mutex_
  std::map<std::string, std::shared_ptr<OpenTransaction>> transactions_;  // guarded by mutex_
  std::thread sweeper_;
};

}  // namespace cellar::rpc
