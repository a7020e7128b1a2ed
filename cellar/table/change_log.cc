#include "cellar/table/change_log.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <utility>

namespace cellar::table {
namespace {

constexpr size_t kLengthBytes = 4;

std::atomic<size_t> piece_bytes{LogFollower::kPieceBytes};

struct Pauses {
  std::mutex mutex;
  std::condition_variable ended;
  // The table, and how long its writers wait.
  std::multimap<std::pair<const TableStore*, uint64_t>, std::chrono::milliseconds> of;
};
Pauses& AllPauses() {
  static Pauses pauses;
  return pauses;
}

}  // namespace

void AppendLogName(std::string* key) {
  static const uint64_t process = [] {
    std::random_device device;
    return (uint64_t{device()} << 31) | device();
  }();
  static std::atomic<uint64_t> next{1};
  codec::AppendKeyUint(process, key);
  codec::AppendKeyUint(next.fetch_add(1, std::memory_order_relaxed), key);
}

void AppendLogString(std::string_view bytes, std::string* value) {
  for (size_t i = 0; i < kLengthBytes; ++i) {
    value->push_back(static_cast<char>(bytes.size() >> 8 * i));
  }
  value->append(bytes);
}

Result<std::string_view> TakeLogString(std::string_view* value) {
  if (value->size() < kLengthBytes) return CorruptionError("a change log ends early");
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>((*value)[i])) << 8 * i;
  }
  value->remove_prefix(kLengthBytes);
  if (value->size() < length) return CorruptionError("a change log ends early");
  const std::string_view bytes = value->substr(0, length);
  value->remove_prefix(length);
  return bytes;
}

namespace {

// One reading of a log, piece by piece.
class LogCursor {
 public:
  static Result<LogCursor> Open(kv::Transaction* transaction, const codec::KeyRange& log) {
    kv::ScanOptions options;
    options.mode = kv::ReadMode::kSnapshot;
    options.fill_cache = false;
    CELLAR_TRY_ASSIGN(std::unique_ptr<kv::Cursor> cursor,
                      transaction->Scan(log.start, log.end, options));
    return LogCursor(std::move(cursor));
  }
  // False: it was the last piece. `visit`: of each entry.
  Result<bool> NextPiece(
      const std::function<Status(std::string_view key, std::string_view value)>& visit) {
    for (size_t bytes = 0; bytes < piece_bytes.load(); ++next_) {
      while (next_ == block_.size()) {
        next_ = 0;
        CELLAR_TRY_ASSIGN(const bool more, cursor_->NextBlock(&block_));
        if (!more) return false;
      }
      CELLAR_TRY(visit(block_.key(next_), block_.value(next_)));
      bytes += block_.value(next_).size();
    }
    return true;
  }

 private:
  explicit LogCursor(std::unique_ptr<kv::Cursor> cursor) : cursor_(std::move(cursor)) {}

  std::unique_ptr<kv::Cursor> cursor_;
  kv::Block block_;
  size_t next_ = 0;
};

}  // namespace

Status LogFollower::Run(kv::Transaction* transaction, const codec::KeyRange& log, const Take& take,
                        const Work& work) {
  // Both show the log as it is before anything is deleted.
  CELLAR_TRY_ASSIGN(LogCursor first, LogCursor::Open(transaction, log));
  CELLAR_TRY_ASSIGN(LogCursor second, LogCursor::Open(transaction, log));
  for (bool more = true, whole = true; more; whole = false) {
    CELLAR_TRY_ASSIGN(more, first.NextPiece([&](std::string_view key, std::string_view value) {
      Status status = take(value);
      return status.ok() ? transaction->Delete(key) : status;
    }));
    if (whole && !more) return work(Pass::kBoth);
    CELLAR_TRY(work(Pass::kRemove));
  }
  for (bool more = true; more;) {
    CELLAR_TRY_ASSIGN(more, second.NextPiece([&](std::string_view, std::string_view value) {
      return take(value);
    }));
    CELLAR_TRY(work(Pass::kAdd));
  }
  return Status();
}

void LogFollower::SetPieceBytes(size_t bytes) { piece_bytes.store(bytes); }

void WaitForPause(const TableStore* store, codec::TableId storage) {
  Pauses& pauses = AllPauses();
  std::unique_lock lock(pauses.mutex);
  const std::pair<const TableStore*, uint64_t> table{store, storage.value};
  const auto at = pauses.of.find(table);
  if (at == pauses.of.end()) return;
  pauses.ended.wait_for(lock, at->second, [&] { return !pauses.of.contains(table); });
}

WriterPause::WriterPause(const TableStore* store, codec::TableId storage,
                         std::chrono::milliseconds longest)
    : store_(store), storage_(storage) {
  std::lock_guard lock(AllPauses().mutex);
  AllPauses().of.insert({{store_, storage_.value}, longest});
}

WriterPause::~WriterPause() {
  {
    std::lock_guard lock(AllPauses().mutex);
    AllPauses().of.extract({store_, storage_.value});
  }
  AllPauses().ended.notify_all();
}

}  // namespace cellar::table
