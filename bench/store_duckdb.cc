// DuckDB through the C API of a shared library that is loaded when the program runs, since Debian
// has no package of it: one thread, prepared statements, the columns of its chunks read in place.
#include <dlfcn.h>

#include <filesystem>

#include "bench/store.h"

namespace cellar::bench {
namespace {

// What DuckDB's documentation promises of its C interface.
using Handle = void*;
struct QueryResult {
  uint64_t deprecated[3];
  void* deprecated_columns;
  char* deprecated_error;
  void* internal;
};
struct Text {
  uint32_t length;
  char first[4];
  union {
    const char* data;
    char more[8];  // of texts of at most twelve bytes, behind `first`
  };
};

struct Library {
  explicit Library(const std::string& path) : handle(dlopen(path.c_str(), RTLD_NOW)) {
    if (handle == nullptr) Die(dlerror());
    Find("duckdb_open", &open);
    Find("duckdb_close", &close);
    Find("duckdb_connect", &connect);
    Find("duckdb_disconnect", &disconnect);
    Find("duckdb_query", &query);
    Find("duckdb_prepare", &prepare);
    Find("duckdb_destroy_prepare", &destroy_prepare);
    Find("duckdb_execute_prepared_streaming", &execute);
    Find("duckdb_result_error", &error);
    Find("duckdb_destroy_result", &destroy_result);
    Find("duckdb_fetch_chunk", &fetch);
    Find("duckdb_destroy_data_chunk", &destroy_chunk);
    Find("duckdb_data_chunk_get_size", &chunk_size);
    Find("duckdb_data_chunk_get_vector", &chunk_vector);
    Find("duckdb_vector_get_data", &vector_data);
    Find("duckdb_vector_get_validity", &vector_validity);
  }
  template <typename Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    if (*function == nullptr) Die(std::string("duckdb: no ") + name);
  }

  void* handle;
  int (*open)(const char*, Handle*);
  void (*close)(Handle*);
  int (*connect)(Handle, Handle*);
  void (*disconnect)(Handle*);
  int (*query)(Handle, const char*, QueryResult*);
  int (*prepare)(Handle, const char*, Handle*);
  void (*destroy_prepare)(Handle*);
  int (*execute)(Handle, QueryResult*);
  const char* (*error)(QueryResult*);
  void (*destroy_result)(QueryResult*);
  Handle (*fetch)(QueryResult);
  void (*destroy_chunk)(Handle*);
  uint64_t (*chunk_size)(Handle);
  Handle (*chunk_vector)(Handle, uint64_t);
  void* (*vector_data)(Handle);
  uint64_t* (*vector_validity)(Handle);
};

class Connection {
 public:
  Connection(const Library* library, Handle database) : library_(library) {
    if (library_->connect(database, &connection_) != 0) Die("duckdb: cannot connect");
    Run("SET threads = 1");
  }
  ~Connection() { library_->disconnect(&connection_); }
  void Run(const std::string& text) {
    QueryResult result;
    if (library_->query(connection_, text.c_str(), &result) != 0) Die(library_->error(&result));
    library_->destroy_result(&result);
  }
  const Library& library() const { return *library_; }
  Handle get() const { return connection_; }

 private:
  const Library* library_;
  Handle connection_ = nullptr;
};

class Statement {
 public:
  Statement(const Connection& connection, const std::string& text)
      : library_(connection.library()) {
    if (library_.prepare(connection.get(), text.c_str(), &statement_) != 0)
      Die("duckdb: cannot prepare " + text);
  }
  ~Statement() { library_.destroy_prepare(&statement_); }
  // Calls take(chunk, rows) for each chunk.
  template <typename Take>
  int64_t Run(Take take) {
    QueryResult result;
    if (library_.execute(statement_, &result) != 0) Die(library_.error(&result));
    int64_t all = 0;
    while (Handle chunk = library_.fetch(result)) {
      const auto rows = static_cast<int64_t>(library_.chunk_size(chunk));
      if (rows > 0) take(chunk, rows);
      all += rows;
      library_.destroy_chunk(&chunk);
      if (rows == 0) break;
    }
    library_.destroy_result(&result);
    return all;
  }
  // The first value of the only row. DuckDB's sums of integers are wider; their low half is enough.
  template <typename T>
  T Value() {
    T value{};
    Run([&](Handle chunk, int64_t) {
      value = *static_cast<const T*>(library_.vector_data(library_.chunk_vector(chunk, 0)));
    });
    return value;
  }

 private:
  const Library& library_;
  Handle statement_ = nullptr;
};

class DuckDbClient : public Client {
 public:
  DuckDbClient(const Library* library, Handle database, const Shape& shape, const Sql& sql)
      : shape_(shape),
        connection_(library, database),
        sum_(connection_, sql.sum),
        count_(connection_, sql.count),
        count_filtered_(connection_, sql.count_filtered),
        q6_(connection_, sql.q6),
        group_by_(connection_, sql.group_by),
        scan_(connection_, sql.scan) {}

  int64_t SumQty() override { return sum_.Value<int64_t>(); }
  int64_t Count() override { return count_.Value<int64_t>(); }
  int64_t CountFiltered() override { return count_filtered_.Value<int64_t>(); }
  double Q6() override { return q6_.Value<double>(); }
  int64_t GroupBy() override {
    return group_by_.Run([](Handle, int64_t) {});
  }
  int64_t ScanAll() override {
    return scan_.Run([this](Handle chunk, int64_t rows) {
      for (int i = 0; i < shape_.copies * kColumns; ++i) ReadColumn(chunk, i, rows);
    });
  }

 private:
  void ReadColumn(Handle chunk, int i, int64_t rows) {
    const Library& library = connection_.library();
    Handle vector = library.chunk_vector(chunk, static_cast<uint64_t>(i));
    const void* data = library.vector_data(vector);
    const uint64_t* valid = library.vector_validity(vector);
    const auto is_valid = [valid](int64_t row) {
      return valid == nullptr || (valid[row / 64] >> (row % 64) & 1) != 0;
    };
    switch (i % kColumns) {
      case 1:
      case 6:
        for (int64_t row = 0; row < rows; ++row)
          seen_ += static_cast<uint64_t>(static_cast<const int32_t*>(data)[row]);
        break;
      case 3:
        for (int64_t row = 0; row < rows; ++row) price_ += static_cast<const double*>(data)[row];
        break;
      case 4:
      case 5:
      case 8:
        for (int64_t row = 0; row < rows; ++row) {
          const Text& text = static_cast<const Text*>(data)[row];
          seen_ += static_cast<unsigned char>(text.length <= 12 ? text.first[0] : text.data[0]);
        }
        break;
      case 7:
        for (int64_t row = 0; row < rows; ++row) seen_ += static_cast<const uint8_t*>(data)[row];
        break;
      default:
        for (int64_t row = 0; row < rows; ++row) {
          if (is_valid(row)) seen_ += static_cast<uint64_t>(static_cast<const int64_t*>(data)[row]);
        }
    }
  }

  const Shape& shape_;
  Connection connection_;
  Statement sum_, count_, count_filtered_, q6_, group_by_, scan_;
  uint64_t seen_ = 0;
  double price_ = 0;
};

class DuckDbStore : public Store {
 public:
  DuckDbStore(const std::string& directory, const Shape& shape, const std::string& library)
      : shape_(shape), sql_(MakeSql(shape, Dialect::kDuckDb)), library_(library) {
    std::filesystem::create_directories(directory);
    path_ = directory + "/rows.duckdb";
    if (library_.open(path_.c_str(), &database_) != 0) Die("duckdb: cannot open " + path_);
  }
  ~DuckDbStore() override { library_.close(&database_); }
  std::string name() const override { return "duckdb"; }
  Abilities abilities() const override {
    return {.import = false, .index = false, .writes = false};
  }

  void Create(bool) override { Run(sql_.create_table); }
  void Load(const std::string& csv) override {
    Run("COPY " + shape_.table + " FROM '" + csv + "' (FORMAT csv, HEADER false)");
  }
  void CreateIndex() override {}
  void Settle() override { Run("CHECKPOINT"); }
  uint64_t Bytes() override {
    Run("CHECKPOINT");
    return std::filesystem::file_size(path_);
  }
  std::unique_ptr<Client> Connect() override {
    return std::make_unique<DuckDbClient>(&library_, database_, shape_, sql_);
  }

 private:
  void Run(const std::string& text) { Connection(&library_, database_).Run(text); }

  Shape shape_;
  Sql sql_;
  Library library_;
  std::string path_;
  Handle database_ = nullptr;
};

}  // namespace

std::unique_ptr<Store> OpenDuckDb(const std::string& directory, const Shape& shape,
                                  const std::string& library) {
  return std::make_unique<DuckDbStore>(directory, shape, library);
}

}  // namespace cellar::bench
