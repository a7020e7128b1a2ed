// What writers leave for a job that works on their table: keys that are never used twice, and
// pauses (docs/decisions/0014-jobs.md, 0019-index-builds.md).
#pragma once

#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/codec/key.h"

namespace cellar::table {

class TableStore;

// Appends what follows the prefix of a log's range in the key of a new entry. No two of a process
// are the same, and none of two processes, but by a very rare chance.
void AppendLogName(std::string* key);

// Byte strings one behind the other: of each its length, four bytes, little-endian, and its bytes.
void AppendLogString(std::string_view bytes, std::string* value);
// Takes the next one off `*value`; borrowed. Errors: kCorruption.
Result<std::string_view> TakeLogString(std::string_view* value);

// For writers, before they note something: until a pause of the table ends, 100 ms at most.
void WaitForPause(const TableStore* store, codec::TableId storage);

// While it lives, writers of a table that a job works on wait, each for a short time at most.
class WriterPause {
 public:
  WriterPause(const TableStore* store, codec::TableId storage);
  ~WriterPause();
  WriterPause(const WriterPause&) = delete;
  WriterPause& operator=(const WriterPause&) = delete;

 private:
  const TableStore* store_;
  codec::TableId storage_;
};

}  // namespace cellar::table
