// The first design's example: table /microsoft/employees, index last-name, key kimball, columns
// telephone. Tables are made by SQL, rows are written and read without it.
#include <cellar/db.h>
#include <cellar/table.h>
#include <cellar/tableapi/mapped.h>

#include <cstdio>

struct Employee {
  int64_t id = 0;
  std::string last_name, first_name;
  std::optional<std::string> telephone;
};
template <>
struct cellar::Mapping<Employee> {
  static constexpr auto kFields = std::tuple(cellar::Field("id", &Employee::id),
                                             cellar::Field("last name", &Employee::last_name),
                                             cellar::Field("first name", &Employee::first_name),
                                             cellar::Field("telephone", &Employee::telephone));
};

namespace {

cellar::Status MakeTable(cellar::Database* database) {
  CELLAR_TRY_ASSIGN(auto connection, database->Connect());
  CELLAR_TRY_ASSIGN(auto found,
                    connection->Query("SELECT 1 FROM pg_database WHERE datname = 'microsoft'"));
  const bool there = found.Next();
  if (!there) CELLAR_TRY(connection->ExecuteScript("CREATE DATABASE microsoft"));
  CELLAR_TRY_ASSIGN(auto microsoft, database->Connect({.database = "microsoft"}));
  return microsoft->ExecuteScript(
      "CREATE TABLE IF NOT EXISTS employees (id bigint PRIMARY KEY, \"last name\" text NOT NULL, "
      "\"first name\" text, telephone text);"
      "CREATE INDEX IF NOT EXISTS \"last-name\" ON employees (\"last name\")");
}

cellar::Status Run(const char* directory) {
  CELLAR_TRY_ASSIGN(auto database, cellar::Database::Open(directory));
  CELLAR_TRY(MakeTable(database.get()));
  CELLAR_TRY_ASSIGN(auto store, database->Tables());
  CELLAR_TRY_ASSIGN(auto table, store->OpenTable("/microsoft/employees"));

  // A group of cells in a group of rows, all or nothing.
  std::vector<cellar::Record> records;
  records.push_back(
      table->NewRecord().Set("id", 1).Set("last name", "kimball").Set("first name", "spencer"));
  records.push_back(
      table->NewRecord().Set("id", 2).Set("last name", "mattis").Set("first name", "peter"));
  records.push_back(table->NewRecord().Set("id", 1).Set("telephone", "555-0100"));
  CELLAR_TRY(table->Put(records).status());

  // By a secondary index.
  CELLAR_TRY_ASSIGN(cellar::RowSet rows, table->Lookup("last-name", {"kimball"}, {"telephone"}));
  for (cellar::Row row : rows) std::printf("kimball: %s\n", row.ToString(0).c_str());

  // As structs.
  cellar::Mapped<Employee> employees(table);
  CELLAR_TRY(employees.Put({3, "lovelace", "ada", std::nullopt}).status());
  CELLAR_TRY_ASSIGN(std::optional<Employee> ada, employees.Get({3}));
  std::printf("3: %s %s\n", ada->first_name.c_str(), ada->last_name.c_str());

  // By range and condition; conditions on the index's columns are not read past.
  const cellar::Filter filter =
      cellar::Col("last name").StartsWith("k") || cellar::Col("telephone").IsNull();
  CELLAR_TRY_ASSIGN(auto scan, table->Scan({.index = "last-name", .filter = filter}));
  for (cellar::Row row : *scan) {
    std::printf("%s, %s\n", row.Get<std::string>("last name").c_str(),
                row.Get<std::string>("first name").c_str());
  }
  return scan->status();
}

}  // namespace

int main(int argc, char** argv) {
  const cellar::Status status = Run(argc > 1 ? argv[1] : "employees-store");
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
