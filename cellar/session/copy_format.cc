#include "cellar/session/copy_format.h"

#include <algorithm>
#include <cstring>

#include "cellar/base/sqlstate.h"

namespace cellar::session {
namespace {

constexpr size_t kLongRecordBytes = size_t{1} << 20;
constexpr std::string_view kBinarySignature("PGCOPY\n\377\r\n\0", 11);
constexpr size_t kMaxRecordBytes = size_t{1} << 30;

Status BadFormat(std::string message) {
  return SqlError(Code::kInvalid, sqlstate::kBadCopyFileFormat, "{}", message);
}

Result<char> OneCharacter(const sql::ast::Option& option, const char* what) {
  const std::string text = option.ToText();
  if (text.size() != 1) {
    return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                    "COPY {} must be a single one-byte character", what);
  }
  return text[0];
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

uint32_t ReadBig32(const char* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

void AppendBig(uint32_t value, int bytes, std::string* out) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    out->push_back(static_cast<char>(value >> shift));
}

}  // namespace

Result<CopyOptions> ReadCopyOptions(const sql::ast::OptionList& options, bool from) {
  CopyOptions copy;
  for (const sql::ast::Option& option : options) {
    if (option.name != "format") continue;
    const std::string format = option.ToText();
    if (format == "text")
      copy.format = CopyOptions::Format::kText;
    else if (format == "csv")
      copy.format = CopyOptions::Format::kCsv;
    else if (format == "binary")
      copy.format = CopyOptions::Format::kBinary;
    else {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "COPY format \"{}\" not recognized", format)
          .WithLocation(option.location);
    }
  }
  const bool csv = copy.format == CopyOptions::Format::kCsv;
  const bool binary = copy.format == CopyOptions::Format::kBinary;
  if (csv) {
    copy.delimiter = ',';
    copy.null = "";
  }
  bool has_escape = false;
  auto needs_csv = [csv](const char* what) {
    return csv ? Status()
               : SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                          "COPY {} available only in CSV mode", what);
  };
  for (const sql::ast::Option& option : options) {
    const std::string& name = option.name;
    if (binary && (name == "delimiter" || name == "null")) {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "cannot specify {} in BINARY mode",
                      name == "null" ? "NULL" : "DELIMITER");
    }
    if (name == "delimiter") {
      CELLAR_TRY_ASSIGN(copy.delimiter, OneCharacter(option, "delimiter"));
      if (copy.delimiter == '\n' || copy.delimiter == '\r') {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "COPY delimiter cannot be newline or carriage return");
      }
      if (!csv &&
          std::strchr("\\.abcdefghijklmnopqrstuvwxyz0123456789", copy.delimiter) != nullptr) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "COPY delimiter cannot be \"{}\"", std::string(1, copy.delimiter));
      }
    } else if (name == "null") {
      copy.null = option.ToText();
      if (copy.null.find_first_of("\r\n") != std::string::npos) {
        return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                        "COPY null representation cannot use newline or carriage return");
      }
    } else if (name == "header") {
      if (binary)
        return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                        "cannot specify HEADER in BINARY mode");
      if (option.ToText() == "match") {
        if (!from) {
          return SqlError(Code::kUnsupported, sqlstate::kFeatureNotSupported,
                          "cannot use \"match\" with HEADER in COPY TO");
        }
        copy.header = CopyOptions::Header::kMatch;
        continue;
      }
      const sql::ast::Option::BoolValue value = option.ToBool();
      if (!value.valid) {
        return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                        "header requires a Boolean value or \"match\"");
      }
      copy.header = value.value ? CopyOptions::Header::kSkip : CopyOptions::Header::kNone;
    } else if (name == "quote") {
      CELLAR_TRY(needs_csv("quote"));
      CELLAR_TRY_ASSIGN(copy.quote, OneCharacter(option, "quote"));
      if (!has_escape) copy.escape = copy.quote;
    } else if (name == "escape") {
      CELLAR_TRY(needs_csv("escape"));
      CELLAR_TRY_ASSIGN(copy.escape, OneCharacter(option, "escape"));
      has_escape = true;
    } else if (name == "force_quote") {
      CELLAR_TRY(needs_csv("force quote"));
      copy.force_quote_all = option.value_kind == sql::ast::OptionKind::kStar;
      copy.force_quote = option.list;
    } else if (name == "force_not_null") {
      CELLAR_TRY(needs_csv("force not null"));
      copy.force_not_null = option.list;
    } else if (name == "force_null") {
      CELLAR_TRY(needs_csv("force null"));
      copy.force_null = option.list;
    } else if (name == "encoding") {
      std::string encoding = option.ToText();
      for (char& c : encoding) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
      if (encoding != "UTF8" && encoding != "UTF-8" && encoding != "UNICODE") {
        return UnsupportedError("COPY encoding \"{}\" is not supported", option.ToText());
      }
    } else if (name != "format" && name != "freeze") {
      return SqlError(Code::kInvalid, sqlstate::kSyntaxError, "option \"{}\" not recognized", name)
          .WithLocation(option.location);
    }
  }
  if (copy.null.find(copy.delimiter) != std::string::npos && !binary) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "COPY delimiter character must not appear in the NULL specification");
  }
  if (csv && copy.delimiter == copy.quote) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "COPY delimiter and quote must be different");
  }
  return copy;
}

// ---- Reading
// ----------------------------------------------------------------------------------------------

CopyReader::CopyReader(const CopyOptions& options, std::vector<CopyColumn> columns,
                       std::string table, Parse parse, Source source)
    : options_(options),
      columns_(std::move(columns)),
      table_(std::move(table)),
      parse_(std::move(parse)),
      source_(std::move(source)) {
  auto flags = [this](const std::vector<std::string>& names) {
    std::vector<uint8_t> set(columns_.size(), 0);
    for (size_t c = 0; c < columns_.size(); ++c) {
      set[c] = std::find(names.begin(), names.end(), columns_[c].name) != names.end();
    }
    return set;
  };
  force_not_null_ = flags(options_.force_not_null);
  force_null_ = flags(options_.force_null);
}

std::string CopyReader::Context() const { return fmt::format("COPY {}, line {}", table_, line_); }

Result<bool> CopyReader::Fill() {
  if (source_done_) return false;
  if (start_ > 0) {
    buffer_.erase(0, start_);
    start_ = 0;
  }
  if (buffer_.size() > kMaxRecordBytes) {
    return SqlError(Code::kLimit, sqlstate::kProgramLimitExceeded,
                    "a line of COPY data is longer than 1 GB")
        .WithContext(Context());
  }
  chunk_.clear();
  CELLAR_TRY_ASSIGN(bool more, source_(&chunk_));
  if (!more) {
    source_done_ = true;
    return false;
  }
  // A long record is held once, once more as its buffer grows, and its fields without escapes.
  const size_t size = buffer_.size() + chunk_.size();
  if (size > kLongRecordBytes || charge_.bytes() != 0) CELLAR_TRY(charge_.Resize(2 * size));
  buffer_ += chunk_;
  return true;
}

Result<bool> CopyReader::Need(size_t bytes) {
  while (buffer_.size() - start_ < bytes) {
    CELLAR_TRY_ASSIGN(bool more, Fill());
    if (!more) return false;
  }
  return true;
}

Result<bool> CopyReader::ReadTextRecord() {
  size_t searched = start_;
  size_t end;
  size_t next;
  while (true) {
    const char* found = static_cast<const char*>(
        std::memchr(buffer_.data() + searched, '\n', buffer_.size() - searched));
    if (found != nullptr) {
      end = static_cast<size_t>(found - buffer_.data());
      // A backslash before the newline makes it data.
      size_t slashes = 0;
      while (end - slashes > start_ && buffer_[end - slashes - 1] == '\\') ++slashes;
      if (slashes % 2 == 1) {
        searched = end + 1;
        continue;
      }
      next = end + 1;
      break;
    }
    const size_t offset = buffer_.size() - start_;
    CELLAR_TRY_ASSIGN(bool more, Fill());
    if (!more) {
      if (start_ >= buffer_.size()) return false;
      end = next = buffer_.size();
      break;
    }
    searched = start_ + offset;
  }
  ++line_;
  if (end > start_ && buffer_[end - 1] == '\r') --end;
  std::string_view line(buffer_.data() + start_, end - start_);
  start_ = next;
  if (line == "\\.") {
    finished_ = true;
    // What follows the end marker is read and ignored.
    while (true) {
      buffer_.clear();
      start_ = 0;
      CELLAR_TRY_ASSIGN(bool more, Fill());
      if (!more) break;
    }
    return false;
  }
  if (!IsValidText(line)) {
    return SqlError(Code::kInvalid, sqlstate::kCharacterNotInRepertoire,
                    "invalid byte sequence for encoding \"UTF8\"")
        .WithContext(Context());
  }
  fields_.clear();
  unescaped_.clear();
  if (line.find('\\') == std::string_view::npos) {
    size_t begin = 0;
    while (true) {
      const size_t tab = line.find(options_.delimiter, begin);
      Field field;
      field.text = line.substr(begin, tab == std::string_view::npos ? tab : tab - begin);
      field.null = field.text == options_.null;
      fields_.push_back(field);
      if (tab == std::string_view::npos) break;
      begin = tab + 1;
    }
    return true;
  }
  // With escapes: values are built in unescaped_, which must not move under the views.
  unescaped_.reserve(line.size());
  size_t i = 0;
  while (true) {
    const size_t raw_start = i;
    const size_t out_start = unescaped_.size();
    while (i < line.size() && line[i] != options_.delimiter) {
      char c = line[i++];
      if (c == '\\' && i < line.size()) {
        c = line[i++];
        switch (c) {
          case 'b': c = '\b'; break;
          case 'f': c = '\f'; break;
          case 'n': c = '\n'; break;
          case 'r': c = '\r'; break;
          case 't': c = '\t'; break;
          case 'v': c = '\v'; break;
          case 'x': {
            int value = 0, digits = 0;
            while (digits < 2 && i < line.size() && HexValue(line[i]) >= 0) {
              value = value * 16 + HexValue(line[i++]);
              ++digits;
            }
            if (digits > 0) c = static_cast<char>(value);
            break;
          }
          default:
            if (c >= '0' && c <= '7') {
              int value = c - '0';
              for (int digits = 1;
                   digits < 3 && i < line.size() && line[i] >= '0' && line[i] <= '7'; ++digits) {
                value = value * 8 + (line[i++] - '0');
              }
              c = static_cast<char>(value);
            }
        }
      }
      unescaped_ += c;
    }
    Field field;
    field.text = std::string_view(unescaped_).substr(out_start);
    field.null = line.substr(raw_start, i - raw_start) == options_.null;
    if (!IsValidText(field.text)) {
      return SqlError(Code::kInvalid, sqlstate::kCharacterNotInRepertoire,
                      "invalid byte sequence for encoding \"UTF8\"")
          .WithContext(Context());
    }
    fields_.push_back(field);
    if (i >= line.size()) break;
    ++i;
  }
  return true;
}

Result<bool> CopyReader::ReadCsvRecord() {
  // Find the end: a newline outside quotes.
  size_t i = start_;
  bool in_quotes = false;
  size_t end, next;
  uint64_t newlines = 0;
  while (true) {
    bool found = false;
    for (; i < buffer_.size(); ++i) {
      const char c = buffer_[i];
      if (in_quotes) {
        if (c == options_.escape && c != options_.quote) {
          if (i + 1 >= buffer_.size() && !source_done_) break;  // need the next byte
          ++i;
          continue;
        }
        if (c == options_.quote)
          in_quotes = false;  // a doubled quote opens again at once
        else if (c == '\n')
          ++newlines;
      } else if (c == options_.quote) {
        in_quotes = true;
      } else if (c == '\n') {
        found = true;
        break;
      }
    }
    if (found) {
      end = i;
      next = i + 1;
      break;
    }
    const size_t offset = i - start_;
    CELLAR_TRY_ASSIGN(bool more, Fill());
    i = start_ + std::min(offset, buffer_.size() - start_);
    if (!more) {
      if (start_ >= buffer_.size()) return false;
      if (in_quotes) {
        ++line_;
        return BadFormat("unterminated CSV quoted field").WithContext(Context());
      }
      end = next = buffer_.size();
      break;
    }
  }
  ++line_;
  if (end > start_ && buffer_[end - 1] == '\r') --end;
  std::string_view line(buffer_.data() + start_, end - start_);
  start_ = next;
  if (line == "\\.") {
    finished_ = true;
    while (true) {
      buffer_.clear();
      start_ = 0;
      CELLAR_TRY_ASSIGN(bool more, Fill());
      if (!more) break;
    }
    return false;
  }
  if (!IsValidText(line)) {
    return SqlError(Code::kInvalid, sqlstate::kCharacterNotInRepertoire,
                    "invalid byte sequence for encoding \"UTF8\"")
        .WithContext(Context());
  }
  fields_.clear();
  unescaped_.clear();
  unescaped_.reserve(line.size());
  size_t at = 0;
  while (true) {
    Field field;
    if (at < line.size() && line[at] != options_.quote &&
        line.find(options_.quote, at) == std::string_view::npos) {
      const size_t comma = std::min(line.find(options_.delimiter, at), line.size());
      field.text = line.substr(at, comma - at);
      at = comma;
    } else {
      const size_t out_start = unescaped_.size();
      bool quoted = false;
      while (at < line.size()) {
        const char c = line[at];
        if (quoted) {
          if (c == options_.escape && at + 1 < line.size() &&
              (line[at + 1] == options_.quote || line[at + 1] == options_.escape)) {
            unescaped_ += line[at + 1];
            at += 2;
            continue;
          }
          if (c == options_.quote) {
            quoted = false;
            ++at;
            continue;
          }
        } else {
          if (c == options_.delimiter) break;
          if (c == options_.quote) {
            quoted = true;
            field.quoted = true;
            ++at;
            continue;
          }
        }
        unescaped_ += c;
        ++at;
      }
      field.text = std::string_view(unescaped_).substr(out_start);
    }
    fields_.push_back(field);
    if (at >= line.size()) break;
    ++at;
    if (at == line.size()) {  // a trailing delimiter: one more, empty field
      fields_.push_back(Field{line.substr(line.size()), false, false});
      break;
    }
  }
  for (size_t c = 0; c < fields_.size(); ++c) {
    Field& field = fields_[c];
    field.null = field.text == options_.null && !field.quoted;
    if (c >= columns_.size()) continue;
    if (force_not_null_[c]) field.null = false;
    if (force_null_[c] && field.text == options_.null) field.null = true;
  }
  line_ += newlines;
  return true;
}

Result<bool> CopyReader::ReadRecord() {
  if (finished_) return false;
  return options_.format == CopyOptions::Format::kCsv ? ReadCsvRecord() : ReadTextRecord();
}

Status CopyReader::FieldError(Status status, size_t column) const {
  constexpr size_t kMaxShown = 100;
  std::string_view text = fields_[column].text;
  std::string shown(text.substr(0, kMaxShown));
  if (text.size() > kMaxShown) shown += "...";
  return std::move(status).WithContext(fmt::format("COPY {}, line {}, column {}: \"{}\"", table_,
                                                   line_, columns_[column].name, shown));
}

Status CopyReader::Store(RowBatch* batch, size_t row) {
  if (fields_.size() < columns_.size()) {
    return BadFormat(fmt::format("missing data for column \"{}\"", columns_[fields_.size()].name))
        .WithContext(Context());
  }
  if (fields_.size() > columns_.size()) {
    // A table without columns takes empty lines.
    if (!(columns_.empty() && fields_.size() == 1 && fields_[0].text.empty())) {
      return BadFormat("extra data after last expected column").WithContext(Context());
    }
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Field& field = fields_[c];
    ColumnVector& column = batch->column(c);
    if (field.null) {
      column.SetNull(row);
      continue;
    }
    Result<Datum> value = parse_(field.text, columns_[c].type, batch->arena());
    if (!value.ok()) return FieldError(std::move(value).status(), c);
    column.Set(row, *value);
  }
  return Status();
}

Status CopyReader::SkipHeader() {
  if (options_.format == CopyOptions::Format::kBinary) {
    CELLAR_TRY_ASSIGN(bool enough, Need(kBinarySignature.size() + 8));
    if (!enough ||
        std::string_view(buffer_).substr(start_, kBinarySignature.size()) != kBinarySignature) {
      return BadFormat("COPY file signature not recognized");
    }
    const char* at = buffer_.data() + start_ + kBinarySignature.size();
    const uint32_t flags = ReadBig32(at), extension = ReadBig32(at + 4);
    if ((flags & 0xFFFF0000u) != 0)
      return BadFormat("unrecognized critical flags in COPY file header");
    start_ += kBinarySignature.size() + 8;
    CELLAR_TRY_ASSIGN(bool rest, Need(extension));
    if (!rest) return BadFormat("invalid COPY file header (wrong length)");
    start_ += extension;
    return Status();
  }
  if (options_.header == CopyOptions::Header::kNone) return Status();
  CELLAR_TRY_ASSIGN(bool more, ReadRecord());
  if (!more || options_.header == CopyOptions::Header::kSkip) return Status();
  if (fields_.size() != columns_.size()) {
    return BadFormat(fmt::format("wrong number of fields in header line: got {}, expected {}",
                                 fields_.size(), columns_.size()))
        .WithContext(Context());
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (fields_[c].text == columns_[c].name) continue;
    return BadFormat(
               fmt::format(
                   "column name mismatch in header line field {}: got \"{}\", expected \"{}\"",
                   c + 1, fields_[c].text, columns_[c].name))
        .WithContext(Context());
  }
  return Status();
}

Result<bool> CopyReader::ReadBinaryRow(RowBatch* batch, size_t row) {
  if (finished_) return false;
  ++line_;
  CELLAR_TRY_ASSIGN(bool has_count, Need(2));
  if (!has_count) {
    if (buffer_.size() == start_) return false;  // no trailer: as old clients do
    return BadFormat("unexpected EOF in COPY data").WithContext(Context());
  }
  const int16_t count = static_cast<int16_t>((static_cast<unsigned char>(buffer_[start_]) << 8) |
                                             static_cast<unsigned char>(buffer_[start_ + 1]));
  start_ += 2;
  if (count == -1) {
    finished_ = true;
    while (true) {
      buffer_.clear();
      start_ = 0;
      CELLAR_TRY_ASSIGN(bool more, Fill());
      if (!more) break;
    }
    return false;
  }
  if (count != static_cast<int16_t>(columns_.size())) {
    return BadFormat(fmt::format("row field count is {}, expected {}", count, columns_.size()))
        .WithContext(Context());
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    CELLAR_TRY_ASSIGN(bool has_length, Need(4));
    if (!has_length) return BadFormat("unexpected EOF in COPY data").WithContext(Context());
    const int32_t length = static_cast<int32_t>(ReadBig32(buffer_.data() + start_));
    start_ += 4;
    if (length == -1) {
      batch->column(c).SetNull(row);
      continue;
    }
    if (length < 0) return BadFormat("invalid field size").WithContext(Context());
    CELLAR_TRY_ASSIGN(bool has_bytes, Need(static_cast<size_t>(length)));
    if (!has_bytes) return BadFormat("unexpected EOF in COPY data").WithContext(Context());
    const std::string_view bytes =
        batch->arena()->Copy(std::string_view(buffer_).substr(start_, static_cast<size_t>(length)));
    start_ += static_cast<size_t>(length);
    Result<Datum> value = ParseDatumBinary(bytes, columns_[c].type, batch->arena());
    if (!value.ok()) {
      return std::move(value).status().WithContext(
          fmt::format("COPY {}, line {}, column {}", table_, line_, columns_[c].name));
    }
    CELLAR_TRY_ASSIGN(Datum fitted, ApplyModifier(*value, columns_[c].type, false, batch->arena()));
    batch->column(c).Set(row, fitted);
  }
  return true;
}

Result<bool> CopyReader::Next(RowBatch* batch) {
  if (!started_) {
    started_ = true;
    CELLAR_TRY(SkipHeader());
  }
  size_t rows = 0;
  batch->Resize(kBatchRows);
  while (rows < kBatchRows) {
    if (options_.format == CopyOptions::Format::kBinary) {
      CELLAR_TRY_ASSIGN(bool more, ReadBinaryRow(batch, rows));
      if (!more) break;
    } else {
      CELLAR_TRY_ASSIGN(bool more, ReadRecord());
      if (!more) break;
      CELLAR_TRY(Store(batch, rows));
    }
    ++rows;
  }
  batch->Resize(rows);
  return rows > 0;
}

// ---- Writing
// ----------------------------------------------------------------------------------------------

CopyWriter::CopyWriter(const CopyOptions& options, std::vector<CopyColumn> columns, Print print)
    : options_(options), columns_(std::move(columns)), print_(std::move(print)) {
  for (const CopyColumn& column : columns_) {
    force_quote_.push_back(options_.force_quote_all ||
                           std::find(options_.force_quote.begin(), options_.force_quote.end(),
                                     column.name) != options_.force_quote.end());
  }
}

void CopyWriter::AppendText(std::string_view value, std::string* out) const {
  for (char c : value) {
    switch (c) {
      case '\b': *out += "\\b"; break;
      case '\f': *out += "\\f"; break;
      case '\n': *out += "\\n"; break;
      case '\r': *out += "\\r"; break;
      case '\t': *out += "\\t"; break;
      case '\v': *out += "\\v"; break;
      case '\\': *out += "\\\\"; break;
      default:
        if (c == options_.delimiter) *out += '\\';
        *out += c;
    }
  }
}

void CopyWriter::AppendCsv(std::string_view value, bool force, bool single,
                           std::string* out) const {
  bool quote = force || value == options_.null || (single && value == "\\.");
  for (size_t i = 0; i < value.size() && !quote; ++i) {
    const char c = value[i];
    quote = c == options_.delimiter || c == options_.quote || c == '\n' || c == '\r';
  }
  if (!quote) {
    *out += value;
    return;
  }
  *out += options_.quote;
  for (char c : value) {
    if (c == options_.quote || c == options_.escape) *out += options_.escape;
    *out += c;
  }
  *out += options_.quote;
}

void CopyWriter::AppendHeader(std::string* out) const {
  if (options_.format == CopyOptions::Format::kBinary) {
    *out += kBinarySignature;
    AppendBig(0, 4, out);
    AppendBig(0, 4, out);
    return;
  }
  if (options_.header == CopyOptions::Header::kNone) return;
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (c > 0) *out += options_.delimiter;
    if (options_.format == CopyOptions::Format::kCsv)
      AppendCsv(columns_[c].name, false, columns_.size() == 1, out);
    else
      AppendText(columns_[c].name, out);
  }
  *out += '\n';
}

void CopyWriter::AppendRow(const RowBatch& batch, size_t row, std::string* out) const {
  if (options_.format == CopyOptions::Format::kBinary) {
    AppendBig(static_cast<uint32_t>(columns_.size()), 2, out);
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (batch.column(c).IsNull(row)) {
        AppendBig(0xFFFFFFFFu, 4, out);
        continue;
      }
      scratch_.clear();
      AppendDatumBinary(batch.column(c).Get(row), columns_[c].type, &scratch_);
      AppendBig(static_cast<uint32_t>(scratch_.size()), 4, out);
      *out += scratch_;
    }
    return;
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (c > 0) *out += options_.delimiter;
    if (batch.column(c).IsNull(row)) {
      *out += options_.null;
      continue;
    }
    scratch_.clear();
    print_(batch.column(c).Get(row), columns_[c].type, &scratch_);
    if (options_.format == CopyOptions::Format::kCsv) {
      AppendCsv(scratch_, force_quote_[c] != 0, columns_.size() == 1, out);
    } else {
      AppendText(scratch_, out);
    }
  }
  *out += '\n';
}

void CopyWriter::AppendTrailer(std::string* out) const {
  if (options_.format == CopyOptions::Format::kBinary) AppendBig(0xFFFF, 2, out);
}

}  // namespace cellar::session
