// Definitions of pg_catalog and information_schema as virtual tables.
#include <unordered_map>

#include "cellar/session/session_internal.h"
#include "cellar/session/system_tables.h"

namespace cellar::session {

struct SystemCatalog::Impl {
  std::vector<std::unique_ptr<sql::VirtualTable>> tables;
  std::unordered_map<std::string, const sql::VirtualTable*> by_name;  // "schema.table"
};

SystemCatalog::SystemCatalog() : impl_(std::make_unique<Impl>()) {
  for (size_t i = 0; i < kSystemTableCount; ++i) {
    const SystemTable& from = kSystemTables[i];
    auto table = std::make_unique<sql::VirtualTable>();
    table->schema = from.schema;
    table->name = from.name;
    table->oid = from.oid;
    std::string_view columns = from.columns;
    while (!columns.empty()) {
      const size_t end = std::min(columns.find(' '), columns.size());
      const std::string_view item = columns.substr(0, end);
      columns.remove_prefix(std::min(end + 1, columns.size()));
      const size_t colon = item.find(':');
      std::string_view type_name = item.substr(colon + 1);
      const bool array = type_name[0] == '_';
      if (array) type_name.remove_prefix(1);
      Type type = type_name == "char" ? MakeType(TypeId::kChar) : *TypeFromName(type_name);
      type.array = array;
      type.modifier = -1;
      table->columns.push_back({std::string(item.substr(0, colon)), type, from.oid,
                                static_cast<int16_t>(table->columns.size() + 1)});
    }
    impl_->by_name[table->schema + "." + table->name] = table.get();
    impl_->tables.push_back(std::move(table));
  }
}

SystemCatalog::~SystemCatalog() = default;

const sql::VirtualTable* SystemCatalog::Find(std::string_view schema,
                                             std::string_view table) const {
  auto at = impl_->by_name.find(std::string(schema) + "." + std::string(table));
  return at == impl_->by_name.end() ? nullptr : at->second;
}

bool SystemCatalog::HasSchema(std::string_view schema) const {
  return schema == "pg_catalog" || schema == "information_schema";
}

std::vector<const sql::VirtualTable*> SystemCatalog::All() const {
  std::vector<const sql::VirtualTable*> all;
  for (const auto& table : impl_->tables) all.push_back(table.get());
  return all;
}

}  // namespace cellar::session
