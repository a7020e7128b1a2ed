// DROP, TRUNCATE and the recycle bin.
#include <algorithm>
#include <charconv>

#include "cellar/base/sqlstate.h"
#include "cellar/rpc/admin/handlers.h"
#include "cellar/rpc/admin/messages.h"
#include "cellar/rpc/admin/statements.h"

namespace cellar::rpc::admin {
namespace {

constexpr uint32_t kDefaultPage = 100, kLargestPage = 1000;
constexpr int64_t kMicros = 1000000;

void PutTime(int64_t micros, google::protobuf::Timestamp* time) {
  time->set_seconds(micros / kMicros);
  time->set_nanos(static_cast<int32_t>(micros % kMicros * 1000));
}
void PutDuration(int64_t micros, google::protobuf::Duration* duration) {
  duration->set_seconds(micros / kMicros);
  duration->set_nanos(static_cast<int32_t>(micros % kMicros * 1000));
}

// Everything in the bin that the session's catalog knows, by id.
Result<std::vector<v1::DroppedObject>> ReadBin(AdminCall* call) {
  CELLAR_TRY_ASSIGN(
      const TextRows rows,
      call->Query(
          "SELECT id, kind, (extract(epoch FROM dropped_at) * 1000000)::int8, dropped_by, "
          "(extract(epoch FROM expires_in) * 1000000)::int8, rows, bytes, state, drop_group "
          "FROM pg_catalog.cellar_dropped ORDER BY id"));
  const catalog::SnapshotPtr catalog = call->Catalog();
  std::vector<v1::DroppedObject> found;
  for (const auto& row : rows) {
    v1::DroppedObject object;
    object.set_id(static_cast<uint64_t>(NumberOf(row[0])));
    std::optional<int64_t> keep;
    const std::string& kind = *row[1];
    if (kind == "schema" || kind == "database") {
      const catalog::NamespacePtr space =
          catalog->GetDroppedNamespace(catalog::NamespaceId{object.id()});
      if (space == nullptr) continue;  // it has come back meanwhile
      object.set_path(catalog->PathOf(space->id));
      object.set_kind(v1::OBJECT_KIND_NAMESPACE);
      keep = space->keep_micros;
    } else {
      const catalog::TablePtr table = catalog->GetDroppedTable(catalog::TableId{object.id()});
      // Types have no kind here.
      if (table == nullptr || table->kind == catalog::RelationKind::kType) continue;
      object.set_path(catalog->PathOf(*table));
      object.set_kind(kind == "view"       ? v1::OBJECT_KIND_VIEW
                      : kind == "sequence" ? v1::OBJECT_KIND_SEQUENCE
                      : kind == "table"    ? v1::OBJECT_KIND_TABLE
                                           : v1::OBJECT_KIND_TRUNCATED_TABLE);
      keep = table->keep_micros;
    }
    constexpr int64_t kBuiltIn = int64_t{7} * 86400 * kMicros;
    PutDuration(keep.value_or(kBuiltIn), object.mutable_retention());
    PutTime(NumberOf(row[2]), object.mutable_dropped_at());
    object.set_dropped_by(row[3].value_or(""));
    PutDuration(std::max<int64_t>(0, NumberOf(row[4])), object.mutable_time_left());
    object.set_rows(static_cast<uint64_t>(NumberOf(row[5])));
    object.set_disk_bytes(static_cast<uint64_t>(NumberOf(row[6])));
    object.set_collecting(row[7].value_or("") == "collecting");
    object.set_group(static_cast<uint64_t>(NumberOf(row[8])));
    found.push_back(std::move(object));
  }
  return found;
}

// What a path, kind and id name in the bin: id 0 is the newest.
Result<v1::DroppedObject> FindDropped(AdminCall* call, const std::string& path, v1::ObjectKind kind,
                                      uint64_t id) {
  CELLAR_TRY_ASSIGN(const std::vector<v1::DroppedObject> bin, ReadBin(call));
  const v1::DroppedObject* best = nullptr;
  for (const v1::DroppedObject& object : bin) {
    if (!path.empty() && object.path() != path) continue;
    if (id != 0 && object.id() != id) continue;
    if (kind != v1::OBJECT_KIND_UNSPECIFIED && kind != object.kind()) continue;
    if (best == nullptr || std::tuple(!object.collecting(), object.group(), object.id()) >
                               std::tuple(!best->collecting(), best->group(), best->id())) {
      best = &object;
    }
  }
  if (best != nullptr) return *best;
  return SqlError(Code::kNotFound, sqlstate::kUndefinedObject,
                  "the recycle bin has nothing of this name")
      .WithDetail(id == 0 ? fmt::format("The path is \"{}\".", path)
                          : fmt::format("The path is \"{}\", the id {}.", path, id));
}

// "TABLE schema.name ID n", in a session of the right database.
Result<std::string> Spell(AdminCall* call, const v1::DroppedObject& object, Named* named) {
  CELLAR_TRY_ASSIGN(*named, NameFor(object.path(), object.kind()));
  CELLAR_TRY(call->Enter(named->database() ? "" : named->place.database));
  return fmt::format("{} {} ID {}", named->Keyword(), named->Name(), object.id());
}

// The bin is one for all databases: a session of the caller's own reads it when the path's database
// is itself in there.
Status EnterBin(AdminCall* call, const std::string& path) {
  const Result<Place> relation = RelationPlace(path);
  if (relation.ok() && call->Enter(relation->database).ok()) return Status();
  return call->Enter("");
}

}  // namespace

Status Drop(AdminCall* call, const v1::DropRequest& request, v1::Empty*) {
  Result<Named> found = Resolve(call, request.path(), request.kind());
  if (!found.ok()) {
    const bool absent = found.status().code() == Code::kNotFound;
    return absent && request.if_exists() ? Status() : found.status();
  }
  std::string text = "DROP " + found->Keyword() + " " + found->Name();
  if (request.cascade() && !found->database()) text += " CASCADE";
  return call->Run(text);
}

Status Truncate(AdminCall* call, const v1::TruncateRequest& request, v1::Empty*) {
  if (request.tables().empty()) return BadRequest("the request names no table");
  std::vector<std::string> names;
  std::string database;
  for (const std::string& path : request.tables()) {
    CELLAR_TRY_ASSIGN(const Place place, RelationPlace(path));
    if (!database.empty() && database != place.database) {
      return UnsupportedError("one call about tables of several databases");
    }
    database = place.database;
    names.push_back(place.Relation());
  }
  CELLAR_TRY(call->Enter(database));
  std::string text = "TRUNCATE TABLE " + Join(names);
  if (request.restart_identity()) text += " RESTART IDENTITY";
  if (request.cascade()) text += " CASCADE";
  return call->Run(text);
}

Status ListDropped(AdminCall* call, const v1::ListDroppedRequest& request,
                   v1::ListDroppedResponse* answer) {
  CELLAR_TRY(call->Enter(""));
  CELLAR_TRY_ASSIGN(const std::vector<v1::DroppedObject> bin, ReadBin(call));
  const uint32_t wanted = request.page_size() == 0 ? kDefaultPage : request.page_size();
  const int page = static_cast<int>(std::min(wanted, kLargestPage));
  const auto after =
      static_cast<uint64_t>(request.page_token().empty() ? 0 : NumberOf(request.page_token()));
  const std::string below = request.path() == "/" || request.path().empty() ? "" : request.path();
  for (const v1::DroppedObject& object : bin) {
    if (object.id() <= after || object.path().rfind(below + "/", 0) != 0) continue;
    if (answer->objects_size() == page) {
      answer->set_next_page_token(std::to_string(answer->objects(page - 1).id()));
      break;
    }
    *answer->add_objects() = object;
  }
  return Status();
}

Status Undrop(AdminCall* call, const v1::UndropRequest& request, v1::ObjectName* answer) {
  CELLAR_TRY(EnterBin(call, request.path()));
  CELLAR_TRY_ASSIGN(const v1::DroppedObject object,
                    FindDropped(call, request.path(), request.kind(), request.id()));
  Named named;
  CELLAR_TRY_ASSIGN(const std::string what, Spell(call, object, &named));
  std::string text = "UNDROP " + what;
  if (!request.new_path().empty()) {
    CELLAR_TRY_ASSIGN(const Named to, NameFor(request.new_path(), named.kind));
    const bool space = named.kind == v1::OBJECT_KIND_NAMESPACE;
    if (to.database() != named.database() ||
        (!to.database() && to.place.database != named.place.database) ||
        (!space && to.place.schema != named.place.schema)) {
      return UnsupportedError("bringing back to another namespace")
          .WithHint("Bring it back under another name, then move it.");
    }
    text += " AS " + (space ? to.Name() : QuoteIdentifier(to.place.name));
    named.place = to.place;
  }
  CELLAR_TRY(call->Run(text));
  if (named.kind == v1::OBJECT_KIND_NAMESPACE) {
    CELLAR_TRY_ASSIGN(const catalog::NamespacePtr space, call->FindNamespace(named.place));
    PutObject(*call->Catalog(), *space, answer);
    return Status();
  }
  CELLAR_TRY_ASSIGN(const catalog::TablePtr table, call->FindRelation(named.place));
  PutObject(*call->Catalog(), *table, answer);
  return Status();
}

Status UpdateDropped(AdminCall* call, const v1::UpdateDroppedRequest& request,
                     v1::DroppedObject* answer) {
  CELLAR_TRY(UpdatePaths(request.update_mask(), request.object(), {"retention"}).status());
  if (request.id() == 0) return BadRequest("the request names no id");
  CELLAR_TRY(call->Enter(""));
  CELLAR_TRY_ASSIGN(const v1::DroppedObject object,
                    FindDropped(call, "", v1::OBJECT_KIND_UNSPECIFIED, request.id()));
  Named named;
  CELLAR_TRY_ASSIGN(const std::string what, Spell(call, object, &named));
  if (request.object().has_retention()) {
    const auto& time = request.object().retention();
    CELLAR_TRY(
        call->Run(fmt::format("ALTER DROPPED {} SET (retention = '{} seconds {} microseconds')",
                              what, time.seconds(), time.nanos() / 1000)));
  } else {
    CELLAR_TRY(call->Run("ALTER DROPPED " + what + " RESET (retention)"));
  }
  CELLAR_TRY_ASSIGN(*answer, FindDropped(call, "", v1::OBJECT_KIND_UNSPECIFIED, request.id()));
  return Status();
}

Status Purge(AdminCall* call, const v1::PurgeRequest& request, v1::Empty*) {
  if (request.all()) {
    if (!request.path().empty() || request.id() != 0) {
      return BadRequest("`all` and a path or id exclude each other");
    }
    CELLAR_TRY(call->Enter(""));
    return call->Run("PURGE ALL");
  }
  CELLAR_TRY(EnterBin(call, request.path()));
  CELLAR_TRY_ASSIGN(const v1::DroppedObject object,
                    FindDropped(call, request.path(), request.kind(), request.id()));
  Named named;
  CELLAR_TRY_ASSIGN(std::string what, Spell(call, object, &named));
  if (request.id() == 0) what = named.Keyword() + " " + named.Name();
  return call->Run("PURGE " + what);
}

}  // namespace cellar::rpc::admin
