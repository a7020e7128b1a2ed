// Namespaces: making, changing, listing and moving; what paths lead to.
#include <algorithm>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/rpc/admin/handlers.h"
#include "cellar/rpc/admin/messages.h"
#include "cellar/rpc/admin/statements.h"

namespace cellar::rpc::admin {
namespace {

constexpr uint32_t kDefaultPage = 100, kLargestPage = 1000;

std::string SpaceKeyword(const Place& place) {
  return place.schema.empty() ? "DATABASE " : "SCHEMA ";
}
std::string SpaceName(const Place& place) {
  return QuoteIdentifier(place.schema.empty() ? place.database : place.schema);
}

// Databases are made, renamed and dropped from the session that the caller has chosen.
Status EnterFor(AdminCall* call, const Place& place) {
  return call->Enter(place.schema.empty() ? "" : place.database);
}

Status AnswerNamespace(AdminCall* call, const Place& place, v1::Namespace* answer) {
  CELLAR_TRY_ASSIGN(const catalog::NamespacePtr space, call->FindNamespace(place));
  PutNamespace(*call->Catalog(), *space, answer);
  return Status();
}

void AddNamespaceChanges(const v1::Namespace& space, const Place& place,
                         const std::set<std::string>& paths, std::vector<std::string>* statements) {
  const std::string what = SpaceKeyword(place) + SpaceName(place);
  std::vector<std::string> set, reset;
  ZoneTexts(space.zone(), paths, &set, &reset);
  AddOptionStatements("ALTER " + what, set, reset, statements);
  if (paths.contains("comment")) statements->push_back(CommentText(what, space.comment()));
  if (paths.contains("owner")) {
    statements->push_back("ALTER " + what + " OWNER TO " + QuoteIdentifier(space.owner()));
  }
}

void ListSpace(const catalog::CatalogSnapshot& catalog, catalog::NamespaceId id, bool recursive,
               std::vector<v1::ObjectName>* found) {
  if (id != catalog::kRootNamespace) {
    for (const catalog::TablePtr& table : catalog.ListTables(id)) {
      PutObject(catalog, *table, &found->emplace_back());
    }
  }
  for (const catalog::NamespacePtr& space : catalog.ListNamespaces(id)) {
    if (space->name.rfind("pg_", 0) == 0) continue;  // of temporary tables
    PutObject(catalog, *space, &found->emplace_back());
    if (recursive) ListSpace(catalog, space->id, true, found);
  }
}

std::string PageToken(const v1::ObjectName& object) {
  return object.path() + '\n' + std::to_string(object.kind());
}

}  // namespace

Status BadRequest(std::string message) {
  return Status(Code::kInvalid, std::move(message)).WithSqlState(sqlstate::kInvalidParameterValue);
}

int64_t NumberOf(const std::optional<std::string>& text) {
  int64_t number = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

std::string Named::Keyword() const {
  switch (kind) {
    case v1::OBJECT_KIND_NAMESPACE: return place.schema.empty() ? "DATABASE" : "SCHEMA";
    case v1::OBJECT_KIND_VIEW: return "VIEW";
    case v1::OBJECT_KIND_SEQUENCE: return "SEQUENCE";
    default: return "TABLE";
  }
}

std::string Named::Name() const {
  return kind == v1::OBJECT_KIND_NAMESPACE ? SpaceName(place) : place.Relation();
}

Result<Named> NameFor(const std::string& path, v1::ObjectKind kind) {
  Named named;
  named.kind = kind;
  if (kind == v1::OBJECT_KIND_UNSPECIFIED) {
    const Result<Place> relation = RelationPlace(path);
    named.kind = relation.ok() ? v1::OBJECT_KIND_TABLE : v1::OBJECT_KIND_NAMESPACE;
  }
  if (named.kind == v1::OBJECT_KIND_NAMESPACE) {
    CELLAR_TRY_ASSIGN(named.place, NamespacePlace(path));
  } else {
    CELLAR_TRY_ASSIGN(named.place, RelationPlace(path));
  }
  return named;
}

Result<Named> Resolve(AdminCall* call, const std::string& path, v1::ObjectKind kind) {
  CELLAR_TRY_ASSIGN(Named named, NameFor(path, kind));
  CELLAR_TRY(named.database() ? call->Enter("") : call->Enter(named.place.database));
  if (kind != v1::OBJECT_KIND_UNSPECIFIED && kind != v1::OBJECT_KIND_NAMESPACE) {
    CELLAR_TRY_ASSIGN(const catalog::TablePtr table, call->FindRelation(named.place));
    named.oid = table->oid();
    return named;
  }
  if (named.kind == v1::OBJECT_KIND_NAMESPACE) {
    CELLAR_TRY_ASSIGN(const catalog::NamespacePtr space, call->FindNamespace(named.place));
    named.oid = space->oid();
    return named;
  }
  const Result<catalog::TablePtr> table = call->FindRelation(named.place);
  const Result<Place> place = NamespacePlace(path);
  catalog::NamespacePtr space;
  if (place.ok() && place->schema != "public") {
    Result<catalog::NamespacePtr> there = call->FindNamespace(*place);
    if (there.ok()) space = std::move(*there);
  }
  if (table.ok() && space != nullptr) {
    return SqlError(Code::kInvalid, sqlstate::kAmbiguousFunction,
                    "a namespace and a relation have this name")
        .WithDetail(fmt::format("The path is \"{}\".", path))
        .WithHint("Say the kind.");
  }
  if (table.ok()) {
    v1::ObjectName object;
    PutObject(*call->Catalog(), **table, &object);
    named.kind = object.kind();
    named.oid = (*table)->oid();
    return named;
  }
  if (space == nullptr) return table.status();
  named.kind = v1::OBJECT_KIND_NAMESPACE;
  named.place = *place;
  named.oid = space->oid();
  return named;
}

Status CreateNamespace(AdminCall* call, const v1::CreateNamespaceRequest& request,
                       v1::Namespace* answer) {
  const v1::Namespace& space = request.namespace_();
  CELLAR_TRY_ASSIGN(const Place place, NamespacePlace(space.path()));
  CELLAR_TRY(EnterFor(call, place));
  const bool exists = call->FindNamespace(place).ok();
  if (exists && request.if_not_exists()) return AnswerNamespace(call, place, answer);
  std::vector<std::string> statements = {"CREATE " + SpaceKeyword(place) + SpaceName(place)};
  std::set<std::string> paths = ZonePaths(space.zone());
  if (!space.comment().empty()) paths.insert("comment");
  if (!space.owner().empty()) paths.insert("owner");
  if (place.schema.empty() && !paths.empty()) {
    // CREATE DATABASE is a transaction of its own; what follows is another.
    CELLAR_TRY(call->Run(statements.front()));
    statements.clear();
  }
  AddNamespaceChanges(space, place, paths, &statements);
  CELLAR_TRY(call->RunAll(statements));
  return AnswerNamespace(call, place, answer);
}

Status GetNamespace(AdminCall* call, const v1::GetNamespaceRequest& request,
                    v1::Namespace* answer) {
  CELLAR_TRY_ASSIGN(const Place place, NamespacePlace(request.path()));
  CELLAR_TRY(EnterFor(call, place));
  CELLAR_TRY(AnswerNamespace(call, place, answer));
  return TrimTo(request.read_mask(), answer);
}

Status UpdateNamespace(AdminCall* call, const v1::UpdateNamespaceRequest& request,
                       v1::Namespace* answer) {
  const v1::Namespace& space = request.namespace_();
  CELLAR_TRY_ASSIGN(const Place place, NamespacePlace(space.path()));
  CELLAR_TRY_ASSIGN(const std::set<std::string> paths,
                    UpdatePaths(request.update_mask(), space, {"owner", "comment", "zone"}));
  CELLAR_TRY(EnterFor(call, place));
  CELLAR_TRY(call->FindNamespace(place).status());
  std::vector<std::string> statements;
  AddNamespaceChanges(space, place, paths, &statements);
  CELLAR_TRY(call->Atomically([&]() -> Status {
    CELLAR_TRY_ASSIGN(const catalog::NamespacePtr now, call->FindNamespace(place));
    CELLAR_TRY(call->CheckVersion(space.version(), now->version));
    for (const std::string& statement : statements) CELLAR_TRY(call->Run(statement));
    return Status();
  }));
  return AnswerNamespace(call, place, answer);
}

Status List(AdminCall* call, const v1::ListRequest& request, v1::ListResponse* answer) {
  catalog::NamespaceId start = catalog::kRootNamespace;
  if (request.path() == "/") {
    CELLAR_TRY(call->Enter(""));
  } else {
    CELLAR_TRY_ASSIGN(const Place place, NamespacePlace(request.path()));
    CELLAR_TRY(call->Enter(place.database));
    CELLAR_TRY_ASSIGN(const catalog::NamespacePtr space, call->FindNamespace(place));
    start = space->id;
  }
  std::vector<v1::ObjectName> found;
  ListSpace(*call->Catalog(), start, request.recursive(), &found);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(std::string_view(a.path()), a.kind()) <
           std::pair(std::string_view(b.path()), b.kind());
  });
  const uint32_t wanted = request.page_size() == 0 ? kDefaultPage : request.page_size();
  const int page = static_cast<int>(std::min(wanted, kLargestPage));
  bool skipping = !request.page_token().empty();
  const size_t line = request.page_token().find('\n');
  if (skipping && line == std::string::npos) {
    return SqlError(Code::kInvalid, sqlstate::kInvalidParameterValue,
                    "this is no page token of a list of objects");
  }
  const std::string after = request.page_token().substr(0, line);
  const int after_kind = line == std::string::npos
                             ? 0
                             : static_cast<int>(NumberOf(request.page_token().substr(line + 1)));
  for (v1::ObjectName& object : found) {
    if (skipping && std::pair(std::string_view(object.path()), static_cast<int>(object.kind())) <=
                        std::pair(std::string_view(after), after_kind)) {
      continue;
    }
    skipping = false;
    if (!request.kinds().empty() && std::find(request.kinds().begin(), request.kinds().end(),
                                              object.kind()) == request.kinds().end()) {
      continue;
    }
    if (answer->objects_size() == page) {
      answer->set_next_page_token(PageToken(answer->objects(page - 1)));
      break;
    }
    answer->add_objects()->Swap(&object);
  }
  return Status();
}

Status Move(AdminCall* call, const v1::MoveRequest& request, v1::ObjectName* answer) {
  CELLAR_TRY_ASSIGN(const Named from, Resolve(call, request.path(), request.kind()));
  CELLAR_TRY_ASSIGN(const Named to, NameFor(request.new_path(), from.kind));
  if (to.database() != from.database() ||
      (!from.database() && to.place.database != from.place.database)) {
    return UnsupportedError("moving to another database");
  }
  std::vector<std::string> statements;
  if (from.kind == v1::OBJECT_KIND_NAMESPACE) {
    if (from.Name() != to.Name()) {
      statements.push_back("ALTER " + from.Keyword() + " " + from.Name() + " RENAME TO " +
                           to.Name());
    }
  } else {
    const std::string alter = "ALTER " + from.Keyword() + " ";
    Place place = from.place;
    const bool renames = place.name != to.place.name, moves = place.schema != to.place.schema;
    if (renames && moves) {
      // Under a name that neither namespace has meanwhile: either step alone may meet the old one.
      const std::string between = fmt::format("cellar_move_{}", from.oid);
      statements.push_back(alter + place.Relation() + " RENAME TO " + between);
      place.name = between;
    }
    if (moves) {
      statements.push_back(alter + place.Relation() + " SET SCHEMA " +
                           QuoteIdentifier(to.place.schema));
      place.schema = to.place.schema;
    }
    if (renames) {
      statements.push_back(alter + place.Relation() + " RENAME TO " +
                           QuoteIdentifier(to.place.name));
    }
  }
  CELLAR_TRY(call->RunAll(statements));
  if (from.kind == v1::OBJECT_KIND_NAMESPACE) {
    CELLAR_TRY_ASSIGN(const catalog::NamespacePtr space, call->FindNamespace(to.place));
    PutObject(*call->Catalog(), *space, answer);
    return Status();
  }
  CELLAR_TRY_ASSIGN(const catalog::TablePtr table, call->FindRelation(to.place));
  PutObject(*call->Catalog(), *table, answer);
  return Status();
}

}  // namespace cellar::rpc::admin
