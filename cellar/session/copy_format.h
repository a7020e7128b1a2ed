// The formats of COPY: text, CSV and binary (PostgreSQL manual, COPY). Private to this layer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/memory_account.h"
#include "cellar/base/status.h"
#include "cellar/sql/parser/ast.h"
#include "cellar/types/batch.h"
#include "cellar/types/text_io.h"

namespace cellar::session {

struct CopyOptions {
  enum class Format : uint8_t { kText, kCsv, kBinary };
  enum class Header : uint8_t { kNone, kSkip, kMatch };
  Format format = Format::kText;
  Header header = Header::kNone;
  char delimiter = '\t';
  char quote = '"';
  char escape = '"';
  std::string null = "\\N";
  std::vector<std::string> force_quote;
  bool force_quote_all = false;
  std::vector<std::string> force_not_null, force_null;
};
// Errors: 42601, 22023, 0A000 with PostgreSQL's messages.
Result<CopyOptions> ReadCopyOptions(const sql::ast::OptionList& options, bool from);

struct CopyColumn {
  std::string name;
  Type type;
};

// Turns a stream of bytes into batches. One thread at a time.
class CopyReader {
 public:
  // `source` gives the next bytes, false at the end.
  using Source = std::function<Result<bool>(std::string* chunk)>;
  using Parse = std::function<Result<Datum>(std::string_view text, Type type, Arena* arena)>;
  CopyReader(const CopyOptions& options, std::vector<CopyColumn> columns, std::string table,
             Parse parse, Source source);
  // Fills *batch (Reset to the columns' types by the caller) with up to kBatchRows rows; false when
  // there are none left. Errors carry the context "COPY t, line 3, column a: "x"".
  Result<bool> Next(RowBatch* batch);
  // "COPY t, line N", the line being read.
  std::string Context() const;

 private:
  struct Field {
    std::string_view text;
    bool quoted = false;
    bool null = false;
  };
  // The next record into fields_; false at the end of the data.
  Result<bool> ReadRecord();
  Result<bool> ReadTextRecord();
  Result<bool> ReadCsvRecord();
  Result<bool> ReadBinaryRow(RowBatch* batch, size_t row);
  Result<bool> Fill();  // more bytes into buffer_
  Result<bool> Need(size_t bytes);
  Status SkipHeader();
  Status Store(RowBatch* batch, size_t row);
  Status FieldError(Status status, size_t column) const;

  CopyOptions options_;
  std::vector<CopyColumn> columns_;
  std::string table_;
  Parse parse_;
  Source source_;
  std::vector<uint8_t> force_not_null_, force_null_;
  std::string buffer_;
  size_t start_ = 0;  // of what has not been consumed
  bool source_done_ = false, finished_ = false, started_ = false;
  uint64_t line_ = 0;
  std::vector<Field> fields_;
  std::string unescaped_;  // of the current record
  std::string chunk_;
  MemoryCharge charge_{MemoryAccount::Current()};
};

// Appends rows in a format.
class CopyWriter {
 public:
  // Appends a value as text.
  using Print = std::function<void(Datum value, Type type, std::string* out)>;
  CopyWriter(const CopyOptions& options, std::vector<CopyColumn> columns, Print print);
  void AppendHeader(std::string* out) const;
  void AppendRow(const RowBatch& batch, size_t row, std::string* out) const;
  void AppendTrailer(std::string* out) const;

 private:
  void AppendText(std::string_view value, std::string* out) const;
  void AppendCsv(std::string_view value, bool force, bool single, std::string* out) const;

  CopyOptions options_;
  std::vector<CopyColumn> columns_;
  Print print_;
  std::vector<uint8_t> force_quote_;
  mutable std::string scratch_;
};

}  // namespace cellar::session
