// What every handler does around its work: who calls, how long it takes, errors as gRPC has them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "cellar/base/cancel.h"
#include "cellar/rpc/server/server.h"
#include "cellar/rpc/server/transactions.h"

namespace grpc {
class ServerContext;
class Status;
}  // namespace grpc

namespace cellar::rpc {

// What the transport and the metadata of a call say.
CallerClaims ClaimsOf(const grpc::ServerContext& context);
// A line in the server's log, without what was wrong.
void LogRefused(const CallerClaims& claims);
// Into trailing metadata, status details and a status. Calls that are past their deadline say
// DEADLINE_EXCEEDED.
grpc::Status ToGrpc(const Status& status, grpc::ServerContext* context);
// Until the call's deadline, at least a millisecond; 0: it has none.
std::chrono::milliseconds TimeLeft(const grpc::ServerContext& context);

// Tells tokens when their callers have gone. Thread-safe.
class CallWatcher {
 public:
  CallWatcher();
  ~CallWatcher();

  // While it lives the token is cancelled once the call is.
  class Watch {
   public:
    Watch(CallWatcher* watcher, grpc::ServerContext* context, CancelToken* token);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    CallWatcher* watcher_;
    std::pair<grpc::ServerContext*, CancelToken*> entry_;
  };

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;                                            // guarded by mutex_
  std::set<std::pair<grpc::ServerContext*, CancelToken*>> watched_;  // guarded by mutex_
  std::thread thread_;
};

// What the services share. Thread-safe.
class Calls {
 public:
  Calls(const ServerOptions& options, IdentityService* identities, StoreFactory factory);

  // Who calls. `database`: as if the caller had named this one; empty: what it says. Errors: those
  // of IdentityService::Identify.
  Result<Identity> Identify(const grpc::ServerContext& context, std::string database = "");
  struct Caller {
    Identity identity;
    std::shared_ptr<TableStore> store;
  };
  // The same, and the store as the caller sees it.
  Result<Caller> Admit(const grpc::ServerContext& context);

  const ServerOptions& options() const { return options_; }
  TransactionTable& transactions() { return transactions_; }
  CallWatcher& watcher() { return watcher_; }
  monitor::DoorMeters* meters() { return options_.meters; }

 private:
  const ServerOptions options_;
  IdentityService* const identities_;
  const StoreFactory factory_;
  std::mutex mutex_;
  // By user and database. Guarded by mutex_.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<TableStore>> stores_;
  TransactionTable transactions_;
  CallWatcher watcher_;
};

}  // namespace cellar::rpc
