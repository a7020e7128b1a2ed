#include "cellar/table/enum_check.h"

#include <algorithm>

#include "cellar/base/sqlstate.h"
#include "cellar/types/array.h"
#include "cellar/types/enum_type.h"

namespace cellar::table {
namespace {

Status UnknownCode(const TableDescriptor& table, const catalog::ColumnDescriptor& column,
                   int64_t code) {
  return SqlError(Code::kCorruption, sqlstate::kDataCorrupted,
                  "column \"{}\" of table \"{}\" holds {}, which is no label of enum {}",
                  column.name, table.name, code, FormatType(ScalarOf(column.type)));
}

bool HasEnum(const TableDescriptor& table, ColumnId id) {
  const catalog::ColumnDescriptor* column = table.FindColumn(id);
  return column != nullptr && column->type.id == TypeId::kEnum;
}

class CheckedReader : public Reader {
 public:
  CheckedReader(TablePtr table, std::vector<ColumnId> columns, std::unique_ptr<Reader> reader)
      : table_(std::move(table)), columns_(std::move(columns)), reader_(std::move(reader)) {}

  Result<bool> Next(RowBatch* batch) override {
    CELLAR_TRY_ASSIGN(const bool more, reader_->Next(batch));
    if (more) CELLAR_TRY(CheckEnumCodes(*table_, columns_, *batch));
    return more;
  }

 private:
  TablePtr table_;
  std::vector<ColumnId> columns_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace

Status CheckEnumCodes(const TableDescriptor& table, std::span<const ColumnId> columns,
                      const RowBatch& batch) {
  for (size_t i = 0; i < columns.size(); ++i) {
    const catalog::ColumnDescriptor* column = table.FindColumn(columns[i]);
    if (column == nullptr || column->type.id != TypeId::kEnum) continue;
    const EnumType& type = *column->type.enumeration;
    const ColumnVector& values = batch.column(i);
    int64_t known = 0;  // the last code that was found; values repeat
    bool any = false;
    const auto check = [&](int64_t code) {
      if (any && code == known) return true;
      any = type.FindCode(code) != nullptr;
      known = code;
      return any;
    };
    for (size_t row = 0; row < batch.size(); ++row) {
      if (values.IsNull(row)) continue;
      if (!column->type.array) {
        const int64_t code = values.ints()[row];
        if (!check(code)) return UnknownCode(table, *column, code);
        continue;
      }
      const ArrayView view(values.bytes()[row], ScalarOf(column->type));
      for (size_t k = 0; k < view.size(); ++k) {
        if (view.IsNull(k) || check(view.Get(k).int_value())) continue;
        return UnknownCode(table, *column, view.Get(k).int_value());
      }
    }
  }
  return Status();
}

std::unique_ptr<Reader> WithCheckedEnums(TablePtr table, std::vector<ColumnId> columns,
                                         std::unique_ptr<Reader> reader) {
  if (std::none_of(columns.begin(), columns.end(),
                   [&](ColumnId id) { return HasEnum(*table, id); })) {
    return reader;
  }
  return std::make_unique<CheckedReader>(std::move(table), std::move(columns), std::move(reader));
}

}  // namespace cellar::table
