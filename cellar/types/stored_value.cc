#include "cellar/types/stored_value.h"

#include "cellar/base/status.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/enum_type.h"
#include "cellar/types/json.h"
#include "cellar/types/scalar_text.h"
#include "cellar/types/text_io.h"

namespace cellar {
namespace {

constexpr size_t kMaxNameBytes = 63;
constexpr int kModifierBase = 4;  // of varchar(n), char(n): n + 4
constexpr int64_t kMaxZoneSeconds = 16 * 3600;

Status CheckText(std::string_view text, const Type& type) {
  if (!IsValidText(text)) return CorruptionError("it is no UTF-8 text");
  if (type.id == TypeId::kName && text.size() > kMaxNameBytes) {
    return CorruptionError("it is longer than a name may be");
  }
  const bool limited = type.id == TypeId::kVarchar || type.id == TypeId::kBpchar;
  if (limited && type.modifier >= kModifierBase &&
      CountCharacters(text) > static_cast<size_t>(type.modifier - kModifierBase)) {
    return CorruptionError("it is longer than {} characters", type.modifier - kModifierBase);
  }
  return Status();
}

Status CheckJson(std::string_view text) {
  if (!IsValidText(text)) return CorruptionError("it is no UTF-8 text");
  const Status status = ValidateJson(text);
  return status.ok() ? status : CorruptionError("it is no JSON: {}", status.message());
}

Status CheckRange(int64_t value, int64_t least, int64_t greatest) {
  if (value >= least && value <= greatest) return Status();
  return CorruptionError("{} is out of range", value);
}

Status CheckScalar(Datum value, const Type& type) {
  switch (type.id) {
    case TypeId::kBool: return CheckRange(value.int_value(), 0, 1);
    case TypeId::kInt2: return CheckRange(value.int_value(), INT16_MIN, INT16_MAX);
    case TypeId::kChar: return CheckRange(value.int_value(), 0, UINT8_MAX);
    case TypeId::kInt4: return CheckRange(value.int_value(), INT32_MIN, INT32_MAX);
    case TypeId::kDate:
      if (!IsFiniteDate(value.int_value())) return Status();
      return CheckRange(value.int_value(), kMinDate, kEndDate - 1);
    case TypeId::kTime: return CheckRange(value.int_value(), 0, kMicrosPerDay);
    case TypeId::kTimetz: {
      const TimeTz time = TimeTzOf(value.bytes());
      CELLAR_TRY(CheckRange(time.micros, 0, kMicrosPerDay));
      return CheckRange(time.zone, -kMaxZoneSeconds, kMaxZoneSeconds);
    }
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz:
      if (!IsFiniteTimestamp(value.int_value())) return Status();
      return CheckRange(value.int_value(), kMinTimestamp, kEndTimestamp - 1);
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBpchar:
    case TypeId::kName: return CheckText(value.bytes(), type);
    case TypeId::kJson:
    case TypeId::kJsonb: return CheckJson(value.bytes());
    case TypeId::kEnum:
      if (type.enumeration->FindCode(value.int_value()) != nullptr) return Status();
      return CorruptionError("{} is no label of enum {}", value.int_value(),
                             type.enumeration->name);
    default: return Status();
  }
}

}  // namespace

Status CheckStoredValue(Datum value, const Type& type) {
  if (value.is_null()) return Status();
  if (!type.array) return CheckScalar(value, type);
  const Type element = ScalarOf(type);
  const ArrayView view(value.bytes(), element);
  if (!view.valid()) return CorruptionError("it is no array");
  for (size_t i = 0; i < view.size(); ++i) {
    if (view.IsNull(i)) continue;
    const Status status = CheckScalar(view.Get(i), element);
    if (!status.ok()) return CorruptionError("element {}: {}", i + 1, status.message());
  }
  return Status();
}

}  // namespace cellar
