// SQLite through its C API: prepared statements, a write-ahead log, 256 MiB of cache.
#include <sqlite3.h>

#include <charconv>
#include <cstring>
#include <filesystem>

#include "bench/store.h"

namespace cellar::bench {
namespace {

void Check(sqlite3* db, int code) {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) Die(sqlite3_errmsg(db));
}

class Connection {
 public:
  explicit Connection(const std::string& path) {
    Check(db_, sqlite3_open(path.c_str(), &db_));
    sqlite3_busy_timeout(db_, 60000);
    for (const char* text :
         {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA cache_size=-262144"}) {
      Run(text);
    }
  }
  ~Connection() { sqlite3_close(db_); }
  void Run(const char* text) { Check(db_, sqlite3_exec(db_, text, nullptr, nullptr, nullptr)); }
  sqlite3* get() const { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

class Statement {
 public:
  Statement(const Connection& connection, const std::string& text) : db_(connection.get()) {
    Check(db_, sqlite3_prepare_v3(db_, text.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement_,
                                  nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  void Bind(int at, int64_t value) { Check(db_, sqlite3_bind_int64(statement_, at, value)); }
  void Bind(const Row& row) {
    Bind(1, row.id);
    Bind(2, row.k);
    Bind(3, row.at);
    Check(db_, sqlite3_bind_double(statement_, 4, row.price));
    Text(5, row.name);
    Text(6, row.kind);
    Bind(7, row.qty);
    Bind(8, row.flag ? 1 : 0);
    Text(9, row.note);
    if (row.has_code)
      Bind(10, row.code);
    else
      Check(db_, sqlite3_bind_null(statement_, 10));
  }
  // Values that stand behind each other, each followed by one character, in the order of the
  // table's columns. They stay there until Step. Gives the place behind the line.
  const char* BindCsv(const char* at, int columns) {
    for (int i = 0; i < columns; ++i) {
      const char* end = at;
      while (*end != ',' && *end != '\n') ++end;
      const int place = i + 1;
      switch (i % kColumns) {
        case 2: Bind(place, ParseTimestamp(at)); break;
        case 3: {
          double value = 0;
          std::from_chars(at, end, value);
          Check(db_, sqlite3_bind_double(statement_, place, value));
          break;
        }
        case 4:
        case 5:
        case 8:
          Check(db_, sqlite3_bind_text(statement_, place, at, static_cast<int>(end - at),
                                       SQLITE_STATIC));
          break;
        case 7: Bind(place, *at == 't' ? 1 : 0); break;
        default: {
          int64_t value = 0;
          if (std::from_chars(at, end, value).ptr == at)
            Check(db_, sqlite3_bind_null(statement_, place));
          else
            Bind(place, value);
        }
      }
      at = end + 1;
    }
    return at;
  }
  // False at the end, which also resets the statement.
  bool Step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    sqlite3_reset(statement_);
    Check(db_, code);
    return false;
  }
  sqlite3_stmt* get() const { return statement_; }

 private:
  void Text(int at, const std::string& text) {
    Check(db_, sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()),
                                 SQLITE_STATIC));
  }
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

class SqliteClient : public Client {
 public:
  SqliteClient(const std::string& path, const Shape& shape, const Sql& sql)
      : shape_(shape),
        connection_(path),
        begin_(connection_, "BEGIN"),
        commit_(connection_, "COMMIT"),
        by_id_(connection_, sql.by_id),
        by_k_(connection_, sql.by_k),
        range_(connection_, sql.range),
        sum_(connection_, sql.sum),
        count_(connection_, sql.count),
        count_filtered_(connection_, sql.count_filtered),
        q6_(connection_, sql.q6),
        group_by_(connection_, sql.group_by),
        scan_(connection_, sql.scan),
        insert_(connection_, sql.insert),
        update_(connection_, sql.update) {}

  void Begin() override { begin_.Step(); }
  void Commit() override { commit_.Step(); }
  int64_t PointById(int64_t id) override {
    by_id_.Bind(1, id);
    return ReadRows(&by_id_);
  }
  int64_t PointByK(int32_t k) override {
    by_k_.Bind(1, k);
    return ReadRows(&by_k_);
  }
  int64_t Range(int64_t start, int64_t end) override {
    range_.Bind(1, start);
    range_.Bind(2, end);
    return ReadRows(&range_);
  }
  int64_t SumQty() override { return ReadNumber(&sum_); }
  int64_t Count() override { return ReadNumber(&count_); }
  int64_t CountFiltered() override { return ReadNumber(&count_filtered_); }
  double Q6() override {
    if (!q6_.Step()) Die("sqlite: no row");
    const double number = sqlite3_column_double(q6_.get(), 0);
    q6_.Step();
    return number;
  }
  int64_t GroupBy() override {
    int64_t groups = 0;
    sqlite3_stmt* s = group_by_.get();
    while (group_by_.Step()) {
      ++groups;
      seen_ += sqlite3_column_text(s, 0)[0] +
               static_cast<uint64_t>(sqlite3_column_int64(s, 1) + sqlite3_column_int64(s, 2) +
                                     sqlite3_column_int64(s, 4));
      price_ += sqlite3_column_double(s, 3);
    }
    return groups;
  }
  int64_t ScanAll() override { return ReadRows(&scan_); }
  void SetDurable(bool durable) override {
    connection_.Run(durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
  }
  void Insert(const Row& row) override {
    insert_.Bind(row);
    insert_.Step();
  }
  void AddToQty(int64_t id) override {
    update_.Bind(1, id);
    update_.Step();
  }

 private:
  int64_t ReadRows(Statement* statement) {
    int64_t rows = 0;
    sqlite3_stmt* s = statement->get();
    const int columns = shape_.copies * kColumns;
    while (statement->Step()) {
      ++rows;
      for (int i = 0; i < columns; i += kColumns) {
        seen_ +=
            static_cast<uint64_t>(sqlite3_column_int64(s, i) + sqlite3_column_int64(s, i + 1) +
                                  sqlite3_column_int64(s, i + 2) + sqlite3_column_int64(s, i + 6) +
                                  sqlite3_column_int64(s, i + 7) + sqlite3_column_int64(s, i + 9));
        price_ += sqlite3_column_double(s, i + 3);
        for (int text : {4, 5, 8}) seen_ += sqlite3_column_text(s, i + text)[0];
      }
    }
    return rows;
  }
  int64_t ReadNumber(Statement* statement) {
    if (!statement->Step()) Die("sqlite: no row");
    const int64_t number = sqlite3_column_int64(statement->get(), 0);
    statement->Step();
    return number;
  }

  const Shape& shape_;
  Connection connection_;
  Statement begin_, commit_, by_id_, by_k_, range_, sum_, count_, count_filtered_, q6_, group_by_,
      scan_, insert_, update_;
  uint64_t seen_ = 0;
  double price_ = 0;
};

class SqliteStore : public Store {
 public:
  SqliteStore(const std::string& directory, const Shape& shape)
      : shape_(shape), sql_(MakeSql(shape, Dialect::kSqlite)) {
    std::filesystem::create_directories(directory);
    path_ = directory + "/rows.sqlite";
  }
  std::string name() const override { return "sqlite"; }

  void Create(bool index) override {
    Connection connection(path_);
    connection.Run(sql_.create_table.c_str());
    if (index) connection.Run(sql_.create_index.c_str());
  }
  // Bound values in one transaction, which is faster than the shell's .import.
  void Load(const std::string& csv) override {
    Connection connection(path_);
    const std::string text = ReadFile(csv);
    Statement insert(connection, sql_.insert);
    connection.Run("BEGIN");
    for (const char *at = text.data(), *end = at + text.size(); at < end;) {
      at = insert.BindCsv(at, shape_.copies * kColumns);
      insert.Step();
    }
    connection.Run("COMMIT");
  }
  void CreateIndex() override { Connection(path_).Run(sql_.create_index.c_str()); }
  void Settle() override {
    Connection connection(path_);
    connection.Run("ANALYZE");
    connection.Run("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  uint64_t Bytes() override {
    Connection connection(path_);
    connection.Run("VACUUM");
    connection.Run("PRAGMA wal_checkpoint(TRUNCATE)");
    return std::filesystem::file_size(path_);
  }
  std::unique_ptr<Client> Connect() override {
    return std::make_unique<SqliteClient>(path_, shape_, sql_);
  }

 private:
  Shape shape_;
  Sql sql_;
  std::string path_;
};

}  // namespace

std::unique_ptr<Store> OpenSqlite(const std::string& directory, const Shape& shape) {
  return std::make_unique<SqliteStore>(directory, shape);
}

}  // namespace cellar::bench
