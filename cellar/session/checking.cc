// CHECK and REPAIR.
#include "cellar/session/checking.h"

#include "cellar/base/sqlstate.h"
#include "cellar/catalog/unreadable.h"
#include "cellar/session/collector.h"
#include "cellar/session/ddl.h"
#include "cellar/session/jobs.h"
#include "cellar/session/session_internal.h"
#include "cellar/table/backfill.h"
#include "cellar/table/check.h"
#include "cellar/table/rewrite.h"

namespace cellar::session {
namespace {

void AppendTexts(std::initializer_list<std::string_view> texts, Portal* portal) {
  std::vector<Datum> row;
  for (std::string_view text : texts) {
    row.push_back(text.empty() ? Datum::Null() : Datum::Bytes(text));
  }
  portal->rows.AppendRow(row);
}

void StartRows(const ast::OwnStmt& statement, Portal* portal) {
  portal->columns = ColumnsOf(statement);
  std::vector<Type> types;
  for (const ResultColumn& column : portal->columns) types.push_back(column.type);
  portal->rows.Reset(types);
  portal->materialized = true;
}

void ListTables(const catalog::CatalogSnapshot& catalog, catalog::NamespaceId space,
                std::vector<catalog::TablePtr>* tables) {
  for (const catalog::TablePtr& table : catalog.ListTables(space)) {
    if (table->kind == catalog::RelationKind::kTable) tables->push_back(table);
  }
  for (const catalog::NamespacePtr& child : catalog.ListNamespaces(space)) {
    ListTables(catalog, child->id, tables);
  }
}

// The tables that a statement names, with their catalog.
struct Subject {
  catalog::SnapshotPtr catalog;
  std::vector<catalog::TablePtr> tables;
};

// Snapshot first, then the catalog that it holds: what others make and drop meanwhile is neither
// missing nor left over.
Result<Subject> FindSubject(Session::Impl* session, const ast::OwnStmt& statement) {
  Subject out;
  CELLAR_TRY_ASSIGN(out.catalog, catalog::ReadCatalog(session->transaction->kv.get()));
  if (statement.object_type == ast::ObjectType::kDatabase) {
    catalog::NamespaceId database = session->database_id;
    if (!statement.object.parts.empty()) {
      const catalog::NamespacePtr found =
          out.catalog->FindNamespace(catalog::kRootNamespace, statement.object.parts.back());
      if (found == nullptr || statement.object.parts.size() > 1) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidCatalogName,
                        "database \"{}\" does not exist", JoinNames(statement.object.parts, "."));
      }
      database = found->id;
    }
    CELLAR_TRY(session->CheckOwner(*out.catalog->GetNamespace(database)));
    ListTables(*out.catalog, database, &out.tables);
    return out;
  }
  const ast::QualifiedName name = NameOf(statement.object);
  catalog::TablePtr table =
      sql::FindRelation(*out.catalog, session->Scope(), name.schema, name.name);
  if (table == nullptr) {
    return SqlError(Code::kNotFound, sqlstate::kUndefinedTable, "relation \"{}\" does not exist",
                    JoinNames(statement.object.parts, "."));
  }
  if (table->kind != catalog::RelationKind::kTable) {
    return SqlError(Code::kInvalid, sqlstate::kWrongObjectType, "\"{}\" is not a table",
                    table->name);
  }
  CELLAR_TRY(session->CheckOwner(*table));
  out.tables = {table};
  return out;
}

}  // namespace

namespace {

// Owners and grantees must be roles: another one that is made would get what was theirs.
class GrantCheck {
 public:
  GrantCheck(const RoleSet& roles, std::vector<std::string>* findings)
      : roles_(roles), findings_(findings) {}

  void CheckOwner(const std::string& what, const std::string& owner) {
    if (owner.empty() || roles_.Find(owner) != nullptr || roles_.unreadable.contains(owner)) return;
    findings_->push_back(fmt::format("{} is owned by \"{}\", which is no role", what, owner));
  }
  void CheckAcl(const std::string& what, const catalog::Acl& acl) {
    if (!roles_.unreadable.empty()) return;  // whose oids are not known
    for (const catalog::AclItem& item : acl.items) {
      for (const uint32_t role : {item.grantee, item.grantor}) {
        if (role == 0 || roles_.FindByOid(role) != nullptr) continue;
        findings_->push_back(
            fmt::format("{} is granted to or by role {}, which is not there", what, role));
      }
    }
  }

 private:
  const RoleSet& roles_;
  std::vector<std::string>* const findings_;
};

void CheckGrants(const catalog::CatalogSnapshot& catalog, catalog::NamespaceId space,
                 GrantCheck* grants) {
  for (const catalog::NamespacePtr& child : catalog.ListNamespaces(space)) {
    const std::string what = fmt::format("namespace {} \"{}\"", child->id.value, child->name);
    grants->CheckOwner(what, child->owner);
    grants->CheckAcl(what, child->acl);
    CheckGrants(catalog, child->id, grants);
  }
}

Status CheckSequence(const catalog::CatalogSnapshot& catalog,
                     const catalog::TableDescriptor& sequence, kv::Transaction* reader,
                     std::vector<std::string>* findings) {
  const Result<std::optional<std::pair<int64_t, bool>>> state =
      ReadSequenceRecord(sequence.storage_id(), reader);
  if (state.status().code() == Code::kCorruption) {
    findings->push_back(fmt::format("the record of sequence {} is damaged: {}",
                                    catalog.PathOf(sequence), state.status().message()));
    return Status();
  }
  CELLAR_TRY(state.status());
  if (!state->has_value()) return Status();
  const int64_t value = (*state)->first;
  if (value < sequence.sequence.min || value > sequence.sequence.max) {
    findings->push_back(
        fmt::format("sequence {} is at {}, out of its bounds", catalog.PathOf(sequence), value));
  }
  return Status();
}

}  // namespace

Status CheckSessionRecords(const catalog::CatalogSnapshot& catalog, kv::Transaction* reader,
                           std::vector<std::string>* findings) {
  CELLAR_TRY(CheckRoleRecords(reader, findings));
  CELLAR_TRY(CheckJobRecords(reader, findings));
  CELLAR_TRY_ASSIGN(const std::shared_ptr<RoleSet> roles, RoleStore::Read(reader));
  GrantCheck grants(*roles, findings);
  CheckGrants(catalog, catalog::kRootNamespace, &grants);
  const bool all_read = !catalog::HasUnreadable(catalog);
  for (const catalog::TablePtr& table : catalog.ListAllTables()) {
    const std::string what = fmt::format("relation {} \"{}\"", table->id.value, table->name);
    grants.CheckOwner(what, table->owner);
    grants.CheckAcl(what, table->acl);
    for (const catalog::ColumnDescriptor& column : table->columns) {
      grants.CheckAcl(what, column.acl);
    }
    if (table->kind == catalog::RelationKind::kSequence) {
      CELLAR_TRY(CheckSequence(catalog, *table, reader, findings));
    }
    for (const EnumType* type : catalog::EnumsOf(*table)) {
      if (!all_read || catalog.GetTypeByOid(type->oid) != nullptr) continue;
      findings->push_back(
          fmt::format("{} has a column of enum type \"{}\", which is not there", what, type->name));
    }
  }
  return Status();
}

Status CheckSessionRecords(kv::Engine* engine, std::vector<std::string>* findings) {
  kv::TransactionOptions options;
  options.read_only = true;
  const std::unique_ptr<kv::Transaction> reader = engine->Begin(options);
  CELLAR_TRY_ASSIGN(const catalog::SnapshotPtr catalog, catalog::ReadCatalog(reader.get()));
  return CheckSessionRecords(*catalog, reader.get(), findings);
}

Result<std::vector<codec::KeyRange>> RangesOfJobs(const catalog::CatalogSnapshot& catalog,
                                                  kv::Transaction* reader) {
  std::vector<codec::KeyRange> ranges;
  CELLAR_TRY_ASSIGN(const std::vector<Job> jobs, ReadJobs(reader));
  for (const Job& job : jobs) {
    if (job.ended()) continue;
    catalog::TablePtr table = catalog.GetTable(job.table);
    if (table == nullptr) table = catalog.GetDroppedTable(job.table);
    if (table == nullptr) continue;
    if (job.kind == JobKind::kBuildIndex || job.kind == JobKind::kOldBuild) {
      ranges.push_back(table::RangeOfBuild(*table, job.index));
    } else if (job.kind == JobKind::kRewrite) {
      const Result<catalog::TableDescriptor> copy = catalog::DecodeTable(job.copy);
      if (copy.ok()) ranges.push_back(table::RangeOfRewrite(*copy));
    }
  }
  return ranges;
}

Status Session::Impl::RunCheck(const ast::OwnStmt& statement, Portal* portal, ResultSink* sink) {
  StartRows(statement, portal);
  CELLAR_TRY(EnsureTransaction(true));
  CELLAR_TRY_ASSIGN(Subject subject, FindSubject(this, statement));
  table::CheckOptions check;
  check.cancel = &cancel;
  CELLAR_TRY_ASSIGN(check.of_jobs, RangesOfJobs(*subject.catalog, transaction->kv.get()));
  if (statement.fast) check.mode = table::CheckMode::kFast;
  if (statement.full) check.mode = table::CheckMode::kFull;
  table::CheckTotals totals;
  std::vector<table::CheckFinding> findings;
  if (statement.object_type == ast::ObjectType::kDatabase) {
    CELLAR_TRY(table::CheckStore(*subject.catalog, subject.tables, transaction->kv.get(), check,
                                 &totals, &findings));
    std::vector<std::string> records;
    CELLAR_TRY(CheckSessionRecords(*subject.catalog, transaction->kv.get(), &records));
    for (std::string& text : records) findings.push_back({"", "", std::move(text)});
  } else {
    totals.tables = 1;
    CELLAR_TRY(table::CheckTable(subject.tables.front(), transaction->kv.get(), check, &totals.rows,
                                 &findings));
    for (table::CheckFinding& finding : findings) {
      finding.table = subject.catalog->PathOf(*subject.tables.front());
    }
  }
  if (statement.full) {
    Ddl ddl(this, sink);
    for (const catalog::TablePtr& table : subject.tables) {
      std::vector<std::string> broken;
      CELLAR_TRY(ddl.FindBrokenConstraints(*subject.catalog, table, &broken));
      for (std::string& text : broken) {
        findings.push_back({subject.catalog->PathOf(*table), "", std::move(text)});
      }
    }
  }
  for (const table::CheckFinding& finding : findings) {
    AppendTexts({finding.table, finding.index, finding.text}, portal);
  }
  portal->tag = fmt::format("CHECK {}", findings.size());
  return Notify(
      sink, Severity::kNotice, "00000",
      fmt::format("checked {} {}, {} rows: {}", totals.tables,
                  totals.tables == 1 ? "table" : "tables", totals.rows,
                  findings.empty() ? "all agree" : fmt::format("{} problems", findings.size())));
}

Status Session::Impl::RunRepair(const ast::OwnStmt& statement, Portal* portal, ResultSink*) {
  StartRows(statement, portal);
  CELLAR_TRY(CheckWritable("REPAIR"));
  CELLAR_TRY(EnsureTransaction(false));
  CELLAR_TRY_ASSIGN(Subject subject, FindSubject(this, statement));
  table::CheckOptions check;
  check.cancel = &cancel;
  CELLAR_TRY_ASSIGN(check.of_jobs, RangesOfJobs(*subject.catalog, transaction->kv.get()));
  size_t done = 0;
  const auto report = [&](std::string_view object, const std::vector<std::string>& texts,
                          const char* prefix) {
    for (const std::string& text : texts) AppendTexts({object, prefix + text}, portal);
  };
  constexpr const char* kLeft = "LEFT ALONE: ";
  if (statement.object_type == ast::ObjectType::kDatabase) {
    table::RepairReport records;
    CELLAR_TRY(table::RepairRecords(*subject.catalog, transaction->kv.get(), check, &records));
    report("", records.done, "");
    CELLAR_TRY(CheckSessionRecords(db->engine.get(), &records.left));
    report("", records.left, kLeft);
    done += records.done.size();
  }
  for (const catalog::TablePtr& table : subject.tables) {
    // It repairs what the commit finds, or nothing.
    CELLAR_TRY(catalog::RequireCurrent(*table, transaction->kv.get()));
    table::RepairReport repaired;
    CELLAR_TRY(table::RepairTable(table, transaction->kv.get(), check, &repaired));
    const std::string path = subject.catalog->PathOf(*table);
    report(path, repaired.done, "");
    report(path, repaired.left, kLeft);
    done += repaired.done.size();
  }
  portal->tag = fmt::format("REPAIR {}", done);
  return Status();
}

}  // namespace cellar::session
