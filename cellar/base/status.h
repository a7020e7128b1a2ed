// Status and Result: how every function of Cellar reports failure.
//
// A Status is one pointer; OK is null. A code answers one question: what may
// the caller do now. SQL layers add a SQLSTATE, detail, hint and names; the
// wire layers map those to frames. See docs/decisions/0002-status.md.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace cellar {

enum class Code : uint8_t {
  kOk = 0,
  kInvalid,        // fix the request
  kNotFound,       // what was named is not there
  kExists,         // what was to be made is there already
  kConstraint,     // the data refuses
  kConflict,       // run the transaction again
  kCommitUnknown,  // find out whether it happened before running it again
  kUnavailable,    // try later or elsewhere
  kLimit,          // ask for less
  kCancelled,      // somebody asked us to stop
  kUnsupported,    // not built; see docs/guide/limits.md
  kCorruption,     // stop and look: stored bytes make no sense
  kInternal,       // our bug
};

// The name of a code, lower case, for logs ("not found").
std::string_view CodeName(Code code);

// Immutable once returned, apart from the With... builders. One thread at a time.
class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(Code code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return rep_ == nullptr; }
  Code code() const;
  // Short, lower case, no full stop; never holds user values.
  std::string_view message() const;
  std::string_view detail() const;    // a sentence; may hold user values
  std::string_view hint() const;      // a sentence: what to do
  std::string_view sqlstate() const;  // five characters, or empty: derive it from code()
  std::string_view context() const;   // where it happened ("COPY t, line 3"), for clients' CONTEXT
  std::string_view schema_name() const;
  std::string_view table_name() const;
  std::string_view column_name() const;
  std::string_view constraint_name() const;
  // 1-based position in the statement text, in characters; 0 when unknown.
  int position() const;
  // Byte offset (0-based) in the statement text; -1 when unknown. The session turns it into
  // position().
  int location() const;

  Status WithSqlState(std::string_view five) &&;
  Status WithDetail(std::string text) &&;
  Status WithHint(std::string text) &&;
  Status WithContext(std::string text) &&;
  Status WithPosition(int position) &&;
  Status WithLocation(int byte_offset) &&;
  Status WithTable(std::string schema, std::string table) &&;
  Status WithColumn(std::string column) &&;
  Status WithConstraint(std::string name) &&;

  // "conflict: message (detail)" for logs and tests.
  std::string ToString() const;

 private:
  struct Rep;
  struct RepDeleter {
    void operator()(Rep* rep) const;
  };
  Rep& Mutable();
  std::unique_ptr<Rep, RepDeleter> rep_;
};

template <typename... Args>
Status MakeError(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}
// An error with a SQLSTATE: SqlError(Code::kInvalid, sqlstate::kUndefinedTable, "relation \"{}\"
// does not exist", n).
template <typename... Args>
Status SqlError(Code code, std::string_view sqlstate, fmt::format_string<Args...> format,
                Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...)).WithSqlState(sqlstate);
}
template <typename... Args>
Status InvalidError(fmt::format_string<Args...> format, Args&&... args) {
  return MakeError(Code::kInvalid, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status CorruptionError(fmt::format_string<Args...> format, Args&&... args) {
  return MakeError(Code::kCorruption, format, std::forward<Args>(args)...);
}
template <typename... Args>
Status InternalError(fmt::format_string<Args...> format, Args&&... args) {
  return MakeError(Code::kInternal, format, std::forward<Args>(args)...);
}
// SQLSTATE 0A000.
template <typename... Args>
Status UnsupportedError(fmt::format_string<Args...> format, Args&&... args) {
  return SqlError(Code::kUnsupported, "0A000", format, std::forward<Args>(args)...);
}

// A value or an error. Reading the value of an error ends the process.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {
    CheckIsError();
  }  // NOLINT
  template <typename U>
  requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Status> &&
           !std::is_same_v<std::remove_cvref_t<U>, Result>) Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  const Status& status() const& { return ok() ? OkStatus() : std::get<1>(state_); }
  Status status() && { return ok() ? Status() : std::move(std::get<1>(state_)); }

  T& value() & {
    CheckIsValue();
    return std::get<0>(state_);
  }
  const T& value() const& {
    CheckIsValue();
    return std::get<0>(state_);
  }
  T&& value() && {
    CheckIsValue();
    return std::move(std::get<0>(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  static const Status& OkStatus() {
    static const Status ok;
    return ok;
  }
  void CheckIsError() const;
  void CheckIsValue() const;
  std::variant<T, Status> state_;
};

namespace internal {
[[noreturn]] void DieOfResult(const char* what, const Status& status);
inline const Status& AsStatus(const Status& status) { return status; }
inline Status AsStatus(Status&& status) { return std::move(status); }
}  // namespace internal

template <typename T>
void Result<T>::CheckIsError() const {
  if (std::get<1>(state_).ok()) internal::DieOfResult("Result made from an OK status", Status());
}
template <typename T>
void Result<T>::CheckIsValue() const {
  if (!ok()) internal::DieOfResult("value of an error read", std::get<1>(state_));
}

// Evaluates to nothing; returns the error to our caller.
#define CELLAR_TRY(expr)                                            \
  do {                                                              \
    if (::cellar::Status cellar_try_ = (expr); !cellar_try_.ok()) { \
      return cellar_try_;                                           \
    }                                                               \
  } while (false)

#define CELLAR_CONCAT_INNER(a, b) a##b
#define CELLAR_CONCAT(a, b) CELLAR_CONCAT_INNER(a, b)
// CELLAR_TRY_ASSIGN(RowBatch rows, reader.NextBatch());
#define CELLAR_TRY_ASSIGN(decl, expr) \
  CELLAR_TRY_ASSIGN_INNER(CELLAR_CONCAT(cellar_result_, __LINE__), decl, expr)
#define CELLAR_TRY_ASSIGN_INNER(tmp, decl, expr) \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  decl = std::move(tmp).value()

}  // namespace cellar
