// Connections to a server, who we are there, and what is tried again.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cellar/client.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace cellar::rpc {

// Thread-safe.
class ChannelPool {
 public:
  ChannelPool(std::string target, ClientOptions options);
  ~ChannelPool();

  // Proves the password and keeps the token; nothing without one.
  Status Login();

  struct Call {
    bool safe_to_repeat = false;
    std::chrono::milliseconds timeout{0};
    const CancelToken* cancel = nullptr;
    // The call's answer to a failure that may have happened on the server: a commit whose answer is
    // lost is kCommitUnknown, a read is just unavailable.
    bool changes = false;
  };
  // Runs `send` with a context that has deadline and metadata, on the next channel; again after
  // failures that another try may mend, with growing pauses. `send` starts from nothing each time.
  Status Run(const Call& call,
             const std::function<grpc::Status(size_t channel, grpc::ClientContext*)>& send);
  // Which channel is next; and one try, for streams: the context as Run makes it.
  // A thread stays with one: its calls then meet the connection, and the server the thread that
  // reads it, in their caches.
  size_t Next() {
    static std::atomic<size_t> threads{0};
    thread_local const size_t own = threads.fetch_add(1, std::memory_order_relaxed);
    return own % channels_.size();
  }
  void Prepare(const Call& call, grpc::ClientContext* context);
  const std::vector<std::shared_ptr<grpc::Channel>>& channels() const { return channels_; }

 private:
  std::string token();

  const std::string target_;
  const ClientOptions options_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::atomic<uint32_t> next_{0};
  std::mutex mutex_;
  std::string token_;  // guarded by mutex_
};

// The server's own error if it sent one, else the transport's.
Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace cellar::rpc
