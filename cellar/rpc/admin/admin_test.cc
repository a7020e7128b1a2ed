#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "cellar/kv/memory_engine.h"
#include "cellar/rpc/admin/admin_service.h"
#include "cellar/rpc/wire/convert.h"
#include "cellar/session/test_session.h"
#include "cellar/v1/admin.grpc.pb.h"

namespace cellar::rpc {
namespace {

using v1::Admin;

class Roles : public auth::RoleDirectory {
 public:
  explicit Roles(session::Database* database) : database_(database) {}
  std::optional<std::string> PasswordVerifier(std::string_view role) override {
    return database_->PasswordVerifier(role);
  }
  bool RoleExists(std::string_view role) override { return database_->RoleExists(role); }
  bool IsMember(std::string_view user, std::string_view role) override {
    return database_->IsMember(user, role);
  }

 private:
  session::Database* database_;
};

// One kind of call for all: EXPECT_EQ(Call(&Stub::X, request, &answer), "").
class AdminTest : public testing::Test {
 protected:
  AdminTest() {
    database_ = std::move(*session::Database::Open(kv::MakeMemoryEngine(), {}));
    roles_ = std::make_unique<Roles>(database_.get());
    const SessionFactory sessions = [this](const Identity& identity) {
      return Open(identity.user, identity.database);
    };
    auto server = Server::Start(
        {}, roles_.get(), [] { return auth::LoginPolicy{.trust_loopback = true}; },
        [](const Identity&) -> Result<std::unique_ptr<TableStore>> {
          return UnsupportedError("no tables here");
        },
        {AdminServiceFactory(sessions)});
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(*server);
    stub_ = Admin::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->port()),
                                               grpc::InsecureChannelCredentials()));
  }
  ~AdminTest() override {
    database_->BeginShutdown();
    server_->Stop(std::chrono::milliseconds(0));
  }

  Result<std::unique_ptr<session::Session>> Open(const std::string& user,
                                                 const std::string& database) {
    session::SessionOptions options;
    options.user = user;
    options.database = database;
    return session::Session::Open(database_.get(), options);
  }

  // Past the service, by SQL.
  void Sql(const std::string& text) {
    session::TextSink sink;
    auto session = std::move(*Open("cellar", "cellar"));
    const Status status = session::TestSession::RunIn(session.get(), text, &sink);
    EXPECT_TRUE(status.ok()) << text << ": " << status.ToString();
  }

  void Prepare(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    if (!user_.empty()) context->AddMetadata("cellar-user", user_);
  }

  // The SQLSTATE that the error's detail tells; empty: it went well. The rest is in detail_, code_.
  template <typename Request, typename Answer>
  std::string Call(grpc::Status (Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                       Answer*),
                   const Request& request, Answer* answer) {
    answer->Clear();
    grpc::ClientContext context;
    Prepare(&context);
    return Note((stub_.get()->*method)(&context, request, answer), context);
  }
  std::string Note(const grpc::Status& status, const grpc::ClientContext& context) {
    code_ = status.error_code();
    detail_.Clear();
    if (status.ok()) return "";
    const auto& trailers = context.GetServerTrailingMetadata();
    const auto at = trailers.find(kErrorDetailKey);
    if (at == trailers.end()) return "no detail: " + status.error_message();
    EXPECT_TRUE(detail_.ParseFromArray(at->second.data(), static_cast<int>(at->second.size())));
    return detail_.sqlstate();
  }

  // A table of two columns, whose key is the first.
  v1::CreateTableRequest TableOf(const std::string& path) {
    v1::CreateTableRequest request;
    request.mutable_table()->set_path(path);
    v1::Column* id = request.mutable_table()->add_columns();
    id->set_name("id");
    id->set_type("bigint");
    v1::Column* name = request.mutable_table()->add_columns();
    name->set_name("name");
    name->set_type("varchar(20)");
    v1::Index* key = request.mutable_table()->add_indexes();
    key->set_primary(true);
    key->add_key()->set_column("id");
    return request;
  }
  v1::Table Get(const std::string& path) {
    v1::GetTableRequest request;
    request.set_path(path);
    v1::Table table;
    EXPECT_EQ(Call(&Admin::Stub::GetTable, request, &table), "") << detail_.message();
    return table;
  }
  std::vector<std::string> ListOf(const std::string& path, bool recursive) {
    v1::ListRequest request;
    request.set_path(path);
    request.set_recursive(recursive);
    request.set_page_size(2);
    std::vector<std::string> paths;
    v1::ListResponse answer;
    do {
      EXPECT_EQ(Call(&Admin::Stub::List, request, &answer), "") << detail_.message();
      for (const auto& object : answer.objects()) paths.push_back(object.path());
      request.set_page_token(answer.next_page_token());
    } while (!answer.next_page_token().empty());
    return paths;
  }

  std::unique_ptr<session::Database> database_;
  std::unique_ptr<Roles> roles_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Admin::Stub> stub_;
  std::string user_;
  v1::ErrorDetail detail_;
  grpc::StatusCode code_ = grpc::StatusCode::OK;
  v1::Table table_;
  v1::Empty empty_;
};

TEST_F(AdminTest, Namespaces) {
  v1::CreateNamespaceRequest create;
  create.mutable_namespace_()->set_path("/cellar/shop");
  create.mutable_namespace_()->set_comment("it's");
  create.mutable_namespace_()->mutable_zone()->set_row_quota(50);
  create.mutable_namespace_()->mutable_zone()->mutable_retention()->set_seconds(90);
  v1::Namespace space;
  ASSERT_EQ(Call(&Admin::Stub::CreateNamespace, create, &space), "") << detail_.message();
  EXPECT_EQ(space.path(), "/cellar/shop");
  EXPECT_EQ(space.comment(), "it's");
  EXPECT_EQ(space.owner(), "cellar");
  EXPECT_EQ(space.zone().row_quota(), 50);
  EXPECT_EQ(space.zone().retention().seconds(), 90);
  EXPECT_FALSE(space.zone().has_byte_quota());
  EXPECT_EQ(Call(&Admin::Stub::CreateNamespace, create, &space), "42P06");
  EXPECT_EQ(code_, grpc::StatusCode::ALREADY_EXISTS);
  create.set_if_not_exists(true);
  EXPECT_EQ(Call(&Admin::Stub::CreateNamespace, create, &space), "");
  create.mutable_namespace_()->set_path("/other");
  ASSERT_EQ(Call(&Admin::Stub::CreateNamespace, create, &space), "") << detail_.message();
  EXPECT_EQ(space.path(), "/other");
  EXPECT_EQ(space.zone().row_quota(), 50);
  create.mutable_namespace_()->set_path("/a/b/c");
  EXPECT_EQ(Call(&Admin::Stub::CreateNamespace, create, &space), "0A000");
  EXPECT_EQ(code_, grpc::StatusCode::UNIMPLEMENTED);
  create.mutable_namespace_()->set_path("shop");
  EXPECT_EQ(Call(&Admin::Stub::CreateNamespace, create, &space), "42602");

  v1::GetNamespaceRequest get;
  get.set_path("/cellar/shop");
  get.mutable_read_mask()->add_paths("zone.row_quota");
  EXPECT_EQ(Call(&Admin::Stub::GetNamespace, get, &space), "");
  EXPECT_EQ(space.zone().row_quota(), 50);
  EXPECT_FALSE(space.zone().has_retention());
  EXPECT_EQ(space.path(), "");
  get.mutable_read_mask()->add_paths("zone.nothing");
  EXPECT_EQ(Call(&Admin::Stub::GetNamespace, get, &space), "22023");
  EXPECT_EQ(code_, grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(detail_.message().find("zone.nothing"), std::string::npos);
  get.Clear();
  get.set_path("/cellar/nothing");
  EXPECT_EQ(Call(&Admin::Stub::GetNamespace, get, &space), "3F000");
  EXPECT_EQ(code_, grpc::StatusCode::NOT_FOUND);

  v1::UpdateNamespaceRequest update;
  update.mutable_namespace_()->set_path("/cellar/shop");
  update.mutable_namespace_()->mutable_zone()->set_byte_quota(1000);
  update.mutable_update_mask()->add_paths("zone");
  update.mutable_update_mask()->add_paths("comment");
  ASSERT_EQ(Call(&Admin::Stub::UpdateNamespace, update, &space), "") << detail_.message();
  EXPECT_EQ(space.comment(), "");
  EXPECT_EQ(space.zone().byte_quota(), 1000);
  EXPECT_FALSE(space.zone().has_row_quota());
  update.mutable_namespace_()->set_version(space.version() + 1);
  EXPECT_EQ(Call(&Admin::Stub::UpdateNamespace, update, &space), "55000");
  EXPECT_EQ(code_, grpc::StatusCode::ABORTED);
  EXPECT_FALSE(detail_.retryable());
  update.mutable_update_mask()->add_paths("id");
  EXPECT_EQ(Call(&Admin::Stub::UpdateNamespace, update, &space), "22023");

  ASSERT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/cellar/t"), &table_), "");
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/cellar/shop/t"), &table_), "");
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/other/t"), &table_), "");
  EXPECT_EQ(ListOf("/", false), (std::vector<std::string>{"/cellar", "/other", "/postgres"}));
  EXPECT_EQ(ListOf("/cellar", false), (std::vector<std::string>{"/cellar/shop", "/cellar/t"}));
  EXPECT_EQ(ListOf("/", true),
            (std::vector<std::string>{"/cellar", "/cellar/shop", "/cellar/shop/t", "/cellar/t",
                                      "/other", "/other/t", "/postgres"}));
}

TEST_F(AdminTest, TablesAsTheyAreAskedFor) {
  Sql("CREATE SCHEMA shop; CREATE TABLE kind (k int PRIMARY KEY)");
  v1::CreateTableRequest create = TableOf("/cellar/shop/Item \"x\"");
  v1::Table* table = create.mutable_table();
  table->mutable_columns(1)->set_default_expression("'a''b' || 'c'");
  table->mutable_columns(1)->set_not_null(true);
  table->mutable_columns(1)->set_comment("its name");
  v1::Column* twice = table->add_columns();
  twice->set_name("twice");
  twice->set_type("bigint");
  twice->set_generated_expression("id * 2");
  v1::Column* serial = table->add_columns();
  serial->set_name("n");
  serial->set_type("int");
  serial->set_identity(v1::Column::IDENTITY_BY_DEFAULT);
  v1::Index* index = table->add_indexes();
  index->set_name("by_name");
  index->add_key()->set_expression("lower(name)");
  v1::IndexColumn* second = index->add_key();
  second->set_column("n");
  second->set_descending(true);
  index->add_stored("id");
  index->set_predicate("n > 3");
  index->set_shards(4);
  index->set_comment("fast");
  v1::Index* unique = table->add_indexes();
  unique->set_name("one_name");
  unique->set_unique(true);
  unique->set_constraint(true);
  unique->add_key()->set_column("name");
  v1::CheckConstraint* check = table->add_checks();
  check->set_name("positive");
  check->set_expression("id > 0");
  v1::ForeignKey* key = table->add_foreign_keys();
  key->set_name("of_kind");
  key->add_columns("n");
  key->set_referenced_table("/cellar/kind");
  key->set_on_delete(v1::ForeignKey::ACTION_CASCADE);
  table->set_layout(v1::LAYOUT_CELL);
  table->set_comment("things");
  table->mutable_zone()->set_write_rate(7);
  v1::Table made;
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, create, &made), "") << detail_.message();
  EXPECT_EQ(made.path(), "/cellar/shop/Item \"x\"");
  ASSERT_EQ(made.columns_size(), 4);
  EXPECT_EQ(made.columns(1).type(), "character varying(20)");
  EXPECT_NE(made.columns(1).default_expression().find("a''b"), std::string::npos);
  EXPECT_TRUE(made.columns(1).not_null());
  EXPECT_EQ(made.columns(1).comment(), "its name");
  EXPECT_EQ(made.columns(2).generated_expression(), "(id * 2)");
  EXPECT_EQ(made.columns(3).identity(), v1::Column::IDENTITY_BY_DEFAULT);
  ASSERT_EQ(made.indexes_size(), 3);
  EXPECT_TRUE(made.indexes(0).primary());
  for (const v1::Index& one : made.indexes()) {
    if (one.name() != "by_name") continue;
    EXPECT_EQ(one.key(0).expression(), "lower(name)");
    EXPECT_TRUE(one.key(1).descending());
    EXPECT_FALSE(one.key(1).nulls_first());
    EXPECT_EQ(one.stored(0), "id");
    EXPECT_EQ(one.predicate(), "(n > 3)");
    EXPECT_EQ(one.shards(), 4u);
    EXPECT_EQ(one.comment(), "fast");
    EXPECT_EQ(one.state(), v1::Index::STATE_READY);
  }
  EXPECT_EQ(made.checks(0).expression(), "(id > 0)");
  EXPECT_TRUE(made.checks(0).validated());
  EXPECT_EQ(made.foreign_keys(0).referenced_table(), "/cellar/kind");
  EXPECT_EQ(made.foreign_keys(0).referenced_columns(0), "k");
  EXPECT_EQ(made.foreign_keys(0).on_delete(), v1::ForeignKey::ACTION_CASCADE);
  EXPECT_EQ(made.layout(), v1::LAYOUT_CELL);
  EXPECT_EQ(made.zone().write_rate(), 7);

  v1::GetTableRequest get;
  get.set_path(made.path());
  get.mutable_read_mask()->add_paths("comment");
  ASSERT_EQ(Call(&Admin::Stub::GetTable, get, &table_), "");
  EXPECT_EQ(table_.comment(), "things");
  EXPECT_EQ(table_.columns_size(), 0);

  v1::UpdateTableRequest update;
  update.mutable_table()->set_path(made.path());
  update.mutable_table()->set_version(made.version());
  update.mutable_table()->set_layout(v1::LAYOUT_ROW);
  update.mutable_table()->set_comment("others");
  for (const char* path : {"layout", "comment", "zone.write_rate"}) {
    update.mutable_update_mask()->add_paths(path);
  }
  ASSERT_EQ(Call(&Admin::Stub::UpdateTable, update, &table_), "") << detail_.message();
  EXPECT_EQ(table_.layout(), v1::LAYOUT_ROW);
  EXPECT_EQ(table_.comment(), "others");
  EXPECT_FALSE(table_.zone().has_write_rate());
  EXPECT_EQ(Call(&Admin::Stub::UpdateTable, update, &table_), "55000");
  update.mutable_table()->clear_version();
  update.mutable_update_mask()->add_paths("columns");
  EXPECT_EQ(Call(&Admin::Stub::UpdateTable, update, &table_), "22023");
  EXPECT_NE(detail_.message().find("columns"), std::string::npos);
  update.mutable_update_mask()->Clear();
  EXPECT_EQ(Call(&Admin::Stub::UpdateTable, update, &table_), "22023");

  EXPECT_EQ(Call(&Admin::Stub::CreateTable, create, &made), "42P07");
  create.set_if_not_exists(true);
  EXPECT_EQ(Call(&Admin::Stub::CreateTable, create, &made), "");
}

TEST_F(AdminTest, ColumnGroups) {
  v1::CreateTableRequest create = TableOf("/cellar/grouped");
  for (const char* name : {"a", "B \"b\"", "c"}) {
    v1::Column* column = create.mutable_table()->add_columns();
    column->set_name(name);
    column->set_type("text");
  }
  v1::ColumnGroup* group = create.mutable_table()->add_groups();
  group->set_name("It's \"one\"");
  group->add_columns("B \"b\"");
  group->add_columns("c");
  v1::Table made;
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, create, &made), "") << detail_.message();
  ASSERT_EQ(made.groups_size(), 1);
  EXPECT_EQ(made.groups(0).name(), "It's \"one\"");
  EXPECT_EQ(made.groups(0).columns(0), "B \"b\"");
  EXPECT_EQ(made.layout(), v1::LAYOUT_ROW);

  v1::UpdateTableRequest update;
  *update.mutable_table() = made;
  update.mutable_update_mask()->add_paths("groups");
  update.mutable_table()->mutable_groups(0)->mutable_columns()->RemoveLast();
  group = update.mutable_table()->add_groups();
  group->set_name("two");
  group->add_columns("a");
  ASSERT_EQ(Call(&Admin::Stub::UpdateTable, update, &made), "") << detail_.message();
  ASSERT_EQ(made.groups_size(), 2);
  EXPECT_EQ(made.groups(0).columns_size(), 1);
  EXPECT_EQ(made.groups(1).name(), "two");

  *update.mutable_table() = made;
  update.mutable_table()->mutable_groups(1)->set_columns(0, "nothing");
  EXPECT_EQ(Call(&Admin::Stub::UpdateTable, update, &made), "42703");
  update.mutable_table()->clear_groups();
  update.mutable_table()->set_layout(v1::LAYOUT_PAGES);
  update.mutable_update_mask()->add_paths("layout");
  ASSERT_EQ(Call(&Admin::Stub::UpdateTable, update, &made), "") << detail_.message();
  EXPECT_EQ(made.groups_size(), 0);
  EXPECT_EQ(made.layout(), v1::LAYOUT_PAGES);
}

TEST_F(AdminTest, AChangeSentAgainIsMadeOnce) {
  v1::Table made;
  v1::CreateTableRequest create = TableOf("/cellar/t");
  create.set_idempotency_id("one");
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, create, &made), "") << detail_.message();
  const uint64_t id = made.id();
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, create, &made), "") << detail_.message();
  EXPECT_EQ(made.id(), id);
  create.set_idempotency_id("two");
  EXPECT_EQ(Call(&Admin::Stub::CreateTable, create, &made), "42P07");
  create.set_idempotency_id(std::string(65, 'x'));
  EXPECT_EQ(Call(&Admin::Stub::CreateTable, create, &made), "22023");

  v1::UpdateTableRequest update;
  update.mutable_table()->set_path("/cellar/t");
  update.mutable_table()->set_comment("first");
  update.mutable_table()->set_version(made.version());
  update.mutable_update_mask()->add_paths("comment");
  update.set_idempotency_id("comment");
  ASSERT_EQ(Call(&Admin::Stub::UpdateTable, update, &table_), "") << detail_.message();
  Sql("COMMENT ON TABLE t IS 'second'");
  // Its version is not that of the request any more, and its comment is another's.
  ASSERT_EQ(Call(&Admin::Stub::UpdateTable, update, &table_), "") << detail_.message();
  EXPECT_EQ(table_.comment(), "second");

  v1::MoveRequest move;
  move.set_path("/cellar/t");
  move.set_new_path("/cellar/u");
  move.set_idempotency_id("move");
  v1::ObjectName name;
  ASSERT_EQ(Call(&Admin::Stub::Move, move, &name), "") << detail_.message();
  ASSERT_EQ(Call(&Admin::Stub::Move, move, &name), "") << detail_.message();

  v1::CreateRoleRequest role;
  role.mutable_role()->set_name("r");
  role.set_idempotency_id("role");
  v1::Role answer;
  ASSERT_EQ(Call(&Admin::Stub::CreateRole, role, &answer), "") << detail_.message();
  ASSERT_EQ(Call(&Admin::Stub::CreateRole, role, &answer), "") << detail_.message();
  EXPECT_EQ(answer.name(), "r");

  v1::DropRequest drop;
  drop.set_path("/cellar/u");
  drop.set_idempotency_id("drop");
  v1::Empty nothing;
  ASSERT_EQ(Call(&Admin::Stub::Drop, drop, &nothing), "") << detail_.message();
  Sql("CREATE TABLE u (a int)");
  ASSERT_EQ(Call(&Admin::Stub::Drop, drop, &nothing), "") << detail_.message();
  // A table that the call did not know stays.
  v1::GetTableRequest get;
  get.set_path("/cellar/u");
  EXPECT_EQ(Call(&Admin::Stub::GetTable, get, &table_), "");
}

TEST_F(AdminTest, TextsStayWhatTheyAre) {
  Sql("CREATE TABLE victim (a int)");
  for (const char* text : {"1); DROP TABLE victim; --", "1, b int", "1) --", "id > 0) NOT VALID --",
                           "1; SELECT 2", ""}) {
    v1::CreateTableRequest create = TableOf("/cellar/t");
    v1::CheckConstraint* check = create.mutable_table()->add_checks();
    check->set_expression(text);
    EXPECT_EQ(Call(&Admin::Stub::CreateTable, create, &table_), "42601") << text;
    create = TableOf("/cellar/t");
    create.mutable_table()->mutable_columns(1)->set_type(std::string("int DEFAULT ") + text);
    EXPECT_EQ(Call(&Admin::Stub::CreateTable, create, &table_), "42601") << text;
  }
  v1::CreateTableRequest create = TableOf("/cellar/t");
  create.mutable_table()->mutable_columns(1)->set_name("x\" int); DROP TABLE victim; --");
  create.mutable_table()->set_comment("'; DROP TABLE victim; --");
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, create, &table_), "");
  EXPECT_EQ(table_.columns(1).name(), "x\" int); DROP TABLE victim; --");
  EXPECT_EQ(table_.comment(), "'; DROP TABLE victim; --");
  EXPECT_EQ(Get("/cellar/victim").columns_size(), 1);
}

TEST_F(AdminTest, Moves) {
  Sql("CREATE SCHEMA a; CREATE SCHEMA b; CREATE TABLE a.t (x int); CREATE VIEW b.t AS SELECT 1 AS "
      "one;"
      "CREATE VIEW a.v AS SELECT 1 AS one; CREATE SCHEMA t; CREATE TABLE t (x int)");
  v1::MoveRequest move;
  v1::ObjectName object;
  move.set_path("/cellar/a/t");
  move.set_new_path("/cellar/b/u");
  ASSERT_EQ(Call(&Admin::Stub::Move, move, &object), "") << detail_.message();
  EXPECT_EQ(object.path(), "/cellar/b/u");
  EXPECT_EQ(object.kind(), v1::OBJECT_KIND_TABLE);
  EXPECT_EQ(Call(&Admin::Stub::Move, move, &object), "42P01");
  move.set_path("/cellar/a/v");
  move.set_new_path("/cellar/w");
  ASSERT_EQ(Call(&Admin::Stub::Move, move, &object), "") << detail_.message();
  EXPECT_EQ(object.kind(), v1::OBJECT_KIND_VIEW);
  move.set_path("/cellar/a");
  move.set_new_path("/cellar/c");
  ASSERT_EQ(Call(&Admin::Stub::Move, move, &object), "") << detail_.message();
  EXPECT_EQ(object.kind(), v1::OBJECT_KIND_NAMESPACE);
  move.set_path("/cellar/t");
  move.set_new_path("/cellar/s");
  EXPECT_EQ(Call(&Admin::Stub::Move, move, &object), "42725");
  move.set_kind(v1::OBJECT_KIND_NAMESPACE);
  EXPECT_EQ(Call(&Admin::Stub::Move, move, &object), "");
  EXPECT_EQ(object.path(), "/cellar/s");
  move.set_path("/cellar/b/u");
  move.set_new_path("/elsewhere/u");
  move.set_kind(v1::OBJECT_KIND_TABLE);
  EXPECT_EQ(Call(&Admin::Stub::Move, move, &object), "0A000");
}

TEST_F(AdminTest, TheBin) {
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/cellar/t"), &table_), "");
  const uint64_t id = table_.id();
  Sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')");
  v1::DropRequest drop;
  drop.set_path("/cellar/t");
  ASSERT_EQ(Call(&Admin::Stub::Drop, drop, &empty_), "") << detail_.message();
  EXPECT_EQ(Call(&Admin::Stub::Drop, drop, &empty_), "42P01");
  drop.set_if_exists(true);
  EXPECT_EQ(Call(&Admin::Stub::Drop, drop, &empty_), "");

  v1::ListDroppedRequest list;
  v1::ListDroppedResponse bin;
  ASSERT_EQ(Call(&Admin::Stub::ListDropped, list, &bin), "") << detail_.message();
  ASSERT_EQ(bin.objects_size(), 1);
  EXPECT_EQ(bin.objects(0).path(), "/cellar/t");
  EXPECT_EQ(bin.objects(0).id(), id);
  EXPECT_EQ(bin.objects(0).rows(), 2u);
  EXPECT_EQ(bin.objects(0).retention().seconds(), 7 * 86400);
  EXPECT_GT(bin.objects(0).time_left().seconds(), 6 * 86400);
  EXPECT_GT(bin.objects(0).dropped_at().seconds(), 1600000000);
  list.set_path("/other");
  ASSERT_EQ(Call(&Admin::Stub::ListDropped, list, &bin), "");
  EXPECT_EQ(bin.objects_size(), 0);

  v1::UpdateDroppedRequest keep;
  keep.set_id(id);
  keep.mutable_object()->mutable_retention()->set_seconds(100 * 86400);
  keep.mutable_update_mask()->add_paths("retention");
  v1::DroppedObject dropped;
  ASSERT_EQ(Call(&Admin::Stub::UpdateDropped, keep, &dropped), "") << detail_.message();
  EXPECT_EQ(dropped.retention().seconds(), 100 * 86400);

  v1::UndropRequest undrop;
  undrop.set_path("/cellar/t");
  undrop.set_new_path("/cellar/t2");
  v1::ObjectName object;
  ASSERT_EQ(Call(&Admin::Stub::Undrop, undrop, &object), "") << detail_.message();
  EXPECT_EQ(object.path(), "/cellar/t2");
  EXPECT_EQ(object.id(), id);
  EXPECT_EQ(Call(&Admin::Stub::Undrop, undrop, &object), "42704");
  EXPECT_EQ(code_, grpc::StatusCode::NOT_FOUND);

  v1::TruncateRequest truncate;
  truncate.add_tables("/cellar/t2");
  ASSERT_EQ(Call(&Admin::Stub::Truncate, truncate, &empty_), "") << detail_.message();
  list.Clear();
  ASSERT_EQ(Call(&Admin::Stub::ListDropped, list, &bin), "");
  ASSERT_EQ(bin.objects_size(), 1);
  EXPECT_EQ(bin.objects(0).kind(), v1::OBJECT_KIND_TRUNCATED_TABLE);
  EXPECT_EQ(bin.objects(0).path(), "/cellar/t2");
  v1::PurgeRequest purge;
  purge.set_path("/cellar/t2");
  ASSERT_EQ(Call(&Admin::Stub::Purge, purge, &empty_), "") << detail_.message();
  EXPECT_EQ(Call(&Admin::Stub::Undrop, undrop, &object), "42704");
  purge.set_all(true);
  EXPECT_EQ(Call(&Admin::Stub::Purge, purge, &empty_), "22023");
  purge.clear_path();
  EXPECT_EQ(Call(&Admin::Stub::Purge, purge, &empty_), "");

  // A database and all that is in it.
  v1::CreateNamespaceRequest create;
  v1::Namespace space;
  create.mutable_namespace_()->set_path("/d");
  ASSERT_EQ(Call(&Admin::Stub::CreateNamespace, create, &space), "");
  drop.set_path("/d");
  ASSERT_EQ(Call(&Admin::Stub::Drop, drop, &empty_), "") << detail_.message();
  undrop.set_path("/d");
  undrop.clear_new_path();
  ASSERT_EQ(Call(&Admin::Stub::Undrop, undrop, &object), "") << detail_.message();
  EXPECT_EQ(object.path(), "/d");
}

TEST_F(AdminTest, ColumnsIndexesConstraints) {
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/cellar/t"), &table_), "");
  Sql("INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 5) i");
  v1::AddColumnRequest add;
  add.set_table("/cellar/t");
  add.mutable_column()->set_name("price");
  add.mutable_column()->set_type("int");
  add.mutable_column()->set_default_expression("3");
  add.mutable_column()->set_comment("in cents");
  ASSERT_EQ(Call(&Admin::Stub::AddColumn, add, &table_), "") << detail_.message();
  EXPECT_EQ(table_.columns(2).comment(), "in cents");
  EXPECT_EQ(Call(&Admin::Stub::AddColumn, add, &table_), "42701");
  add.set_if_not_exists(true);
  EXPECT_EQ(Call(&Admin::Stub::AddColumn, add, &table_), "");

  v1::UpdateColumnRequest update;
  update.set_table("/cellar/t");
  update.set_column_name("price");
  update.mutable_column()->set_name("cost");
  update.mutable_column()->set_type("numeric(10,2)");
  update.mutable_column()->set_not_null(true);
  update.set_using_expression("price / 100.0");
  for (const char* path : {"name", "type", "not_null", "default_expression"}) {
    update.mutable_update_mask()->add_paths(path);
  }
  ASSERT_EQ(Call(&Admin::Stub::UpdateColumn, update, &table_), "") << detail_.message();
  EXPECT_EQ(table_.columns(2).name(), "cost");
  EXPECT_EQ(table_.columns(2).type(), "numeric(10,2)");
  EXPECT_TRUE(table_.columns(2).not_null());
  EXPECT_EQ(table_.columns(2).default_expression(), "");
  update.mutable_update_mask()->add_paths("identity");
  EXPECT_EQ(Call(&Admin::Stub::UpdateColumn, update, &table_), "22023");

  v1::CreateIndexRequest create;
  create.set_table("/cellar/t");
  create.mutable_index()->add_key()->set_column("cost");
  v1::Index index;
  for (const bool wait : {true, false}) {
    create.set_wait(wait);
    ASSERT_EQ(Call(&Admin::Stub::CreateIndex, create, &index), "") << detail_.message();
    EXPECT_EQ(index.state(), v1::Index::STATE_READY);
    EXPECT_EQ(index.name(), wait ? "t_cost_idx" : "t_cost_idx1");
  }
  create.mutable_index()->set_unique(true);
  EXPECT_EQ(Call(&Admin::Stub::CreateIndex, create, &index), "23505");
  v1::UpdateIndexRequest rename;
  rename.set_table("/cellar/t");
  rename.set_index_name("t_cost_idx");
  rename.mutable_index()->set_name("by_cost");
  rename.mutable_index()->set_comment("c");
  rename.mutable_update_mask()->add_paths("name");
  rename.mutable_update_mask()->add_paths("comment");
  ASSERT_EQ(Call(&Admin::Stub::UpdateIndex, rename, &index), "") << detail_.message();
  EXPECT_EQ(index.name(), "by_cost");
  EXPECT_EQ(index.comment(), "c");
  v1::DropIndexRequest drop;
  drop.set_table("/cellar/t");
  drop.set_index_name("by_cost");
  ASSERT_EQ(Call(&Admin::Stub::DropIndex, drop, &table_), "");
  EXPECT_EQ(Call(&Admin::Stub::DropIndex, drop, &table_), "42704");

  v1::AddConstraintRequest constraint;
  constraint.set_table("/cellar/t");
  constraint.mutable_check()->set_name("cheap");
  constraint.mutable_check()->set_expression("id < 5");
  ASSERT_EQ(Call(&Admin::Stub::AddConstraint, constraint, &table_), "") << detail_.message();
  EXPECT_FALSE(table_.checks(0).validated());
  v1::ValidateConstraintRequest validate;
  validate.set_table("/cellar/t");
  validate.set_constraint_name("cheap");
  EXPECT_EQ(Call(&Admin::Stub::ValidateConstraint, validate, &table_), "23514");
  EXPECT_EQ(detail_.constraint(), "cheap");
  Sql("DELETE FROM t WHERE id = 5");
  ASSERT_EQ(Call(&Admin::Stub::ValidateConstraint, validate, &table_), "");
  EXPECT_TRUE(table_.checks(0).validated());
  v1::DropConstraintRequest unbind;
  unbind.set_table("/cellar/t");
  unbind.set_constraint_name("cheap");
  ASSERT_EQ(Call(&Admin::Stub::DropConstraint, unbind, &table_), "");
  EXPECT_EQ(table_.checks_size(), 0);
  v1::DropColumnRequest remove;
  remove.set_table("/cellar/t");
  remove.set_column_name("cost");
  ASSERT_EQ(Call(&Admin::Stub::DropColumn, remove, &table_), "");
  EXPECT_EQ(table_.columns_size(), 2);
  EXPECT_EQ(Call(&Admin::Stub::DropColumn, remove, &table_), "42703");
}

TEST_F(AdminTest, JobsThatNobodyWaitsFor) {
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/cellar/t"), &table_), "");
  Sql("INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 20000) i");
  v1::CreateIndexRequest create;
  create.set_table("/cellar/t");
  create.mutable_index()->set_name("by_name");
  create.mutable_index()->add_key()->set_column("name");
  v1::Index index;
  ASSERT_EQ(Call(&Admin::Stub::CreateIndex, create, &index), "") << detail_.message();
  v1::ListJobsRequest list;
  v1::ListJobsResponse jobs;
  ASSERT_EQ(Call(&Admin::Stub::ListJobs, list, &jobs), "") << detail_.message();
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_TRUE(index.job() == 0 || index.job() == jobs.jobs(0).id());
  v1::GetJobRequest get;
  get.set_id(jobs.jobs(0).id());
  get.set_wait(true);
  v1::Job job;
  ASSERT_EQ(Call(&Admin::Stub::GetJob, get, &job), "") << detail_.message();
  EXPECT_EQ(job.state(), v1::Job::STATE_DONE);
  EXPECT_EQ(job.created_by(), "cellar");
  EXPECT_EQ(job.object(), "index \"by_name\" of table \"t\"");
  v1::CancelJobRequest cancel;
  cancel.set_id(get.id() + 1000);
  EXPECT_EQ(Call(&Admin::Stub::CancelJob, cancel, &job), "42704");
  Sql("INSERT INTO t VALUES (0, 'n1')");
  create.mutable_index()->set_name("one");
  create.mutable_index()->set_unique(true);
  create.set_wait(true);
  EXPECT_EQ(Call(&Admin::Stub::CreateIndex, create, &index), "23505");
  list.add_states(v1::Job::STATE_FAILED);
  ASSERT_EQ(Call(&Admin::Stub::ListJobs, list, &jobs), "");
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).error().sqlstate(), "23505");
}

TEST_F(AdminTest, RolesAndGrants) {
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/cellar/t"), &table_), "");
  Sql("CREATE ROLE staff");
  v1::CreateRoleRequest create;
  create.mutable_role()->set_name("ann");
  create.mutable_role()->set_can_login(true);
  create.mutable_role()->set_inherit(true);
  create.mutable_role()->add_member_of("staff");
  v1::Role role;
  ASSERT_EQ(Call(&Admin::Stub::CreateRole, create, &role), "") << detail_.message();
  EXPECT_TRUE(role.can_login());
  EXPECT_FALSE(role.superuser());
  EXPECT_EQ(role.connection_limit(), -1);
  ASSERT_EQ(role.member_of_size(), 1);
  v1::ListRolesResponse roles;
  ASSERT_EQ(Call(&Admin::Stub::ListRoles, v1::ListRolesRequest(), &roles), "");
  EXPECT_GT(roles.roles_size(), 3);

  // She may neither make tables nor change other people's, nor roles.
  user_ = "ann";
  EXPECT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/cellar/hers"), &table_), "42501");
  EXPECT_EQ(code_, grpc::StatusCode::PERMISSION_DENIED);
  v1::DropRequest drop;
  drop.set_path("/cellar/t");
  EXPECT_EQ(Call(&Admin::Stub::Drop, drop, &empty_), "42501");
  create.mutable_role()->set_name("eve");
  EXPECT_EQ(Call(&Admin::Stub::CreateRole, create, &role), "42501");
  v1::GrantRequest grant;
  grant.set_path("/cellar/t");
  grant.mutable_grant()->set_role("ann");
  grant.mutable_grant()->add_privileges("SELECT");
  v1::ListGrantsResponse grants;
  EXPECT_EQ(Call(&Admin::Stub::GrantPrivileges, grant, &grants), "42501");
  user_ = "nobody";
  EXPECT_EQ(Call(&Admin::Stub::Drop, drop, &empty_), "28000");
  EXPECT_EQ(code_, grpc::StatusCode::UNAUTHENTICATED);
  user_.clear();

  grant.mutable_grant()->set_with_grant_option(true);
  grant.mutable_grant()->set_column("name");
  ASSERT_EQ(Call(&Admin::Stub::GrantPrivileges, grant, &grants), "") << detail_.message();
  EXPECT_EQ(grants.owner(), "cellar");
  ASSERT_EQ(grants.grants_size(), 1);
  EXPECT_EQ(grants.grants(0).role(), "ann");
  EXPECT_EQ(grants.grants(0).column(), "name");
  EXPECT_TRUE(grants.grants(0).with_grant_option());
  grant.mutable_grant()->set_privileges(0, "SELECT ON t TO ann; DROP TABLE t");
  EXPECT_EQ(Call(&Admin::Stub::GrantPrivileges, grant, &grants), "22023");
  v1::RevokeRequest revoke;
  revoke.set_path("/cellar/t");
  revoke.mutable_grant()->set_role("ann");
  revoke.mutable_grant()->add_privileges("SELECT");
  revoke.mutable_grant()->set_column("name");
  ASSERT_EQ(Call(&Admin::Stub::RevokePrivileges, revoke, &grants), "") << detail_.message();
  EXPECT_EQ(grants.grants_size(), 0);
  grant.Clear();
  grant.set_path("/cellar");
  grant.mutable_grant()->set_role("public");
  grant.mutable_grant()->add_privileges("CREATE");
  ASSERT_EQ(Call(&Admin::Stub::GrantPrivileges, grant, &grants), "") << detail_.message();
  v1::ListGrantsRequest list;
  list.set_path("/cellar");
  ASSERT_EQ(Call(&Admin::Stub::ListGrants, list, &grants), "");
  bool found = false;
  for (const v1::Grant& one : grants.grants()) found = found || one.role() == "public";
  EXPECT_TRUE(found);

  v1::UpdateRoleRequest update;
  update.set_name("ann");
  update.mutable_role()->set_name("anna");
  update.mutable_role()->set_connection_limit(5);
  for (const char* path : {"name", "connection_limit", "member_of"}) {
    update.mutable_update_mask()->add_paths(path);
  }
  ASSERT_EQ(Call(&Admin::Stub::UpdateRole, update, &role), "") << detail_.message();
  EXPECT_EQ(role.name(), "anna");
  EXPECT_EQ(role.connection_limit(), 5);
  EXPECT_TRUE(role.can_login());
  EXPECT_EQ(role.member_of_size(), 0);
  v1::DropRoleRequest remove;
  remove.set_name("anna");
  EXPECT_EQ(Call(&Admin::Stub::DropRole, remove, &empty_), "") << detail_.message();
  EXPECT_EQ(Call(&Admin::Stub::DropRole, remove, &empty_), "42704");
}

TEST_F(AdminTest, UsageChecksSealing) {
  v1::CreateTableRequest create = TableOf("/cellar/t");
  create.mutable_table()->mutable_zone()->set_row_quota(100);
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, create, &table_), "");
  Sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'); DELETE FROM t WHERE id = 2");
  v1::GetUsageRequest get;
  v1::GetUsageResponse usage;
  get.set_path("/cellar/t");
  ASSERT_EQ(Call(&Admin::Stub::GetUsage, get, &usage), "") << detail_.message();
  ASSERT_EQ(usage.usage_size(), 1);
  EXPECT_EQ(usage.usage(0).rows(), 1u);
  EXPECT_EQ(usage.usage(0).inserted(), 2u);
  EXPECT_EQ(usage.usage(0).deleted(), 1u);
  EXPECT_EQ(usage.usage(0).zone().row_quota(), 100);
  get.set_path("/cellar");
  get.set_recursive(true);
  ASSERT_EQ(Call(&Admin::Stub::GetUsage, get, &usage), "") << detail_.message();
  ASSERT_EQ(usage.usage_size(), 2);
  EXPECT_EQ(usage.usage(0).path(), "/cellar");
  EXPECT_EQ(usage.usage(0).kind(), v1::OBJECT_KIND_NAMESPACE);

  for (const char* path : {"/cellar/t", "/cellar"}) {
    grpc::ClientContext context;
    Prepare(&context);
    v1::CheckRequest check;
    check.set_path(path);
    check.set_depth(v1::CheckRequest::DEPTH_FULL);
    auto reader = stub_->Check(&context, check);
    v1::CheckFinding finding;
    int messages = 0;
    while (reader->Read(&finding)) ++messages;
    EXPECT_EQ(Note(reader->Finish(), context), "") << detail_.message();
    EXPECT_EQ(messages, 1);
    EXPECT_EQ(finding.problem(), "");
    EXPECT_EQ(finding.rows_read(), 1u);
  }
  grpc::ClientContext context;
  Prepare(&context);
  v1::CheckRequest check;
  check.set_path("/cellar/nothing");
  auto reader = stub_->Check(&context, check);
  v1::CheckFinding finding;
  EXPECT_FALSE(reader->Read(&finding));
  EXPECT_EQ(Note(reader->Finish(), context), "42P01");

  v1::SealRequest seal;
  seal.set_table("/cellar/t");
  seal.set_full(true);
  EXPECT_EQ(Call(&Admin::Stub::Seal, seal, &empty_), "") << detail_.message();
}

TEST_F(AdminTest, DeadlinesEndStatements) {
  ASSERT_EQ(Call(&Admin::Stub::CreateTable, TableOf("/cellar/t"), &table_), "");
  Sql("INSERT INTO t SELECT i, 'n' || i FROM generate_series(1, 1000) i");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  v1::AddConstraintRequest request;
  request.set_table("/cellar/t");
  request.set_wait(true);
  request.mutable_check()->set_expression("id > 0 AND pg_sleep(0.1) IS NOT NULL");
  request.mutable_check()->set_validated(true);
  v1::Table answer;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(stub_->AddConstraint(&context, request, &answer).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace cellar::rpc
