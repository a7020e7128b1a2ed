// What each layout of rows costs, beside SQLite, in one run: scans of some and of all columns,
// point reads, updates of one column, inserts, size, of tables of ten and of fifty columns. Prints
// two tables in Markdown, of CPU time of the process: medians of repetitions that take all stores
// in turn.
//
//   bench_layouts --dir DIR [--rows N] [--seconds S] [--repetitions R]
//
// DIR must not exist; it is deleted at the end.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cellar_sink.h"
#include "bench/store.h"
#include "cellar/store/open.h"

namespace cellar::bench {

namespace {

constexpr size_t kCacheBytes = size_t{256} << 20;
constexpr int kRowsOfCommit = 1000;
constexpr int kWideCopies = 5, kWideShare = 5;
constexpr int kTimeColumn = 2;

struct Options {
  std::string directory;
  int64_t rows = 200000;
  double seconds = 0.5;
  int repetitions = 5;
};

std::string ColumnName(int at) {
  static constexpr const char* kNames[kColumns] = {"id",   "k",   "\"at\"", "price", "name",
                                                   "kind", "qty", "flag",   "note",  "code"};
  return at < kColumns ? kNames[at]
                       : fmt::format("{}_{}", kNames[at % kColumns], at / kColumns + 1);
}

std::vector<std::string> Fields(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    const size_t end = std::min(line.find(','), line.size());
    fields.emplace_back(line.substr(0, end));
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

// One table in one store, and a connection to it. Statements have one parameter, a bigint, or none.
class Table {
 public:
  virtual ~Table() = default;
  virtual void Prepare(const std::string& name, const std::string& text) = 0;
  // Answers how many rows there were, each value of which it has looked at.
  virtual int64_t Run(const std::string& name, const int64_t* parameter = nullptr) = 0;
  virtual void Insert(const std::vector<std::string>& fields) = 0;
  virtual void Load(const std::string& csv) = 0;
  // Of a table as it was loaded, at its smallest.
  virtual uint64_t Bytes() = 0;
};

class CellarTable : public Table {
 public:
  CellarTable(const std::string& directory, const Shape& shape, std::string_view layout)
      : directory_(directory), shape_(shape) {
    store::StoreOptions options;
    options.directory = directory;
    options.cache_bytes = kCacheBytes;
    database_ = Check(store::OpenDatabase(options));
    session_ = Check(session::Session::Open(database_.get(), {}));
    const Sql sql = MakeSql(shape, Dialect::kPostgres);
    std::string create = sql.create_table;
    if (layout == "groups") {
      // What changes all the time, what is long, and the rest.
      std::string hot, texts;
      for (int i = 0; i < shape.copies * kColumns; ++i) {
        const int kind = i % kColumns;
        if (kind == 6) hot += (hot.empty() ? "" : ", ") + ColumnName(i);
        if (kind == 4 || kind == 5 || kind == 8)
          texts += (texts.empty() ? "" : ", ") + ColumnName(i);
      }
      create.insert(create.rfind(')'),
                    fmt::format(", GROUP hot ({}), GROUP texts ({})", hot, texts));
    } else {
      create += fmt::format(" WITH (layout = {})", layout);
    }
    Execute(create);
    Execute("SET synchronous_commit = off");
    Prepare("insert", sql.insert);
  }
  void Prepare(const std::string& name, const std::string& text) override {
    Check(session_->Parse(name, text, {}, &sink_));
  }
  int64_t Run(const std::string& name, const int64_t* parameter) override {
    std::string text;
    std::vector<session::BoundParameter> bound;
    if (parameter != nullptr) {
      text = fmt::format("{}", *parameter);
      bound.push_back({false, false, text});
    }
    return RunBound(name, bound);
  }
  void Insert(const std::vector<std::string>& fields) override {
    std::vector<session::BoundParameter> bound;
    for (const std::string& field : fields) bound.push_back({field.empty(), false, field});
    RunBound("insert", bound);
  }
  void Load(const std::string& csv) override {
    sink_.copy = std::fopen(csv.c_str(), "rb");
    if (sink_.copy == nullptr) Die("cannot read " + csv);
    Execute("COPY " + shape_.table + " FROM STDIN (FORMAT csv)");
    std::fclose(sink_.copy);
    Execute("VACUUM ANALYZE " + shape_.table);
    Check(database_->engine()->Compact("", "\xff"));
  }
  uint64_t Bytes() override { return BytesInDirectory(directory_); }

 private:
  void Execute(std::string_view text) { Check(session_->ExecuteSimple(text, &sink_)); }
  int64_t RunBound(const std::string& name, const std::vector<session::BoundParameter>& bound) {
    sink_.rows = 0;
    Check(session_->Bind("", name, bound));
    Check(session_->ExecutePortal("", 0, true, &sink_).status());
    Check(session_->Sync(&sink_));
    return sink_.rows;
  }

  std::string directory_;
  Shape shape_;
  std::unique_ptr<session::Database> database_;
  std::unique_ptr<session::Session> session_;
  Sink sink_;
};

class SqliteTable : public Table {
 public:
  SqliteTable(const std::string& directory, const Shape& shape)
      : directory_(directory), shape_(shape) {
    std::filesystem::create_directories(directory);
    Must(sqlite3_open((directory + "/db").c_str(), &db_));
    const Sql sql = MakeSql(shape, Dialect::kSqlite);
    for (const std::string& text :
         {std::string("PRAGMA journal_mode=WAL"), std::string("PRAGMA synchronous=NORMAL"),
          std::string("PRAGMA cache_size=-262144"), sql.create_table}) {
      Execute(text);
    }
    Prepare("insert", sql.insert);
  }
  ~SqliteTable() override {
    for (const auto& [name, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }
  void Prepare(const std::string& name, const std::string& text) override {
    Must(sqlite3_prepare_v3(db_, text.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statements_[name],
                            nullptr));
  }
  int64_t Run(const std::string& name, const int64_t* parameter) override {
    sqlite3_stmt* statement = statements_[name];
    if (parameter != nullptr) Must(sqlite3_bind_int64(statement, 1, *parameter));
    return Step(statement);
  }
  void Insert(const std::vector<std::string>& fields) override {
    sqlite3_stmt* statement = statements_["insert"];
    for (size_t i = 0; i < fields.size(); ++i) {
      const int place = static_cast<int>(i) + 1;
      if (fields[i].empty()) {
        Must(sqlite3_bind_null(statement, place));
      } else if (i % kColumns == kTimeColumn) {
        Must(sqlite3_bind_int64(statement, place, ParseTimestamp(fields[i].c_str())));
      } else if (i % kColumns == 7) {
        Must(sqlite3_bind_int64(statement, place, fields[i][0] == 't' ? 1 : 0));
      } else {
        Must(sqlite3_bind_text(statement, place, fields[i].data(),
                               static_cast<int>(fields[i].size()), SQLITE_STATIC));
      }
    }
    Step(statement);
  }
  void Load(const std::string& csv) override {
    const std::string text = ReadFile(csv);
    Execute("BEGIN");
    for (std::string_view rest = text; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      Insert(Fields(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    Execute("COMMIT");
    Execute("VACUUM");
    Execute("PRAGMA wal_checkpoint(TRUNCATE)");
    Execute("ANALYZE");
  }
  uint64_t Bytes() override { return std::filesystem::file_size(directory_ + "/db"); }

 private:
  void Must(int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE) Die(sqlite3_errmsg(db_));
  }
  void Execute(const std::string& text) {
    Must(sqlite3_exec(db_, text.c_str(), nullptr, nullptr, nullptr));
  }
  int64_t Step(sqlite3_stmt* statement) {
    int64_t rows = 0;
    int code = 0;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      ++rows;
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        switch (sqlite3_column_type(statement, i)) {
          case SQLITE_INTEGER: seen_ += sqlite3_column_int64(statement, i); break;
          case SQLITE_FLOAT: sum_ += sqlite3_column_double(statement, i); break;
          case SQLITE_TEXT: seen_ += sqlite3_column_text(statement, i)[0]; break;
          default: break;
        }
      }
    }
    Must(sqlite3_reset(statement));
    Must(code);
    return rows;
  }

  std::string directory_;
  Shape shape_;
  sqlite3* db_ = nullptr;
  std::map<std::string, sqlite3_stmt*> statements_;
  int64_t seen_ = 0;
  double sum_ = 0;
};

struct Workload {
  std::string title, name;
  enum class Kind : uint8_t { kScan, kPoint, kUpdate, kInsert } kind;
};

constexpr const char* kStores[] = {"row", "groups", "pages", "cell", "datum", "SQLite"};

// All stores of one shape, and what was measured of them.
class Comparison {
 public:
  Comparison(const Options& options, const Shape& shape) : options_(options), shape_(shape) {
    const std::string csv = options.directory + "/" + shape.table + ".csv";
    WriteCsv(shape, csv);
    for (const char* store : kStores) {
      fmt::print(stderr, "{} columns: loading {}\n", shape.copies * kColumns, store);
      const std::string directory = fmt::format("{}/{}-{}", options.directory, shape.table, store);
      if (std::string_view(store) == "SQLite")
        tables_.push_back(std::make_unique<SqliteTable>(directory, shape));
      else
        tables_.push_back(std::make_unique<CellarTable>(directory, shape, store));
      tables_.back()->Load(csv);
      bytes_.push_back(tables_.back()->Bytes());
    }
    Prepare();
  }

  void Measure() {
    for (const Workload& workload : workloads_) {
      for (int repetition = 0; repetition <= options_.repetitions; ++repetition) {
        ++seed_;
        for (size_t i = 0; i < tables_.size(); ++i) {
          const double figure = MeasureOne(workload, tables_[i].get());
          // The first one warms caches.
          if (repetition != 0) figures_[workload.name][i].push_back(figure);
        }
      }
      fmt::print(stderr, "{} columns: {}\n", shape_.copies * kColumns, workload.title);
    }
  }

  void Print() {
    fmt::print("| {} rows of {} columns, CPU time |", shape_.rows, shape_.copies * kColumns);
    for (const char* store : kStores) fmt::print(" {} |", store);
    fmt::print("\n|---|");
    for (size_t i = 0; i < tables_.size(); ++i) fmt::print("---|");
    for (const Workload& workload : workloads_) {
      const bool scan = workload.kind == Workload::Kind::kScan;
      fmt::print("\n| {}, {} |", workload.title, scan ? "a row, ns" : "us");
      for (size_t i = 0; i < tables_.size(); ++i) {
        std::vector<double>& values = figures_[workload.name][i];
        std::sort(values.begin(), values.end());
        const double median = values[values.size() / 2] * (scan ? 1e9 : 1e6);
        fmt::print(" {:.{}f} |", median, median < 20 ? 2 : median < 100 ? 1 : 0);
      }
    }
    fmt::print("\n| size, MB |");
    for (const uint64_t bytes : bytes_) fmt::print(" {:.1f} |", static_cast<double>(bytes) / 1e6);
    fmt::print("\n\n");
  }

 private:
  void Add(const std::string& title, Workload::Kind kind, const std::string& text) {
    const std::string name = fmt::format("w{}", workloads_.size());
    workloads_.push_back({title, name, kind});
    if (text.empty()) return;
    for (const auto& table : tables_) table->Prepare(name, text);
  }
  void Prepare() {
    using Kind = Workload::Kind;
    const std::string from = " FROM " + shape_.table;
    const std::string by_id = " WHERE id = $1";
    // Numbers and texts; of wide tables the later copies too.
    static constexpr int kOrder[] = {6, 3, 1, 5, 4};
    std::string list;
    for (size_t i = 0; i < std::size(kOrder); ++i) {
      list += (i == 0 ? "" : ", ") +
              ColumnName(kOrder[i] + static_cast<int>(i) % shape_.copies * kColumns);
      if (i == 0 || i == 1 || i == 4) {
        Add(fmt::format("scan of {} column{}", i + 1, i == 0 ? "" : "s"), Kind::kScan,
            "SELECT " + list + from);
      }
    }
    const int all = shape_.copies * kColumns;
    Add(fmt::format("scan of all {} columns", all), Kind::kScan, "SELECT *" + from);
    Add("point read, all columns", Kind::kPoint, "SELECT *" + from + by_id);
    Add("point read, one column", Kind::kPoint, "SELECT qty" + from + by_id);
    Add("update of one column, 1,000 a commit, a row", Kind::kUpdate,
        "UPDATE " + shape_.table + " SET qty = qty + 1" + by_id);
    Add("insert, 1,000 a commit, a row", Kind::kInsert, "");
    for (const auto& table : tables_) {
      table->Prepare("begin", "BEGIN");
      table->Prepare("commit", "COMMIT");
    }
  }

  // CPU seconds of one row.
  double MeasureOne(const Workload& workload, Table* table) {
    Random random(seed_);
    const double start = CpuSeconds();
    int64_t rows = 0;
    do {
      switch (workload.kind) {
        case Workload::Kind::kScan: {
          const int64_t seen = table->Run(workload.name);
          if (seen != shape_.rows) Die(workload.title + ": rows are missing");
          rows += seen;
          break;
        }
        case Workload::Kind::kPoint:
          for (int i = 0; i < 100; ++i) {
            const int64_t id = random.Below(shape_.rows);
            if (table->Run(workload.name, &id) != 1) Die(workload.title + ": a row is missing");
          }
          rows += 100;
          break;
        case Workload::Kind::kUpdate:
        case Workload::Kind::kInsert:
          table->Run("begin");
          for (int i = 0; i < kRowsOfCommit; ++i) {
            const int64_t id = random.Below(shape_.rows);
            if (workload.kind == Workload::Kind::kUpdate)
              table->Run(workload.name, &id);
            else
              table->Insert(NewRow(table));
          }
          table->Run("commit");
          rows += kRowsOfCommit;
          break;
      }
    } while (CpuSeconds() - start < options_.seconds);
    return (CpuSeconds() - start) / static_cast<double>(rows);
  }
  std::vector<std::string> NewRow(Table* table) {
    const int64_t id = shape_.rows + inserted_[table]++;
    std::string line;
    for (int copy = 0; copy < shape_.copies; ++copy) {
      if (copy != 0) line += ',';
      AppendCsv(MakeRow(id, shape_.rows), &line);
    }
    return Fields(line);
  }

  const Options& options_;
  Shape shape_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<uint64_t> bytes_;
  std::vector<Workload> workloads_;
  std::map<std::string, std::map<size_t, std::vector<double>>> figures_;
  std::map<Table*, int64_t> inserted_;
  uint64_t seed_ = 0;
};

Options ReadOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--dir")
      options.directory = argv[i + 1];
    else if (name == "--rows")
      options.rows = std::atoll(argv[i + 1]);
    else if (name == "--seconds")
      options.seconds = std::atof(argv[i + 1]);
    else if (name == "--repetitions")
      options.repetitions = std::atoi(argv[i + 1]);
    else
      Die(fmt::format("bench_layouts: unknown option {}", name));
  }
  if (options.directory.empty() || options.rows < 1000 || options.repetitions < 1)
    Die("usage: bench_layouts --dir DIR [--rows N] [--seconds S] [--repetitions R]");
  return options;
}

int Run(const Options& options) {
  if (!std::filesystem::create_directories(options.directory))
    Die("bench_layouts: " + options.directory + " is there already");
  for (const Shape& shape :
       {Shape{"rows", options.rows, 1}, Shape{"wide", options.rows / kWideShare, kWideCopies}}) {
    Comparison comparison(options, shape);
    comparison.Measure();
    comparison.Print();
  }
  std::filesystem::remove_all(options.directory);
  return 0;
}

}  // namespace
}  // namespace cellar::bench

int main(int argc, char** argv) {
  return cellar::bench::Run(cellar::bench::ReadOptions(argc, argv));
}
