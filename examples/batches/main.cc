// Many rows: in through Load, out as column-wise batches.
#include <fmt/core.h>

#include <cmath>

#include "cellar/db.h"

namespace {

using cellar::Result;
using cellar::Status;

constexpr int kRows = 50000;

Status Demonstrate(const std::string& directory) {
  CELLAR_TRY_ASSIGN(auto database, cellar::Database::Open(directory));
  CELLAR_TRY_ASSIGN(auto connection, database->Connect());
  CELLAR_TRY(connection->ExecuteScript(
      "DROP TABLE IF EXISTS reading;"
      "CREATE TABLE reading (sensor int, at timestamp, value double precision,"
      "                      PRIMARY KEY (sensor, at))"));

  // All rows or none: an error of the callback, or a duplicate key, leaves the table as it was.
  int next = 0;
  CELLAR_TRY_ASSIGN(
      uint64_t loaded, connection->Load("reading", {}, [&](cellar::Loader& loader) -> Result<bool> {
        for (int i = 0; i < 500 && next < kRows; ++i, ++next) {
          const int minute = next / 10;
          CELLAR_TRY(loader.Add(next % 10,
                                fmt::format("2024-01-{:02} {:02}:{:02}", 1 + minute / 1440,
                                            minute / 60 % 24, minute % 60),
                                std::sin(next * 0.001)));
        }
        return next < kRows;
      }));
  fmt::print("{} rows loaded\n", loaded);

  // A batch holds up to a few thousand rows; columns of numbers are plain arrays.
  CELLAR_TRY_ASSIGN(auto rows, connection->Query("SELECT sensor, value FROM reading"));
  double sums[10] = {};
  while (const cellar::RowBatch* batch = rows.NextBatch()) {
    const int64_t* sensors = batch->column(0).ints();
    const double* values = batch->column(1).doubles();
    for (size_t row = 0; row < batch->size(); ++row) {
      if (!batch->column(1).IsNull(row)) sums[sensors[row]] += values[row];
    }
  }
  CELLAR_TRY(Status(rows.status()));
  for (int sensor = 0; sensor < 10; ++sensor)
    fmt::print("sensor {}: {:.3f}\n", sensor, sums[sensor]);
  return Status();
}

}  // namespace

int main(int argc, char** argv) {
  Status status = Demonstrate(argc > 1 ? argv[1] : "batches-store");
  if (status.ok()) return 0;
  fmt::print(stderr, "{} ({})\n", status.message(), status.sqlstate());
  return 1;
}
