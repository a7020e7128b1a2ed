#include "cellar/table/change_log.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>
#include <utility>

namespace cellar::table {
namespace {

constexpr std::chrono::milliseconds kLongestPause{100};
constexpr size_t kLengthBytes = 4;

struct Pauses {
  std::mutex mutex;
  std::condition_variable ended;
  std::multiset<std::pair<const TableStore*, uint64_t>> of;
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

void WaitForPause(const TableStore* store, codec::TableId storage) {
  Pauses& pauses = AllPauses();
  std::unique_lock lock(pauses.mutex);
  pauses.ended.wait_for(lock, kLongestPause, [&] {
    return !pauses.of.contains({store, storage.value});
  });
}

WriterPause::WriterPause(const TableStore* store, codec::TableId storage)
    : store_(store), storage_(storage) {
  std::lock_guard lock(AllPauses().mutex);
  AllPauses().of.insert({store_, storage_.value});
}

WriterPause::~WriterPause() {
  {
    std::lock_guard lock(AllPauses().mutex);
    AllPauses().of.extract({store_, storage_.value});
  }
  AllPauses().ended.notify_all();
}

}  // namespace cellar::table
