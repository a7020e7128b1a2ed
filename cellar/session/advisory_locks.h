// Advisory locks of one session: those it holds until it lets go, and those of its transaction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "cellar/kv/engine.h"
#include "cellar/kv/lock_table.h"

namespace cellar::session {

// What users lock: one bigint or two integers, which are different things, in one database.
struct AdvisoryKey {
  uint32_t database = 0;  // oid
  bool pair = false;
  int64_t value = 0;  // of a pair, the first integer is the upper half

  std::string Name() const;
  // Of a name in LockInfo.
  static AdvisoryKey Of(std::string_view name);
};

// One thread at a time.
class AdvisoryLocks {
 public:
  // As transactions of the session do, it belongs to group `group`.
  AdvisoryLocks(kv::LockTable* table, uint64_t group) : owner_(table, group) {}

  // Taken as often as it is asked for: each has to be let go of. False only with kSkip. Errors: as
  // LockOwner::Acquire.
  Result<bool> Acquire(const AdvisoryKey& key, const kv::LockOptions& options);
  // False: it was not held.
  bool Release(const AdvisoryKey& key, kv::LockMode mode);
  void ReleaseAll();

 private:
  kv::LockOwner owner_;
  std::map<std::pair<std::string, kv::LockMode>, uint64_t> counts_;
};

}  // namespace cellar::session
