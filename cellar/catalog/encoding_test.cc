// Bytes of descriptors: every field survives, foreign bytes never crash, the documented bytes hold.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "cellar/catalog/catalog.h"

namespace cellar::catalog {
namespace {

std::string Hex(std::string_view bytes) {
  std::string out;
  for (unsigned char c : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", c);
  return out;
}

// Every field set to something other than its default.
TableDescriptor FullTable() {
  TableDescriptor table;
  table.id.value = 77;
  table.parent.value = 2;
  table.name = "orders";
  table.version = 9;
  table.state = ObjectState::kDropped;
  table.dropped_at_micros = -5;
  table.kind = RelationKind::kSequence;
  ColumnDescriptor id;
  id.id.value = 1;
  id.name = "id";
  id.type = MakeType(TypeId::kInt8);
  id.not_null = true;
  id.identity = Identity::kByDefault;
  id.sequence.value = 78;
  id.comment = "the key";
  ColumnDescriptor text;
  text.id.value = 4;
  text.name = "tags";
  text.type = ArrayOf(TypeId::kVarchar);
  text.type.modifier = 34;
  text.hidden = true;
  text.dropped = true;
  text.default_sql = "'{}'";
  text.generated_sql = "upper(x)";
  text.initial_value = Value(MakeType(TypeId::kText), Datum::Bytes("was"));
  ColumnDescriptor null = id;
  null.id.value = 5;
  null.name = "n";
  null.identity = Identity::kAlways;
  null.initial_value = Value(MakeType(TypeId::kInt4), Datum::Null());
  table.columns = {id, text, null};
  IndexDescriptor primary;
  primary.oid = 16500;
  primary.name = "orders_pkey";
  primary.primary = primary.unique = primary.constraint = true;
  IndexColumn key;
  key.column.value = 1;
  key.direction = codec::Direction::kDescending;
  key.nulls = codec::NullPlacement::kFirst;
  primary.key = {key};
  primary.comment = "pk";
  IndexDescriptor second = primary;
  second.id.value = 6;
  second.primary = false;
  second.nulls_not_distinct = true;
  second.state = IndexState::kWriteOnly;
  second.stored = {ColumnId{4}, ColumnId{5}};
  second.predicate = "n > 0";
  second.key[0].expression = "lower(x)";
  table.indexes = {primary, second};
  CheckConstraint check;
  check.name = "c";
  check.expression = "id > 0";
  check.oid = 16501;
  table.checks = {check};
  ForeignKey foreign;
  foreign.name = "f";
  foreign.oid = 16502;
  foreign.columns = {ColumnId{1}};
  foreign.referenced_table.value = 12;
  foreign.referenced_columns = {ColumnId{3}};
  foreign.on_delete = ForeignKeyAction::kCascade;
  foreign.on_update = ForeignKeyAction::kSetNull;
  foreign.deferrable = foreign.initially_deferred = true;
  table.foreign_keys = {foreign};
  RowFormatDescriptor format;
  format.id = 3;
  format.columns = {ColumnId{1}, ColumnId{4}};
  format.types = {MakeType(TypeId::kInt4), MakeType(TypeId::kText)};
  table.row_formats = {format};
  table.next_column_id = 6;
  table.next_index_id = 7;
  table.next_row_format_id = 4;
  table.view_sql = "SELECT 1";
  table.sequence.type = MakeType(TypeId::kInt2);
  table.sequence.start = -7;
  table.sequence.increment = -2;
  table.sequence.min = INT64_MIN;
  table.sequence.max = -1;
  table.sequence.cache = 20;
  table.sequence.cycle = true;
  table.sequence.owner_table.value = 77;
  table.sequence.owner_column.value = 1;
  table.temporary = true;
  table.owner = "bob";
  table.comment = "what was ordered";
  return table;
}

TEST(DescriptorBytes, EveryFieldSurvives) {
  const TableDescriptor table = FullTable();
  const std::string bytes = EncodeTable(table);
  Result<TableDescriptor> decoded = DecodeTable(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  const TableDescriptor& got = decoded.value();
  EXPECT_EQ(EncodeTable(got), bytes);
  EXPECT_EQ(got.id, table.id);
  EXPECT_EQ(got.parent, table.parent);
  EXPECT_EQ(got.name, table.name);
  EXPECT_EQ(got.version, table.version);
  EXPECT_EQ(got.state, table.state);
  EXPECT_EQ(got.dropped_at_micros, table.dropped_at_micros);
  ASSERT_EQ(got.columns.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const ColumnDescriptor &a = got.columns[i], &b = table.columns[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.type, b.type);
    EXPECT_EQ(a.not_null, b.not_null);
    EXPECT_EQ(a.hidden, b.hidden);
    EXPECT_EQ(a.dropped, b.dropped);
    EXPECT_EQ(a.default_sql, b.default_sql);
    EXPECT_EQ(a.generated_sql, b.generated_sql);
    EXPECT_EQ(a.identity, b.identity);
    EXPECT_EQ(a.sequence, b.sequence);
    EXPECT_EQ(a.comment, b.comment);
    ASSERT_EQ(a.initial_value.has_value(), b.initial_value.has_value());
  }
  EXPECT_EQ(got.columns[1].initial_value->datum().bytes(), "was");
  EXPECT_TRUE(got.columns[2].initial_value->is_null());
  ASSERT_EQ(got.indexes.size(), 2u);
  EXPECT_EQ(got.indexes[0].key[0].direction, codec::Direction::kDescending);
  EXPECT_EQ(got.indexes[0].key[0].nulls, codec::NullPlacement::kFirst);
  EXPECT_EQ(got.indexes[1].id.value, 6u);
  EXPECT_EQ(got.indexes[1].oid, 16500u);
  EXPECT_TRUE(got.indexes[1].nulls_not_distinct);
  EXPECT_TRUE(got.indexes[1].constraint);
  EXPECT_EQ(got.indexes[1].state, IndexState::kWriteOnly);
  EXPECT_EQ(got.indexes[1].stored, table.indexes[1].stored);
  EXPECT_EQ(got.indexes[1].predicate, "n > 0");
  EXPECT_EQ(got.indexes[1].key[0].expression, "lower(x)");
  EXPECT_EQ(got.checks[0].expression, "id > 0");
  EXPECT_EQ(got.checks[0].oid, 16501u);
  EXPECT_EQ(got.foreign_keys[0].on_delete, ForeignKeyAction::kCascade);
  EXPECT_EQ(got.foreign_keys[0].on_update, ForeignKeyAction::kSetNull);
  EXPECT_EQ(got.foreign_keys[0].referenced_table.value, 12u);
  EXPECT_EQ(got.foreign_keys[0].referenced_columns[0].value, 3u);
  EXPECT_TRUE(got.foreign_keys[0].deferrable && got.foreign_keys[0].initially_deferred);
  EXPECT_EQ(got.row_formats[0].columns, table.row_formats[0].columns);
  EXPECT_EQ(got.row_formats[0].types, table.row_formats[0].types);
  EXPECT_EQ(got.kind, RelationKind::kSequence);
  EXPECT_EQ(got.next_column_id, 6u);
  EXPECT_EQ(got.next_index_id, 7u);
  EXPECT_EQ(got.next_row_format_id, 4u);
  EXPECT_EQ(got.view_sql, "SELECT 1");
  EXPECT_EQ(got.sequence.type, table.sequence.type);
  EXPECT_EQ(got.sequence.start, -7);
  EXPECT_EQ(got.sequence.increment, -2);
  EXPECT_EQ(got.sequence.min, INT64_MIN);
  EXPECT_EQ(got.sequence.max, -1);
  EXPECT_EQ(got.sequence.cache, 20);
  EXPECT_TRUE(got.sequence.cycle);
  EXPECT_EQ(got.sequence.owner_table.value, 77u);
  EXPECT_EQ(got.sequence.owner_column.value, 1u);
  EXPECT_TRUE(got.temporary);
  EXPECT_EQ(got.owner, "bob");
  EXPECT_EQ(got.comment, "what was ordered");
}

TEST(DescriptorBytes, WhatConstraintsSayOfThemselvesSurvives) {
  TableDescriptor table = FullTable();
  table.indexes[1].deferrable = true;
  table.indexes[1].constraint_comment = "on u";
  table.checks[0].comment = "on c";
  table.foreign_keys[0].comment = "on f";
  table.foreign_keys[0].on_delete_columns = {ColumnId{1}};
  Result<TableDescriptor> decoded = DecodeTable(EncodeTable(table));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  const TableDescriptor& got = *decoded;
  EXPECT_TRUE(got.indexes[1].deferrable && !got.indexes[0].deferrable);
  EXPECT_EQ(got.indexes[1].constraint_comment, "on u");
  EXPECT_EQ(got.checks[0].comment, "on c");
  EXPECT_EQ(got.foreign_keys[0].comment, "on f");
  EXPECT_EQ(got.foreign_keys[0].on_delete_columns, table.foreign_keys[0].on_delete_columns);
}

TEST(DescriptorBytes, AclsZonesGroupsAndStatesOfChangeSurvive) {
  TableDescriptor table = FullTable();
  EXPECT_EQ(table.storage_id(), table.id);
  table.state = ObjectState::kCollecting;
  table.dropped_at_ticks = 99;
  table.drop_group = 41;
  table.truncated = true;
  table.storage.value = 55;
  table.job = 56;
  table.counted_since_micros = 58;
  table.acl = {true, {{0, 10, 3, 0}, {16001, 10, 15, 8}}};
  table.zone.retention_micros = 0;
  table.zone.row_quota = 7;
  table.zone.byte_quota = 8;
  table.zone.read_rate = 9;
  table.zone.write_rate = 10;
  table.zone.priority = -3;
  table.zone.placement = "ssd";
  table.groups = {{2, "hot", {ColumnId{4}, ColumnId{5}}}};
  table.next_group_id = 3;
  table.columns[0].acl.set = true;
  table.columns[1].type = MakeType(TypeId::kText);
  table.columns[1].type.collation = FindBuiltInCollation("de-x-icu");
  table.indexes[1].shards = 8;
  table.indexes[1].job = 57;
  Collation mine;
  mine.oid = 16999;
  mine.name = "mine";
  mine.locale = "fr";
  mine.deterministic = false;
  mine.version = "7";
  table.indexes[1].key[0].collation = Intern(mine);
  table.indexes[1].key[0].opclass = "text_pattern_ops";
  table.checks[0].validated = false;
  table.foreign_keys[0].validated = false;
  Result<TableDescriptor> decoded = DecodeTable(EncodeTable(table));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->state, ObjectState::kCollecting);
  EXPECT_EQ(decoded->dropped_at_ticks, 99);
  EXPECT_EQ(decoded->drop_group, 41u);
  EXPECT_TRUE(decoded->truncated);
  EXPECT_EQ(decoded->storage_id().value, 55u);
  EXPECT_EQ(decoded->job, 56u);
  EXPECT_EQ(decoded->counted_since_micros, 58);
  EXPECT_EQ(decoded->acl, table.acl);
  EXPECT_EQ(decoded->zone, table.zone);
  ASSERT_EQ(decoded->groups.size(), 1u);
  EXPECT_EQ(decoded->groups[0].id, 2u);
  EXPECT_EQ(decoded->groups[0].name, "hot");
  EXPECT_EQ(decoded->groups[0].columns, table.groups[0].columns);
  EXPECT_EQ(decoded->next_group_id, 3u);
  EXPECT_TRUE(decoded->columns[0].acl.set && decoded->columns[0].acl.items.empty());
  EXPECT_FALSE(decoded->columns[1].acl.set);
  EXPECT_EQ(decoded->columns[1].type.collation, FindBuiltInCollation("de-x-icu"));
  EXPECT_EQ(decoded->indexes[1].shards, 8u);
  EXPECT_EQ(decoded->indexes[1].job, 57u);
  EXPECT_EQ(decoded->indexes[1].key[0].collation, Intern(mine));
  EXPECT_EQ(decoded->indexes[1].key[0].opclass, "text_pattern_ops");
  EXPECT_FALSE(decoded->checks[0].validated);
  EXPECT_FALSE(decoded->foreign_keys[0].validated);
  table.groups[0].columns = {ColumnId{77}};
  EXPECT_EQ(DecodeTable(EncodeTable(table)).status().code(), Code::kCorruption);

  NamespaceDescriptor space;
  space.id.value = 5;
  space.state = ObjectState::kCollecting;
  space.dropped_at_ticks = 98;
  space.drop_group = 42;
  space.acl.set = true;
  space.default_acls = {{16001, 'S', {true, {{0, 16001, 1, 1}}}}};
  space.zone.placement = "eu";
  Result<NamespaceDescriptor> got = DecodeNamespace(EncodeNamespace(space));
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(got->state, ObjectState::kCollecting);
  EXPECT_EQ(got->dropped_at_ticks, 98);
  EXPECT_EQ(got->drop_group, 42u);
  EXPECT_EQ(got->acl, space.acl);
  EXPECT_EQ(got->default_acls, space.default_acls);
  EXPECT_EQ(got->zone, space.zone);
}

TEST(DescriptorBytes, EveryLayoutSurvives) {
  for (const Layout layout : {Layout::kRow, Layout::kPages, Layout::kCell, Layout::kDatum}) {
    TableDescriptor table = FullTable();
    table.layout = layout;
    Result<TableDescriptor> decoded = DecodeTable(EncodeTable(table));
    ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
    EXPECT_EQ(decoded->layout, layout);
  }
  TableDescriptor table = FullTable();
  for (const int unknown : {0, 5}) {
    table.layout = static_cast<Layout>(unknown);
    EXPECT_EQ(DecodeTable(EncodeTable(table)).status().code(), Code::kCorruption);
  }
}

TEST(DescriptorBytes, NamespaceSurvives) {
  NamespaceDescriptor space;
  space.id.value = 5;
  space.parent.value = 2;
  space.name = "app";
  space.version = 3;
  space.state = ObjectState::kDropped;
  space.dropped_at_micros = 12;
  space.owner = "bob";
  space.comment = "apps";
  Result<NamespaceDescriptor> got = DecodeNamespace(EncodeNamespace(space));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().id, space.id);
  EXPECT_EQ(got.value().parent, space.parent);
  EXPECT_EQ(got.value().name, "app");
  EXPECT_EQ(got.value().version, 3u);
  EXPECT_EQ(got.value().state, ObjectState::kDropped);
  EXPECT_EQ(got.value().dropped_at_micros, 12);
  EXPECT_EQ(got.value().owner, "bob");
  EXPECT_EQ(got.value().comment, "apps");
}

TEST(DescriptorBytes, TheOtherKindIsRefused) {
  NamespaceDescriptor space;
  space.name = "app";
  EXPECT_EQ(DecodeTable(EncodeNamespace(space)).status().code(), Code::kCorruption);
  EXPECT_EQ(DecodeNamespace(EncodeTable(FullTable())).status().code(), Code::kCorruption);
}

// A type, and a table with columns of it.
TableDescriptor MoodType() {
  TableDescriptor type;
  type.id.value = 4;
  type.parent.value = 2;
  type.name = "mood";
  type.version = 1;
  type.kind = RelationKind::kType;
  type.enumeration = Intern({16388, 16389, "mood", {{kEnumCodeGap, 16390, "sad"}}});
  return type;
}
TableDescriptor TableOfMoods() {
  TableDescriptor table = FullTable();
  const Type mood = MakeEnum(MoodType().enumeration);
  table.kind = RelationKind::kTable;
  table.columns[0].type = mood;
  table.columns[1].type = ArrayOf(mood);
  table.columns[1].initial_value.reset();
  table.columns[2].initial_value = Value(mood, Datum::Int(kEnumCodeGap));
  table.row_formats[0].types = {mood, ArrayOf(mood)};
  return table;
}

TEST(DescriptorBytes, EnumsAreReadFromTheDescriptorItself) {
  Result<TableDescriptor> type = DecodeTable(EncodeTable(MoodType()));
  ASSERT_TRUE(type.ok()) << type.status().ToString();
  EXPECT_EQ(type->enumeration, MoodType().enumeration);
  const TableDescriptor table = TableOfMoods();
  Result<TableDescriptor> got = DecodeTable(EncodeTable(table));
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(got->columns[0].type.enumeration, MoodType().enumeration);
  EXPECT_TRUE(got->columns[1].type == table.columns[1].type);
  EXPECT_EQ(got->columns[2].initial_value->datum().int_value(), kEnumCodeGap);
  EXPECT_TRUE(got->row_formats[0].types == table.row_formats[0].types);
  EXPECT_EQ(got->enumeration, nullptr);
  EXPECT_TRUE(HasEnumColumn(*got, 16388));
  EXPECT_FALSE(HasEnumColumn(*got, 16389));

  TableDescriptor changed = table;
  EnumType next = *MoodType().enumeration;
  next.labels[0].name = "blue";
  ReplaceEnum(Intern(next), &changed);
  EXPECT_EQ(changed.columns[0].type.enumeration->labels[0].name, "blue");
  EXPECT_EQ(changed.row_formats[0].types[1].enumeration->labels[0].name, "blue");
  ASSERT_EQ(EnumsOf(changed).size(), 1u);
}

TEST(DescriptorBytes, MalformedEnumsAreCorruption) {
  auto fails = [](EnumType definition) {
    TableDescriptor type = MoodType();
    type.enumeration = Intern(std::move(definition));
    return DecodeTable(EncodeTable(type)).status().code() == Code::kCorruption;
  };
  EXPECT_TRUE(fails({16388, 16389, "", {}}));
  EXPECT_TRUE(fails({16388, 0, "mood", {}}));
  EXPECT_TRUE(fails({16999, 16389, "mood", {}}));  // not the type's own oid
  EXPECT_TRUE(fails({16388, 16389, "mood", {{2, 1, "a"}, {2, 2, "b"}}}));
  EXPECT_TRUE(fails({16388, 16389, "mood", {{2, 1, "a"}, {1, 2, "b"}}}));
  EXPECT_TRUE(fails({16388, 16389, "mood", {{1, 1, "a"}, {2, 2, "a"}}}));
  // A column of a type that the descriptor does not define: its definition has another oid.
  std::string bytes = EncodeTable(TableOfMoods());
  const size_t at = bytes.find(std::string("\x08\x84\x80\x01\x10\x85\x80\x01", 8));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = '\x87';
  EXPECT_EQ(DecodeTable(bytes).status().code(), Code::kCorruption);

  const std::string good = EncodeTable(TableOfMoods());
  for (size_t n = 0; n < good.size(); ++n) (void)DecodeTable(good.substr(0, n)).ok();
  std::mt19937 random(12);
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = good;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)DecodeTable(damaged).ok();
  }
}

TEST(DescriptorBytes, DamagedBytesAreAnErrorOrAnotherDescriptorButNeverACrash) {
  const std::string bytes = EncodeTable(FullTable());
  for (size_t n = 0; n < bytes.size(); ++n) (void)DecodeTable(bytes.substr(0, n)).ok();
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (uint32_t k = 0; k <= random() % 3; ++k) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    (void)DecodeTable(damaged).ok();
    (void)DecodeNamespace(damaged).ok();
  }
}

// Every field's frozen bytes: tests/formats/catalog*.golden.
std::vector<std::pair<std::string, std::string>> ReadGolden(const std::string& name) {
  std::ifstream file(std::string(CELLAR_SOURCE_DIR) + "/tests/formats/" + name);
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t bar = line.find(" | ");
    if (bar == std::string::npos) {
      ADD_FAILURE() << line;
      continue;
    }
    lines.emplace_back(line.substr(0, bar), line.substr(bar + 3));
  }
  return lines;
}

TEST(DescriptorBytes, GoldensStayReadableAndAreWhatIsWritten) {
  size_t seen = 0;
  std::vector<std::pair<std::string, std::string>> goldens = ReadGolden("catalog.golden");
  for (const char* more : {"catalog_pages.golden", "catalog_enums.golden"}) {
    for (auto& golden : ReadGolden(more)) goldens.push_back(std::move(golden));
  }
  for (const auto& [name, hex] : goldens) {
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    ++seen;
    if (name.starts_with("namespace")) {
      Result<NamespaceDescriptor> space = DecodeNamespace(bytes);
      ASSERT_TRUE(space.ok()) << name << ": " << space.status().ToString();
      EXPECT_EQ(Hex(EncodeNamespace(space.value())), hex) << name;
      continue;
    }
    Result<TableDescriptor> table = DecodeTable(bytes);
    ASSERT_TRUE(table.ok()) << name << ": " << table.status().ToString();
    EXPECT_EQ(Hex(EncodeTable(table.value())), hex) << name;
    if (name == "relation with every field") {
      EXPECT_EQ(Hex(EncodeTable(FullTable())), hex);
    }
    if (name == "enum type") {
      EXPECT_EQ(Hex(EncodeTable(MoodType())), hex);
    }
    if (name == "relation with columns of an enum type") {
      EXPECT_EQ(Hex(EncodeTable(TableOfMoods())), hex);
    }
  }
  EXPECT_EQ(seen, 6u);
}

TEST(DescriptorBytes, UnknownLayoutsAreCorruption) {
  std::string bytes = EncodeTable(FullTable());
  const size_t layout = bytes.find("\x38\x03\x40\x01");  // kind 3, layout 1
  ASSERT_NE(layout, std::string::npos);
  bytes[layout + 3] = 2;
  Result<TableDescriptor> pages = DecodeTable(bytes);
  ASSERT_TRUE(pages.ok()) << pages.status().ToString();
  EXPECT_EQ(pages->layout, Layout::kPages);
  for (char value : {char{0}, char{5}, char{127}}) {
    bytes[layout + 3] = value;
    EXPECT_EQ(DecodeTable(bytes).status().code(), Code::kCorruption) << int{value};
  }
}

// The worked examples of docs/formats/catalog.md.
TEST(DescriptorBytes, WorkedExampleOfANamespaceHolds) {
  NamespaceDescriptor space;
  space.id.value = 2;
  space.parent.value = 1;
  space.name = "cellar";
  space.version = 1;
  space.owner = "cellar";
  EXPECT_EQ(Hex(EncodeNamespace(space)),
            "0a18"              // field 1, namespace, 24 bytes
            "0802"              // id 2
            "1001"              // parent 1
            "1a0663656c6c6172"  // name "cellar"
            "2001"              // version 1
            "2801"              // state 1, public
            "3a0663656c6c6172"  // owner "cellar"
  );
}

TEST(DescriptorBytes, WorkedExampleOfATableHolds) {
  TableDescriptor table;
  table.id.value = 3;
  table.parent.value = 2;
  table.name = "t";
  table.version = 1;
  ColumnDescriptor id;
  id.id.value = 1;
  id.name = "id";
  id.type = MakeType(TypeId::kInt4);
  id.not_null = true;
  table.columns = {id};
  IndexDescriptor primary;
  primary.oid = 16388;
  primary.name = "t_pkey";
  primary.primary = primary.unique = primary.constraint = true;
  IndexColumn key;
  key.column.value = 1;
  primary.key = {key};
  table.indexes = {primary};
  RowFormatDescriptor format;
  format.id = 1;
  format.columns = {ColumnId{1}};
  format.types = {MakeType(TypeId::kInt4)};
  table.row_formats = {format};
  table.next_column_id = 2;
  table.next_index_id = 4;
  table.next_row_format_id = 2;
  EXPECT_EQ(Hex(EncodeTable(table)),
            "1249"  // field 2, relation, 73 bytes
            "0803"
            "1002"
            "1a0174"  // id 3, parent 2, name "t"
            "2001"
            "2801"  // version 1, state 1, public
            "3801"
            "4001"  // kind 1, table; layout 1, row
            "4a0c"  // a column, 12 bytes
            "0801"
            "12026964"  //   id 1, name "id"
            "1a020803"
            "2001"              //   type 3, int4; not null
            "5218"              // an index, 24 bytes; its id 0 is not written
            "10848001"          //   oid 16388
            "1a06745f706b6579"  //   name "t_pkey"
            "2001"
            "2801"
            "3001"      //   primary, unique, constraint
            "4003"      //   state 3, public
            "4a020801"  //   key: column 1, ascending, NULLs last
            "6a09"      // a row format, 9 bytes
            "0801"
            "120101"    //   id 1, columns [1]
            "1a020803"  //   types [int4]
            "7002"
            "7804"
            "800102"  // next ids: column 2, index 4, row format 2
  );
}

}  // namespace
}  // namespace cellar::catalog
