// A store in memory and tables in it, for the tests of this layer.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cellar/catalog/catalog.h"
#include "cellar/kv/engine.h"
#include "cellar/table/access.h"
#include "cellar/table/check.h"
#include "cellar/types/text_io.h"

namespace cellar::table {

// A value as text; nullopt is NULL.
using Cell = std::optional<std::string>;
using Row = std::vector<Cell>;

// Ends the test program on errors: tests read better without them.
template <typename T>
T Must(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return std::move(result).value();
}
inline void Must(const Status& status) { ASSERT_TRUE(status.ok()) << status.ToString(); }

inline catalog::ColumnDescriptor MakeColumn(uint32_t id, std::string name, TypeId type,
                                            bool not_null = false) {
  catalog::ColumnDescriptor column;
  column.id.value = id;
  column.name = std::move(name);
  column.type = MakeType(type);
  column.not_null = not_null;
  return column;
}

struct KeyPart {
  uint32_t column;
  bool descending = false;
  bool nulls_first = false;
};

inline catalog::IndexDescriptor MakeIndex(std::string name, std::vector<KeyPart> key,
                                          bool unique = false, std::vector<uint32_t> stored = {}) {
  catalog::IndexDescriptor index;
  index.name = std::move(name);
  index.unique = unique;
  for (const KeyPart& part : key) {
    catalog::IndexColumn column;
    column.column.value = part.column;
    if (part.descending) column.direction = codec::Direction::kDescending;
    if (part.nulls_first) column.nulls = codec::NullPlacement::kFirst;
    index.key.push_back(column);
  }
  for (uint32_t id : stored) index.stored.push_back(ColumnId{id});
  return index;
}

inline catalog::IndexDescriptor MakePrimary(std::string name, std::vector<KeyPart> key) {
  catalog::IndexDescriptor index = MakeIndex(std::move(name), std::move(key), true);
  index.primary = true;
  return index;
}

// A fresh, empty store: in memory in the layer's own test program, on RocksDB in tests/table.
std::unique_ptr<kv::Engine> MakeTestEngine();

class Store {
 public:
  explicit Store(std::unique_ptr<kv::Engine> engine = MakeTestEngine())
      : engine_(std::move(engine)), tables_(std::make_unique<TableStore>(engine_.get())) {
    catalog_ = Must(catalog::Catalog::Open(engine_.get()));
  }
  kv::Engine* engine() { return engine_.get(); }
  catalog::Catalog* catalog() { return catalog_.get(); }
  TableStore* tables() { return tables_.get(); }

  TablePtr Create(TableDescriptor table) {
    table.parent = catalog_->Current()->FindNamespace(catalog::kRootNamespace, "cellar")->id;
    return Edit([&](catalog::CatalogEditor& editor) { return editor.CreateTable(table); });
  }
  TablePtr Change(TableDescriptor table) {
    return Edit([&](catalog::CatalogEditor& editor) { return editor.UpdateTable(table); });
  }

 private:
  template <typename F>
  TablePtr Edit(F&& edit) {
    std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    catalog::CatalogEditor editor(catalog_.get(), transaction.get());
    TablePtr made = Must(edit(editor));
    catalog_->Publish(editor, Must(transaction->Commit()));
    return catalog_->Current()->GetTable(made->id);
  }

  std::unique_ptr<kv::Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<TableStore> tables_;
};

inline std::vector<Type> LivingTypes(const TableDescriptor& table) {
  std::vector<Type> types;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (!column.dropped) types.push_back(column.type);
  }
  return types;
}

inline std::vector<ColumnId> LivingIds(const TableDescriptor& table) {
  std::vector<ColumnId> ids;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    if (!column.dropped) ids.push_back(column.id);
  }
  return ids;
}

// Rows of text as a batch of these types.
inline RowBatch BatchOf(const std::vector<Type>& types, const std::vector<Row>& rows) {
  RowBatch batch;
  batch.Reset(types);
  batch.Resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t c = 0; c < types.size(); ++c) {
      Datum datum;
      if (rows[i][c].has_value()) {
        datum = Must(ParseDatum(*rows[i][c], types[c], FormatSettings(), batch.arena()));
        datum = CopyDatum(datum, types[c], batch.arena());
      }
      batch.column(c).Set(i, datum);
    }
  }
  return batch;
}

inline Cell TextOf(Datum datum, Type type) {
  if (datum.is_null()) return std::nullopt;
  std::string text;
  AppendDatumText(datum, type, FormatSettings(), &text);
  return text;
}

inline std::vector<Row> RowsOf(const RowBatch& batch) {
  std::vector<Row> rows(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    for (size_t c = 0; c < batch.num_columns(); ++c) {
      rows[i].push_back(TextOf(batch.column(c).Get(i), batch.column(c).type()));
    }
  }
  return rows;
}

inline std::vector<Row> ReadAll(Reader* reader) {
  std::vector<Row> rows;
  RowBatch batch;
  while (Must(reader->Next(&batch))) {
    for (Row& row : RowsOf(batch)) rows.push_back(std::move(row));
  }
  return rows;
}

inline ScanSpec SpecOf(const TablePtr& table, const IndexDescriptor& index,
                       std::vector<Span> spans = {Span{}}) {
  ScanSpec spec;
  spec.table = table;
  spec.index = index.id;
  spec.spans = std::move(spans);
  spec.columns = LivingIds(*table);
  return spec;
}

inline std::vector<Row> ScanRows(Access* access, const ScanSpec& spec) {
  std::unique_ptr<Reader> reader = Must(access->Scan(spec));
  return ReadAll(reader.get());
}

inline Status InsertAll(Access* access, const TablePtr& table, const std::vector<Row>& rows) {
  RowBatch batch = BatchOf(LivingTypes(*table), rows);
  return access->Insert(table, &batch, ConflictPolicy(), nullptr);
}

// Rows with their RowRefs, found by scanning the table.
struct Found {
  RowBatch rows;
  std::vector<std::string> refs;
  std::vector<std::string_view> views() const { return {refs.begin(), refs.end()}; }
};
inline Found FindRows(Access* access, const TablePtr& table, std::vector<Span> spans) {
  ScanSpec spec = SpecOf(table, table->primary(), std::move(spans));
  spec.with_row_ref = true;
  std::unique_ptr<Reader> reader = Must(access->Scan(spec));
  Found found;
  const std::vector<Type> types = LivingTypes(*table);
  found.rows.Reset(types);
  RowBatch batch;
  while (Must(reader->Next(&batch))) {
    for (size_t i = 0; i < batch.size(); ++i) {
      std::vector<Datum> row;
      for (size_t c = 0; c < types.size(); ++c) row.push_back(batch.column(c).Get(i));
      found.rows.AppendRow(row);
      found.refs.emplace_back(batch.column(types.size()).bytes()[i]);
    }
  }
  return found;
}

inline std::vector<std::string> Check(const TablePtr& table, kv::Transaction* transaction,
                                      uint64_t* rows = nullptr) {
  std::vector<CheckFinding> findings;
  uint64_t count = 0;
  const CheckOptions full{CheckMode::kFull};
  Must(CheckTable(table, transaction, full, rows != nullptr ? rows : &count, &findings));
  // The other modes agree on whether there is one.
  for (const CheckMode mode : {CheckMode::kFast, CheckMode::kAuto}) {
    std::vector<CheckFinding> others;
    uint64_t other_rows = 0;
    Must(CheckTable(table, transaction, CheckOptions{mode}, &other_rows, &others));
    EXPECT_EQ(others.empty(), findings.empty()) << static_cast<int>(mode);
    EXPECT_EQ(other_rows, rows != nullptr ? *rows : count);
  }
  std::vector<std::string> out;
  for (const CheckFinding& finding : findings) out.push_back(finding.text);
  return out;
}

inline Span PointOf(std::initializer_list<Datum> values) {
  Span span;
  span.equal = values;
  return span;
}

}  // namespace cellar::table
