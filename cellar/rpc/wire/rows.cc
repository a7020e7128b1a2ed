// Rows, packed column by column.
#include <cstring>

#include "cellar/base/sqlstate.h"
#include "cellar/rpc/wire/convert.h"
#include "cellar/types/convert.h"
#include "cellar/types/text_io.h"
#include "cellar/v1/data.pb.h"

namespace cellar::rpc {
namespace {

Status Bad(std::string_view what) {
  return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue, "malformed rows: {}", what);
}

bool IsSmallInteger(Type type) { return IsInteger(type) || type.id == TypeId::kOid; }

// Bytes as in memory are bytes as sent.
bool IsPlain(Form form) { return form == Form::kTexts || form == Form::kBytes; }

void PutNulls(const ColumnVector& column, size_t start, size_t end, v1::ColumnBlock* block) {
  if (!column.has_nulls()) return;
  std::string* bits = block->mutable_nulls();
  bits->assign((end - start + 7) / 8, '\0');
  bool any = false;
  for (size_t row = start; row < end; ++row) {
    if (!column.IsNull(row)) continue;
    any = true;
    const size_t at = row - start;
    (*bits)[at / 8] = static_cast<char>((*bits)[at / 8] | (1 << (at % 8)));
  }
  if (!any) bits->clear();
}

void PutColumn(const ColumnVector& column, size_t start, size_t end, v1::ColumnBlock* block) {
  PutNulls(column, start, end, block);
  const auto rows = static_cast<int>(end - start);
  switch (FormOf(column.type())) {
    case Form::kInts:
      block->mutable_ints()->Add(column.ints() + start, column.ints() + end);
      return;
    case Form::kDoubles:
      block->mutable_doubles()->Add(column.doubles() + start, column.doubles() + end);
      return;
    case Form::kTexts:
    case Form::kBytes: {
      size_t total = 0;
      block->mutable_lengths()->Reserve(rows);
      for (size_t row = start; row < end; ++row) {
        const size_t size = column.IsNull(row) ? 0 : column.bytes()[row].size();
        block->mutable_lengths()->AddAlreadyReserved(static_cast<uint32_t>(size));
        total += size;
      }
      std::string* data = block->mutable_data();
      data->reserve(total);
      for (size_t row = start; row < end; ++row) {
        if (!column.IsNull(row)) data->append(column.bytes()[row]);
      }
      return;
    }
    case Form::kTextForm: {
      static const FormatSettings format;
      std::string* data = block->mutable_data();
      block->mutable_lengths()->Reserve(rows);
      for (size_t row = start; row < end; ++row) {
        const size_t before = data->size();
        if (!column.IsNull(row)) AppendDatumText(column.Get(row), column.type(), format, data);
        block->mutable_lengths()->AddAlreadyReserved(static_cast<uint32_t>(data->size() - before));
      }
      return;
    }
  }
}

bool Bit(const std::string& bits, size_t row) {
  return ((static_cast<unsigned char>(bits[row / 8]) >> (row % 8)) & 1) != 0;
}

// One byte a row; none when `bits` is empty.
Status TakeBits(const std::string& bits, size_t rows, std::vector<uint8_t>* flags) {
  flags->clear();
  if (bits.empty()) return Status();
  if (bits.size() != (rows + 7) / 8) return Bad("a bit map of another length");
  flags->resize(rows);
  for (size_t row = 0; row < rows; ++row) (*flags)[row] = Bit(bits, row) ? 1 : 0;
  return Status();
}

// A number as a value of a type of form kInts.
Result<Datum> CheckedInt(int64_t value, Type type, Arena* arena) {
  static const FormatSettings format;
  if (IsSmallInteger(type)) return ConvertInt(value, type, format, arena);
  if (type.id == TypeId::kBool) {
    if (value != 0 && value != 1) return Bad("a boolean that is neither 0 nor 1");
    return Datum::Int(value);
  }
  // Its range is that of PostgreSQL's binary form.
  char bytes[8];
  const size_t size = type.id == TypeId::kDate ? 4 : 8;
  if (size == 4 && (value < INT32_MIN || value > INT32_MAX)) return Bad("a date out of range");
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * (size - 1 - i)));
  }
  return ParseDatumBinary(std::string_view(bytes, size), type, arena);
}

Status CheckCounts(const v1::ColumnBlock& block, Form form, size_t rows) {
  const auto has = [](int count, size_t wanted) { return static_cast<size_t>(count) == wanted; };
  const bool ints = form == Form::kInts, doubles = form == Form::kDoubles;
  if (!has(block.ints_size(), ints ? rows : 0) || !has(block.doubles_size(), doubles ? rows : 0) ||
      !has(block.lengths_size(), ints || doubles ? 0 : rows)) {
    return Bad("a column with another number of values, or in another form");
  }
  uint64_t total = 0;
  for (uint32_t length : block.lengths()) total += length;
  if (total != block.data().size()) return Bad("lengths that do not add up to the data");
  if (!block.nulls().empty() && block.nulls().size() != (rows + 7) / 8) {
    return Bad("a bit map of another length");
  }
  return Status();
}

// The piece of `data` that belongs to the next row.
class Pieces {
 public:
  explicit Pieces(const v1::ColumnBlock& block) : block_(block) {}
  std::string_view Next() {
    const uint32_t length = block_.lengths(row_++);
    const std::string_view piece(block_.data().data() + at_, length);
    at_ += length;
    return piece;
  }

 private:
  const v1::ColumnBlock& block_;
  int row_ = 0;
  size_t at_ = 0;
};

Status TakeChecked(const v1::ColumnBlock& block, Form form, size_t rows,
                   const std::vector<uint8_t>& skipped, Arena* arena, ColumnVector* column) {
  static const FormatSettings format;
  const Type type = column->type();
  Pieces pieces(block);
  for (size_t row = 0; row < rows; ++row) {
    const std::string_view piece =
        IsPlain(form) || form == Form::kTextForm ? pieces.Next() : std::string_view();
    if (!skipped.empty() && skipped[row] != 0) {
      column->SetNull(row);
      continue;
    }
    Result<Datum> value = Datum();
    switch (form) {
      case Form::kInts: value = CheckedInt(block.ints(static_cast<int>(row)), type, arena); break;
      case Form::kDoubles:
        value = ConvertDouble(block.doubles(static_cast<int>(row)), type, format, arena);
        break;
      case Form::kBytes: value = ConvertBytes(arena->Copy(piece), type); break;
      case Form::kTexts:
      case Form::kTextForm: value = ParseDatum(piece, type, format, arena); break;
    }
    CELLAR_TRY(value.status());
    // A parser may hand back what it was given.
    if (column->physical() == Physical::kBytes && !value->is_null() &&
        value->bytes().data() >= block.data().data() &&
        value->bytes().data() < block.data().data() + block.data().size()) {
      value = Datum::Bytes(arena->Copy(value->bytes()));
    }
    column->Set(row, *value);
  }
  return Status();
}

}  // namespace

Form FormOf(Type type) {
  if (type.array) return Form::kTextForm;
  switch (type.id) {
    case TypeId::kBool:
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8:
    case TypeId::kOid:
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: return Form::kInts;
    case TypeId::kFloat4:
    case TypeId::kFloat8: return Form::kDoubles;
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBpchar:
    case TypeId::kName:
    case TypeId::kJson: return Form::kTexts;
    case TypeId::kBytea:
    case TypeId::kUuid: return Form::kBytes;
    default: return Form::kTextForm;
  }
}

void PutRows(const RowBatch& batch, size_t start, size_t end, bool with_types,
             v1::RowBlock* block) {
  block->set_rows(static_cast<uint32_t>(end - start));
  for (const ColumnVector& column : batch.columns()) {
    v1::ColumnBlock* sent = block->add_columns();
    if (with_types) {
      v1::Type* type = sent->mutable_type();
      type->set_name(FormatType(column.type()));
      type->set_oid(OidOf(column.type()));
      type->set_modifier(column.type().modifier);
      type->set_form(static_cast<v1::Form>(FormOf(column.type())));
    }
    PutColumn(column, start, end, sent);
  }
}

Status TakeRows(const v1::RowBlock& block, std::span<const Type> types, RowBatch* batch,
                std::vector<std::vector<uint8_t>>* unset) {
  if (static_cast<size_t>(block.columns_size()) != types.size()) {
    return Bad("another number of columns");
  }
  const size_t rows = block.rows();
  // Before memory is taken for them: a row is at least a count of something.
  for (int c = 0; c < block.columns_size(); ++c) {
    CELLAR_TRY(CheckCounts(block.columns(c), FormOf(types[static_cast<size_t>(c)]), rows));
  }
  if (types.empty() && rows > 0) return Bad("rows without columns");
  batch->Reset(types);
  batch->Resize(rows);
  if (unset != nullptr) unset->assign(types.size(), {});
  std::vector<uint8_t> skipped, left_out;
  for (size_t c = 0; c < types.size(); ++c) {
    const v1::ColumnBlock& from = block.columns(static_cast<int>(c));
    CELLAR_TRY(TakeBits(from.nulls(), rows, &skipped));
    CELLAR_TRY(TakeBits(from.unset(), rows, &left_out));
    if (!left_out.empty()) {
      if (unset == nullptr) return Bad("cells that are left out");
      if (skipped.empty()) skipped.resize(rows);
      for (size_t row = 0; row < rows; ++row) skipped[row] |= left_out[row];
      (*unset)[c] = left_out;
    }
    CELLAR_TRY(
        TakeChecked(from, FormOf(types[c]), rows, skipped, batch->arena(), &batch->column(c)));
  }
  batch->SetSize(rows);
  return Status();
}

Status BorrowRows(const v1::RowBlock& block, std::span<const Type> types, RowBatch* batch) {
  if (static_cast<size_t>(block.columns_size()) != types.size()) {
    return Bad("another number of columns");
  }
  const size_t rows = block.rows();
  for (int c = 0; c < block.columns_size(); ++c) {
    CELLAR_TRY(CheckCounts(block.columns(c), FormOf(types[static_cast<size_t>(c)]), rows));
  }
  batch->Reset(types);
  batch->Resize(rows);
  std::vector<uint8_t> nulls;
  for (size_t c = 0; c < types.size(); ++c) {
    const v1::ColumnBlock& from = block.columns(static_cast<int>(c));
    ColumnVector& column = batch->column(c);
    const Form form = FormOf(types[c]);
    if (form == Form::kTextForm) {
      CELLAR_TRY(TakeBits(from.nulls(), rows, &nulls));
      CELLAR_TRY(TakeChecked(from, form, rows, nulls, batch->arena(), &column));
      continue;
    }
    if (form == Form::kInts) {
      if (rows > 0) std::memcpy(column.ints(), from.ints().data(), rows * sizeof(int64_t));
    } else if (form == Form::kDoubles) {
      if (rows > 0) std::memcpy(column.doubles(), from.doubles().data(), rows * sizeof(double));
    } else {
      Pieces pieces(from);
      for (size_t row = 0; row < rows; ++row) column.bytes()[row] = pieces.Next();
    }
    if (from.nulls().empty()) continue;
    for (size_t row = 0; row < rows; ++row) {
      if (Bit(from.nulls(), row)) column.SetNull(row);
    }
  }
  batch->SetSize(rows);
  return Status();
}

Result<std::vector<Type>> TypesOf(const v1::RowBlock& block) {
  std::vector<Type> types;
  for (const v1::ColumnBlock& column : block.columns()) {
    if (!column.has_type()) return Bad("a column without a type");
    const Type fallback = MakeType(TypeId::kText);
    Type type = TypeFromOid(column.type().oid(), column.type().modifier()).value_or(fallback);
    if (static_cast<int>(FormOf(type)) != static_cast<int>(column.type().form())) type = fallback;
    types.push_back(type);
  }
  return types;
}

}  // namespace cellar::rpc
