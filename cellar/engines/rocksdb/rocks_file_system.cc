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

#include "cellar/base/small_file.h"
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

// A log that could not be made for want of room. RocksDB gives up for good when it cannot make one,
// so it is told that it has one, and the log is made when something is to be put into it.
//
// Not thread-safe, but that nothing is synced before something was put into it (LogFile).
class LateFile : public rocksdb::FSWritableFile {
 public:
  using Make = std::function<IOStatus(std::unique_ptr<rocksdb::FSWritableFile>*)>;
  explicit LateFile(Make make) : make_(std::move(make)) {}

  using FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    IOStatus status = MakeIt();
    return status.ok() ? file_->Append(data, options, context) : status;
  }
  using FSWritableFile::PositionedAppend;
  IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* context) override {
    IOStatus status = MakeIt();
    return status.ok() ? file_->PositionedAppend(data, offset, options, context) : status;
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* context) override {
    return file_ == nullptr ? IOStatus::OK() : file_->Truncate(size, options, context);
  }
  IOStatus Close(const IOOptions& options, IODebugContext* context) override {
    return file_ == nullptr ? IOStatus::OK() : file_->Close(options, context);
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* context) override {
    return file_ == nullptr ? IOStatus::OK() : file_->Flush(options, context);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    return file_ == nullptr ? IOStatus::OK() : file_->Sync(options, context);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return file_ == nullptr ? IOStatus::OK() : file_->Fsync(options, context);
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* context) override {
    return file_ == nullptr ? IOStatus::OK() : file_->RangeSync(offset, bytes, options, context);
  }
  bool IsSyncThreadSafe() const override { return true; }
  uint64_t GetFileSize(const IOOptions& options, IODebugContext* context) override {
    return file_ == nullptr ? 0 : file_->GetFileSize(options, context);
  }

 private:
  IOStatus MakeIt() { return file_ != nullptr ? IOStatus::OK() : make_(&file_); }

  const Make make_;
  std::unique_ptr<rocksdb::FSWritableFile> file_;
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
      // When RocksDB takes another log it tries once more to write what this one has refused. That
      // must not be here if the process ends before what else is here lies in files.
      if (is_given_up_) return IOStatus::OK();
      if (gate_->TakePretended()) {
        is_given_up_ = true;
        IOStatus pretended = IOStatus::IOError("not written, so that the store recovers");
        pretended.SetRetryable(true);
        return pretended;
      }
      const uint64_t record = gate_->appends();
      if (!first_record_) first_record_ = record;
      status = WriteHeld(options, context);
      if (status.ok()) status = Put(data, options, context);
      if (status.IsNoSpace() && first_record_ == record) {
        held_.append(data.data(), data.size());
        gate_->Hold(this);
        return IOStatus::OK();
      }
      is_given_up_ = !status.ok();
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
  // It is a part of appending, where an error would end a commit whose record is in the log
  // already, or RocksDB for good when it takes another log. All that it does is begin what a sync
  // ends, which tells of the error then.
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* context) override {
    IOStatus status = target()->RangeSync(offset, bytes, options, context);
    std::lock_guard lock(mutex_);
    if (not_begun_.ok()) not_begun_ = std::move(status);
    return IOStatus::OK();
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
      if (status.ok()) status = not_begun_;
    }
    return Told(LogGate::Side::kSync, status.ok() ? call() : std::move(status));
  }
  IOStatus Told(LogGate::Side side, IOStatus status) {
    if (!status.ok()) gate_->Fail(side, status.IsNoSpace());
    return status;
  }
  // What a failed append has written is taken back. The system's own place in the file may be
  // behind that: from then on bytes are put where they belong.
  IOStatus Put(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* context) {
    IOStatus status = has_failed_ ? target()->PositionedAppend(data, length_, options, context)
                                  : target()->Append(data, options, context);
    if (status.ok()) {
      length_ += data.size();
    } else {
      has_failed_ = true;
      target()->Truncate(length_, options, context).PermitUncheckedError();
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
  IOStatus not_begun_;  // how a RangeSync failed
  bool has_failed_ = false;
  bool is_given_up_ = false;  // RocksDB was told of an error
};

// The list of the store's files. When a call on it fails RocksDB goes on in another one, without
// the change that it could not write; so that must not be found in this one either, if the process
// ends before there is another: the files that the change is about may be gone by then.
//
// One thread at a time.
class ManifestFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // `file` is new, so empty.
  explicit ManifestFile(std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    IOStatus status = target()->Append(data, options, context);
    if (status.ok()) length_ += data.size();
    return Done(std::move(status), options, context);
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&, IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* context) override {
    return Done(target()->Flush(options, context), options, context);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    return Synced(target()->Sync(options, context), options, context);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return Synced(target()->Fsync(options, context), options, context);
  }

 private:
  IOStatus Synced(IOStatus status, const IOOptions& options, IODebugContext* context) {
    if (status.ok()) synced_ = length_;
    return Done(std::move(status), options, context);
  }
  IOStatus Done(IOStatus status, const IOOptions& options, IODebugContext* context) {
    if (!status.ok()) target()->Truncate(synced_, options, context).PermitUncheckedError();
    return status;
  }

  uint64_t length_ = 0, synced_ = 0;
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
    if (status.IsNoSpace() && is_log) {
      *file = std::make_unique<LateFile>(
          [this, path, options](std::unique_ptr<rocksdb::FSWritableFile>* made) {
            // RocksDB makes the name durable only once, perhaps before there is one.
            IOStatus late = Make(path, options, made, nullptr);
            if (late.ok()) late = AsIoStatus(SyncDirectory(path.substr(0, path.rfind('/'))));
            if (!late.ok()) made->reset();
            return late;
          });
      status = IOStatus::OK();
    }
    if (!status.ok() || gate_ == nullptr) return status;
    if (is_log) {
      *file = std::make_unique<LogFile>(std::move(*file), gate_);
    } else if (path.substr(path.rfind('/') + 1).starts_with("MANIFEST-")) {
      *file = std::make_unique<ManifestFile>(std::move(*file));
    }
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
