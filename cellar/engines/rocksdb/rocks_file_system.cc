#include "cellar/engines/rocksdb/rocks_file_system.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <optional>

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

// Asks the fault hook before it appends or syncs.
class FaultyFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string path, const Fault* fault)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), fault_(fault) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    IOStatus status = AsIoStatus((*fault_)(FileCall::kAppend, path_));
    return status.ok() ? target()->Append(data, options, context) : status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&, IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* context) override {
    IOStatus status = AsIoStatus((*fault_)(FileCall::kAppend, path_));
    return status.ok() ? target()->PositionedAppend(data, offset, options, context) : status;
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    IOStatus status = AsIoStatus((*fault_)(FileCall::kSync, path_));
    return status.ok() ? target()->Sync(options, context) : status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    IOStatus status = AsIoStatus((*fault_)(FileCall::kSync, path_));
    return status.ok() ? target()->Fsync(options, context) : status;
  }

 private:
  const std::string path_;
  const Fault* const fault_;
};

// A log of the store. It tells the gate of every error before RocksDB hears of it.
//
// RocksDB takes another log when it resumes only if there is something in the memtable that goes
// with it, and else writes on into the one that failed. So a log holds back its first record when
// there is no room for it, and says that all is well: then that record is in the memtable, and
// whoever wants it on disk hears of the full disk from the sync. Nothing else is written, to this
// log or another, before what is held is (LogGate::holding): a later log must not survive it. A
// sync of an empty log, which could fail with an empty memtable, is left out: there is nothing in
// it to lose.
//
// Appended to by one thread, synced by another.
class LogFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // `file` is new, so empty.
  LogFile(std::unique_ptr<rocksdb::FSWritableFile> file, LogGate* gate)
      : FSWritableFileOwnerWrapper(std::move(file)), gate_(gate) {}
  ~LogFile() override { gate_->Release(this); }

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    IOStatus status;
    {
      std::lock_guard lock(mutex_);
      const uint64_t record = gate_->appends();
      if (!first_record_) first_record_ = record;
      status = WriteHeld(options, context);
      if (status.ok()) status = Put(data, options, context);
      if (status.IsNoSpace() && first_record_ == record) {
        held_.append(data.data(), data.size());
        gate_->Hold(this);
        return IOStatus::OK();
      }
    }
    return Told(LogGate::Side::kAppend, std::move(status));
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&, IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* context) override {
    return Told(LogGate::Side::kAppend, target()->Flush(options, context));
  }
  // A part of appending.
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* context) override {
    return Told(LogGate::Side::kAppend, target()->RangeSync(offset, bytes, options, context));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    return Synced(options, context, [&] { return target()->Sync(options, context); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return Synced(options, context, [&] { return target()->Fsync(options, context); });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* context) override {
    IOStatus status;
    {
      std::lock_guard lock(mutex_);
      status = WriteHeld(options, context);
    }
    IOStatus closed = target()->Close(options, context);
    return status.ok() ? closed : status;
  }

 private:
  template <typename F>
  IOStatus Synced(const IOOptions& options, IODebugContext* context, F&& call) {
    IOStatus status;
    {
      std::lock_guard lock(mutex_);
      if (length_ == 0 && held_.empty()) return IOStatus::OK();
      status = WriteHeld(options, context);
    }
    return Told(LogGate::Side::kSync, status.ok() ? call() : std::move(status));
  }
  IOStatus Told(LogGate::Side side, IOStatus status) {
    if (!status.ok()) gate_->Fail(side);
    return status;
  }
  // Of a failed append a part may be in the file, and the system's own place in it behind that:
  // from then on bytes are put where they belong.
  IOStatus Put(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* context) {
    IOStatus status = has_failed_ ? target()->PositionedAppend(data, length_, options, context)
                                  : target()->Append(data, options, context);
    if (status.ok()) {
      length_ += data.size();
    } else {
      has_failed_ = true;
    }
    return status;
  }
  IOStatus WriteHeld(const IOOptions& options, IODebugContext* context) {
    if (held_.empty()) return IOStatus::OK();
    IOStatus status = Put(held_, options, context);
    if (status.ok()) {
      std::string().swap(held_);
      gate_->Release(this);
    }
    return status;
  }

  LogGate* const gate_;
  std::mutex mutex_;
  uint64_t length_ = 0;  // without what is held
  std::string held_;
  std::optional<uint64_t> first_record_;
  bool has_failed_ = false;
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
    IOStatus status = Make(path, options, file, context);
    const bool is_log = gate_ != nullptr && path.ends_with(".log");
    if (status.ok() && is_log) *file = std::make_unique<LogFile>(std::move(*file), gate_);
    return status;
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* context) override {
    IOStatus status = target()->ReopenWritableFile(path, options, file, context);
    if (status.ok()) Keep(path, file);
    return status;
  }
  IOStatus CreateDir(const std::string& path, const IOOptions& options,
                     IODebugContext* context) override {
    IOStatus status = target()->CreateDir(path, options, context);
    if (status.ok()) ::chmod(path.c_str(), S_IRWXU);
    return status;
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                              IODebugContext* context) override {
    // What was there already keeps its mode.
    if (::access(path.c_str(), F_OK) == 0) {
      return target()->CreateDirIfMissing(path, options, context);
    }
    return CreateDir(path, options, context);
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
  IOStatus Make(const std::string& path, const FileOptions& options,
                std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* context) {
    IOStatus status = AsIoStatus(fault_ ? fault_(FileCall::kMake, path) : Status());
    if (status.ok()) {
      errno = 0;
      status = target()->NewWritableFile(path, options, file, context);
      // There may be more files at once later on, as there may be more room.
      if (!status.ok() && (errno == EMFILE || errno == ENFILE)) {
        status = IOStatus::NoSpace(status.ToString());
        status.SetRetryable(true);
      }
    }
    if (status.ok()) Keep(path, file);
    return status;
  }
  void Keep(const std::string& path, std::unique_ptr<rocksdb::FSWritableFile>* file) {
    ::chmod(path.c_str(), kOwnerOnly);
    if (fault_) *file = std::make_unique<FaultyFile>(std::move(*file), path, &fault_);
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
