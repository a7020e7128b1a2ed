// A server that speaks PostgreSQL's protocol, through libpq: prepared statements, binary formats.
#include <endian.h>
#include <fmt/format.h>
#include <libpq-fe.h>

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
  explicit ServerClient(const std::string& conninfo) : connection_(Open(conninfo)) {
    Prepare("by_id", "SELECT * FROM rows WHERE id = $1");
    Prepare("by_k", "SELECT * FROM rows WHERE k = $1");
    Prepare("range", "SELECT * FROM rows WHERE id >= $1 AND id < $2");
    Prepare("sum", "SELECT sum(qty)::bigint FROM rows");
    Prepare("count", "SELECT count(*) FROM rows");
    Prepare("insert", "INSERT INTO rows VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)");
    Prepare("update", "UPDATE rows SET qty = qty + 1 WHERE id = $1");
  }
  void Begin() override { Run(connection_.get(), "BEGIN"); }
  void Commit() override { Run(connection_.get(), "COMMIT"); }
  int64_t PointById(int64_t id) override { return ReadRows("by_id", {id}); }
  int64_t PointByK(int32_t k) override { return ReadRows("by_k", {k}, 4); }
  int64_t Range(int64_t start, int64_t end) override { return ReadRows("range", {start, end}); }
  int64_t SumQty() override { return ReadInt(Execute("sum", {}).get()); }
  int64_t Count() override { return ReadInt(Execute("count", {}).get()); }
  void Insert(const Row& row) override {
    std::string line;
    AppendCopyLine(row, &line);
    const char* values[10] = {};
    size_t start = 0;
    for (auto& value : values) {
      const size_t end = line.find_first_of("\t\n", start);
      line[end] = '\0';
      value = line.data() + start;
      start = end + 1;
    }
    if (!row.has_code) values[9] = nullptr;
    Checked(connection_.get(),
            PQexecPrepared(connection_.get(), "insert", 10, values, nullptr, nullptr, 1));
  }
  void AddToQty(int64_t id) override { Execute("update", {id}); }

 private:
  void Prepare(const char* name, const char* text) {
    Checked(connection_.get(), PQprepare(connection_.get(), name, text, 0, nullptr));
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
    const int rows = PQntuples(result.get());
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < 10; ++column) {
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
  ServerStore(std::string name, std::string conninfo)
      : name_(std::move(name)), conninfo_(std::move(conninfo)) {}
  std::string name() const override { return name_; }

  void Prepare(const std::vector<Row>& rows) override { pieces_ = CopyText(rows); }
  void Load(const std::vector<Row>& rows) override {
    const ConnectionPtr connection = Open(conninfo_);
    PGconn* c = connection.get();
    Run(c, "DROP TABLE IF EXISTS rows");
    Run(c, kCreateTable);
    Run(c, "COPY rows FROM STDIN");
    for (const std::string& piece : pieces_) {
      if (PQputCopyData(c, piece.data(), static_cast<int>(piece.size())) != 1)
        Die(PQerrorMessage(c));
    }
    if (PQputCopyEnd(c, nullptr) != 1) Die(PQerrorMessage(c));
    while (PGresult* result = PQgetResult(c)) Checked(c, result);
    pieces_.clear();
  }
  void CreateIndex() override { Run(Open(conninfo_).get(), kCreateIndex); }
  void Settle() override { Run(Open(conninfo_).get(), "VACUUM ANALYZE rows"); }
  std::unique_ptr<Client> Connect() override { return std::make_unique<ServerClient>(conninfo_); }

 private:
  std::string name_, conninfo_;
  std::vector<std::string> pieces_;
};

}  // namespace

std::unique_ptr<Store> OpenServer(const std::string& name, const std::string& conninfo) {
  return std::make_unique<ServerStore>(name, conninfo);
}

}  // namespace cellar::bench
