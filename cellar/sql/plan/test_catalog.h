// A catalog for planner tests: tables from DDL text on a memory engine, a few virtual tables, plans
// as text.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cellar/catalog/catalog.h"
#include "cellar/kv/memory_engine.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/parser.h"
#include "cellar/sql/plan/planner.h"

namespace cellar::sql {

class TestVirtualCatalog : public VirtualCatalog {
 public:
  // "oid oid, relname name": columns of pg_catalog.`name`.
  void Add(const std::string& name, const std::string& columns) {
    VirtualTable table;
    table.schema = "pg_catalog";
    table.name = name;
    table.oid = 1200 + static_cast<uint32_t>(tables_.size());
    size_t start = 0;
    while (start < columns.size()) {
      size_t end = std::min(columns.find(", ", start), columns.size());
      std::string one = columns.substr(start, end - start);
      size_t space = one.find(' ');
      Result<ast::TypeName> type = ParseTypeName(one.substr(space + 1));
      Result<Type> resolved = ResolveTypeName(*type, nullptr);
      OutputColumn column;
      column.name = one.substr(0, space);
      column.type = resolved.ok() ? *resolved : MakeType(TypeId::kText);
      table.columns.push_back(column);
      start = end + 2;
    }
    tables_["pg_catalog." + name] = table;
  }
  void AddView(const std::string& schema, const std::string& name, const std::string& sql) {
    VirtualTable table;
    table.schema = schema;
    table.name = name;
    table.view_sql = sql;
    tables_[schema + "." + name] = table;
  }
  const VirtualTable* Find(std::string_view schema, std::string_view table) const override {
    auto found = tables_.find(std::string(schema) + "." + std::string(table));
    return found == tables_.end() ? nullptr : &found->second;
  }
  bool HasSchema(std::string_view schema) const override {
    return schema == "pg_catalog" || schema == "information_schema";
  }

 private:
  std::map<std::string, VirtualTable> tables_;
};

class PlannerTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = kv::MakeMemoryEngine();
    Result<std::unique_ptr<catalog::Catalog>> opened = catalog::Catalog::Open(engine_.get());
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    catalog_ = std::move(opened).value();
    scope_.database_name = "cellar";
    scope_.database = catalog_->Current()->FindNamespace(catalog::kRootNamespace, "cellar")->id;
    scope_.search_path = {"public"};
    fold_.set_arena(&arena_);
  }

  // CREATE TABLE and CREATE INDEX, without what tests do not need.
  void Ddl(const std::string& text) {
    Result<std::vector<Statement>> parsed = Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
    for (const Statement& statement : *parsed) {
      if (statement.ast->kind == ast::NodeKind::kCreateTable) {
        CreateTable(statement.ast->As<ast::CreateTableStmt>());
      } else if (statement.ast->kind == ast::NodeKind::kCreateIndex) {
        CreateIndex(statement.ast->As<ast::CreateIndexStmt>());
      } else if (statement.ast->kind == ast::NodeKind::kCreateView) {
        FAIL() << "use View()";
      }
    }
  }
  void View(const std::string& name, const std::string& sql) {
    catalog::TableDescriptor table;
    table.parent = scope_.database;
    table.name = name;
    table.kind = catalog::RelationKind::kView;
    table.view_sql = sql;
    Edit([&](catalog::CatalogEditor& editor) { return editor.CreateTable(table).status(); });
  }
  void Rows(const std::string& table, double rows) { rows_[table] = rows; }
  // Statistics of an int column: `distinct` values spread evenly from `low` to `high`, beside
  // `common`, which is `share` of the rows.
  void Spread(const std::string& table, const std::string& column, double distinct, int64_t low,
              int64_t high, int64_t common, double share) {
    catalog::TablePtr found = FindRelation(*catalog_->Current(), scope_, "", table);
    ASSERT_NE(found, nullptr);
    auto next = std::make_shared<catalog::TableStatistics>();
    if (statistics_[table] != nullptr) *next = *statistics_[table];
    for (const catalog::ColumnDescriptor& one : found->columns) {
      if (one.name != column) continue;
      catalog::ColumnStatistics& added = next->columns.emplace_back();
      added.column = one.id;
      added.type = one.type;
      added.distinct = distinct;
      if (share > 0) {
        added.common.emplace_back(one.type, Datum::Int(common));
        added.frequencies.push_back(share);
      }
      for (const int64_t bound : {low, high})
        added.bounds.emplace_back(one.type, Datum::Int(bound));
    }
    statistics_[table] = std::move(next);
  }
  double EstimatedRows(const std::string& sql) {
    Result<std::shared_ptr<const Plan>> plan = TryPlan(sql);
    EXPECT_TRUE(plan.ok()) << sql << ": " << plan.status().ToString();
    return plan.ok() ? (*plan)->root->rows : -1;
  }

  Result<std::shared_ptr<const Plan>> TryPlan(const std::string& sql,
                                              std::vector<Type> types = {}) {
    Result<Statement> parsed = ParseOne(sql);
    if (!parsed.ok()) return std::move(parsed).status();
    PlannerContext context = Context();
    context.parameter_types = types;
    return PlanStatement(*parsed->ast, context);
  }
  PlannerContext Context() {
    PlannerContext context;
    context.catalog = catalog_->Current();
    context.scope = &scope_;
    context.virtual_catalog = &virtual_;
    context.fold = &fold_;
    context.estimate_rows = [this](const catalog::TableDescriptor& table) {
      auto found = rows_.find(table.name);
      return found == rows_.end() ? 1000.0 : found->second;
    };
    context.statistics = [this](const catalog::TableDescriptor& table) {
      auto found = statistics_.find(table.name);
      return found == statistics_.end() ? nullptr : found->second;
    };
    context.enable_hash_join = enable_hash_join_;
    context.enable_index_scan = enable_index_scan_;
    return context;
  }
  // EXPLAIN (COSTS OFF) lines joined by newlines, or the error: "42703: column ..".
  std::string Explain(const std::string& sql, bool verbose = false) {
    Result<std::shared_ptr<const Plan>> plan = TryPlan(sql);
    if (!plan.ok()) return Error(plan.status());
    ExplainOptions options;
    options.costs = false;
    options.verbose = verbose;
    std::string out;
    for (const std::string& line : ExplainPlan(**plan, options, {})) {
      if (!out.empty()) out += "\n";
      out += line;
    }
    return out;
  }
  static std::string Error(const Status& status) {
    return std::string(status.sqlstate()) + ": " + std::string(status.message());
  }
  // "name type, name type" of the output, or the error.
  std::string Columns(const std::string& sql) {
    Result<std::shared_ptr<const Plan>> plan = TryPlan(sql);
    if (!plan.ok()) return Error(plan.status());
    std::string out;
    for (const OutputColumn& column : (*plan)->output) {
      if (!out.empty()) out += ", ";
      out += column.name + " " + FormatType(column.type);
    }
    return out;
  }
  std::string ErrorOf(const std::string& sql) {
    Result<std::shared_ptr<const Plan>> plan = TryPlan(sql);
    return plan.ok() ? "ok" : Error(plan.status());
  }
  std::string Parameters(const std::string& sql) {
    Result<std::shared_ptr<const Plan>> plan = TryPlan(sql);
    if (!plan.ok()) return Error(plan.status());
    std::string out;
    for (const Type& type : (*plan)->parameter_types) {
      if (!out.empty()) out += ", ";
      out += FormatType(type);
    }
    return out;
  }

  template <typename F>
  void Edit(F&& edit) {
    std::unique_ptr<kv::Transaction> transaction = engine_->Begin();
    catalog::CatalogEditor editor(catalog_.get(), transaction.get());
    Status status = edit(editor);
    ASSERT_TRUE(status.ok()) << status.ToString();
    Result<uint64_t> version = transaction->Commit();
    ASSERT_TRUE(version.ok()) << version.status().ToString();
    catalog_->Publish(editor, *version);
  }

  std::unique_ptr<kv::Engine> engine_;
  std::unique_ptr<catalog::Catalog> catalog_;
  NameScope scope_;
  TestVirtualCatalog virtual_;
  Arena arena_;
  EvalContext fold_;
  std::map<std::string, double> rows_;
  std::map<std::string, std::shared_ptr<const catalog::TableStatistics>> statistics_;
  bool enable_hash_join_ = true, enable_index_scan_ = true;

 private:
  static catalog::ColumnId IdOf(const catalog::TableDescriptor& table, const std::string& name) {
    const catalog::ColumnDescriptor* column = table.FindColumn(name);
    EXPECT_NE(column, nullptr) << name;
    return column != nullptr ? column->id : catalog::ColumnId{};
  }
  static catalog::IndexDescriptor MakeIndex(const catalog::TableDescriptor& table, std::string name,
                                            const std::vector<std::string>& columns, bool unique) {
    catalog::IndexDescriptor index;
    index.name = std::move(name);
    index.unique = unique;
    for (const std::string& column : columns) {
      catalog::IndexColumn key;
      key.column = IdOf(table, column);
      index.key.push_back(key);
    }
    return index;
  }
  void CreateTable(const ast::CreateTableStmt& create) {
    catalog::TableDescriptor table;
    table.parent = scope_.database;
    table.name = create.table.name;
    std::vector<std::string> primary;
    std::vector<std::vector<std::string>> uniques;
    auto constraint = [&](const ast::Constraint& c, const std::string& column) {
      std::vector<std::string> columns = c.columns;
      if (columns.empty()) columns.push_back(column);
      switch (c.kind) {
        case ast::ConstraintKind::kPrimaryKey: primary = columns; break;
        case ast::ConstraintKind::kUnique: uniques.push_back(columns); break;
        case ast::ConstraintKind::kCheck: {
          catalog::CheckConstraint check;
          check.name = c.name.empty() ? table.name + "_check" : c.name;
          check.expression = DeparseExpr(*c.expr);
          table.checks.push_back(check);
          break;
        }
        case ast::ConstraintKind::kForeignKey: {
          catalog::TablePtr other =
              catalog_->Current()->FindTable(scope_.database, c.ref_table.name);
          catalog::ForeignKey key;
          key.name = table.name + "_" + columns[0] + "_fkey";
          for (const std::string& name : columns) key.columns.push_back(IdOf(table, name));
          key.referenced_table = other->id;
          for (const catalog::IndexColumn& part : other->primary().key) {
            key.referenced_columns.push_back(part.column);
          }
          table.foreign_keys.push_back(key);
          break;
        }
        default: break;
      }
    };
    for (const ast::ColumnDef& def : create.columns) {
      catalog::ColumnDescriptor column;
      column.id.value = table.next_column_id++;
      column.name = def.name;
      int serial = 0;
      Result<Type> type = ResolveTypeName(def.type, &serial);
      ASSERT_TRUE(type.ok()) << type.status().ToString();
      column.type = *type;
      for (const ast::Constraint& c : def.constraints) {
        if (c.kind == ast::ConstraintKind::kNotNull || c.kind == ast::ConstraintKind::kPrimaryKey) {
          column.not_null = true;
        }
        if (c.kind == ast::ConstraintKind::kDefault) column.default_sql = DeparseExpr(*c.expr);
        if (c.kind == ast::ConstraintKind::kGenerated) column.generated_sql = DeparseExpr(*c.expr);
        if (c.kind == ast::ConstraintKind::kIdentity) {
          column.identity =
              c.generated_always ? catalog::Identity::kAlways : catalog::Identity::kByDefault;
        }
      }
      table.columns.push_back(column);
    }
    for (const ast::ColumnDef& def : create.columns) {
      for (const ast::Constraint& c : def.constraints) constraint(c, def.name);
    }
    for (const ast::Constraint& c : create.constraints) constraint(c, "");
    if (primary.empty()) {
      catalog::ColumnDescriptor row_id;
      row_id.id.value = table.next_column_id++;
      row_id.name = "rowid";
      row_id.type = MakeType(TypeId::kInt8);
      row_id.hidden = row_id.not_null = true;
      table.columns.push_back(row_id);
      primary.push_back("rowid");
    }
    for (const std::string& name : primary) {
      for (catalog::ColumnDescriptor& column : table.columns) {
        if (column.name == name) column.not_null = true;
      }
    }
    table.indexes.push_back(MakeIndex(table, table.name + "_pkey", primary, true));
    table.indexes[0].primary = table.indexes[0].constraint = true;
    for (const auto& columns : uniques) {
      table.indexes.push_back(
          MakeIndex(table, table.name + "_" + columns[0] + "_key", columns, true));
      table.indexes.back().constraint = true;
    }
    Edit([&](catalog::CatalogEditor& editor) { return editor.CreateTable(table).status(); });
  }
  void CreateIndex(const ast::CreateIndexStmt& create) {
    catalog::TablePtr old = catalog_->Current()->FindTable(scope_.database, create.table.name);
    ASSERT_NE(old, nullptr);
    catalog::TableDescriptor table = *old;
    catalog::IndexDescriptor index;
    index.name = create.name;
    index.unique = create.unique;
    for (const ast::IndexElement& element : create.elements) {
      catalog::IndexColumn key;
      key.column = IdOf(table, element.column);
      bool descending = element.direction == ast::SortDirection::kDesc;
      if (descending) key.direction = codec::Direction::kDescending;
      bool first = element.nulls == ast::SortNulls::kDefault
                       ? descending
                       : element.nulls == ast::SortNulls::kFirst;
      key.nulls = first ? codec::NullPlacement::kFirst : codec::NullPlacement::kLast;
      index.key.push_back(key);
    }
    for (const ast::IndexElement& element : create.including) {
      index.stored.push_back(IdOf(table, element.column));
    }
    table.indexes.push_back(index);
    Edit([&](catalog::CatalogEditor& editor) { return editor.UpdateTable(table).status(); });
  }
};

}  // namespace cellar::sql
