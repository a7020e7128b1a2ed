#include "cellar/session/advisory_locks.h"

#include <cstring>

namespace cellar::session {

std::string AdvisoryKey::Name() const {
  std::string name(1 + sizeof database + sizeof value, pair ? 'p' : 'v');
  std::memcpy(name.data() + 1, &database, sizeof database);
  std::memcpy(name.data() + 1 + sizeof database, &value, sizeof value);
  return name;
}

AdvisoryKey AdvisoryKey::Of(std::string_view name) {
  AdvisoryKey key;
  if (name.size() != 1 + sizeof key.database + sizeof key.value) return key;
  key.pair = name[0] == 'p';
  std::memcpy(&key.database, name.data() + 1, sizeof key.database);
  std::memcpy(&key.value, name.data() + 1 + sizeof key.database, sizeof key.value);
  return key;
}

Result<bool> AdvisoryLocks::Acquire(const AdvisoryKey& key, const kv::LockOptions& options) {
  std::string name = key.Name();
  CELLAR_TRY_ASSIGN(const bool got, owner_.Acquire(kv::LockKind::kAdvisory, name, options));
  if (got) ++counts_[{std::move(name), options.mode}];
  return got;
}

bool AdvisoryLocks::Release(const AdvisoryKey& key, kv::LockMode mode) {
  const auto at = counts_.find({key.Name(), mode});
  if (at == counts_.end()) return false;
  if (--at->second == 0) {
    owner_.Release(kv::LockKind::kAdvisory, at->first.first, mode);
    counts_.erase(at);
  }
  return true;
}

void AdvisoryLocks::ReleaseAll() {
  owner_.ReleaseAll();
  counts_.clear();
}

}  // namespace cellar::session
