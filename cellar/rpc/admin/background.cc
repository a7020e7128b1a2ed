#include "cellar/rpc/admin/background.h"

#include <grpcpp/grpcpp.h>

#include "cellar/base/sqlstate.h"
#include "cellar/session/discarding_sink.h"

namespace cellar::rpc {
namespace {

constexpr std::chrono::milliseconds kWatchInterval{20};
constexpr size_t kMaxRunning = 100;

}  // namespace

Status RunStatement(session::Session* session, const std::string& text, session::ResultSink* sink) {
  const auto run = [&]() -> Status {
    CELLAR_TRY(session->Parse("", text, {}, sink));
    CELLAR_TRY(session->Bind("", "", {}));
    bool returns_rows = false;
    CELLAR_TRY_ASSIGN(const std::vector<session::ResultColumn> columns,
                      session->DescribePortal("", &returns_rows));
    if (returns_rows) CELLAR_TRY(sink->OnColumns(columns));
    return session->ExecutePortal("", 0, true, sink).status();
  };
  Status status = run();
  if (!status.ok()) session->Fail();
  Status synced = session->Sync(sink);
  return status.ok() ? synced : status;
}

// ---- SessionWatcher ----

SessionWatcher::SessionWatcher() : thread_([this] { Loop(); }) {}

SessionWatcher::~SessionWatcher() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void SessionWatcher::Add(grpc::ServerContext* context, session::Session* session) {
  std::lock_guard lock(mutex_);
  watched_.emplace(context, session);
  if (watched_.size() == 1) wake_.notify_one();
}

void SessionWatcher::Remove(grpc::ServerContext* context, session::Session* session) {
  std::lock_guard lock(mutex_);
  watched_.erase({context, session});
}

void SessionWatcher::Loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (watched_.empty()) {
      wake_.wait(lock);
      continue;
    }
    wake_.wait_for(lock, kWatchInterval);
    for (const auto& [context, session] : watched_) {
      if (context->IsCancelled()) session->Cancel(false);
    }
  }
}

// ---- BackgroundStatement ----

BackgroundStatement::BackgroundStatement(std::unique_ptr<session::Session> session,
                                         std::string text)
    : session_(std::move(session)), thread_([this, text = std::move(text)] {
        session::DiscardingSink sink;
        Status status = RunStatement(session_.get(), text, &sink);
        std::lock_guard lock(mutex_);
        status_ = std::move(status);
        ended_ = true;
        session_.reset();  // its database may be dropped from here on
        ended_signal_.notify_all();
      }) {}

BackgroundStatement::~BackgroundStatement() {
  // Once may fall between two statements' beginnings.
  while (!WaitFor(kWatchInterval)) Cancel(true);
  thread_.join();
}

bool BackgroundStatement::WaitFor(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return ended_signal_.wait_for(lock, time, [this] { return ended_; });
}

Status BackgroundStatement::status() {
  std::lock_guard lock(mutex_);
  return status_;
}

void BackgroundStatement::Cancel(bool shutdown) {
  std::lock_guard lock(mutex_);
  if (session_ != nullptr) session_->Cancel(shutdown);
}

// ---- BackgroundStatements ----

BackgroundStatements::~BackgroundStatements() {
  for (const auto& statement : running_) statement->Cancel(true);
}

Status BackgroundStatements::MakeRoom() {
  std::lock_guard lock(mutex_);
  std::erase_if(running_,
                [](const auto& one) { return one->WaitFor(std::chrono::milliseconds(0)); });
  if (running_.size() < kMaxRunning) return Status();
  return SqlError(Code::kLimit, sqlstate::kTooManyConnections,
                  "too many statements are running that no call waits for");
}

void BackgroundStatements::Keep(std::unique_ptr<BackgroundStatement> statement) {
  std::lock_guard lock(mutex_);
  running_.push_back(std::move(statement));
}

}  // namespace cellar::rpc
