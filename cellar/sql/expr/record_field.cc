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
  if (count != 0 && fields.size() != count) {
    return OtherRow(fmt::format("Returned row contains {} attribute{}, but query expects {}.",
                                fields.size(), fields.size() == 1 ? "" : "s", count));
  }
  if (position < fields.size() && fields[position].type.SameKind(call.type)) {
    return fields[position].value;
  }
  if (count != 0 && position < fields.size()) {
    return OtherRow(fmt::format("Returned type {} at ordinal position {}, but query expects {}.",
                                FormatType(Plain(fields[position].type)), position + 1,
                                FormatType(Plain(call.type))));
  }
  return SqlError(Code::kInvalid, sqlstate::kDatatypeMismatch,
                  "a record of {} fields has no field {} of type {}", fields.size(), position + 1,
                  FormatType(call.type));
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

ExprPtr MakeFieldOf(ExprPtr record, size_t position, size_t count, Type type) {
  if (count == 0 && record->kind == ExprKind::kRow && position < FieldCount(*record)) {
    return std::move(record->args[position]);
  }
  auto call = std::make_unique<Expr>();
  call->kind = ExprKind::kCall;
  call->function = &RecordFieldFunction();
  call->type = type;
  call->location = record->location;
  call->args.push_back(std::move(record));
  for (const size_t number : {position, count}) {
    call->args.push_back(
        MakeConstant(Value(MakeType(TypeId::kInt4), Datum::Int(static_cast<int64_t>(number)))));
  }
  return call;
}

}  // namespace cellar::sql
