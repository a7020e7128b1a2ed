// One call of the Admin service: its session, the statements that it runs, the names in its paths.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/catalog/catalog.h"
#include "cellar/rpc/admin/admin_service.h"
#include "cellar/rpc/admin/background.h"
#include "cellar/rpc/server/calls.h"
#include "cellar/sql/parser/deparse.h"

namespace cellar::rpc {

// Where a path leads: "/db", "/db/schema", "/db/table", "/db/schema/table".
struct Place {
  std::string database, schema, name;
  // "schema.name", quoted.
  std::string Relation() const { return sql::QuoteQualified(schema, name); }
};
// Errors: 42602 for a path that is none of a relation; 0A000 for one that is too deep.
Result<Place> RelationPlace(std::string_view path);
// schema is empty for a child of the root; name always.
Result<Place> NamespacePlace(std::string_view path);

// Values as texts; nullopt is NULL.
using TextRows = std::vector<std::vector<std::optional<std::string>>>;

struct AdminServices {
  Calls* calls;
  SessionFactory sessions;
  SessionWatcher watcher;
  BackgroundStatements background;
};

class AdminCall {
 public:
  AdminCall(AdminServices* services, grpc::ServerContext* context)
      : services_(services), context_(context) {}
  // One that has an idempotency id, perhaps an empty one.
  AdminCall(AdminServices* services, grpc::ServerContext* context, std::string id, uint32_t number)
      : services_(services), context_(context), id_(std::move(id)), number_(number) {}
  ~AdminCall() { Leave(); }
  AdminCall(const AdminCall&) = delete;
  AdminCall& operator=(const AdminCall&) = delete;

  // Opens a session in a database; empty: the one that the caller has named. Again for the same one
  // is nothing. Errors: those of logging in.
  Status Enter(const std::string& database);
  const Identity& identity() const { return identity_; }
  catalog::SnapshotPtr Catalog();

  // Whether a call with this id has made its change; from then on Run and what is made of it do
  // nothing, and what is read is the answer. Errors: 22023, 0B000.
  Result<bool> Repeats();
  // After the change, in case that no commit has kept the id.
  Status KeepId();

  Result<TextRows> Query(const std::string& statement);
  Status Run(const std::string& statement);
  // In one transaction, begun again after conflicts unless `refused` was set.
  Status Atomically(const std::function<Status()>& work);
  // One by itself, several in one transaction; none: nothing.
  Status RunAll(const std::vector<std::string>& statements);
  // As Run, but without `wait` it returns as soon as a job does the work, whose id it gives; 0: all
  // is done. The job's object is about a relation of this name.
  Result<uint64_t> RunOrLeave(const std::string& statement, bool wait, const std::string& relation);
  bool cancelled() const;

  // 42P01, 3D000 or 3F000 when there is none.
  Result<catalog::TablePtr> FindRelation(const Place& place);
  Result<catalog::NamespacePtr> FindNamespace(const Place& place);
  // 40001 when `expected` is not zero and not `version`.
  Status CheckVersion(uint64_t expected, uint64_t version);

  const std::vector<std::string>& notices() const { return notices_; }

 private:
  void Leave();

  AdminServices* services_;
  grpc::ServerContext* context_;
  Identity identity_;
  std::unique_ptr<session::Session> session_;
  std::vector<std::string> notices_;
  bool refused_ = false;
  std::string id_;
  uint32_t number_ = 0;  // of the calls that the id was given to
  bool repeats_ = false;
};

}  // namespace cellar::rpc
