// Documents by path, kept in a directory of this machine or by a server: the same program but for
// how it opens.
//
//   documents DIRECTORY      makes the table on first use
//   documents HOST:PORT      `cellar serve --trust-local --grpc HOST:PORT`, where somebody has run
//                            CREATE TABLE documents (path text PRIMARY KEY, version bigint, body
//                            jsonb)
#include <cellar/client.h>
#include <cellar/db.h>
#include <cellar/table.h>

#include <cstdio>
#include <cstring>

namespace {

struct Opened {
  std::unique_ptr<cellar::Database> database;  // when the store is in this program
  std::unique_ptr<cellar::TableStore> tables;
};

cellar::Result<Opened> Open(const char* where) {
  Opened opened;
  if (std::strchr(where, ':') != nullptr) {
    CELLAR_TRY_ASSIGN(opened.tables, cellar::Connect(where));
    return opened;
  }
  CELLAR_TRY_ASSIGN(opened.database, cellar::Database::Open(where));
  CELLAR_TRY_ASSIGN(auto connection, opened.database->Connect());
  CELLAR_TRY(connection->ExecuteScript(
      "CREATE TABLE IF NOT EXISTS documents (path text PRIMARY KEY, version bigint, body jsonb)"));
  CELLAR_TRY_ASSIGN(opened.tables, opened.database->Tables());
  return opened;
}

// Saves a new version, unless somebody else has saved one since `seen`.
cellar::Result<bool> Save(cellar::Table* documents, const char* path, int64_t seen,
                          const char* body) {
  cellar::Record record = documents->NewRecord();
  record.Set("path", path).Set("version", seen + 1).Set("body", body);
  cellar::PutOptions options;
  if (seen == 0) {
    options.expect = {{.row = 0, .absent = true}};
  } else {
    options.expect = {{.row = 0, .cells = {{"version", seen}}}};
  }
  CELLAR_TRY_ASSIGN(const cellar::WriteResult result, documents->Put(record, options));
  return result.applied;
}

cellar::Status Run(const char* where) {
  CELLAR_TRY_ASSIGN(Opened opened, Open(where));
  CELLAR_TRY_ASSIGN(auto documents, opened.tables->OpenTable("/cellar/documents"));
  CELLAR_TRY(documents->DeleteSpans({}, {}).status());

  CELLAR_TRY_ASSIGN(bool saved, Save(documents.get(), "notes/a", 0, R"({"title": "first"})"));
  std::printf("new: %s\n", saved ? "saved" : "refused");
  CELLAR_TRY_ASSIGN(saved, Save(documents.get(), "notes/a", 1, R"({"title": "second"})"));
  std::printf("version 1 seen: %s\n", saved ? "saved" : "refused");
  CELLAR_TRY_ASSIGN(saved, Save(documents.get(), "notes/a", 1, R"({"title": "late"})"));
  std::printf("version 1 seen again: %s\n", saved ? "saved" : "refused");
  CELLAR_TRY(Save(documents.get(), "notes/b", 0, R"({"title": "other"})").status());
  CELLAR_TRY(Save(documents.get(), "todo/a", 0, R"({"title": "elsewhere"})").status());

  // A folder is a range of keys.
  CELLAR_TRY_ASSIGN(auto scan, documents->Scan({.filter = cellar::Col("path").StartsWith("notes/"),
                                                .columns = {"path", "body"}}));
  for (cellar::Row row : *scan) {
    std::printf("%s %s\n", row.ToString(0).c_str(), row.ToString(1).c_str());
  }
  return scan->status();
}

}  // namespace

int main(int argc, char** argv) {
  const cellar::Status status = Run(argc > 1 ? argv[1] : "documents-store");
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
