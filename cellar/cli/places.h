// Where a dump goes, beside a store that is open here: a file, files of CSV, a server.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cellar/dump/place.h"

namespace cellar::cli {

using dump::Place;
using dump::TextRow;

// A text that psql and `cellar sql` run. Written beside its place, and put there by Finish.
class TextFile : public dump::DumpTarget {
 public:
  // Empty: standard output. Errors: 42501, 58P01, 58030.
  static Result<std::unique_ptr<TextFile>> Open(const std::string& path);
  ~TextFile() override;  // without Finish nothing is left

  Status Statement(const std::string& sql) override { return Write(sql + ";\n"); }
  Status BeginCopy(const std::string& table, const std::string& sql) override {
    return Write(sql + ";\n");
  }
  Status CopyData(std::string_view data) override { return Write(data); }
  Status EndCopy() override { return Write("\\.\n"); }
  // Errors: 53100, 58030.
  Status Write(std::string_view text);
  Status Finish();

 private:
  TextFile() = default;
  std::string path_;
  FILE* file_ = nullptr;
};

// A directory with a file of CSV for each table, and schema.sql for the statements.
class CsvFiles : public dump::DumpTarget {
 public:
  static Result<std::unique_ptr<CsvFiles>> Open(const std::string& directory, bool statements);

  Status Statement(const std::string& sql) override;
  Status BeginCopy(const std::string& table, const std::string& sql) override;
  Status CopyData(std::string_view data) override { return table_->Write(data); }
  Status EndCopy() override { return table_->Finish(); }
  Status Finish() { return statements_ == nullptr ? Status() : statements_->Finish(); }

 private:
  std::string directory_;
  std::unique_ptr<TextFile> statements_, table_;
};

// Of a server, by libpq; an empty database: the one that the URL names. Errors: 08001, the
// server's.
Result<std::unique_ptr<Place>> ConnectPlace(const std::string& url, const std::string& database);

}  // namespace cellar::cli
