// Foreign keys whose check waits for the end of the transaction, or for SET CONSTRAINTS.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/catalog/catalog.h"
#include "cellar/sql/exec/executor.h"
#include "cellar/types/batch.h"

namespace cellar::sql {

namespace exec {
class Reference;
struct ExecState;
}  // namespace exec

// 23503 unless the referenced table has each of `keys`, values of the referencing columns without
// NULLs. Cost: one look-up a batch.
Status CheckReferences(const catalog::TablePtr& child, const catalog::ForeignKey& key,
                       const catalog::TablePtr& parent, const RowBatch& keys,
                       const ExecEnvironment& environment);

// What one transaction has still to look at: keys, each once, not rows. A key that was written is
// in order if the referenced table has it by then, or no referencing row any more; a key that went
// likewise. Where keys take an eighth of the memory that a statement may use, those in order are
// forgotten; if that is not enough, all make way for a look at every row of the referencing table.
// One thread at a time.
class DeferredChecks {
 public:
  DeferredChecks();
  ~DeferredChecks();

  // SET CONSTRAINTS; no oids: ALL.
  void Set(std::span<const uint32_t> oids, bool deferred);
  // As things stand, is the check of this key left for later?
  bool Defers(const catalog::ForeignKey& key) const;

  bool empty() const { return layers_.empty(); }
  // Is something of a foreign key to be looked at for rows of this table that have changed?
  bool Waits(catalog::TableId table) const;

  // Looks at all that waits, or only at what is not deferred any more (SET CONSTRAINTS ..
  // IMMEDIATE), and forgets it. Errors: 23503.
  Status Check(const ExecEnvironment& environment, bool all);

  // What a savepoint remembers.
  struct Mark {
    size_t layers = 0;
    std::optional<bool> all;
    std::map<uint32_t, bool> named;
    std::set<std::pair<size_t, uint32_t>> checked;
  };
  Mark Savepoint();
  void RollbackTo(const Mark& mark);
  // `outer` is that of the savepoint around the one released; null: there is none.
  void Release(const Mark* outer);

  // For this layer: keys without NULLs, of the referencing and of the referenced columns.
  Status AddWritten(const exec::Reference& reference, const RowBatch& keys, exec::ExecState* state);
  Status AddGone(const exec::Reference& reference, const RowBatch& keys, exec::ExecState* state);

 private:
  struct Pending;
  struct Layer;
  Pending& Find(const exec::Reference& reference, const exec::ExecState& state);
  static Status Bound(const exec::Reference& reference, const exec::ExecState& state,
                      Pending* pending);
  Status Look(const exec::Reference& reference, const Pending& pending,
              exec::ExecState* state) const;
  Status LookAtAll(const exec::Reference& reference, exec::ExecState* state) const;

  std::optional<bool> all_;
  std::map<uint32_t, bool> named_;
  std::vector<std::unique_ptr<Layer>> layers_;     // what was added since a savepoint, each
  size_t closed_ = 0;                              // layers that nothing is added to
  size_t savepoints_ = 0;                          // that may bring back what has been looked at
  std::set<std::pair<size_t, uint32_t>> checked_;  // layer and oid
  uint64_t order_ = 0;
};

}  // namespace cellar::sql
