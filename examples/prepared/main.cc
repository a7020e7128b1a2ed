// Prepared statements and transactions: money moves between accounts, from two threads at once.
#include <fmt/core.h>

#include <thread>
#include <vector>

#include "cellar/db.h"

namespace {

using cellar::Connection;
using cellar::Result;
using cellar::Rows;
using cellar::Statement;
using cellar::Status;

constexpr int kAccounts = 10;
constexpr int kMoves = 200;

// Each thread has a connection of its own, and prepares its statements once.
Status Move(cellar::Database* database, unsigned seed) {
  CELLAR_TRY_ASSIGN(auto connection, database->Connect());
  CELLAR_TRY_ASSIGN(Statement read,
                    connection->Prepare("SELECT balance FROM account WHERE id = $1"));
  CELLAR_TRY_ASSIGN(Statement add,
                    connection->Prepare("UPDATE account SET balance = balance + $2 WHERE id = $1"));
  for (int i = 0; i < kMoves; ++i) {
    seed = seed * 1664525 + 1013904223;
    const int from = static_cast<int>((seed >> 8) % kAccounts);
    const int to = (from + 1 + static_cast<int>((seed >> 16) % (kAccounts - 1))) % kAccounts;
    // Transactions are serializable. When two meet on an account, one is run again.
    CELLAR_TRY(connection->Run([&](Connection&) -> Status {
      CELLAR_TRY_ASSIGN(Rows rows, read.Query(from));
      if (!rows.Next()) return rows.status();
      const int64_t amount = rows.GetInt(0) / 10;
      CELLAR_TRY(add.Execute(from, -amount).status());
      return add.Execute(to, amount).status();
    }));
  }
  return Status();
}

Status Demonstrate(const std::string& directory) {
  CELLAR_TRY_ASSIGN(auto database, cellar::Database::Open(directory));
  CELLAR_TRY_ASSIGN(auto connection, database->Connect());
  CELLAR_TRY(connection->ExecuteScript(
      "DROP TABLE IF EXISTS account; CREATE TABLE account (id int PRIMARY KEY, balance bigint)"));
  {
    // What is not committed when the guard goes is undone.
    CELLAR_TRY_ASSIGN(cellar::Transaction transaction, connection->Begin());
    CELLAR_TRY_ASSIGN(Statement insert, connection->Prepare("INSERT INTO account VALUES ($1, $2)"));
    for (int id = 0; id < kAccounts; ++id) CELLAR_TRY(insert.Execute(id, 1000).status());
    CELLAR_TRY(transaction.Commit());
  }

  std::vector<Status> results(2);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] { results[i] = Move(database.get(), i + 1); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) CELLAR_TRY(Status(result));

  CELLAR_TRY_ASSIGN(Rows sum, connection->Query("SELECT sum(balance), count(*) FROM account"));
  if (!sum.Next()) return sum.status();
  fmt::print("{} in {} accounts after {} moves\n", sum.GetInt(0), sum.GetInt(1),
             kMoves * static_cast<int>(results.size()));
  return sum.GetInt(0) == 1000 * kAccounts ? Status()
                                           : cellar::InternalError("money was made or lost");
}

}  // namespace

int main(int argc, char** argv) {
  Status status = Demonstrate(argc > 1 ? argv[1] : "prepared-store");
  if (status.ok()) return 0;
  fmt::print(stderr, "{} ({})\n", status.message(), status.sqlstate());
  return 1;
}
