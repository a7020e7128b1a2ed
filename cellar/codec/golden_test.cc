// The frozen bytes of tests/formats/*.golden, which come from a model of the format pages and not
// from this code: every line must encode to its bytes and decode from them.
#include <gtest/gtest.h>

#include <fstream>

#include "cellar/codec/key.h"
#include "cellar/codec/page.h"
#include "cellar/codec/patch.h"
#include "cellar/codec/random_values.h"
#include "cellar/codec/row.h"
#include "cellar/types/text_io.h"

namespace cellar::codec {
namespace {

using testing::FromHex;
using testing::ToHex;

std::vector<std::string> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (size_t end; (end = text.find(separator)) != std::string_view::npos;) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  parts.emplace_back(text);
  return parts;
}

// The lines of a golden file, cut into fields.
std::vector<std::vector<std::string>> ReadGolden(const std::string& name, size_t fields) {
  std::ifstream file(std::string(CELLAR_SOURCE_DIR) + "/tests/formats/" + name);
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    lines.push_back(Split(line, " | "));
    EXPECT_EQ(lines.back().size(), fields) << line;
  }
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

Type ParseType(std::string_view name) {
  bool array = name.ends_with("[]");
  if (array) name.remove_suffix(2);
  Type type = TypeFromName(name).value_or(Type{});
  type.array = array;
  type.modifier = -1;
  return type;
}

Datum ParseValue(const std::string& text, Type type, Arena* arena) {
  if (text == "NULL") return Datum();
  Result<Datum> value = ParseDatum(text, type, FormatSettings{}, arena);
  EXPECT_TRUE(value.ok()) << text << ": " << value.status().ToString();
  return value.ok() ? *value : Datum();
}

std::string TextOf(Datum value, Type type) {
  if (value.is_null()) return "NULL";
  std::string text;
  AppendDatumText(value, type, FormatSettings{}, &text);
  return text;
}

TEST(Golden, KeyFields) {
  Arena arena;
  for (const std::vector<std::string>& line : ReadGolden("key.golden", 5)) {
    SCOPED_TRACE(::testing::PrintToString(line));
    KeyColumn column{ParseType(line[1])};
    if (line[2].starts_with("desc")) column.direction = Direction::kDescending;
    if (line[2].ends_with("first")) column.nulls = NullPlacement::kFirst;
    Datum value = ParseValue(line[3], column.type, &arena);
    std::string key;
    AppendKeyField(value, column, &key);
    EXPECT_EQ(ToHex(key), line[4]);
    key = FromHex(line[4]);
    std::string_view in = key;
    Result<Datum> back = TakeKeyField(&in, column, &arena);
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_TRUE(in.empty());
    EXPECT_EQ(testing::CompareInColumn(*back, value, column), 0);
  }
}

TEST(Golden, Rows) {
  Arena arena;
  for (const std::vector<std::string>& line : ReadGolden("row.golden", 5)) {
    SCOPED_TRACE(::testing::PrintToString(line));
    std::vector<RowColumn> columns;
    std::vector<Datum> values;
    std::vector<WantedColumn> wanted;
    std::vector<Type> types;
    std::vector<std::string> names = Split(line[2], "; "), texts = Split(line[3], "; ");
    ASSERT_EQ(names.size(), texts.size());
    for (size_t i = 0; i < names.size() && !line[2].empty(); ++i) {
      RowColumn column{ColumnId{static_cast<uint32_t>(i + 1)}};
      column.in_key = names[i].ends_with(" key");
      column.type = ParseType(column.in_key ? names[i].substr(0, names[i].size() - 4) : names[i]);
      values.push_back(ParseValue(texts[i], column.type, &arena));
      wanted.push_back({column.id, column.type, static_cast<uint32_t>(i), {}});
      types.push_back(column.type);
      columns.push_back(column);
    }
    RowFormat format = *RowFormat::Make(static_cast<uint32_t>(std::stoul(line[1])), columns);
    std::string row;
    ASSERT_TRUE(RowEncoder::Append(format, values, &row).ok());
    EXPECT_EQ(ToHex(row), line[4]);

    row = FromHex(line[4]);
    RowBatch batch;
    batch.Reset(types);
    batch.Resize(1);
    for (size_t i = 0; i < types.size(); ++i) batch.column(i).SetNull(0);
    RowDecoder decoder = *RowDecoder::Make(format, wanted, RowBytes::kBorrow);
    Status status = decoder.Decode(row, 0, &batch);
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (size_t i = 0; i < types.size(); ++i) {
      bool stored = !columns[i].in_key || KeyLosesInformation(values[i], types[i]);
      EXPECT_EQ(TextOf(batch.column(i).Get(0), types[i]),
                stored ? TextOf(values[i], types[i]) : "NULL");
    }
  }
}

TEST(Golden, Patches) {
  Arena arena;
  for (const std::vector<std::string>& line : ReadGolden("patch.golden", 4)) {
    SCOPED_TRACE(::testing::PrintToString(line));
    const std::vector<std::string> names = Split(line[1], "; "), texts = Split(line[2], "; ");
    ASSERT_EQ(names.size(), texts.size());
    std::string patch;
    BeginPatch(&patch);
    const std::string bytes = FromHex(line[3]);
    Result<PatchReader> reader = PatchReader::Make(bytes);
    ASSERT_TRUE(reader.ok());
    ColumnId column;
    std::string_view value_bytes;
    bool null = false;
    for (size_t i = 0; i < names.size() && !line[1].empty(); ++i) {
      const std::vector<std::string> parts = Split(names[i], " ");
      const ColumnId id{static_cast<uint32_t>(std::stoul(parts[0]))};
      const Type type = ParseType(parts[1]);
      const Datum value = ParseValue(texts[i], type, &arena);
      AppendPatchColumn(id, value, type, &patch);
      ASSERT_TRUE(*reader->Next(&column, &value_bytes, &null));
      EXPECT_EQ(column, id);
      ASSERT_EQ(null, value.is_null());
      if (null) continue;
      Result<Datum> back = PatchReader::Value(value_bytes, type);
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      EXPECT_EQ(TextOf(*back, type), TextOf(value, type));
    }
    EXPECT_FALSE(*reader->Next(&column, &value_bytes, &null));
    EXPECT_EQ(ToHex(patch), line[3]);
  }
}

void ExpectGoldenPages(const std::string& name) {
  Arena arena;
  for (const std::vector<std::string>& line : ReadGolden(name, 6)) {
    SCOPED_TRACE(::testing::PrintToString(line));
    std::vector<RowColumn> columns;
    std::vector<Type> types;
    std::vector<uint32_t> positions;
    std::vector<std::vector<Datum>> values;
    for (const std::string& column : Split(line[4], "; ")) {
      const size_t colon = column.find(':');
      types.push_back(ParseType(column.substr(0, colon)));
      positions.push_back(static_cast<uint32_t>(columns.size()));
      columns.push_back({ColumnId{static_cast<uint32_t>(columns.size() + 1)}, types.back()});
      values.emplace_back();
      if (colon + 2 >= column.size()) continue;
      for (const std::string& text : Split(column.substr(colon + 2), " ")) {
        values.back().push_back(ParseValue(text == "EMPTY" ? "" : text, types.back(), &arena));
      }
    }
    const size_t count = values[0].size();
    RowFormat format = *RowFormat::Make(static_cast<uint32_t>(std::stoul(line[1])), columns);
    RowBatch batch;
    batch.Reset(types);
    batch.Resize(count);
    for (size_t i = 0; i < types.size(); ++i) {
      ASSERT_EQ(values[i].size(), count);
      for (size_t row = 0; row < count; ++row) batch.column(i).Set(row, values[i][row]);
    }
    const std::string fence = line[2] == "-" ? "" : FromHex(line[2]);
    std::vector<std::string> keys;
    if (line[3] != "-" && line[3] != "none") {
      for (const std::string& key : Split(line[3], " ")) keys.push_back(FromHex(key));
    }
    const std::vector<std::string_view> refs(keys.begin(), keys.end());
    PageRows rows;
    rows.format = &format;
    rows.batch = &batch;
    rows.positions = positions;
    rows.count = count;
    rows.keys = line[3] == "-" ? PageKeys::kInt : PageKeys::kRefs;
    rows.refs = refs;
    rows.fence = fence;
    std::string page;
    ASSERT_TRUE(AppendPage(rows, &page).ok());
    // Version 3 writes these otherwise, and reads them as ever.
    if (line[0] != "numerics") {
      EXPECT_EQ(ToHex(page), line[5]);
    }

    page = FromHex(line[5]);
    PageView view;
    Status status = view.Parse(page);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(view.VerifyChecksum().ok());
    EXPECT_EQ(view.fence(), fence);
    EXPECT_EQ(view.keys(), rows.keys);
    for (uint32_t row = 0; row < refs.size(); ++row) {
      EXPECT_EQ(std::string(view.key_prefix()) + std::string(view.key_suffix(row)), refs[row]);
    }
    for (uint32_t i = 0; i < types.size(); ++i) {
      Chunk chunk;
      status = view.GetChunk(i, types[i], &chunk);
      ASSERT_TRUE(status.ok()) << status.ToString();
      ColumnVector column(types[i]);
      column.Resize(count);
      ASSERT_TRUE(chunk.Decode(0, static_cast<uint32_t>(count), 0, &column, &arena).ok());
      for (size_t row = 0; row < count; ++row) {
        EXPECT_EQ(TextOf(column.Get(row), types[i]), TextOf(values[i][row], types[i]));
      }
    }
  }
}

TEST(Golden, Pages) {
  ExpectGoldenPages("page.golden");
  ExpectGoldenPages("page_2.golden");
  ExpectGoldenPages("page_3.golden");
}

}  // namespace
}  // namespace cellar::codec
