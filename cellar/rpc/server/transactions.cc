#include "cellar/rpc/server/transactions.h"

#include <vector>

#include "cellar/auth/scram_keys.h"
#include "cellar/base/sqlstate.h"

namespace cellar::rpc {
namespace {

constexpr std::chrono::milliseconds kSweepInterval{250};
constexpr size_t kNameBytes = 18;

}  // namespace

TransactionTable::TransactionTable(size_t limit)
    : limit_(limit), sweeper_([this] { SweepLoop(); }) {}

TransactionTable::~TransactionTable() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  sweeper_.join();
}

Result<std::string> TransactionTable::Add(const std::string& user,
                                          std::shared_ptr<TableStore> store,
                                          std::unique_ptr<TableTransaction> transaction,
                                          std::chrono::milliseconds idle) {
  auto open = std::make_shared<OpenTransaction>();
  open->store = std::move(store);
  open->transaction = std::move(transaction);
  open->last_used = std::chrono::steady_clock::now();
  open->user = user;
  open->idle = idle;
  std::string name = auth::Base64Encode(auth::RandomBytes(kNameBytes));
  std::lock_guard lock(mutex_);
  if (transactions_.size() >= limit_) {
    return SqlError(Code::kLimit, sqlstate::kTooManyConnections, "too many open transactions");
  }
  transactions_[name] = std::move(open);
  return name;
}

Result<std::shared_ptr<OpenTransaction>> TransactionTable::Find(const std::string& name,
                                                                const std::string& user) {
  std::lock_guard lock(mutex_);
  const auto at = transactions_.find(name);
  if (at != transactions_.end() && at->second->user == user) return at->second;
  return SqlError(Code::kNotFound, "25P01", "there is no such transaction")
      .WithHint("It has ended, perhaps because nothing used it for too long.");
}

void TransactionTable::Remove(const std::string& name) {
  std::lock_guard lock(mutex_);
  transactions_.erase(name);
}

void TransactionTable::SweepLoop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    wake_.wait_for(lock, kSweepInterval);
    const auto now = std::chrono::steady_clock::now();
    std::vector<std::shared_ptr<OpenTransaction>> idle;  // end after the lock is gone
    for (auto at = transactions_.begin(); at != transactions_.end();) {
      OpenTransaction& open = *at->second;
      std::unique_lock used(open.mutex, std::try_to_lock);
      if (used.owns_lock() && open.scans.empty() && now - open.last_used > open.idle) {
        idle.push_back(at->second);
        used.unlock();
        at = transactions_.erase(at);
      } else {
        ++at;
      }
    }
    lock.unlock();
    for (const auto& open : idle) {
      std::lock_guard used(open->mutex);
      open->transaction.reset();
    }
    idle.clear();
    lock.lock();
  }
}

}  // namespace cellar::rpc
