#include "cellar/engines/rocksdb/rocks_file_system.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>

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
                  const rocksdb::DataVerificationInfo& info, IODebugContext* context) override {
    IOStatus status = AsIoStatus((*fault_)(FileCall::kAppend, path_));
    return status.ok() ? target()->Append(data, options, info, context) : status;
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

class PrivateFileSystem : public rocksdb::FileSystemWrapper {
 public:
  PrivateFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base, Fault fault)
      : FileSystemWrapper(base), fault_(std::move(fault)) {}

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
  IOStatus NewLogger(const std::string& path, const IOOptions& options,
                     std::shared_ptr<rocksdb::Logger>* logger, IODebugContext* context) override {
    IOStatus status = target()->NewLogger(path, options, logger, context);
    if (status.ok()) ::chmod(path.c_str(), kOwnerOnly);
    return status;
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
    if (fault_) *file = std::make_unique<FaultyFile>(std::move(*file), path, &fault_);
    return status;
  }

  const Fault fault_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> MakePrivateEnv(
    std::function<Status(FileCall, std::string_view path)> fault) {
  return rocksdb::NewCompositeEnv(
      std::make_shared<PrivateFileSystem>(rocksdb::FileSystem::Default(), std::move(fault)));
}

}  // namespace cellar::engines
