#include "cellar/session/read_counts.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <utility>

#include "cellar/base/memory_account.h"

namespace cellar::session {
namespace {

constexpr std::chrono::seconds kFlushEvery{10};

}  // namespace

void ReadCounts::Start() {
  // Signals are for the threads of whoever opened the store.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ReadCounts::Stop() {
  std::thread ending;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    ending = std::move(thread_);
  }
  changed_.notify_all();
  if (ending.joinable()) ending.join();
  // A store that takes no writes any more loses counts of reads and nothing else.
  (void)tables_->FlushReads().ok();
}

void ReadCounts::Run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kFlushEvery, [this] { return stopping_; });
    if (stopping_) return;
    lock.unlock();
    (void)CatchOutOfMemory([this] {
      return tables_->FlushReads();
    }).ok();  // what is not written down now is the next time
  }
}

}  // namespace cellar::session
