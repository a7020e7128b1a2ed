#include "cellar/tableapi/record.h"

#include "cellar/base/sqlstate.h"
#include "cellar/types/convert.h"

namespace cellar {

// ---- Record ----

namespace {

Status NoSchema() {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "a record of no table")
      .WithDetail("It was made without a schema, or has been moved from.");
}

}  // namespace

Record::Record(SchemaPtr schema) : schema_(std::move(schema)) {
  if (schema_ == nullptr) return;
  cells_.resize(schema_->columns.size());
  set_.resize(schema_->columns.size());
}

Record& Record::Set(std::string_view column, Cell value) {
  if (schema_ == nullptr) return *this;
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
  if (schema_ == nullptr) return NoSchema();
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
  const ColumnVector* values = At(column);
  if (values == nullptr || values->IsNull(row_)) return 0;
  if (values->physical() == Physical::kInt64) return values->ints()[row_];
  return DatumAsInt(values->Get(row_), values->type());
}

double Row::GetDouble(size_t column) const {
  const ColumnVector* values = At(column);
  if (values == nullptr || values->IsNull(row_)) return 0;
  if (values->physical() == Physical::kDouble) return values->doubles()[row_];
  return DatumAsDouble(values->Get(row_), values->type());
}

std::string_view Row::GetBytes(size_t column) const {
  const ColumnVector* values = At(column);
  if (values == nullptr || values->IsNull(row_) || !HasPlainBytes(values->type())) return {};
  return values->bytes()[row_];
}

std::string_view Row::GetText(size_t column) const {
  const ColumnVector* values = At(column);
  if (values == nullptr || values->IsNull(row_)) return {};
  if (ShowsAsItLies(values->type())) return values->bytes()[row_];
  return rows_->shown_.Copy(ToString(column));
}

std::string Row::ToString(size_t column) const {
  const ColumnVector* values = At(column);
  std::string text;
  if (values != nullptr && !values->IsNull(row_))
    AppendDatumText(values->Get(row_), values->type(), FormatSettings(), &text);
  return text;
}

Cell Row::GetCell(size_t column) const {
  const ColumnVector* values = At(column);
  return values == nullptr ? Cell() : Cell::Of(values->Get(row_), values->type());
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

Result<std::vector<uint32_t>> PositionsIn(const TableSchema& to, const TableSchema& from,
                                          std::span<const uint32_t> positions) {
  std::vector<uint32_t> places;
  for (uint32_t position : positions) {
    const TableColumn& column = from.columns[position];
    const int place = to.FindColumn(column.id);
    if (place < 0) {
      return SqlError(Code::kInvalid, sqlstate::kUndefinedColumn,
                      "column \"{}\" does not exist any more", column.name)
          .WithColumn(column.name);
    }
    if (to.columns[static_cast<size_t>(place)].type != column.type) {
      return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                      "column \"{}\" has another type by now", column.name)
          .WithColumn(column.name)
          .WithHint("Refresh the schema and make the record anew.");
    }
    places.push_back(static_cast<uint32_t>(place));
  }
  return places;
}

Status CheckCells(const TableSchema* schema, const CellBatch& cells) {
  const auto refused = [](std::string_view what) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "these are no rows: {}",
                    what);
  };
  const size_t columns = cells.positions.size();
  if (schema == nullptr) {
    return columns == 0 && cells.rows.size() == 0 ? Status() : refused("they have no schema");
  }
  if (cells.rows.num_columns() != columns) return refused("columns and positions differ in number");
  if (!cells.unset.empty() && cells.unset.size() != columns) {
    return refused("columns and flags of cells that are not set differ in number");
  }
  for (size_t c = 0; c < columns; ++c) {
    if (cells.positions[c] >= schema->columns.size()) return refused("there is no such column");
    const ColumnVector& column = cells.rows.column(c);
    if (column.size() != cells.rows.size()) return refused("columns differ in length");
    if (!column.type().SameKind(schema->columns[cells.positions[c]].type))
      return refused("a column has another type");
    if (c < cells.unset.size() && !cells.unset[c].empty() &&
        cells.unset[c].size() != cells.rows.size()) {
      return refused("flags of cells that are not set differ in number from the rows");
    }
  }
  return Status();
}

Result<SchemaPtr> ToCells(std::span<const Record> records, CellBatch* cells) {
  cells->positions.clear();
  cells->unset.clear();
  if (records.empty()) {
    cells->rows.Reset({});
    return SchemaPtr();
  }
  SchemaPtr newest = records[0].schema();
  bool one_schema = true;
  for (const Record& record : records) {
    if (record.schema() == nullptr) return NoSchema();
    CELLAR_TRY(record.status());
    if (record.schema() == newest) continue;
    one_schema = false;
    if (record.schema()->id != newest->id) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "records of different tables in one call");
    }
    if (record.schema()->version > newest->version) newest = record.schema();
  }
  const TableSchema& schema = *newest;
  // The table has changed while the records were made: those of older schemas, column by column of
  // the newest. Empty: of the newest one.
  std::vector<std::vector<int>> places(one_schema ? 0 : records.size());
  for (size_t row = 0; row < places.size(); ++row) {
    const TableSchema& own = *records[row].schema();
    if (&own == &schema) continue;
    std::vector<uint32_t> set;
    for (uint32_t i = 0; i < own.columns.size(); ++i) {
      if (records[row].Has(i)) set.push_back(i);
    }
    CELLAR_TRY_ASSIGN(const std::vector<uint32_t> moved, PositionsIn(schema, own, set));
    places[row].assign(schema.columns.size(), -1);
    for (size_t i = 0; i < set.size(); ++i) places[row][moved[i]] = static_cast<int>(set[i]);
  }
  // Where a record has the column at `position` of the newest schema; -1: it is not set.
  const auto place_of = [&](size_t row, uint32_t position) {
    const int place =
        places.empty() || places[row].empty() ? static_cast<int>(position) : places[row][position];
    return place >= 0 && records[row].Has(static_cast<size_t>(place)) ? place : -1;
  };
  std::vector<Type> types;
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    for (size_t row = 0; row < records.size(); ++row) {
      if (place_of(row, i) < 0) continue;
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
      const int place = place_of(row, position);
      if (place < 0) {
        if (cells->unset[c].empty()) cells->unset[c].resize(records.size());
        cells->unset[c][row] = 1;
        column.SetNull(row);
        continue;
      }
      Result<Datum> value =
          records[row].at(static_cast<size_t>(place)).To(types[c], cells->rows.arena());
      if (!value.ok()) {
        return std::move(value).status().WithColumn(schema.columns[position].name);
      }
      column.Set(row, *value);
    }
  }
  cells->rows.SetSize(records.size());
  return newest;
}

}  // namespace cellar
