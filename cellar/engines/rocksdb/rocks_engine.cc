#include "cellar/engines/rocksdb/rocks_engine.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "cellar/base/sqlstate.h"
#include "cellar/engines/rocksdb/log_end.h"
#include "cellar/engines/rocksdb/rocks_storage.h"
#include "cellar/engines/rocksdb/store_directory.h"
#include "cellar/engines/rocksdb/wal_guard.h"
#include "cellar/kv/occ_engine.h"

namespace cellar::engines {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHowToGoOn =
    "Restore a backup, or open the store with --accept-log-damage to go on without what is lost.";

Status NotAStore(const std::string& directory, std::string_view why) {
  return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                  "directory \"{}\" is not a Cellar store: {}", directory, why)
      .WithHint("Name an empty directory or one that does not exist yet.");
}

struct Marker {
  uint32_t format = 0;  // 0: there is none
  bool being_made = false;

  // From format 2 on a store that was made whole has a header and `log_end`.
  bool made_whole() const { return format >= 2 && !being_made; }
};

// Errors: it is of a newer format, or no marker at all.
Result<Marker> ReadMarker(const std::string& directory) {
  Marker marker;
  std::string rest;
  CELLAR_TRY_ASSIGN(const std::optional<uint32_t> format,
                    ReadMarkerNumber(directory, kMarkerFile, kMarkerText, &rest));
  if (!format) return marker;
  if (*format > kv::kStoreFormatVersion) return kv::NewerStoreFormat(*format);
  marker.format = *format;
  marker.being_made = rest == fmt::format("{}\n", kBeingMade);
  if (marker.format == 0 || (!marker.being_made && rest != "\n")) {
    return NotAStore(directory, "its marker file holds something else");
  }
  return marker;
}

struct DirectoryState {
  Marker marker;
  bool has_database = false;  // RocksDB's

  bool has_marker() const { return marker.format != 0; }
};

// A table or a log of RocksDB.
Result<bool> HasDataFiles(const std::string& directory) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error) return IoError(fmt::format("could not read \"{}\"", directory), error.value());
  for (const fs::directory_entry& entry : entries) {
    const std::string extension = entry.path().extension();
    if (extension == ".sst" || extension == ".log") return true;
  }
  return false;
}

Status Lost(const std::string& directory, std::string_view what, std::string_view hint) {
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted, "store \"{}\" has lost {}",
                  directory, what)
      .WithHint(std::string(hint));
}
constexpr std::string_view kRestore = "Restore a backup.";

// Makes the directory if need be, and refuses one that is something else.
Result<DirectoryState> PrepareDirectory(const RocksOptions& options) {
  const std::string& directory = options.directory;
  DirectoryState state;
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  const bool may_create = options.create_if_missing && !options.read_only;
  if (!fs::exists(status)) {
    if (!may_create) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedFile, "store \"{}\" does not exist",
                      directory);
    }
    if (::mkdir(directory.c_str(), 0700) != 0) {
      return IoError(fmt::format("could not make directory \"{}\"", directory), errno);
    }
    fs::path whole = fs::absolute(directory);
    if (!whole.has_filename()) whole = whole.parent_path();  // it ended with a slash
    CELLAR_TRY(SyncDirectory(whole.parent_path()));
    return state;
  }
  if (!fs::is_directory(status)) return NotAStore(directory, "it is not a directory");
  CELLAR_TRY_ASSIGN(state.marker, ReadMarker(directory));
  state.has_database = fs::exists(directory + "/CURRENT", error);
  if (state.has_database) return state;
  if (state.has_marker()) {
    // RocksDB would begin anew, and delete what it does not know.
    CELLAR_TRY_ASSIGN(const bool any, HasDataFiles(directory));
    if (any || state.marker.made_whole()) return Lost(directory, "its file CURRENT", kRestore);
    return state;
  }
  fs::directory_iterator entries(directory, error);
  if (error) return IoError(fmt::format("could not read \"{}\"", directory), error.value());
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename();
    if (name == kRestoringDirectory) {
      return NotAStore(directory, "a restore into it has not ended")
          .WithHint("Run `cellar backup restore` into it again.");
    }
    if (name != kLockFile && name != "lost+found" && name != std::string(kMarkerFile) + ".new") {
      return NotAStore(directory, "it is not empty");
    }
  }
  if (!may_create) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedFile, "store \"{}\" does not exist",
                    directory);
  }
  if (::chmod(directory.c_str(), 0700) != 0) {
    return IoError(fmt::format("could not make \"{}\" private", directory), errno);
  }
  return state;
}

// The store with its name, if recovery would lose what was durable.
Status CheckRecovery(const RocksOptions& options, uint64_t reached, const LogExtent& extent,
                     const std::optional<LogEnd>& end) {
  std::string why, detail;
  if (reached < extent.last_sequence) {
    why = "is damaged";
    detail = fmt::format("Recovery reaches change {}, the log holds valid changes up to {}.",
                         reached, extent.last_sequence);
  } else if (end && reached < end->change) {
    why = "is cut off or missing";
    detail = fmt::format("Recovery reaches change {}; change {} was durable{}.", reached,
                         end->change, end->stopped ? " when the store was stopped" : "");
  } else {
    return {};
  }
  if (options.accept_log_damage) {
    if (options.lost) {
      options.lost(fmt::format("the log of store \"{}\" {}, and what it has lost was given up: {}",
                               options.directory, why, detail));
    }
    return {};
  }
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                  "the log of store \"{}\" {}: recovery would lose commits", options.directory, why)
      .WithDetail(std::move(detail))
      .WithHint(std::string(kHowToGoOn));
}

// Looks before anything is written: is this ours, and does recovery reach all that is known to have
// been durable? Returns the last record of the log's end.
Result<std::optional<LogEnd>> CheckBeforeOpening(const RocksOptions& options,
                                                 const DirectoryState& state) {
  LogExtent extent;
  Result<std::optional<LogEnd>> end = std::optional<LogEnd>();
  if (!options.read_only) {
    CELLAR_TRY_ASSIGN(extent, ScanLogs(options.directory));
    end = ReadLogEnd(options.directory);
    if (!end.ok()) {
      if (end.status().code() != Code::kCorruption) return end.status();
      if (!options.accept_log_damage) {
        return std::move(end).status().WithHint(std::string(kHowToGoOn));
      }
      if (options.lost) options.lost(end.status().message());
      end = std::optional<LogEnd>();
    }
  }
  const auto needs_end = [&](bool needed) -> Status {
    if (options.read_only || !needed || *end) return {};
    const std::string what = fmt::format("its file {}, and perhaps commits with it", kLogEndFile);
    if (!options.accept_log_damage) return Lost(options.directory, what, kHowToGoOn);
    if (options.lost) {
      options.lost(fmt::format("store \"{}\" has lost {}", options.directory, what));
    }
    return {};
  };
  CELLAR_TRY(needs_end(state.marker.made_whole()));
  if (state.has_marker() && extent.last_sequence == 0 && (!*end || (*end)->change == 0)) return end;
  Result<OpenedStorage> looked = OpenRocksStorage(options, /*create=*/false, /*read_only=*/true);
  if (!looked.ok()) {
    if (!state.has_marker()) return NotAStore(options.directory, "its files are not ours");
    // A log that RocksDB knows of, and misses.
    if (looked.status().code() == Code::kCorruption && !options.accept_log_damage &&
        looked.status().message().find("WAL") != std::string::npos) {
      return std::move(looked).status().WithHint(std::string(kHowToGoOn));
    }
    return looked.status();
  }
  if (looked->header == nullptr && !state.has_marker()) {
    return NotAStore(options.directory, "it is some other RocksDB database");
  }
  CELLAR_TRY(needs_end(!state.has_marker() && looked->header->format_version >= 2));
  CELLAR_TRY(CheckRecovery(options, looked->last_sequence, extent, *end));
  return end;
}

// An OccEngine that keeps its store locked until it is closed.
class RocksEngine : public kv::OccEngine {
 public:
  RocksEngine(std::unique_ptr<kv::Storage> storage, std::unique_ptr<DirectoryLock> lock)
      : OccEngine(std::move(storage)), lock_(std::move(lock)) {}
  ~RocksEngine() override { static_cast<void>(RocksEngine::Close().ok()); }

  Status Close() override {
    Status status = OccEngine::Close();
    lock_.reset();
    return status;
  }

 private:
  std::unique_ptr<DirectoryLock> lock_;
};

}  // namespace

Result<std::unique_ptr<kv::Engine>> OpenRocksEngine(const RocksOptions& options) {
  CELLAR_TRY_ASSIGN(const DirectoryState state, PrepareDirectory(options));
  std::unique_ptr<DirectoryLock> lock;
  if (!options.read_only) {
    CELLAR_TRY_ASSIGN(lock, DirectoryLock::Take(options.directory));
  }
  std::optional<LogEnd> end;
  if (state.has_database) {
    CELLAR_TRY_ASSIGN(end, CheckBeforeOpening(options, state));
  } else if (options.read_only) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedFile, "store \"{}\" does not exist",
                    options.directory);
  }
  if (!state.has_marker() && !options.read_only) {
    CELLAR_TRY(WriteMarker(options.directory, /*made=*/false));
  }
  CELLAR_TRY_ASSIGN(OpenedStorage opened,
                    OpenRocksStorage(options, /*create=*/!state.has_database, options.read_only));
  if (opened.header == nullptr) {
    // It may have been in a log that is gone.
    const bool must_have = state.marker.made_whole() && !options.accept_log_damage;
    if (!opened.empty || options.read_only || must_have) {
      return Lost(options.directory, "its header record", kRestore);
    }
    CELLAR_TRY(WriteStoreHeader(opened.storage.get(), NewStoreHeader()));
    CELLAR_TRY(SyncDirectory(options.directory));
  } else if (!options.read_only && opened.header->format_version < kv::kStoreFormatVersion) {
    opened.header->format_version = kv::kStoreFormatVersion;
    CELLAR_TRY(WriteStoreHeader(opened.storage.get(), *opened.header));
  }
  if (!options.read_only) {
    CELLAR_TRY(KeepLogEnd(opened.storage.get(), end ? end->generation : 0));
    if (!end) CELLAR_TRY(SyncDirectory(options.directory));
    if (!state.marker.made_whole()) CELLAR_TRY(WriteMarker(options.directory, /*made=*/true));
  }
  return std::unique_ptr<kv::Engine>(
      std::make_unique<RocksEngine>(std::move(opened.storage), std::move(lock)));
}

std::string_view RocksBuild() { return CELLAR_ROCKSDB_BUILD; }

}  // namespace cellar::engines
