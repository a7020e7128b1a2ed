// SQLite through its C API: prepared statements, a write-ahead log, 256 MiB of cache.
#include <sqlite3.h>

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
  Statement(const Connection& connection, const char* text) : db_(connection.get()) {
    Check(db_, sqlite3_prepare_v3(db_, text, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr));
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
  explicit SqliteClient(const std::string& path)
      : connection_(path),
        begin_(connection_, "BEGIN"),
        commit_(connection_, "COMMIT"),
        by_id_(connection_, "SELECT * FROM rows WHERE id = ?1"),
        by_k_(connection_, "SELECT * FROM rows WHERE k = ?1"),
        range_(connection_, "SELECT * FROM rows WHERE id >= ?1 AND id < ?2"),
        sum_(connection_, "SELECT sum(qty) FROM rows"),
        count_(connection_, "SELECT count(*) FROM rows"),
        insert_(connection_, "INSERT INTO rows VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)"),
        update_(connection_, "UPDATE rows SET qty = qty + 1 WHERE id = ?1") {}

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
    while (statement->Step()) {
      ++rows;
      seen_ += static_cast<uint64_t>(sqlite3_column_int64(s, 0) + sqlite3_column_int64(s, 1) +
                                     sqlite3_column_int64(s, 2) + sqlite3_column_int64(s, 6) +
                                     sqlite3_column_int64(s, 7) + sqlite3_column_int64(s, 9));
      price_ += sqlite3_column_double(s, 3);
      for (int text : {4, 5, 8}) seen_ += sqlite3_column_text(s, text)[0];
    }
    return rows;
  }
  int64_t ReadNumber(Statement* statement) {
    if (!statement->Step()) Die("sqlite: no row");
    const int64_t number = sqlite3_column_int64(statement->get(), 0);
    statement->Step();
    return number;
  }

  Connection connection_;
  Statement begin_, commit_, by_id_, by_k_, range_, sum_, count_, insert_, update_;
  uint64_t seen_ = 0;
  double price_ = 0;
};

class SqliteStore : public Store {
 public:
  explicit SqliteStore(const std::string& directory) {
    std::filesystem::create_directories(directory);
    path_ = directory + "/rows.sqlite";
  }
  std::string name() const override { return "sqlite"; }

  void Load(const std::vector<Row>& rows) override {
    Connection connection(path_);
    connection.Run(
        "CREATE TABLE rows (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, at INTEGER NOT NULL, "
        "price REAL NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, qty INTEGER NOT NULL, "
        "flag INTEGER NOT NULL, note TEXT NOT NULL, code INTEGER)");
    Statement insert(connection, "INSERT INTO rows VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)");
    connection.Run("BEGIN");
    for (const Row& row : rows) {
      insert.Bind(row);
      insert.Step();
    }
    connection.Run("COMMIT");
  }
  void CreateIndex() override { Connection(path_).Run(kCreateIndex); }
  void Settle() override {
    Connection connection(path_);
    connection.Run("ANALYZE");
    connection.Run("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  std::unique_ptr<Client> Connect() override { return std::make_unique<SqliteClient>(path_); }

 private:
  std::string path_;
};

}  // namespace

std::unique_ptr<Store> OpenSqlite(const std::string& directory) {
  return std::make_unique<SqliteStore>(directory);
}

}  // namespace cellar::bench
