#include "cellar/session/session_registry.h"

#include <algorithm>
#include <utility>

namespace cellar::session {
namespace {

using std::chrono::milliseconds;

// How often one who waits for the end of a session looks at its own cancel token.
constexpr milliseconds kLookEvery{20};
constexpr milliseconds kLongestWait = std::chrono::hours(24 * 365);

// `text` up to kMaxShownQueryBytes, no character cut in two.
std::string_view Shown(std::string_view text) {
  if (text.size() <= kMaxShownQueryBytes) return text;
  size_t size = kMaxShownQueryBytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

}  // namespace

const char* SessionStateName(SessionState state) {
  switch (state) {
    case SessionState::kIdle: return "idle";
    case SessionState::kActive: return "active";
    case SessionState::kInTransaction: return "idle in transaction";
    case SessionState::kInFailedTransaction: return "idle in transaction (aborted)";
  }
  return "";
}

// ---- SessionEntry

SessionEntry::SessionEntry(int32_t pid, int32_t secret, SessionView view)
    : pid_(pid), secret_(secret), login_oid_(view.login_oid), view_(std::move(view)) {
  view_.pid = pid;
  changed_micros_.store(view_.changed_micros, std::memory_order_relaxed);
}

void SessionEntry::End(CancelToken::Reason why) {
  cancel_.Cancel(why);
  std::lock_guard lock(wake_mutex_);
  if (wake_) wake_();
}

void SessionEntry::SetWake(std::function<void()> wake) {
  std::lock_guard lock(wake_mutex_);
  wake_ = std::move(wake);
  // Who was ended before its door could be woken is woken now.
  if (wake_ && cancel_.ends_session()) wake_();
}

void SessionEntry::Work(std::string_view query, int64_t now_micros) {
  const std::string_view shown = Shown(query);
  // Only its session writes it, so that may look without the lock.
  if (view_.query != shown) {
    std::lock_guard lock(mutex_);
    view_.query.assign(shown);
  }
  query_micros_.store(now_micros, std::memory_order_relaxed);
  Rest(SessionState::kActive, now_micros);
}

void SessionEntry::Rest(SessionState state, int64_t now_micros) {
  state_.store(state, std::memory_order_relaxed);
  changed_micros_.store(now_micros, std::memory_order_relaxed);
}

void SessionEntry::SetUser(std::string_view user) {
  std::lock_guard lock(mutex_);
  view_.user.assign(user);
}

void SessionEntry::SetDatabase(uint64_t id, std::string_view name) {
  std::lock_guard lock(mutex_);
  view_.database_id = id;
  view_.database.assign(name);
}

void SessionEntry::SetApplicationName(std::string_view name) {
  std::lock_guard lock(mutex_);
  view_.application_name.assign(name);
}

SessionView SessionEntry::View() const {
  std::lock_guard lock(mutex_);
  SessionView view = view_;
  view.state = state_.load(std::memory_order_relaxed);
  view.query_micros = query_micros_.load(std::memory_order_relaxed);
  view.changed_micros = changed_micros_.load(std::memory_order_relaxed);
  view.transaction_micros = transaction_micros_.load(std::memory_order_relaxed);
  return view;
}

// ---- SessionRegistry

bool SessionRegistry::Add(EntryPtr entry) {
  std::lock_guard lock(mutex_);
  if (closed_.load()) return false;
  const int32_t pid = entry->pid();
  entries_[pid] = std::move(entry);
  return true;
}

void SessionRegistry::Remove(int32_t pid) {
  {
    std::lock_guard lock(mutex_);
    entries_.erase(pid);
  }
  removed_.notify_all();
}

SessionRegistry::EntryPtr SessionRegistry::Find(int32_t pid) const {
  std::lock_guard lock(mutex_);
  const auto at = entries_.find(pid);
  return at == entries_.end() ? nullptr : at->second;
}

std::vector<SessionRegistry::EntryPtr> SessionRegistry::All() const {
  std::vector<EntryPtr> all;
  std::lock_guard lock(mutex_);
  all.reserve(entries_.size());
  for (const auto& [pid, entry] : entries_) all.push_back(entry);
  return all;
}

std::vector<SessionView> SessionRegistry::Views() const {
  std::vector<SessionView> views;
  for (const EntryPtr& entry : All()) views.push_back(entry->View());
  return views;
}

size_t SessionRegistry::CountOfRole(uint32_t login_oid) const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [&](const auto& one) {
    return one.second->login_oid() == login_oid;
  }));
}

size_t SessionRegistry::CountInDatabase(uint64_t database_id, int32_t except) const {
  size_t count = 0;
  for (const EntryPtr& entry : All()) {
    if (entry->pid() == except || entry->pooled()) continue;
    count += entry->View().database_id == database_id ? 1 : 0;
  }
  return count;
}

bool SessionRegistry::Cancel(int32_t pid, int32_t secret) {
  const EntryPtr entry = Find(pid);
  if (entry == nullptr || entry->secret() != secret) return false;
  entry->cancel().Cancel(CancelToken::Reason::kUser);
  return true;
}

void SessionRegistry::EndAll() {
  {
    std::lock_guard lock(mutex_);
    closed_.store(true);
  }
  for (const EntryPtr& entry : All()) entry->End(CancelToken::Reason::kShutdown);
}

Result<bool> SessionRegistry::WaitUntilGone(int32_t pid, milliseconds limit,
                                            const CancelToken& cancel) const {
  const auto began = std::chrono::steady_clock::now();
  limit = std::min(limit, kLongestWait);
  std::unique_lock lock(mutex_);
  while (entries_.contains(pid)) {
    const auto waited = std::chrono::steady_clock::now() - began;
    if (waited >= limit) return false;
    CELLAR_TRY(cancel.Check());
    removed_.wait_for(lock, std::min<std::chrono::nanoseconds>(kLookEvery, limit - waited));
  }
  return true;
}

}  // namespace cellar::session
