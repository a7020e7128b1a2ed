// What locks are: modes and which of them exclude each other, what is locked, who waits how.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/cancel.h"

namespace cellar::kv {

class ReadView;

// PostgreSQL's eight modes of tables, weakest first, and its conflicts (manual 13.3.1). Rows have
// four of them, so that one table of conflicts serves both (13.3.2).
enum class LockMode : uint8_t {
  kAccessShare,
  kRowShare,
  kRowExclusive,
  kShareUpdateExclusive,
  kShare,
  kShareRowExclusive,
  kExclusive,
  kAccessExclusive,
};
inline constexpr size_t kLockModes = 8;
inline constexpr LockMode kForKeyShare = LockMode::kAccessShare;
inline constexpr LockMode kForShare = LockMode::kRowShare;
inline constexpr LockMode kForNoKeyUpdate = LockMode::kExclusive;
inline constexpr LockMode kForUpdate = LockMode::kAccessExclusive;

// A set of modes.
using LockModes = uint8_t;
constexpr LockModes ModeBit(LockMode mode) {
  return static_cast<LockModes>(1u << static_cast<unsigned>(mode));
}
// The modes that `mode` must not meet in others' hands.
LockModes ConflictsOf(LockMode mode);
// As pg_locks shows it: "RowExclusiveLock".
std::string_view LockModeName(LockMode mode);

enum class LockKind : uint8_t {
  kRow,       // the key of a row that is there
  kKey,       // a unique key that is about to come or to go
  kTable,     // the user's name of a table
  kAdvisory,  // whatever users mean by it
};

enum class LockWait : uint8_t {
  kBlock,   // wait until the holders end (or timeout, deadlock, cancellation)
  kNoWait,  // answer 55P03 at once
  kSkip,    // leave out what is held by others
};

struct LockOptions {
  LockMode mode = kForUpdate;
  LockWait wait = LockWait::kBlock;
  std::chrono::milliseconds timeout{0};  // of kBlock; 0: none; passing it answers 55P03
  // How long a wait lasts before it is looked whether it would never end; 0: at once. Whoever finds
  // that is the one who is refused.
  std::chrono::milliseconds deadlock_after{0};
  const CancelToken* cancel = nullptr;  // borrowed; polled while waiting
  // False: waits until it could be had, and does not take it.
  bool keep = true;

  // Of keys (Transaction::Lock) alone:
  // READ COMMITTED: advance the snapshot whatever has been read before.
  bool move_over_reads = false;
  // The keys are locked as they come, not in their order.
  bool in_order = false;
  // Which keys have changed is told, and that is all: the snapshot stays, nothing is refused.
  bool only_tell = false;
  LockKind kind = LockKind::kRow;  // or kKey
  // The view that the keys were read at, or will be; null: the transaction's snapshot. Borrowed.
  const ReadView* view = nullptr;
};

// One lock that is held or waited for.
struct LockInfo {
  LockKind kind;
  LockMode mode;
  bool granted;
  uint64_t group;    // whose, see TransactionOptions::lock_group
  std::string name;  // of what; empty for rows and keys that are held
};

}  // namespace cellar::kv
