#include "cellar/tableapi/record.h"

#include "cellar/base/sqlstate.h"
#include "cellar/types/convert.h"

namespace cellar {

// ---- Record ----

Record::Record(SchemaPtr schema)
    : schema_(std::move(schema)), cells_(schema_->columns.size()), set_(schema_->columns.size()) {}

Record& Record::Set(std::string_view column, Cell value) {
  const int position = schema_->FindColumn(column);
  if (position >= 0) return Set(static_cast<size_t>(position), std::move(value));
  if (status_.ok()) {
    status_ = SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "column \"{}\" does not exist",
                       column);
  }
  return *this;
}

Record& Record::Set(size_t position, Cell value) {
  if (position >= cells_.size()) {
    if (status_.ok()) {
      status_ =
          SqlError(Code::kInvalid, sqlstate::kUndefinedColumn, "there is no column {}", position);
    }
    return *this;
  }
  cells_[position] = std::move(value);
  set_[position] = 1;
  return *this;
}

void Record::Unset(size_t position) {
  if (position < set_.size()) set_[position] = 0;
}

void Record::Clear() {
  std::fill(set_.begin(), set_.end(), uint8_t{0});
  status_ = Status();
}

Result<Key> Record::PrimaryKey() const {
  Key key;
  const TableIndex* primary = schema_->FindIndex("");
  if (primary == nullptr) return key;
  for (const TableIndexColumn& column : primary->key) {
    if (column.column < 0 || !Has(static_cast<size_t>(column.column))) {
      return SqlError(Code::kInvalid, sqlstate::kNotNullViolation,
                      "the record has no value for a column of the primary key");
    }
    key.Add(cells_[static_cast<size_t>(column.column)]);
  }
  return key;
}

// ---- Row ----

int64_t Row::GetInt(size_t column) const {
  const ColumnVector& values = rows_->batch().column(column);
  if (values.physical() == Physical::kInt64) return values.ints()[row_];
  return DatumAsInt(values.Get(row_), values.type());
}

double Row::GetDouble(size_t column) const {
  const ColumnVector& values = rows_->batch().column(column);
  if (values.physical() == Physical::kDouble) return values.doubles()[row_];
  return DatumAsDouble(values.Get(row_), values.type());
}

std::string Row::ToString(size_t column) const {
  const ColumnVector& values = rows_->batch().column(column);
  std::string text;
  if (!values.IsNull(row_))
    AppendDatumText(values.Get(row_), values.type(), FormatSettings(), &text);
  return text;
}

Cell Row::GetCell(size_t column) const {
  const ColumnVector& values = rows_->batch().column(column);
  return Cell::Of(values.Get(row_), values.type());
}

// ---- RowSet ----

int RowSet::FindColumn(std::string_view name) const {
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

void RowSet::SetColumns(const SchemaPtr& schema, std::span<const uint32_t> positions) {
  if (schema_ == schema &&
      std::equal(positions.begin(), positions.end(), positions_.begin(), positions_.end())) {
    return;
  }
  schema_ = schema;
  positions_.assign(positions.begin(), positions.end());
  columns_.clear();
  for (uint32_t position : positions) columns_.push_back(schema->columns[position]);
}

// ---- Records to cells ----

Status ToCells(std::span<const Record> records, CellBatch* cells) {
  cells->positions.clear();
  cells->unset.clear();
  if (records.empty()) {
    cells->rows.Reset({});
    return Status();
  }
  const TableSchema& schema = *records[0].schema();
  for (const Record& record : records) {
    if (record.schema().get() != &schema) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "records of different schemas in one call");
    }
    CELLAR_TRY(record.status());
  }
  std::vector<Type> types;
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    for (const Record& record : records) {
      if (!record.Has(i)) continue;
      cells->positions.push_back(i);
      types.push_back(schema.columns[i].type);
      break;
    }
  }
  cells->unset.resize(types.size());
  cells->rows.Reset(types);
  cells->rows.Resize(records.size());
  for (size_t c = 0; c < types.size(); ++c) {
    ColumnVector& column = cells->rows.column(c);
    const uint32_t position = cells->positions[c];
    for (size_t row = 0; row < records.size(); ++row) {
      if (!records[row].Has(position)) {
        if (cells->unset[c].empty()) cells->unset[c].resize(records.size());
        cells->unset[c][row] = 1;
        column.SetNull(row);
        continue;
      }
      Result<Datum> value = records[row].at(position).To(types[c], cells->rows.arena());
      if (!value.ok()) {
        return std::move(value).status().WithColumn(schema.columns[position].name);
      }
      column.Set(row, *value);
    }
  }
  cells->rows.SetSize(records.size());
  return Status();
}

}  // namespace cellar
