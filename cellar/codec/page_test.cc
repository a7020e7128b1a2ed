// Pages: what goes in comes back, by every way of reading; and bytes that are not pages are
// refused.
#include "cellar/codec/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "cellar/base/crc32c.h"
#include "cellar/codec/page_bytes.h"
#include "cellar/codec/random_values.h"
#include "cellar/types/numeric.h"
#include "cellar/types/text_io.h"

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

constexpr double kPowers[] = {1, 10, 100, 1e6, 1e9};

// A random column whose values are alike in some way, as real ones are.
std::vector<Datum> RandomColumn(Type type, size_t rows, RandomValues* random, Arena* arena) {
  std::vector<Datum> values;
  const uint64_t nulls = random->Below(4);  // none, few, half, all
  const uint64_t shape = random->Below(4);  // any, few, near each other, a sequence
  std::vector<Datum> few;
  for (size_t n = 1 + random->Below(random->OneIn(2) ? 20 : 300); shape == 1 && n > 0; --n) {
    few.push_back(random->Value(type, arena));
  }
  const bool integer = PhysicalOf(type) == Physical::kInt64 && type.id != TypeId::kBool;
  const bool far = type.id == TypeId::kInt8 || (type.id == TypeId::kNumeric && random->OneIn(2));
  const int64_t base = far ? random->Integer() : 1000;
  const auto scale = static_cast<int>(random->Below(random->OneIn(4) ? 255 : 4));
  const int64_t step = static_cast<int64_t>(random->Below(7)) - 3;
  const double power = kPowers[random->Below(std::size(kPowers))];
  const uint64_t spread = uint64_t{1} << random->Below(63);
  const uint64_t different_letters = 1 + random->Below(random->OneIn(2) ? 70 : 10);
  const size_t longest = random->Below(100);
  for (size_t i = 0; i < rows; ++i) {
    const bool is_null =
        nulls == 3 || (nulls == 1 && random->OneIn(20)) || (nulls == 2 && random->OneIn(2));
    if (is_null) {
      values.push_back(Datum());
    } else if (shape == 1) {
      values.push_back(few[random->Below(few.size())]);
    } else if (shape == 2 && integer) {
      const uint64_t sum = static_cast<uint64_t>(base) + random->Below(spread);
      values.push_back(Datum::Int(static_cast<int64_t>(sum)));
    } else if (shape == 3 && integer) {
      const uint64_t sum = static_cast<uint64_t>(base) + i * static_cast<uint64_t>(step);
      values.push_back(Datum::Int(static_cast<int64_t>(sum)));
    } else if (shape >= 2 && !type.array &&
               (type.id == TypeId::kText || type.id == TypeId::kBytea)) {
      // Letters of few different kinds.
      const size_t size = shape == 2 ? longest : random->Below(longest + 1);
      char* bytes = arena->Allocate(size);
      for (size_t k = 0; k < size; ++k) {
        bytes[k] = static_cast<char>('A' + random->Below(different_letters));
      }
      values.push_back(Datum::Bytes({bytes, size}));
    } else if (shape >= 2 && !type.array && type.id == TypeId::kNumeric) {
      // Of one display scale, all but one in the third shape.
      const uint64_t sum = static_cast<uint64_t>(base) + random->Below(spread);
      const bool other = shape == 3 && i == rows / 2;
      values.push_back(
          Datum::Bytes(numeric::Make(static_cast<int64_t>(sum), other ? scale + 1 : scale, arena)));
    } else if (shape >= 2 && PhysicalOf(type) == Physical::kDouble) {
      const auto n = static_cast<double>(random->IntegerIn(-(int64_t{1} << 50), int64_t{1} << 50));
      values.push_back(Datum::Double(random->OneIn(500) ? -0.0 : n / power));
    } else {
      values.push_back(random->Value(type, arena));
    }
  }
  return values;
}

bool SameBits(Datum a, Datum b, Type type) {
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (PhysicalOf(type) == Physical::kBytes) return a.bytes() == b.bytes();
  if (PhysicalOf(type) == Physical::kInt64) return a.int_value() == b.int_value();
  return std::bit_cast<uint64_t>(a.double_value()) == std::bit_cast<uint64_t>(b.double_value());
}

constexpr FilterOp kAllOps[] = {
    FilterOp::kEqual,   FilterOp::kNotEqual,       FilterOp::kLess,   FilterOp::kLessOrEqual,
    FilterOp::kGreater, FilterOp::kGreaterOrEqual, FilterOp::kIsNull, FilterOp::kIsNotNull};

// A page of columns and what it was made of.
struct Sample {
  RowFormat format;
  RowBatch batch;
  std::vector<uint32_t> positions;
  std::vector<std::string> refs;
  std::string fence;
  std::string page;

  size_t rows() const { return batch.size(); }
};

Sample MakeSample(const std::vector<Type>& types, const std::vector<std::vector<Datum>>& values,
                  size_t rows) {
  Sample sample;
  std::vector<RowColumn> columns;
  for (Type type : types) {
    columns.push_back({ColumnId{static_cast<uint32_t>(columns.size() + 1)}, type});
    sample.positions.push_back(static_cast<uint32_t>(sample.positions.size()));
  }
  sample.format = *RowFormat::Make(7, columns);
  sample.batch.Reset(types);
  sample.batch.Resize(rows);
  for (size_t i = 0; i < types.size(); ++i) {
    for (size_t row = 0; row < rows; ++row) {
      sample.batch.column(i).Set(row, CopyDatum(values[i][row], types[i], sample.batch.arena()));
    }
  }
  return sample;
}

void Encode(Sample* sample) {
  std::vector<std::string_view> refs(sample->refs.begin(), sample->refs.end());
  PageRows rows;
  rows.format = &sample->format;
  rows.batch = &sample->batch;
  rows.positions = sample->positions;
  rows.count = sample->rows();
  rows.keys = refs.empty() && rows.count > 0 ? PageKeys::kInt : PageKeys::kRefs;
  rows.refs = refs;
  rows.fence = sample->fence;
  sample->page.clear();
  Status status = AppendPage(rows, &sample->page);
  ASSERT_TRUE(status.ok()) << status.ToString();
}

void ExpectColumn(const Chunk& chunk, const ColumnVector& expected, RandomValues* random) {
  const Type type = expected.type();
  const auto rows = static_cast<uint32_t>(expected.size());
  SCOPED_TRACE(FormatType(type) + " as " + chunk.Describe());
  Arena arena;
  ColumnVector column(type);
  column.Resize(rows);
  Status status = chunk.Decode(0, rows, 0, &column, &arena);
  ASSERT_TRUE(status.ok()) << status.ToString();
  uint32_t nulls = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    ASSERT_TRUE(SameBits(column.Get(row), expected.Get(row), type)) << row;
    Result<Datum> one = chunk.Get(row, &arena);
    ASSERT_TRUE(one.ok()) << one.status().ToString();
    ASSERT_TRUE(SameBits(*one, expected.Get(row), type)) << row;
    nulls += expected.IsNull(row) ? 1 : 0;
    if (column.has_codes() && !column.IsNull(row)) {
      ASSERT_EQ(column.dictionary()[column.codes()[row]], column.bytes()[row]);
    }
  }
  EXPECT_EQ(chunk.null_count(), nulls);
  if (chunk.encoding() != ChunkEncoding::kScaled) {
    EXPECT_EQ(column.has_codes(), chunk.encoding() == ChunkEncoding::kDictionary);
  }

  // Parts, at other places.
  for (int round = 0; round < 4; ++round) {
    const auto first = static_cast<uint32_t>(random->Below(rows + 1));
    const auto count = static_cast<uint32_t>(random->Below(rows - first + 1));
    column.Reset(type);
    column.Resize(count + 3);
    ASSERT_TRUE(chunk.Decode(first, count, 2, &column, &arena).ok());
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_TRUE(SameBits(column.Get(2 + i), expected.Get(first + i), type)) << first + i;
    }
    std::vector<uint32_t> some;
    for (uint32_t row = 0; row < rows; ++row) {
      if (random->OneIn(static_cast<uint64_t>(round) * 10 + 1)) some.push_back(row);
    }
    column.Reset(type);
    column.Resize(some.size() + 1);
    ASSERT_TRUE(chunk.Gather(some, 1, &column, &arena).ok());
    for (size_t i = 0; i < some.size(); ++i) {
      ASSERT_TRUE(SameBits(column.Get(1 + i), expected.Get(some[i]), type)) << some[i];
    }
  }
  EXPECT_FALSE(chunk.Decode(rows, 1, 0, &column, &arena).ok());
  EXPECT_FALSE(chunk.Get(rows, &arena).ok());

  Datum least;
  Datum greatest;
  if (chunk.Bounds(&arena, &least, &greatest)) {
    int reached = 0;
    for (uint32_t row = 0; row < rows; ++row) {
      if (expected.IsNull(row)) continue;
      const int low = CompareDatums(expected.Get(row), least, type);
      const int high = CompareDatums(expected.Get(row), greatest, type);
      ASSERT_TRUE(low >= 0 && high <= 0) << row;
      reached |= (low == 0 ? 1 : 0) | (high == 0 ? 2 : 0);
    }
    EXPECT_EQ(reached, 3);
  }
}

// Constants at, near and away from the column's values.
Datum RandomConstant(const ColumnVector& column, RandomValues* random, Arena* arena) {
  const Type type = column.type();
  Datum value = random->Value(type, arena);
  if (column.size() > 0 && !random->OneIn(3)) {
    Datum stored = column.Get(random->Below(column.size()));
    if (!stored.is_null()) value = stored;
  }
  if (PhysicalOf(type) == Physical::kDouble && random->OneIn(2)) {
    return Datum::Double(std::nextafter(value.double_value(), random->OneIn(2) ? 1e300 : -1e300));
  }
  if (type.id == TypeId::kNumeric && !type.array && random->OneIn(2)) {
    // As near as its own scale and finer ones allow.
    const auto scale = static_cast<int>(random->Below(6));
    const std::string_view near =
        numeric::Make(static_cast<int64_t>(random->Below(3)) - 1, scale, arena);
    Result<std::string_view> sum = numeric::Add(value.bytes(), near, arena);
    return sum.ok() ? Datum::Bytes(*sum) : value;
  }
  if (PhysicalOf(type) == Physical::kInt64 && random->OneIn(3)) {
    const uint64_t near = static_cast<uint64_t>(value.int_value()) + random->Below(3) - 1;
    return Datum::Int(static_cast<int64_t>(near));
  }
  return value;
}

void ExpectFilters(const Chunk& chunk, const ColumnVector& expected, RandomValues* random) {
  const Type type = expected.type();
  const auto rows = static_cast<uint32_t>(expected.size());
  Arena arena;
  for (FilterOp op : kAllOps) {
    ValueFilter filter{op, RandomConstant(expected, random, &arena)};
    std::string text;
    AppendDatumText(filter.value, type, FormatSettings{}, &text);
    SCOPED_TRACE(::testing::Message() << FormatType(type) << " as " << chunk.Describe() << " op "
                                      << static_cast<int>(op) << " " << text);
    const auto first = random->OneIn(2) ? 0 : static_cast<uint32_t>(random->Below(rows + 1));
    const uint32_t count = rows - first;
    std::vector<uint8_t> all(rows + 1, 1);
    ApplyFilter(expected, filter, all.data());
    all.resize(rows);
    std::vector<uint8_t> mask(count + 1);
    std::vector<uint8_t> right(count + 1, 1);
    for (uint32_t i = 0; i < count; ++i) {
      mask[i] = random->OneIn(4) ? 0 : 1;
      right[i] = static_cast<uint8_t>(mask[i] & all[first + i]);
    }
    mask[count] = 1;
    Status status = chunk.Filter(filter, first, count, mask.data());
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(mask, right);
    const auto passing = static_cast<uint32_t>(std::count(all.begin(), all.end(), 1));
    switch (chunk.Judge(filter)) {
      case Verdict::kNone: EXPECT_EQ(passing, 0U); break;
      case Verdict::kAll: EXPECT_EQ(passing, rows); break;
      case Verdict::kSome: break;
    }
  }
}

void ExpectPage(const Sample& sample, RandomValues* random) {
  PageView view;
  Status status = view.Parse(sample.page);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_TRUE(view.VerifyChecksum().ok());
  EXPECT_EQ(view.rows(), sample.rows());
  EXPECT_EQ(view.columns(), sample.format.columns().size());
  EXPECT_EQ(view.format_id(), 7U);
  EXPECT_EQ(view.fence(), sample.fence);
  EXPECT_EQ(view.size_bytes(), sample.page.size());
  for (uint32_t i = 0; i < view.columns(); ++i) {
    Chunk chunk;
    const ColumnVector& expected = sample.batch.column(sample.positions[i]);
    status = view.GetChunk(i, expected.type(), &chunk);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ExpectColumn(chunk, expected, random);
    ExpectFilters(chunk, expected, random);
  }
  Chunk none;
  EXPECT_FALSE(view.GetChunk(view.columns(), MakeType(TypeId::kInt8), &none).ok());
}

size_t RandomRows(RandomValues* random) {
  constexpr size_t kLikely[] = {0, 1, 2, 31, 32, 33, 64, 128, 1023, 1024};
  return random->OneIn(2) ? kLikely[random->Below(std::size(kLikely))] : random->Below(400);
}

TEST(PageProperty, ColumnsOfEveryTypeComeBackByEveryWayOfReading) {
  for (size_t round = 0; round < Rounds(8, 400); ++round) {
    RandomValues random(round);
    Arena arena;
    const size_t rows = RandomRows(&random);
    std::vector<std::vector<Datum>> values;
    for (Type type : AllTypes()) values.push_back(RandomColumn(type, rows, &random, &arena));
    Sample sample = MakeSample(AllTypes(), values, rows);
    if (random.OneIn(2)) sample.fence = random.Bytes(&arena);
    Encode(&sample);
    SCOPED_TRACE(::testing::Message() << "seed " << round << ", rows " << rows);
    ExpectPage(sample, &random);
    if (HasFatalFailure()) return;
  }
}

TEST(PageProperty, RowsAreFoundByTheirKeys) {
  for (size_t round = 0; round < Rounds(50, 1000); ++round) {
    RandomValues random(round);
    Arena arena;
    std::string prefix(random.Bytes(&arena));
    std::vector<std::string> refs;
    for (size_t n = RandomRows(&random); n > 0; --n) {
      refs.push_back(prefix + std::string(random.Bytes(&arena)));
    }
    std::sort(refs.begin(), refs.end());
    refs.erase(std::unique(refs.begin(), refs.end()), refs.end());
    std::vector<Datum> ints(refs.size(), Datum::Int(1));
    Sample sample = MakeSample({MakeType(TypeId::kInt8)}, {ints}, refs.size());
    sample.refs = refs;
    sample.fence = prefix + "\xFF\xFF";
    Encode(&sample);
    PageView view;
    ASSERT_TRUE(view.Parse(sample.page).ok());
    EXPECT_EQ(view.keys(), PageKeys::kRefs);
    for (uint32_t row = 0; row < refs.size(); ++row) {
      ASSERT_EQ(std::string(view.key_prefix()) + std::string(view.key_suffix(row)), refs[row]);
      ASSERT_EQ(view.LowerBound(refs[row]), row);
    }
    for (int i = 0; i < 100; ++i) {
      std::string ref(random.Bytes(&arena));
      if (random.OneIn(2)) ref = prefix + ref;
      const auto right = std::lower_bound(refs.begin(), refs.end(), ref) - refs.begin();
      ASSERT_EQ(view.LowerBound(ref), right);
      EXPECT_EQ(view.Covers(ref), ref < sample.fence);
    }
  }
}

TEST(PageProperty, RowsAreFoundByAnAscendingColumn) {
  for (size_t round = 0; round < Rounds(50, 1000); ++round) {
    RandomValues random(round);
    const Type type = MakeType(TypeId::kInt8);
    std::vector<int64_t> keys;
    const size_t rows = RandomRows(&random);
    const auto step = static_cast<int64_t>(1 + random.Below(1000));
    const bool sequence = random.OneIn(2);
    for (size_t i = 0; i < rows; ++i) {
      keys.push_back(sequence ? static_cast<int64_t>(i) * step - 100 : random.Integer());
    }
    std::sort(keys.begin(), keys.end());
    std::vector<Datum> values;
    for (int64_t key : keys) values.push_back(Datum::Int(key));
    Sample sample = MakeSample({type}, {values}, rows);
    Encode(&sample);
    PageView view;
    ASSERT_TRUE(view.Parse(sample.page).ok());
    Chunk chunk;
    ASSERT_TRUE(view.GetChunk(0, type, &chunk).ok());
    if (sequence && rows > 2) {
      EXPECT_EQ(chunk.encoding(), ChunkEncoding::kSequence);
    }
    for (int i = 0; i < 100; ++i) {
      int64_t key = random.Integer();
      if (rows > 0 && random.OneIn(2)) key = keys[random.Below(rows)];
      if (random.OneIn(2) && key < INT64_MAX) ++key;
      const auto right = std::lower_bound(keys.begin(), keys.end(), key) - keys.begin();
      ASSERT_EQ(chunk.LowerBound(key), right) << key;
    }
  }
}

// Reads all of a page that may be broken. True when nothing was found wrong.
bool ReadAll(std::string_view bytes, const std::vector<Type>& types, std::string* texts) {
  PageView view;
  bool good = view.Parse(bytes).ok();
  if (!good) return false;
  if (view.keys() == PageKeys::kRefs) {
    for (uint32_t row = 0; row < view.rows(); ++row) texts->append(view.key_suffix(row));
  }
  for (uint32_t i = 0; i < types.size(); ++i) {
    Chunk chunk;
    if (!view.GetChunk(i, types[i], &chunk).ok()) {
      good = false;
      continue;
    }
    Arena arena;
    ColumnVector column(types[i]);
    column.Resize(view.rows());
    const bool whole = chunk.Decode(0, view.rows(), 0, &column, &arena).ok();
    good = good && whole;
    for (uint32_t row = 0; row < view.rows(); ++row) {
      Result<Datum> value = chunk.Get(row, &arena);
      if (whole) {
        EXPECT_TRUE(value.ok());
        if (!value.ok()) return false;
        EXPECT_TRUE(SameBits(*value, column.Get(row), types[i])) << row;
      }
      if (value.ok() && !value->is_null()) AppendDatumText(*value, types[i], {}, texts);
    }
  }
  return good;
}

TEST(PageProperty, BrokenBytesAreRefusedOrReadAlikeAndNeverPassTheChecksum) {
  for (size_t round = 0; round < Rounds(10, 300); ++round) {
    RandomValues random(round);
    Arena arena;
    const size_t rows = 1 + random.Below(80);
    std::vector<std::vector<Datum>> values;
    for (Type type : AllTypes()) values.push_back(RandomColumn(type, rows, &random, &arena));
    Sample sample = MakeSample(AllTypes(), values, rows);
    Encode(&sample);
    std::string texts;
    ASSERT_TRUE(ReadAll(sample.page, AllTypes(), &texts));
    for (int i = 0; i < 60; ++i) {
      // The heap's end is the page's end, so that sanitizers see each byte beyond.
      const size_t size = random.Below(sample.page.size());
      const std::vector<char> cut(sample.page.begin(),
                                  sample.page.begin() + static_cast<std::ptrdiff_t>(size));
      PageView view;
      EXPECT_EQ(view.Parse({cut.data(), size}).code(), Code::kCorruption);

      std::vector<char> flipped(sample.page.begin(), sample.page.end());
      for (uint64_t flips = 1 + random.Below(3); flips > 0; --flips) {
        const size_t at = random.OneIn(3) ? random.Below(120) : random.Below(flipped.size());
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << random.Below(8)));
      }
      const std::string_view bytes(flipped.data(), flipped.size());
      ReadAll(bytes, AllTypes(), &texts);
      if (bytes != sample.page && view.Parse(bytes).ok()) {
        EXPECT_EQ(view.VerifyChecksum().code(), Code::kCorruption);
      }
    }
  }
}

TEST(Page, HoldsValuesOfAnySizeAndAnyNumberOfColumns) {
  RandomValues random(1);
  const Type text = MakeType(TypeId::kText);
  const std::string large(1 << 20, 'x');
  const std::string other = large + "y";
  std::vector<Datum> values = {Datum::Bytes(large), Datum(), Datum::Bytes(""), Datum::Bytes(other)};
  Sample sample = MakeSample({text}, {values}, 4);
  sample.refs = {large, large + "a", large + "ab", other};
  Encode(&sample);
  ExpectPage(sample, &random);
  PageView view;
  ASSERT_TRUE(view.Parse(sample.page).ok());
  EXPECT_EQ(view.key_prefix().size(), large.size());
  EXPECT_EQ(view.LowerBound(other), 3U);

  // Different ones, so that their starts need more than two bytes.
  values.clear();
  std::vector<std::string> strings;
  for (size_t i = 0; i < 100; ++i) strings.push_back(std::to_string(i) + std::string(i * 50, 'z'));
  for (const std::string& string : strings) values.push_back(Datum::Bytes(string));
  sample = MakeSample({text}, {values}, values.size());
  Encode(&sample);
  ExpectPage(sample, &random);

  std::vector<Type> types(kMaxRowColumns, MakeType(TypeId::kInt4));
  std::vector<std::vector<Datum>> columns;
  for (size_t i = 0; i < types.size(); ++i) {
    columns.push_back({Datum::Int(static_cast<int64_t>(i)), Datum()});
  }
  sample = MakeSample(types, columns, 2);
  Encode(&sample);
  ASSERT_TRUE(view.Parse(sample.page).ok());
  Chunk chunk;
  ASSERT_TRUE(view.GetChunk(4095, types[0], &chunk).ok());
  EXPECT_EQ(chunk.Get(0, nullptr)->int_value(), 4095);
  EXPECT_TRUE(chunk.Get(1, nullptr)->is_null());
}

TEST(Page, AppendsOrLeavesAlone) {
  // More than a gibibyte, of one buffer.
  const std::string large(size_t{1200} << 10, 'x');
  constexpr size_t kRows = 1000;
  Sample sample;
  sample.format = *RowFormat::Make(7, {{ColumnId{1}, MakeType(TypeId::kText)}});
  std::vector<Type> types = {MakeType(TypeId::kText)};
  sample.batch.Reset(types);
  sample.batch.Resize(kRows);
  for (size_t i = 0; i < kRows; ++i) {
    sample.batch.column(0).Set(i, Datum::Bytes(std::string_view(large).substr(i)));
  }
  sample.positions = {0};
  PageRows rows;
  rows.format = &sample.format;
  rows.batch = &sample.batch;
  rows.positions = sample.positions;
  rows.count = kRows;
  rows.keys = PageKeys::kInt;
  std::string out = "before";
  EXPECT_EQ(AppendPage(rows, &out).code(), Code::kLimit);
  EXPECT_EQ(out, "before");

  // Behind other bytes, from the middle of the batch.
  sample =
      MakeSample({MakeType(TypeId::kInt4)}, {{Datum::Int(1), Datum::Int(5), Datum::Int(9)}}, 3);
  rows.format = &sample.format;
  rows.batch = &sample.batch;
  rows.positions = sample.positions;
  rows.first = 1;
  rows.count = 2;
  ASSERT_TRUE(AppendPage(rows, &out).ok());
  PageView view;
  ASSERT_TRUE(view.Parse(std::string_view(out).substr(6)).ok());
  ASSERT_TRUE(view.VerifyChecksum().ok());
  Chunk chunk;
  ASSERT_TRUE(view.GetChunk(0, MakeType(TypeId::kInt4), &chunk).ok());
  EXPECT_EQ(chunk.Get(1, nullptr)->int_value(), 9);
}

struct EncodingCase {
  const char* values;  // separated by blanks
  TypeId type;
  const char* encoding;
};
constexpr EncodingCase kEncodings[] = {
    {"7 7 7 7", TypeId::kInt4, "frame, constant"},
    {"7 8 7 7", TypeId::kInt4, "frame, 1 bit"},
    {"1 4 2 2", TypeId::kInt4, "frame, 2 bits"},
    {"1 10 2 2", TypeId::kInt4, "frame, 4 bits"},
    {"1 100 2 2", TypeId::kInt4, "frame, 1 byte"},
    {"1 70000 2 2", TypeId::kInt4, "frame, 3 bytes"},
    {"1 9223372036854775807 -9223372036854775808", TypeId::kInt8, "frame, 8 bytes"},
    {"1 4 7 10", TypeId::kInt8, "sequence by 3"},
    {"10 7 4 1", TypeId::kInt8, "sequence by -3"},
    {"0.5 17.25 3", TypeId::kFloat8, "decimal of 2 places, 2 bytes"},
    {"0.1 0.2 0.3", TypeId::kFloat8, "decimal of 1 places, 2 bits"},
    {"0.5 -0", TypeId::kFloat8, "float"},
    {"0.5 NaN", TypeId::kFloat8, "float"},
    {"0.1 Infinity", TypeId::kFloat8, "double"},
    {"1e300 0.5", TypeId::kFloat8, "double"},
    {"green red green red green red red green green red", TypeId::kText, "dictionary of 2"},
    {"green red blue", TypeId::kText, "bytes"},
    {"12.50 -0.99 7.00", TypeId::kNumeric, "numeric of 2 places, 2 bytes"},
    {"12.5 12.5", TypeId::kNumeric, "numeric of 1 places, constant"},
    {"1e18 0 0 1e18 0 1e18 0 1e18 0 0 0 0 0 0 0 0 0", TypeId::kNumeric, "dictionary of 2"},
    {"12.50 3.5 2", TypeId::kNumeric, "bytes"},
    {"12.50 NaN", TypeId::kNumeric, "bytes"},
    {"12.50 100000000000000000000.00 3.00", TypeId::kNumeric, "bytes"},
};

TEST(Page, ChoosesTheSmallestEncoding) {
  for (const EncodingCase& c : kEncodings) {
    SCOPED_TRACE(c.values);
    Arena arena;
    const Type type = MakeType(c.type);
    std::vector<Datum> values;
    std::string_view text = c.values;
    while (!text.empty()) {
      const size_t end = std::min(text.find(' '), text.size());
      values.push_back(*ParseDatum(text.substr(0, end), type, FormatSettings{}, &arena));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    Sample sample = MakeSample({type}, {values}, values.size());
    Encode(&sample);
    PageView view;
    ASSERT_TRUE(view.Parse(sample.page).ok());
    Chunk chunk;
    ASSERT_TRUE(view.GetChunk(0, type, &chunk).ok());
    EXPECT_EQ(chunk.Describe(), c.encoding);
  }
}

TEST(Page, PacksLettersUnlessTheyRepeatEnoughToBeCompressed) {
  RandomValues random(1);
  const Type text = MakeType(TypeId::kText);
  const auto describe = [&](const std::vector<std::string>& strings) {
    std::vector<Datum> values;
    for (const std::string& string : strings) values.push_back(Datum::Bytes(string));
    Sample sample = MakeSample({text}, {values}, values.size());
    Encode(&sample);
    ExpectPage(sample, &random);
    PageView view;
    Chunk chunk;
    EXPECT_TRUE(view.Parse(sample.page).ok() && view.GetChunk(0, text, &chunk).ok());
    return chunk.Describe();
  };
  const auto strings = [&](uint64_t letters, size_t count, const std::string& head) {
    std::vector<std::string> out;
    for (size_t i = 0; i < count; ++i) {
      out.push_back(head);
      for (size_t k = 0; k < 20; ++k) out.back() += static_cast<char>(' ' + random.Below(letters));
    }
    return out;
  };
  EXPECT_EQ(describe(strings(16, 300, "")), "letters, 16 of them");
  EXPECT_EQ(describe(strings(64, 300, "")), "letters, 64 of them");
  EXPECT_EQ(describe(strings(65, 300, "")), "bytes");
  EXPECT_EQ(describe(strings(32, 20, "")), "bytes");  // too few
  EXPECT_EQ(describe(strings(20, 300, "")), "letters, 20 of them");
  EXPECT_EQ(describe(strings(20, 300, "0123456789 0123456789 0123456789 ")), "bytes");
}

TEST(PageCodes, BothVersionsOfLettersAgreeWithSingleOnes) {
  const internal::CodeLoops* fast = internal::Avx2Loops();
  RandomValues random(1);
  for (uint32_t bits = 1; bits <= 6; ++bits) {
    for (size_t groups = 0; groups < 70; ++groups) {
      std::vector<char> packed(internal::LettersBytes(bits, groups * 8) + 1);
      for (char& c : packed) c = static_cast<char>(random.Bits());
      uint8_t alphabet[internal::kMaxLetters];
      for (uint8_t& c : alphabet) c = static_cast<uint8_t>(random.Bits());
      for (const internal::CodeLoops* loops : {&internal::PortableLoops(), fast}) {
        if (loops == nullptr) continue;
        std::vector<char> out(groups * 8);
        loops->letters(packed.data(), bits, groups, alphabet, out.data());
        for (size_t i = 0; i < out.size(); ++i) {
          uint32_t code = 0;
          for (uint32_t bit = 0; bit < bits; ++bit) {
            const size_t at = i * bits + bit;
            code |= (static_cast<uint8_t>(packed[at / 8]) >> (at % 8) & 1U) << bit;
          }
          ASSERT_EQ(static_cast<uint8_t>(out[i]), alphabet[code]) << bits << " " << i;
        }
      }
    }
  }
}

TEST(PageCodes, BothVersionsOfTheLoopsAgreeWithSingleCodes) {
  using internal::CodeAt;
  const internal::CodeLoops* fast = internal::Avx2Loops();
  RandomValues random(1);
  for (uint32_t bits = 0; bits <= 64; ++bits) {
    if (!internal::IsCodeBits(bits)) continue;
    for (size_t round = 0; round < Rounds(20, 500); ++round) {
      const size_t rows = random.Below(700);
      // Never empty: the loops may be handed no rows, but not null pointers.
      std::vector<char> codes(internal::CodeBytes(bits, rows) + (rows == 0 ? 1 : 0));
      for (char& c : codes) c = static_cast<char>(random.Bits());
      const size_t first = random.Below(rows + 1);
      const size_t count = random.Below(rows - first + 1);
      const uint64_t base = random.Bits();
      uint64_t low = rows == 0 ? 3 : CodeAt(codes.data(), bits, 0);
      uint64_t high = rows == 0 ? 5 : CodeAt(codes.data(), bits, random.Below(rows));
      if (random.OneIn(4)) high = random.Bits();
      if (low > high) std::swap(low, high);
      const bool negate = random.OneIn(2);
      for (const internal::CodeLoops* loops : {&internal::PortableLoops(), fast}) {
        if (loops == nullptr) continue;
        SCOPED_TRACE(::testing::Message() << bits << " bits, " << (loops == fast ? "fast" : "any"));
        std::vector<int64_t> ints(count + 1);
        loops->ints(codes.data(), bits, first, count, base, ints.data());
        std::vector<uint8_t> mask(count + 1, 1);
        loops->range(codes.data(), bits, first, count, low, high, negate, mask.data());
        std::vector<double> doubles(count + 1);
        if (bits <= 48) loops->decimals(codes.data(), bits, first, count, -77, 100, doubles.data());
        std::vector<uint32_t> lengths(count + 1);
        if (bits <= 32) loops->lengths(codes.data(), bits, first, count, 9, lengths.data());
        std::vector<uint8_t> bytes(count + 1);
        uint8_t greatest = 0;
        if (bits <= 8) greatest = loops->bytes(codes.data(), bits, first, count, bytes.data());
        uint64_t most = 0;
        for (size_t i = 0; i < count; ++i) {
          const uint64_t code = CodeAt(codes.data(), bits, first + i);
          ASSERT_EQ(ints[i], static_cast<int64_t>(base + code));
          ASSERT_EQ(mask[i], (code >= low && code <= high) != negate ? 1 : 0);
          if (bits <= 48) {
            ASSERT_EQ(doubles[i], (static_cast<double>(code) - 77) / 100);
          }
          if (bits <= 32) {
            ASSERT_EQ(lengths[i], 9 + static_cast<uint32_t>(code));
          }
          if (bits <= 8) {
            ASSERT_EQ(bytes[i], code);
          }
          most = std::max(most, code);
        }
        if (bits <= 8) {
          EXPECT_EQ(greatest, most);
        }
      }
    }
  }
}

// Long runs are summed in three lanes, short ones by one.
TEST(Crc32cTest, IsThatOfTheBytesHoweverTheyAreDivided) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);  // the check value of CRC-32C
  std::mt19937 random(1);
  std::string bytes;
  for (int i = 0; i < 20000; ++i) bytes.push_back(static_cast<char>(random()));
  for (int i = 0; i < 200; ++i) {
    const size_t begin = random() % 100, size = random() % (bytes.size() - begin);
    const std::string_view whole = std::string_view(bytes).substr(begin, size);
    uint32_t pieces = 0;
    for (size_t at = 0; at < size; at += 700) pieces = Crc32c(whole.substr(at, 700), pieces);
    ASSERT_EQ(Crc32c(whole), pieces) << size;
  }
}

}  // namespace
}  // namespace cellar::codec
