// Sessions that are told when their callers have gone, and statements that outlive their calls.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "cellar/base/status.h"
#include "cellar/session/session.h"

namespace grpc {
class ServerContext;
}

namespace cellar::rpc {

// One statement through the extended protocol, as a transaction of its own unless the session is in
// a block. A text of several statements is an error.
Status RunStatement(session::Session* session, const std::string& text, session::ResultSink* sink);

// Cancels the statements of sessions whose calls were cancelled or are past their deadline.
// Thread-safe.
class SessionWatcher {
 public:
  SessionWatcher();
  ~SessionWatcher();
  void Add(grpc::ServerContext* context, session::Session* session);
  void Remove(grpc::ServerContext* context, session::Session* session);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;                                                 // guarded by mutex_
  std::set<std::pair<grpc::ServerContext*, session::Session*>> watched_;  // guarded by mutex_
  std::thread thread_;
};

// A statement on a thread of its own. Thread-safe.
class BackgroundStatement {
 public:
  BackgroundStatement(std::unique_ptr<session::Session> session, std::string text);
  ~BackgroundStatement();  // cancels, waits

  // Whether it has ended, waiting for that a little.
  bool WaitFor(std::chrono::milliseconds time);
  Status status();  // once it has ended
  void Cancel(bool shutdown);

 private:
  std::mutex mutex_;
  std::condition_variable ended_signal_;
  bool ended_ = false;  // guarded by mutex_
  Status status_;       // guarded by mutex_
  std::unique_ptr<session::Session> session_;
  std::thread thread_;
};

// Those that calls have left behind. Thread-safe.
class BackgroundStatements {
 public:
  ~BackgroundStatements();
  // 53300 when too many are running.
  Status MakeRoom();
  void Keep(std::unique_ptr<BackgroundStatement> statement);

 private:
  std::mutex mutex_;
  std::list<std::unique_ptr<BackgroundStatement>> running_;  // guarded by mutex_
};

}  // namespace cellar::rpc
