// The program's commands. Each returns the process's exit code and writes errors to stderr.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cellar/store/open.h"

namespace cellar::cli {

enum class OutputMode : uint8_t { kAligned, kCsv, kJson };

struct SqlOptions {
  store::StoreOptions store;
  std::string database = "cellar", user = "cellar";
  struct Input {
    bool is_file = false;  // text is a path, "-" for standard input
    std::string text;
  };
  std::vector<Input> inputs;  // empty: standard input, interactive on a terminal
  OutputMode mode = OutputMode::kAligned;
  bool expanded = false, tuples_only = false, quiet = false;
  bool stop_on_error = false;
  std::string output_file;  // empty: stdout
};
// 0 all went well, 1 a fatal error or a failed -c, 3 a script stopped at an error.
int RunSql(const SqlOptions& options);

struct ImportOptions {
  store::StoreOptions store;
  std::string database = "cellar";
  std::string file, table;  // "-": standard input; a table may be written schema.name
  char delimiter = 0;       // 0: tab for .tsv, comma otherwise
  std::string null_text;
  enum class Header : uint8_t { kDetect, kYes, kNo } header = Header::kDetect;
  bool create = false;
  bool quiet = false;
};
int RunImport(const ImportOptions& options);

// Every key of a store, decoded. 0, or 1 when some do not read.
int RunKeys(const store::StoreOptions& store, const std::string& table, uint64_t limit,
            bool bounds);

struct BackupCommand {
  store::StoreOptions store;  // create: of which; restore: into which
  std::string url;            // the store of this server instead
  std::string database, as;   // this one alone; restore: under another name
  std::string table;          // restore: this one alone: database.schema.table
  std::string directory;      // of the backups
  uint32_t number = 0;        // 0: the newest; verify: all
  uint32_t keep = 0;          // create: 0 keeps all
  bool progress = false, quiet = false;
  OutputMode mode = OutputMode::kAligned;
};
// 1 on an error, and when verify finds damage.
int RunBackupCreate(const BackupCommand& command);
int RunBackupList(const BackupCommand& command);
int RunBackupVerify(const BackupCommand& command);
int RunBackupRestore(const BackupCommand& command);
int RunBackupPrune(const BackupCommand& command);

struct DumpCommand {
  store::StoreOptions store;  // or, with store.backup set, a directory of backups
  std::string database;       // empty: all of them, and the roles
  std::string table;
  bool schema_only = false, data_only = false, csv = false;
  bool no_owner = false, no_privileges = false;
  std::string to;  // a file, of CSV a directory; empty: standard output
};
int RunDump(const DumpCommand& command);

struct CheckCommand {
  bool fast = false, full = false, repair = false;
};

// Every index of every table against its rows, and the catalog against itself; or mends what it
// finds. 1 on findings, or when some are left.
int RunCheck(const store::StoreOptions& store, const CheckCommand& command);

}  // namespace cellar::cli
