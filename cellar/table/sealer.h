// Packs rows of tables with layout `pages` into pages, a bounded step at a time.
//
// Each step is one commit that moves rows from the delta into pages and changes no meaning: users
// never conflict with it, and it gives way to them. A crash leaves a step done or not done.
#pragma once

#include <cstdint>
#include <string>

#include "cellar/base/status.h"
#include "cellar/kv/engine.h"
#include "cellar/table/access.h"

namespace cellar::table {

// Where a table's rows are, roughly, for deciding what to seal and for showing it.
struct StorageState {
  uint64_t delta_bytes = 0;  // on disk and in write buffers, of rows that are not in pages
  uint64_t page_bytes = 0;   // on disk
  uint64_t page_rows = 0;    // estimated
  uint64_t changes = 0;  // rows written to the delta by this process since they were last sealed
};

struct SealStep {
  uint64_t rows = 0;      // taken from the delta
  uint64_t pages = 0;     // written
  uint64_t bytes = 0;     // of those pages
  bool conflict = false;  // users changed these rows meanwhile: nothing was done, try again
  bool done = false;      // the end of the table was reached
};

// What pages are aimed at, encoded: small enough that a row by key costs little, large enough that
// what the engine does for each value is shared by many rows.
inline constexpr size_t kPageBytes = 32 << 10;

struct SealOptions {
  // False: only delta rows and the pages that they belong to. True: every page that is of an older
  // row format, or far from full, is packed anew as well.
  bool repack = false;
  uint64_t max_rows = 8192;        // of the delta, in one step
  uint64_t max_bytes = 4 << 20;    // read in one step
  size_t page_bytes = kPageBytes;  // what a page is aimed at, encoded
};

// Thread-safe; one step of a table runs at a time, others answer `conflict`.
class Sealer {
 public:
  // Both outlive it.
  Sealer(kv::Engine* engine, TableStore* store) : engine_(engine), store_(store) {}

  // Seals the next rows from *position on, which is advanced; start with "". Tables of another
  // layout are done at once. Errors: kConflict when the table's schema has changed.
  Result<SealStep> Step(const TablePtr& table, const SealOptions& options, std::string* position);

  // Steps until the end of the table; conflicts are retried, about 20 s long: then `conflict` is
  // set and part of the table may be sealed. `cancel` may be null.
  Result<SealStep> SealAll(const TablePtr& table, const SealOptions& options,
                           const CancelToken* cancel);

  // Cost: two property reads of the engine, and of tables of few pages a look at those.
  Result<StorageState> StateOf(const TablePtr& table);
  // StorageState::changes alone. Cost: a look into a map.
  uint64_t ChangesOf(const TablePtr& table);

 private:
  Status DropDeadRows(const TableDescriptor& table, PageDirectory* directory);

  kv::Engine* engine_;
  TableStore* store_;
};

}  // namespace cellar::table
