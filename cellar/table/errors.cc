#include "cellar/table/errors.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"

namespace cellar::table {
namespace {

// Longest value shown of a failing row, in bytes; PostgreSQL's figure.
constexpr size_t kShownBytes = 64;

void AppendText(Datum value, Type type, const FormatSettings& format, std::string* out) {
  if (value.is_null()) {
    out->append("null");
  } else {
    AppendDatumText(value, type, format, out);
  }
}

// Cuts at a character's boundary.
void AppendClipped(std::string_view text, std::string* out) {
  if (text.size() <= kShownBytes) {
    out->append(text);
    return;
  }
  size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  out->append(text.substr(0, end));
  out->append("...");
}

Status MakeDuplicate(const CompiledTable& table, const IndexCodec& index, std::string_view values,
                     DuplicateCause cause) {
  std::string names;
  for (uint32_t position : index.key_positions) {
    if (!names.empty()) names += ", ";
    names += table.NameAt(position);
  }
  const std::string& name = index.index->name;
  const bool building = cause == DuplicateCause::kIndexBuild;
  Status status = building
                      ? SqlError(Code::kConstraint, sqlstate::kUniqueViolation,
                                 "could not create unique index \"{}\"", name)
                      : SqlError(Code::kConstraint, sqlstate::kUniqueViolation,
                                 "duplicate key value violates unique constraint \"{}\"", name);
  return std::move(status)
      .WithDetail(fmt::format("Key ({})=({}) {}.", names, values,
                              building ? "is duplicated" : "already exists"))
      .WithTable("", table.table().name)
      .WithConstraint(name);
}

}  // namespace

Status DuplicateKey(const CompiledTable& table, const IndexCodec& index, const RowBatch& rows,
                    size_t row, const FormatSettings& format, DuplicateCause cause) {
  std::string values;
  for (uint32_t position : index.key_positions) {
    if (!values.empty()) values += ", ";
    AppendText(rows.column(position).Get(row), table.types()[position], format, &values);
  }
  return MakeDuplicate(table, index, values, cause);
}

Status DuplicateKey(const CompiledTable& table, const IndexCodec& index, std::string_view key,
                    const FormatSettings& format, DuplicateCause cause) {
  if (!key.starts_with(index.prefix)) return InternalError("duplicate key of another index");
  if (key.size() < index.fields_start()) return InternalError("duplicate key is too short");
  std::string_view in = key.substr(index.fields_start());
  Arena arena;
  std::string values;
  for (const codec::KeyColumn& column : index.key_columns) {
    CELLAR_TRY_ASSIGN(Datum value, codec::TakeKeyField(&in, column, &arena));
    if (!values.empty()) values += ", ";
    AppendText(value, column.type, format, &values);
  }
  return MakeDuplicate(table, index, values, cause);
}

std::string DescribeRow(const CompiledTable& table, const RowBatch& rows, size_t row,
                        const FormatSettings& format) {
  std::string out = "(";
  for (size_t i = 0; i < table.living().size(); ++i) {
    if (table.living_column(i).hidden) continue;
    if (out.size() > 1) out += ", ";
    std::string text;
    AppendText(rows.column(i).Get(row), table.living_types()[i], format, &text);
    AppendClipped(text, &out);
  }
  return out + ")";
}

Status CheckNotNull(const CompiledTable& table, const RowBatch& rows,
                    const FormatSettings& format) {
  size_t first_row = rows.size();
  size_t first_column = 0;
  for (size_t i = 0; i < table.living().size(); ++i) {
    if (!table.living_column(i).not_null || !rows.column(i).has_nulls()) continue;
    const uint8_t* nulls = rows.column(i).nulls();
    const size_t row = static_cast<size_t>(std::find(nulls, nulls + first_row, 1) - nulls);
    if (row < first_row) {
      first_row = row;
      first_column = i;
    }
  }
  if (first_row == rows.size()) return Status();
  const std::string& column = table.living_column(first_column).name;
  return SqlError(Code::kConstraint, sqlstate::kNotNullViolation,
                  "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                  column, table.table().name)
      .WithDetail("Failing row contains " + DescribeRow(table, rows, first_row, format) + ".")
      .WithTable("", table.table().name)
      .WithColumn(column);
}

Status ConcurrentUpdate() {
  return SqlError(Code::kConflict, sqlstate::kSerializationFailure,
                  "could not serialize access due to concurrent update");
}

}  // namespace cellar::table
