// Connection::Load: the caller's rows become a binary COPY, block by block as the session asks.
#include "cellar/library/library_internal.h"

namespace cellar {
namespace {

// Frames of the binary format (PostgreSQL manual, "COPY"): big-endian lengths.
void AppendInt16(int16_t value, std::string* out) {
  const auto bits = static_cast<uint16_t>(value);
  out->push_back(static_cast<char>(bits >> 8));
  out->push_back(static_cast<char>(bits & 0xFF));
}

void SetInt32(int32_t value, char* out) {
  const auto bits = static_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) out[i] = static_cast<char>(bits >> (24 - 8 * i));
}

constexpr std::string_view kSignature("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);

std::string Quote(std::string_view name) {
  std::string quoted = "\"";
  for (char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

struct Loader::Impl {
  std::vector<Type> types;
  FormatSettings format;
  Arena arena;
  std::string* out = nullptr;
};

Status Loader::AddRow(std::span<const Param> values) {
  Impl& impl = *impl_;
  if (values.size() != impl.types.size()) {
    return SqlError(Code::kInvalid, sqlstate::kProtocolViolation, "{} values given for {} columns",
                    values.size(), impl.types.size());
  }
  impl.arena.Reset();
  const size_t row_start = impl.out->size();
  AppendInt16(static_cast<int16_t>(values.size()), impl.out);
  for (size_t i = 0; i < values.size(); ++i) {
    Result<Datum> value =
        internal::ToDatum(values[i], impl.types[i], impl.format, true, &impl.arena);
    if (!value.ok()) {
      impl.out->resize(row_start);
      return std::move(value).status().WithContext(fmt::format("column {} of a row", i + 1));
    }
    const size_t start = impl.out->size();
    impl.out->append(4, '\0');
    int32_t length = -1;
    if (!value->is_null()) {
      AppendDatumBinary(*value, impl.types[i], impl.out);
      length = static_cast<int32_t>(impl.out->size() - start - 4);
    }
    SetInt32(length, impl.out->data() + start);
  }
  return Status();
}

namespace {

// Answers COPY FROM STDIN with what `fill` writes.
class LoadSink : public internal::LibrarySink {
 public:
  LoadSink(internal::ConnectionState* connection, std::vector<Type>* types,
           std::function<Result<bool>(std::string*)> fill)
      : LibrarySink(connection), types_(types), fill_(std::move(fill)) {}
  Status OnCopyInColumns(std::span<const session::ResultColumn> columns) override {
    types_->clear();
    for (const session::ResultColumn& column : columns) types_->push_back(column.type);
    return Status();
  }
  Status OnCopyIn(int, bool) override { return Status(); }
  Result<bool> ReadCopyData(std::string* chunk) override {
    chunk->clear();
    if (stage_ == Stage::kEnd) return false;
    if (stage_ == Stage::kHeader) {
      chunk->append(kSignature);
      stage_ = Stage::kRows;
    }
    CELLAR_TRY_ASSIGN(bool more, internal::CallProgram(
                                     connection(), [&]() -> Result<bool> { return fill_(chunk); }));
    if (!more) {
      AppendInt16(-1, chunk);
      stage_ = Stage::kEnd;
    }
    return true;
  }
  Status OnComplete(std::string_view tag) override {
    tag_ = tag;
    return Status();
  }
  const std::string& tag() const { return tag_; }

 private:
  enum class Stage { kHeader, kRows, kEnd };
  std::vector<Type>* types_;
  std::function<Result<bool>(std::string*)> fill_;
  Stage stage_ = Stage::kHeader;
  std::string tag_;
};

}  // namespace

Result<uint64_t> Connection::Load(SqlText table, std::span<const std::string> columns,
                                  const std::function<Result<bool>(Loader&)>& fill) {
  CELLAR_TRY(internal::CheckText(table));
  if (!fill) {
    return SqlError(Code::kInvalid, sqlstate::kNullValueNotAllowed,
                    "there is no function to get rows from");
  }
  std::string names;
  for (const std::string& column : columns) {
    if (!names.empty()) names += ", ";
    names += Quote(column);
  }
  const std::string copy =
      names.empty() ? fmt::format("COPY {} FROM STDIN (FORMAT binary)", table.view())
                    : fmt::format("COPY {} ({}) FROM STDIN (FORMAT binary)", table.view(), names);
  const std::shared_ptr<internal::ConnectionState> state = state_;
  return internal::Enter(state.get(), [&]() -> Result<uint64_t> {
    session::Session* session = state->session.get();
    // Rows that `fill` may step through.
    CELLAR_TRY(session::DirectStatement::Settle(session, true));
    Loader::Impl impl;
    impl.format = session->format();
    Loader loader(&impl);
    LoadSink sink(state.get(), &impl.types, [&](std::string* chunk) -> Result<bool> {
      impl.out = chunk;
      return fill(loader);
    });
    CELLAR_TRY(session->ExecuteSimple(copy, &sink));
    uint64_t rows = 0;
    for (char c : sink.tag()) {
      if (c >= '0' && c <= '9') rows = rows * 10 + static_cast<uint64_t>(c - '0');
    }
    return rows;
  });
}

}  // namespace cellar
