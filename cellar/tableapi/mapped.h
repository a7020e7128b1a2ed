// Plain structs as rows, mapped at compile time:
//
//   struct Employee { int64_t id; std::string last_name; std::optional<std::string> telephone; };
//   template <> struct cellar::Mapping<Employee> {
//     static constexpr auto kFields = std::tuple(cellar::Field("id", &Employee::id), ...);
//   };
//   cellar::Mapped<Employee> employees(table);
//   CELLAR_TRY(employees.Put({7, "lovelace", std::nullopt}).status());
//   CELLAR_TRY_ASSIGN(std::optional<Employee> ada, employees.Get({7}));
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cellar/table.h"

namespace cellar {

template <typename T, typename M>
struct FieldOf {
  std::string_view column;
  M T::*member;
};
template <typename T, typename M>
constexpr FieldOf<T, M> Field(std::string_view column, M T::*member) {
  return {column, member};
}

// Specialised for a struct: kFields, a tuple of Field(column, &T::member). Members are bool,
// integers, double, std::string (any type, as text), Cell, or an optional of these for columns that
// may be NULL.
template <typename T>
struct Mapping;

// A table whose rows are T's. Keeps the table; for all threads.
template <typename T>
class Mapped {
 public:
  explicit Mapped(std::shared_ptr<Table> table) : table_(std::move(table)) {}
  Table* table() const { return table_.get(); }

  // The columns that T has, in the order of its fields.
  static Projection Columns() {
    std::vector<std::string> names;
    std::apply([&](const auto&... field) { (names.emplace_back(field.column), ...); },
               Mapping<T>::kFields);
    return Projection(std::move(names));
  }
  // A row of Columns().
  static T FromRow(const Row& row) {
    T value{};
    size_t column = 0;
    auto read = [&](const auto& field) {
      using Member = std::remove_cvref_t<decltype(value.*field.member)>;
      value.*field.member = row.Get<Member>(column++);
    };
    std::apply([&](const auto&... field) { (read(field), ...); }, Mapping<T>::kFields);
    return value;
  }
  Record ToRecord(const T& value) const {
    Record record = table_->NewRecord();
    std::apply([&](const auto&... field) { (record.Set(field.column, value.*field.member), ...); },
               Mapping<T>::kFields);
    return record;
  }

  Result<std::optional<T>> Get(const Key& key) const {
    CELLAR_TRY_ASSIGN(RowSet rows, table_->Get(key, Columns()));
    if (rows.empty()) return std::optional<T>();
    return std::optional<T>(FromRow(rows[0]));
  }
  Result<std::vector<T>> Lookup(std::string_view index, const Key& key) const {
    CELLAR_TRY_ASSIGN(RowSet rows, table_->Lookup(index, key, Columns()));
    std::vector<T> values;
    for (Row row : rows) values.push_back(FromRow(row));
    return values;
  }
  Result<WriteResult> Put(const T& value, const PutOptions& options = {}) const {
    return table_->Put(ToRecord(value), options);
  }
  Result<WriteResult> Put(const std::vector<T>& values, const PutOptions& options = {}) const {
    std::vector<Record> records;
    for (const T& value : values) records.push_back(ToRecord(value));
    if (records.empty()) return WriteResult();
    // One schema for all, should it change meanwhile.
    return table_->Put(std::span<const Record>(records), options);
  }
  // Calls visit(T) for each row; stops at its first error.
  template <typename F>
  Status Scan(ScanOptions options, F&& visit) const {
    options.columns = Columns();
    CELLAR_TRY_ASSIGN(std::unique_ptr<Scanner> scan, table_->Scan(options));
    for (Row row : *scan) {
      CELLAR_TRY(visit(FromRow(row)));
    }
    return scan->status();
  }

 private:
  std::shared_ptr<Table> table_;
};

}  // namespace cellar
