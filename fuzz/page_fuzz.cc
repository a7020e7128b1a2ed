// Pages of unknown origin, and single chunks of them as columns of every physical form. Everything
// that decodes is read; what one way of reading gives, the others must give too.
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/base/check.h"
#include "cellar/codec/page.h"

namespace {

using cellar::ArrayOf;
using cellar::ColumnVector;
using cellar::Datum;
using cellar::MakeType;
using cellar::Type;
using cellar::TypeId;
namespace codec = cellar::codec;

const std::vector<Type>& Types() {
  static const std::vector<Type> types = {
      MakeType(TypeId::kBool),   MakeType(TypeId::kInt8),   MakeType(TypeId::kFloat8),
      MakeType(TypeId::kText),   MakeType(TypeId::kBytea),  MakeType(TypeId::kNumeric),
      MakeType(TypeId::kUuid),   MakeType(TypeId::kTimetz), ArrayOf(TypeId::kInt4),
      ArrayOf(TypeId::kNumeric), MakeType(TypeId::kBpchar)};
  return types;
}

uint64_t HashOf(const ColumnVector& column) {
  uint64_t sum = 0;
  for (size_t i = 0; i < column.size(); ++i) {
    sum = sum * 31 + cellar::HashDatum(column.Get(i), column.type());
  }
  return sum;
}

Datum ConstantOf(Type type, const codec::Chunk& chunk, const ColumnVector& column,
                 cellar::Arena* arena) {
  for (size_t i = column.size(); i > 0; --i) {
    if (!column.IsNull(i - 1)) return column.Get(i - 1);
  }
  Datum least;
  Datum greatest;
  if (chunk.Bounds(arena, &least, &greatest)) return greatest;
  return PhysicalOf(type) == cellar::Physical::kBytes ? Datum() : Datum::Int(0);
}

// Are all values between the bounds that the chunk states? Filters rely on it, and only the
// checksum tells when it is not so.
bool KeepsBounds(Type type, const codec::Chunk& chunk, const ColumnVector& column) {
  cellar::Arena arena;
  Datum least;
  Datum greatest;
  const bool has_bounds = chunk.Bounds(&arena, &least, &greatest);
  if (!has_bounds && PhysicalOf(type) == cellar::Physical::kBytes) return true;
  for (size_t i = 0; i < column.size(); ++i) {
    if (column.IsNull(i)) continue;
    if (!has_bounds) return false;
    if (CompareDatums(column.Get(i), least, type) < 0) return false;
    if (CompareDatums(column.Get(i), greatest, type) > 0) return false;
  }
  return true;
}

void ReadChunk(const codec::Chunk& chunk, Type type) {
  const uint32_t rows = chunk.rows();
  (void)chunk.Describe();
  (void)chunk.LowerBound(int64_t{1} << 40);
  cellar::Arena arena;
  ColumnVector column(type);
  column.Resize(rows);
  const bool whole = chunk.Decode(0, rows, 0, &column, &arena).ok();
  uint64_t single_sum = 0;
  bool all_single = true;
  for (uint32_t row = 0; row < rows; ++row) {
    chunk.PrefetchRow(row);
    chunk.PrefetchBytes(row);
    cellar::Result<Datum> value = chunk.Get(row, &arena);
    all_single = all_single && value.ok();
    if (value.ok()) single_sum = single_sum * 31 + cellar::HashDatum(*value, type);
  }
  std::vector<uint8_t> mask(rows, 1);
  if (!whole) {
    for (cellar::FilterOp op : {cellar::FilterOp::kIsNull, cellar::FilterOp::kIsNotNull}) {
      (void)chunk.Judge({op, Datum()});
      (void)chunk.Filter({op, Datum()}, 0, rows, mask.data());
    }
    return;
  }
  CELLAR_CHECK(all_single && single_sum == HashOf(column));
  std::vector<uint32_t> places(rows);
  std::iota(places.begin(), places.end(), 0);
  ColumnVector gathered(type);
  gathered.Resize(rows);
  CELLAR_CHECK(chunk.Gather(places, 0, &gathered, &arena).ok());
  CELLAR_CHECK(HashOf(gathered) == single_sum);
  if (rows == 0) return;
  const bool honest = KeepsBounds(type, chunk, column);
  const Datum constant = ConstantOf(type, chunk, column, &arena);
  for (auto op : {cellar::FilterOp::kEqual, cellar::FilterOp::kNotEqual, cellar::FilterOp::kLess,
                  cellar::FilterOp::kLessOrEqual, cellar::FilterOp::kGreater,
                  cellar::FilterOp::kGreaterOrEqual, cellar::FilterOp::kIsNull,
                  cellar::FilterOp::kIsNotNull}) {
    if (constant.is_null() && op < cellar::FilterOp::kIsNull) continue;
    const cellar::ValueFilter filter{op, constant};
    (void)chunk.Judge(filter);
    std::vector<uint8_t> right(rows, 1);
    mask.assign(rows, 1);
    CELLAR_CHECK(chunk.Filter(filter, 0, rows, mask.data()).ok());
    column.Resize(rows);  // forgets the codes
    cellar::ApplyFilter(column, filter, right.data());
    CELLAR_CHECK(!honest || mask == right);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  codec::PageView page;
  if (!page.Parse(bytes).ok()) {
    // The first byte as the number of rows of a chunk.
    if (size == 0) return 0;
    for (Type type : Types()) {
      codec::Chunk chunk;
      const std::string rest = bytes.substr(1);
      if (codec::Chunk::Parse(rest, static_cast<uint8_t>(bytes[0]), type, &chunk).ok()) {
        ReadChunk(chunk, type);
      }
    }
    return 0;
  }
  (void)page.VerifyChecksum();
  (void)page.LowerBound(page.fence());
  size_t key_bytes = page.key_prefix().size();
  for (uint32_t row = 0; page.keys() == codec::PageKeys::kRefs && row < page.rows(); ++row) {
    for (char c : page.key_suffix(row)) key_bytes += static_cast<uint8_t>(c);
    (void)page.LowerBound(page.key_suffix(row));
  }
  CELLAR_CHECK(key_bytes < SIZE_MAX);
  for (uint32_t i = 0; i < page.columns(); ++i) {
    for (Type type : Types()) {
      codec::Chunk chunk;
      if (page.GetChunk(i, type, &chunk).ok()) ReadChunk(chunk, type);
    }
  }
  // Chunks that were parsed before are those of their own type, and of no other.
  for (Type type : Types()) {
    std::vector<codec::Chunk> parsed(page.columns());
    for (uint32_t i = 0; i < page.columns(); ++i) {
      codec::Chunk chunk;
      if (page.GetChunk(i, type, &chunk).ok()) parsed[i] = chunk;
    }
    codec::PageView view = page;
    view.UseParsed(parsed);
    for (uint32_t i = 0; i < page.columns(); ++i) {
      for (Type other : {type, MakeType(TypeId::kInt8), MakeType(TypeId::kText)}) {
        codec::Chunk chunk;
        codec::Chunk again;
        CELLAR_CHECK(page.GetChunk(i, other, &chunk).ok() == view.GetChunk(i, other, &again).ok());
      }
    }
  }
  return 0;
}
