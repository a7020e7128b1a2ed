#include "cellar/sql/expr/record_field.h"

#include "cellar/base/sqlstate.h"
#include "cellar/sql/expr/eval.h"
#include "cellar/types/record.h"

namespace cellar::sql {
namespace {

Status OtherRow(std::string detail) {
  return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                  "function return row and query-specified return row do not match")
      .WithDetail(std::move(detail));
}

Result<Datum> Field(EvalContext&, const Expr& call, std::span<const Datum> args) {
  const std::vector<RecordField> fields = RecordFields(args[0].bytes());
  const auto position = static_cast<size_t>(args[1].int_value());
  const auto count = static_cast<size_t>(args[2].int_value());
  if (fields.size() != count || position < 1 || position > count) {
    return OtherRow(fmt::format("Returned row contains {} attribute{}, but query expects {}.",
                                fields.size(), fields.size() == 1 ? "" : "s", count));
  }
  const RecordField& field = fields[position - 1];
  if (!field.type.SameKind(call.type)) {
    return OtherRow(fmt::format("Returned type {} at ordinal position {}, but query expects {}.",
                                FormatType(Plain(field.type)), position,
                                FormatType(Plain(call.type))));
  }
  return field.value;
}

}  // namespace

const FunctionSpec& RecordFieldFunction() {
  static const FunctionSpec spec = [] {
    FunctionSpec out;
    out.name = "record_field";
    out.args = {MakeType(TypeId::kRecord), MakeType(TypeId::kInt4), MakeType(TypeId::kInt4)};
    out.result = MakeType(TypeId::kAny);
    out.scalar = Field;
    return out;
  }();
  return spec;
}

}  // namespace cellar::sql
