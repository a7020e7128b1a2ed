// Locks as users see them: names of what is locked, pg_locks, who waits for what.
#pragma once

#include <map>
#include <span>
#include <string>

#include "cellar/catalog/catalog.h"
#include "cellar/kv/lock_table.h"
#include "cellar/session/session_registry.h"
#include "cellar/session/system_rows.h"

namespace cellar::session {

// How a table, or another relation, is called in the lock table.
std::string TableLockName(catalog::TableId table);

// The rows of pg_locks: which of these relations, and which advisory locks, are held, and what is
// waited for. `database`: the oid of theirs.
void LockRows(kv::LockTable* locks, std::span<const catalog::TablePtr> relations, uint32_t database,
              SystemRow* row);

// Who waits for a lock, by pid.
std::map<int32_t, const WaitEvent*> LockWaits(kv::LockTable* locks);

}  // namespace cellar::session
