// Row values and cells of unknown origin, decoded with a format that holds a column of every
// storage class and key columns that need the trailer. Whatever decodes is hashed, which reads all
// of it.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/check.h"
#include "cellar/codec/row.h"

namespace {

using cellar::ArrayOf;
using cellar::MakeType;
using cellar::Type;
using cellar::TypeId;
namespace codec = cellar::codec;

codec::RowFormat MakeFormat() {
  std::vector<codec::RowColumn> columns;
  for (Type type : {MakeType(TypeId::kBool), MakeType(TypeId::kInt4), MakeType(TypeId::kOid),
                    MakeType(TypeId::kInt8), MakeType(TypeId::kFloat4), MakeType(TypeId::kFloat8),
                    MakeType(TypeId::kTimetz), MakeType(TypeId::kInterval), MakeType(TypeId::kUuid),
                    MakeType(TypeId::kText), MakeType(TypeId::kNumeric), ArrayOf(TypeId::kInt4),
                    ArrayOf(TypeId::kText), ArrayOf(TypeId::kNumeric)}) {
    columns.push_back({codec::ColumnId{static_cast<uint32_t>(columns.size() + 1)}, type});
  }
  for (Type type :
       {MakeType(TypeId::kNumeric), MakeType(TypeId::kFloat8), ArrayOf(TypeId::kNumeric)}) {
    columns.push_back({codec::ColumnId{static_cast<uint32_t>(columns.size() + 1)}, type, true});
  }
  return *codec::RowFormat::Make(1, std::move(columns));
}

// The hashes of all values of a row, and whether it decodes at all.
struct Outcome {
  bool ok = false;
  uint64_t sum = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome Decode(const codec::RowFormat& format, std::string_view bytes, codec::RowBytes mode) {
  std::vector<codec::WantedColumn> wanted;
  std::vector<Type> types;
  for (const codec::RowColumn& column : format.columns()) {
    wanted.push_back({column.id, column.type, static_cast<uint32_t>(types.size()), {}});
    types.push_back(column.type);
  }
  cellar::RowBatch batch;
  batch.Reset(types);
  batch.Resize(1);
  for (size_t i = 0; i < types.size(); ++i) batch.column(i).SetNull(0);
  cellar::Result<codec::RowDecoder> decoder =
      codec::RowDecoder::Make(format, std::move(wanted), mode);
  Outcome outcome;
  outcome.ok = decoder->Decode(bytes, 0, &batch).ok();
  for (size_t i = 0; outcome.ok && i < types.size(); ++i) {
    outcome.sum += cellar::HashDatum(batch.column(i).Get(0), types[i]);
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const codec::RowFormat format = MakeFormat();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  CELLAR_CHECK(Decode(format, bytes, codec::RowBytes::kBorrow) ==
               Decode(format, bytes, codec::RowBytes::kCopy));
  (void)codec::RowFormatIdOf(bytes);
  for (const codec::RowColumn& column : format.columns()) {
    cellar::Result<cellar::Datum> cell = codec::ParseCell(bytes, column.type);
    if (!cell.ok() || cell->is_null()) continue;
    std::string again;
    codec::AppendCell(*cell, column.type, &again);
    cellar::Result<cellar::Datum> back = codec::ParseCell(again, column.type);
    CELLAR_CHECK(back.ok() &&
                 cellar::HashDatum(*back, column.type) == cellar::HashDatum(*cell, column.type));
  }
  return 0;
}
