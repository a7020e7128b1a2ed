// `cellar backup`: backups made, listed, verified, restored and removed.
#include "cellar/store/backup.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "cellar/cli/backup_into.h"
#include "cellar/cli/commands.h"
#include "cellar/cli/error_text.h"
#include "cellar/cli/result_printer.h"
#include "cellar/store/database_backup.h"

namespace cellar::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kOnTerminal{100}, kInLog{1000};

std::string Megabytes(uint64_t bytes) {
  constexpr double kMegabyte = 1e6;
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / kMegabyte);
}

std::string TimeText(int64_t unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  char text[64] = "";
  if (::gmtime_r(&time, &parts) != nullptr) {
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S+00", &parts);
  }
  return text;
}

// One line on a terminal, rewritten ten times a second; elsewhere a line each second.
class Progress {
 public:
  // "copied 1 MB of 2 MB": `did` and `of`.
  Progress(const BackupCommand& command, const char* did, const char* of)
      : did_(did),
        of_(of),
        terminal_(::isatty(STDERR_FILENO) == 1),
        shown_(!command.quiet && (terminal_ || command.progress)) {}
  ~Progress() {
    if (drawn_ && terminal_) fmt::print(stderr, "\r\x1b[K");
  }
  void Update(const kv::BackupProgress& progress) {
    const Clock::time_point now = Clock::now();
    if (!shown_ || now - last_ < (terminal_ ? kOnTerminal : kInLog)) return;
    last_ = now;
    drawn_ = true;
    fmt::print(stderr, "{}{} {} {} {}{}", terminal_ ? "\r" : "", did_,
               Megabytes(progress.copied_bytes), of_, Megabytes(progress.total_bytes),
               terminal_ ? "\x1b[K" : "\n");
    std::fflush(stderr);
  }

  // For as long as this lives.
  store::OnBackupProgress Hook() {
    return [this](const kv::BackupProgress& now) { Update(now); };
  }

 private:
  const char* const did_;
  const char* const of_;
  const bool terminal_, shown_;
  bool drawn_ = false;
  Clock::time_point last_;
};

Status Create(const BackupCommand& command, std::string* report) {
  const Clock::time_point start = Clock::now();
  kv::BackupInfo info;
  if (!command.url.empty()) {
    CELLAR_TRY_ASSIGN(info, BackupByServer(command));
  } else {
    store::StoreOptions store = command.store;
    store.create_if_missing = false;
    store.run_jobs = false;
    Progress progress(command, "copied", "of at most");
    kv::BackupOptions options;
    options.directory = command.directory;
    options.keep = command.keep;
    options.progress = progress.Hook();
    if (command.database.empty()) {
      CELLAR_TRY_ASSIGN(const std::unique_ptr<kv::Engine> engine, store::OpenEngine(store));
      CELLAR_TRY_ASSIGN(info, engine->Backup(options));
      CELLAR_TRY(engine->Close());
    } else {
      CELLAR_TRY_ASSIGN(const std::unique_ptr<session::Database> database,
                        store::OpenDatabase(store));
      CELLAR_TRY_ASSIGN(
          info, store::BackupDatabase(database.get(), store.directory,
                                      session::SessionOptions().user, command.database, options));
      database->BeginShutdown();
      CELLAR_TRY(database->engine()->Close());
    }
  }
  *report =
      fmt::format("backup {} in \"{}\": {} files, {}, of which {} are new; {:.2f} s\n", info.number,
                  command.directory, info.files, Megabytes(info.bytes), Megabytes(info.added_bytes),
                  std::chrono::duration<double>(Clock::now() - start).count());
  return Status();
}

Status List(const BackupCommand& command) {
  CELLAR_TRY_ASSIGN(const std::vector<kv::BackupInfo> backups,
                    store::ListBackups(command.directory));
  const Type text = MakeType(TypeId::kText), number = MakeType(TypeId::kInt8);
  const session::ResultColumn columns[] = {{"backup", number}, {"time", text},  {"files", number},
                                           {"bytes", number},  {"new", number}, {"change", number},
                                           {"made_by", text},  {"state", text}};
  PrintStyle style;
  style.mode = command.mode;
  style.null_text = "";
  ResultPrinter printer(
      style, 0, [](std::string_view out) { std::fwrite(out.data(), 1, out.size(), stdout); });
  printer.Begin(columns);
  for (const kv::BackupInfo& info : backups) {
    const std::string cells[] = {std::to_string(info.number),
                                 TimeText(info.unix_seconds),
                                 std::to_string(info.files),
                                 std::to_string(info.bytes),
                                 std::to_string(info.added_bytes),
                                 std::to_string(info.change),
                                 info.program,
                                 "whole"};
    const std::string damaged = "damaged";
    const std::string* row[std::size(cells)] = {};
    for (size_t i = 0; i < std::size(cells); ++i) {
      if (!info.damaged) row[i] = &cells[i];
    }
    if (info.damaged) {
      row[0] = &cells[0];
      row[std::size(cells) - 1] = &damaged;
    }
    printer.AddRow(row);
  }
  printer.End();
  return Status();
}

Status Verify(const BackupCommand& command, bool* damaged) {
  CELLAR_TRY_ASSIGN(std::vector<kv::BackupInfo> backups, store::ListBackups(command.directory));
  if (command.number != 0) {
    backups.resize(1);
    backups[0].number = command.number;
  }
  for (const kv::BackupInfo& info : backups) {
    Status status;
    {
      Progress progress(command, "read", "of");
      status = store::VerifyBackup(command.directory, info.number, progress.Hook());
    }
    if (status.ok()) {
      fmt::print("backup {}: whole\n", info.number);
    } else if (status.code() == Code::kCorruption) {
      *damaged = true;
      fmt::print("backup {}: DAMAGED: {}\n", info.number, status.message());
    } else {
      return status;
    }
    std::fflush(stdout);
  }
  if (backups.empty()) fmt::print("there are no backups\n");
  return Status();
}

Status Restore(const BackupCommand& command, std::string* report) {
  const Clock::time_point start = Clock::now();
  if (!command.database.empty() || !command.table.empty()) {
    CELLAR_TRY(RestoreInto(command));
    *report =
        fmt::format("{} \"{}\" restored; {:.2f} s\n", command.table.empty() ? "database" : "table",
                    command.table.empty() ? command.database : command.table,
                    std::chrono::duration<double>(Clock::now() - start).count());
    return Status();
  }
  kv::BackupInfo info;
  {
    Progress progress(command, "restored", "of");
    CELLAR_TRY_ASSIGN(info, store::RestoreBackup(command.directory, command.number,
                                                 command.store.directory, progress.Hook()));
  }
  *report = fmt::format("store \"{}\" is as it was at {}: backup {}, {}; {:.2f} s\n",
                        command.store.directory, TimeText(info.unix_seconds), info.number,
                        Megabytes(info.bytes),
                        std::chrono::duration<double>(Clock::now() - start).count());
  return Status();
}

Status Prune(const BackupCommand& command, std::string* report) {
  CELLAR_TRY_ASSIGN(const std::vector<uint32_t> removed,
                    store::PruneBackups(command.directory, command.keep));
  for (const uint32_t number : removed) *report += fmt::format("backup {} removed\n", number);
  if (removed.empty()) *report = "nothing to remove\n";
  return Status();
}

int Finish(const BackupCommand& command, const Status& status, const std::string& report = "") {
  if (!status.ok()) {
    std::fflush(stdout);
    fmt::print(stderr, "{}", PlainErrorText(status));
    return 1;
  }
  if (!command.quiet) fmt::print("{}", report);
  return 0;
}

}  // namespace

int RunBackupCreate(const BackupCommand& command) {
  std::string report;
  const Status status = Create(command, &report);
  return Finish(command, status, report);
}

int RunBackupList(const BackupCommand& command) { return Finish(command, List(command)); }

int RunBackupVerify(const BackupCommand& command) {
  bool damaged = false;
  const int code = Finish(command, Verify(command, &damaged));
  return damaged ? 1 : code;
}

int RunBackupRestore(const BackupCommand& command) {
  std::string report;
  const Status status = Restore(command, &report);
  return Finish(command, status, report);
}

int RunBackupPrune(const BackupCommand& command) {
  std::string report;
  const Status status = Prune(command, &report);
  return Finish(command, status, report);
}

}  // namespace cellar::cli
