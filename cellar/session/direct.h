// The way in for programs that hold the session themselves: typed values in, batches out, no names
// and no text on the way. The library (cellar/db.h) is made of this.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/session/session.h"
#include "cellar/types/batch.h"

namespace cellar::session {

// A statement parsed and planned once, run any number of times; one run at a time. Its session
// outlives it. The session's thread.
class DirectStatement {
 public:
  // One statement. types[i] is the type of $i+1, inferred where it is missing or kInvalid. Errors:
  // the statement's own, with position().
  static Result<std::unique_ptr<DirectStatement>> Prepare(Session* session, std::string_view text,
                                                          std::span<const Type> types);
  ~DirectStatement();

  // kInvalid: nothing says what the parameter is; it is read as text.
  std::span<const Type> parameter_types() const;
  const std::vector<ResultColumn>& columns() const;
  bool returns_rows() const;
  // The catalog has changed since it was planned: another preparation may give other columns.
  bool stale() const;

  // Grows with every committed change of the catalog.
  static uint64_t CommittedGeneration(Session* session);

  // Starts a run and ends the one before. The values' bytes are borrowed until the run ends.
  // A statement outside of a transaction block is a transaction of its own: one that changes rows
  // has been committed, and run again after conflicts, when this returns; a query's ends with its
  // rows. Errors leave the session as after any failed statement.
  Status Start(std::span<const Datum> parameters, ResultSink* sink);
  // The next batch; null at the end. Valid until the next call here; after other calls on the
  // session it may have moved: see current().
  Result<const RowBatch*> Next();
  // Where the batch that Next returned last is now. The place lives as long as the statement.
  const RowBatch* const* current() const;
  // Ends the run, perhaps before its last row. No run: nothing.
  Status End();
  // Ends the run as a request to cancel it does, with 57014, and fails the transaction block that
  // it is in. Does nothing when it has ended, or its changes have been committed already.
  Status Stop();
  // Forgets the run, whatever it was doing: for whoever caught an exception that came out of it.
  // The session is failed behind that.
  void Abandon();
  // No rows are left, or they have been read into memory: Next does not enter the session.
  bool buffered() const;
  // Rows inserted, updated or deleted by the last run, or returned so far.
  uint64_t rows_affected() const;

  // Before anything else runs in the session: outside of a transaction block, or within one too,
  // rows that open runs have not handed out yet are read into memory. Errors: 53200 when they are
  // too many, those of reading; the runs' own next calls of Next answer the same.
  static Status Settle(Session* session, bool within_blocks = false);

  struct Impl;

 private:
  DirectStatement();
  std::unique_ptr<Impl> impl_;
};

}  // namespace cellar::session
