// Is what the store holds what it should hold? Check finds, Repair mends.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cellar/base/cancel.h"
#include "cellar/base/status.h"
#include "cellar/catalog/catalog.h"
#include "cellar/kv/engine.h"

namespace cellar::table {

enum class CheckMode : uint8_t {
  // Sums first; an index whose sums differ is then compared one by one.
  kAuto,
  // Rows are decoded and each index's entries, as rows would have them and as they are, are counted
  // and summed by a 64-bit hash. Reads everything once and in order. Names an index that differs,
  // not the entries.
  kFast,
  // Each row's entries are looked up, and each entry's row: a random read per entry.
  kFull,
};

// One finding, in words ("index t_a_idx of table t: entry without a row, key (1)").
struct CheckFinding {
  enum class About : uint8_t {
    kOther,
    kRows,      // rows or pages: which rows the table has, or what they hold, is not certain
    kLoneEntry  // an entry without a row, which may be the last copy of what it holds
  };
  std::string table, index;  // names; may be empty
  std::string text;
  About about = About::kOther;
};

struct CheckOptions {
  CheckMode mode = CheckMode::kAuto;
  const CancelToken* cancel = nullptr;
  // Of tables: what jobs have written, so that it need belong to no index.
  std::vector<codec::KeyRange> of_jobs;
};

// Compares every index of a table with its rows, both ways, at the transaction's snapshot, and
// looks for keys of the table that no index of it owns. *rows: how many it has. All modes agree on
// whether there is a finding. Errors: those of the engine; damage is a finding.
Status CheckTable(const catalog::TablePtr& table, kv::Transaction* transaction,
                  const CheckOptions& options, uint64_t* rows, std::vector<CheckFinding>* findings);

// Keys whose table the catalog does not know, living or dropped, one finding a table id, and keys
// that do not read. Cost: a seek per table id; with CheckMode::kFull every key is decoded.
Status CheckKeys(const catalog::CatalogSnapshot& catalog, kv::Transaction* transaction,
                 const CheckOptions& options, std::vector<CheckFinding>* findings);

struct CheckTotals {
  uint64_t tables = 0, rows = 0;
};

// The catalog's records, these tables, and CheckKeys. In the findings, `table` is a path.
Status CheckStore(const catalog::CatalogSnapshot& catalog,
                  const std::vector<catalog::TablePtr>& tables, kv::Transaction* transaction,
                  const CheckOptions& options, CheckTotals* totals,
                  std::vector<CheckFinding>* findings);

struct RepairReport {
  std::vector<std::string> done;  // in words ("index t_a_idx of table t: rebuilt, 1000 entries")
  std::vector<std::string> left;  // what is wrong still, and why
};

// What of the catalog's records can be mended (catalog::RepairRecords); keys of tables that the
// catalog does not know are told, and stay.
Status RepairRecords(const catalog::CatalogSnapshot& catalog, kv::Transaction* transaction,
                     const CheckOptions& options, RepairReport* report);

// Rebuilds each secondary index that CheckTable finds anything about, and removes keys of the table
// that no index owns; what is dropped so is in `done` before. Rows are never changed, and nothing
// that could be a row is removed. A table whose rows or pages have findings is left as it is: its
// indexes may hold what they have lost. All in the transaction, whose commit makes it so.
Status RepairTable(const catalog::TablePtr& table, kv::Transaction* transaction,
                   const CheckOptions& options, RepairReport* report);

}  // namespace cellar::table
