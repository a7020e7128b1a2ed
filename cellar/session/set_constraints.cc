// SET CONSTRAINTS, the checks of foreign keys that wait for the end of the transaction, and the
// plans of what foreign keys carry out.
#include "cellar/base/sqlstate.h"
#include "cellar/session/error_values.h"
#include "cellar/session/session_internal.h"
#include "cellar/session/system_rows.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::session {
namespace {

struct Found {
  uint32_t oid = 0;
  bool deferrable = false;
  bool unique = false;
};

std::vector<Found> ConstraintsNamed(const catalog::CatalogSnapshot& catalog,
                                    catalog::NamespaceId space, std::string_view name) {
  std::vector<Found> found;
  for (const catalog::TablePtr& table : catalog.ListTables(space)) {
    for (const catalog::IndexDescriptor& index : table->indexes) {
      if (index.constraint && index.name == name)
        found.push_back({ConstraintOid(index), index.deferrable, true});
    }
    for (const catalog::CheckConstraint& check : table->checks) {
      if (check.name == name) found.push_back({check.oid, false, false});
    }
    for (const catalog::ForeignKey& key : table->foreign_keys) {
      if (key.name == name) found.push_back({key.oid, key.deferrable, false});
    }
  }
  return found;
}

}  // namespace

Status Session::Impl::CheckDeferred(bool all) {
  if (transaction == nullptr || transaction->deferred.empty()) return Status();
  CELLAR_TRY(RefreshStatementSnapshot());
  sql::EvalContext context;
  SetUpContext(&context);
  const catalog::SnapshotPtr catalog = CurrentCatalog();
  sql::ExecEnvironment environment;
  environment.access = transaction->access.get();
  environment.context = &context;
  environment.catalog = catalog.get();
  environment.memory_limit_bytes = settings.hot().work_mem_bytes;
  return HideValues(this, transaction->deferred.Check(environment, all));
}

Status Session::Impl::RunSetConstraints(const ast::SetConstraintsStmt& statement,
                                        ResultSink* sink) {
  if (!in_block) {
    CELLAR_TRY(Notify(sink, Severity::kWarning, sqlstate::kNoActiveSqlTransaction,
                      "SET CONSTRAINTS can only be used in transaction blocks"));
  }
  CELLAR_TRY(EnsureTransaction(false));
  const catalog::SnapshotPtr catalog = CurrentCatalog();
  std::vector<uint32_t> oids;
  bool unique = false;
  for (const ast::QualifiedName& name : statement.constraints) {
    std::vector<std::string> schemas = Scope().search_path;
    if (!name.schema.empty()) {
      CELLAR_TRY(sql::CheckSchemaUse(*catalog, Scope(), name.schema));
      if (!sql::FindSchema(*catalog, Scope(), name.schema)) {
        return SqlError(Code::kNotFound, sqlstate::kInvalidSchemaName,
                        "schema \"{}\" does not exist", name.schema);
      }
      schemas = {name.schema};
    } else if (temporary_namespace.value != 0) {
      schemas.insert(schemas.begin(), "pg_temp");
    }
    std::vector<Found> found;
    // The first schema that has one is the one that is meant.
    for (const std::string& schema : schemas) {
      const std::optional<catalog::NamespaceId> space = sql::FindSchema(*catalog, Scope(), schema);
      if (space) found = ConstraintsNamed(*catalog, *space, name.name);
      if (!found.empty()) break;
    }
    if (found.empty()) {
      return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                      "constraint \"{}\" does not exist", name.name);
    }
    for (const Found& one : found) {
      if (!one.deferrable && statement.deferred) {
        return SqlError(Code::kInvalid, sqlstate::kWrongObjectType,
                        "constraint \"{}\" is not deferrable", name.name);
      }
      if (!one.deferrable) continue;
      unique |= one.unique;
      oids.push_back(one.oid);
    }
  }
  if (unique && statement.deferred) {
    return UnsupportedError(
        "unique constraints deferred to the end of the transaction are not "
        "supported");
  }
  if (!statement.constraints.empty() && oids.empty()) return Status();
  transaction->deferred.Set(oids, statement.deferred);
  return statement.deferred ? Status() : CheckDeferred(false);
}

Result<std::shared_ptr<const sql::Plan>> Session::Impl::PlanCascade(
    const catalog::TablePtr& table, std::span<const catalog::ColumnId> columns, bool to_defaults) {
  std::string sets;
  for (catalog::ColumnId id : columns) {
    const std::string name = sql::QuoteIdentifier(table->FindColumn(id)->name);
    if (!sets.empty()) sets += ", ";
    sets += fmt::format("{} = {}", name, to_defaults ? "DEFAULT" : name);
  }
  const std::string text = fmt::format(
      "UPDATE {} SET {}", sql::QuoteQualified(SchemaName(table->parent), table->name), sets);
  CELLAR_TRY_ASSIGN(const sql::Statement statement, sql::ParseOne(text));
  FoldingPlanner planner(*this);
  sql::PlannerContext& context = planner.context;
  // The statement is not the role's own.
  sql::NameScope everywhere = Scope();
  everywhere.may_use = nullptr;
  context.scope = &everywhere;
  return sql::PlanStatement(*statement.ast, context);
}

}  // namespace cellar::session
