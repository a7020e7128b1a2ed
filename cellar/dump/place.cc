#include "cellar/dump/place.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "cellar/session/discarding_sink.h"

namespace cellar::dump {
namespace {

// Rows of a COPY on their way from the thread that reads them to the one that loads them.
class Pipe {
 public:
  // False: nobody takes any more.
  bool Put(std::string_view data) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() < kMostBytes || closed_; });
    if (closed_) return false;
    waiting_.append(data);
    changed_.notify_all();
    return true;
  }
  // The end of the rows; `whole` is false when some are missing.
  void End(bool whole) {
    std::lock_guard lock(mutex_);
    ended_ = true;
    whole_ = whole;
    changed_.notify_all();
  }
  Result<bool> Take(std::string* chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty() || ended_; });
    chunk->clear();
    chunk->swap(waiting_);
    changed_.notify_all();
    if (!chunk->empty()) return true;
    if (!whole_) return SqlError(Code::kCancelled, "57014", "the rows were not read to their end");
    return false;
  }
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr size_t kMostBytes = 1 << 20;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;
  bool ended_ = false, whole_ = true, closed_ = false;
};

class PipeSink : public session::DiscardingSink {
 public:
  explicit PipeSink(Pipe* pipe) : pipe_(pipe) {}
  Status OnCopyIn(int, bool) override { return Status(); }
  Result<bool> ReadCopyData(std::string* chunk) override { return pipe_->Take(chunk); }

 private:
  Pipe* const pipe_;
};

class StorePlace : public Place {
 public:
  explicit StorePlace(std::unique_ptr<session::Session> session) : session_(std::move(session)) {}
  ~StorePlace() override {
    if (copy_ != nullptr) static_cast<void>(Join(false).ok());
  }
  Result<std::vector<TextRow>> Query(const std::string& sql) override {
    if (copy_ != nullptr) static_cast<void>(Join(false).ok());
    return QueryTexts(session_.get(), sql);
  }
  Status BeginCopy(const std::string&, const std::string& sql) override {
    copy_ = std::make_unique<Copy>();
    copy_->thread = std::thread([this, sql] {
      PipeSink sink(&copy_->pipe);
      copy_->status = session_->ExecuteSimple(sql, &sink);
      copy_->pipe.Close();
    });
    return Status();
  }
  Status CopyData(std::string_view data) override {
    if (copy_->pipe.Put(data)) return Status();
    CELLAR_TRY(Join(true));
    return InternalError("COPY ended before its rows did");
  }
  Status EndCopy() override { return Join(true); }

 private:
  struct Copy {
    Pipe pipe;
    Status status;
    std::thread thread;
  };
  Status Join(bool whole) {
    copy_->pipe.End(whole);
    copy_->thread.join();
    const std::unique_ptr<Copy> copy = std::move(copy_);
    return copy->status;
  }

  const std::unique_ptr<session::Session> session_;
  std::unique_ptr<Copy> copy_;
};

}  // namespace

Result<std::unique_ptr<Place>> OpenPlace(session::Database* store, const std::string& database) {
  session::SessionOptions options;
  options.database = database;
  options.settings = {{"application_name", "cellar"}};
  CELLAR_TRY_ASSIGN(std::unique_ptr<session::Session> session,
                    session::Session::Open(store, options));
  return std::unique_ptr<Place>(std::make_unique<StorePlace>(std::move(session)));
}

}  // namespace cellar::dump
