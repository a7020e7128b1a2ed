// A store in a directory, a table, some rows, a query.
#include <fmt/core.h>

#include "cellar/db.h"

namespace {

cellar::Status Demonstrate(const std::string& directory) {
  CELLAR_TRY_ASSIGN(auto database, cellar::Database::Open(directory));
  CELLAR_TRY_ASSIGN(auto connection, database->Connect());

  CELLAR_TRY(connection->ExecuteScript(R"(
    CREATE TABLE IF NOT EXISTS city (
      name text PRIMARY KEY, country text NOT NULL, inhabitants int, founded date);
    CREATE INDEX IF NOT EXISTS city_by_country ON city (country, inhabitants DESC);
  )"));

  // Parameters take the types of their columns; an empty optional is NULL.
  CELLAR_TRY_ASSIGN(
      uint64_t changed,
      connection->Execute("INSERT INTO city VALUES ($1, $2, $3, $4), ($5, $6, $7, $8) "
                          "ON CONFLICT (name) DO NOTHING",
                          "Ljubljana", "SI", 295504, "1112-01-01",  //
                          "Łódź", "PL", 664860, std::optional<std::string>()));
  fmt::print("{} rows are new\n", changed);

  CELLAR_TRY_ASSIGN(auto rows, connection->Query("SELECT name, inhabitants, founded FROM city "
                                                 "WHERE inhabitants > $1 ORDER BY name",
                                                 100000));
  while (rows.Next()) {
    fmt::print("{}: {} inhabitants, founded {}\n", rows.GetText(0), rows.GetInt(1),
               rows.IsNull(2) ? "nobody knows when" : rows.ToString(2));
  }
  return rows.status();
}

}  // namespace

int main(int argc, char** argv) {
  cellar::Status status = Demonstrate(argc > 1 ? argv[1] : "quickstart-store");
  if (status.ok()) return 0;
  fmt::print(stderr, "{} ({})\n", status.message(), status.sqlstate());
  return 1;
}
