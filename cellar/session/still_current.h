// For whoever executes a plan or reads a table without a portal, as
// Session::Impl::CheckStillCurrent. Private to this layer.
#pragma once

#include <span>

#include "cellar/codec/key.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

// After the first rows were read and before any is shown: a snapshot behind a rewrite's last commit
// would find the old indexes empty. Cost: no trip. Error: 40001.
inline Status CheckStillCurrent(const catalog::TableDescriptor& table,
                                kv::Transaction* transaction) {
  if (table.commit_version == catalog::kUncommitted) return Status();
  return transaction->Require(codec::DescriptorKey(table.id.value), table.commit_version);
}

inline Status CheckStillCurrent(const Session::Impl& s, std::span<const catalog::TablePtr> tables) {
  for (const catalog::TablePtr& table : tables) {
    // This transaction itself has changed it.
    if (s.transaction->editor != nullptr &&
        s.db->catalog->Current()->GetTable(table->id).get() != table.get()) {
      continue;
    }
    CELLAR_TRY(CheckStillCurrent(*table, s.transaction->kv.get()));
  }
  return Status();
}

}  // namespace cellar::session
