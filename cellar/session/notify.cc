// LISTEN and NOTIFY.
#include "cellar/session/session_internal.h"

namespace cellar::session {

namespace {
constexpr size_t kMaxQueued = 100000;  // per session; the oldest go when a client never reads
}

void NotificationHub::Listen(int32_t pid, const std::string& channel) {
  std::lock_guard lock(mutex_);
  listeners_[pid].insert(channel);
}

void NotificationHub::Unlisten(int32_t pid, const std::string& channel) {
  std::lock_guard lock(mutex_);
  if (channel.empty()) {
    listeners_.erase(pid);
    queues_.erase(pid);
    return;
  }
  auto at = listeners_.find(pid);
  if (at != listeners_.end()) at->second.erase(channel);
}

void NotificationHub::Send(const std::vector<Message>& messages) {
  std::lock_guard lock(mutex_);
  for (const Message& message : messages) {
    for (const auto& [pid, channels] : listeners_) {
      if (channels.count(message.channel) == 0) continue;
      std::vector<Message>& queue = queues_[pid];
      if (queue.size() >= kMaxQueued) queue.erase(queue.begin());
      queue.push_back(message);
    }
  }
}

std::vector<NotificationHub::Message> NotificationHub::Take(int32_t pid) {
  std::lock_guard lock(mutex_);
  auto at = queues_.find(pid);
  if (at == queues_.end()) return {};
  std::vector<Message> taken = std::move(at->second);
  queues_.erase(at);
  return taken;
}

bool NotificationHub::HasMessages(int32_t pid) {
  std::lock_guard lock(mutex_);
  auto at = queues_.find(pid);
  return at != queues_.end() && !at->second.empty();
}

bool NotificationHub::Listens(int32_t pid) {
  std::lock_guard lock(mutex_);
  return listeners_.count(pid) != 0;
}

}  // namespace cellar::session
