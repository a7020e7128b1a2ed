// For whoever executes a plan or reads a table without a portal, as
// Session::Impl::CheckStillCurrent. Private to this layer.
#pragma once

#include <span>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/session_internal.h"

namespace cellar::session {

// After the first rows were read and before any is shown: a snapshot behind a rewrite's last commit
// would find the old indexes empty. `view`: what the rows are read from; null: the transaction's
// snapshot. Cost: no trip, but one when the descriptor has changed since. Error: 40001.
inline Status CheckStillCurrent(const catalog::TableDescriptor& table, kv::Transaction* transaction,
                                const kv::ReadView* view) {
  if (table.commit_version == catalog::kUncommitted) return Status();
  Status status = transaction->Require(codec::DescriptorKey(table.id.value), table.commit_version);
  if (status.code() != Code::kConflict) return status;
  CELLAR_TRY_ASSIGN(const bool describes, catalog::DescribesSnapshot(table, transaction, view));
  if (describes) return Status();
  return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                  "could not serialize access due to a concurrent change of relation \"{}\"",
                  table.name);
}

inline Status CheckStillCurrent(const Session::Impl& s, std::span<const catalog::TablePtr> tables) {
  for (const catalog::TablePtr& table : tables) {
    // This transaction itself has changed it.
    if (s.transaction->editor != nullptr &&
        s.db->catalog->Current()->GetTable(table->id).get() != table.get()) {
      continue;
    }
    CELLAR_TRY(CheckStillCurrent(*table, s.transaction->kv.get(), nullptr));
  }
  return Status();
}

// As Session::Impl::NextRows, of an execution without a portal. *checked is false before the first
// batch.
inline Result<const RowBatch*> NextRows(const Session::Impl& s,
                                        std::span<const catalog::TablePtr> tables,
                                        sql::Execution* execution, bool* checked) {
  Result<const RowBatch*> next = execution->Next();
  if (next.ok() ? *checked : next.status().code() == Code::kConflict) return next;
  CELLAR_TRY(CheckStillCurrent(s, tables));
  *checked = true;
  return next;
}

}  // namespace cellar::session
