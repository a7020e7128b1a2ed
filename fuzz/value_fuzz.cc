// Values of unknown origin. The first byte chooses a type, the second what the rest is: text, the
// binary form, or a pattern and a text with a line end between. What reads must print, and read
// back as the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/check.h"
#include "cellar/types/array.h"
#include "cellar/types/datetime.h"
#include "cellar/types/text_io.h"
#include "cellar/types/to_char.h"

namespace {

using cellar::Arena;
using cellar::ArrayOf;
using cellar::Datum;
using cellar::FormatSettings;
using cellar::MakeType;
using cellar::Result;
using cellar::Type;
using cellar::TypeId;

constexpr Type kTypes[] = {
    MakeType(TypeId::kBool),       MakeType(TypeId::kInt2),      MakeType(TypeId::kInt4),
    MakeType(TypeId::kInt8),       MakeType(TypeId::kFloat4),    MakeType(TypeId::kFloat8),
    MakeType(TypeId::kNumeric),    MakeType(TypeId::kText),      MakeType(TypeId::kBpchar),
    MakeType(TypeId::kBytea),      MakeType(TypeId::kDate),      MakeType(TypeId::kTime),
    MakeType(TypeId::kTimetz),     MakeType(TypeId::kTimestamp), MakeType(TypeId::kTimestamptz),
    MakeType(TypeId::kInterval),   MakeType(TypeId::kUuid),      MakeType(TypeId::kJson),
    MakeType(TypeId::kJsonb),      MakeType(TypeId::kOid),       MakeType(TypeId::kName),
    MakeType(TypeId::kInt2vector), MakeType(TypeId::kOidvector), ArrayOf(TypeId::kInt4),
    ArrayOf(TypeId::kText),        ArrayOf(TypeId::kNumeric),    ArrayOf(TypeId::kTimestamptz)};

void CheckBothForms(Datum value, Type type) {
  Arena arena;
  const FormatSettings settings;
  std::string text;
  cellar::AppendDatumText(value, type, settings, &text);
  Result<Datum> from_text = cellar::ParseDatum(text, type, settings, &arena);
  CELLAR_CHECK(from_text.ok());
  CELLAR_CHECK(cellar::CompareDatums(*from_text, value, type) == 0);
  CELLAR_CHECK(cellar::HashDatum(*from_text, type) == cellar::HashDatum(value, type));
  std::string bytes;
  cellar::AppendDatumBinary(value, type, &bytes);
  Result<Datum> from_bytes = cellar::ParseDatumBinary(bytes, type, &arena);
  CELLAR_CHECK(from_bytes.ok());
  CELLAR_CHECK(cellar::CompareDatums(*from_bytes, value, type) == 0);
}

void TryPatterns(Type type, std::string_view input) {
  const size_t line_end = input.find('\n');
  if (line_end == std::string_view::npos) return;
  const std::string_view pattern = input.substr(0, line_end), text = input.substr(line_end + 1);
  Arena arena;
  (void)cellar::ToDate(text, pattern);
  (void)cellar::ToTimestampTz(text, pattern, nullptr);
  (void)cellar::ToNumber(text, pattern, &arena);
  Result<Datum> value = cellar::ParseDatum(text, type, FormatSettings(), &arena);
  if (!value.ok()) return;
  std::string out;
  switch (type.id) {
    case TypeId::kTimestamp:
      (void)cellar::TimestampToChar(value->int_value(), pattern, &out);
      break;
    case TypeId::kInterval:
      (void)cellar::IntervalToChar(cellar::IntervalOf(*value), pattern, &out);
      break;
    case TypeId::kNumeric:
      if (!type.array) (void)cellar::NumericToChar(value->bytes(), pattern, &out);
      break;
    case TypeId::kFloat8: (void)cellar::DoubleToChar(value->double_value(), pattern, &out); break;
    default: break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Longer input finds nothing that shorter does not, but slowly.
  if (size < 2 || size > 4096) return 0;
  const Type type = kTypes[data[0] % std::size(kTypes)];
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  Arena arena;
  if (data[1] % 3 == 2) {
    TryPatterns(type, input);
    return 0;
  }
  Result<Datum> value = data[1] % 3 == 0 ? cellar::ParseDatum(input, type, FormatSettings(), &arena)
                                         : cellar::ParseDatumBinary(input, type, &arena);
  if (value.ok()) CheckBothForms(*value, type);
  return 0;
}
