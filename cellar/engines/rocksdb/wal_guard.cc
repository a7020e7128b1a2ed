#include "cellar/engines/rocksdb/wal_guard.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "cellar/base/crc32c.h"
#include "cellar/base/sqlstate.h"

namespace cellar::engines {
namespace {

constexpr size_t kBlockBytes = 32 << 10;
constexpr size_t kHeaderBytes = 7;        // crc32c, u16 length, u8 type
constexpr size_t kBatchHeaderBytes = 12;  // u64 sequence, u32 count
enum RecordType : uint8_t { kZero = 0, kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

template <typename T>
T Fixed(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

struct Record {
  RecordType type;
  std::string_view payload;
};

// The record at `at` of a block, if a valid one lies there.
std::optional<Record> RecordAt(std::string_view block, size_t at) {
  if (at + kHeaderBytes > block.size()) return std::nullopt;
  const char* header = block.data() + at;
  const size_t length = Fixed<uint16_t>(header + 4);
  const auto type = static_cast<uint8_t>(header[6]);
  if (type < kFull || type > kLast || at + kHeaderBytes + length > block.size()) {
    return std::nullopt;
  }
  const uint32_t masked = Fixed<uint32_t>(header) - 0xA282EAD8u;
  const uint32_t expected = masked >> 17 | masked << 15;
  if (Crc32c({header + 6, length + 1}) != expected) return std::nullopt;
  return Record{static_cast<RecordType>(type), {header + kHeaderBytes, length}};
}

void NoteBatch(std::string_view start, LogExtent* extent) {
  if (start.size() < kBatchHeaderBytes) return;
  const uint64_t first = Fixed<uint64_t>(start.data());
  const uint32_t count = Fixed<uint32_t>(start.data() + 8);
  if (count != 0) extent->last_sequence = std::max(extent->last_sequence, first + count - 1);
}

}  // namespace

void ScanLog(std::string_view content, LogExtent* extent) {
  extent->bytes += content.size();
  std::string start;  // of a batch in fragments: its header suffices
  bool in_fragments = false;
  for (size_t block_at = 0; block_at < content.size(); block_at += kBlockBytes) {
    const std::string_view block = content.substr(block_at, kBlockBytes);
    size_t at = 0;
    while (at + kHeaderBytes <= block.size()) {
      // Zeroes fill the end of a block, and files that were lengthened before a crash.
      if (block.find_first_not_of('\0', at) == std::string_view::npos) break;
      const std::optional<Record> record = RecordAt(block, at);
      if (!record) {
        // The length may be what is damaged, so the next record may begin anywhere.
        in_fragments = false;
        ++at;
        continue;
      }
      at += kHeaderBytes + record->payload.size();
      switch (record->type) {
        case kFull: NoteBatch(record->payload, extent); break;
        case kFirst:
          start = record->payload.substr(0, kBatchHeaderBytes);
          in_fragments = true;
          break;
        case kMiddle:
        case kLast:
          start += record->payload.substr(
              0, kBatchHeaderBytes - std::min(start.size(), kBatchHeaderBytes));
          if (record->type == kMiddle) break;
          if (in_fragments) NoteBatch(start, extent);
          in_fragments = false;
          break;
        case kZero: break;
      }
    }
  }
}

Result<LogExtent> ScanLogs(const std::string& directory) {
  LogExtent extent;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() != ".log") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::string content;
    const uintmax_t size = entry.file_size(error);
    if (error) break;
    content.resize(size);
    file.read(content.data(), static_cast<std::streamsize>(size));
    if (!file && !file.eof()) {
      return SqlError(Code::kUnavailable, sqlstate::kIoError,
                      "could not read the log of the store");
    }
    content.resize(static_cast<size_t>(file.gcount()));
    ScanLog(content, &extent);
  }
  if (error) {
    return SqlError(Code::kUnavailable, sqlstate::kIoError,
                    "could not read the directory of the store: {}", error.message());
  }
  return extent;
}

}  // namespace cellar::engines
