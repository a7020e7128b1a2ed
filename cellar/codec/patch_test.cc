// Patches: what goes in comes back, and bytes that are not patches are refused.
#include "cellar/codec/patch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "cellar/codec/random_values.h"
#include "cellar/codec/row.h"

namespace cellar::codec {
namespace {

using testing::RandomValues;
using testing::Rounds;

const std::vector<Type>& AllTypes() {
  static const std::vector<Type> types = [] {
    std::vector<Type> out;
    for (TypeId id :
         {TypeId::kBool, TypeId::kInt2, TypeId::kInt4, TypeId::kInt8, TypeId::kOid, TypeId::kFloat4,
          TypeId::kFloat8, TypeId::kNumeric, TypeId::kText, TypeId::kVarchar, TypeId::kBpchar,
          TypeId::kBytea, TypeId::kDate, TypeId::kTime, TypeId::kTimetz, TypeId::kTimestamp,
          TypeId::kTimestamptz, TypeId::kInterval, TypeId::kUuid}) {
      out.push_back(MakeType(id));
    }
    for (TypeId id : {TypeId::kInt4, TypeId::kText, TypeId::kNumeric}) out.push_back(ArrayOf(id));
    return out;
  }();
  return types;
}

bool SameBits(Datum a, Datum b, Type type) {
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (PhysicalOf(type) == Physical::kBytes) return a.bytes() == b.bytes();
  if (PhysicalOf(type) == Physical::kInt64) return a.int_value() == b.int_value();
  return std::bit_cast<uint64_t>(a.double_value()) == std::bit_cast<uint64_t>(b.double_value());
}

struct Changed {
  ColumnId column;
  Type type;
  Datum value;
};

// Columns with ids of one, two and more bytes.
std::vector<Changed> RandomColumns(RandomValues* random, Arena* arena) {
  std::vector<Changed> columns;
  uint32_t id = 0;
  for (Type type : AllTypes()) {
    id += 1 + static_cast<uint32_t>(random->OneIn(8) ? random->Below(100000) : random->Below(3));
    if (random->OneIn(4)) continue;
    columns.push_back({ColumnId{id}, type, {}});
    if (!random->OneIn(5)) columns.back().value = random->Value(type, arena);
  }
  return columns;
}

std::string PatchOf(const std::vector<Changed>& columns) {
  std::string patch;
  BeginPatch(&patch);
  for (const Changed& changed : columns) {
    AppendPatchColumn(changed.column, changed.value, changed.type, &patch);
  }
  return patch;
}

struct ReadColumn {
  ColumnId column;
  std::string_view bytes;
  bool null;
};

// nullopt: kCorruption, which is the only error.
std::optional<std::vector<ReadColumn>> ReadPatch(std::string_view patch) {
  Result<PatchReader> reader = PatchReader::Make(patch);
  std::vector<ReadColumn> columns;
  Status status = reader.status();
  while (status.ok()) {
    ReadColumn column;
    Result<bool> more = reader->Next(&column.column, &column.bytes, &column.null);
    if (more.ok() && !*more) return columns;
    status = more.status();
    columns.push_back(column);
  }
  EXPECT_EQ(status.code(), Code::kCorruption) << status.ToString();
  return std::nullopt;
}

TEST(PatchProperty, ColumnsOfEveryTypeComeBack) {
  for (size_t round = 0; round < Rounds(200, 5000); ++round) {
    RandomValues random(round);
    Arena arena;
    const std::vector<Changed> columns = RandomColumns(&random, &arena);
    const std::string patch = PatchOf(columns);
    SCOPED_TRACE(round);
    ASSERT_EQ(*DeltaKindOf(patch), DeltaKind::kPatch);
    const auto read = ReadPatch(patch);
    ASSERT_TRUE(read.has_value());
    ASSERT_EQ(read->size(), columns.size());
    for (size_t i = 0; i < columns.size(); ++i) {
      const ReadColumn& got = (*read)[i];
      EXPECT_EQ(got.column, columns[i].column);
      ASSERT_EQ(got.null, columns[i].value.is_null());
      if (got.null) continue;
      Result<Datum> value = PatchReader::Value(got.bytes, columns[i].type);
      ASSERT_TRUE(value.ok()) << value.status().ToString();
      EXPECT_TRUE(SameBits(*value, columns[i].value, columns[i].type))
          << FormatType(columns[i].type);
    }
  }
}

TEST(Patch, OfNothingIsAPatch) {
  const std::string patch = PatchOf({});
  EXPECT_EQ(patch, "\x02");
  const auto read = ReadPatch(patch);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->empty());
}

TEST(Patch, NullAndEmptyAreTwoThings) {
  const Type text = MakeType(TypeId::kText);
  const std::string patch =
      PatchOf({{ColumnId{1}, text, Datum()}, {ColumnId{2}, text, Datum::Bytes("")}});
  const auto read = ReadPatch(patch);
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->size(), 2u);
  EXPECT_TRUE((*read)[0].null);
  EXPECT_FALSE((*read)[1].null);
  EXPECT_EQ(PatchReader::Value((*read)[1].bytes, text)->bytes(), "");
}

// Patches outlive a wider type of their column, as rows do.
TEST(Patch, ValuesAreReadAsAWiderType) {
  const auto value_as = [](Datum value, TypeId stored, TypeId wanted) {
    const std::string patch = PatchOf({{ColumnId{1}, MakeType(stored), value}});
    const auto read = ReadPatch(patch);
    EXPECT_TRUE(read.has_value());
    return *PatchReader::Value(read->front().bytes, MakeType(wanted));
  };
  EXPECT_EQ(value_as(Datum::Int(-2), TypeId::kInt2, TypeId::kInt8).int_value(), -2);
  EXPECT_EQ(value_as(Datum::Double(1.5), TypeId::kFloat4, TypeId::kFloat8).double_value(), 1.5);
}

// A column that nobody wants any more does not hide the others.
TEST(Patch, UnknownColumnsArePassedOver) {
  const Type int4 = MakeType(TypeId::kInt4);
  const std::string patch =
      PatchOf({{ColumnId{4000000000}, MakeType(TypeId::kText), Datum::Bytes("gone")},
               {ColumnId{3}, int4, Datum::Int(7)}});
  const auto read = ReadPatch(patch);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ((*read)[0].column, ColumnId{4000000000});
  EXPECT_EQ(PatchReader::Value((*read)[1].bytes, int4)->int_value(), 7);
}

TEST(Patch, KindsOfTheDelta) {
  EXPECT_EQ(*DeltaKindOf(""), DeltaKind::kTombstone);
  for (const char row : {'\x01', '\x41', '\x81', '\xC1'}) {
    EXPECT_EQ(*DeltaKindOf({&row, 1}), DeltaKind::kRow);
  }
  EXPECT_EQ(*DeltaKindOf("\x02"), DeltaKind::kPatch);
  EXPECT_EQ(*DeltaKindOf("\x06"), DeltaKind::kLongRow);
  for (int byte = 0; byte < 256; ++byte) {
    if ((byte & 0x3F) == 0x01 || byte == 0x02 || byte == 0x06) continue;
    const char first = static_cast<char>(byte);
    EXPECT_EQ(DeltaKindOf({&first, 1}).status().code(), Code::kCorruption) << byte;
    EXPECT_FALSE(ReadPatch({&first, 1}).has_value()) << byte;
  }
}

// The engine guards whole values by checksums; of a patch cut between two columns nothing else can
// be known.
TEST(PatchProperty, EveryOtherTruncationIsCorruption) {
  for (size_t round = 0; round < Rounds(50, 1000); ++round) {
    RandomValues random(round);
    Arena arena;
    const std::vector<Changed> columns = RandomColumns(&random, &arena);
    std::vector<size_t> whole;  // lengths of patches of the first columns
    std::string patch;
    BeginPatch(&patch);
    whole.push_back(patch.size());
    for (const Changed& changed : columns) {
      AppendPatchColumn(changed.column, changed.value, changed.type, &patch);
      whole.push_back(patch.size());
    }
    for (size_t size = 0; size < patch.size(); ++size) {
      const auto read = ReadPatch(std::string_view(patch).substr(0, size));
      const auto at = std::find(whole.begin(), whole.end(), size);
      ASSERT_EQ(read.has_value(), at != whole.end()) << "seed " << round << ", " << size;
      if (read.has_value()) {
        EXPECT_EQ(read->size(), static_cast<size_t>(at - whole.begin()));
      }
    }
  }
}

// Whatever a flipped bit makes of it, what is read is a valid value or kCorruption.
TEST(PatchProperty, FlippedBitsAreCorruptionOrOtherValues) {
  size_t refused = 0;
  for (size_t round = 0; round < Rounds(50, 1000); ++round) {
    RandomValues random(round);
    Arena arena;
    const std::vector<Changed> columns = RandomColumns(&random, &arena);
    const std::string patch = PatchOf(columns);
    for (size_t bit = 0; bit < patch.size() * 8; ++bit) {
      std::string flipped = patch;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      const auto read = ReadPatch(flipped);
      if (!read.has_value()) {
        ++refused;
        continue;
      }
      for (const ReadColumn& got : *read) {
        for (Type type : {columns.empty() ? MakeType(TypeId::kText)
                                          : columns[random.Below(columns.size())].type}) {
          if (got.null) continue;
          Result<Datum> value = PatchReader::Value(got.bytes, type);
          if (!value.ok()) {
            ++refused;
            ASSERT_EQ(value.status().code(), Code::kCorruption);
          } else if (PhysicalOf(type) == Physical::kBytes) {
            ASSERT_TRUE(IsValidStored(value->bytes(), type));
          }
        }
      }
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Patch, ValuesOfAnotherSizeAreCorruption) {
  for (TypeId id : {TypeId::kBool, TypeId::kInt4, TypeId::kInt8, TypeId::kFloat8, TypeId::kDate}) {
    for (size_t size : {0, 1, 4, 7, 9, 16}) {
      EXPECT_EQ(PatchReader::Value(std::string(size, '\0'), MakeType(id)).status().code(),
                Code::kCorruption);
    }
  }
  EXPECT_EQ(PatchReader::Value("\x09", MakeType(TypeId::kNumeric)).status().code(),
            Code::kCorruption);
}

// The example of docs/formats/row.md.
TEST(LongRow, IsWrittenAsSpecified) {
  const RowFormat format = *RowFormat::Make(
      1, {{ColumnId{2}, MakeType(TypeId::kInt4)}, {ColumnId{3}, MakeType(TypeId::kBytea)}});
  std::string value;
  AppendLongRowHead(std::vector<LongValue>{{ColumnId{3}, 40000}}, &value);
  ASSERT_TRUE(RowEncoder::Append(format, std::vector<Datum>{Datum::Int(7), Datum()}, &value).ok());
  EXPECT_EQ(value, std::string("\x06\x01\x03\xC0\xB8\x02\x01\x01\x02\x07\0\0\0\0\0", 15));
  EXPECT_EQ(*DeltaKindOf(value), DeltaKind::kLongRow);
  const LongRow row = *ParseLongRow(value);
  ASSERT_EQ(row.values.size(), 1u);
  EXPECT_EQ(row.values[0].column, ColumnId{3});
  EXPECT_EQ(row.values[0].bytes, 40000u);
  EXPECT_EQ(row.row, std::string_view(value).substr(6));
}

TEST(LongRow, CutOnesAreCorruption) {
  std::string value;
  AppendLongRowHead(std::vector<LongValue>{{ColumnId{300}, 70000}, {ColumnId{1}, 1}}, &value);
  value += "\x01";
  EXPECT_TRUE(ParseLongRow(value).ok());
  for (size_t size = 0; size < value.size(); ++size) {
    EXPECT_EQ(ParseLongRow(value.substr(0, size)).status().code(), Code::kCorruption) << size;
  }
  EXPECT_FALSE(ParseLongRow(std::string_view("\x06\x00\x01", 3)).ok());
  EXPECT_FALSE(ParseLongRow(std::string_view("\x06\x01\x01\x00\x01", 5)).ok());
}

}  // namespace
}  // namespace cellar::codec
