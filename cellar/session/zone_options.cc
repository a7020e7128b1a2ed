// ALTER SCHEMA | DATABASE name SET (option = value, ..) | RESET (option, ..), and the same options
// where they are made.
#include "cellar/base/sqlstate.h"
#include "cellar/session/ddl.h"
#include "cellar/session/zones.h"

namespace cellar::session {
namespace {

Result<catalog::NamespacePtr> FindSpace(Session::Impl* session, const ast::OwnStmt& statement) {
  const catalog::SnapshotPtr catalog = session->CurrentCatalog();
  const std::vector<std::string>& parts = statement.object.parts;
  const bool database = statement.object_type == ast::ObjectType::kDatabase;
  catalog::NamespacePtr found;
  if (database && parts.size() == 1) {
    found = catalog->FindNamespace(catalog::kRootNamespace, parts[0]);
  } else if (!database && parts.size() == 1) {
    // `public` is the database itself.
    found = parts[0] == "public" ? catalog->GetNamespace(session->database_id)
                                 : catalog->FindNamespace(session->database_id, parts[0]);
  }
  if (found != nullptr) return found;
  return SqlError(
      Code::kNotFound, database ? sqlstate::kInvalidCatalogName : sqlstate::kInvalidSchemaName,
      "{} \"{}\" does not exist", database ? "database" : "schema", JoinNames(parts, "."));
}

}  // namespace

Status ApplySpaceOptions(std::span<const ast::Option> options, bool reset,
                         catalog::ZoneSettings* zone) {
  for (const ast::Option& option : options) {
    if (!IsZoneOption(option.name)) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "unrecognized parameter \"{}\"", option.name);
    }
    if (!reset && option.value_kind == ast::OptionKind::kNone) {
      return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                      "option \"{}\" needs a value", option.name);
    }
    CELLAR_TRY(ApplyZoneOption(option, reset, zone));
  }
  return Status();
}

Status Session::Impl::RunSetOptions(const ast::OwnStmt& statement) {
  CELLAR_TRY(EnsureTransaction(false));
  CELLAR_TRY(CheckWritable("ALTER"));
  CELLAR_TRY_ASSIGN(const catalog::NamespacePtr space, FindSpace(this, statement));
  CELLAR_TRY(CheckOwner(*space));
  catalog::NamespaceDescriptor next = *space;
  CELLAR_TRY(ApplySpaceOptions(statement.options, statement.reset, &next.zone));
  return Editor().UpdateNamespace(std::move(next));
}

}  // namespace cellar::session
