// Random work on tables of several shapes, compared with a list of rows and the obvious algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cellar/table/sealer.h"
#include "cellar/table/test_tables.h"

namespace cellar::table {
namespace {

struct Shape {
  const char* name;
  TableDescriptor table;
};

TableDescriptor TableOf(std::vector<catalog::ColumnDescriptor> columns,
                        std::vector<catalog::IndexDescriptor> indexes) {
  TableDescriptor table;
  table.name = "t";
  table.columns = std::move(columns);
  table.indexes = std::move(indexes);
  return table;
}

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  shapes.push_back(
      {"Plain", TableOf({MakeColumn(1, "id", TypeId::kInt4, true),
                         MakeColumn(2, "a", TypeId::kInt8), MakeColumn(3, "b", TypeId::kText)},
                        {MakePrimary("pk", {{1}}), MakeIndex("ia", {{2}}),
                         MakeIndex("ib", {{3, true, true}, {2}}, false, {1})})});
  shapes.push_back(
      {"CompositeDescending",
       TableOf({MakeColumn(1, "x", TypeId::kText, true), MakeColumn(2, "y", TypeId::kInt4, true),
                MakeColumn(3, "z", TypeId::kInt4)},
               {MakePrimary("pk", {{2, true}, {1}}), MakeIndex("iz", {{3, false, true}}),
                MakeIndex("iy", {{2}, {3, true}})})});
  shapes.push_back(
      {"UniqueWithNulls",
       TableOf({MakeColumn(1, "id", TypeId::kInt4, true), MakeColumn(2, "u", TypeId::kInt4),
                MakeColumn(3, "v", TypeId::kText), MakeColumn(4, "w", TypeId::kFloat8)},
               {MakePrimary("pk", {{1}}), MakeIndex("uuv", {{2}, {3, true}}, true),
                MakeIndex("uv", {{3, true, true}}, true, {4}), MakeIndex("iw", {{4, true}})})});
  catalog::IndexDescriptor not_distinct = MakeIndex("und", {{2, false, true}}, true);
  not_distinct.nulls_not_distinct = true;
  shapes.push_back({"NullsNotDistinct",
                    TableOf({MakeColumn(1, "id", TypeId::kInt8, true),
                             MakeColumn(2, "u", TypeId::kInt4), MakeColumn(3, "n", TypeId::kText)},
                            {MakePrimary("pk", {{1, true}}), not_distinct})});
  shapes.push_back(
      {"KeysThatLose",
       TableOf({MakeColumn(1, "k", TypeId::kNumeric, true), MakeColumn(2, "f", TypeId::kFloat8),
                MakeColumn(3, "m", TypeId::kNumeric), MakeColumn(4, "t", TypeId::kText, true)},
               {MakePrimary("pk", {{1}, {4, true}}), MakeIndex("if", {{2, true, true}}),
                MakeIndex("um", {{3}}, true), MakeIndex("ik", {{1, true}, {2}}, false, {3})})});
  shapes.push_back(
      {"LongRows",
       TableOf(
           {MakeColumn(1, "id", TypeId::kInt8, true), MakeColumn(2, "a", TypeId::kInt4),
            MakeColumn(3, "long", TypeId::kBytea), MakeColumn(4, "n", TypeId::kNumeric),
            MakeColumn(5, "f", TypeId::kFloat8), MakeColumn(6, "b", TypeId::kText)},
           {MakePrimary("pk", {{1}}), MakeIndex("ia", {{2}}), MakeIndex("ub", {{6}, {5}}, true)})});
  return shapes;
}

// A row of the model, with values that outlive it.
using Values = std::vector<Datum>;

// Shape, and layout: rows, pages that are never sealed, pages that are sealed all the time, rows in
// two column groups, cells, columns, rows in shards.
enum class Storage { kRows, kDelta, kSealed, kGroups, kCells, kDatums, kShards };

void SetStorage(Storage storage, TableDescriptor* table) {
  switch (storage) {
    case Storage::kRows: break;
    case Storage::kDelta:
    case Storage::kSealed: table->layout = catalog::Layout::kPages; break;
    case Storage::kCells: table->layout = catalog::Layout::kCell; break;
    case Storage::kDatums: table->layout = catalog::Layout::kDatum; break;
    case Storage::kShards: table->indexes.front().shards = 5; break;
    case Storage::kGroups: {
      // Every other column outside the primary key; one id takes two bytes in keys and ends in 00.
      catalog::ColumnGroup hot{1, "hot", {}}, cold{256, "cold", {}};
      for (const catalog::ColumnDescriptor& column : table->columns) {
        bool key = false;
        for (const auto& part : table->indexes.front().key) key |= part.column == column.id;
        if (key) continue;
        if (column.id.value % 3 == 0) hot.columns.push_back(column.id);
        if (column.id.value % 3 == 2) cold.columns.push_back(column.id);
      }
      table->groups = {hot, cold};
      table->next_group_id = 257;
      break;
    }
  }
}

class Model : public testing::TestWithParam<std::tuple<size_t, Storage>> {
 protected:
  void SetUp() override {
    shape_ = Shapes()[std::get<0>(GetParam())];
    storage_ = std::get<1>(GetParam());
    SetStorage(storage_, &shape_.table);
    table_ = store_.Create(shape_.table);
    types_ = LivingTypes(*table_);
  }

  Datum Parse(const char* text, Type type) {
    return CopyDatum(Must(ParseDatum(text, type, FormatSettings(), &arena_)), type, &arena_);
  }
  // Few values, so that they meet.
  Datum RandomValue(size_t column) {
    if (!table_->columns[column].not_null && random_() % 5 == 0) return Datum();
    const Type type = types_[column];
    static constexpr const char* kText[] = {"", "a", "ab", "b", "B", "a b"};
    static constexpr const char* kNumeric[] = {"0",    "1",    "1.0",  "1.00", "-1.5",
                                               "2.50", "1e20", "0.01", "NaN",  "17.000"};
    static constexpr const char* kFloat[] = {"0", "-0", "1.5", "-2.25", "NaN", "Infinity"};
    switch (type.id) {
      case TypeId::kText: return Parse(kText[random_() % std::size(kText)], type);
      case TypeId::kNumeric: return Parse(kNumeric[random_() % std::size(kNumeric)], type);
      // Long enough that updates of other columns are patches.
      case TypeId::kBytea:
        return Datum::Bytes(long_bytes_[random_() % 12 == 0 ? random_() % 4 : random_() % 2]);
      case TypeId::kFloat8: return Parse(kFloat[random_() % std::size(kFloat)], type);
      default: return Datum::Int(static_cast<int64_t>(random_() % 9) - 4);
    }
  }
  Values RandomRow() {
    Values row;
    for (size_t c = 0; c < types_.size(); ++c) {
      row.push_back(RandomValue(c));
      // Enough primary keys for the tables to grow.
      if (types_[c].id != TypeId::kNumeric && types_[c].id != TypeId::kText && c == 0)
        row[c] = Datum::Int(random_() % 40);
    }
    return row;
  }

  int Compare(Datum a, Datum b, size_t column, bool descending, bool nulls_first) const {
    if (a.is_null() || b.is_null()) {
      if (a.is_null() && b.is_null()) return 0;
      return a.is_null() == nulls_first ? -1 : 1;
    }
    const int order = CompareDatums(a, b, types_[column]);
    return descending ? -order : order;
  }
  size_t Ordinal(ColumnId id) const { return static_cast<size_t>(table_->OrdinalOf(id)); }

  bool SameKey(const IndexDescriptor& index, const Values& a, const Values& b) const {
    for (const catalog::IndexColumn& key : index.key) {
      const size_t c = Ordinal(key.column);
      if (a[c].is_null() && b[c].is_null()) {
        if (!index.nulls_not_distinct) return false;
        continue;
      }
      if (Compare(a[c], b[c], c, false, false) != 0) return false;
    }
    return true;
  }
  bool AnyDuplicate(const std::vector<Values>& rows) const {
    for (const IndexDescriptor& index : table_->indexes) {
      if (!index.unique) continue;
      for (size_t i = 0; i < rows.size(); ++i) {
        for (size_t k = 0; k < i; ++k) {
          if (SameKey(index, rows[i], rows[k])) return true;
        }
      }
    }
    return false;
  }
  // Order of an index: its key, then the primary key.
  bool Before(const IndexDescriptor& index, const Values& a, const Values& b) const {
    for (const IndexDescriptor* part : {&index, &table_->primary()}) {
      for (const catalog::IndexColumn& key : part->key) {
        const size_t c = Ordinal(key.column);
        const int order = Compare(a[c], b[c], c, key.direction == codec::Direction::kDescending,
                                  key.nulls == codec::NullPlacement::kFirst);
        if (order != 0) return order < 0;
      }
    }
    return false;
  }

  RowBatch Batch(const std::vector<Values>& rows) {
    RowBatch batch;
    batch.Reset(types_);
    for (const Values& row : rows) batch.AppendRow(row);
    return batch;
  }
  Row Text(const Values& row, const std::vector<ColumnId>& columns) const {
    Row out;
    for (ColumnId id : columns) out.push_back(TextOf(row[Ordinal(id)], types_[Ordinal(id)]));
    return out;
  }
  // The RowRef of a model's row, through the reader.
  std::string RefOf(Access* access, const Values& row) {
    Span span;
    for (const catalog::IndexColumn& key : table_->primary().key) {
      span.equal.push_back(row[Ordinal(key.column)]);
    }
    Found found = FindRows(access, table_, {span});
    EXPECT_EQ(found.refs.size(), 1u);
    if (found.refs.empty()) return "";
    EXPECT_EQ(RowsOf(found.rows)[0], Text(row, LivingIds(*table_)));
    return found.refs[0];
  }

  void TryInsert(Access* access) {
    std::vector<Values> added;
    for (size_t i = 0; i <= random_() % 6; ++i) added.push_back(RandomRow());
    std::vector<Values> after = rows_;
    after.insert(after.end(), added.begin(), added.end());
    RowBatch batch = Batch(added);
    const Status status = access->Insert(table_, &batch, ConflictPolicy(), nullptr);
    if (AnyDuplicate(after)) {
      EXPECT_EQ(status.sqlstate(), "23505") << status.ToString();
      return;
    }
    ASSERT_TRUE(status.ok()) << status.ToString();
    rows_ = std::move(after);
  }

  // What INSERT ... ON CONFLICT DO NOTHING keeps.
  void TryInsertSkipping(Access* access) {
    std::vector<Values> added;
    for (size_t i = 0; i <= random_() % 6; ++i) added.push_back(RandomRow());
    RowBatch batch = Batch(added);
    ConflictPolicy policy;
    policy.kind = ConflictPolicy::Kind::kReport;
    InsertOutcome outcome;
    const Status status = access->Insert(table_, &batch, policy, &outcome);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_EQ(outcome.inserted.size(), added.size());
    const size_t before = rows_.size();
    for (size_t i = 0; i < added.size(); ++i) {
      std::vector<Values> after = rows_;
      after.push_back(added[i]);
      const bool fits = !AnyDuplicate(after);
      ASSERT_EQ(outcome.inserted[i], fits) << i;
      if (fits) rows_ = std::move(after);
      if (fits || outcome.conflicting_ref[i].empty()) continue;
      bool known = false;
      for (size_t k = 0; k < before; ++k) {
        known |= RefOf(access, rows_[k]) == outcome.conflicting_ref[i];
      }
      EXPECT_TRUE(known);
    }
  }

  std::vector<size_t> RandomSubset() {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (random_() % 8 == 0) chosen.push_back(i);
    }
    return chosen;
  }

  void TryUpdate(Access* access) {
    const std::vector<size_t> chosen = RandomSubset();
    std::vector<Values> after = rows_, old_rows, new_rows;
    std::vector<std::string> refs;
    const bool swap = random_() % 4 == 0 && chosen.size() >= 2;
    for (size_t i = 0; i < chosen.size(); ++i) {
      Values changed = rows_[chosen[i]];
      if (swap) {
        changed = rows_[chosen[(i + 1) % chosen.size()]];  // each takes another's keys
      } else {
        const size_t c = random_() % types_.size();
        changed[c] = RandomRow()[c];
      }
      refs.push_back(RefOf(access, rows_[chosen[i]]));
      old_rows.push_back(rows_[chosen[i]]);
      new_rows.push_back(changed);
      after[chosen[i]] = changed;
    }
    const std::vector<std::string_view> views(refs.begin(), refs.end());
    const Status status = access->Update(table_, views, Batch(old_rows), Batch(new_rows));
    if (AnyDuplicate(after)) {
      EXPECT_EQ(status.sqlstate(), "23505") << status.ToString();
      return;
    }
    ASSERT_TRUE(status.ok()) << status.ToString();
    rows_ = std::move(after);
  }

  void TryDelete(Access* access) {
    const std::vector<size_t> chosen = RandomSubset();
    std::vector<Values> kept, gone;
    std::vector<std::string> refs;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (std::find(chosen.begin(), chosen.end(), i) == chosen.end()) {
        kept.push_back(rows_[i]);
      } else {
        refs.push_back(RefOf(access, rows_[i]));
        gone.push_back(rows_[i]);
      }
    }
    const std::vector<std::string_view> views(refs.begin(), refs.end());
    Must(access->Delete(table_, views, Batch(gone)));
    rows_ = std::move(kept);
  }

  Span RandomSpan(const IndexDescriptor& index) {
    Span span;
    const Values pattern =
        !rows_.empty() && random_() % 3 != 0 ? rows_[random_() % rows_.size()] : RandomRow();
    const size_t equal = random_() % (index.key.size() + 1);
    for (size_t i = 0; i < equal; ++i) {
      span.equal.push_back(pattern[Ordinal(index.key[i].column)]);
    }
    if (equal == index.key.size()) return span;
    const size_t next = Ordinal(index.key[equal].column);
    span.nulls = static_cast<Span::Nulls>(random_() % 3);
    for (Bound* bound : {&span.lower, &span.upper}) {
      bound->value = RandomValue(next);
      if (bound->value.is_null()) continue;
      bound->kind = static_cast<Bound::Kind>(random_() % 3);
    }
    return span;
  }

  bool InSpan(const IndexDescriptor& index, const Span& span, const Values& row) const {
    for (size_t i = 0; i < span.equal.size(); ++i) {
      const size_t c = Ordinal(index.key[i].column);
      if (Compare(row[c], span.equal[i], c, false, false) != 0) return false;
    }
    if (span.equal.size() == index.key.size()) return true;
    const size_t c = Ordinal(index.key[span.equal.size()].column);
    const bool lower = span.lower.kind != Bound::Kind::kUnbounded;
    const bool upper = span.upper.kind != Bound::Kind::kUnbounded;
    if (row[c].is_null()) return !lower && !upper && span.nulls != Span::Nulls::kExclude;
    if (!lower && !upper) return span.nulls != Span::Nulls::kOnly;
    if (lower) {
      const int order = CompareDatums(row[c], span.lower.value, types_[c]);
      if (order < 0 || (order == 0 && span.lower.kind == Bound::Kind::kExclusive)) return false;
    }
    if (upper) {
      const int order = CompareDatums(row[c], span.upper.value, types_[c]);
      if (order > 0 || (order == 0 && span.upper.kind == Bound::Kind::kExclusive)) return false;
    }
    return true;
  }

  void CompareScan(Access* access) {
    const IndexDescriptor& index = table_->indexes[random_() % table_->indexes.size()];
    ScanSpec spec = SpecOf(table_, index, {RandomSpan(index)});
    spec.reverse = random_() % 2 == 0;
    spec.limit_hint = random_() % 3;
    std::shuffle(spec.columns.begin(), spec.columns.end(), random_);
    spec.columns.resize(random_() % (spec.columns.size() + 1));
    std::vector<Values> expected;
    for (const Values& row : rows_) {
      if (InSpan(index, spec.spans[0], row)) expected.push_back(row);
    }
    std::sort(expected.begin(), expected.end(),
              [&](const Values& a, const Values& b) { return Before(index, a, b); });
    if (spec.reverse) std::reverse(expected.begin(), expected.end());
    if (random_() % 2 == 0) {
      for (size_t i = 0; i <= random_() % 2; ++i) {
        const size_t c = random_() % types_.size();
        ColumnFilter filter;
        filter.column = table_->columns[c].id;
        filter.filter.op = static_cast<FilterOp>(random_() % 8);
        filter.filter.value = RandomValue(c);
        if (filter.filter.value.is_null()) filter.filter.op = FilterOp::kIsNull;
        spec.filters.push_back(filter);
        std::erase_if(expected, [&](const Values& row) {
          return !PassesFilter(row[c], types_[c], filter.filter);
        });
      }
    }
    std::vector<Row> texts;
    for (const Values& row : expected) texts.push_back(Text(row, spec.columns));
    EXPECT_EQ(ScanRows(access, spec), texts) << index.name << " reverse " << spec.reverse;
  }

  void CompareLookup(Access* access) {
    const IndexDescriptor& index = table_->indexes[random_() % table_->indexes.size()];
    const size_t columns = 1 + random_() % index.key.size();
    std::vector<Type> key_types;
    for (size_t i = 0; i < columns; ++i) key_types.push_back(types_[Ordinal(index.key[i].column)]);
    RowBatch keys;
    keys.Reset(key_types);
    std::vector<Values> patterns;
    for (int i = 0; i < 5; ++i) {
      patterns.push_back(rows_.empty() || random_() % 3 == 0 ? RandomRow()
                                                             : rows_[random_() % rows_.size()]);
      Values key;
      for (size_t k = 0; k < columns; ++k) {
        key.push_back(patterns.back()[Ordinal(index.key[k].column)]);
      }
      keys.AppendRow(key);
    }
    ScanSpec spec = SpecOf(table_, index);
    if (index.primary && columns == index.key.size() && random_() % 4 == 0) spec.lock.emplace();
    std::vector<std::pair<uint32_t, Row>> expected, got;
    for (uint32_t i = 0; i < patterns.size(); ++i) {
      for (const Values& row : rows_) {
        bool match = true;
        for (size_t k = 0; k < columns; ++k) {
          const size_t c = Ordinal(index.key[k].column);
          match &=
              !patterns[i][c].is_null() && Compare(patterns[i][c], row[c], c, false, false) == 0;
        }
        if (match) expected.emplace_back(i, Text(row, spec.columns));
      }
    }
    RowBatch batch;
    std::vector<uint32_t> key_row;
    Must(access->Lookup(spec, keys, &batch, &key_row));
    const std::vector<Row> rows = RowsOf(batch);
    ASSERT_EQ(rows.size(), key_row.size());
    for (size_t i = 0; i < rows.size(); ++i) got.emplace_back(key_row[i], rows[i]);
    std::sort(expected.begin(), expected.end());
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, expected) << index.name;
  }

  // Seals some or all of the table, into pages of a few rows.
  void Seal() {
    Sealer sealer(store_.engine(), store_.tables());
    SealOptions options;
    options.max_rows = 1 + random_() % 8;
    options.page_bytes = 200 + random_() % 400;
    options.repack = random_() % 4 == 0;
    if (random_() % 3 == 0) {
      EXPECT_TRUE(Must(sealer.SealAll(table_, options, nullptr)).done);
      return;
    }
    std::string position;
    for (size_t steps = random_() % 4; steps > 0; --steps) {
      const SealStep step = Must(sealer.Step(table_, options, &position));
      EXPECT_FALSE(step.conflict);
      if (step.done) break;
    }
  }

  Store store_;
  Shape shape_;
  Storage storage_ = Storage::kRows;
  TablePtr table_;
  std::vector<Type> types_;
  Arena arena_;
  // --gtest_random_seed=N gives other work.
  std::mt19937 random_{20240229u + static_cast<unsigned>(testing::GTEST_FLAG(random_seed))};
  const std::string long_bytes_[4] = {std::string(300, 'x'), std::string(700, 'y'),
                                      std::string(40000, 'z'), std::string(150000, 'l')};
  std::vector<Values> rows_;
  size_t most_ = 0;  // rows that there were at once
};

TEST_P(Model, RandomWorkGivesWhatTheObviousAlgorithmGives) {
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    std::unique_ptr<kv::Transaction> transaction = store_.engine()->Begin();
    Access access(transaction.get(), nullptr, store_.tables());
    for (int step = 0; step < 4 && !HasFailure(); ++step) {
      switch (random_() % 5) {
        case 0:
        case 1: TryInsert(&access); break;
        case 2: TryInsertSkipping(&access); break;
        case 3: TryUpdate(&access); break;
        case 4: TryDelete(&access); break;
      }
      for (int i = 0; i < 6; ++i) CompareScan(&access);
      for (int i = 0; i < 2; ++i) CompareLookup(&access);
    }
    uint64_t counted = 0;
    EXPECT_EQ(Check(table_, transaction.get(), &counted), std::vector<std::string>());
    EXPECT_EQ(counted, rows_.size());
    if (storage_ == Storage::kSealed && random_() % 2 == 0) Seal();  // beside the transaction
    Must(transaction->Commit());
    if (storage_ == Storage::kSealed) Seal();
    most_ = std::max(most_, rows_.size());
  }
  EXPECT_GT(most_, 5u);
}

std::string NameOf(const testing::TestParamInfo<std::tuple<size_t, Storage>>& info) {
  static constexpr const char* kNames[] = {"Rows",  "Delta",  "Sealed", "Groups",
                                           "Cells", "Datums", "Shards"};
  return std::string(Shapes()[std::get<0>(info.param)].name) +
         kNames[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(Shapes, Model,
                         testing::Combine(testing::Range<size_t>(0, 6),
                                          testing::Values(Storage::kRows, Storage::kDelta,
                                                          Storage::kSealed, Storage::kGroups,
                                                          Storage::kCells, Storage::kDatums,
                                                          Storage::kShards)),
                         NameOf);

}  // namespace
}  // namespace cellar::table
