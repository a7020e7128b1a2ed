// Fills an index while its table is in use (docs/decisions/0019-index-builds.md).
//
// Writers of the table do not touch an index that is being built: they note in its log, under the
// index id behind its own, which rows they changed and which entries these had. Only the job
// writes the index, step by step, each from one snapshot.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "cellar/table/access.h"

namespace cellar::table {

struct AccessContext;
struct IndexCodec;

// All outlive the call; `cancel` may be null.
struct BackfillContext {
  kv::Transaction* transaction = nullptr;
  const CancelToken* cancel = nullptr;
  TableStore* store = nullptr;
  // Whose transaction it is. Not null: a second thread may read beside this one while BuildSome
  // runs.
  kv::Engine* engine = nullptr;
};

// Ids that an index takes while it is being built: its own, and its log's.
inline constexpr uint32_t kIndexIdsOfBuild = 2;
inline bool IsBeingBuilt(const catalog::IndexDescriptor& index) {
  return index.state == catalog::IndexState::kWriteOnly;
}

// What the index holds, and how far it is.
struct BuildProgress {
  // Of the first row that has not been read, the key without the prefix of the primary index.
  std::string position;
  bool done = false;  // the end of the table was reached
  int64_t entries = 0;
  uint64_t rows = 0;     // read in all
  uint64_t changes = 0;  // rows that the last step found in the log
};

// One step: what the log says is brought into the index, and the next rows behind the position,
// about `max_rows`, get their entries. Then, if it commits, the index is what the rows up to the
// position ask for, as they are in the transaction's snapshot. Give it a transaction that depends
// on the descriptor, of isolation kSnapshot, with bulk and unmarked_writes: nobody else writes what
// it writes. Calls `pace`, if any, with the rows read so far, now and then.
//
// With a second thread (BackfillContext::engine) some rows are read in a snapshot that is a little
// younger, and the claim above holds for them as soon as the next step has followed the log.
//
// Errors: 23505 for a duplicate that is there in the snapshot, here or by BuildDuplicate; with a
// second thread it may be none, two rows having had the key one after the other: without one the
// step says what is true.
Status BuildSome(const BackfillContext& in, const TablePtr& table, IndexId index, uint64_t max_rows,
                 const std::function<Status(uint64_t rows)>& pace, BuildProgress* progress);

// Tests only: rows from which on a second thread is worth its while.
inline constexpr uint64_t kRowsForTwoThreads = 100000;
void SetRowsForTwoThreads(uint64_t rows);

// The error for a duplicate that the step's commit has met (kv::Transaction::duplicate_key).
Status BuildDuplicate(const TableDescriptor& table, IndexId index, std::string_view key);

// After a step in the same transaction (without unmarked_writes) that has reached the end: empties
// the log, and makes the commit fail if a writer has come meanwhile. Errors: kCorruption if the
// index has another number of entries than the table has rows.
Status FinishBuild(const BackfillContext& in, const TableDescriptor& table, IndexId index,
                   const BuildProgress& progress);

// Where a build writes, its log among it.
codec::KeyRange RangeOfBuild(const TableDescriptor& table, IndexId index);
// Deletes what a build has written, and its log. The table may not know the index any more.
Status ClearBuild(const TableDescriptor& table, IndexId index, kv::Transaction* transaction);

// What a commit changes of one index that is being built.
class BuildNotes {
 public:
  // `key`: of the entry that the row had; empty: none.
  void Add(const IndexCodec& index, std::string_view ref, std::string_view key);
  // Waits for a pause to end.
  Status Write(AccessContext* context, const TableDescriptor& table, const IndexCodec& index);

 private:
  std::string value_;
};

}  // namespace cellar::table
