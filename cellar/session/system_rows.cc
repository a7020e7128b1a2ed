// Rows of pg_catalog, made from descriptors whenever a query reads them (PostgreSQL manual, chapter
// 53).
#include "cellar/session/system_rows.h"

#include <algorithm>
#include <set>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/index_parts.h"
#include "cellar/session/jobs.h"
#include "cellar/session/lock_view.h"
#include "cellar/session/system_privileges.h"
#include "cellar/session/system_tables.h"
#include "cellar/session/usage_rows.h"
#include "cellar/session/view_texts.h"
#include "cellar/session/zones.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/plan/operator_classes.h"
#include "cellar/sql/plan/system_views.h"
#include "cellar/types/array.h"

namespace cellar::session {

SystemRow& SystemRow::Put(std::string_view column, Datum value) {
  for (size_t i = 0; i < table_.columns.size(); ++i) {
    if (table_.columns[i].name == column) {
      values_[i] = value;
      return *this;
    }
  }
  return *this;
}

SystemRow& SystemRow::Array(std::string_view column, const std::vector<Value>& elements,
                            int lower_bound) {
  Type element = MakeType(TypeId::kText);
  for (const sql::OutputColumn& candidate : table_.columns) {
    if (candidate.name != column) continue;
    element = candidate.type;
    element.array = false;
    if (element.id == TypeId::kInt2vector) element = MakeType(TypeId::kInt2);
    if (element.id == TypeId::kOidvector) element = MakeType(TypeId::kOid);
  }
  ArrayBuilder builder(element);
  for (const Value& value : elements) builder.Add(value.datum());
  return Put(column, Datum::Bytes(builder.Finish(rows_->arena(), lower_bound)));
}

SystemRow& SystemRow::IntArray(std::string_view column, const std::vector<int64_t>& elements,
                               int lower_bound) {
  std::vector<Value> values;
  for (int64_t element : elements)
    values.emplace_back(MakeType(TypeId::kInt8), Datum::Int(element));
  return Array(column, values, lower_bound);
}

std::vector<Attribute> AttributesOf(const catalog::TableDescriptor& table) {
  std::vector<Attribute> attributes;
  int16_t number = 0;
  for (const catalog::ColumnDescriptor& column : table.columns) {
    ++number;
    if (column.hidden) continue;
    attributes.push_back({number, &column});
  }
  return attributes;
}

int16_t AttributeNumber(const catalog::TableDescriptor& table, catalog::ColumnId column) {
  return static_cast<int16_t>(table.OrdinalOf(column) + 1);
}

std::vector<int16_t> CheckedColumns(const catalog::TableDescriptor& table,
                                    const catalog::CheckConstraint& check) {
  std::vector<int16_t> numbers;
  Result<ast::ExprPtr> parsed = sql::ParseExpression(check.expression);
  for (const Attribute& attribute : AttributesOf(table)) {
    if (attribute.column->dropped || !parsed.ok()) continue;
    const std::string before = sql::DeparseExpr(**parsed);
    sql::RenameColumn(parsed->get(), attribute.column->name, attribute.column->name + "\x01");
    if (sql::DeparseExpr(**parsed) != before) numbers.push_back(attribute.number);
    sql::RenameColumn(parsed->get(), attribute.column->name + "\x01", attribute.column->name);
  }
  return numbers;
}

uint32_t ConstraintOid(const catalog::IndexDescriptor& index) {
  // A key constraint and its index are one object here; the constraint's oid lies in a range of its
  // own.
  return index.oid + 0x40000000u;
}

namespace {

constexpr uint32_t kOwnerOid = 10;
constexpr uint32_t kFirstRule = 0x10000000;  // oids of views' rules, by the view's own
constexpr uint32_t kBtreeAm = 403, kHeapAm = 2;
constexpr uint32_t kDefaultCollation = 100, kCCollation = 950;

bool IsPrimaryHidden(const catalog::IndexDescriptor& index) {
  return index.primary && !index.constraint;
}

uint32_t CollationOf(Type type) {
  if (type.collation != nullptr && IsCollatable(type)) return type.collation->oid;
  switch (type.id) {
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBpchar: return kDefaultCollation;
    case TypeId::kName: return kCCollation;
    default: return 0;
  }
}

char AlignOf(Type type) {
  if (type.array) return 'i';
  switch (TypeLength(type)) {
    case 1: return 'c';
    case 2: return 's';
    case 8: return 'd';
    case 16: return type.id == TypeId::kUuid ? 'c' : 'd';
    default: return 'i';
  }
}

char CategoryOf(Type type) {
  if (type.array) return 'A';
  switch (type.id) {
    case TypeId::kBool: return 'B';
    case TypeId::kInt2:
    case TypeId::kInt4:
    case TypeId::kInt8:
    case TypeId::kFloat4:
    case TypeId::kFloat8:
    case TypeId::kNumeric:
    case TypeId::kOid:
    case TypeId::kRegclass:
    case TypeId::kRegtype:
    case TypeId::kRegproc:
    case TypeId::kRegnamespace:
    case TypeId::kRegrole: return 'N';
    case TypeId::kText:
    case TypeId::kVarchar:
    case TypeId::kBpchar:
    case TypeId::kName: return 'S';
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kTimetz:
    case TypeId::kTimestamp:
    case TypeId::kTimestamptz: return 'D';
    case TypeId::kInterval: return 'T';
    case TypeId::kUnknown: return 'X';
    case TypeId::kChar: return 'Z';
    case TypeId::kInt2vector:
    case TypeId::kOidvector: return 'A';
    case TypeId::kVoid:
    case TypeId::kRecord:
    case TypeId::kAny:
    case TypeId::kAnyelement:
    case TypeId::kAnyarray: return 'P';
    default: return 'U';
  }
}

bool IsPreferred(Type type) {
  return !type.array && (type.id == TypeId::kBool || type.id == TypeId::kFloat8 ||
                         type.id == TypeId::kOid || type.id == TypeId::kText ||
                         type.id == TypeId::kTimestamptz || type.id == TypeId::kInterval);
}

constexpr TypeId kListedTypes[] = {
    TypeId::kBool,       TypeId::kInt2,      TypeId::kInt4,         TypeId::kInt8,
    TypeId::kFloat4,     TypeId::kFloat8,    TypeId::kNumeric,      TypeId::kText,
    TypeId::kVarchar,    TypeId::kBpchar,    TypeId::kBytea,        TypeId::kDate,
    TypeId::kTime,       TypeId::kTimetz,    TypeId::kTimestamp,    TypeId::kTimestamptz,
    TypeId::kInterval,   TypeId::kUuid,      TypeId::kJson,         TypeId::kJsonb,
    TypeId::kOid,        TypeId::kName,      TypeId::kChar,         TypeId::kRegclass,
    TypeId::kRegtype,    TypeId::kRegproc,   TypeId::kRegnamespace, TypeId::kRegrole,
    TypeId::kInt2vector, TypeId::kOidvector, TypeId::kXid,          TypeId::kAclitem,
    TypeId::kPgNodeTree, TypeId::kUnknown,   TypeId::kVoid,         TypeId::kRecord,
    TypeId::kAnyelement, TypeId::kAnyarray,  TypeId::kAny,          TypeId::kAnyenum};

// Whether PostgreSQL declares a column of a system table NOT NULL: those of a fixed length, but for
// some.
bool IsNeverNull(const sql::VirtualTable& table, const sql::OutputColumn& column) {
  if (table.oid >= sql::kFirstSystemView || table.schema != "pg_catalog") return false;
  struct Other {
    std::string_view table, column;
  };
  static constexpr Other kNullable[] = {
      {"pg_authid", "rolvaliduntil"},     {"pg_publication_rel", "prattrs"},
      {"pg_subscription", "subslotname"}, {"pg_subscription_rel", "srsublsn"},
      {"pg_trigger", "tgoldtable"},       {"pg_trigger", "tgnewtable"}};
  static constexpr Other kNeverNull[] = {{"pg_attrdef", "adbin"},
                                         {"pg_database", "datcollate"},
                                         {"pg_database", "datctype"},
                                         {"pg_default_acl", "defaclacl"},
                                         {"pg_description", "description"},
                                         {"pg_extension", "extversion"},
                                         {"pg_init_privs", "initprivs"},
                                         {"pg_largeobject", "data"},
                                         {"pg_parameter_acl", "parname"},
                                         {"pg_policy", "polroles"},
                                         {"pg_proc", "prosrc"},
                                         {"pg_replication_origin", "roname"},
                                         {"pg_rewrite", "ev_qual"},
                                         {"pg_rewrite", "ev_action"},
                                         {"pg_seclabel", "provider"},
                                         {"pg_seclabel", "label"},
                                         {"pg_shdescription", "description"},
                                         {"pg_shseclabel", "provider"},
                                         {"pg_shseclabel", "label"},
                                         {"pg_statistic_ext", "stxkind"},
                                         {"pg_subscription", "subconninfo"},
                                         {"pg_subscription", "subsynccommit"},
                                         {"pg_subscription", "subpublications"},
                                         {"pg_trigger", "tgargs"}};
  const auto is_this = [&](const Other& one) {
    return one.table == table.name && one.column == column.name;
  };
  if (std::any_of(std::begin(kNullable), std::end(kNullable), is_this)) return false;
  const TypeId id = column.type.id;
  return (!column.type.array &&
          (TypeLength(column.type) > 0 || id == TypeId::kInt2vector || id == TypeId::kOidvector)) ||
         std::any_of(std::begin(kNeverNull), std::end(kNeverNull), is_this);
}

// One generation: the tables' rows, written through SystemRow.
class Generator {
 public:
  Generator(Session::Impl& session, const sql::VirtualTable& table, RowBatch* rows, int key_column,
            Datum key)
      : s_(session), table_(table), row_(table, rows), catalog_(session.CurrentCatalog()) {
    if (key_column >= 0) {
      key_name_ = table.columns[static_cast<size_t>(key_column)].name;
      key_ = key;
    }
  }

  // False when nothing is known to fill the table with: it is empty.
  bool Run() {
    struct Entry {
      std::string_view name;
      void (Generator::*make)();
    };
    static constexpr Entry kEntries[] = {
        {"cellar_column_groups", &Generator::ColumnGroups},
        {"cellar_dropped", &Generator::Dropped},
        {"cellar_jobs", &Generator::Jobs},
        {"cellar_sequence_state", &Generator::SequenceState},
        {"cellar_table_storage", &Generator::TableStorage},
        {"pg_am", &Generator::Am},
        {"pg_attrdef", &Generator::Attrdef},
        {"pg_attribute", &Generator::AttributeRows},
        {"pg_class", &Generator::Class},
        {"pg_collation", &Generator::Collation},
        {"pg_constraint", &Generator::Constraint},
        {"pg_cursors", &Generator::Cursors},
        {"pg_database", &Generator::Database},
        {"pg_depend", &Generator::Depend},
        {"pg_description", &Generator::Description},
        {"pg_index", &Generator::Index},
        {"pg_indexes", &Generator::Indexes},
        {"pg_enum", &Generator::Enums},
        {"pg_init_privs", &Generator::InitialPrivileges},
        {"pg_language", &Generator::Language},
        {"pg_namespace", &Generator::Namespace},
        {"pg_opclass", &Generator::Opclass},
        {"pg_operator", &Generator::Operator},
        {"pg_prepared_statements", &Generator::PreparedStatements},
        {"pg_locks", &Generator::Locks},
        {"pg_proc", &Generator::Proc},
        {"pg_rewrite", &Generator::Rewrite},
        {"pg_sequence", &Generator::Sequence},
        {"pg_sequences", &Generator::Sequences},
        {"pg_settings", &Generator::SettingRows},
        {"pg_shdescription", &Generator::Shdescription},
        {"pg_stat_activity", &Generator::Activity},
        {"pg_stat_progress_create_index", &Generator::IndexBuilds},
        {"pg_stat_all_tables", &Generator::TableStatistics},
        {"pg_stat_user_tables", &Generator::TableStatistics},
        {"pg_tables", &Generator::Tables},
        {"pg_tablespace", &Generator::Tablespace},
        {"pg_type", &Generator::TypeRows},
        {"pg_views", &Generator::Views},
    };
    for (const Entry& entry : kEntries) {
      if (entry.name != table_.name) continue;
      (this->*entry.make)();
      return true;
    }
    return false;
  }

 private:
  void None() {}

  bool Wants(std::string_view column, int64_t value) const {
    return key_name_ != column || key_.is_null() || key_.int_value() == value;
  }

  uint32_t OwnerOid(const std::string& owner) {
    const uint32_t oid = s_.Roles().OidOf(owner);
    return oid != 0 ? oid : kOwnerOid;
  }

  // Tables of this database, temporary ones of this session only.
  std::vector<catalog::TablePtr> Relations() {
    std::vector<catalog::TablePtr> relations = catalog_->ListTables(s_.database_id);
    for (const catalog::NamespacePtr& space : Schemas()) {
      std::vector<catalog::TablePtr> more = catalog_->ListTables(space->id);
      relations.insert(relations.end(), more.begin(), more.end());
    }
    return relations;
  }
  // Types or collations that users made, as Relations.
  std::vector<catalog::TablePtr> MadeOf(catalog::RelationKind kind) {
    std::vector<catalog::TablePtr> types = catalog_->ListTypes(s_.database_id);
    for (const catalog::NamespacePtr& space : Schemas()) {
      std::vector<catalog::TablePtr> more = catalog_->ListTypes(space->id);
      types.insert(types.end(), more.begin(), more.end());
    }
    std::erase_if(types, [kind](const catalog::TablePtr& one) { return one->kind != kind; });
    return types;
  }
  std::vector<catalog::TablePtr> MadeTypes() { return MadeOf(catalog::RelationKind::kType); }
  std::vector<catalog::NamespacePtr> Schemas() {
    std::vector<catalog::NamespacePtr> schemas = catalog_->ListNamespaces(s_.database_id);
    schemas.erase(std::remove_if(schemas.begin(), schemas.end(),
                                 [this](const catalog::NamespacePtr& space) {
                                   return space->name.substr(0, 8) == "pg_temp_" &&
                                          space->id != s_.temporary_namespace;
                                 }),
                  schemas.end());
    return schemas;
  }

  void Jobs() {
    const Result<std::vector<Job>> jobs = ReadJobs(s_.db->engine.get());
    if (!jobs.ok()) return;
    for (const Job& job : *jobs) {
      if (!MaySee(s_, job)) continue;
      row_.Int("job", static_cast<int64_t>(job.id))
          .Text("kind", JobKindName(job.kind))
          .Text("state", JobStateName(job.state))
          .Text("object", job.object)
          .Text("created_by", job.created_by)
          .Int("created", job.created_micros)
          .Int("rows_estimated", static_cast<int64_t>(job.rows_estimated));
      if (job.kind != JobKind::kValidate)
        row_.Int("rows_done", static_cast<int64_t>(job.rows_done));
      if (!job.ended()) row_.Text("step", JobStepName(job));
      if (job.ended_micros != 0) row_.Int("ended", job.ended_micros);
      if (job.state == JobState::kParked) {
        row_.Text("error", job.parked_reason);
      } else if (!job.error.ok()) {
        row_.Text("error", fmt::format("{}: {}", job.error.sqlstate(), job.error.message()));
      }
      row_.Emit();
    }
  }

  // By jobs: no session is at work.
  void IndexBuilds() {
    const Result<std::vector<Job>> jobs = ReadJobs(s_.db->engine.get());
    if (!jobs.ok()) return;
    for (const Job& job : *jobs) {
      if (job.ended() || job.kind != JobKind::kBuildIndex) continue;
      const catalog::TablePtr table = catalog_->GetTable(job.table);
      const catalog::IndexDescriptor* index =
          table == nullptr ? nullptr : table->FindIndex(job.index);
      if (index == nullptr || job.database != s_.database_name) continue;
      row_.Int("datid", catalog_->GetNamespace(s_.database_id)->oid())
          .Text("datname", job.database)
          .Int("relid", table->oid())
          .Int("index_relid", index->oid)
          .Text("command", "CREATE INDEX CONCURRENTLY")
          .Text("phase", job.filled ? "index validation: scanning index" : "building index")
          .Int("tuples_total", static_cast<int64_t>(job.rows_estimated))
          .Int("tuples_done", static_cast<int64_t>(job.rows_done));
      row_.Emit();
    }
  }

  void Dropped() { GenerateDropped(s_, &row_); }

  void ColumnGroups() {
    for (const catalog::TablePtr& table : Relations()) {
      for (const catalog::ColumnGroup& group : table->groups) {
        std::vector<std::string> columns;
        for (const catalog::ColumnId id : group.columns) {
          const catalog::ColumnDescriptor* column = table->FindColumn(id);
          if (column != nullptr && !column->dropped) columns.push_back(column->name);
        }
        row_.Text("schemaname", s_.SchemaName(table->parent))
            .Text("tablename", table->name)
            .Text("groupname", group.name)
            .Array("columns", TextValues(columns));
        row_.Emit();
      }
    }
  }

  // Of layout pages only: rows of others have but one place.
  void TableStorage() {
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind != catalog::RelationKind::kTable) continue;
      row_.Text("schemaname", s_.SchemaName(table->parent))
          .Text("tablename", table->name)
          .Text("layout", LayoutName(table->layout));
      Result<table::StorageState> state = s_.db->sealer->StateOf(table);
      if (state.ok() && table->layout == catalog::Layout::kPages) {
        const uint64_t allowed = SealAllowance(*state);
        const uint64_t bytes = state->delta_bytes + state->page_bytes;
        auto number = [](uint64_t value) { return static_cast<int64_t>(value); };
        row_.Int("delta_bytes", number(state->delta_bytes))
            .Int("page_bytes", number(state->page_bytes))
            .Int("page_rows", number(state->page_rows))
            .Int("changes", number(state->changes))
            .Double("delta_share", bytes == 0 ? 0
                                              : static_cast<double>(state->delta_bytes) /
                                                    static_cast<double>(bytes))
            .Int("debt", number(state->delta_bytes - std::min(allowed, state->delta_bytes)));
      }
      row_.Emit();
    }
  }

  void Am() {
    row_.Int("oid", kHeapAm).Text("amname", "heap").Int("amhandler", 3).Char("amtype", 't').Emit();
    row_.Int("oid", kBtreeAm)
        .Text("amname", "btree")
        .Int("amhandler", 330)
        .Char("amtype", 'i')
        .Emit();
  }

  static std::vector<catalog::AclItem> SystemSchemaAcl() {
    return {{kBootstrapRole, kBootstrapRole, kUsage | kCreate, 0}, {0, kBootstrapRole, kUsage, 0}};
  }
  // What a dump need not grant: every database has it.
  void InitialPrivileges() {
    for (const uint32_t schema : {kPgCatalogOid, kInformationSchemaOid}) {
      row_.Int("objoid", schema).Int("classoid", 2615).Int("objsubid", 0).Char("privtype", 'i');
      PutAcl(s_, "initprivs", SystemSchemaAcl(), &row_);
      row_.Emit();
    }
  }

  void Namespace() {
    auto emit = [this](uint32_t oid, std::string_view name, uint32_t owner,
                       const std::vector<catalog::AclItem>* acl) {
      row_.Int("oid", oid).Text("nspname", name).Int("nspowner", owner);
      if (acl != nullptr) PutAcl(s_, "nspacl", *acl, &row_);
      row_.Emit();
    };
    const std::vector<catalog::AclItem> system = SystemSchemaAcl();
    emit(kPgCatalogOid, "pg_catalog", kOwnerOid, &system);
    emit(99, "pg_toast", kOwnerOid, nullptr);
    const std::vector<catalog::AclItem> open =
        s_.AclOf(*catalog_->GetNamespace(s_.database_id), false);
    emit(s_.NamespaceOid(s_.database_id), "public", kDatabaseOwnerOid, &open);
    emit(kInformationSchemaOid, "information_schema", kOwnerOid, &system);
    for (const catalog::NamespacePtr& space : Schemas()) {
      emit(s_.NamespaceOid(space->id), space->name, OwnerOid(space->owner),
           space->acl.set ? &space->acl.items : nullptr);
    }
  }

  void Database() {
    for (const catalog::NamespacePtr& space : catalog_->ListNamespaces(catalog::kRootNamespace)) {
      row_.Int("oid", space->oid())
          .Text("datname", space->name)
          .Int("datdba", OwnerOid(space->owner))
          .Int("encoding", 6)
          .Char("datlocprovider", 'c')
          .Bool("datistemplate", false)
          .Bool("datallowconn", true)
          .Int("datconnlimit", -1)
          .Int("datfrozenxid", 722)
          .Int("datminmxid", 1)
          .Int("dattablespace", 1663)
          .Text("datcollate", "C.UTF-8")
          .Text("datctype", "C.UTF-8");
      // A list that is set may be so for the schema public alone.
      const std::vector<catalog::AclItem> acl = s_.AclOf(*space, true);
      if (space->acl.set && acl != DefaultAclItems('d', s_.OwnerOf(*space, true)))
        PutAcl(s_, "datacl", acl, &row_);
      row_.Emit();
    }
  }

  void ClassRow(uint32_t oid, std::string_view name, uint32_t space, uint32_t type, uint32_t owner,
                uint32_t am, char kind, int64_t attributes) {
    row_.Int("oid", oid)
        .Text("relname", name)
        .Int("relnamespace", space)
        .Int("reltype", type)
        .Int("reloftype", 0)
        .Int("relowner", owner)
        .Int("relam", am)
        .Int("relfilenode", oid)
        .Int("reltablespace", 0)
        .Int("relpages", 0)
        .Double("reltuples", -1)
        .Int("relallvisible", 0)
        .Int("reltoastrelid", 0)
        .Bool("relhasindex", false)
        .Bool("relisshared", false)
        .Char("relpersistence", 'p')
        .Char("relkind", kind)
        .Int("relnatts", attributes)
        .Int("relchecks", 0)
        .Bool("relhasrules", false)
        .Bool("relhastriggers", false)
        .Bool("relhassubclass", false)
        .Bool("relrowsecurity", false)
        .Bool("relforcerowsecurity", false)
        .Bool("relispopulated", true)
        .Char("relreplident", kind == 'r' ? 'd' : 'n')
        .Bool("relispartition", false)
        .Int("relrewrite", 0)
        .Int("relfrozenxid", 0)
        .Int("relminmxid", 0);
  }

  // As of the last ANALYZE, in PostgreSQL's pages of 8 KiB.
  void PutSize(const catalog::TableDescriptor& table) {
    const StatisticsService::Pointer known = s_.db->statistics->Find(table);
    if (known == nullptr) return;
    double width = 0;
    for (const catalog::ColumnStatistics& column : known->columns) {
      width += (1 - column.null_fraction) * column.average_width;
    }
    row_.Double("reltuples", static_cast<float>(known->rows))
        .Int("relpages", static_cast<int64_t>((known->rows * width + 8191) / 8192));
  }

  void Class() {
    for (const catalog::TablePtr& table : Relations()) {
      const uint32_t space = s_.NamespaceOid(table->parent);
      const uint32_t owner = OwnerOid(table->owner);
      const char kind = table->kind == catalog::RelationKind::kView       ? 'v'
                        : table->kind == catalog::RelationKind::kSequence ? 'S'
                                                                          : 'r';
      bool has_index = false;
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (IsPrimaryHidden(index)) continue;
        has_index = true;
        if (!Wants("oid", index.oid)) continue;
        ClassRow(index.oid, index.name, space, 0, owner, kBtreeAm, 'i',
                 static_cast<int64_t>(index.key.size() + index.stored.size()));
        row_.Char("relpersistence", table->temporary ? 't' : 'p').Emit();
      }
      if (!Wants("oid", table->oid())) continue;
      const int64_t width = kind == 'S' ? 3 : static_cast<int64_t>(AttributesOf(*table).size());
      ClassRow(table->oid(), table->name, space, table->oid() + 0x20000000u, owner,
               kind == 'r' ? kHeapAm : 0, kind, width);
      row_.Bool("relhasindex", has_index)
          .Int("relchecks", static_cast<int64_t>(table->checks.size()))
          .Bool("relhasrules", kind == 'v')
          .Bool("relhastriggers",
                !table->foreign_keys.empty() || !catalog_->ListReferencing(table->id).empty())
          .Char("relpersistence", table->temporary ? 't' : 'p');
      if (kind == 'r') PutSize(*table);
      std::vector<std::string> options = ZoneTexts(table->zone);
      if (kind == 'r' && std::string_view(LayoutName(table->layout)) != kBuiltInTableLayout) {
        options.push_back(fmt::format("layout={}", LayoutName(table->layout)));
      }
      if (!table->groups.empty()) options.push_back("groups=" + GroupsText(*table));
      if (!options.empty()) row_.Array("reloptions", TextValues(options));
      if (table->acl.set) PutAcl(s_, "relacl", table->acl.items, &row_);
      row_.Emit();
    }
    for (const sql::VirtualTable* table : s_.db->system.All()) {
      if (!Wants("oid", table->oid)) continue;
      ClassRow(table->oid, table->name,
               table->schema == "pg_catalog" ? kPgCatalogOid : kInformationSchemaOid, 0, kOwnerOid,
               kHeapAm, table->oid < 12000 ? 'r' : 'v',
               static_cast<int64_t>(table->columns.size()));
      row_.Emit();
    }
  }

  void AttributeRow(uint32_t relation, std::string_view name, Type type, int number) {
    row_.Int("attrelid", relation)
        .Text("attname", name)
        .Int("atttypid", OidOf(type))
        .Int("attstattarget", -1)
        .Int("attlen", TypeLength(type))
        .Int("attnum", number)
        .Int("attndims", type.array ? 1 : 0)
        .Int("attcacheoff", -1)
        .Int("atttypmod", type.modifier)
        .Bool("attbyval", PhysicalOf(type) != Physical::kBytes)
        .Char("attalign", AlignOf(type))
        .Char("attstorage", TypeLength(type) > 0 ? 'p' : 'x')
        .Char("attcompression", 0)
        .Bool("attnotnull", false)
        .Bool("atthasdef", false)
        .Bool("atthasmissing", false)
        .Char("attidentity", 0)
        .Char("attgenerated", 0)
        .Bool("attisdropped", false)
        .Bool("attislocal", true)
        .Int("attinhcount", 0)
        .Int("attcollation", CollationOf(type));
  }

  void AttributeRows() {
    for (const catalog::TablePtr& table : Relations()) {
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (IsPrimaryHidden(index) || !Wants("attrelid", index.oid)) continue;
        int number = 0;
        const std::vector<std::string> names = IndexPartNames(*table, index);
        for (const catalog::IndexColumn& part : index.key) {
          AttributeRow(index.oid, names[static_cast<size_t>(number)], IndexPartType(*table, part),
                       number + 1);
          ++number;
          row_.Emit();
        }
        for (catalog::ColumnId stored : index.stored) {
          const catalog::ColumnDescriptor* column = table->FindColumn(stored);
          if (column == nullptr) continue;
          AttributeRow(index.oid, column->name, column->type, ++number);
          row_.Emit();
        }
      }
      if (!Wants("attrelid", table->oid())) continue;
      if (table->kind == catalog::RelationKind::kSequence) {
        AttributeRow(table->oid(), "last_value", MakeType(TypeId::kInt8), 1);
        row_.Bool("attnotnull", true).Emit();
        AttributeRow(table->oid(), "log_cnt", MakeType(TypeId::kInt8), 2);
        row_.Bool("attnotnull", true).Emit();
        AttributeRow(table->oid(), "is_called", MakeType(TypeId::kBool), 3);
        row_.Bool("attnotnull", true).Emit();
        continue;
      }
      for (const Attribute& attribute : AttributesOf(*table)) {
        const catalog::ColumnDescriptor& column = *attribute.column;
        if (column.dropped) {
          AttributeRow(table->oid(), fmt::format("........pg.dropped.{}........", attribute.number),
                       column.type, attribute.number);
          row_.Int("atttypid", 0).Bool("attisdropped", true).Emit();
          continue;
        }
        AttributeRow(table->oid(), column.name, column.type, attribute.number);
        if (column.acl.set) PutAcl(s_, "attacl", column.acl.items, &row_);
        row_.Bool("attnotnull", column.not_null)
            .Bool("atthasdef",
                  (!column.default_sql.empty() && column.identity == catalog::Identity::kNone) ||
                      !column.generated_sql.empty())
            .Char("attidentity", column.identity == catalog::Identity::kAlways      ? 'a'
                                 : column.identity == catalog::Identity::kByDefault ? 'd'
                                                                                    : 0)
            .Char("attgenerated", column.generated_sql.empty() ? 0 : 's')
            .Emit();
      }
    }
    for (const sql::VirtualTable* table : s_.db->system.All()) {
      if (!Wants("attrelid", table->oid)) continue;
      for (size_t i = 0; i < table->columns.size(); ++i) {
        const sql::OutputColumn& column = table->columns[i];
        AttributeRow(table->oid, column.name, column.type, static_cast<int>(i) + 1);
        row_.Bool("attnotnull", IsNeverNull(*table, column)).Emit();
      }
    }
  }

  void TypeRow(uint32_t oid, std::string_view name, uint32_t space, uint32_t owner, int length,
               char kind, char category, bool preferred, uint32_t element, uint32_t array,
               uint32_t relation, uint32_t collation) {
    row_.Int("oid", oid)
        .Text("typname", name)
        .Int("typnamespace", space)
        .Int("typowner", owner)
        .Int("typlen", length)
        .Bool("typbyval", length > 0 && length <= 8)
        .Char("typtype", kind)
        .Char("typcategory", category)
        .Bool("typispreferred", preferred)
        .Bool("typisdefined", true)
        .Char("typdelim", ',')
        .Int("typrelid", relation)
        .Int("typsubscript", element != 0 ? 6179 : 0)
        .Int("typelem", element)
        .Int("typarray", array)
        .Int("typinput", kind == 'c'   ? 2290
                         : kind == 'e' ? 3504
                         : element != 0 && category == 'A' && length < 0 && !TypeFromOid(oid)
                             ? 750
                             : TypeInputFunction(TypeFromOid(oid).value_or(Type{})))
        .Int("typoutput", kind == 'e'    ? 3507
                          : element != 0 ? 751
                                         : 31)
        .Int("typreceive", kind == 'e'    ? 3532
                           : element != 0 ? 2400
                                          : 31)
        .Int("typsend", kind == 'e'    ? 3533
                        : element != 0 ? 2401
                                       : 31)
        .Int("typmodin", 0)
        .Int("typmodout", 0)
        .Int("typanalyze", 0)
        .Char("typalign", 'i')
        .Char("typstorage", length > 0 ? 'p' : 'x')
        .Bool("typnotnull", false)
        .Int("typbasetype", 0)
        .Int("typtypmod", -1)
        .Int("typndims", 0)
        .Int("typcollation", collation)
        .Emit();
  }

  void TypeRows() {
    for (TypeId id : kListedTypes) {
      const Type type = MakeType(id);
      const bool pseudo = CategoryOf(type) == 'P';
      const bool has_array = !pseudo && id != TypeId::kUnknown && id != TypeId::kPgNodeTree;
      const uint32_t array = has_array ? OidOf(ArrayOf(id)) : 0;
      uint32_t element = id == TypeId::kInt2vector  ? 21
                         : id == TypeId::kOidvector ? 26
                         : id == TypeId::kName      ? 18
                                                    : 0;
      if (Wants("oid", OidOf(type))) {
        TypeRow(OidOf(type), TypeName(type), kPgCatalogOid, kOwnerOid, TypeLength(type),
                pseudo ? 'p' : 'b', CategoryOf(type), IsPreferred(type), element, array, 0,
                CollationOf(type));
      }
      if (array != 0 && Wants("oid", array)) {
        TypeRow(array, TypeName(ArrayOf(id)), kPgCatalogOid, kOwnerOid, -1, 'b', 'A', false,
                OidOf(type), 0, 0, CollationOf(type));
      }
    }
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind == catalog::RelationKind::kSequence) continue;
      const uint32_t oid = table->oid() + 0x20000000u;
      if (!Wants("oid", oid)) continue;
      TypeRow(oid, table->name, s_.NamespaceOid(table->parent), OwnerOid(table->owner), -1, 'c',
              'C', false, 0, 0, table->oid(), 0);
    }
    for (const catalog::TablePtr& made : MadeTypes()) {
      const EnumType& type = *made->enumeration;
      const uint32_t space = s_.NamespaceOid(made->parent), owner = OwnerOid(made->owner);
      if (Wants("oid", type.oid)) {
        TypeRow(type.oid, type.name, space, owner, 4, 'e', 'E', false, 0, type.array_oid, 0, 0);
      }
      if (Wants("oid", type.array_oid)) {
        TypeRow(type.array_oid, "_" + type.name, space, owner, -1, 'b', 'A', false, type.oid, 0, 0,
                0);
      }
    }
  }

  void Enums() {
    for (const catalog::TablePtr& made : MadeTypes()) {
      if (!Wants("enumtypid", made->oid())) continue;
      double order = 0;
      for (const EnumLabel& label : made->enumeration->labels) {
        row_.Int("oid", label.oid)
            .Int("enumtypid", made->oid())
            .Double("enumsortorder", ++order)
            .Text("enumlabel", label.name)
            .Emit();
      }
    }
  }

  void Index() {
    for (const catalog::TablePtr& table : Relations()) {
      if (!Wants("indrelid", table->oid())) continue;
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (IsPrimaryHidden(index) || !Wants("indexrelid", index.oid)) continue;
        std::vector<int64_t> keys, options, collations, classes;
        std::string expressions;
        for (const catalog::IndexColumn& part : index.key) {
          keys.push_back(part.expression.empty() ? AttributeNumber(*table, part.column) : 0);
          const bool descending = part.direction == codec::Direction::kDescending;
          options.push_back((descending ? 1 : 0) |
                            (part.nulls == codec::NullPlacement::kFirst ? 2 : 0));
          const Type type = IndexPartType(*table, part);
          collations.push_back(part.collation != nullptr ? part.collation->oid : CollationOf(type));
          classes.push_back(part.opclass.empty() ? OpclassOf(type) : OpclassOf(part.opclass));
          if (part.expression.empty()) continue;
          if (!expressions.empty()) expressions += ", ";
          expressions += part.expression;
        }
        for (catalog::ColumnId stored : index.stored)
          keys.push_back(AttributeNumber(*table, stored));
        row_.Int("indexrelid", index.oid)
            .Int("indrelid", table->oid())
            .Int("indnatts", static_cast<int64_t>(keys.size()))
            .Int("indnkeyatts", static_cast<int64_t>(index.key.size()))
            .Bool("indisunique", index.unique)
            .Bool("indnullsnotdistinct", index.nulls_not_distinct)
            .Bool("indisprimary", index.primary)
            .Bool("indisexclusion", false)
            .Bool("indimmediate", !index.deferrable)
            .Bool("indisclustered", false)
            .Bool("indisvalid", index.state == catalog::IndexState::kPublic)
            .Bool("indcheckxmin", false)
            .Bool("indisready", index.state == catalog::IndexState::kPublic ||
                                    index.state == catalog::IndexState::kWriteOnly)
            .Bool("indislive", true)
            .Bool("indisreplident", false)
            .IntArray("indkey", keys, 0)
            .IntArray("indcollation", collations, 0)
            .IntArray("indclass", classes, 0)
            .IntArray("indoption", options, 0);
        if (!expressions.empty()) row_.Text("indexprs", expressions);
        if (!index.predicate.empty()) row_.Text("indpred", index.predicate);
        row_.Emit();
      }
    }
  }

  static uint32_t OpclassOf(Type type) {
    if (type.id == TypeId::kEnum && !type.array) type = MakeType(TypeId::kAnyenum);
    return 10000 + OidOf(type) % 10000;
  }
  static uint32_t OpclassOf(std::string_view name) {
    uint32_t oid = 11900;
    for (const sql::OperatorClass& one : sql::OperatorClasses()) {
      if (one.name == name) break;
      ++oid;
    }
    return oid;
  }

  void Opclass() {
    for (TypeId id : kListedTypes) {
      const Type type = MakeType(id);
      if (!IsStorable(type) || !codec::IsKeyType(type)) continue;
      row_.Int("oid", OpclassOf(type))
          .Int("opcmethod", kBtreeAm)
          .Text("opcname", std::string(sql::DefaultOperatorClass(type)))
          .Int("opcnamespace", kPgCatalogOid)
          .Int("opcowner", kOwnerOid)
          .Int("opcfamily", 0)
          .Int("opcintype", OidOf(type))
          .Bool("opcdefault", true)
          .Int("opckeytype", 0)
          .Emit();
    }
    row_.Int("oid", OpclassOf(MakeType(TypeId::kAnyenum)))
        .Int("opcmethod", kBtreeAm)
        .Text("opcname", "enum_ops")
        .Int("opcnamespace", kPgCatalogOid)
        .Int("opcowner", kOwnerOid)
        .Int("opcfamily", 0)
        .Int("opcintype", OidOf(MakeType(TypeId::kAnyenum)))
        .Bool("opcdefault", true)
        .Int("opckeytype", 0)
        .Emit();
    for (const sql::OperatorClass& one : sql::OperatorClasses()) {
      if (one.is_default || one.type == TypeId::kInvalid) continue;
      row_.Int("oid", OpclassOf(one.name))
          .Int("opcmethod", kBtreeAm)
          .Text("opcname", std::string(one.name))
          .Int("opcnamespace", kPgCatalogOid)
          .Int("opcowner", kOwnerOid)
          .Int("opcfamily", 0)
          .Int("opcintype", OidOf(MakeType(one.type)))
          .Bool("opcdefault", false)
          .Int("opckeytype", 0)
          .Emit();
    }
  }

  void ConstraintRow(uint32_t oid, std::string_view name, const catalog::TableDescriptor& table,
                     char kind) {
    row_.Int("oid", oid)
        .Text("conname", name)
        .Int("connamespace", s_.NamespaceOid(table.parent))
        .Char("contype", kind)
        .Bool("condeferrable", false)
        .Bool("condeferred", false)
        .Bool("convalidated", true)
        .Int("conrelid", table.oid())
        .Int("contypid", 0)
        .Int("conindid", 0)
        .Int("conparentid", 0)
        .Int("confrelid", 0)
        .Char("confupdtype", ' ')
        .Char("confdeltype", ' ')
        .Char("confmatchtype", ' ')
        .Bool("conislocal", true)
        .Int("coninhcount", 0)
        .Bool("connoinherit", kind != 'c');
  }

  static char ActionLetter(catalog::ForeignKeyAction action) {
    switch (action) {
      case catalog::ForeignKeyAction::kRestrict: return 'r';
      case catalog::ForeignKeyAction::kCascade: return 'c';
      case catalog::ForeignKeyAction::kSetNull: return 'n';
      case catalog::ForeignKeyAction::kSetDefault: return 'd';
      default: return 'a';
    }
  }

  // The oid of the unique index that a foreign key rests on; 0: none.
  static uint32_t ReferencedIndex(const catalog::TableDescriptor& referenced,
                                  const catalog::ForeignKey& key) {
    for (const catalog::IndexDescriptor& index : referenced.indexes) {
      if (!index.unique || !index.predicate.empty() ||
          index.key.size() != key.referenced_columns.size())
        continue;
      const bool all =
          std::all_of(index.key.begin(), index.key.end(), [&](const catalog::IndexColumn& part) {
            return std::find(key.referenced_columns.begin(), key.referenced_columns.end(),
                             part.column) != key.referenced_columns.end();
          });
      if (all) return index.oid;
    }
    return 0;
  }

  void Constraint() {
    for (const catalog::TablePtr& table : Relations()) {
      if (!Wants("conrelid", table->oid())) continue;
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (!index.constraint) continue;
        std::vector<int64_t> keys;
        for (const catalog::IndexColumn& part : index.key)
          keys.push_back(AttributeNumber(*table, part.column));
        ConstraintRow(ConstraintOid(index), index.name, *table, index.primary ? 'p' : 'u');
        row_.Bool("condeferrable", index.deferrable)
            .Int("conindid", index.oid)
            .IntArray("conkey", keys)
            .Emit();
      }
      for (const catalog::CheckConstraint& check : table->checks) {
        ConstraintRow(check.oid, check.name, *table, 'c');
        row_.Bool("convalidated", check.validated);
        const std::vector<int16_t> columns = CheckedColumns(*table, check);
        const std::vector<int64_t> keys(columns.begin(), columns.end());
        row_.IntArray("conkey", keys).Text("conbin", check.expression).Emit();
      }
      for (const catalog::ForeignKey& key : table->foreign_keys) {
        catalog::TablePtr referenced = catalog_->GetTable(key.referenced_table);
        if (referenced == nullptr) continue;
        std::vector<int64_t> keys, referenced_keys;
        for (catalog::ColumnId column : key.columns)
          keys.push_back(AttributeNumber(*table, column));
        for (catalog::ColumnId column : key.referenced_columns) {
          referenced_keys.push_back(AttributeNumber(*referenced, column));
        }
        std::vector<int64_t> set;
        for (catalog::ColumnId column : key.on_delete_columns)
          set.push_back(AttributeNumber(*table, column));
        ConstraintRow(key.oid, key.name, *table, 'f');
        if (!set.empty()) row_.IntArray("confdelsetcols", set);
        row_.Bool("convalidated", key.validated);
        row_.Bool("condeferrable", key.deferrable)
            .Bool("condeferred", key.initially_deferred)
            .Int("conindid", ReferencedIndex(*referenced, key))
            .Int("confrelid", referenced->oid())
            .Char("confupdtype", ActionLetter(key.on_update))
            .Char("confdeltype", ActionLetter(key.on_delete))
            .Char("confmatchtype", 's')
            .IntArray("conkey", keys)
            .IntArray("confkey", referenced_keys)
            .Emit();
      }
    }
  }

  static uint32_t AttrdefOid(const catalog::TableDescriptor& table, int number) {
    return 0x80000000u + table.oid() * 64 + static_cast<uint32_t>(number);
  }

  static bool HasAttrdef(const catalog::TableDescriptor& table,
                         const catalog::ColumnDescriptor& column) {
    return table.kind == catalog::RelationKind::kTable && !column.dropped &&
           column.identity == catalog::Identity::kNone &&
           !(column.generated_sql.empty() && column.default_sql.empty());
  }

  void Attrdef() {
    for (const catalog::TablePtr& table : Relations()) {
      if (!Wants("adrelid", table->oid()) || table->kind != catalog::RelationKind::kTable) continue;
      for (const Attribute& attribute : AttributesOf(*table)) {
        const catalog::ColumnDescriptor& column = *attribute.column;
        if (!HasAttrdef(*table, column)) continue;
        const std::string& text =
            column.generated_sql.empty() ? column.default_sql : column.generated_sql;
        row_.Int("oid", AttrdefOid(*table, attribute.number))
            .Int("adrelid", table->oid())
            .Int("adnum", attribute.number)
            .Text("adbin", text)
            .Emit();
      }
    }
  }

  void Depend() {
    constexpr uint32_t kClassId = 1259, kAttrdefId = 2604, kConstraintId = 2606, kTypeId = 1247,
                       kRewriteId = 2618, kNamespaceId = 2615;
    auto emit = [this](uint32_t class_id, uint32_t object, int sub, uint32_t ref_class,
                       uint32_t ref_object, int ref_sub, char kind) {
      row_.Int("classid", class_id)
          .Int("objid", object)
          .Int("objsubid", sub)
          .Int("refclassid", ref_class)
          .Int("refobjid", ref_object)
          .Int("refobjsubid", ref_sub)
          .Char("deptype", kind)
          .Emit();
    };
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind == catalog::RelationKind::kSequence &&
          table->sequence.owner_table.value != 0) {
        catalog::TablePtr owner = catalog_->GetTable(table->sequence.owner_table);
        if (owner != nullptr) {
          const catalog::ColumnDescriptor* column = owner->FindColumn(table->sequence.owner_column);
          const bool identity = column != nullptr && column->identity != catalog::Identity::kNone;
          emit(kClassId, table->oid(), 0, kClassId, owner->oid(),
               AttributeNumber(*owner, table->sequence.owner_column), identity ? 'i' : 'a');
        }
      }
      emit(kClassId, table->oid(), 0, kNamespaceId, s_.NamespaceOid(table->parent), 0, 'n');
      for (const Attribute& attribute : AttributesOf(*table)) {
        const catalog::ColumnDescriptor& column = *attribute.column;
        if (column.dropped) continue;
        if (column.type.enumeration != nullptr && table->kind == catalog::RelationKind::kTable) {
          emit(kClassId, table->oid(), attribute.number, kTypeId, OidOf(column.type), 0, 'n');
        }
        if (!HasAttrdef(*table, column)) continue;
        const uint32_t attrdef = AttrdefOid(*table, attribute.number);
        emit(kAttrdefId, attrdef, 0, kClassId, table->oid(), attribute.number, 'a');
        const catalog::TablePtr sequence = catalog_->GetTable(column.sequence);
        if (sequence != nullptr) emit(kAttrdefId, attrdef, 0, kClassId, sequence->oid(), 0, 'n');
      }
      if (table->kind == catalog::RelationKind::kView) {
        const uint32_t rule = table->oid() + kFirstRule;
        emit(kRewriteId, rule, 0, kClassId, table->oid(), 0, 'i');
        std::vector<sql::NameUse> uses;
        if (!PlanViewText(s_, *table, &uses).ok()) uses.clear();
        std::set<std::pair<uint64_t, int>> seen;  // relation, column
        for (const sql::NameUse& use : uses) {
          const catalog::TablePtr used = catalog_->GetTable(use.table);
          if (used == nullptr) continue;
          const int number = use.column.value == 0 ? 0 : AttributeNumber(*used, use.column);
          if (!seen.insert({use.table.value, number}).second) continue;
          emit(kRewriteId, rule, 0, kClassId, used->oid(), number, 'n');
        }
      }
      for (const catalog::CheckConstraint& check : table->checks) {
        for (const int16_t number : CheckedColumns(*table, check))
          emit(kConstraintId, check.oid, 0, kClassId, table->oid(), number, 'a');
      }
      for (const catalog::ForeignKey& key : table->foreign_keys) {
        const catalog::TablePtr referenced = catalog_->GetTable(key.referenced_table);
        if (referenced == nullptr) continue;
        for (const catalog::ColumnId column : key.columns) {
          emit(kConstraintId, key.oid, 0, kClassId, table->oid(), AttributeNumber(*table, column),
               'a');
        }
        for (const catalog::ColumnId column : key.referenced_columns) {
          emit(kConstraintId, key.oid, 0, kClassId, referenced->oid(),
               AttributeNumber(*referenced, column), 'n');
        }
        if (const uint32_t index = ReferencedIndex(*referenced, key)) {
          emit(kConstraintId, key.oid, 0, kClassId, index, 0, 'n');
        }
      }
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (IsPrimaryHidden(index)) continue;
        if (index.constraint) {
          emit(kClassId, index.oid, 0, kConstraintId, ConstraintOid(index), 0, 'i');
          for (const catalog::IndexColumn& part : index.key) {
            emit(kConstraintId, ConstraintOid(index), 0, kClassId, table->oid(),
                 AttributeNumber(*table, part.column), 'a');
          }
        } else {
          for (const Attribute& attribute : AttributesOf(*table)) {
            if (attribute.column->dropped) continue;
            const bool in_key = std::any_of(
                index.key.begin(), index.key.end(), [&](const catalog::IndexColumn& part) {
                  return part.expression.empty() && part.column == attribute.column->id;
                });
            const Result<bool> mentioned = IndexMentions(index, attribute.column->name);
            if (!in_key && !(mentioned.ok() && *mentioned)) continue;
            emit(kClassId, index.oid, 0, kClassId, table->oid(), attribute.number, 'a');
          }
        }
      }
    }
  }

  void Description() {
    auto emit = [this](uint32_t object, uint32_t class_id, int sub, const std::string& text) {
      if (text.empty()) return;
      row_.Int("objoid", object)
          .Int("classoid", class_id)
          .Int("objsubid", sub)
          .Text("description", text)
          .Emit();
    };
    for (const catalog::TablePtr& table : Relations()) {
      emit(table->oid(), 1259, 0, table->comment);
      for (const Attribute& attribute : AttributesOf(*table)) {
        emit(table->oid(), 1259, attribute.number, attribute.column->comment);
      }
      for (const catalog::IndexDescriptor& index : table->indexes)
        emit(index.oid, 1259, 0, index.comment);
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (index.constraint) emit(ConstraintOid(index), 2606, 0, index.constraint_comment);
      }
      for (const catalog::CheckConstraint& check : table->checks)
        emit(check.oid, 2606, 0, check.comment);
      for (const catalog::ForeignKey& key : table->foreign_keys)
        emit(key.oid, 2606, 0, key.comment);
    }
    for (const catalog::TablePtr& type : MadeTypes()) emit(type->oid(), 1247, 0, type->comment);
    for (const catalog::TablePtr& one : MadeOf(catalog::RelationKind::kCollation))
      emit(one->oid(), 3456, 0, one->comment);
    if (catalog::NamespacePtr own = catalog_->GetNamespace(s_.database_id)) {
      emit(s_.NamespaceOid(s_.database_id), 2615, 0, "standard public schema");
    }
    for (const catalog::NamespacePtr& space : Schemas())
      emit(s_.NamespaceOid(space->id), 2615, 0, space->comment);
  }

  void Shdescription() {
    for (const catalog::NamespacePtr& space : catalog_->ListNamespaces(catalog::kRootNamespace)) {
      if (space->comment.empty()) continue;
      row_.Int("objoid", space->oid())
          .Int("classoid", 1262)
          .Text("description", space->comment)
          .Emit();
    }
    for (const Role* role : s_.Roles().List()) {
      if (role->comment.empty()) continue;
      row_.Int("objoid", role->oid).Int("classoid", 1260).Text("description", role->comment).Emit();
    }
  }

  void Collation() {
    struct Known {
      uint32_t oid;
      const char* name;
      char provider;
    };
    for (const Known& known :
         {Known{kDefaultCollation, "default", 'd'}, Known{kCCollation, "C", 'c'},
          Known{951, "POSIX", 'c'}, Known{962, "ucs_basic", 'c'}}) {
      row_.Int("oid", known.oid)
          .Text("collname", known.name)
          .Int("collnamespace", kPgCatalogOid)
          .Int("collowner", kOwnerOid)
          .Char("collprovider", known.provider)
          .Bool("collisdeterministic", true)
          .Int("collencoding", known.oid == 962 ? 6 : -1);
      if (known.provider == 'c') row_.Text("collcollate", "C").Text("collctype", "C");
      row_.Emit();
    }
    const auto icu = [this](const struct Collation& one, uint32_t space, uint32_t owner) {
      if (!Wants("oid", one.oid)) return;
      row_.Int("oid", one.oid)
          .Text("collname", one.name)
          .Int("collnamespace", space)
          .Int("collowner", owner)
          .Char("collprovider", 'i')
          .Bool("collisdeterministic", one.deterministic)
          .Int("collencoding", -1)
          .Text("colliculocale", one.locale);
      if (!one.version.empty()) row_.Text("collversion", one.version);
      row_.Emit();
    };
    for (const auto& one : BuiltInCollations()) icu(one, kPgCatalogOid, kOwnerOid);
    for (const catalog::TablePtr& made : MadeOf(catalog::RelationKind::kCollation)) {
      icu(*made->collation, s_.NamespaceOid(made->parent), OwnerOid(made->owner));
    }
  }

  void Language() {
    struct Known {
      uint32_t oid;
      const char* name;
    };
    for (const Known& known : {Known{12, "internal"}, Known{14, "sql"}}) {
      row_.Int("oid", known.oid)
          .Text("lanname", known.name)
          .Int("lanowner", kOwnerOid)
          .Bool("lanispl", false)
          .Bool("lanpltrusted", known.oid == 14)
          .Int("lanplcallfoid", 0)
          .Int("laninline", 0)
          .Int("lanvalidator", 0)
          .Emit();
    }
  }

  void Tablespace() {
    row_.Int("oid", 1663).Text("spcname", "pg_default").Int("spcowner", kOwnerOid).Emit();
    row_.Int("oid", 1664).Text("spcname", "pg_global").Int("spcowner", kOwnerOid).Emit();
  }

  void Proc() {
    for (const sql::FunctionSpec& function : sql::AllFunctions()) {
      if (function.name.empty() ||
          !(std::isalpha(static_cast<unsigned char>(function.name[0])) || function.name[0] == '_'))
        continue;
      const uint32_t oid = FunctionOid(function);
      if (!Wants("oid", oid)) continue;
      std::vector<int64_t> types;
      for (const Type& type : function.args) types.push_back(OidOf(type));
      ProcRow(oid, function.name, 'f', OidOf(function.result), function.strict,
              function.volatility == sql::Volatility::kImmutable ? 'i'
              : function.volatility == sql::Volatility::kStable  ? 's'
                                                                 : 'v',
              function.set != nullptr, types);
    }
    uint32_t oid = 15000;
    for (const sql::AggregateSpec& aggregate : sql::AllAggregates()) {
      ++oid;
      if (!Wants("oid", oid)) continue;
      std::vector<int64_t> types;
      for (const Type& type : aggregate.args) types.push_back(OidOf(type));
      ProcRow(oid, aggregate.name, 'a', OidOf(aggregate.result), false, 'i', false, types);
    }
  }

  void ProcRow(uint32_t oid, std::string_view name, char kind, uint32_t result, bool strict,
               char volatility, bool set, const std::vector<int64_t>& types) {
    row_.Int("oid", oid)
        .Text("proname", name)
        .Int("pronamespace", kPgCatalogOid)
        .Int("proowner", kOwnerOid)
        .Int("prolang", 12)
        .Double("procost", 1)
        .Double("prorows", set ? 1000 : 0)
        .Int("provariadic", 0)
        .Int("prosupport", 0)
        .Char("prokind", kind)
        .Bool("prosecdef", false)
        .Bool("proleakproof", false)
        .Bool("proisstrict", strict)
        .Bool("proretset", set)
        .Char("provolatile", volatility)
        .Char("proparallel", 's')
        .Int("pronargs", static_cast<int64_t>(types.size()))
        .Int("pronargdefaults", 0)
        .Int("prorettype", result)
        .IntArray("proargtypes", types, 0)
        .Text("prosrc", name)
        .Emit();
  }

  void Operator() {
    uint32_t oid = 90;
    for (const sql::FunctionSpec& function : sql::AllFunctions()) {
      if (function.name.empty() || std::isalpha(static_cast<unsigned char>(function.name[0])) ||
          function.name[0] == '_')
        continue;
      ++oid;
      const bool binary = function.args.size() == 2;
      row_.Int("oid", oid)
          .Text("oprname", function.name)
          .Int("oprnamespace", kPgCatalogOid)
          .Int("oprowner", kOwnerOid)
          .Char("oprkind", binary ? 'b' : 'l')
          .Bool("oprcanmerge", false)
          .Bool("oprcanhash", function.comparison == sql::FunctionSpec::Comparison::kEqual)
          .Int("oprleft", binary ? OidOf(function.args[0]) : 0)
          .Int("oprright", function.args.empty() ? 0 : OidOf(function.args.back()))
          .Int("oprresult", OidOf(function.result))
          .Int("oprcom", 0)
          .Int("oprnegate", 0)
          .Int("oprcode", FunctionOid(function))
          .Int("oprrest", 0)
          .Int("oprjoin", 0)
          .Emit();
    }
  }

  void Sequence() {
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind != catalog::RelationKind::kSequence || !Wants("seqrelid", table->oid()))
        continue;
      const catalog::SequenceOptions& options = table->sequence;
      row_.Int("seqrelid", table->oid())
          .Int("seqtypid", OidOf(options.type))
          .Int("seqstart", options.start)
          .Int("seqincrement", options.increment)
          .Int("seqmax", options.max)
          .Int("seqmin", options.min)
          .Int("seqcache", options.cache)
          .Bool("seqcycle", options.cycle)
          .Emit();
    }
  }

  // What a sequence holds when it is read as a table.
  void SequenceState() {
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind != catalog::RelationKind::kSequence || !Wants("seqrelid", table->oid()))
        continue;
      const Result<std::pair<int64_t, bool>> last = s_.db->sequences->Peek(*table);
      if (!last.ok()) continue;
      row_.Int("seqrelid", table->oid())
          .Int("last_value", last->first)
          .Int("log_cnt", 0)
          .Bool("is_called", last->second)
          .Emit();
    }
  }

  void Sequences() {
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind != catalog::RelationKind::kSequence) continue;
      const catalog::SequenceOptions& options = table->sequence;
      row_.Text("schemaname", s_.SchemaName(table->parent))
          .Text("sequencename", table->name)
          .Text("sequenceowner", table->owner)
          .Int("data_type", OidOf(options.type))
          .Int("start_value", options.start)
          .Int("min_value", options.min)
          .Int("max_value", options.max)
          .Int("increment_by", options.increment)
          .Bool("cycle", options.cycle)
          .Int("cache_size", options.cache);
      Result<std::pair<int64_t, bool>> last = s_.db->sequences->Peek(*table);
      if (last.ok() && last->second) row_.Int("last_value", last->first);
      row_.Emit();
    }
  }

  void Tables() {
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind != catalog::RelationKind::kTable) continue;
      row_.Text("schemaname", s_.SchemaName(table->parent))
          .Text("tablename", table->name)
          .Text("tableowner", table->owner)
          .Bool("hasindexes", table->indexes.size() > 1 || table->primary().constraint)
          .Bool("hasrules", false)
          .Bool("hastriggers", !table->foreign_keys.empty())
          .Bool("rowsecurity", false)
          .Emit();
    }
    for (const sql::VirtualTable* table : s_.db->system.All()) {
      if (table->oid >= 12000) continue;
      row_.Text("schemaname", table->schema)
          .Text("tablename", table->name)
          .Text("tableowner", "cellar")
          .Bool("hasindexes", true)
          .Bool("hasrules", false)
          .Bool("hastriggers", false)
          .Bool("rowsecurity", false)
          .Emit();
    }
  }

  void Views() {
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind != catalog::RelationKind::kView) continue;
      row_.Text("schemaname", s_.SchemaName(table->parent))
          .Text("viewname", table->name)
          .Text("viewowner", table->owner)
          .Text("definition", ViewText(s_, *table, Qualify::kHidden) + ";")
          .Emit();
    }
  }

  void Indexes() {
    for (const catalog::TablePtr& table : Relations()) {
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (IsPrimaryHidden(index)) continue;
        row_.Text("schemaname", s_.SchemaName(table->parent))
            .Text("tablename", table->name)
            .Text("indexname", index.name)
            .Text("indexdef", IndexDefinition(s_, *table, index, 0, false))
            .Emit();
      }
    }
  }

  void Rewrite() {
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind != catalog::RelationKind::kView) continue;
      row_.Int("oid", table->oid() + kFirstRule)
          .Text("rulename", "_RETURN")
          .Int("ev_class", table->oid())
          .Char("ev_type", '1')
          .Char("ev_enabled", 'O')
          .Bool("is_instead", true)
          .Text("ev_qual", "<>")
          .Text("ev_action", table->view_sql)
          .Emit();
    }
  }

  void SettingRows() {
    for (const SettingInfo& info : s_.settings.All()) {
      row_.Text("name", info.name)
          .Text("setting", info.value)
          .TextOrNull("unit", info.unit)
          .Text("category", "Settings")
          .Text("short_desc", info.description)
          .Text("context", "user")
          .Text("vartype", info.kind)
          .Text("source", info.value == info.reset_value ? "default" : "session")
          .Text("boot_val", info.reset_value)
          .Text("reset_val", info.reset_value)
          .Bool("pending_restart", false)
          .Emit();
    }
  }

  void PreparedStatements() {
    for (const auto& [name, prepared] : s_.statements) {
      if (name.empty()) continue;
      std::vector<Value> types;
      for (const Type& type : prepared->parameter_types) {
        types.emplace_back(MakeType(TypeId::kRegtype), Datum::Int(OidOf(type)));
      }
      row_.Text("name", name)
          .Text("statement", prepared->text)
          .Int("prepare_time", prepared->prepared_micros)
          .Array("parameter_types", types)
          .Bool("from_sql", prepared->from_sql)
          .Int("generic_plans", 0)
          .Int("custom_plans", 0)
          .Emit();
    }
  }

  void Cursors() {
    for (const auto& [name, portal] : s_.portals) {
      row_.Text("name", name)
          .Text("statement", portal->prepared->text)
          .Bool("is_holdable", portal->hold)
          .Bool("is_binary", false)
          .Bool("is_scrollable", portal->scroll)
          .Int("creation_time", NowMicros())
          .Emit();
    }
  }

  void Activity() {
    const bool sees_all = s_.HasPrivilegesOf(kReadAllStatsRole);
    const auto time = [this](std::string_view column, int64_t micros) {
      if (micros != 0) row_.Int(column, micros);
    };
    const std::map<int32_t, const WaitEvent*> lock_waits = LockWaits(&s_.db->engine->locks());
    for (const SessionView& view : s_.db->sessions.Views()) {
      row_.Int("datid", view.database_id + catalog::TableDescriptor::kFirstOid)
          .Text("datname", view.database)
          .Int("pid", view.pid)
          .Int("usesysid", view.login_oid)
          .Text("usename", view.user);
      if (!sees_all && !s_.HasPrivilegesOf(view.login_oid)) {
        row_.Text("query", "<insufficient privilege>").Emit();
        continue;
      }
      row_.TextOrNull("client_addr", view.client_address)
          .Text("application_name", view.application_name)
          .Text("state", SessionStateName(view.state))
          .Text("query", view.query)
          .Text("backend_type", view.of_job ? "job" : "client backend");
      time("backend_start", view.began_micros);
      time("xact_start", view.transaction_micros);
      time("query_start", view.query_micros);
      time("state_change", view.changed_micros);
      const WaitEvent* wait = nullptr;
      if (const auto at = lock_waits.find(view.pid); at != lock_waits.end()) wait = at->second;
      if (wait == nullptr && view.state != SessionState::kActive && !view.of_job)
        wait = &kWaitsForClient;
      if (wait != nullptr) row_.Text("wait_event_type", wait->type).Text("wait_event", wait->name);
      row_.Emit();
    }
  }

  void Locks() {
    LockRows(&s_.db->engine->locks(), Relations(), catalog_->GetNamespace(s_.database_id)->oid(),
             &row_);
  }

  void TableStatistics() {
    for (const catalog::TablePtr& table : Relations()) {
      if (table->kind != catalog::RelationKind::kTable) continue;
      row_.Int("relid", table->oid())
          .Text("schemaname", s_.SchemaName(table->parent))
          .Text("relname", table->name)
          .Int("n_live_tup", static_cast<int64_t>(s_.EstimateRows(*table)));
      if (const StatisticsService::Pointer known = s_.db->statistics->Find(*table)) {
        row_.Int(known->automatic ? "last_autoanalyze" : "last_analyze", known->gathered_micros);
      }
      row_.Emit();
    }
  }

  Session::Impl& s_;
  const sql::VirtualTable& table_;
  SystemRow row_;
  catalog::SnapshotPtr catalog_;
  std::string key_name_;
  Datum key_;
};

}  // namespace

Status Session::Impl::Generate(std::string_view schema, std::string_view name, int key_column,
                               Datum key, RowBatch* rows) {
  const sql::VirtualTable* table = db->system.Find(schema, name);
  if (table == nullptr) return InternalError("there is no system table {}.{}", schema, name);
  std::vector<Type> types;
  for (const sql::OutputColumn& column : table->columns) types.push_back(column.type);
  rows->Reset(types);
  if (name == "cellar_usage") {
    SystemRow row(*table, rows);
    return UsageRows(this, *CurrentCatalog(), &row);
  }
  if (GeneratePrivilegeRows(*this, *table, rows)) return Status();
  if (name == "pg_stats") {
    SystemRow row(*table, rows);
    StatisticsRows(this, &row);
    return Status();
  }
  if (schema == "information_schema") {
    GenerateInformationSchema(*this, *table, rows);
  } else {
    Generator(*this, *table, rows, key_column, key).Run();
  }
  return Status();
}

}  // namespace cellar::session
