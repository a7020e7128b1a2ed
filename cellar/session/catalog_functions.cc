// Functions of pg_catalog that look at descriptors: definitions as SQL text, visibility, sizes,
// locks (PostgreSQL manual, 9.26).
#include <algorithm>
#include <chrono>
#include <functional>

#include "cellar/base/sqlstate.h"
#include "cellar/codec/key.h"
#include "cellar/session/advisory_locks.h"
#include "cellar/session/backend_signals.h"
#include "cellar/session/index_parts.h"
#include "cellar/session/system_privileges.h"
#include "cellar/session/view_texts.h"
#include "cellar/sql/parser/deparse.h"
#include "cellar/sql/parser/pretty.h"
#include "cellar/sql/parser/scan.h"
#include "cellar/types/array.h"

namespace cellar::session {

namespace {

// A collation as the search path finds it.
std::string CollationName(Session::Impl& session, const Collation& collation) {
  const catalog::SnapshotPtr catalog = session.CurrentCatalog();
  const catalog::TablePtr made = MadeCollation(*catalog, collation);
  if (made == nullptr) return sql::QuoteIdentifier(collation.name);
  const catalog::TablePtr seen = sql::FindType(*catalog, session.Scope(), "", made->name);
  return sql::QuoteQualified(
      seen != nullptr && seen->id == made->id ? "" : session.SchemaName(made->parent), made->name);
}

}  // namespace

std::string IndexDefinition(Session::Impl& session, const catalog::TableDescriptor& table,
                            const catalog::IndexDescriptor& index, int column, bool pretty) {
  auto name_of = [&table](catalog::ColumnId id) {
    const catalog::ColumnDescriptor* found = table.FindColumn(id);
    return found == nullptr ? std::string("?") : sql::QuoteIdentifier(found->name);
  };
  if (column > 0) {
    const size_t at = static_cast<size_t>(column) - 1;
    if (at < index.key.size()) {
      const catalog::IndexColumn& part = index.key[at];
      return part.expression.empty()
                 ? name_of(part.column)
                 : TableText(session, table, ShowIndexExpression(part.expression, pretty));
    }
    if (at - index.key.size() < index.stored.size())
      return name_of(index.stored[at - index.key.size()]);
    return "";
  }
  std::string text = index.unique ? "CREATE UNIQUE INDEX " : "CREATE INDEX ";
  text += sql::QuoteIdentifier(index.name) + " ON ";
  text += pretty ? session.QualifiedName(table)
                 : sql::QuoteQualified(session.SchemaName(table.parent), table.name);
  text += " USING btree (";
  for (size_t i = 0; i < index.key.size(); ++i) {
    const catalog::IndexColumn& part = index.key[i];
    if (i > 0) text += ", ";
    text += part.expression.empty()
                ? name_of(part.column)
                : TableText(session, table, ShowIndexExpression(part.expression, pretty));
    if (part.collation != nullptr) {
      const Type own = part.expression.empty() ? Type() : IndexPartType(table, part);
      if (part.collation != own.collation) {
        text += " COLLATE " + CollationName(session, *part.collation);
      }
    }
    if (!part.opclass.empty()) text += " " + part.opclass;
    const bool descending = part.direction == codec::Direction::kDescending;
    const bool first = part.nulls == codec::NullPlacement::kFirst;
    if (descending)
      text += first ? " DESC" : " DESC NULLS LAST";
    else if (first)
      text += " NULLS FIRST";
  }
  text += ")";
  for (size_t i = 0; i < index.stored.size(); ++i) {
    text += i == 0 ? " INCLUDE (" : ", ";
    text += name_of(index.stored[i]);
    if (i + 1 == index.stored.size()) text += ")";
  }
  if (index.nulls_not_distinct) text += " NULLS NOT DISTINCT";
  if (index.shards != 0) text += fmt::format(" WITH (shards='{}')", index.shards);
  if (!index.predicate.empty()) {
    text += " WHERE " + TableText(session, table, ShowIndexPredicate(index.predicate, pretty));
  }
  return text;
}

std::string KeyConstraintDefinition(const catalog::TableDescriptor& table,
                                    const catalog::IndexDescriptor& index) {
  std::string text = index.primary              ? "PRIMARY KEY ("
                     : index.nulls_not_distinct ? "UNIQUE NULLS NOT DISTINCT ("
                                                : "UNIQUE (";
  for (size_t i = 0; i < index.key.size(); ++i) {
    if (i > 0) text += ", ";
    text += sql::QuoteIdentifier(table.FindColumn(index.key[i].column)->name);
  }
  text += ")";
  for (size_t i = 0; i < index.stored.size(); ++i) {
    text += i == 0 ? " INCLUDE (" : ", ";
    text += sql::QuoteIdentifier(table.FindColumn(index.stored[i])->name);
    if (i + 1 == index.stored.size()) text += ")";
  }
  if (index.shards != 0) text += fmt::format(" WITH (shards='{}')", index.shards);
  if (index.deferrable) text += " DEFERRABLE";
  return text;
}

std::string ForeignKeyDefinition(Session::Impl& session, const catalog::TableDescriptor& table,
                                 const catalog::ForeignKey& key) {
  auto names = [](const catalog::TableDescriptor& of,
                  const std::vector<catalog::ColumnId>& columns) {
    std::string list;
    for (catalog::ColumnId column : columns) {
      if (!list.empty()) list += ", ";
      list += sql::QuoteIdentifier(of.FindColumn(column)->name);
    }
    return list;
  };
  auto action = [](const char* event, catalog::ForeignKeyAction what) -> std::string {
    switch (what) {
      case catalog::ForeignKeyAction::kRestrict: return std::string(" ON ") + event + " RESTRICT";
      case catalog::ForeignKeyAction::kCascade: return std::string(" ON ") + event + " CASCADE";
      case catalog::ForeignKeyAction::kSetNull: return std::string(" ON ") + event + " SET NULL";
      case catalog::ForeignKeyAction::kSetDefault:
        return std::string(" ON ") + event + " SET DEFAULT";
      default: return "";
    }
  };
  catalog::TablePtr referenced = session.CurrentCatalog()->GetTable(key.referenced_table);
  if (referenced == nullptr) return "";
  std::string text =
      fmt::format("FOREIGN KEY ({}) REFERENCES {}({})", names(table, key.columns),
                  session.QualifiedName(*referenced), names(*referenced, key.referenced_columns));
  text += action("UPDATE", key.on_update) + action("DELETE", key.on_delete);
  if (!key.on_delete_columns.empty())
    text += fmt::format(" ({})", names(table, key.on_delete_columns));
  if (key.deferrable) text += " DEFERRABLE";
  if (key.initially_deferred) text += " INITIALLY DEFERRED";
  if (!key.validated) text += " NOT VALID";
  return text;
}

std::string DefaultAsSeen(Session::Impl& session, const std::string& text) {
  // Sequences are kept with their schema, and shown as the search path finds them.
  constexpr std::string_view kCast = "::regclass";
  if (text.find(kCast) == std::string::npos) return text;
  std::string out;
  size_t copied = 0;
  for (size_t at = 0;;) {
    const sql::ScanToken token = sql::NextToken(text, at);
    if (token.kind == sql::ScanKind::kEnd) break;
    at = token.end;
    if (token.kind != sql::ScanKind::kString || text[token.begin] != '\'' ||
        std::string_view(text).substr(token.end, kCast.size()) != kCast)
      continue;
    std::string name;
    for (size_t i = token.begin + 1; i + 1 < token.end; ++i) {
      if (text[i] == '\'') ++i;
      name += text[i];
    }
    const Result<uint32_t> oid = session.LookupReg(TypeId::kRegclass, name);
    if (!oid.ok()) continue;
    out.append(text, copied, token.begin - copied);
    out += sql::QuoteLiteral(session.PrintReg(TypeId::kRegclass, *oid));
    copied = token.end;
  }
  return copied == 0 ? text : out.append(text, copied);
}

namespace {

class CatalogFunctions {
 public:
  CatalogFunctions(Session::Impl& session, std::span<const Datum> args, Arena* arena)
      : s_(session), args_(args), arena_(arena), catalog_(session.CurrentCatalog()) {}

  Result<Datum> Call(std::string_view name) {
    struct Entry {
      std::string_view name;
      Result<Datum> (CatalogFunctions::*call)();
    };
    static constexpr Entry kEntries[] = {
        {"format_type", &CatalogFunctions::FormatMadeType},
        {"pg_type_is_visible", &CatalogFunctions::TypeIsVisible},
        {"col_description", &CatalogFunctions::ColDescription},
        {"obj_description", &CatalogFunctions::ObjDescription},
        {"current_query", &CatalogFunctions::CurrentQuery},
        {"pg_advisory_lock", &CatalogFunctions::AdvisoryLock<false, false>},
        {"pg_advisory_lock_shared", &CatalogFunctions::AdvisoryLock<true, false>},
        {"pg_advisory_unlock", &CatalogFunctions::AdvisoryUnlock<false>},
        {"pg_advisory_unlock_all", &CatalogFunctions::AdvisoryUnlockAll},
        {"pg_advisory_unlock_shared", &CatalogFunctions::AdvisoryUnlock<true>},
        {"pg_advisory_xact_lock", &CatalogFunctions::AdvisoryLock<false, true>},
        {"pg_advisory_xact_lock_shared", &CatalogFunctions::AdvisoryLock<true, true>},
        {"pg_blocking_pids", &CatalogFunctions::BlockingPids},
        {"pg_isolation_test_session_is_blocked", &CatalogFunctions::IsBlockedBy},
        {"pg_cancel_backend", &CatalogFunctions::CancelBackend},
        {"pg_database_size", &CatalogFunctions::DatabaseSize},
        {"pg_encoding_to_char", &CatalogFunctions::EncodingToChar},
        {"pg_get_constraintdef", &CatalogFunctions::ConstraintDef},
        {"pg_get_expr", &CatalogFunctions::Expr},
        {"pg_get_indexdef", &CatalogFunctions::IndexDef},
        {"pg_get_serial_sequence", &CatalogFunctions::SerialSequence},
        {"pg_get_userbyid", &CatalogFunctions::UserById},
        {"pg_get_viewdef", &CatalogFunctions::ViewDef},
        {"pg_column_is_updatable", &CatalogFunctions::ColumnIsUpdatable},
        {"pg_relation_is_updatable", &CatalogFunctions::RelationIsUpdatable},
        {"pg_index_column_has_property", &CatalogFunctions::Null},
        {"pg_indexes_size", &CatalogFunctions::RelationSize},
        {"pg_postmaster_start_time", &CatalogFunctions::StartTime},
        {"pg_relation_size", &CatalogFunctions::RelationSize},
        {"pg_sequence_last_value", &CatalogFunctions::SequenceLastValue},
        {"pg_table_is_visible", &CatalogFunctions::TableIsVisible},
        {"pg_table_size", &CatalogFunctions::RelationSize},
        {"pg_terminate_backend", &CatalogFunctions::TerminateBackend},
        {"pg_total_relation_size", &CatalogFunctions::RelationSize},
        {"pg_safe_snapshot_blocking_pids", &CatalogFunctions::NoPids},
        {"pg_try_advisory_lock", &CatalogFunctions::TryAdvisoryLock<false, false>},
        {"pg_try_advisory_lock_shared", &CatalogFunctions::TryAdvisoryLock<true, false>},
        {"pg_try_advisory_xact_lock", &CatalogFunctions::TryAdvisoryLock<false, true>},
        {"pg_try_advisory_xact_lock_shared", &CatalogFunctions::TryAdvisoryLock<true, true>},
        {"shobj_description", &CatalogFunctions::ShobjDescription},
        {"to_regclass", &CatalogFunctions::ToRegclass},
        {"to_regtype", &CatalogFunctions::ToRegtype},
        {"txid_current", &CatalogFunctions::TxidCurrent},
    };
    for (const Entry& entry : kEntries) {
      if (entry.name == name) return (this->*entry.call)();
    }
    if (std::optional<Result<Datum>> answer = PrivilegeFunction(s_, name, args_, arena_))
      return std::move(*answer);
    if (name.size() > 11 && name.substr(name.size() - 11) == "_is_visible")
      return Datum::Bool(true);
    if (name == "pg_is_in_recovery" || name == "pg_is_other_temp_schema") return Datum::Bool(false);
    if (name == "pg_relation_is_publishable") return Datum::Bool(false);
    if (name == "pg_my_temp_schema") return Datum::Int(0);
    if (name.substr(0, 12) == "pg_stat_get_") return Datum::Int(0);
    return Datum();
  }

 private:
  Datum Text(std::string_view text) { return Datum::Bytes(arena_->Copy(text)); }
  uint32_t Oid(size_t argument) const { return static_cast<uint32_t>(args_[argument].int_value()); }
  Result<Datum> Null() { return Datum(); }

  Result<Datum> FormatMadeType() {
    if (catalog_->GetTypeByOid(Oid(0)) == nullptr) return Datum();
    return Text(s_.PrintReg(TypeId::kRegtype, Oid(0)));
  }
  Result<Datum> TypeIsVisible() {
    const uint32_t oid = Oid(0);
    if (TypeFromOid(oid)) return Datum::Bool(true);
    const catalog::TablePtr made = catalog_->GetTypeByOid(oid);
    if (made == nullptr) {
      // The row type of a relation.
      constexpr uint32_t kRowTypes = 0x20000000;
      if (oid < kRowTypes) return Datum();
      const catalog::TablePtr table = catalog_->GetTableByOid(oid - kRowTypes);
      if (table == nullptr) return Datum();
      const catalog::TablePtr seen = sql::FindRelation(*catalog_, s_.Scope(), "", table->name);
      return Datum::Bool(seen != nullptr && seen->id == table->id);
    }
    const catalog::TablePtr visible = sql::FindType(*catalog_, s_.Scope(), "", made->name);
    return Datum::Bool(visible != nullptr && visible->id == made->id);
  }

  Result<Datum> TableIsVisible() {
    const uint32_t oid = Oid(0);
    const catalog::IndexDescriptor* index = nullptr;
    catalog::TablePtr table = catalog_->GetTableByOid(oid);
    if (table == nullptr) table = catalog_->FindTableOfIndexOid(oid, &index);
    if (table != nullptr) {
      if (index != nullptr) {
        const std::vector<std::string> schemas = s_.CurrentSchemas(true);
        return Datum::Bool(std::find(schemas.begin(), schemas.end(),
                                     s_.SchemaName(table->parent)) != schemas.end());
      }
      catalog::TablePtr visible = sql::FindRelation(*catalog_, s_.Scope(), "", table->name);
      return Datum::Bool(visible != nullptr && visible->id == table->id &&
                         s_.db->system.Find("pg_catalog", table->name) == nullptr);
    }
    for (const sql::VirtualTable* system : s_.db->system.All()) {
      if (system->oid == oid) return Datum::Bool(system->schema == "pg_catalog");
    }
    return Datum();
  }

  // (text, relation, pretty)
  Result<Datum> Expr() {
    std::string text(args_[0].bytes());
    const bool pretty = args_.size() > 2 && args_[2].bool_value();
    const catalog::TablePtr table = catalog_->GetTableByOid(Oid(1));
    text = table == nullptr ? DefaultAsSeen(s_, text) : TableText(s_, *table, text);
    return Text(pretty ? sql::PrettyExpression(text) : text);
  }

  Result<Datum> UserById() {
    const Role* role = s_.Roles().FindByOid(Oid(0));
    return Text(role != nullptr ? role->name : fmt::format("unknown (OID={})", Oid(0)));
  }

  Result<Datum> IndexDef() {
    const catalog::IndexDescriptor* index = nullptr;
    catalog::TablePtr table = catalog_->FindTableOfIndexOid(Oid(0), &index);
    if (table == nullptr) return Datum();
    const int column = args_.size() > 1 ? static_cast<int>(args_[1].int_value()) : 0;
    const bool pretty = args_.size() > 2 && args_[2].bool_value();
    return Text(IndexDefinition(s_, *table, *index, column, pretty));
  }

  Result<Datum> ConstraintDef() {
    const uint32_t oid = Oid(0);
    for (const catalog::TablePtr& table : catalog_->ListAllTables()) {
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (index.constraint && ConstraintOid(index) == oid)
          return Text(KeyConstraintDefinition(*table, index));
      }
      for (const catalog::CheckConstraint& check : table->checks) {
        if (check.oid != oid) continue;
        const bool pretty = args_.size() > 1 && args_[1].bool_value();
        const std::string text = TableText(s_, *table, check.expression);
        return Text(fmt::format("CHECK ({}){}", pretty ? sql::PrettyExpression(text) : text,
                                check.validated ? "" : " NOT VALID"));
      }
      for (const catalog::ForeignKey& key : table->foreign_keys) {
        if (key.oid == oid) return Text(ForeignKeyDefinition(s_, *table, key));
      }
    }
    return Datum();
  }

  Result<Datum> ViewDef() {
    catalog::TablePtr table = catalog_->GetTableByOid(Oid(0));
    if (table == nullptr || table->kind != catalog::RelationKind::kView) return Datum();
    // A number of columns to wrap at, instead of the word, asks for pretty text too.
    const bool pretty = args_.size() > 1 && args_[1].int_value() != 0;
    const std::string text = ViewText(s_, *table, Qualify::kHidden);
    return Text((pretty ? sql::PrettyView(text) : text) + ";");
  }

  // Bits of PostgreSQL's CmdType: 1 << 2 UPDATE, 1 << 3 INSERT, 1 << 4 DELETE.
  Result<Datum> RelationIsUpdatable() {
    const catalog::TablePtr table = catalog_->GetTableByOid(Oid(0));
    if (table == nullptr) return Datum::Int(0);
    if (table->kind == catalog::RelationKind::kTable) return Datum::Int(28);
    if (table->kind != catalog::RelationKind::kView) return Datum::Int(0);
    const sql::ViewChanges changes = ChangesThroughView(s_, table);
    return Datum::Int((changes.values() ? 12 : 0) | (changes.deletes ? 16 : 0));
  }
  Result<Datum> ColumnIsUpdatable() {
    const catalog::TablePtr table = catalog_->GetTableByOid(Oid(0));
    const int64_t number = args_[1].int_value();
    if (table == nullptr || number <= 0) return Datum::Bool(false);
    if (table->kind == catalog::RelationKind::kTable)
      return Datum::Bool(number <= static_cast<int64_t>(table->columns.size()));
    if (table->kind != catalog::RelationKind::kView) return Datum::Bool(false);
    const sql::ViewChanges changes = ChangesThroughView(s_, table);
    return Datum::Bool(number <= static_cast<int64_t>(changes.columns.size()) &&
                       changes.columns[static_cast<size_t>(number) - 1]);
  }

  Result<Datum> SerialSequence() {
    CELLAR_TRY_ASSIGN(uint32_t oid, s_.LookupReg(TypeId::kRegclass, args_[0].bytes()));
    catalog::TablePtr table = catalog_->GetTableByOid(oid);
    const std::string_view name = args_[1].bytes();
    const catalog::ColumnDescriptor* column = table == nullptr ? nullptr : table->FindColumn(name);
    if (column == nullptr) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedColumn,
                      "column \"{}\" of relation \"{}\" does not exist", name, args_[0].bytes());
    }
    catalog::TablePtr sequence = catalog_->GetTable(column->sequence);
    if (sequence == nullptr) return Datum();
    return Text(sql::QuoteQualified(s_.SchemaName(sequence->parent), sequence->name));
  }

  Result<Datum> SequenceLastValue() {
    catalog::TablePtr sequence = catalog_->GetTableByOid(Oid(0));
    if (sequence == nullptr || sequence->kind != catalog::RelationKind::kSequence) return Datum();
    CELLAR_TRY_ASSIGN(auto last, s_.db->sequences->Peek(*sequence));
    return last.second ? Datum::Int(last.first) : Datum();
  }

  Result<Datum> EncodingToChar() { return Text(args_[0].int_value() == 6 ? "UTF8" : ""); }

  const std::string* CommentOnConstraint(uint32_t oid) {
    for (const catalog::TablePtr& table : catalog_->ListAllTables()) {
      for (const catalog::IndexDescriptor& index : table->indexes) {
        if (index.constraint && ConstraintOid(index) == oid) return &index.constraint_comment;
      }
      for (const catalog::CheckConstraint& check : table->checks) {
        if (check.oid == oid) return &check.comment;
      }
      for (const catalog::ForeignKey& key : table->foreign_keys) {
        if (key.oid == oid) return &key.comment;
      }
    }
    return nullptr;
  }

  Result<Datum> ObjDescription() {
    const uint32_t oid = Oid(0);
    const std::string_view kind = args_.size() > 1 ? args_[1].bytes() : "pg_class";
    if (kind == "pg_class") {
      if (catalog::TablePtr table = catalog_->GetTableByOid(oid)) {
        return table->comment.empty() ? Datum() : Text(table->comment);
      }
      const catalog::IndexDescriptor* index = nullptr;
      if (catalog_->FindTableOfIndexOid(oid, &index) != nullptr && !index->comment.empty())
        return Text(index->comment);
      return Datum();
    }
    if (kind == "pg_constraint") {
      const std::string* const comment = CommentOnConstraint(oid);
      return comment == nullptr || comment->empty() ? Datum() : Text(*comment);
    }
    if (kind == "pg_type") {
      const catalog::TablePtr type = catalog_->GetTypeByOid(oid);
      return type == nullptr || type->comment.empty() ? Datum() : Text(type->comment);
    }
    if (kind == "pg_collation" && oid >= catalog::TableDescriptor::kFirstOid) {
      const catalog::TablePtr made =
          catalog_->GetTable(catalog::TableId{oid - catalog::TableDescriptor::kFirstOid});
      return made == nullptr || made->collation == nullptr || made->comment.empty()
                 ? Datum()
                 : Text(made->comment);
    }
    if (kind == "pg_namespace") {
      if (oid == s_.NamespaceOid(s_.database_id)) return Text("standard public schema");
      for (const catalog::NamespacePtr& space : catalog_->ListNamespaces(s_.database_id)) {
        if (s_.NamespaceOid(space->id) == oid && !space->comment.empty())
          return Text(space->comment);
      }
    }
    return Datum();
  }

  Result<Datum> ShobjDescription() {
    if (args_[1].bytes() == "pg_authid") {
      const Role* role = s_.Roles().FindByOid(Oid(0));
      return role == nullptr || role->comment.empty() ? Datum() : Text(role->comment);
    }
    if (args_[1].bytes() != "pg_database") return Datum();
    for (const catalog::NamespacePtr& space : catalog_->ListNamespaces(catalog::kRootNamespace)) {
      if (space->oid() == Oid(0) && !space->comment.empty()) return Text(space->comment);
    }
    return Datum();
  }

  Result<Datum> ColDescription() {
    catalog::TablePtr table = catalog_->GetTableByOid(Oid(0));
    const int64_t number = args_[1].int_value();
    if (table == nullptr || number < 1 || number > static_cast<int64_t>(table->columns.size()))
      return Datum();
    const std::string& comment = table->columns[static_cast<size_t>(number) - 1].comment;
    return comment.empty() ? Datum() : Text(comment);
  }

  Result<Datum> RelationSize() {
    catalog::TablePtr table = catalog_->GetTableByOid(Oid(0));
    const catalog::IndexDescriptor* index = nullptr;
    if (table == nullptr) table = catalog_->FindTableOfIndexOid(Oid(0), &index);
    if (table == nullptr) return Datum::Int(0);
    const std::string prefix = index == nullptr
                                   ? codec::TablePrefix(table->storage_id())
                                   : codec::TablePrefix(table->storage_id(), index->id);
    return Datum::Int(
        static_cast<int64_t>(s_.db->engine->ApproximateBytes(prefix, codec::PrefixEnd(prefix))));
  }

  Result<Datum> DatabaseSize() {
    return Datum::Int(static_cast<int64_t>(s_.db->engine->stats().disk_bytes));
  }
  Result<Datum> StartTime() { return Datum::Int(s_.db->start_micros); }
  Result<Datum> TxidCurrent() {
    return Datum::Int(static_cast<int64_t>(s_.db->engine->latest_version()));
  }

  Result<Datum> ToReg(TypeId kind) {
    if (args_[0].is_null()) return Datum();
    Result<uint32_t> oid = s_.LookupReg(kind, args_[0].bytes());
    return oid.ok() ? Datum::Int(*oid) : Datum();
  }
  Result<Datum> ToRegclass() { return ToReg(TypeId::kRegclass); }
  Result<Datum> ToRegtype() { return ToReg(TypeId::kRegtype); }

  // Advisory locks: of the session until it lets go, or of its transaction.
  AdvisoryKey LockKey() const {
    AdvisoryKey key;
    key.database = catalog_->GetNamespace(s_.database_id)->oid();
    key.pair = args_.size() == 2;
    key.value = args_[0].int_value();
    if (key.pair) {
      key.value = static_cast<int64_t>((static_cast<uint64_t>(args_[0].int_value()) << 32) |
                                       (static_cast<uint64_t>(args_[1].int_value()) & 0xFFFFFFFF));
    }
    return key;
  }
  Result<bool> Lock(bool share, bool of_transaction, bool wait) {
    kv::LockOptions options = s_.LockOptionsOfSettings();
    options.mode = share ? kv::LockMode::kShare : kv::LockMode::kExclusive;
    if (!wait) options.wait = kv::LockWait::kSkip;
    if (!of_transaction) return s_.advisory_locks.Acquire(LockKey(), options);
    return s_.transaction->kv->LockName(kv::LockKind::kAdvisory, LockKey().Name(), options);
  }
  template <bool kShare, bool kOfTransaction>
  Result<Datum> AdvisoryLock() {
    CELLAR_TRY(Lock(kShare, kOfTransaction, true).status());
    return Datum::Bytes("");
  }
  template <bool kShare, bool kOfTransaction>
  Result<Datum> TryAdvisoryLock() {
    CELLAR_TRY_ASSIGN(const bool got, Lock(kShare, kOfTransaction, false));
    return Datum::Bool(got);
  }
  template <bool kShare>
  Result<Datum> AdvisoryUnlock() {
    const kv::LockMode mode = kShare ? kv::LockMode::kShare : kv::LockMode::kExclusive;
    const bool held = s_.advisory_locks.Release(LockKey(), mode);
    if (!held && s_.statement->sink != nullptr) {
      CELLAR_TRY(s_.Notify(s_.statement->sink, Severity::kWarning, "01000",
                           fmt::format("you don't own a lock of type {}", kv::LockModeName(mode))));
    }
    return Datum::Bool(held);
  }
  Result<Datum> AdvisoryUnlockAll() {
    s_.advisory_locks.ReleaseAll();
    return Datum::Bytes("");
  }
  Result<Datum> CurrentQuery() {
    if (s_.statement->text.empty()) return Datum();
    return Datum::Bytes(arena_->Copy(s_.statement->text));
  }
  Result<Datum> CancelBackend() {
    CELLAR_TRY_ASSIGN(const bool done, session::CancelBackend(&s_, Pid()));
    return Datum::Bool(done);
  }
  Result<Datum> TerminateBackend() {
    const int64_t timeout = args_.size() > 1 ? args_[1].int_value() : 0;
    CELLAR_TRY_ASSIGN(const bool done, session::TerminateBackend(&s_, Pid(), timeout));
    return Datum::Bool(done);
  }
  int32_t Pid() const { return static_cast<int32_t>(args_[0].int_value()); }

  // ---- Who waits for whom ----
  Datum PidArray(std::span<const uint64_t> groups) {
    const Type element = MakeType(TypeId::kInt4);
    ArrayBuilder array(element);
    for (const uint64_t group : groups) {
      // What belongs to no session has no number that anybody could ask for.
      array.Add(Datum::Int(group < kv::kFirstLockGroup ? static_cast<int64_t>(group) : 0));
    }
    return Datum::Bytes(array.Finish(arena_));
  }
  Result<Datum> BlockingPids() {
    return PidArray(s_.db->engine->locks().Blockers(static_cast<uint64_t>(Pid())));
  }
  Result<Datum> NoPids() { return PidArray({}); }
  // For PostgreSQL's isolation tester: does the session wait for one of those?
  Result<Datum> IsBlockedBy() {
    const std::vector<uint64_t> blockers =
        s_.db->engine->locks().Blockers(static_cast<uint64_t>(Pid()));
    const ArrayView pids(args_[1].bytes(), MakeType(TypeId::kInt4));
    for (size_t i = 0; i < pids.size(); ++i) {
      const Datum pid = pids.Get(i);
      if (pid.is_null()) continue;
      const auto group = static_cast<uint64_t>(pid.int_value());
      if (std::find(blockers.begin(), blockers.end(), group) != blockers.end())
        return Datum::Bool(true);
    }
    return Datum::Bool(false);
  }

  Session::Impl& s_;
  std::span<const Datum> args_;
  Arena* arena_;
  catalog::SnapshotPtr catalog_;
};

}  // namespace

Result<Datum> Session::Impl::CatalogFunction(std::string_view name, std::span<const Datum> args,
                                             Arena* arena) {
  return CatalogFunctions(*this, args, arena).Call(name);
}

}  // namespace cellar::session
