// Writing rows of system tables by column name. Private to this layer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cellar/session/session_internal.h"
#include "cellar/types/datetime.h"

namespace cellar::session {

// Fills one row at a time; columns not set are NULL.
class SystemRow {
 public:
  SystemRow(const sql::VirtualTable& table, RowBatch* rows)
      : table_(table), rows_(rows), values_(table.columns.size()) {}

  SystemRow& Int(std::string_view column, int64_t value) { return Put(column, Datum::Int(value)); }
  SystemRow& Bool(std::string_view column, bool value) { return Put(column, Datum::Bool(value)); }
  SystemRow& Double(std::string_view column, double value) {
    return Put(column, Datum::Double(value));
  }
  SystemRow& Char(std::string_view column, char value) {
    return Put(column, Datum::Int(static_cast<unsigned char>(value)));
  }
  SystemRow& Text(std::string_view column, std::string_view value) {
    return Put(column, Datum::Bytes(rows_->arena()->Copy(value)));
  }
  // NULL when empty.
  SystemRow& TextOrNull(std::string_view column, std::string_view value) {
    return value.empty() ? *this : Text(column, value);
  }
  SystemRow& Array(std::string_view column, const std::vector<Value>& elements,
                   int lower_bound = 1);
  SystemRow& IntArray(std::string_view column, const std::vector<int64_t>& elements,
                      int lower_bound = 1);
  SystemRow& Span(std::string_view column, Interval value) {
    return Put(column, MakeDatum(value, rows_->arena()));
  }
  void Emit() {
    rows_->AppendRow(values_);
    values_.assign(values_.size(), Datum());
  }

 private:
  SystemRow& Put(std::string_view column, Datum value);

  const sql::VirtualTable& table_;
  RowBatch* rows_;
  std::vector<Datum> values_;
};

// information_schema.cc. False: no such table here.
bool GenerateInformationSchema(Session::Impl& session, const sql::VirtualTable& table,
                               RowBatch* rows);

// ddl_bin.cc: pg_catalog.cellar_dropped.
void GenerateDropped(Session::Impl& session, SystemRow* rows);
// statistics.cc: pg_stats.
void StatisticsRows(Session::Impl* session, SystemRow* row);

// The role that owns every schema public.
inline constexpr uint32_t kDatabaseOwnerOid = 6171;

// The oid of a virtual schema.
inline constexpr uint32_t kPgCatalogOid = 11, kInformationSchemaOid = 13000;

// The visible columns of a relation with their attribute numbers.
struct Attribute {
  int16_t number;
  const catalog::ColumnDescriptor* column;
};
std::vector<Attribute> AttributesOf(const catalog::TableDescriptor& table);
// The attribute numbers of those that a CHECK names.
std::vector<int16_t> CheckedColumns(const catalog::TableDescriptor& table,
                                    const catalog::CheckConstraint& check);
int16_t AttributeNumber(const catalog::TableDescriptor& table, catalog::ColumnId column);

// catalog_functions.cc
// A column default with its sequence named as the search path asks.
std::string DefaultAsSeen(Session::Impl& session, const std::string& sql);
std::string IndexDefinition(Session::Impl& session, const catalog::TableDescriptor& table,
                            const catalog::IndexDescriptor& index, int column, bool pretty);
std::string KeyConstraintDefinition(const catalog::TableDescriptor& table,
                                    const catalog::IndexDescriptor& index);
std::string ForeignKeyDefinition(Session::Impl& session, const catalog::TableDescriptor& table,
                                 const catalog::ForeignKey& key);
uint32_t ConstraintOid(const catalog::IndexDescriptor& index);

}  // namespace cellar::session
