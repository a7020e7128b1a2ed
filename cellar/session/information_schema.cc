// Rows of information_schema (SQL standard; PostgreSQL manual, chapter 37).
#include <algorithm>
#include <set>

#include "cellar/session/system_rows.h"
#include "cellar/session/system_tables.h"
#include "cellar/session/view_texts.h"

namespace cellar::session {
namespace {

constexpr int64_t kMaxTextBytes = int64_t{1} << 30;

class InformationSchema {
 public:
  InformationSchema(Session::Impl& session, const sql::VirtualTable& table, RowBatch* rows)
      : s_(session), table_(table), row_(table, rows), catalog_(session.CurrentCatalog()) {}

  bool Run() {
    const std::string& name = table_.name;
    if (name == "tables") return Tables(), true;
    if (name == "columns") return Columns(), true;
    if (name == "schemata") return Schemata(), true;
    if (name == "views") return Views(), true;
    if (name == "sequences") return Sequences(), true;
    if (name == "table_constraints") return TableConstraints(), true;
    if (name == "key_column_usage") return KeyColumnUsage(), true;
    if (name == "constraint_column_usage") return ConstraintColumnUsage(), true;
    if (name == "constraint_table_usage") return ConstraintTableUsage(), true;
    if (name == "referential_constraints") return ReferentialConstraints(), true;
    if (name == "check_constraints") return CheckConstraints(), true;
    if (name == "view_table_usage" || name == "view_column_usage") return ViewUsage(), true;
    if (name == "column_udt_usage") return ColumnTypes(), true;
    if (name == "element_types") return ElementTypes(), true;
    if (name == "information_schema_catalog_name") {
      row_.Text("catalog_name", s_.database_name).Emit();
      return true;
    }
    if (name == "character_sets") {
      row_.Text("character_set_name", "UTF8")
          .Text("character_repertoire", "UCS")
          .Text("form_of_use", "UTF8")
          .Text("default_collate_catalog", s_.database_name)
          .Text("default_collate_schema", "pg_catalog")
          .Text("default_collate_name", "C.UTF-8")
          .Emit();
      return true;
    }
    return false;
  }

 private:
  struct Located {
    catalog::TablePtr table;
    std::string schema;
  };
  std::vector<Located> Relations() {
    std::vector<Located> relations;
    auto add = [&](const catalog::TablePtr& table, const std::string& schema) {
      if (Sees(*table)) relations.push_back({table, schema});
    };
    for (const catalog::TablePtr& table : catalog_->ListTables(s_.database_id))
      add(table, "public");
    for (const catalog::NamespacePtr& space : catalog_->ListNamespaces(s_.database_id)) {
      if (space->name.substr(0, 8) == "pg_temp_" && space->id != s_.temporary_namespace) continue;
      for (const catalog::TablePtr& table : catalog_->ListTables(space->id))
        add(table, space->name);
    }
    return relations;
  }
  // Some privilege on it, or on a column of it; views about what a constraint says of other tables
  // ask for its owner's.
  bool Sees(const catalog::TableDescriptor& table) {
    if (s_.Owns(table)) return true;
    const std::string& name = table_.name;
    if (name == "constraint_column_usage" || name == "constraint_table_usage" ||
        name == "check_constraints") {
      return false;
    }
    uint32_t wanted = UINT32_MAX;
    if (name == "table_constraints" || name == "referential_constraints") wanted &= ~kSelect;
    if ((s_.TableRights(table, s_.user_oid).privileges & wanted) != 0) return true;
    return std::any_of(
        table.columns.begin(), table.columns.end(),
        [&](const catalog::ColumnDescriptor& column) { return SeesColumn(table, column, wanted); });
  }
  bool SeesColumn(const catalog::TableDescriptor& table, const catalog::ColumnDescriptor& column,
                  uint32_t wanted = UINT32_MAX) {
    return !column.dropped &&
           (s_.ColumnRights(table, column, s_.user_oid).privileges & wanted) != 0;
  }

  void Tables() {
    for (const Located& at : Relations()) {
      if (at.table->kind == catalog::RelationKind::kSequence) continue;
      const bool view = at.table->kind == catalog::RelationKind::kView;
      row_.Text("table_catalog", s_.database_name)
          .Text("table_schema", at.schema)
          .Text("table_name", at.table->name)
          .Text("table_type", view                  ? "VIEW"
                              : at.table->temporary ? "LOCAL TEMPORARY"
                                                    : "BASE TABLE")
          .Text("is_insertable_into",
                view && !ChangesThroughView(s_, at.table).values() ? "NO" : "YES")
          .Text("is_typed", "NO");
      if (at.table->temporary) row_.Text("commit_action", "PRESERVE");
      row_.Emit();
    }
    for (const sql::VirtualTable* table : s_.db->system.All()) {
      row_.Text("table_catalog", s_.database_name)
          .Text("table_schema", table->schema)
          .Text("table_name", table->name)
          .Text("table_type", table->oid < 12000 ? "BASE TABLE" : "VIEW")
          .Text("is_insertable_into", "NO")
          .Text("is_typed", "NO")
          .Emit();
    }
  }

  SystemRow& TypeNameFields(Type type) {
    std::string schema = "pg_catalog";
    if (type.enumeration != nullptr) {
      const catalog::TablePtr made = catalog_->GetTypeByOid(type.enumeration->oid);
      if (made != nullptr) schema = s_.SchemaName(made->parent);
    }
    return row_.Text("udt_catalog", s_.database_name)
        .Text("udt_schema", schema)
        .Text("udt_name", TypeName(type));
  }

  void TypeFields(Type type) {
    const std::string type_name = type.array                    ? "ARRAY"
                                  : type.enumeration != nullptr ? "USER-DEFINED"
                                  : type.id == TypeId::kBpchar  ? "character"
                                                                : FormatType(ScalarOf(type));
    row_.Text("data_type", type_name);
    TypeNameFields(type);
    if (type.array) return;
    if (type.collation != nullptr) {
      std::string home = "pg_catalog";
      if (!type.collation->built_in) {
        const catalog::TablePtr made = catalog_->GetTable(
            catalog::TableId{type.collation->oid - catalog::TableDescriptor::kFirstOid});
        if (made != nullptr) home = s_.SchemaName(made->parent);
      }
      row_.Text("collation_catalog", s_.database_name)
          .Text("collation_schema", home)
          .Text("collation_name", type.collation->name);
    }
    switch (type.id) {
      case TypeId::kVarchar:
      case TypeId::kBpchar:
        if (type.modifier >= 4) {
          row_.Int("character_maximum_length", type.modifier - 4)
              .Int("character_octet_length", (type.modifier - 4) * int64_t{4});
        } else {
          row_.Int("character_octet_length", kMaxTextBytes);
        }
        break;
      case TypeId::kText: row_.Int("character_octet_length", kMaxTextBytes); break;
      case TypeId::kInt2: Numeric(16, 2, 0); break;
      case TypeId::kInt4: Numeric(32, 2, 0); break;
      case TypeId::kInt8: Numeric(64, 2, 0); break;
      case TypeId::kFloat4: Numeric(24, 2, -1); break;
      case TypeId::kFloat8: Numeric(53, 2, -1); break;
      case TypeId::kNumeric:
        if (type.modifier >= 4)
          Numeric(((type.modifier - 4) >> 16) & 0xFFFF, 10, (type.modifier - 4) & 0x7FF);
        else
          row_.Int("numeric_precision_radix", 10);
        break;
      case TypeId::kDate: row_.Int("datetime_precision", 0); break;
      case TypeId::kTime:
      case TypeId::kTimetz:
      case TypeId::kTimestamp:
      case TypeId::kTimestamptz:
      case TypeId::kInterval:
        row_.Int("datetime_precision",
                 type.modifier >= 0 && type.modifier <= 6 ? type.modifier : 6);
        break;
      default: break;
    }
  }
  void Numeric(int64_t precision, int64_t radix, int64_t scale) {
    row_.Int("numeric_precision", precision).Int("numeric_precision_radix", radix);
    if (scale >= 0) row_.Int("numeric_scale", scale);
  }

  void Columns() {
    for (const Located& at : Relations()) {
      if (at.table->kind == catalog::RelationKind::kSequence) continue;
      const bool all = s_.Owns(*at.table) ||
                       (s_.TableRights(*at.table, s_.user_oid).privileges & kColumnPrivileges) != 0;
      sql::ViewChanges changes;
      if (at.table->kind == catalog::RelationKind::kView)
        changes = ChangesThroughView(s_, at.table);
      size_t living = 0;
      for (const Attribute& attribute : AttributesOf(*at.table)) {
        const catalog::ColumnDescriptor& column = *attribute.column;
        if (column.dropped) continue;
        const bool updatable = at.table->kind == catalog::RelationKind::kTable ||
                               (living < changes.columns.size() && changes.columns[living]);
        ++living;
        if (!all && !SeesColumn(*at.table, column)) continue;
        const bool identity = column.identity != catalog::Identity::kNone;
        row_.Text("table_catalog", s_.database_name)
            .Text("table_schema", at.schema)
            .Text("table_name", at.table->name)
            .Text("column_name", column.name)
            .Int("ordinal_position", attribute.number)
            .Text("is_nullable", column.not_null ? "NO" : "YES")
            .Text("dtd_identifier", fmt::format("{}", attribute.number))
            .Text("is_self_referencing", "NO")
            .Text("is_identity", identity ? "YES" : "NO")
            .Text("identity_cycle", "NO")
            .Text("is_generated", column.generated_sql.empty() ? "NEVER" : "ALWAYS")
            .TextOrNull("generation_expression", TableText(s_, *at.table, column.generated_sql))
            .Text("is_updatable", updatable ? "YES" : "NO");
        if (!identity) {
          row_.TextOrNull("column_default", TableText(s_, *at.table, column.default_sql));
        }
        if (identity) {
          row_.Text("identity_generation",
                    column.identity == catalog::Identity::kAlways ? "ALWAYS" : "BY DEFAULT");
          if (catalog::TablePtr sequence = catalog_->GetTable(column.sequence)) {
            row_.Text("identity_start", fmt::format("{}", sequence->sequence.start))
                .Text("identity_increment", fmt::format("{}", sequence->sequence.increment))
                .Text("identity_maximum", fmt::format("{}", sequence->sequence.max))
                .Text("identity_minimum", fmt::format("{}", sequence->sequence.min));
          }
        }
        TypeFields(column.type);
        row_.Emit();
      }
    }
    for (const sql::VirtualTable* table : s_.db->system.All()) {
      for (size_t i = 0; i < table->columns.size(); ++i) {
        row_.Text("table_catalog", s_.database_name)
            .Text("table_schema", table->schema)
            .Text("table_name", table->name)
            .Text("column_name", table->columns[i].name)
            .Int("ordinal_position", static_cast<int64_t>(i) + 1)
            .Text("is_nullable", "YES")
            .Text("is_identity", "NO")
            .Text("is_generated", "NEVER")
            .Text("is_updatable", "NO");
        TypeFields(table->columns[i].type);
        row_.Emit();
      }
    }
  }

  void Schemata() {
    auto emit = [this](std::string_view name, std::string_view owner) {
      row_.Text("catalog_name", s_.database_name)
          .Text("schema_name", name)
          .Text("schema_owner", owner)
          .Emit();
    };
    if (s_.SchemaRights(s_.database_id, s_.user_oid).privileges != 0)
      emit("public", s_.Roles().NameOf(kDatabaseOwnerRole));
    emit("pg_catalog", s_.Roles().NameOf(kBootstrapRole));
    emit("information_schema", s_.Roles().NameOf(kBootstrapRole));
    for (const catalog::NamespacePtr& space : catalog_->ListNamespaces(s_.database_id)) {
      if (s_.HasPrivilegesOf(s_.OwnerOf(*space, false)) ||
          s_.SchemaRights(space->id, s_.user_oid).privileges != 0)
        emit(space->name, space->owner);
    }
  }

  void Views() {
    for (const Located& at : Relations()) {
      if (at.table->kind != catalog::RelationKind::kView) continue;
      const char* changes = ChangesThroughView(s_, at.table).values() ? "YES" : "NO";
      row_.Text("table_catalog", s_.database_name)
          .Text("table_schema", at.schema)
          .Text("table_name", at.table->name)
          .TextOrNull("view_definition",
                      s_.Owns(*at.table) ? ViewText(s_, *at.table, Qualify::kHidden) + ";" : "")
          .Text("check_option", "NONE")
          .Text("is_updatable", changes)
          .Text("is_insertable_into", changes)
          .Text("is_trigger_updatable", "NO")
          .Text("is_trigger_deletable", "NO")
          .Text("is_trigger_insertable_into", "NO")
          .Emit();
    }
  }

  // Tables, or columns, of this role that a view reads.
  void ViewUsage() {
    const bool of_columns = table_.name == "view_column_usage";
    for (const Located& at : Relations()) {
      if (at.table->kind != catalog::RelationKind::kView) continue;
      std::vector<sql::NameUse> uses;
      if (!PlanViewText(s_, *at.table, &uses).ok()) continue;
      std::set<std::pair<uint64_t, uint32_t>> seen;
      for (const sql::NameUse& use : uses) {
        const catalog::TablePtr used = catalog_->GetTable(use.table);
        if (used == nullptr || !s_.Owns(*used) || of_columns != (use.column.value != 0) ||
            !seen.insert({use.table.value, use.column.value}).second)
          continue;
        const catalog::ColumnDescriptor* column = used->FindColumn(use.column);
        if (of_columns && column == nullptr) continue;
        TableName(*used)
            .Text("view_catalog", s_.database_name)
            .Text("view_schema", at.schema)
            .Text("view_name", at.table->name);
        if (of_columns) row_.Text("column_name", column->name);
        row_.Emit();
      }
    }
  }

  template <typename Visit>
  void EachColumn(Visit&& visit) {
    for (const Located& at : Relations()) {
      if (at.table->kind == catalog::RelationKind::kSequence) continue;
      for (const Attribute& attribute : AttributesOf(*at.table)) {
        if (!attribute.column->dropped) visit(at, attribute);
      }
    }
  }

  void ColumnTypes() {
    EachColumn([&](const Located& at, const Attribute& attribute) {
      const Type type = attribute.column->type;
      const catalog::TablePtr made =
          type.enumeration == nullptr ? nullptr : catalog_->GetTypeByOid(type.enumeration->oid);
      if (!(made != nullptr ? s_.Owns(*made) : s_.HasPrivilegesOf(kBootstrapRole))) return;
      TypeNameFields(type);
      TableName(*at.table).Text("column_name", attribute.column->name).Emit();
    });
  }

  void ElementTypes() {
    EachColumn([&](const Located& at, const Attribute& attribute) {
      Type type = attribute.column->type;
      if (!type.array) return;
      type.array = false;
      TypeNameFields(type)
          .Text("object_catalog", s_.database_name)
          .Text("object_schema", at.schema)
          .Text("object_name", at.table->name)
          .Text("object_type", "TABLE")
          .Text("collection_type_identifier", fmt::format("{}", attribute.number))
          .Text("data_type", type.enumeration != nullptr  ? "USER-DEFINED"
                             : type.id == TypeId::kBpchar ? "character"
                                                          : FormatType(ScalarOf(type)))
          .Text("dtd_identifier", fmt::format("a{}", attribute.number))
          .Emit();
    });
  }

  void Sequences() {
    for (const Located& at : Relations()) {
      if (at.table->kind != catalog::RelationKind::kSequence) continue;
      const catalog::SequenceOptions& options = at.table->sequence;
      const catalog::TablePtr owner = catalog_->GetTable(options.owner_table);
      const catalog::ColumnDescriptor* column =
          owner == nullptr ? nullptr : owner->FindColumn(options.owner_column);
      // An identity column's is its own affair.
      if (column != nullptr && column->identity != catalog::Identity::kNone) continue;
      row_.Text("sequence_catalog", s_.database_name)
          .Text("sequence_schema", at.schema)
          .Text("sequence_name", at.table->name)
          .Text("data_type", FormatType(options.type))
          .Int("numeric_precision", options.type.id == TypeId::kInt2   ? 16
                                    : options.type.id == TypeId::kInt4 ? 32
                                                                       : 64)
          .Int("numeric_precision_radix", 2)
          .Int("numeric_scale", 0)
          .Text("start_value", fmt::format("{}", options.start))
          .Text("minimum_value", fmt::format("{}", options.min))
          .Text("maximum_value", fmt::format("{}", options.max))
          .Text("increment", fmt::format("{}", options.increment))
          .Text("cycle_option", options.cycle ? "YES" : "NO")
          .Emit();
    }
  }

  SystemRow& ConstraintName(const Located& at, const std::string& name) {
    return row_.Text("constraint_catalog", s_.database_name)
        .Text("constraint_schema", at.schema)
        .Text("constraint_name", name);
  }
  SystemRow& TableName(const catalog::TableDescriptor& table) {
    return row_.Text("table_catalog", s_.database_name)
        .Text("table_schema", s_.SchemaName(table.parent))
        .Text("table_name", table.name);
  }

  void TableConstraints() {
    auto emit = [this](const Located& at, const std::string& name, const char* kind,
                       const catalog::ForeignKey* key = nullptr) {
      ConstraintName(at, name);
      TableName(*at.table)
          .Text("constraint_type", kind)
          .Text("is_deferrable", key != nullptr && key->deferrable ? "YES" : "NO")
          .Text("initially_deferred", key != nullptr && key->initially_deferred ? "YES" : "NO")
          .Text("enforced", "YES")
          .Emit();
    };
    for (const Located& at : Relations()) {
      for (const catalog::IndexDescriptor& index : at.table->indexes) {
        if (!index.constraint) continue;
        if (!index.primary) row_.Text("nulls_distinct", index.nulls_not_distinct ? "NO" : "YES");
        emit(at, index.name, index.primary ? "PRIMARY KEY" : "UNIQUE");
      }
      for (const catalog::CheckConstraint& check : at.table->checks) emit(at, check.name, "CHECK");
      for (const catalog::ForeignKey& key : at.table->foreign_keys)
        emit(at, key.name, "FOREIGN KEY", &key);
      for (const Attribute& attribute : AttributesOf(*at.table)) {
        if (attribute.column->dropped || !attribute.column->not_null) continue;
        emit(at, NotNullName(at, attribute), "CHECK");
      }
    }
  }

  std::string NotNullName(const Located& at, const Attribute& attribute) {
    return fmt::format("{}_{}_{}_not_null", s_.NamespaceOid(at.table->parent), at.table->oid(),
                       attribute.number);
  }

  void KeyColumnUsage() {
    for (const Located& at : Relations()) {
      for (const catalog::IndexDescriptor& index : at.table->indexes) {
        if (!index.constraint) continue;
        for (size_t i = 0; i < index.key.size(); ++i) {
          ConstraintName(at, index.name);
          TableName(*at.table)
              .Text("column_name", at.table->FindColumn(index.key[i].column)->name)
              .Int("ordinal_position", static_cast<int64_t>(i) + 1)
              .Emit();
        }
      }
      for (const catalog::ForeignKey& key : at.table->foreign_keys) {
        catalog::TablePtr referenced = catalog_->GetTable(key.referenced_table);
        const catalog::IndexDescriptor* index =
            referenced == nullptr ? nullptr : ReferencedIndex(*referenced, key);
        for (size_t i = 0; i < key.columns.size(); ++i) {
          ConstraintName(at, key.name);
          TableName(*at.table)
              .Text("column_name", at.table->FindColumn(key.columns[i])->name)
              .Int("ordinal_position", static_cast<int64_t>(i) + 1);
          for (size_t k = 0; index != nullptr && k < index->key.size(); ++k) {
            if (index->key[k].column == key.referenced_columns[i]) {
              row_.Int("position_in_unique_constraint", static_cast<int64_t>(k) + 1);
            }
          }
          row_.Emit();
        }
      }
    }
  }

  static const catalog::IndexDescriptor* ReferencedIndex(const catalog::TableDescriptor& table,
                                                         const catalog::ForeignKey& key) {
    for (const catalog::IndexDescriptor& index : table.indexes) {
      if (!index.unique || !index.predicate.empty() ||
          index.key.size() != key.referenced_columns.size()) {
        continue;
      }
      const bool all =
          std::all_of(index.key.begin(), index.key.end(), [&key](const catalog::IndexColumn& part) {
            return std::find(key.referenced_columns.begin(), key.referenced_columns.end(),
                             part.column) != key.referenced_columns.end();
          });
      if (all) return &index;
    }
    return nullptr;
  }

  void ConstraintColumnUsage() {
    for (const Located& at : Relations()) {
      for (const catalog::IndexDescriptor& index : at.table->indexes) {
        if (!index.constraint) continue;
        for (const catalog::IndexColumn& part : index.key) {
          ConstraintName(at, index.name);
          TableName(*at.table).Text("column_name", at.table->FindColumn(part.column)->name).Emit();
        }
      }
      for (const catalog::CheckConstraint& check : at.table->checks) {
        for (const int16_t number : CheckedColumns(*at.table, check)) {
          ConstraintName(at, check.name);
          TableName(*at.table)
              .Text("column_name", at.table->columns[static_cast<size_t>(number) - 1].name)
              .Emit();
        }
      }
      for (const catalog::ForeignKey& key : at.table->foreign_keys) {
        catalog::TablePtr referenced = catalog_->GetTable(key.referenced_table);
        for (size_t i = 0; referenced != nullptr && i < key.referenced_columns.size(); ++i) {
          ConstraintName(at, key.name);
          TableName(*referenced)
              .Text("column_name", referenced->FindColumn(key.referenced_columns[i])->name)
              .Emit();
        }
      }
    }
  }

  void ConstraintTableUsage() {
    for (const Located& at : Relations()) {
      for (const catalog::IndexDescriptor& index : at.table->indexes) {
        if (!index.constraint) continue;
        ConstraintName(at, index.name);
        TableName(*at.table).Emit();
      }
      for (const catalog::ForeignKey& key : at.table->foreign_keys) {
        catalog::TablePtr referenced = catalog_->GetTable(key.referenced_table);
        if (referenced == nullptr) continue;
        ConstraintName(at, key.name);
        TableName(*referenced).Emit();
      }
    }
  }

  static const char* Rule(catalog::ForeignKeyAction action) {
    switch (action) {
      case catalog::ForeignKeyAction::kRestrict: return "RESTRICT";
      case catalog::ForeignKeyAction::kCascade: return "CASCADE";
      case catalog::ForeignKeyAction::kSetNull: return "SET NULL";
      case catalog::ForeignKeyAction::kSetDefault: return "SET DEFAULT";
      default: return "NO ACTION";
    }
  }

  void ReferentialConstraints() {
    for (const Located& at : Relations()) {
      for (const catalog::ForeignKey& key : at.table->foreign_keys) {
        catalog::TablePtr referenced = catalog_->GetTable(key.referenced_table);
        ConstraintName(at, key.name);
        row_.Text("match_option", "NONE")
            .Text("update_rule", Rule(key.on_update))
            .Text("delete_rule", Rule(key.on_delete));
        const catalog::IndexDescriptor* index =
            referenced == nullptr ? nullptr : ReferencedIndex(*referenced, key);
        if (index != nullptr) {
          row_.Text("unique_constraint_catalog", s_.database_name)
              .Text("unique_constraint_schema", s_.SchemaName(referenced->parent))
              .Text("unique_constraint_name", index->name);
        }
        row_.Emit();
      }
    }
  }

  void CheckConstraints() {
    for (const Located& at : Relations()) {
      for (const catalog::CheckConstraint& check : at.table->checks) {
        ConstraintName(at, check.name);
        row_.Text("check_clause", fmt::format("({}){}", TableText(s_, *at.table, check.expression),
                                              check.validated ? "" : " NOT VALID"))
            .Emit();
      }
      for (const Attribute& attribute : AttributesOf(*at.table)) {
        if (attribute.column->dropped || !attribute.column->not_null) continue;
        ConstraintName(at, NotNullName(at, attribute));
        row_.Text("check_clause", attribute.column->name + " IS NOT NULL").Emit();
      }
    }
  }

  Session::Impl& s_;
  const sql::VirtualTable& table_;
  SystemRow row_;
  catalog::SnapshotPtr catalog_;
};

}  // namespace

bool GenerateInformationSchema(Session::Impl& session, const sql::VirtualTable& table,
                               RowBatch* rows) {
  return InformationSchema(session, table, rows).Run();
}

}  // namespace cellar::session
