// What writers leave for a job that works on their table: keys that are never used twice, and
// pauses (docs/decisions/0014-jobs.md, 0019-index-builds.md).
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "cellar/base/status.h"
#include "cellar/codec/key.h"
#include "cellar/kv/engine.h"

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

// Reads a log that may be longer than memory. Which rows it names matters, not their order, but
// what goes must go before anything comes, as rows may have exchanged their keys: a log of several
// pieces is read twice.
class LogFollower {
 public:
  enum class Pass : uint8_t { kRemove, kAdd, kBoth };

  // Keeps what it needs of an entry's value for the next call of `work`.
  using Take = std::function<Status(std::string_view value)>;
  // Does what was taken, a piece of the log, and forgets it.
  using Work = std::function<Status(Pass pass)>;

  // Nothing may have been written in the log's range by this transaction. The entries are deleted:
  // those that come later have other keys. Memory: a piece is kPieceBytes of entries and the last
  // one.
  static Status Run(kv::Transaction* transaction, const codec::KeyRange& log, const Take& take,
                    const Work& work);
  static constexpr size_t kPieceBytes = size_t{8} << 20;
  // Tests only.
  static void SetPieceBytes(size_t bytes);
};

// While it lives, writers of a table that a job works on wait, each so long at most.
class WriterPause {
 public:
  WriterPause(const TableStore* store, codec::TableId storage, std::chrono::milliseconds longest);
  ~WriterPause();
  WriterPause(const WriterPause&) = delete;
  WriterPause& operator=(const WriterPause&) = delete;

 private:
  const TableStore* store_;
  codec::TableId storage_;
};

}  // namespace cellar::table
