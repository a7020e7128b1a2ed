// Keys of unknown origin. The first byte chooses a column; the rest is read as a key without its
// schema, as a field of that column, and as a tuple. What decodes must encode to the same bytes.
#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/base/check.h"
#include "cellar/codec/key.h"

namespace {

using cellar::ArrayOf;
using cellar::MakeType;
using cellar::Type;
using cellar::TypeId;
namespace codec = cellar::codec;

constexpr Type kTypes[] = {
    MakeType(TypeId::kBool),        MakeType(TypeId::kInt2),     MakeType(TypeId::kInt4),
    MakeType(TypeId::kInt8),        MakeType(TypeId::kOid),      MakeType(TypeId::kFloat4),
    MakeType(TypeId::kFloat8),      MakeType(TypeId::kNumeric),  MakeType(TypeId::kText),
    MakeType(TypeId::kBpchar),      MakeType(TypeId::kBytea),    MakeType(TypeId::kDate),
    MakeType(TypeId::kTime),        MakeType(TypeId::kTimetz),   MakeType(TypeId::kTimestamp),
    MakeType(TypeId::kTimestamptz), MakeType(TypeId::kInterval), MakeType(TypeId::kUuid),
    ArrayOf(TypeId::kInt4),         ArrayOf(TypeId::kText),      ArrayOf(TypeId::kNumeric)};

codec::KeyColumn ColumnOf(uint8_t choice) {
  codec::KeyColumn column;
  column.direction =
      (choice & 0x80) != 0 ? codec::Direction::kDescending : codec::Direction::kAscending;
  column.nulls = (choice & 0x40) != 0 ? codec::NullPlacement::kFirst : codec::NullPlacement::kLast;
  column.type = kTypes[(choice & 0x3F) % std::size(kTypes)];
  return column;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  codec::KeyColumn column = ColumnOf(data[0]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  cellar::Arena arena;

  (void)codec::DecodeKey(bytes);
  (void)codec::PrintKey(bytes);
  std::string_view in = bytes;
  cellar::Result<cellar::Datum> value = codec::TakeKeyField(&in, column, &arena);
  if (value.ok()) {
    std::string again;
    codec::AppendKeyField(*value, column, &again);
    CELLAR_CHECK(again == bytes.substr(0, bytes.size() - in.size()));
    std::string_view skipped = bytes;
    CELLAR_CHECK(codec::SkipKeyField(&skipped).ok());
    CELLAR_CHECK(skipped.size() == in.size());
  } else {
    CELLAR_CHECK(in == bytes);
  }
  in = bytes;
  while (!in.empty() && codec::SkipKeyField(&in).ok()) {
  }
  const Type tuple[] = {MakeType(TypeId::kInt8), column.type};
  in = bytes;
  (void)codec::TakeKeyTuple(&in, tuple, column.direction, &arena);
  return 0;
}
