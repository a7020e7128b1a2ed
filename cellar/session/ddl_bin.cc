// The recycle bin: what DROP and TRUNCATE leave there, UNDROP, PURGE, and for how long it is kept.
#include <algorithm>
#include <charconv>
#include <set>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/ddl.h"
#include "cellar/session/system_rows.h"
#include "cellar/session/zones.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/table/usage.h"
#include "cellar/types/datetime.h"

namespace cellar::session {
namespace {

using catalog::NamespacePtr;
using catalog::ObjectState;
using catalog::RelationKind;
using catalog::TableDescriptor;
using catalog::TablePtr;

constexpr int64_t kDayMicros = int64_t{24} * 3600 * 1000000;

// A chain of namespaces longer than this is a cycle in damaged descriptors.
constexpr int kMaxDepth = 100;

NamespacePtr AnyNamespace(const catalog::CatalogSnapshot& catalog, catalog::NamespaceId id) {
  NamespacePtr space = catalog.GetNamespace(id);
  return space != nullptr ? space : catalog.GetDroppedNamespace(id);
}

// Where a namespace is, or was, by names. A database is its own schema public.
struct Place {
  std::string database, schema;
  bool operator==(const Place&) const = default;
};
Place PlaceOf(const catalog::CatalogSnapshot& catalog, catalog::NamespaceId id) {
  NamespacePtr space = AnyNamespace(catalog, id);
  if (space == nullptr) return {};
  if (space->parent == catalog::kRootNamespace) return {space->name, "public"};
  NamespacePtr database = AnyNamespace(catalog, space->parent);
  return {database == nullptr ? "" : database->name, space->name};
}

bool IsIn(const catalog::CatalogSnapshot& catalog, catalog::NamespaceId inner,
          catalog::NamespaceId outer) {
  for (int depth = 0; depth < kMaxDepth && inner != catalog::kRootNamespace; ++depth) {
    if (inner == outer) return true;
    NamespacePtr space = AnyNamespace(catalog, inner);
    if (space == nullptr) return false;
    inner = space->parent;
  }
  return false;
}

const char* KindName(RelationKind kind) {
  switch (kind) {
    case RelationKind::kView: return "view";
    case RelationKind::kSequence: return "sequence";
    case RelationKind::kType: return "type";
    case RelationKind::kCollation: return "collation";
    default: return "table";
  }
}

std::optional<RelationKind> KindOf(ast::ObjectType type) {
  switch (type) {
    case ast::ObjectType::kTable: return RelationKind::kTable;
    case ast::ObjectType::kView: return RelationKind::kView;
    case ast::ObjectType::kSequence: return RelationKind::kSequence;
    case ast::ObjectType::kType: return RelationKind::kType;
    case ast::ObjectType::kCollation: return RelationKind::kCollation;
    default: return std::nullopt;
  }
}

std::string Spell(const std::vector<std::string>& parts) { return JoinNames(parts, "."); }

// What can come back first, and the newest of it.
template <typename Pointer>
bool ComesFirst(const Pointer& a, const Pointer& b) {
  const bool a_goes = a->state == ObjectState::kCollecting;
  const bool b_goes = b->state == ObjectState::kCollecting;
  if (a_goes != b_goes) return b_goes;
  return std::pair(a->drop_group, a->id.value) > std::pair(b->drop_group, b->id.value);
}

const ast::Option* OnlyRetention(const ast::OptionList& options, Status* status) {
  const ast::Option* found = nullptr;
  for (const ast::Option& option : options) {
    if (option.name == "retention") {
      found = &option;
      continue;
    }
    *status = SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                       "unrecognized parameter \"{}\"", option.name);
  }
  return found;
}

bool HasKey(const TableDescriptor& table, const std::vector<catalog::ColumnId>& columns) {
  const std::set<catalog::ColumnId> wanted(columns.begin(), columns.end());
  return std::any_of(table.indexes.begin(), table.indexes.end(), [&](const auto& index) {
    if (!index.unique || index.key.size() != wanted.size() || !index.predicate.empty())
      return false;
    return std::all_of(index.key.begin(), index.key.end(),
                       [&](const auto& part) { return wanted.contains(part.column); });
  });
}

bool HasColumns(const TableDescriptor& table, const std::vector<catalog::ColumnId>& columns) {
  return std::all_of(columns.begin(), columns.end(), [&](catalog::ColumnId id) {
    const catalog::ColumnDescriptor* column = table.FindColumn(id);
    return column != nullptr && !column->dropped;
  });
}

}  // namespace

// ---- Into the bin
// ---------------------------------------------------------------------------------------------

Result<uint64_t> Ddl::DropGroup() {
  if (drop_group_ == 0) {
    CELLAR_TRY_ASSIGN(drop_group_, Editor().AllocateId());
  }
  return drop_group_;
}

Result<catalog::DropMark> Ddl::MarkOf(std::optional<int64_t> retention,
                                      catalog::NamespaceId space) {
  catalog::DropMark mark;
  mark.ticks = s_.db->clock->Ticks();
  CELLAR_TRY_ASSIGN(mark.group, DropGroup());
  mark.by = s_.user;
  for (int depth = 0; !retention && space.value != 0 && depth < kMaxDepth; ++depth) {
    NamespacePtr holder = AnyNamespace(*Catalog(), space);
    if (holder == nullptr) break;
    retention = holder->zone.retention_micros;
    space = holder->parent;
  }
  mark.keep_micros = retention.value_or(s_.settings.GetInt("cellar.retention") * 1000000);
  return mark;
}

Status Ddl::Discard(const TablePtr& table) {
  if (!table->temporary) {
    CELLAR_TRY_ASSIGN(const catalog::DropMark mark,
                      MarkOf(table->zone.retention_micros, table->parent));
    return Editor().DropTable(table->id, mark);
  }
  if (table->kind == RelationKind::kSequence)
    s_.transaction->dropped_sequences.push_back(table->storage_id());
  return RemoveWithData(&Editor(), s_.transaction->access.get(), *table);
}

Status Ddl::DiscardNamespace(catalog::NamespaceId id) {
  NamespacePtr space = Catalog()->GetNamespace(id);
  if (space == nullptr) return Status();
  CELLAR_TRY_ASSIGN(const catalog::DropMark mark,
                    MarkOf(space->zone.retention_micros, space->parent));
  return Editor().DropNamespace(id, mark);
}

Status Ddl::TruncateOne(const TablePtr& table, bool restart_identity) {
  if (table->temporary) {
    CELLAR_TRY(s_.transaction->access->ClearTable(*table));
  } else {
    CELLAR_TRY_ASSIGN(const catalog::DropMark mark,
                      MarkOf(table->zone.retention_micros, table->parent));
    CELLAR_TRY(Editor().TruncateTable(table->id, mark));
  }
  for (const catalog::ColumnDescriptor& column : table->columns) {
    if (!restart_identity || column.dropped) continue;
    TablePtr sequence = Catalog()->GetTable(column.sequence);
    if (sequence == nullptr) continue;
    s_.transaction->dropped_sequences.push_back(sequence->storage_id());
    CELLAR_TRY(Editor().RestartSequence(sequence->id));
  }
  return Status();
}

Status RemoveWithData(catalog::CatalogEditor* editor, table::Access* access,
                      const TableDescriptor& table) {
  if (table.kind == RelationKind::kTable) {
    CELLAR_TRY(access->ClearTable(table));
    CELLAR_TRY(table::TableStore::DeleteRecords(table, access->transaction()));
  }
  return editor->RemoveTable(table.id);
}

// ---- What a name means in the bin
// ---------------------------------------------------------------------------------------------

// Dropped relations of this name and kind, the newest first.
Result<std::vector<TablePtr>> Ddl::FindDroppedTables(const ast::OwnStmt& statement) {
  const catalog::SnapshotPtr catalog = Catalog();
  const sql::NameScope& scope = s_.Scope();
  const std::vector<std::string>& parts = statement.object.parts;
  const RelationKind kind = *KindOf(statement.object_type);
  if (parts.size() > 3) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "improper qualified name (too many dotted names): {}", Spell(parts));
  }
  std::vector<std::string> schemas = scope.search_path;
  if (parts.size() > 1) schemas = {parts[parts.size() - 2]};
  const std::string& database = parts.size() > 2 ? parts[0] : scope.database_name;
  std::vector<TablePtr> named;
  for (const TablePtr& table : catalog->ListDroppedTables()) {
    if (table->kind == kind && table->name == parts.back() && !table->temporary)
      named.push_back(table);
  }
  std::vector<TablePtr> found;
  for (const std::string& schema : schemas) {
    for (const TablePtr& table : named) {
      if (PlaceOf(*catalog, table->parent) == Place{database, schema}) found.push_back(table);
    }
    if (!found.empty()) break;
  }
  std::sort(found.begin(), found.end(), ComesFirst<TablePtr>);
  if (statement.number != 0) {
    std::erase_if(found, [&](const TablePtr& table) {
      return table->id.value != static_cast<uint64_t>(statement.number);
    });
  }
  if (found.empty()) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable,
                    "{} \"{}\" is not in the recycle bin", KindName(kind), Spell(parts))
        .WithHint("SHOW DROPPED lists what is.");
  }
  for (const TablePtr& table : found) CELLAR_TRY(s_.CheckOwner(*table));
  return found;
}

Result<std::vector<NamespacePtr>> Ddl::FindDroppedNamespaces(const ast::OwnStmt& statement,
                                                             bool may_be_none) {
  const catalog::SnapshotPtr catalog = Catalog();
  const std::vector<std::string>& parts = statement.object.parts;
  const bool database = statement.object_type == ast::ObjectType::kDatabase;
  if (parts.size() > (database ? 1 : 2)) {
    return SqlError(Code::kInvalid, sqlstate::kSyntaxError,
                    "improper qualified name (too many dotted names): {}", Spell(parts));
  }
  const std::string& holder = parts.size() > 1 ? parts[0] : s_.Scope().database_name;
  std::vector<NamespacePtr> found;
  for (const NamespacePtr& space : catalog->ListDroppedNamespaces()) {
    if (space->name != parts.back() || space->name.starts_with("pg_temp_")) continue;
    if (database != (space->parent == catalog::kRootNamespace)) continue;
    if (!database) {
      NamespacePtr in = AnyNamespace(*catalog, space->parent);
      if (in == nullptr || in->name != holder) continue;
    }
    if (statement.number != 0 && space->id.value != static_cast<uint64_t>(statement.number))
      continue;
    found.push_back(space);
  }
  std::sort(found.begin(), found.end(), ComesFirst<NamespacePtr>);
  if (found.empty() && !may_be_none) {
    return SqlError(Code::kNotFound,
                    database ? sqlstate::kInvalidCatalogName : sqlstate::kInvalidSchemaName,
                    "{} \"{}\" is not in the recycle bin", database ? "database" : "schema",
                    Spell(parts))
        .WithHint("SHOW DROPPED lists what is.");
  }
  for (const NamespacePtr& space : found) CELLAR_TRY(s_.CheckOwner(*space));
  return found;
}

// ---- Out of the bin
// ---------------------------------------------------------------------------------------------

bool Ddl::NameIsTaken(catalog::NamespaceId space, const std::string& name) {
  const catalog::IndexDescriptor* index = nullptr;
  return Catalog()->FindTable(space, name) != nullptr ||
         Catalog()->FindType(space, name) != nullptr ||
         Catalog()->FindCollation(space, name) != nullptr ||
         Catalog()->FindTableOfIndex(space, name, &index) != nullptr;
}

std::string Ddl::FreeName(catalog::NamespaceId space, const std::string& name) {
  std::string free = name;
  for (int i = 1; NameIsTaken(space, free); ++i) free = fmt::format("{}{}", name, i);
  return free;
}

// Its foreign keys: those that can hold come back with it.
Status Ddl::RestoreForeignKeys(const std::set<catalog::TableId>& together, TableDescriptor* table) {
  for (size_t i = 0; i < table->foreign_keys.size();) {
    catalog::ForeignKey& key = table->foreign_keys[i];
    const TablePtr living = Catalog()->GetTable(key.referenced_table);
    const TablePtr dropped = Catalog()->GetDroppedTable(key.referenced_table);
    if (key.referenced_table == table->id || together.contains(key.referenced_table)) {
      ++i;
      continue;
    }
    if (living != nullptr && HasColumns(*living, key.referenced_columns) &&
        HasKey(*living, key.referenced_columns)) {
      // Rows of the other table may have gone meanwhile.
      key.validated = false;
      CELLAR_TRY(
          Notice(Severity::kNotice, "00000",
                 fmt::format("foreign key constraint \"{}\" on table \"{}\" is back and holds "
                             "for new rows; old ones are not validated",
                             key.name, table->name)));
      ++i;
      continue;
    }
    if (dropped != nullptr && dropped->state == ObjectState::kDropped) {
      CELLAR_TRY(Notice(Severity::kNotice, "00000",
                        fmt::format("foreign key constraint \"{}\" on table \"{}\" will come back "
                                    "with table \"{}\", which is in the recycle bin",
                                    key.name, table->name, dropped->name)));
      TableDescriptor waiting = *dropped;
      waiting.lost_keys.push_back({table->id, key});
      CELLAR_TRY(Editor().UpdateDroppedTable(std::move(waiting)));
    } else {
      CELLAR_TRY(Notice(Severity::kNotice, "00000",
                        fmt::format("foreign key constraint \"{}\" on table \"{}\" cannot come "
                                    "back: what it references is gone",
                                    key.name, table->name)));
    }
    table->foreign_keys.erase(table->foreign_keys.begin() + static_cast<ptrdiff_t>(i));
  }
  return Status();
}

// Foreign keys of others, which the drop took from them.
Status Ddl::RestoreLostKeys(const TableDescriptor& dropped,
                            const std::set<catalog::TableId>& together) {
  for (const catalog::LostForeignKey& lost : dropped.lost_keys) {
    TablePtr holder = Catalog()->GetTable(lost.table);
    const bool lives = holder != nullptr;
    if (!lives) holder = Catalog()->GetDroppedTable(lost.table);
    const bool fits = holder != nullptr && holder->state != ObjectState::kCollecting &&
                      HasColumns(*holder, lost.key.columns) &&
                      std::none_of(holder->foreign_keys.begin(), holder->foreign_keys.end(),
                                   [&](const auto& key) { return key.name == lost.key.name; });
    if (!fits) {
      CELLAR_TRY(Notice(Severity::kNotice, "00000",
                        fmt::format("foreign key constraint \"{}\" that referenced table \"{}\" "
                                    "cannot come back: its table or columns are gone",
                                    lost.key.name, dropped.name)));
      continue;
    }
    TableDescriptor next = *holder;
    next.foreign_keys.push_back(lost.key);
    if (!lives) {
      CELLAR_TRY(Editor().UpdateDroppedTable(std::move(next)));
      continue;
    }
    if (!together.contains(lost.table)) {
      next.foreign_keys.back().validated = false;
      CELLAR_TRY(
          Notice(Severity::kNotice, "00000",
                 fmt::format("foreign key constraint \"{}\" on table \"{}\" is back and holds "
                             "for new rows; old ones are not validated",
                             lost.key.name, holder->name)));
    }
    CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
  }
  return Status();
}

// Brings one relation back, with the sequences that its columns own unless `together`, what else
// this statement brings back, has them. Names of indexes and sequences that are taken meanwhile get
// a number.
Status Ddl::Restore(const TablePtr& dropped, catalog::NamespaceId space, const std::string& name,
                    const std::set<catalog::TableId>& together) {
  TableDescriptor next = *dropped;
  next.parent = space;
  next.name = name;
  if (dropped->truncated) {
    // A job that was building an index goes on with the table, not with the rows that a TRUNCATE
    // took from it.
    const auto unfinished = std::stable_partition(
        next.indexes.begin(), next.indexes.end(),
        [](const auto& index) { return index.state == catalog::IndexState::kPublic; });
    for (auto index = unfinished; index != next.indexes.end(); ++index) {
      CELLAR_TRY(s_.transaction->access->ClearIndex(*dropped, index->id));
      CELLAR_TRY(
          Notice(Severity::kNotice, "00000",
                 fmt::format("index \"{}\" was being built and does not come back", index->name)));
    }
    next.indexes.erase(unfinished, next.indexes.end());
  }
  for (catalog::IndexDescriptor& index : next.indexes) {
    if (index.primary && !index.constraint) index.name.clear();  // that of hidden row ids
    const auto is_free = [&] {
      return !NameIsTaken(space, index.name) && index.name != name &&
             std::none_of(next.indexes.begin(), next.indexes.end(), [&](const auto& other) {
               return other.id != index.id && other.name == index.name;
             });
    };
    if (index.name.empty() || is_free()) continue;
    const std::string taken = index.name;
    for (int i = 1; !is_free(); ++i) index.name = fmt::format("{}{}", taken, i);
    CELLAR_TRY(Notice(Severity::kNotice, "00000",
                      fmt::format("index \"{}\" is now named \"{}\"", taken, index.name)));
  }
  std::vector<TablePtr> sequences;
  for (catalog::ColumnDescriptor& column : next.columns) {
    if (column.sequence.value == 0 || column.dropped || together.contains(column.sequence))
      continue;
    TablePtr sequence = Catalog()->GetDroppedTable(column.sequence);
    if (sequence != nullptr && sequence->state == ObjectState::kDropped) {
      sequences.push_back(sequence);
      continue;
    }
    if (Catalog()->GetTable(column.sequence) != nullptr) continue;
    CELLAR_TRY(Notice(Severity::kNotice, "00000",
                      fmt::format("the default of column \"{}\" of table \"{}\" cannot come back: "
                                  "its sequence is gone",
                                  column.name, name)));
    column.sequence = {};
    column.default_sql.clear();
    column.identity = catalog::Identity::kNone;
  }
  CELLAR_TRY(RestoreForeignKeys(together, &next));
  CELLAR_TRY_ASSIGN(TablePtr restored, Editor().UndropTable(std::move(next)));
  // It got the collations as they are now; its keys were made by those of its last day.
  if (catalog::CollationsOf(*dropped) != catalog::CollationsOf(*restored)) {
    CELLAR_TRY(RewriteTable(*restored, &restored, false));
  }
  CELLAR_TRY(RefreshCollationsOf(restored));
  for (const TablePtr& sequence : sequences) {
    TableDescriptor back = *sequence;
    back.parent = space;
    back.name = FreeName(space, sequence->name);
    if (back.name != sequence->name) {
      CELLAR_TRY(
          Notice(Severity::kNotice, "00000",
                 fmt::format("sequence \"{}\" is now named \"{}\"", sequence->name, back.name)));
    }
    CELLAR_TRY(Editor().UndropTable(std::move(back)).status());
    CELLAR_TRY(FollowSequence(sequence->id));
  }
  return Status();
}

// The group that a drop of namespace `space` took with it.
Status Ddl::RestoreNamespace(const NamespacePtr& space, const std::string& name) {
  CELLAR_TRY(Editor().UndropNamespace(space->id, name));
  const catalog::SnapshotPtr before = Catalog();
  std::vector<NamespacePtr> spaces;
  for (const NamespacePtr& inner : before->ListDroppedNamespaces()) {
    if (inner->drop_group != space->drop_group || inner->parent != space->id) continue;
    if (inner->state == ObjectState::kCollecting) {
      CELLAR_TRY(
          Notice(Severity::kNotice, "00000",
                 fmt::format("schema \"{}\" cannot come back: it is being deleted", inner->name)));
      continue;
    }
    CELLAR_TRY(Editor().UndropNamespace(inner->id, inner->name));
  }
  std::vector<TablePtr> tables;
  std::set<catalog::TableId> together;
  for (const TablePtr& table : before->ListDroppedTables()) {
    if (table->drop_group != space->drop_group ||
        Catalog()->GetNamespace(table->parent) == nullptr ||
        !IsIn(*Catalog(), table->parent, space->id)) {
      continue;
    }
    if (table->state == ObjectState::kCollecting) {
      CELLAR_TRY(Notice(Severity::kNotice, "00000",
                        fmt::format("{} \"{}\" cannot come back: it is being deleted",
                                    KindName(table->kind), table->name)));
      continue;
    }
    tables.push_back(table);
    together.insert(table->id);
  }
  // Types and collations before what has them.
  std::stable_partition(tables.begin(), tables.end(), [](const TablePtr& table) {
    return table->kind == RelationKind::kType || table->kind == RelationKind::kCollation;
  });
  for (const TablePtr& table : tables)
    CELLAR_TRY(Restore(table, table->parent, table->name, together));
  for (const TablePtr& table : tables) CELLAR_TRY(RestoreLostKeys(*table, together));
  for (const TablePtr& table : tables) {
    if (table->kind == RelationKind::kSequence) CELLAR_TRY(FollowSequence(table->id));
  }
  return Status();
}

Status Ddl::Undrop(const ast::OwnStmt& statement) {
  const std::string& given = statement.new_name;
  if (!KindOf(statement.object_type)) {
    CELLAR_TRY_ASSIGN(const std::vector<NamespacePtr> found,
                      FindDroppedNamespaces(statement, false));
    const NamespacePtr& space = found.front();
    const std::string& name = given.empty() ? space->name : given;
    const bool database = space->parent == catalog::kRootNamespace;
    if (!database && Catalog()->GetNamespace(space->parent) == nullptr) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidCatalogName,
                      "database \"{}\" does not exist", PlaceOf(*Catalog(), space->parent).database)
          .WithHint("Use UNDROP DATABASE to bring back the database that the schema was in.");
    }
    if (Catalog()->FindNamespace(space->parent, name) != nullptr) {
      return SqlError(Code::kExists,
                      database ? sqlstate::kDuplicateDatabase : sqlstate::kDuplicateSchema,
                      "{} \"{}\" already exists", database ? "database" : "schema", name)
          .WithHint(fmt::format("Use UNDROP {} ... AS to give it another name.",
                                database ? "DATABASE" : "SCHEMA"));
    }
    return RestoreNamespace(space, name);
  }
  CELLAR_TRY_ASSIGN(const std::vector<TablePtr> found, FindDroppedTables(statement));
  const TablePtr& table = found.front();
  if (table->state == ObjectState::kCollecting) {
    return SqlError(Code::kInvalid, sqlstate::kObjectNotInPrerequisiteState,
                    "{} \"{}\" is being deleted from the recycle bin and cannot come back",
                    KindName(table->kind), table->name);
  }
  catalog::NamespaceId space = table->parent;
  if (Catalog()->GetNamespace(space) == nullptr) {
    // A schema of the same name may have been made since.
    const Place place = PlaceOf(*Catalog(), space);
    NamespacePtr database = Catalog()->FindNamespace(catalog::kRootNamespace, place.database);
    NamespacePtr schema = database == nullptr || place.schema == "public"
                              ? database
                              : Catalog()->FindNamespace(database->id, place.schema);
    if (schema == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName, "schema \"{}\" does not exist",
                      place.schema)
          .WithHint(
              "Use UNDROP SCHEMA to bring it back with what it held, or make one of its "
              "name.");
    }
    space = schema->id;
  }
  const std::string& name = given.empty() ? table->name : given;
  if (NameIsTaken(space, name)) {
    return SqlError(Code::kExists, sqlstate::kDuplicateTable, "relation \"{}\" already exists",
                    name)
        .WithHint("Use UNDROP ... AS to give it another name.");
  }
  CELLAR_TRY(Restore(table, space, name, {}));
  if (table->kind == RelationKind::kSequence) return RestoreOwner(*table);
  return RestoreLostKeys(*table, {});
}

// A sequence that was dropped alone: the column that owned it owns it again.
Status Ddl::RestoreOwner(const TableDescriptor& sequence) {
  if (sequence.sequence.owner_table.value == 0) return Status();
  TablePtr owner = Catalog()->GetTable(sequence.sequence.owner_table);
  if (owner != nullptr) {
    TableDescriptor next = *owner;
    for (catalog::ColumnDescriptor& column : next.columns) {
      if (column.id != sequence.sequence.owner_column || column.dropped) continue;
      if (column.sequence.value != 0) break;
      column.sequence = sequence.id;
      CELLAR_TRY(Editor().UpdateTable(std::move(next)).status());
      return Notice(
          Severity::kNotice, "00000",
          fmt::format("the default of column \"{}\" of table \"{}\" does not come back",
                      owner->FindColumn(sequence.sequence.owner_column)->name, owner->name));
    }
  }
  TableDescriptor alone = *Catalog()->GetTable(sequence.id);
  alone.sequence.owner_table = {};
  alone.sequence.owner_column = {};
  return Editor().UpdateTable(std::move(alone)).status();
}

// ---- Out for ever, and when
// ---------------------------------------------------------------------------------------------

Status Ddl::PurgeTables(const std::vector<TablePtr>& tables) {
  for (const TablePtr& listed : tables) {
    TablePtr table = Catalog()->GetDroppedTable(listed->id);
    if (table == nullptr || table->state == ObjectState::kCollecting) continue;
    TableDescriptor next = *table;
    next.state = ObjectState::kCollecting;
    CELLAR_TRY(Editor().UpdateDroppedTable(std::move(next)));
    for (const catalog::ColumnDescriptor& column : table->columns) {
      TablePtr sequence = Catalog()->GetDroppedTable(column.sequence);
      if (sequence == nullptr || sequence->state == ObjectState::kCollecting) continue;
      TableDescriptor owned = *sequence;
      owned.state = ObjectState::kCollecting;
      CELLAR_TRY(Editor().UpdateDroppedTable(std::move(owned)));
    }
  }
  s_.transaction->purged = true;
  return Status();
}

Status Ddl::PurgeNamespaces(const std::vector<NamespacePtr>& spaces) {
  for (const NamespacePtr& space : spaces) {
    if (space->state == ObjectState::kCollecting) continue;
    catalog::NamespaceDescriptor next = *space;
    next.state = ObjectState::kCollecting;
    CELLAR_TRY(Editor().UpdateDroppedNamespace(std::move(next)));
  }
  s_.transaction->purged = true;
  return Status();
}

Status Ddl::Purge(const ast::OwnStmt& statement) {
  const catalog::SnapshotPtr catalog = Catalog();
  if (statement.object.parts.empty()) {
    std::vector<TablePtr> tables = catalog->ListDroppedTables();
    std::erase_if(tables, [&](const TablePtr& table) { return !s_.CheckOwner(*table).ok(); });
    std::vector<NamespacePtr> spaces = catalog->ListDroppedNamespaces();
    std::erase_if(spaces, [&](const NamespacePtr& space) { return !s_.CheckOwner(*space).ok(); });
    CELLAR_TRY(PurgeTables(tables));
    return PurgeNamespaces(spaces);
  }
  if (KindOf(statement.object_type)) {
    CELLAR_TRY_ASSIGN(const std::vector<TablePtr> found, FindDroppedTables(statement));
    return PurgeTables(found);
  }
  // Those that are dropped, and what was dropped in one that lives.
  CELLAR_TRY_ASSIGN(std::vector<NamespacePtr> roots, FindDroppedNamespaces(statement, true));
  const std::vector<std::string>& parts = statement.object.parts;
  NamespacePtr living;
  if (statement.object_type == ast::ObjectType::kDatabase) {
    living = catalog->FindNamespace(catalog::kRootNamespace, parts.back());
  } else if (parts.size() == 1) {
    if (std::optional<catalog::NamespaceId> id =
            sql::FindSchema(*catalog, s_.Scope(), parts.back()))
      living = catalog->GetNamespace(*id);
  } else if (NamespacePtr database =
                 catalog->FindNamespace(catalog::kRootNamespace, parts.front())) {
    living =
        parts.back() == "public" ? database : catalog->FindNamespace(database->id, parts.back());
  }
  if (statement.number == 0 && living != nullptr) {
    CELLAR_TRY(s_.CheckOwner(*living));
    roots.push_back(living);
  }
  if (roots.empty()) return FindDroppedNamespaces(statement, false).status();
  // `public` alone does not reach into the database's other schemas.
  const bool deep = statement.object_type == ast::ObjectType::kDatabase;
  auto reached = [&](catalog::NamespaceId id) {
    return std::any_of(roots.begin(), roots.end(), [&](const NamespacePtr& root) {
      return root->id == id || (deep && IsIn(*catalog, id, root->id));
    });
  };
  std::vector<TablePtr> tables = catalog->ListDroppedTables();
  std::erase_if(tables, [&](const TablePtr& table) { return !reached(table->parent); });
  std::vector<NamespacePtr> spaces = catalog->ListDroppedNamespaces();
  std::erase_if(spaces, [&](const NamespacePtr& space) { return !reached(space->id); });
  CELLAR_TRY(PurgeTables(tables));
  return PurgeNamespaces(spaces);
}

Status Ddl::SetDroppedOptions(const ast::OwnStmt& statement) {
  Status status;
  const ast::Option* option = OnlyRetention(statement.options, &status);
  CELLAR_TRY(std::move(status));
  std::optional<int64_t> keep;
  if (!statement.reset && option != nullptr) {
    catalog::ZoneSettings zone;
    CELLAR_TRY(ApplyZoneOption(*option, false, &zone));
    keep = zone.retention_micros;
  }
  auto set_table = [&](const TablePtr& table) -> Status {
    TableDescriptor next = *table;
    next.keep_micros = keep;
    return Editor().UpdateDroppedTable(std::move(next));
  };
  if (KindOf(statement.object_type)) {
    CELLAR_TRY_ASSIGN(const std::vector<TablePtr> found, FindDroppedTables(statement));
    CELLAR_TRY(set_table(found.front()));
    for (const catalog::ColumnDescriptor& column : found.front()->columns) {
      TablePtr sequence = Catalog()->GetDroppedTable(column.sequence);
      if (sequence != nullptr && sequence->state == ObjectState::kDropped)
        CELLAR_TRY(set_table(sequence));
    }
    return Status();
  }
  CELLAR_TRY_ASSIGN(const std::vector<NamespacePtr> found, FindDroppedNamespaces(statement, false));
  const NamespacePtr& root = found.front();
  const catalog::SnapshotPtr catalog = Catalog();
  for (const NamespacePtr& space : catalog->ListDroppedNamespaces()) {
    if (space->id != root->id &&
        (space->drop_group != root->drop_group || !IsIn(*catalog, space->id, root->id) ||
         space->state == ObjectState::kCollecting)) {
      continue;
    }
    catalog::NamespaceDescriptor next = *space;
    next.keep_micros = keep;
    CELLAR_TRY(Editor().UpdateDroppedNamespace(std::move(next)));
  }
  for (const TablePtr& table : catalog->ListDroppedTables()) {
    if (table->drop_group == root->drop_group && table->state == ObjectState::kDropped &&
        IsIn(*catalog, table->parent, root->id)) {
      CELLAR_TRY(set_table(table));
    }
  }
  return Status();
}

Status Session::Impl::RunBinStatement(const ast::OwnStmt& statement, ResultSink* sink,
                                      std::string* tag) {
  CELLAR_TRY(EnsureTransaction(false));
  CELLAR_TRY(CheckWritable(*tag));
  Ddl ddl(this, sink);
  Status status;
  switch (statement.own) {
    case ast::OwnKind::kUndrop: status = ddl.Undrop(statement); break;
    case ast::OwnKind::kPurge:
      NoteMakesRoom();
      status = ddl.Purge(statement);
      break;
    default: return ddl.SetDroppedOptions(statement);
  }
  if (!statement.if_exists || status.code() != Code::kNotFound) return status;
  Notice notice;
  notice.severity = Severity::kNotice;
  notice.sqlstate = "00000";
  notice.message = std::string(status.message()) + ", skipping";
  return sink->OnNotice(notice);
}

// ---- pg_catalog.cellar_dropped
// ---------------------------------------------------------------------------------------------

void GenerateDropped(Session::Impl& session, SystemRow* rows) {
  const catalog::SnapshotPtr catalog = session.CurrentCatalog();
  const int64_t now = session.db->clock->Ticks();
  SystemRow& row = *rows;
  // Paths as UNDROP takes them.
  auto path_of = [&](catalog::NamespaceId parent, const std::string& name) {
    std::string path;
    if (parent != catalog::kRootNamespace) {
      const Place place = PlaceOf(*catalog, parent);
      path = sql::QuoteIdentifier(place.database) + ".";
      path += sql::QuoteIdentifier(place.schema) + ".";
    }
    return path + sql::QuoteIdentifier(name);
  };
  auto common = [&](const auto& object) {
    const bool collecting = object.state == ObjectState::kCollecting;
    row.Int("id", static_cast<int64_t>(object.id.value))
        .Int("dropped_at", object.dropped_at_micros)
        .TextOrNull("dropped_by", object.dropped_by)
        .Int("drop_group", static_cast<int64_t>(object.drop_group))
        .Text("state", collecting ? "collecting" : "dropped");
    const int64_t left = collecting ? 0 : MicrosLeft(object, now);
    Interval interval;
    interval.days = static_cast<int32_t>(std::min<int64_t>(left / kDayMicros, INT32_MAX));
    interval.micros = left - int64_t{interval.days} * kDayMicros;
    row.Span("expires_in", interval);
  };
  // Of what others dropped nobody learns but who may bring it back.
  for (const NamespacePtr& space : catalog->ListDroppedNamespaces()) {
    if (!session.CheckOwner(*space).ok()) continue;
    const bool database = space->parent == catalog::kRootNamespace;
    NamespacePtr holder = AnyNamespace(*catalog, space->parent);
    row.Text("path", database
                         ? sql::QuoteIdentifier(space->name)
                         : fmt::format("{}.{}", sql::QuoteIdentifier(holder ? holder->name : "?"),
                                       sql::QuoteIdentifier(space->name)))
        .Text("kind", database ? "database" : "schema");
    common(*space);
    row.Emit();
  }
  for (const TablePtr& object : catalog->ListDroppedTables()) {
    if (!session.CheckOwner(*object).ok()) continue;
    row.Text("path", path_of(object->parent, object->name))
        .Text("kind", object->truncated ? "truncated table" : KindName(object->kind));
    common(*object);
    if (object->kind == RelationKind::kTable) {
      const codec::KeyRange range = codec::PrefixRange(codec::TablePrefix(object->storage_id()));
      row.Int("bytes",
              static_cast<int64_t>(session.db->engine->ApproximateBytes(range.start, range.end)));
      if (session.transaction != nullptr) {
        const auto usage = table::UsageOf(*object, session.transaction->kv.get());
        if (usage.ok() && usage->has_value()) row.Int("rows", (*usage)->rows);
      }
    }
    row.Emit();
  }
}

}  // namespace cellar::session
