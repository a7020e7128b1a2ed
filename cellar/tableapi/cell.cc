#include "cellar/tableapi/cell.h"

#include "cellar/types/convert.h"

namespace cellar {

Cell Cell::Of(Datum value, Type type) {
  if (value.is_null()) return Cell();
  if (type == MakeType(TypeId::kBool)) return Cell(value.bool_value());
  if (!type.array) {
    if (IsInteger(type) || type.id == TypeId::kOid) return Cell(value.int_value());
    if (type.id == TypeId::kBytea || type.id == TypeId::kUuid) return Bytes(value.bytes());
    if (IsString(type)) return Cell(value.bytes());
    if (PhysicalOf(type) == Physical::kDouble) return Cell(value.double_value());
  }
  std::string text;
  AppendDatumText(value, type, FormatSettings(), &text);
  return Cell(std::move(text));
}

Result<Datum> Cell::To(Type type, Arena* arena) const {
  static const FormatSettings format;
  switch (kind_) {
    case Kind::kNull: break;
    case Kind::kBool: return ConvertBool(int_ != 0, type, format, arena);
    case Kind::kInt: return ConvertInt(int_, type, format, arena);
    case Kind::kDouble: return ConvertDouble(double_, type, format, arena);
    case Kind::kText:
      if (!type.array && type.id == TypeId::kText && IsValidText(bytes_))
        return Datum::Bytes(bytes_);
      return ParseDatum(bytes_, type, format, arena);
    case Kind::kBytes: return ConvertBytes(bytes_, type);
  }
  return Datum();
}

}  // namespace cellar
