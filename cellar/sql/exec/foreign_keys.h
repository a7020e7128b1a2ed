// Foreign keys of a statement that changes rows: keys are gathered while it runs and checked at its
// end, as SQL wants of constraints that are not deferred. Private to this layer.
#pragma once

#include <memory>
#include <vector>

#include "cellar/sql/exec/key_table.h"
#include "cellar/sql/exec/operator.h"

namespace cellar::sql::exec {

// Living columns in ordinal order, hidden ones included.
std::vector<catalog::ColumnId> LivingColumns(const catalog::TableDescriptor& table);
std::vector<Type> LivingTypes(const catalog::TableDescriptor& table);
// "(1, abc, null)" of the visible columns, for error details.
std::string DescribeRow(const catalog::TableDescriptor& table, const RowBatch& rows, size_t row,
                        const FormatSettings& format);

// What is read meanwhile must still be so when the transaction commits, whatever its isolation.
class HeldReads {
 public:
  explicit HeldReads(ExecState* state)
      : transaction_(state->access().transaction()), before_(transaction_->HoldReads(true)) {}
  ~HeldReads() { transaction_->HoldReads(before_); }
  HeldReads(const HeldReads&) = delete;
  HeldReads& operator=(const HeldReads&) = delete;

 private:
  kv::Transaction* const transaction_;
  const bool before_;
};

// One foreign key between its two tables, as checks need it.
class Reference {
 public:
  // `key` is of `child` and lives as long.
  Reference(catalog::TablePtr child, const catalog::ForeignKey* key, catalog::TablePtr parent);

  const catalog::TablePtr& child() const { return child_; }
  const catalog::TablePtr& parent() const { return parent_; }
  const catalog::ForeignKey& key() const { return *key_; }
  // Of the key's columns among the living ones of each table, and their types.
  const std::vector<int>& child_columns() const { return child_columns_; }
  const std::vector<int>& parent_columns() const { return parent_columns_; }
  const std::vector<Type>& child_types() const { return child_types_; }
  const std::vector<Type>& parent_types() const { return parent_types_; }

  // What keeps rows that are referred to where they are. kLocks: whoever wants to delete one waits,
  // and others may change all but its key. kReads: this transaction fails if one is changed: for
  // checks of more rows than one wants to lock.
  enum class Hold : uint8_t { kLocks, kReads };
  // there[i]: the referenced table has row i of `keys`, values of the referencing columns without
  // NULLs, in the newest state under READ COMMITTED. Cost: one look-up a batch.
  Status FindParents(const RowBatch& keys, Hold hold, ExecState* state,
                     std::vector<uint8_t>* there) const;
  // The same of values of the referenced columns.
  Status StillThere(const RowBatch& keys, ExecState* state, std::vector<uint8_t>* there) const;

  // Referenced keys are gone; nobody comes to refer to one until this transaction ends. From here
  // on what is read is the newest state under READ COMMITTED.
  Status NoteGone(const RowBatch& keys, ExecState* state) const;

  enum class Keys : uint8_t { kOfParent, kOfChild };
  // Referencing rows: the child's living columns and the row reference, and which of `keys`, values
  // of the columns of `side`, each one has. With `one`, no more than one. Cost: a range of the
  // child's index a key, or all of its rows if no index begins with the columns.
  Status FindChildren(const RowBatch& keys, Keys side, bool one, ExecState* state, RowBatch* rows,
                      std::vector<uint32_t>* key_of) const;

  // The same of the parent's keys, with the rows locked: none of them is about to go.
  Status LockChildren(const RowBatch& keys, kv::LockMode mode, bool one, ExecState* state,
                      RowBatch* rows, std::vector<uint32_t>* key_of) const;

  // One referenced value as the child's column takes it. Errors: 22001, 22003.
  Result<Datum> ForChild(Datum value, size_t column, const FormatSettings& format,
                         Arena* arena) const;

  // 23503 of row `row` of `keys`, as above.
  Status NotPresent(const RowBatch& keys, size_t row, const FormatSettings& format) const;
  Status StillReferenced(const RowBatch& keys, size_t row, const FormatSettings& format) const;

 private:
  catalog::TablePtr child_, parent_;
  const catalog::ForeignKey* key_;
  std::vector<int> child_columns_, parent_columns_;
  std::vector<Type> child_types_, parent_types_;
  bool same_keys_ = true;  // values of both sides lie under the same keys of an index
  bool injective_ = true;  // no more than one of the child's values equals one of the parent's
};

// Keys that are gathered take this much memory before it is looked which of them are in order.
inline size_t MaxGatheredBytes(const ExecState& state) { return state.env.memory_limit_bytes / 8; }

// Referencing side: values written into referencing columns must exist.
class ReferenceChecks {
 public:
  ReferenceChecks(const catalog::TablePtr& table, const std::vector<ForeignKeyCheck>& checks,
                  ExecState* state);
  Status Add(const RowBatch& rows);  // living columns
  Status Finish();

 private:
  struct Link {
    Reference reference;
    KeyTable keys;
    size_t compact_at = 0;
  };

  ExecState& state_;
  std::vector<Link> links_;
};

// Referenced side: keys that go or change, and what that does to the rows that reference them.
class ReferencedChecks {
 public:
  ReferencedChecks(const catalog::TablePtr& table, ExecState* state);
  // No table references this one.
  bool empty() const { return links_.empty(); }
  void AddDeleted(const RowBatch& old_rows);
  void AddUpdated(const RowBatch& old_rows, const RowBatch& new_rows);
  // Errors: 23503. Cascades are carried out here, depth first.
  Status Finish(int depth = 0);

 private:
  struct Link {
    Reference reference;
    KeyTable gone;         // old keys
    RowBatch replacement;  // row i: what gone key i became; only for updates
    bool updates = false;
  };
  Status FinishLink(Link* link, int depth);
  // Writes children whose key columns have their new values; with `gone`, the keys that they had,
  // the columns of `set` get their defaults.
  Status UpdateChildren(const Reference& reference, const std::vector<catalog::ColumnId>& set,
                        const RowBatch* gone, std::span<const std::string_view> refs,
                        const RowBatch& old_rows, RowBatch* new_rows, int depth);

  ExecState& state_;
  std::vector<Link> links_;
};

// Of the keys, those that FindParents does not find.
Status KeepMissing(const Reference& reference, ExecState* state, KeyTable* keys);

}  // namespace cellar::sql::exec
