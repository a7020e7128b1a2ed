// A server that speaks PostgreSQL's protocol, through libpq: prepared statements, binary formats.
#include <endian.h>
#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <cstring>

#include "bench/store.h"

namespace cellar::bench {
namespace {

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ClearResult>;
struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using ConnectionPtr = std::unique_ptr<PGconn, Finish>;

ConnectionPtr Open(const std::string& conninfo) {
  ConnectionPtr connection(PQconnectdb(conninfo.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK) Die(PQerrorMessage(connection.get()));
  return connection;
}

ResultPtr Checked(PGconn* connection, PGresult* made) {
  ResultPtr result(made);
  const ExecStatusType status = PQresultStatus(made);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_COPY_IN)
    Die(PQerrorMessage(connection));
  return result;
}

void Run(PGconn* connection, const char* text) { Checked(connection, PQexec(connection, text)); }

int64_t ReadInt(const PGresult* result) {
  int64_t value = 0;
  if (PQgetlength(result, 0, 0) != sizeof value) Die("server: a number of another size");
  std::memcpy(&value, PQgetvalue(result, 0, 0), sizeof value);
  return static_cast<int64_t>(be64toh(static_cast<uint64_t>(value)));
}

class ServerClient : public Client {
 public:
  ServerClient(const std::string& conninfo, const Sql& sql) : connection_(Open(conninfo)) {
    Prepare("by_id", sql.by_id);
    Prepare("by_k", sql.by_k);
    Prepare("range", sql.range);
    Prepare("sum", sql.sum);
    Prepare("count", sql.count);
    Prepare("count_filtered", sql.count_filtered);
    Prepare("q6", sql.q6);
    Prepare("group_by", sql.group_by);
    Prepare("insert", sql.insert);
    Prepare("update", sql.update);
  }
  void Begin() override { Run(connection_.get(), "BEGIN"); }
  void Commit() override { Run(connection_.get(), "COMMIT"); }
  int64_t PointById(int64_t id) override { return ReadRows("by_id", {id}); }
  int64_t PointByK(int32_t k) override { return ReadRows("by_k", {k}, 4); }
  int64_t Range(int64_t start, int64_t end) override { return ReadRows("range", {start, end}); }
  int64_t SumQty() override { return ReadInt(Execute("sum", {}).get()); }
  int64_t Count() override { return ReadInt(Execute("count", {}).get()); }
  int64_t CountFiltered() override { return ReadInt(Execute("count_filtered", {}).get()); }
  double Q6() override {
    const int64_t bits = ReadInt(Execute("q6", {}).get());
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    return number;
  }
  int64_t GroupBy() override { return ReadRows("group_by", {}); }
  void SetDurable(bool durable) override {
    Run(connection_.get(),
        durable ? "SET synchronous_commit = on" : "SET synchronous_commit = off");
  }
  void Insert(const Row& row) override {
    std::string line;
    AppendCsv(row, &line);
    line += ',';
    const char* values[kColumns] = {};
    size_t start = 0;
    for (auto& value : values) {
      const size_t end = line.find(',', start);
      line[end] = '\0';
      value = line.data() + start;
      start = end + 1;
    }
    if (!row.has_code) values[9] = nullptr;
    Checked(connection_.get(),
            PQexecPrepared(connection_.get(), "insert", kColumns, values, nullptr, nullptr, 1));
  }
  void AddToQty(int64_t id) override { Execute("update", {id}); }

 private:
  void Prepare(const char* name, const std::string& text) {
    Checked(connection_.get(), PQprepare(connection_.get(), name, text.c_str(), 0, nullptr));
  }
  ResultPtr Execute(const char* name, std::initializer_list<int64_t> parameters, int bytes = 8) {
    uint64_t numbers[2] = {};
    const char* values[2] = {};
    const int lengths[2] = {bytes, bytes}, formats[2] = {1, 1};
    int count = 0;
    for (int64_t parameter : parameters) {
      numbers[count] = htobe64(static_cast<uint64_t>(parameter));
      values[count] = reinterpret_cast<const char*>(&numbers[count]) + (8 - bytes);
      ++count;
    }
    return Checked(connection_.get(),
                   PQexecPrepared(connection_.get(), name, count, values, lengths, formats, 1));
  }
  int64_t ReadRows(const char* name, std::initializer_list<int64_t> parameters, int bytes = 8) {
    const ResultPtr result = Execute(name, parameters, bytes);
    const int rows = PQntuples(result.get()), columns = PQnfields(result.get());
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        if (!PQgetisnull(result.get(), row, column))
          seen_ += static_cast<uint64_t>(PQgetvalue(result.get(), row, column)[0]);
      }
    }
    return rows;
  }

  ConnectionPtr connection_;
  uint64_t seen_ = 0;
};

class ServerStore : public Store {
 public:
  ServerStore(std::string name, std::string conninfo, const Shape& shape)
      : name_(std::move(name)),
        conninfo_(std::move(conninfo)),
        shape_(shape),
        sql_(MakeSql(shape, Dialect::kPostgres)) {}
  std::string name() const override { return name_; }
  Abilities abilities() const override { return {.scan = false, .wide = false}; }

  void Create(bool index) override {
    const ConnectionPtr connection = Open(conninfo_);
    Run(connection.get(), ("DROP TABLE IF EXISTS " + shape_.table).c_str());
    Run(connection.get(), sql_.create_table.c_str());
    if (index) Run(connection.get(), sql_.create_index.c_str());
  }
  void Load(const std::string& csv) override {
    const ConnectionPtr connection = Open(conninfo_);
    PGconn* c = connection.get();
    const std::string text = ReadFile(csv);
    Run(c, ("COPY " + shape_.table + " FROM STDIN (FORMAT csv)").c_str());
    constexpr size_t kPieceBytes = 1 << 20;
    for (size_t at = 0; at < text.size(); at += kPieceBytes) {
      const size_t bytes = std::min(kPieceBytes, text.size() - at);
      if (PQputCopyData(c, text.data() + at, static_cast<int>(bytes)) != 1) Die(PQerrorMessage(c));
    }
    if (PQputCopyEnd(c, nullptr) != 1) Die(PQerrorMessage(c));
    while (PGresult* result = PQgetResult(c)) Checked(c, result);
  }
  void CreateIndex() override { Run(Open(conninfo_).get(), sql_.create_index.c_str()); }
  void Settle() override { Run(Open(conninfo_).get(), ("VACUUM ANALYZE " + shape_.table).c_str()); }
  std::unique_ptr<Client> Connect() override {
    return std::make_unique<ServerClient>(conninfo_, sql_);
  }

 private:
  std::string name_, conninfo_;
  Shape shape_;
  Sql sql_;
};

}  // namespace

std::unique_ptr<Store> OpenServer(const std::string& name, const std::string& conninfo,
                                  const Shape& shape) {
  return std::make_unique<ServerStore>(name, conninfo, shape);
}

}  // namespace cellar::bench
