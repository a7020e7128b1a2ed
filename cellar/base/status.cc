#include "cellar/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace cellar {

struct Status::Rep {
  Code code = Code::kInternal;
  int position = 0;
  int location = -1;
  std::string message, detail, hint, sqlstate, context, schema, table, column, constraint;
};

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalid: return "invalid";
    case Code::kNotFound: return "not found";
    case Code::kExists: return "exists";
    case Code::kConstraint: return "constraint";
    case Code::kConflict: return "conflict";
    case Code::kCommitUnknown: return "commit unknown";
    case Code::kUnavailable: return "unavailable";
    case Code::kLimit: return "limit";
    case Code::kCancelled: return "cancelled";
    case Code::kUnsupported: return "unsupported";
    case Code::kCorruption: return "corruption";
    case Code::kInternal: return "internal";
  }
  return "unknown code";
}

Status::Status(Code code, std::string message) {
  if (code == Code::kOk) return;
  // tidy: allow(new) the deleter is out of line, so that OK costs nothing
  rep_.reset(new Rep);
  rep_->code = code;
  rep_->message = std::move(message);
}
// tidy: allow(new) the deleter is out of line, so that OK costs nothing
Status::Status(const Status& other) : rep_(other.rep_ ? new Rep(*other.rep_) : nullptr) {}
Status& Status::operator=(const Status& other) {
  // tidy: allow(new) the deleter is out of line, so that OK costs nothing
  if (this != &other) rep_.reset(other.rep_ ? new Rep(*other.rep_) : nullptr);
  return *this;
}
// tidy: allow(delete) the deleter is out of line, so that OK costs nothing
void Status::RepDeleter::operator()(Rep* rep) const { delete rep; }

Status::Rep& Status::Mutable() {
  if (!rep_) internal::DieOfResult("detail added to an OK status", *this);
  return *rep_;
}

Code Status::code() const { return rep_ ? rep_->code : Code::kOk; }
std::string_view Status::message() const { return rep_ ? rep_->message : std::string_view(); }
std::string_view Status::detail() const { return rep_ ? rep_->detail : std::string_view(); }
std::string_view Status::hint() const { return rep_ ? rep_->hint : std::string_view(); }
std::string_view Status::sqlstate() const { return rep_ ? rep_->sqlstate : std::string_view(); }
std::string_view Status::context() const { return rep_ ? rep_->context : std::string_view(); }
std::string_view Status::schema_name() const { return rep_ ? rep_->schema : std::string_view(); }
std::string_view Status::table_name() const { return rep_ ? rep_->table : std::string_view(); }
std::string_view Status::column_name() const { return rep_ ? rep_->column : std::string_view(); }
std::string_view Status::constraint_name() const {
  return rep_ ? rep_->constraint : std::string_view();
}
int Status::position() const { return rep_ ? rep_->position : 0; }
int Status::location() const { return rep_ ? rep_->location : -1; }

Status Status::WithSqlState(std::string_view five) && {
  Mutable().sqlstate = five;
  return std::move(*this);
}
Status Status::WithDetail(std::string text) && {
  Mutable().detail = std::move(text);
  return std::move(*this);
}
Status Status::WithHint(std::string text) && {
  Mutable().hint = std::move(text);
  return std::move(*this);
}
Status Status::WithContext(std::string text) && {
  Mutable().context = std::move(text);
  return std::move(*this);
}
Status Status::WithPosition(int position) && {
  Mutable().position = position;
  return std::move(*this);
}
Status Status::WithLocation(int byte_offset) && {
  Mutable().location = byte_offset;
  return std::move(*this);
}
Status Status::WithTable(std::string schema, std::string table) && {
  Mutable().schema = std::move(schema);
  Mutable().table = std::move(table);
  return std::move(*this);
}
Status Status::WithColumn(std::string column) && {
  Mutable().column = std::move(column);
  return std::move(*this);
}
Status Status::WithConstraint(std::string name) && {
  Mutable().constraint = std::move(name);
  return std::move(*this);
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string text = fmt::format("{}: {}", CodeName(rep_->code), rep_->message);
  if (!rep_->sqlstate.empty()) text += fmt::format(" [{}]", rep_->sqlstate);
  if (!rep_->detail.empty()) text += fmt::format(" ({})", rep_->detail);
  return text;
}

namespace internal {
void DieOfResult(const char* what, const Status& status) {
  std::fprintf(stderr, "cellar: fatal: %s: %s\n", what, status.ToString().c_str());
  std::abort();
}
}  // namespace internal

}  // namespace cellar
