#include "cellar/engines/rocksdb/rocks_backup.h"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/utilities/backup_engine.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <set>

#include "cellar/base/crc32c.h"
#include "cellar/base/sqlstate.h"
#include "cellar/engines/rocksdb/log_end.h"
#include "cellar/engines/rocksdb/rocks_file_system.h"
#include "cellar/engines/rocksdb/rocks_status.h"
#include "cellar/engines/rocksdb/rocks_storage.h"
#include "cellar/engines/rocksdb/store_directory.h"

namespace cellar::engines {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBackupMarkerFile = "CELLAR_BACKUPS";
constexpr std::string_view kBuildingDirectory = "building";
constexpr std::string_view kBackupMarkerText = "Cellar backups, format ";
constexpr uint32_t kBackupFormatVersion = 1;
constexpr std::string_view kNoteTitle = "cellar backup ";
constexpr std::string_view kCouldNotBackUp = "could not make the backup";
constexpr std::string_view kCouldNotRestore = "could not restore the backup";
constexpr std::string_view kCouldNotReadBackups = "could not read the backups";
constexpr uint32_t kMostBackups = 1 << 20;  // numbers of a directory

// RocksDB's answers on backups, where room and rights are those of the backup's place.
Status FromBackup(const rocksdb::Status& status, std::string_view what) {
  if (status.ok()) return {};
  const std::string text = status.ToString();
  if (status.IsCorruption()) {
    return SqlError(Code::kCorruption, sqlstate::kDataCorrupted, "{}: {}", what, text)
        .WithHint("`cellar backup verify` tells which backups are whole.");
  }
  if (IsDiskFull(status)) {
    return SqlError(Code::kUnavailable, sqlstate::kDiskFull, "{}: no space left on device", what)
        .WithDetail(text);
  }
  if (text.find("Permission denied") != std::string::npos ||
      text.find("Read-only file system") != std::string::npos) {
    return SqlError(Code::kUnavailable, sqlstate::kInsufficientPrivilege, "{}: {}", what, text);
  }
  return FromRocks(status, what);
}

Status NotBackups(const std::string& directory, std::string_view why) {
  return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                  "directory \"{}\" does not hold backups of Cellar: {}", directory, why);
}

Status NoSuchBackup(const std::string& directory, uint32_t number) {
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "there is no backup {} in \"{}\"",
                  number, directory)
      .WithHint("`cellar backup list` shows them.");
}

// Whether the marker of our format is there.
Result<bool> HasMarker(const std::string& directory) {
  CELLAR_TRY_ASSIGN(const std::optional<uint32_t> version,
                    ReadMarkerNumber(directory, kBackupMarkerFile, kBackupMarkerText));
  if (!version) return false;
  if (*version == 0) return NotBackups(directory, "its marker file holds something else");
  if (*version > kBackupFormatVersion) {
    return SqlError(Code::kUnsupported, sqlstate::kObjectNotInPrerequisiteState,
                    "the backups have format {}, this program reads up to format {}", *version,
                    kBackupFormatVersion)
        .WithHint("Use the newer release that wrote them.");
  }
  return true;
}

// The list of a backup's files that cannot be read for now must not be taken for a damaged one:
// RocksDB would clear its files away. Errors: 42501, 58030.
Status CheckReadable(const std::string& directory) {
  for (const char* name : {"meta", "private", "shared_checksum"}) {
    const std::string path = fmt::format("{}/{}", directory, name);
    std::error_code error;
    fs::directory_iterator entries(path, error);
    if (error == std::errc::no_such_file_or_directory) continue;
    if (error) return IoError(fmt::format("could not read \"{}\"", path), error.value());
    if (std::string_view(name) != "meta") continue;
    for (const fs::directory_entry& entry : entries) {
      const File file(entry.path(), O_RDONLY);
      if (file.fd() < 0) {
        return IoError(fmt::format("could not read \"{}\"", entry.path().string()), errno);
      }
    }
  }
  return {};
}

Status CheckIsBackups(const std::string& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (!fs::exists(status)) {
    return IoError(fmt::format("could not open backup directory \"{}\"", directory),
                   error ? error.value() : ENOENT);
  }
  if (!fs::is_directory(status)) return NotBackups(directory, "it is not a directory");
  CELLAR_TRY_ASSIGN(const bool ours, HasMarker(directory));
  if (!ours) return NotBackups(directory, "it has no marker file");
  return CheckReadable(directory);
}

// ---- which lists of files are whole ----
//
// RocksDB's lists have no checksum, and its assertions do not bear two that contradict each other.
// So each has a record of ours, written when the backup is whole, and RocksDB sees no list that is
// not as its record says.

std::string ListPath(const std::string& directory, uint32_t number) {
  return fmt::format("{}/meta/{}", directory, number);
}
std::string CheckName(uint32_t number) { return fmt::format("{}", number); }
std::string CheckDirectory(const std::string& directory) { return directory + "/checks"; }

constexpr size_t kMostListBytes = size_t{1} << 30;

Result<std::string> ReadWhole(const std::string& path) {
  const File file(path, O_RDONLY);
  if (file.fd() < 0) return IoError(fmt::format("could not read \"{}\"", path), errno);
  std::string content, chunk(64 << 10, '\0');
  while (content.size() <= kMostListBytes) {
    const ssize_t got = ::read(file.fd(), chunk.data(), chunk.size());
    if (got < 0) return IoError(fmt::format("could not read \"{}\"", path), errno);
    if (got == 0) return content;
    content.append(chunk, 0, static_cast<size_t>(got));
  }
  return CorruptionError("\"{}\" is too long", path);
}

std::string CheckOf(std::string_view list) {
  return fmt::format("list {} {:08x}\n", list.size(), Crc32c(list));
}

Status WriteCheck(const std::string& directory, uint32_t number) {
  const std::string checks = CheckDirectory(directory);
  if (::mkdir(checks.c_str(), 0700) == 0) {
    CELLAR_TRY(SyncDirectory(directory));
  } else if (errno != EEXIST) {
    return IoError(fmt::format("could not make directory \"{}\"", checks), errno);
  }
  CELLAR_TRY_ASSIGN(const std::string list, ReadWhole(ListPath(directory, number)));
  return ReplaceFile(fmt::format("{}/{}", checks, CheckName(number)), CheckOf(list));
}

void RemoveCheck(const std::string& directory, uint32_t number) {
  ::unlink(fmt::format("{}/{}", CheckDirectory(directory), CheckName(number)).c_str());
}

// Numbers of backups whose list is missing, or not as its record says.
Result<std::set<uint32_t>> FindDamagedLists(const std::string& directory) {
  std::set<uint32_t> numbers, damaged;
  for (const std::string& folder : {directory + "/meta", CheckDirectory(directory)}) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename();
      uint32_t number = 0;
      const char* end = name.data() + name.size();
      if (std::from_chars(name.data(), end, number).ptr == end) numbers.insert(number);
    }
    if (error && error != std::errc::no_such_file_or_directory) {
      return IoError(fmt::format("could not read \"{}\"", folder), error.value());
    }
  }
  for (const uint32_t number : numbers) {
    const Result<std::string> list = ReadWhole(ListPath(directory, number));
    const Result<std::string> check =
        ReadWhole(CheckDirectory(directory) + "/" + CheckName(number));
    for (const Result<std::string>* one : {&list, &check}) {
      if (!one->ok() && one->status().sqlstate() != sqlstate::kUndefinedFile &&
          one->status().code() != Code::kCorruption)
        return one->status();
    }
    if (!list.ok() || !check.ok() || *check != CheckOf(*list)) damaged.insert(number);
  }
  return damaged;
}

using OnRead = std::function<void(uint64_t bytes)>;

// RocksDB tells of the progress of a backup, but of no other: so we count what it reads.
class CountedFile : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  CountedFile(std::unique_ptr<rocksdb::FSSequentialFile> file, const OnRead* on_read)
      : FSSequentialFileOwnerWrapper(std::move(file)), on_read_(on_read) {}
  rocksdb::IOStatus Read(size_t bytes, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                         char* scratch, rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = target()->Read(bytes, options, result, scratch, context);
    if (status.ok()) (*on_read_)(result->size());
    return status;
  }

 private:
  const OnRead* const on_read_;
};

// Does not show lists that are damaged, and tells what is read from beginning to end.
class BackupFileSystem : public rocksdb::FileSystemWrapper {
 public:
  BackupFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base, std::set<uint32_t> damaged,
                   OnRead on_read)
      : FileSystemWrapper(base), damaged_(std::move(damaged)), on_read_(std::move(on_read)) {}
  const char* Name() const override { return "CellarBackupFileSystem"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = target()->NewSequentialFile(path, options, file, context);
    if (status.ok() && on_read_) *file = std::make_unique<CountedFile>(std::move(*file), &on_read_);
    return status;
  }
  rocksdb::IOStatus GetChildren(const std::string& directory, const rocksdb::IOOptions& options,
                                std::vector<std::string>* names,
                                rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = target()->GetChildren(directory, options, names, context);
    std::string_view path = directory;
    while (path.ends_with('/')) path.remove_suffix(1);
    if (!status.ok() || !path.ends_with("/meta")) return status;
    std::erase_if(*names, [this](const std::string& name) {
      for (const uint32_t number : damaged_) {
        if (name == std::to_string(number)) return true;
      }
      return false;
    });
    return status;
  }

 private:
  const std::set<uint32_t> damaged_;
  const OnRead on_read_;
};

// How RocksDB sees a directory of backups. The environment outlives what is opened in it.
struct View {
  std::unique_ptr<rocksdb::Env> base, env;
  std::set<uint32_t> damaged;
};
Result<View> ViewBackups(const std::string& directory,
                         std::function<Status(FileCall, std::string_view path)> fault,
                         OnRead on_read = {}) {
  View view;
  CELLAR_TRY_ASSIGN(view.damaged, FindDamagedLists(directory));
  view.base = MakePrivateEnv(std::move(fault), nullptr);
  view.env = rocksdb::NewCompositeEnv(std::make_shared<BackupFileSystem>(
      view.base->GetFileSystem(), view.damaged, std::move(on_read)));
  return view;
}

Status DamagedList(uint32_t number) {
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                  "backup {} is damaged: its list of files, \"meta/{}\", is missing or not what "
                  "was written",
                  number, number)
      .WithHint("Name another backup; `cellar backup list` shows them.");
}

// The path without symbolic links, as far as it exists.
Result<fs::path> Canonical(const std::string& path) {
  std::error_code error;
  fs::path whole = fs::absolute(path, error);
  if (!error) whole = fs::weakly_canonical(whole, error);
  if (error) return IoError(fmt::format("could not find \"{}\"", path), error.value());
  return whole.has_filename() ? whole : whole.parent_path();
}

bool IsWithin(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

Status CheckIsApart(const std::string& directory, const std::string& store) {
  CELLAR_TRY_ASSIGN(const fs::path to, Canonical(directory));
  CELLAR_TRY_ASSIGN(const fs::path from, Canonical(store));
  if (IsWithin(to, from) || IsWithin(from, to)) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "the backup's directory and the store's lie in each other")
        .WithHint("Keep backups apart from the store, best on another disk.");
  }
  return {};
}

// Makes the directory if need be, and refuses one that is something else, or lies with the store.
Status PrepareBackups(const std::string& directory, const std::string& store) {
  if (directory.empty()) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "the directory of the backup has no name");
  }
  CELLAR_TRY(CheckIsApart(directory, store));
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return IoError(fmt::format("could not make directory \"{}\"", directory), errno);
  }
  std::error_code error;
  if (!fs::is_directory(directory, error)) return NotBackups(directory, "it is not a directory");
  CELLAR_TRY_ASSIGN(const bool ours, HasMarker(directory));
  if (ours) return CheckReadable(directory);
  fs::directory_iterator entries(directory, error);
  if (error) return IoError(fmt::format("could not read \"{}\"", directory), error.value());
  const std::string fresh = std::string(kBackupMarkerFile) + ".new";
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename();
    if (name != fresh && name != kLockFile && name != "lost+found") {
      return NotBackups(directory, "it is not empty")
          .WithHint("Name an empty directory or one that does not exist yet.");
    }
  }
  if (::chmod(directory.c_str(), 0700) != 0) {
    return IoError(fmt::format("could not make \"{}\" private", directory), errno);
  }
  return ReplaceFile(fmt::format("{}/{}", directory, kBackupMarkerFile),
                     fmt::format("{}{}\n", kBackupMarkerText, kBackupFormatVersion));
}

Result<std::unique_ptr<DirectoryLock>> LockBackups(const std::string& directory) {
  Result<std::unique_ptr<DirectoryLock>> lock = DirectoryLock::Take(directory);
  if (lock.ok() || lock.status().sqlstate() != sqlstate::kObjectInUse) return lock;
  return SqlError(Code::kUnavailable, sqlstate::kObjectInUse,
                  "another process changes the backups in \"{}\"", directory)
      .WithDetail(std::string(lock.status().detail()));
}

// What a backup that was interrupted has left of the store that it built.
Status ClearBuilding(const std::string& directory) {
  std::error_code error;
  fs::remove_all(fmt::format("{}/{}", directory, kBuildingDirectory), error);
  if (!error) return {};
  return IoError(fmt::format("could not clear \"{}\"", directory), error.value());
}

rocksdb::BackupEngineOptions EngineOptions(const std::string& directory, rocksdb::Env* env) {
  rocksdb::BackupEngineOptions options(directory, env);
  options.share_files_with_checksum = true;
  options.sync = true;
  return options;
}

// The backups of a directory, to look at; each with the environment that it reads by.
struct Reader {
  View view;
  std::unique_ptr<rocksdb::BackupEngineReadOnly> engine;
};
// `to_env`: where restores write. `on_read` is told of what is read, by one thread at a time.
Result<Reader> OpenReader(const std::string& directory, rocksdb::Env* to_env = nullptr,
                          OnRead on_read = {}) {
  CELLAR_TRY(CheckIsBackups(directory));
  Reader reader;
  CELLAR_TRY_ASSIGN(reader.view, ViewBackups(directory, {}, std::move(on_read)));
  rocksdb::Env* const env = reader.view.env.get();
  rocksdb::BackupEngineReadOnly* engine = nullptr;
  const rocksdb::Status opened = rocksdb::BackupEngineReadOnly::Open(
      EngineOptions(directory, env), to_env != nullptr ? to_env : env, &engine);
  CELLAR_TRY(FromBackup(opened, kCouldNotReadBackups));
  reader.engine.reset(engine);
  return reader;
}

// What is read of one backup, once it is known which.
class ReadProgress {
 public:
  explicit ReadProgress(const std::function<void(const kv::BackupProgress&)>& tell) : tell_(tell) {}
  OnRead Hook() {
    if (!tell_) return {};
    return [this](uint64_t bytes) {
      if (now_.total_bytes == 0) return;
      now_.copied_bytes += bytes;
      tell_(now_);
    };
  }
  void Begin(const rocksdb::BackupInfo& backup) { now_.total_bytes = backup.size; }

 private:
  const std::function<void(const kv::BackupProgress&)>& tell_;
  kv::BackupProgress now_;
};

kv::BackupInfo Describe(const rocksdb::BackupInfo& of) {
  kv::BackupInfo info;
  info.number = of.backup_id;
  info.unix_seconds = of.timestamp;
  info.bytes = of.size;
  info.files = of.number_files;
  const Result<BackupNote> note = ParseBackupNote(of.app_metadata);
  if (!note.ok()) {
    info.damaged = true;
    return info;
  }
  info.unix_seconds = note->unix_seconds;
  info.store_id = note->store.store_id;
  info.format_version = note->store.format_version;
  info.change = note->change;
  info.program = note->program;
  return info;
}

std::vector<kv::BackupInfo> Describe(const rocksdb::BackupEngineReadOnlyBase& engine,
                                     const std::set<uint32_t>& damaged_lists) {
  std::vector<rocksdb::BackupInfo> all;
  engine.GetBackupInfo(&all, /*include_file_details=*/true);
  std::vector<kv::BackupInfo> out;
  std::set<std::string> had;
  for (const rocksdb::BackupInfo& one : all) {
    kv::BackupInfo& info = out.emplace_back(Describe(one));
    for (const rocksdb::BackupFileInfo& file : one.file_details) {
      if (had.insert(file.relative_filename).second) info.added_bytes += file.size;
    }
  }
  std::vector<rocksdb::BackupID> damaged;
  engine.GetCorruptedBackups(&damaged);
  damaged.insert(damaged.end(), damaged_lists.begin(), damaged_lists.end());
  for (const rocksdb::BackupID number : damaged) {
    kv::BackupInfo& info = out.emplace_back();
    info.number = number;
    info.damaged = true;
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return out;
}

// One backup that can be restored; number 0: the newest.
Result<rocksdb::BackupInfo> FindBackup(const Reader& reader, const std::string& directory,
                                       uint32_t number) {
  const rocksdb::BackupEngineReadOnly& engine = *reader.engine;
  if (number == 0) {
    for (const kv::BackupInfo& info : Describe(engine, reader.view.damaged)) {
      number = std::max(number, info.number);
    }
    if (number == 0) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedObject, "there are no backups in \"{}\"",
                      directory);
    }
  }
  if (reader.view.damaged.count(number) != 0) return DamagedList(number);
  rocksdb::BackupInfo info;
  const rocksdb::Status status = engine.GetBackupInfo(number, &info, true);
  if (status.IsNotFound()) return NoSuchBackup(directory, number);
  CELLAR_TRY(FromBackup(status, fmt::format("backup {} is damaged", number)));
  CELLAR_TRY_ASSIGN(const BackupNote note, ParseBackupNote(info.app_metadata));
  if (note.store.format_version > kv::kStoreFormatVersion) {
    return kv::NewerStoreFormat(note.store.format_version);
  }
  return info;
}

// Only backups of one store lie in a directory: retention counts them, and copies of a store that
// have gone different ways are not to be mixed up.
Status CheckStore(const std::vector<kv::BackupInfo>& backups, const std::string& directory,
                  const std::array<uint8_t, 16>& store_id) {
  for (const kv::BackupInfo& info : backups) {
    if (info.damaged || info.store_id == store_id) continue;
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "directory \"{}\" holds backups of another store or database", directory)
        .WithHint(
            "A restored store is another one than its origin, and so is each database that is "
            "backed up alone: give it a directory of its own.");
  }
  return {};
}

Result<std::unique_ptr<rocksdb::BackupEngine>> OpenWriter(const std::string& directory,
                                                          rocksdb::Env* env) {
  rocksdb::BackupEngine* engine = nullptr;
  const rocksdb::Status opened =
      rocksdb::BackupEngine::Open(EngineOptions(directory, env), env, &engine);
  CELLAR_TRY(FromBackup(opened, kCouldNotReadBackups));
  return std::unique_ptr<rocksdb::BackupEngine>(engine);
}

Result<std::vector<uint32_t>> Prune(rocksdb::BackupEngine* engine, const std::string& directory,
                                    const std::set<uint32_t>& damaged_lists, uint32_t keep) {
  const std::vector<kv::BackupInfo> before = Describe(*engine, damaged_lists);
  // The oldest that stays.
  uint32_t first = 0, whole = 0;
  for (auto info = before.rbegin(); info != before.rend() && whole < keep; ++info) {
    if (info->damaged) continue;
    first = info->number;
    ++whole;
  }
  std::vector<uint32_t> removed;
  if (whole < keep) return removed;
  for (const kv::BackupInfo& info : before) {
    if (info.number >= first) break;
    // First, so that a removal that ends here leaves nothing that looks whole.
    RemoveCheck(directory, info.number);
    if (damaged_lists.count(info.number) != 0) {
      ::unlink(ListPath(directory, info.number).c_str());
    } else {
      CELLAR_TRY(FromBackup(engine->DeleteBackup(info.number), "could not remove a backup"));
    }
    removed.push_back(info.number);
  }
  return removed;
}

}  // namespace

// ---- the note ----

std::string EncodeBackupNote(const BackupNote& note) {
  std::string id;
  for (const uint8_t byte : note.store.store_id) id += fmt::format("{:02x}", byte);
  std::string text = fmt::format("{}{}\nstore {}\nformat {}\nchange {}\ntime {}\nprogram {}\n",
                                 kNoteTitle, kBackupFormatVersion, id, note.store.format_version,
                                 note.change, note.unix_seconds, note.program);
  return text + fmt::format("check {:08x}\n", Crc32c(text));
}

Result<BackupNote> ParseBackupNote(std::string_view text) {
  const Status damaged = CorruptionError("what the backup says of itself makes no sense");
  const auto take_line = [&](std::string_view name) -> std::optional<std::string_view> {
    if (!text.starts_with(name)) return std::nullopt;
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view value = text.substr(name.size(), end - name.size());
    text.remove_prefix(end + 1);
    return value;
  };
  const auto take_number = [&](std::string_view name, auto* number) {
    const std::optional<std::string_view> value = take_line(name);
    if (!value) return false;
    const char* end = value->data() + value->size();
    const auto read = std::from_chars(value->data(), end, *number);
    return read.ec == std::errc() && read.ptr == end;
  };
  const size_t check_at = text.rfind("check ");
  const std::string_view checked = text.substr(0, std::min(check_at, text.size()));
  uint32_t version = 0;
  if (!take_number(kNoteTitle, &version)) return damaged;
  if (version > kBackupFormatVersion) {
    return SqlError(Code::kUnsupported, sqlstate::kObjectNotInPrerequisiteState,
                    "the backup has format {}, this program reads up to format {}", version,
                    kBackupFormatVersion);
  }
  BackupNote note;
  const std::optional<std::string_view> id = take_line("store ");
  if (!id || id->size() != 2 * note.store.store_id.size()) return damaged;
  for (size_t i = 0; i < note.store.store_id.size(); ++i) {
    const char* digits = id->data() + 2 * i;
    if (std::from_chars(digits, digits + 2, note.store.store_id[i], 16).ptr != digits + 2)
      return damaged;
  }
  if (!take_number("format ", &note.store.format_version) ||
      !take_number("change ", &note.change) || !take_number("time ", &note.unix_seconds))
    return damaged;
  const std::optional<std::string_view> program = take_line("program ");
  const std::optional<std::string_view> check = take_line("check ");
  if (!program || !check || !text.empty() || *check != fmt::format("{:08x}", Crc32c(checked)))
    return damaged;
  note.program = *program;
  return note;
}

// ---- making one ----

Result<std::unique_ptr<BackupYard>> BackupYard::Open(const std::string& directory,
                                                     const std::string& source,
                                                     const std::array<uint8_t, 16>& store_id) {
  CELLAR_TRY(PrepareBackups(directory, source));
  CELLAR_TRY_ASSIGN(std::unique_ptr<DirectoryLock> lock, LockBackups(directory));
  CELLAR_TRY(ClearBuilding(directory));
  CELLAR_TRY_ASSIGN(const View view, ViewBackups(directory, {}));
  CELLAR_TRY_ASSIGN(const std::unique_ptr<rocksdb::BackupEngine> engine,
                    OpenWriter(directory, view.env.get()));
  CELLAR_TRY(CheckStore(Describe(*engine, view.damaged), directory, store_id));
  return std::make_unique<BackupYard>(fmt::format("{}/{}", directory, kBuildingDirectory),
                                      std::move(lock));
}

BackupYard::BackupYard(std::string store, std::unique_ptr<DirectoryLock> lock)
    : store_(std::move(store)), lock_(std::move(lock)) {}

BackupYard::~BackupYard() {
  std::error_code error;  // what is left goes with the next backup
  fs::remove_all(store_, error);
}

Result<kv::BackupInfo> AddBackup(const BackupSource& source, const kv::BackupOptions& options) {
  std::unique_ptr<DirectoryLock> lock;
  if (!options.as_store) {
    CELLAR_TRY(PrepareBackups(options.directory, source.directory));
    CELLAR_TRY_ASSIGN(lock, LockBackups(options.directory));
    CELLAR_TRY(ClearBuilding(options.directory));
  }
  CELLAR_TRY_ASSIGN(const View view, ViewBackups(options.directory, source.fault));
  CELLAR_TRY_ASSIGN(const std::unique_ptr<rocksdb::BackupEngine> engine,
                    OpenWriter(options.directory, view.env.get()));
  BackupNote note;
  note.store = source.header;
  if (options.as_store) note.store.store_id = *options.as_store;
  CELLAR_TRY(CheckStore(Describe(*engine, view.damaged), options.directory, note.store.store_id));
  source.prepare();

  note.change = source.db->GetLatestSequenceNumber();
  note.unix_seconds = static_cast<int64_t>(std::time(nullptr));
  note.program = CELLAR_VERSION;
  rocksdb::CreateBackupOptions create;
  kv::BackupProgress progress;
  Status cancelled;
  const uint64_t step = EngineOptions("", nullptr).callback_trigger_interval_size;
  create.progress_callback = [&] {
    progress.copied_bytes += step;
    progress.total_bytes = source.total_bytes->load();
    if (options.progress) options.progress(progress);
    if (options.cancel == nullptr || !cancelled.ok()) return;
    cancelled = options.cancel->Check();
    if (!cancelled.ok()) engine->StopBackup();
  };
  rocksdb::BackupID number = 0;
  const rocksdb::Status made =
      engine->CreateNewBackupWithMetadata(create, source.db, EncodeBackupNote(note), &number);
  if (!made.ok()) {
    if (!cancelled.ok()) return cancelled;
    return FromBackup(made, kCouldNotBackUp);
  }
  CELLAR_TRY(WriteCheck(options.directory, number));
  // A damaged list that had the number is no more.
  std::set<uint32_t> damaged = view.damaged;
  damaged.erase(number);
  kv::BackupInfo info;
  for (kv::BackupInfo& one : Describe(*engine, damaged)) {
    if (one.number == number) info = std::move(one);
  }
  if (options.keep != 0) {
    CELLAR_TRY(Prune(engine.get(), options.directory, damaged, options.keep).status());
  }
  return info;
}

// ---- looking at them ----

Result<std::vector<kv::BackupInfo>> ListBackups(const std::string& directory) {
  CELLAR_TRY_ASSIGN(const Reader reader, OpenReader(directory));
  return Describe(*reader.engine, reader.view.damaged);
}

Status VerifyBackup(const std::string& directory, uint32_t number,
                    const std::function<void(const kv::BackupProgress&)>& tell) {
  ReadProgress progress(tell);
  CELLAR_TRY_ASSIGN(const Reader reader, OpenReader(directory, nullptr, progress.Hook()));
  CELLAR_TRY_ASSIGN(const rocksdb::BackupInfo info, FindBackup(reader, directory, number));
  progress.Begin(info);
  const rocksdb::Status status = reader.engine->VerifyBackup(number, true);
  // A file that has gone since the directory was opened.
  if (status.IsNotFound()) return CorruptionError("{}", status.ToString());
  return FromBackup(status, fmt::format("backup {} is damaged", number));
}

Result<std::vector<uint32_t>> PruneBackups(const std::string& directory, uint32_t keep) {
  CELLAR_TRY(CheckIsBackups(directory));
  if (keep == 0 || keep > kMostBackups) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "at least one backup is to be kept");
  }
  CELLAR_TRY_ASSIGN(const std::unique_ptr<DirectoryLock> lock, LockBackups(directory));
  CELLAR_TRY(ClearBuilding(directory));
  CELLAR_TRY_ASSIGN(const View view, ViewBackups(directory, {}));
  CELLAR_TRY_ASSIGN(const std::unique_ptr<rocksdb::BackupEngine> engine,
                    OpenWriter(directory, view.env.get()));
  CELLAR_TRY_ASSIGN(std::vector<uint32_t> removed,
                    Prune(engine.get(), directory, view.damaged, keep));
  CELLAR_TRY(FromBackup(engine->GarbageCollect(), "could not clear up the backups"));
  return removed;
}

Result<RocksOptions> LocateBackup(const std::string& directory, uint32_t number) {
  CELLAR_TRY_ASSIGN(Reader reader, OpenReader(directory));
  CELLAR_TRY_ASSIGN(const rocksdb::BackupInfo info, FindBackup(reader, directory, number));
  // Its environment stands on ours.
  struct Held {
    Reader reader;
    std::shared_ptr<rocksdb::Env> env;
  };
  auto held = std::make_shared<Held>();
  held->reader = std::move(reader);
  held->env = info.env_for_open;
  RocksOptions options;
  options.directory = info.name_for_open;
  options.env = std::shared_ptr<rocksdb::Env>(held, held->env.get());
  options.create_if_missing = false;
  options.read_only = true;
  return options;
}

// ---- restoring ----

namespace {

// What a restore may leave behind when it is killed: names that only RocksDB and we give.
bool IsOfRestore(const std::string& name) {
  if (name == kRestoringDirectory || name == kLockFile || name == kLogEndFile) return true;
  return name.ends_with(".sst") || name.ends_with(".log") || name.starts_with("MANIFEST-") ||
         name.starts_with("OPTIONS-") || name.starts_with("LOG") || name == "IDENTITY" ||
         name == "LOCK";
}

// Clears the directory of what an interrupted restore has left, and refuses one that holds anything
// else.
Status PrepareTarget(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return IoError(fmt::format("could not make directory \"{}\"", directory), errno);
  }
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error) return IoError(fmt::format("could not read \"{}\"", directory), error.value());
  std::vector<fs::path> leftovers;
  bool restoring = false, other = false;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename();
    if (name == "lost+found" || name == kLockFile) continue;
    restoring |= name == kRestoringDirectory;
    if (IsOfRestore(name)) {
      leftovers.push_back(entry.path());
    } else {
      other = true;
    }
  }
  if (other || (!restoring && !leftovers.empty())) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "directory \"{}\" is not empty", directory)
        .WithHint("Restore into an empty directory or one that does not exist yet.");
  }
  return {};
}

Status ClearTarget(const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (name != kLockFile && name != kRestoringDirectory && IsOfRestore(name)) {
      paths.push_back(entry.path());
    }
  }
  // That last: it is what tells that the others are leftovers.
  paths.push_back(fmt::format("{}/{}", directory, kRestoringDirectory));
  for (const fs::path& path : paths) {
    if (!error) fs::remove_all(path, error);
  }
  if (!error) return {};
  return IoError(fmt::format("could not clear \"{}\"", directory), error.value());
}

// Opens what was restored, so that its log is seen to be read, and makes it another store.
Status MakeOwnStore(const std::string& directory) {
  RocksOptions options;
  options.directory = directory;
  CELLAR_TRY_ASSIGN(OpenedStorage opened,
                    OpenRocksStorage(options, /*create=*/false, /*read_only=*/false));
  if (opened.header == nullptr) return CorruptionError("the backup has lost its header record");
  CELLAR_TRY(WriteStoreHeader(opened.storage.get(), NewStoreHeader()));
  CELLAR_TRY(KeepLogEnd(opened.storage.get(), 0));
  return opened.storage->Close();
}

// From `restoring` to where a store lies. RocksDB's CURRENT comes last: without it there is none.
Status MoveIntoPlace(const std::string& directory) {
  constexpr std::string_view kCurrent = "CURRENT";
  const std::string from = fmt::format("{}/{}", directory, kRestoringDirectory);
  std::error_code error;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    const std::string name = entry.path().filename();
    if (name != kCurrent && entry.is_regular_file()) names.push_back(name);
  }
  for (const std::string& name : names) {
    if (!error) fs::rename(fs::path(from) / name, fs::path(directory) / name, error);
  }
  if (error) return IoError(fmt::format("could not write \"{}\"", directory), error.value());
  CELLAR_TRY(SyncDirectory(directory));
  fs::rename(fs::path(from) / kCurrent, fs::path(directory) / kCurrent, error);
  if (error) return IoError(fmt::format("could not write \"{}\"", directory), error.value());
  CELLAR_TRY(WriteMarker(directory, /*made=*/true));
  fs::remove_all(from, error);
  return SyncDirectory(directory);
}

}  // namespace

Result<kv::BackupInfo> RestoreBackup(const RestoreRequest& request) {
  const std::unique_ptr<rocksdb::Env> env = MakePrivateEnv(request.fault, nullptr);
  ReadProgress progress(request.progress);
  CELLAR_TRY_ASSIGN(Reader reader, OpenReader(request.from, env.get(), progress.Hook()));
  CELLAR_TRY_ASSIGN(const rocksdb::BackupInfo info,
                    FindBackup(reader, request.from, request.number));
  CELLAR_TRY(CheckIsApart(request.from, request.directory));
  const bool made = ::access(request.directory.c_str(), F_OK) != 0;
  CELLAR_TRY(PrepareTarget(request.directory));
  std::unique_ptr<DirectoryLock> lock;
  CELLAR_TRY_ASSIGN(lock, DirectoryLock::Take(request.directory));
  const auto restore = [&]() -> Status {
    CELLAR_TRY(ClearTarget(request.directory));
    if (::chmod(request.directory.c_str(), 0700) != 0) {
      return IoError(fmt::format("could not make \"{}\" private", request.directory), errno);
    }
    const std::string within = fmt::format("{}/{}", request.directory, kRestoringDirectory);
    if (::mkdir(within.c_str(), 0700) != 0) {
      return IoError(fmt::format("could not make directory \"{}\"", within), errno);
    }
    CELLAR_TRY(SyncDirectory(request.directory));
    progress.Begin(info);
    CELLAR_TRY(FromBackup(reader.engine->RestoreDBFromBackup(info.backup_id, within, within),
                          kCouldNotRestore));
    CELLAR_TRY(MakeOwnStore(within));
    return MoveIntoPlace(request.directory);
  };
  if (Status status = restore(); !status.ok()) {
    reader.engine.reset();  // its threads may be copying still
    std::error_code error;
    if (fs::exists(fs::path(request.directory) / "CURRENT", error)) return status;
    if (ClearTarget(request.directory).ok()) {
      fs::remove(fs::path(request.directory) / kLockFile, error);
      if (made) fs::remove(request.directory, error);
    }
    return status;
  }
  return Describe(info);
}

}  // namespace cellar::engines
