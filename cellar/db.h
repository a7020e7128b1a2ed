// Cellar inside a program: SQL tables with transactions in a directory of this machine.
//
//   CELLAR_TRY_ASSIGN(auto database, cellar::Database::Open("/var/lib/app/store"));
//   CELLAR_TRY_ASSIGN(auto connection, database->Connect());
//   CELLAR_TRY(connection->Execute("INSERT INTO item VALUES ($1, $2)", 1, "lamp").status());
//   CELLAR_TRY_ASSIGN(auto rows, connection->Query("SELECT name FROM item WHERE id = $1", 1));
//   while (rows.Next()) Use(rows.GetText(0));
//   CELLAR_TRY(rows.status());
//
// Nothing here throws: failures are Status values (cellar/base/status.h) that carry PostgreSQL's
// message, detail, hint and SQLSTATE. A Database is for all threads, a Connection and what comes
// from it for one thread at a time.
//
// The program's own code that a call runs (what Load and on_notice are given) may not use the
// connection that runs it: such calls answer 55000, but for Rows whose rows are in memory. What it
// throws ends the statement as an error does, is rolled back with it, and leaves the call.
//
// Objects may go in any order. The store closes when its Database, its connections and its
// TableStores have all gone; statements, rows and transactions of a connection that has gone answer
// 08003, and so does what was moved from.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cellar/base/status.h"
#include "cellar/types/batch.h"
#include "cellar/types/narrow.h"
#include "cellar/types/type.h"

namespace cellar {

class Connection;
class Statement;
class TableStore;  // cellar/table.h

struct OpenOptions {
  bool create_if_missing = true;
  // Takes no lock and writes nothing: for looking at a store that another process may have open.
  bool read_only = false;
  // A commit returns when it is on disk. False: a crash of the machine may lose the newest ones.
  bool durable = true;
  size_t cache_bytes = 0;  // of blocks and write buffers; 0: a quarter of memory, at most 256 MiB
  size_t statement_memory_bytes = size_t{256} << 20;  // one sort, hash table or buffer: work_mem
  // All that one statement holds; 0: eight times statement_memory_bytes, at least 512 MiB, at most
  // a quarter of what the process may have.
  size_t statement_limit_bytes = 0;
  // What stores of this process may hold together, the last one that is opened with a number says;
  // 0: three quarters of the machine's memory.
  size_t process_limit_bytes = 0;
  // Of tables that name none: "row" or "pages". Empty: as CELLAR_DEFAULT_TABLE_LAYOUT says.
  std::string table_layout;
  // When rows are packed into pages: "auto" in the background, "off", or "always" at each commit,
  // which is slow and meant for tests. Empty: as CELLAR_SEAL says.
  std::string seal;
};

struct ConnectOptions {
  std::string user = "cellar";
  std::string database = "cellar";
  // As SET would take them: {"TimeZone", "Europe/Berlin"}.
  std::vector<std::pair<std::string, std::string>> settings;
  // Warnings and notices of statements, as "WARNING: ..." lines.
  std::function<void(std::string_view)> on_notice;
};

struct BackupOptions {
  uint32_t keep = 0;  // this many of the newest backups stay, the new one among them; 0: all
  // Told every few megabytes, by a thread of the store, how much has been copied of at most how
  // much. Empty: nobody is.
  std::function<void(uint64_t copied_bytes, uint64_t total_bytes)> progress;
};

struct BackupReport {
  uint32_t number = 0;     // within the directory, growing
  uint64_t files = 0;      // those shared with earlier backups among them
  uint64_t bytes = 0;      // of them
  uint64_t new_bytes = 0;  // of files that no earlier backup has
};

// An open store. One process at a time has it open for writing.
class Database {
 public:
  // Errors: kNotFound for an absent directory that is not to be made; kUnavailable when another
  // process has it open; kUnsupported for a store of a newer version; kCorruption.
  static Result<std::unique_ptr<Database>> Open(const std::string& directory,
                                                const OpenOptions& options = {});
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Cost: microseconds; connections are many as threads are many. Errors: 3D000 unknown database.
  Result<std::unique_ptr<Connection>> Connect(const ConnectOptions& options = {});
  // The tables without SQL, as the role options.user sees them: include cellar/table.h. on_notice
  // is of no use here. Cost and errors as Connect's.
  Result<std::unique_ptr<TableStore>> Tables(const ConnectOptions& options = {});
  // Adds a backup of the whole store, as it is at one moment of the call, to a directory of its
  // backups, which is made when it is absent; everybody goes on meanwhile. From any thread. To
  // list, verify and restore: `cellar backup`. Errors: 55000 for a directory that holds something
  // else, or another store's backups; 22023 for one within the store; 42501, 58030 and 58P01 for a
  // path that cannot be used; 53100 without room there; 55006 while another backup is made there;
  // 25006 for a store that is open for reading only. Earlier backups are then as they were. Cost:
  // the files that changed since the last one are copied; commits wait for a sync.
  Result<BackupReport> Backup(const std::string& directory, const BackupOptions& options = {});
  // Running statements stop with 57P01, and so do later ones. From any thread.
  void Shutdown();

  struct Impl;

 private:
  Database();
  std::shared_ptr<Impl> impl_;
};

// A statement's text, or a table's name in one, borrowed for the call it is given to. Of a null
// pointer the call answers 22004.
class SqlText {
 public:
  template <typename T>
  requires(std::convertible_to<const T&, std::string_view> && !std::same_as<T, SqlText>)
      SqlText(const T& text) {  // NOLINT: implicit by design
    if constexpr (std::is_pointer_v<T>) {
      if (text == nullptr) return;
    }
    if constexpr (!std::is_null_pointer_v<T>) {
      text_ = std::string_view(text);
      given_ = true;
    }
  }
  bool given() const { return given_; }
  std::string_view view() const { return text_; }

 private:
  std::string_view text_;
  bool given_ = false;
};

// A value for a parameter. Text and bytes are borrowed for the call it is given to. It becomes the
// type that the statement gives the parameter: a number of that range, text in that type's syntax
// ("2024-02-29" for a date), as PostgreSQL would read it.
class Param {
 public:
  enum class Kind : uint8_t { kNull, kBool, kInt, kDouble, kText, kBytes };

  Param(std::nullptr_t) {}  // NOLINT: implicit by design, here and below
  Param(std::nullopt_t) {}  // NOLINT
  template <std::same_as<bool> T>
  Param(T value) : kind_(Kind::kBool), int_(value ? 1 : 0) {}  // NOLINT
  template <std::integral T>
  requires(!std::same_as<T, bool>) Param(T value)
      : kind_(Kind::kInt), int_(static_cast<int64_t>(value)) {  // NOLINT
    static_assert(sizeof(T) < 8 || std::is_signed_v<T>, "pass an int64_t, or text for a numeric");
  }
  template <std::floating_point T>
  Param(T value) : kind_(Kind::kDouble), double_(static_cast<double>(value)) {}  // NOLINT
  Param(std::string_view text) : kind_(Kind::kText), bytes_(text) {}             // NOLINT
  Param(const std::string& text) : kind_(Kind::kText), bytes_(text) {}           // NOLINT
  // A null pointer is NULL.
  Param(const char* text) {  // NOLINT
    if (text == nullptr) return;
    kind_ = Kind::kText;
    bytes_ = text;
  }
  // A bytea, or the 16 bytes of a uuid.
  Param(std::span<const std::byte> bytes)  // NOLINT
      : kind_(Kind::kBytes), bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}
  // Not inlined: under the address sanitizer g++ 12 takes an empty optional for one that is used.
  template <typename T>
  [[gnu::noinline]] Param(const std::optional<T>& value) {  // NOLINT
    if (value.has_value()) *this = Param(*value);
  }

  Kind kind() const { return kind_; }
  int64_t int_value() const { return int_; }
  double double_value() const { return double_; }
  std::string_view bytes() const { return bytes_; }

 private:
  Kind kind_ = Kind::kNull;
  int64_t int_ = 0;
  double double_ = 0;
  std::string_view bytes_;
};

struct Column {
  std::string name;
  Type type;
};

namespace internal {
struct ConnectionState;
struct StatementState;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
}  // namespace internal

// The rows of one run, read once, forwards: row by row, or batch by batch. Destroying it ends the
// run. Running the same statement again ends it too; COMMIT and ROLLBACK leave it an error.
class Rows {
 public:
  Rows(Rows&& other) noexcept;
  Rows& operator=(Rows&& other) noexcept;
  ~Rows();

  // Steps to the next row. False after the last one, and after an error: see status(). Errors: the
  // statement's; 57014 after Cancel; 40001 when a table has changed under it, after some of its
  // rows were handed out (before that it runs again by itself).
  bool Next() {
    if (*live_run_ == run_ && ++row_ < count_) return true;
    return NextRow();
  }
  // Why Next returned false; or else what a getter was asked for that there is not: a column that
  // the rows do not have (42703), a value without a row to take it from (24000), a number that does
  // not go into the type asked for (22003).
  const Status& status() const { return status_.ok() ? misuse_ : status_; }

  // The current row's values, columns counted from 0. A NULL reads as 0, false or empty, and so
  // does what there is not: see status(). A value of another type is converted as far as it goes
  // (text "12" is 12), never an error: to the nearest number where it is out of range.
  bool IsNull(size_t column) const {
    const ColumnVector* values = At(column);
    return values == nullptr || values->IsNull(row_);
  }
  // bool: 0 or 1. date: days since 2000-01-01. timestamp, timestamptz: microseconds since
  // 2000-01-01 00:00, of timestamptz in UTC; infinities are the greatest and the least number.
  // time, timetz: microseconds since midnight, of timetz in its own zone. interval: microseconds,
  // days of 24 hours and months of 30 days. oid and reg types: the oid.
  int64_t GetInt(size_t column) const {
    const ColumnVector* values = At(column);
    if (values == nullptr || values->IsNull(row_)) return 0;
    if (values->physical() == Physical::kInt64) return values->ints()[row_];
    return ConvertToInt(*values);
  }
  // In the same units.
  double GetDouble(size_t column) const {
    const ColumnVector* values = At(column);
    if (values == nullptr || values->IsNull(row_)) return 0;
    if (values->physical() == Physical::kDouble) return values->doubles()[row_];
    return ConvertToDouble(*values);
  }
  bool GetBool(size_t column) const { return GetInt(column) != 0; }
  // Any value, as ToString shows it. Valid until the next call of Next. Cost: none for text, which
  // is borrowed where it lies.
  std::string_view GetText(size_t column) const;
  // Of text types, bytea and uuid (16 bytes); empty for others. Valid until the next call of Next.
  std::string_view GetBytes(size_t column) const;
  // Any value as psql shows it, in the connection's DateStyle and TimeZone; empty for NULL.
  std::string ToString(size_t column) const;
  // bool, an integer, double, std::string (ToString), std::string_view (GetText), or an optional of
  // these, empty for NULL. An integer that has no such value: the nearest that it has.
  template <typename T>
  T Get(size_t column) const;

  // The next rows together, column by column; null at the end and after an error. Valid until the
  // next call on the connection. Rows that Next has stepped over are gone.
  const RowBatch* NextBatch();

  const std::vector<Column>& columns() const;
  // Rows inserted, updated or deleted, or read so far. 0 once the statement has been run again.
  uint64_t affected() const;

 private:
  friend class Statement;
  friend class Connection;
  struct Shown {
    uint64_t row = 0;  // counted from 1; 0: none
    std::string text;
  };

  Rows(std::shared_ptr<internal::StatementState> state, uint64_t run);
  // Null, and remembers why: there is no such value.
  const ColumnVector* At(size_t column) const {
    if (row_ < count_ && *live_run_ == run_) {
      const RowBatch& rows = **batch_;
      if (column < rows.num_columns()) return &rows.column(column);
    }
    return NoValue(column);
  }
  const ColumnVector* NoValue(size_t column) const;
  void NoteOutOfRange(size_t column) const;
  bool NextRow();
  bool Advance();
  static int64_t ConvertToInt(const ColumnVector& values, size_t row);
  static double ConvertToDouble(const ColumnVector& values, size_t row);
  int64_t ConvertToInt(const ColumnVector& values) const { return ConvertToInt(values, row_); }
  double ConvertToDouble(const ColumnVector& values) const { return ConvertToDouble(values, row_); }

  std::shared_ptr<internal::StatementState> state_;  // null: moved from
  uint64_t run_ = 0;
  const uint64_t* live_run_;      // in the statement: the run that it is at
  const RowBatch* const* batch_;  // in the statement: it may have to move the rows meanwhile
  size_t row_ = SIZE_MAX, count_ = 0;
  uint64_t passed_ = 0;  // rows of batches before this one
  Status status_;
  mutable Status misuse_;
  mutable std::vector<Shown> shown_;  // by column: texts that GetText has handed out
};

// A statement parsed and planned once and run many times.
class Statement {
 public:
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  ~Statement();

  // Runs it with these parameters. Query hands out the rows; Execute drops them and returns how
  // many there were, or how many rows were changed. A statement outside of a transaction is one of
  // its own: what it changed is committed when the call returns, and a conflict with another
  // connection has been retried. Errors: the statement's; 22P02 and others for a value that does
  // not read as the parameter's type; 08P01 for a wrong number of parameters.
  template <typename... Args>
  Result<Rows> Query(const Args&... args) {
    return RunQuery(std::initializer_list<Param>{Param(args)...});
  }
  template <typename... Args>
  Result<uint64_t> Execute(const Args&... args) {
    return RunExecute(std::initializer_list<Param>{Param(args)...});
  }
  Result<Rows> RunQuery(std::span<const Param> parameters);
  Result<Rows> RunQuery(std::initializer_list<Param> parameters) {
    return RunQuery(std::span<const Param>(parameters.begin(), parameters.size()));
  }
  Result<uint64_t> RunExecute(std::span<const Param> parameters);
  Result<uint64_t> RunExecute(std::initializer_list<Param> parameters) {
    return RunExecute(std::span<const Param>(parameters.begin(), parameters.size()));
  }

  // One by one instead: Bind copies the value of $index (from 1); what is not bound is NULL. Bound
  // values stay for later runs.
  Status Bind(int index, const Param& value);
  void ClearBindings();
  Result<Rows> QueryBound();
  Result<uint64_t> ExecuteBound();

  // As declared or inferred; kInvalid where nothing says: such a parameter is text.
  std::span<const Type> parameter_types() const;
  const std::vector<Column>& columns() const;  // empty: it returns no rows

 private:
  friend class Connection;
  explicit Statement(std::shared_ptr<internal::StatementState> state);
  std::shared_ptr<internal::StatementState> state_;
};

// Rows on their way into a table: see Connection::Load.
class Loader {
 public:
  Loader(const Loader&) = delete;  // lives as long as the call that it is given to
  Loader& operator=(const Loader&) = delete;

  // One row, a value for each column. Errors: as Statement::Execute's for its parameters.
  template <typename... Args>
  Status Add(const Args&... args) {
    const std::initializer_list<Param> values{Param(args)...};
    return AddRow(std::span<const Param>(values.begin(), values.size()));
  }
  Status AddRow(std::span<const Param> values);

 private:
  friend class Connection;
  struct Impl;
  explicit Loader(Impl* impl) : impl_(impl) {}
  Impl* impl_;
};

// Begins when made (Connection::Begin), rolls back when destroyed without Commit.
class Transaction {
 public:
  Transaction(Transaction&& other) noexcept = default;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  // Errors: kConflict 40001: nothing has happened, run it again (Connection::Run does).
  Status Commit();
  Status Rollback();

 private:
  friend class Connection;
  Transaction(std::shared_ptr<internal::ConnectionState> connection, uint64_t number)
      : connection_(std::move(connection)), number_(number) {}
  std::shared_ptr<internal::ConnectionState> connection_;  // null: it has ended
  uint64_t number_;                                        // among the connection's
};

// One conversation with the database: a transaction at a time, settings, temporary tables. One
// thread at a time, apart from Cancel.
class Connection {
 public:
  ~Connection();  // rolls back
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // One statement; see Statement::Query and Execute. Its plan is kept for the next call with the
  // same text. Tables that change meanwhile are no error: what has handed out no rows runs again,
  // within a transaction when all of it does (40001).
  template <typename... Args>
  Result<Rows> Query(SqlText sql, const Args&... args) {
    return RunQuery(sql, std::initializer_list<Param>{Param(args)...});
  }
  template <typename... Args>
  Result<uint64_t> Execute(SqlText sql, const Args&... args) {
    return RunExecute(sql, std::initializer_list<Param>{Param(args)...});
  }
  Result<Rows> RunQuery(SqlText sql, std::span<const Param> parameters);
  Result<Rows> RunQuery(SqlText sql, std::initializer_list<Param> parameters) {
    return RunQuery(sql, std::span<const Param>(parameters.begin(), parameters.size()));
  }
  Result<uint64_t> RunExecute(SqlText sql, std::span<const Param> parameters);
  Result<uint64_t> RunExecute(SqlText sql, std::initializer_list<Param> parameters) {
    return RunExecute(sql, std::span<const Param>(parameters.begin(), parameters.size()));
  }
  // Several statements separated by semicolons, without parameters: one transaction unless they say
  // otherwise. Rows are dropped.
  Status ExecuteScript(SqlText sql);
  // `types` declares parameters, the first ones; the rest is inferred.
  Result<Statement> Prepare(SqlText sql, std::span<const Type> types = {});

  // Serializable; 25001 within a transaction.
  Result<Transaction> Begin();
  bool in_transaction() const;
  // Runs `body` in a transaction and commits it; rolls back when it fails. After a conflict with
  // another transaction everything runs again, up to 50 times: the body's effects outside of the
  // database should bear that. The body itself neither commits nor rolls back.
  Status Run(const std::function<Status(Connection&)>& body);

  // Many rows into a table, atomically, in the way of COPY: the fastest way in. `fill` adds some
  // rows (a few hundred at a time are good) and returns false when there are no more; its error
  // ends the load. No columns: all but generated ones, in the table's order. Rows of a query that
  // is open on the connection are read into memory first, so that `fill` can step through them.
  // Returns the number of rows. Errors: 40001 when the table has changed meanwhile: nothing has
  // been loaded.
  Result<uint64_t> Load(SqlText table, std::span<const std::string> columns,
                        const std::function<Result<bool>(Loader&)>& fill);

  // Stops the running statement with 57014, and rows that are being read at their next batch,
  // unless what they come from has been committed. From any thread.
  void Cancel();

 private:
  friend class Database;
  friend class Transaction;
  explicit Connection(std::shared_ptr<internal::ConnectionState> state);
  std::shared_ptr<internal::ConnectionState> state_;
};

// The version of the library that runs, "0.1.0".
std::string_view LibraryVersion();

template <typename T>
T Rows::Get(size_t column) const {
  if constexpr (internal::kIsOptional<T>) {
    return IsNull(column) ? T() : T(Get<typename T::value_type>(column));
  } else if constexpr (std::is_same_v<T, bool>) {
    return GetBool(column);
  } else if constexpr (std::is_integral_v<T>) {
    bool fits = true;
    const T value = NarrowTo<T>(GetInt(column), &fits);
    if (!fits) NoteOutOfRange(column);
    return value;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(GetDouble(column));
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return GetText(column);
  } else {
    static_assert(std::is_same_v<T, std::string>, "no such conversion");
    return ToString(column);
  }
}

}  // namespace cellar
