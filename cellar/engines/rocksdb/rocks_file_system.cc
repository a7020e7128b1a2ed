#include "cellar/engines/rocksdb/rocks_file_system.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstdio>

#include "cellar/base/sqlstate.h"

namespace cellar::engines {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using Fault = std::function<Status(FileCall, std::string_view path)>;

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

// As RocksDB's own file system answers.
IOStatus AsIoStatus(const Status& status) {
  if (status.ok()) return IOStatus::OK();
  if (status.sqlstate() != sqlstate::kDiskFull) {
    return IOStatus::IOError(std::string(status.message()));
  }
  IOStatus full = IOStatus::NoSpace("No space left on device");
  full.SetRetryable(true);
  return full;
}

// Asks the fault hook, if there is one, before it appends or syncs, and tells the gate, if it is a
// log, of every error before RocksDB hears of it.
class WatchedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WatchedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path, const Fault* fault,
              LogGate* gate)
      : FSWritableFileOwnerWrapper(std::move(file)),
        path_(std::move(path)),
        fault_(fault),
        gate_(gate) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    return Appended([&] { return target()->Append(data, options, context); });
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& info, IODebugContext* context) override {
    return Appended([&] { return target()->Append(data, options, info, context); });
  }
  // A part of appending.
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* context) override {
    return Told(LogGate::Side::kAppend, target()->RangeSync(offset, bytes, options, context));
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* context) override {
    return Told(LogGate::Side::kAppend, target()->Flush(options, context));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    return Synced([&] { return target()->Sync(options, context); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return Synced([&] { return target()->Fsync(options, context); });
  }

 private:
  template <typename F>
  IOStatus Appended(F&& call) {
    IOStatus status = AsIoStatus((*fault_) ? (*fault_)(FileCall::kAppend, path_) : Status());
    return Told(LogGate::Side::kAppend, status.ok() ? call() : std::move(status));
  }
  template <typename F>
  IOStatus Synced(F&& call) {
    IOStatus status = AsIoStatus((*fault_) ? (*fault_)(FileCall::kSync, path_) : Status());
    return Told(LogGate::Side::kSync, status.ok() ? call() : std::move(status));
  }
  IOStatus Told(LogGate::Side side, IOStatus status) {
    if (!status.ok() && gate_ != nullptr) gate_->Fail(side);
    return status;
  }

  const std::string path_;
  const Fault* const fault_;
  LogGate* const gate_;
};

// RocksDB's own notes. What cannot be written is left out: RocksDB's logger goes on with a writer
// that has failed, which its assertions forbid.
class NotesFile : public rocksdb::Logger {
 public:
  explicit NotesFile(int fd) : fd_(fd) {}
  ~NotesFile() override { ::close(fd_); }

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    const auto now = std::chrono::system_clock::now();
    const auto micros =
        std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
    std::string line =
        fmt::format("{:%Y/%m/%d-%H:%M:%S}.{:06} ",
                    fmt::localtime(std::chrono::system_clock::to_time_t(now)), micros % 1'000'000);
    const size_t start = line.size();
    line.resize(start + kMostBytes);
    const int size = std::vsnprintf(line.data() + start, kMostBytes, format, arguments);
    if (size < 0) return;
    line.resize(start + std::min(static_cast<size_t>(size), kMostBytes - 1));
    if (line.back() != '\n') line.push_back('\n');
    const ssize_t written = ::write(fd_, line.data(), line.size());
    if (written > 0) size_.fetch_add(static_cast<size_t>(written), std::memory_order_relaxed);
  }
  size_t GetLogFileSize() const override { return size_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kMostBytes = 8 << 10;  // of one note
  const int fd_;
  std::atomic<size_t> size_{0};
};

class PrivateFileSystem : public rocksdb::FileSystemWrapper {
 public:
  PrivateFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base, Fault fault, LogGate* gate)
      : FileSystemWrapper(base), fault_(std::move(fault)), gate_(gate) {}

  const char* Name() const override { return "CellarPrivateFileSystem"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* context) override {
    IOStatus status = target()->NewWritableFile(path, options, file, context);
    return Made(path, std::move(status), file);
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* context) override {
    IOStatus status = target()->ReopenWritableFile(path, options, file, context);
    return Made(path, std::move(status), file);
  }
  IOStatus NewLogger(const std::string& path, const IOOptions&,
                     std::shared_ptr<rocksdb::Logger>* logger, IODebugContext*) override {
    const int fd =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, kOwnerOnly);
    if (fd < 0) return IOStatus::IOError("could not make " + path);
    *logger = std::make_shared<NotesFile>(fd);
    return IOStatus::OK();
  }
  IOStatus LockFile(const std::string& path, const IOOptions& options, rocksdb::FileLock** lock,
                    IODebugContext* context) override {
    IOStatus status = target()->LockFile(path, options, lock, context);
    if (status.ok()) ::chmod(path.c_str(), kOwnerOnly);
    return status;
  }

 private:
  IOStatus Made(const std::string& path, IOStatus status,
                std::unique_ptr<rocksdb::FSWritableFile>* file) {
    if (!status.ok()) return status;
    ::chmod(path.c_str(), kOwnerOnly);
    const bool is_log = path.ends_with(".log");
    if (fault_ || is_log) {
      *file =
          std::make_unique<WatchedFile>(std::move(*file), path, &fault_, is_log ? gate_ : nullptr);
    }
    return status;
  }

  const Fault fault_;
  LogGate* const gate_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> MakePrivateEnv(
    std::function<Status(FileCall, std::string_view path)> fault, LogGate* gate) {
  return rocksdb::NewCompositeEnv(
      std::make_shared<PrivateFileSystem>(rocksdb::FileSystem::Default(), std::move(fault), gate));
}

}  // namespace cellar::engines
