// The program: its commands and their options.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cellar/cli/commands.h"
#include "cellar/cli/error_text.h"
#include "cellar/monitor/log.h"
#include "cellar/server/server.h"

namespace cellar::cli {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

void AddStore(CLI::App* command, store::StoreOptions* store) {
  command->add_option("--store", store->directory, "directory of the store")
      ->required()
      ->envname("CELLAR_STORE");
}

// Of commands that go on with what a store has left to do.
void AddJobs(CLI::App* command, store::StoreOptions* store) {
  command->add_flag_callback(
      "--no-jobs", [store] { store->run_jobs = false; },
      "leave long schema changes (SHOW JOBS) as they are, and make no new ones");
}

void AddCache(CLI::App* command, store::StoreOptions* store) {
  command->add_option_function<size_t>(
      "--cache-mb", [store](size_t megabytes) { store->cache_bytes = megabytes * kMegabyte; },
      "block cache; by default a quarter of memory, at most 256 MB");
  command->add_option_function<size_t>(
      "--work-mem-mb",
      [store](size_t megabytes) { store->statement_memory_bytes = megabytes * kMegabyte; },
      "memory of one sort, hash or buffer: what work_mem begins with; default 256");
  command->add_option_function<size_t>(
      "--statement-mb",
      [store](size_t megabytes) { store->statement_limit_bytes = megabytes * kMegabyte; },
      "memory of one statement, and half of that of a session; default eight times --work-mem-mb, "
      "at least 512, at most a quarter of --memory-mb");
  command->add_option_function<size_t>(
      "--memory-mb",
      [store](size_t megabytes) { store->process_limit_bytes = megabytes * kMegabyte; },
      "memory of the process, block cache and memtables among it; default three quarters of what "
      "the machine or its control group has, and half of a limited address space");
  command->add_flag_callback(
      "--no-sync", [store] { store->durable_commits = false; },
      "commits do not wait for the disk: a crash may lose the latest ones");
  command->add_flag_callback(
      "--accept-log-damage",
      [store] {
        store->accept_log_damage = true;
        store->lost = [](std::string_view message) { fmt::print(stderr, "cellar: {}\n", message); };
      },
      "open a store whose log is damaged, cut off or missing: commits that only it held are lost");
}

struct ServeCommand {
  server::ServeOptions options;
  std::string listen = "127.0.0.1:5433";
  std::string http, grpc;
  bool require_password = false;  // says what is so anyway, and keeps --trust-local out

  void Add(CLI::App* app) {
    CLI::App* command = app->add_subcommand("serve", "serve a store to PostgreSQL clients");
    AddStore(command, &options.store);
    AddCache(command, &options.store);
    AddJobs(command, &options.store);
    command->add_option("--listen", listen, "HOST:PORT; port 0 picks a free one")
        ->capture_default_str();
    command->add_option("--grpc", grpc, "HOST:PORT of the table API over gRPC; default: none");
    command
        ->add_option("--grpc-client-ca", options.grpc_client_ca,
                     "PEM: who signs the certificates that gRPC clients must show")
        ->check(CLI::ExistingFile);
    command->add_option("--http", http,
                        "HOST:PORT of /metrics, /healthz and /readyz; default: none");
    command
        ->add_option_function<std::string>(
            "--log-format",
            [](const std::string& format) {
              monitor::SetLogFormat(format == "json" ? monitor::LogFormat::kJson
                                                     : monitor::LogFormat::kText);
            },
            "lines on standard error as text (default) or json")
        ->check(CLI::IsMember({"text", "json"}));
    command->add_option("--max-connections", options.max_connections, "sessions at once")
        ->capture_default_str()
        ->check(CLI::Range(1, 100000));
    command
        ->add_option("--superuser-reserved-connections", options.superuser_reserved_connections,
                     "of these, kept for superusers")
        ->capture_default_str()
        ->check(CLI::Range(0, 100000));
    command
        ->add_option("--default-isolation", options.store.client_isolation,
                     "default_transaction_isolation of PostgreSQL's clients")
        ->capture_default_str()
        ->check(CLI::IsMember({"read committed", "repeatable read", "serializable"}));
    CLI::Option* certificate =
        command->add_option("--tls-cert", options.tls_certificate, "certificate chain, PEM")
            ->check(CLI::ExistingFile);
    CLI::Option* key = command->add_option("--tls-key", options.tls_key, "its private key, PEM")
                           ->check(CLI::ExistingFile);
    certificate->needs(key);
    key->needs(certificate);
    command->add_flag("--tls-self-signed", options.tls_self_signed, "make a certificate now")
        ->excludes(certificate);
    CLI::Option* trust = command->add_flag(
        "--trust-local", options.trust_local,
        "let roles without a password in from this machine, without making one for the superuser");
    command
        ->add_flag("--require-password", require_password,
                   "ask everybody for a password, which is what happens without --trust-local")
        ->excludes(trust);
    command->add_flag("--allow-plaintext", options.allow_plaintext,
                      "let other machines connect without TLS");
    command
        ->add_option("--hba", options.hba_file,
                     "rules of who may connect, as pg_hba.conf; default: hba.conf in the store")
        ->check(CLI::ExistingFile)
        ->excludes(trust);
    command
        ->add_option(
            "--copy-directory", options.copy_directories,
            "COPY and BACKUP may read and write in and below it; may be repeated; default: none")
        ->check(CLI::ExistingDirectory)
        ->allow_extra_args(false);
    command->final_callback([this] { code = Run(); });
  }
  int Run() {
    Status status = Address(listen, &options.host, &options.port);
    if (status.ok() && !grpc.empty()) {
      status = Address(grpc, &options.grpc_host, &options.grpc_port);
    }
    if (status.ok() && !http.empty())
      status = Address(http, &options.http_host, &options.http_port);
    if (status.ok()) {
      status = server::Serve(options, [](const std::string& url) {
        fmt::print("ready {}\n", url);
        std::fflush(stdout);
      });
    }
    if (status.ok()) return 0;
    fmt::print(stderr, "{}", PlainErrorText(status));
    return 1;
  }
  static Status Address(const std::string& text, std::string* host, uint16_t* port) {
    CELLAR_TRY_ASSIGN(std::tie(*host, *port), server::ParseListenAddress(text));
    return Status();
  }
  int code = 0;
};

struct SqlCommand {
  SqlOptions options;
  std::vector<std::string> commands, files, variables;

  void Add(CLI::App* app) {
    CLI::App* command = app->add_subcommand("sql", "a shell on a store of this machine");
    AddStore(command, &options.store);
    AddCache(command, &options.store);
    AddJobs(command, &options.store);
    command->add_option("-d,--database", options.database, "database")->capture_default_str();
    command->add_option("-U,--user", options.user, "role")->capture_default_str();
    CLI::Option* c =
        command->add_option("-c,--command", commands, "run this and exit; may be repeated")
            ->allow_extra_args(false);
    CLI::Option* f = command->add_option("-f,--file", files, "run this file and exit; - is stdin")
                         ->allow_extra_args(false);
    command->add_flag_callback(
        "--csv", [this] { options.mode = OutputMode::kCsv; }, "CSV output");
    command->add_flag_callback(
        "--json", [this] { options.mode = OutputMode::kJson; },
        "a JSON array of objects per result");
    command->add_flag_callback(
        "--aligned", [this] { options.mode = OutputMode::kAligned; },
        "tables for the eye (default)");
    command->add_flag("-x,--expanded", options.expanded, "a line per value");
    command->add_flag("-t,--tuples-only", options.tuples_only, "rows only");
    command->add_flag("-q,--quiet", options.quiet, "no command tags");
    command->add_option("-o,--output", options.output_file, "write results to this file");
    command->add_option("-v,--set", variables, "NAME=VALUE; ON_ERROR_STOP=1 ends at an error")
        ->allow_extra_args(false);
    command->final_callback([this, command, c, f] {
      size_t next_command = 0, next_file = 0;
      for (const CLI::Option* option : command->parse_order()) {
        if (option == c) options.inputs.push_back({false, commands[next_command++]});
        if (option == f) options.inputs.push_back({true, files[next_file++]});
      }
      for (const std::string& variable : variables) {
        if (variable.substr(0, 13) == "ON_ERROR_STOP") {
          const std::string value = variable.size() > 14 ? variable.substr(14) : "1";
          options.stop_on_error = value != "0" && value != "off" && value != "false";
        }
      }
      code = RunSql(options);
    });
  }
  int code = 0;
};

struct ImportCommand {
  ImportOptions options;
  std::string delimiter;
  bool header = false, no_header = false;

  void Add(CLI::App* app) {
    CLI::App* command = app->add_subcommand("import", "load a CSV file into a table");
    AddStore(command, &options.store);
    AddCache(command, &options.store);
    command->add_option("file", options.file, "CSV file; - is stdin")->required();
    command->add_option("--table", options.table, "table, or schema.table")->required();
    command->add_option("-d,--database", options.database, "database")->capture_default_str();
    command->add_flag("--create", options.create, "make the table, with types that fit the file");
    CLI::Option* with = command->add_flag("--header", header, "the first line names the columns");
    command->add_flag("--no-header", no_header, "the first line is a row")->excludes(with);
    command->add_option("--delimiter", delimiter, "one character; default a comma (.tsv: a tab)");
    command->add_option("--null", options.null_text,
                        "what stands for NULL, unquoted; default nothing");
    command->add_flag("-q,--quiet", options.quiet, "no progress, no summary");
    command->final_callback([this] {
      if (header) options.header = ImportOptions::Header::kYes;
      if (no_header) options.header = ImportOptions::Header::kNo;
      if (delimiter == "\\t" || delimiter == "tab") delimiter = "\t";
      if (delimiter.size() > 1) {
        fmt::print(stderr, "cellar: the delimiter must be one character\n");
        code = 1;
        return;
      }
      options.delimiter = delimiter.empty() ? '\0' : delimiter[0];
      code = RunImport(options);
    });
  }
  int code = 0;
};

struct BackupCommands {
  BackupCommand options;
  int code = 0;

  void Add(CLI::App* app) {
    CLI::App* backup = app->add_subcommand("backup", "backups of a store, and stores of backups");
    backup->require_subcommand(1);
    CLI::App* create = Sub(backup, "create", "add a backup; writers may go on", &RunBackupCreate);
    AddStoreOrUrl(create);
    create->add_option("--to", options.directory, "directory of this store's backups")->required();
    create->add_option("--database", options.database, "only this database");
    create->add_option("--keep", options.keep, "afterwards, remove all but this many")
        ->check(CLI::PositiveNumber);
    AddProgress(create);
    create->add_flag("-q,--quiet", options.quiet, "no progress, no summary");

    CLI::App* list = Sub(backup, "list", "show the backups of a directory", &RunBackupList);
    AddFrom(list);
    list->add_flag_callback(
        "--csv", [this] { options.mode = OutputMode::kCsv; }, "CSV output");
    list->add_flag_callback(
        "--json", [this] { options.mode = OutputMode::kJson; }, "a JSON array of objects");

    CLI::App* verify =
        Sub(backup, "verify", "read backups and compare checksums; 1 on damage", &RunBackupVerify);
    AddFrom(verify);
    AddNumber(verify, "only this one; default: all");
    AddProgress(verify);

    CLI::App* restore = Sub(backup, "restore", "make a store of a backup", &RunBackupRestore);
    AddFrom(restore);
    AddNumber(restore, "which; default: the newest");
    AddStoreOrUrl(restore);
    CLI::Option* database = restore->add_option("--database", options.database,
                                                "only this database, into a store that is there");
    CLI::Option* table =
        restore->add_option("--table", options.table,
                            "only this table, into a store that is there: database.schema.table");
    table->excludes(database);
    restore->add_option("--as", options.as, "the database that it goes to; default: of its name");
    AddProgress(restore)->excludes(database)->excludes(table);
    restore->add_flag("-q,--quiet", options.quiet, "no progress, no summary");

    CLI::App* prune = Sub(backup, "prune", "remove old backups", &RunBackupPrune);
    AddFrom(prune);
    prune->add_option("--keep", options.keep, "so many of the newest stay")
        ->required()
        ->check(CLI::PositiveNumber);
    prune->add_flag("-q,--quiet", options.quiet, "no summary");
  }

 private:
  CLI::App* Sub(CLI::App* backup, const char* name, const char* text,
                int (*run)(const BackupCommand&)) {
    CLI::App* command = backup->add_subcommand(name, text);
    command->final_callback([this, command, run] {
      const std::string missing = Missing(*command);
      if (missing.empty()) {
        code = run(options);
      } else {
        fmt::print(stderr, "cellar: {}\n", missing);
        code = 2;
      }
    });
    return command;
  }
  std::string Missing(const CLI::App& command) const {
    const std::string name = command.get_name();
    if (name != "create" && name != "restore") return "";
    if (options.store.directory.empty() && options.url.empty()) {
      return "name a store with --store, or a server with --url";
    }
    const bool part = !options.database.empty() || !options.table.empty();
    if (name == "restore" && !options.url.empty() && !part) {
      return "a server has its store open: --url is for --database and --table";
    }
    if (!options.as.empty() && !part) return "--as goes with --database or --table";
    return "";
  }
  void AddStoreOrUrl(CLI::App* command) {
    CLI::Option* store =
        command->add_option("--store", options.store.directory, "directory of the store")
            ->envname("CELLAR_STORE");
    command
        ->add_option("--url", options.url,
                     "instead: of the server that has the store open, postgresql://..")
        ->excludes(store);
  }
  CLI::Option* AddProgress(CLI::App* command) {
    return command->add_flag("--progress", options.progress,
                             "tell of the progress, on standard error; so it is on a terminal");
  }
  void AddFrom(CLI::App* command) {
    command->add_option("--from", options.directory, "directory of the backups")->required();
  }
  void AddNumber(CLI::App* command, const char* text) {
    command->add_option("--backup", options.number, text)->check(CLI::PositiveNumber);
  }
};

struct DumpCommands {
  DumpCommand options;
  std::string store, from;
  uint32_t number = 0;
  int code = 0;

  void Add(CLI::App* app) {
    CLI::App* command = app->add_subcommand("dump", "a store, or a part of it, as SQL or CSV");
    CLI::Option* of_store =
        command->add_option("--store", store, "directory of the store")->envname("CELLAR_STORE");
    CLI::Option* of_backup =
        command->add_option("--from", from, "directory of backups, to dump one of them");
    of_backup->excludes(of_store);
    command->add_option("--backup", number, "which; default: the newest")
        ->check(CLI::PositiveNumber)
        ->needs(of_backup);
    command->add_option("-d,--database", options.database,
                        "only this one; default: all, and roles");
    command->add_option("--table", options.table, "only this one: table, or schema.table");
    CLI::Option* schema =
        command->add_flag("--schema-only", options.schema_only, "definitions without rows");
    command->add_flag("--data-only", options.data_only, "rows without definitions")
        ->excludes(schema);
    command->add_flag("--no-owner", options.no_owner, "leave out who owns what");
    command->add_flag("--no-privileges", options.no_privileges, "leave out GRANT and REVOKE");
    command
        ->add_option_function<std::string>(
            "--format", [this](const std::string& name) { options.csv = name == "csv"; },
            "sql (default), or csv: a file for each table")
        ->check(CLI::IsMember({"sql", "csv"}));
    command->add_option("--to", options.to, "file, of CSV a new directory; default: output");
    command->final_callback([this] {
      options.store.directory = from.empty() ? store : from;
      if (!from.empty()) options.store.backup = number;
      if (options.store.directory.empty()) {
        fmt::print(stderr, "cellar: name a store with --store, or backups with --from\n");
        code = 2;
        return;
      }
      code = RunDump(options);
    });
  }
};

int Main(int argc, char** argv) {
  CLI::App app("Cellar: SQL tables in an ordered key-value store", "cellar");
  app.require_subcommand(1);
  app.set_version_flag("--version", "cellar " CELLAR_VERSION);
  ServeCommand serve;
  SqlCommand sql;
  ImportCommand import;
  BackupCommands backup;
  DumpCommands dump;
  serve.Add(&app);
  sql.Add(&app);
  import.Add(&app);
  backup.Add(&app);
  dump.Add(&app);
  int code = 0;
  store::StoreOptions store;
  std::string table;
  uint64_t limit = 0;
  bool bounds = false;
  CLI::App* keys = app.add_subcommand("keys", "print every key of a store, decoded");
  AddStore(keys, &store);
  keys->add_option("--table", table, "only this table: its name, or its path /database/table");
  keys->add_option("--limit", limit, "at most this many");
  keys->add_flag("--bounds", bounds, "least and greatest values of columns in pages, too");
  keys->final_callback([&] { code = RunKeys(store, table, limit, bounds); });
  CLI::App* check = app.add_subcommand(
      "check", "compare every index with its table, and the catalog with itself");
  AddStore(check, &store);
  CheckCommand how;
  CLI::Option* fast = check->add_flag("--fast", how.fast, "by counts and sums alone");
  check->add_flag("--full", how.full, "entry by entry, and every key decoded")->excludes(fast);
  check->add_flag("--repair", how.repair, "rebuild indexes that differ, mend names of the catalog");
  check->final_callback([&] { code = RunCheck(store, how); });
  app.add_subcommand("version", "print the version")->final_callback([] {
    fmt::print("cellar {}\n{}\n", CELLAR_VERSION, CELLAR_LIBRARIES);
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    constexpr int kWrongUsage = 2;
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  return code | serve.code | sql.code | import.code | backup.code | dump.code;
}

}  // namespace
}  // namespace cellar::cli

int main(int argc, char** argv) { return cellar::cli::Main(argc, argv); }
