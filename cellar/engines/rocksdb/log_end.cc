#include "cellar/engines/rocksdb/log_end.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "cellar/base/crc32c.h"
#include "cellar/base/sqlstate.h"

namespace cellar::engines {
namespace {

constexpr std::string_view kMagic = "cellarle";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kStopped = 1;     // flag
constexpr size_t kSlotBytes = 512;   // a sector: written whole or not at all
constexpr size_t kRecordBytes = 40;  // with the checksum
constexpr auto kInterval = std::chrono::seconds(1);

template <typename T>
void Append(T value, std::string* out) {
  for (int shift = 8 * (static_cast<int>(sizeof(T)) - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}
template <typename T>
T Take(std::string_view bytes, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(bytes[at + i]));
  }
  return value;
}

Status FileError(std::string_view what, int error) {
  return SqlError(Code::kUnavailable, error == ENOSPC ? sqlstate::kDiskFull : sqlstate::kIoError,
                  "could not {} the record of the log's end: {}", what,
                  std::generic_category().message(error));
}

}  // namespace

std::string EncodeLogEnd(const LogEnd& end) {
  std::string out(kMagic);
  Append(kVersion, &out);
  Append(end.stopped ? kStopped : uint32_t{0}, &out);
  Append(end.generation, &out);
  Append(end.change, &out);
  Append(uint32_t{0}, &out);
  Append(Crc32c(out), &out);
  return out;
}

Result<std::optional<LogEnd>> ParseLogEnd(std::string_view content) {
  std::optional<LogEnd> newest;
  for (size_t at = 0; at + kRecordBytes <= content.size(); at += kSlotBytes) {
    const std::string_view slot = content.substr(at, kRecordBytes);
    if (!slot.starts_with(kMagic)) continue;
    if (Take<uint32_t>(slot, kRecordBytes - 4) != Crc32c(slot.substr(0, kRecordBytes - 4)))
      continue;
    if (Take<uint32_t>(slot, 8) > kVersion) {
      return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                      "the record of the log's end is of version {}, newer than this program",
                      Take<uint32_t>(slot, 8))
          .WithHint("Open the store with the release that wrote it.");
    }
    LogEnd end;
    end.stopped = (Take<uint32_t>(slot, 12) & kStopped) != 0;
    end.generation = Take<uint64_t>(slot, 16);
    end.change = Take<uint64_t>(slot, 24);
    if (!newest || end.generation > newest->generation) newest = end;
  }
  return newest;
}

Result<std::optional<LogEnd>> ReadLogEnd(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kLogEndFile);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return std::optional<LogEnd>();
    return FileError("read", errno);
  }
  std::string content(2 * kSlotBytes, '\0');
  const ssize_t size = ::pread(fd, content.data(), content.size(), 0);
  const int error = errno;
  ::close(fd);
  if (size < 0) return FileError("read", error);
  if (size == 0) return std::optional<LogEnd>();
  content.resize(static_cast<size_t>(size));
  CELLAR_TRY_ASSIGN(std::optional<LogEnd> end, ParseLogEnd(content));
  if (!end) {
    return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                    "the record of the log's end is damaged: \"{}\"", path);
  }
  return end;
}

Result<std::unique_ptr<LogEndKeeper>> LogEndKeeper::Start(const std::string& directory,
                                                          LogEnd first) {
  const std::string path = fmt::format("{}/{}", directory, kLogEndFile);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return FileError("write", errno);
  std::unique_ptr<LogEndKeeper> keeper(new LogEndKeeper(fd));  // tidy: allow(new) private
  keeper->end_ = first;
  // Both slots, so that no older record outlives a damaged one.
  for (int slot = 0; slot < 2; ++slot) {
    ++keeper->end_.generation;
    CELLAR_TRY(keeper->Write(keeper->end_, /*sync=*/slot == 1));
  }
  keeper->written_ = first.change;
  keeper->thread_ = std::thread([self = keeper.get()] { self->Run(); });
  return keeper;
}

LogEndKeeper::~LogEndKeeper() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  ::close(fd_);
}

void LogEndKeeper::Note(uint64_t change) {
  std::lock_guard lock(mutex_);
  end_.change = std::max(end_.change, change);
}

void LogEndKeeper::Run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kInterval, [this] { return stopping_; })) {
    if (end_.change == written_) continue;
    ++end_.generation;
    // A failure is tried again: until then the older record holds.
    if (Write(end_, /*sync=*/false).ok()) written_ = end_.change;
  }
}

Status LogEndKeeper::Stop(uint64_t change) {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::lock_guard lock(mutex_);
  end_.change = change;
  end_.stopped = true;
  ++end_.generation;
  return Write(end_, /*sync=*/true);
}

Status LogEndKeeper::Write(const LogEnd& end, bool sync) {
  std::string slot = EncodeLogEnd(end);
  slot.resize(kSlotBytes);
  const auto at = static_cast<off_t>(end.generation % 2 * kSlotBytes);
  if (::pwrite(fd_, slot.data(), slot.size(), at) != static_cast<ssize_t>(slot.size()) ||
      (sync && ::fdatasync(fd_) != 0)) {
    return FileError("write", errno);
  }
  return {};
}

}  // namespace cellar::engines
