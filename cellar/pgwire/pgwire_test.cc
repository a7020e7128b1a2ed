// The conversation after login: simple and extended protocol, COPY, cancel, shutdown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cellar/pgwire/fake_host.h"
#include "cellar/pgwire/listener.h"
#include "cellar/pgwire/test_client.h"

namespace cellar::pgwire {
namespace {

using std::chrono::milliseconds;

class Wire : public testing::Test {
 protected:
  Wire() {
    options_.login.trust_loopback = true;
    Result<std::unique_ptr<Listener>> started = Listener::Start(&host_, options_);
    if (started.ok()) listener_ = std::move(*started);
  }
  std::unique_ptr<TestClient> Connect() {
    auto client = std::make_unique<TestClient>(listener_->port());
    EXPECT_EQ(client->LogIn(), "R S S K Z:I");
    return client;
  }
  std::string Ask(TestClient& client, std::string_view bytes) {
    client.Send(bytes);
    return client.Collect();
  }

  FakeHost host_;
  ListenerOptions options_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(Wire, AnswersASimpleQueryWithColumnsRowsAndTag) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Query("rows 3")), "T D D D C:SELECT 3 Z:I");
  EXPECT_EQ(client->last_rows[0], Int16(2) + Int32(1) + "0" + Int32(7) + "value 0");
  EXPECT_EQ(client->last_rows[2], Int16(2) + Int32(1) + "2" + Int32(0xFFFFFFFF));
  EXPECT_EQ(client->last_columns, Int16(2) + Text("n") + Int32(16384) + Int16(1) + Int32(23) +
                                      Int16(4) + Int32(0xFFFFFFFF) + Int16(0) + Text("t") +
                                      Int32(0) + Int16(0) + Int32(25) + Int16(-1) +
                                      Int32(0xFFFFFFFF) + Int16(0));
}

TEST_F(Wire, AnswersEachStatementOfAQueryAndStopsAtTheFirstError) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Query("rows 1;boom;rows 1")), "T D C:SELECT 1 E:23505 Z:I");
  EXPECT_EQ(Ask(*client, Query(" ; ")), "I Z:I");
  EXPECT_EQ(Ask(*client, Query("begin;boom")), "C:BEGIN E:23505 Z:E");
  EXPECT_EQ(Ask(*client, Query("end")), "C:COMMIT Z:I");
}

TEST_F(Wire, SendsEveryFieldOfAnError) {
  auto client = Connect();
  Ask(*client, Query("boom"));
  const std::pair<char, const char*> fields[] = {{'S', "ERROR"},
                                                 {'V', "ERROR"},
                                                 {'C', "23505"},
                                                 {'M', "duplicate key"},
                                                 {'P', "5"},
                                                 {'s', "public"},
                                                 {'t', "t"},
                                                 {'c', "a"},
                                                 {'n', "t_pkey"},
                                                 {'D', "Key (a)=(1) already exists."},
                                                 {'H', "Take another."},
                                                 {'W', "COPY t, line 3"}};
  for (const auto& [field, value] : fields) {
    EXPECT_EQ(TestClient::Field(client->last_error, field), value) << field;
  }
}

TEST_F(Wire, SendsNoticesAndChangedParameters) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Query("notice")), "N:01000 S C:SET Z:I");
  EXPECT_EQ(TestClient::Field(client->last_error, 'S'), "WARNING");
}

TEST_F(Wire, RunsTheExtendedProtocolInOneGo) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Parse("", "rows 2") + Bind("", "") + Frame('D', "P" + Text("")) +
                             Execute("") + Sync()),
            "1 2 T D D C:SELECT 2 Z:I");
  EXPECT_EQ(Ask(*client, Parse("s", "rows 2", {23, 25}) + Frame('D', "S" + Text("s")) + Sync()),
            "1 t T Z:I");
  EXPECT_EQ(Ask(*client, Frame('C', "S" + Text("s")) + Frame('C', "P" + Text("none")) + Sync()),
            "3 3 Z:I");
}

TEST_F(Wire, PassesParametersAsTheyCome) {
  auto client = Connect();
  const std::string bind = Frame('B', Text("") + Text("") + Int16(3) + Int16(0) + Int16(1) +
                                          Int16(0) + Int16(3) + Int32(3) + "abc" + Int32(4) +
                                          std::string(4, '\0') + Int32(0xFFFFFFFF) + Int16(0));
  EXPECT_EQ(Ask(*client, Parse("", "params", {25, 23, 25}) + bind + Execute("") + Sync()),
            "1 2 D D D C:SELECT 0 Z:I");
  EXPECT_EQ(client->last_rows[0], Int16(1) + Int32(5) + "t:abc");
  EXPECT_EQ(client->last_rows[1], Int16(1) + Int32(9) + "b:4 bytes");
  EXPECT_EQ(client->last_rows[2], Int16(1) + Int32(0xFFFFFFFF));
}

TEST_F(Wire, FormatsEachColumnAsAsked) {
  auto client = Connect();
  const auto run = [&](const std::string& formats) {
    return Ask(*client, Parse("", "one") +
                            Frame('B', Text("") + Text("") + Int16(0) + Int16(0) + formats) +
                            Execute("") + Sync());
  };
  EXPECT_EQ(run(Int16(0)), "1 2 D C:SELECT 0 Z:I");
  EXPECT_EQ(client->last_rows[0], Int16(6) + Int32(1) + "t" + Int32(2) + "-7" + Int32(13) +
                                      "1099511627776" + Int32(4) + "0.25" + Int32(5) + "reg42" +
                                      Int32(6) + "\\x01ff");
  EXPECT_EQ(run(Int16(1) + Int16(1)), "1 2 D C:SELECT 0 Z:I");
  EXPECT_EQ(client->last_rows[0], Int16(6) + Int32(1) + "\x01" + Int32(2) + Int16(-7) + Int32(8) +
                                      Int32(256) + Int32(0) + Int32(8) + "\x3f\xd0" +
                                      std::string(6, '\0') + Int32(4) + Int32(42) + Int32(2) +
                                      "\x01\xff");
  EXPECT_EQ(run(Int16(6) + Int16(1) + Int16(0) + Int16(0) + Int16(0) + Int16(0) + Int16(0)),
            "1 2 D C:SELECT 0 Z:I");
  EXPECT_EQ(run(Int16(2) + Int16(1) + Int16(0)), "1 E:08P01 Z:I");
}

TEST_F(Wire, SuspendsAPortalAtTheRowLimit) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Query("begin")), "C:BEGIN Z:T");
  EXPECT_EQ(Ask(*client, Parse("", "rows 5") + Bind("p", "") + Execute("p", 2) + Sync()),
            "1 2 D D s Z:T");
  EXPECT_EQ(Ask(*client, Execute("p", 2) + Execute("p", 2) + Sync()), "D D s D C:SELECT 5 Z:T");
}

TEST_F(Wire, SkipsToSyncAfterAnErrorAndAnswersOnce) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Parse("", "bad syntax") + Bind("", "") + Execute("") + Query("rows 1") +
                             Sync() + Query("rows 1")),
            "E:42601 Z:I");
  EXPECT_EQ(client->Collect(), "T D C:SELECT 1 Z:I");
}

TEST_F(Wire, RunsPipelinesOfSeveralSyncs) {
  auto client = Connect();
  const std::string one = Parse("", "rows 1") + Bind("", "") + Execute("");
  client->Send(one + one + Sync() + one + Sync());
  EXPECT_EQ(client->Collect(), "1 2 D C:SELECT 1 1 2 D C:SELECT 1 Z:I");
  EXPECT_EQ(client->Collect(), "1 2 D C:SELECT 1 Z:I");
}

TEST_F(Wire, FlushSendsWhatThereIs) {
  auto client = Connect();
  client->Send(Parse("", "rows 1") + Frame('H', ""));
  EXPECT_EQ(client->Next().type, '1');
  EXPECT_EQ(Ask(*client, Sync()), "Z:I");
}

TEST_F(Wire, StreamsManyRows) {
  auto client = Connect();
  client->Send(Query("rows 100000"));
  EXPECT_EQ(client->Collect().substr(200000 - 10), "D D D D D D C:SELECT 100000 Z:I");
}

TEST_F(Wire, CopiesIn) {
  auto client = Connect();
  client->Send(Query("copyin;rows 1"));
  EXPECT_EQ(client->Next().type, 'G');
  client->Send(Frame('d', "a\n") + Frame('H', "") + Frame('d', "b\nc\n") + Sync() + Frame('c', ""));
  EXPECT_EQ(client->Collect(), "C:COPY 3 T D C:SELECT 1 Z:I");
}

TEST_F(Wire, CopyFailIsAnErrorAndTheRestIsIgnored) {
  auto client = Connect();
  client->Send(Query("copyin") + Frame('d', "a\n") + Frame('f', Text("changed my mind")));
  EXPECT_EQ(client->Collect(), "G E:57014 Z:I");
  EXPECT_EQ(TestClient::Field(client->last_error, 'M'), "COPY from stdin failed: changed my mind");
  client->Send(Query("copyin") + Frame('d', "bad\n") + Frame('d', "more\n") + Frame('c', "") +
               Query("rows 0"));
  EXPECT_EQ(client->Collect(), "G E:22P04 Z:I");
  EXPECT_EQ(client->Collect(), "T C:SELECT 0 Z:I");
}

TEST_F(Wire, RefusesOtherMessagesDuringCopy) {
  auto client = Connect();
  client->Send(Query("copyin") + Query("rows 1"));
  EXPECT_EQ(client->Collect(), "G E:08P01 Z:I");
}

TEST_F(Wire, CopiesInByTheExtendedProtocol) {
  auto client = Connect();
  client->Send(Parse("", "copyin") + Bind("", "") + Execute("") + Sync());
  for (char expected : {'1', '2', 'G'}) EXPECT_EQ(client->Next().type, expected);
  client->Send(Frame('d', "a\n") + Frame('c', "") + Sync());
  EXPECT_EQ(client->Collect(), "C:COPY 1 Z:I");
}

TEST_F(Wire, CopiesOut) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Query("copyout 2")), "H d d c C:COPY Z:I");
}

TEST_F(Wire, RefusesFunctionCallsAndGoesOn) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Frame('F', Int32(1))), "E:0A000 Z:I");
  EXPECT_EQ(Ask(*client, Query("rows 0")), "T C:SELECT 0 Z:I");
}

TEST_F(Wire, EndsAfterAFatalError) {
  auto client = Connect();
  EXPECT_EQ(Ask(*client, Query("fatal")), "E:57P01 closed");
  EXPECT_EQ(TestClient::Field(client->last_error, 'S'), "FATAL");
}

TEST_F(Wire, CancelsByKeyOnAnotherConnection) {
  auto client = std::make_unique<TestClient>(listener_->port());
  client->Send(PlainStartup());
  std::string key;
  for (TestClient::Message message = client->Next(); message.type != 'Z';
       message = client->Next()) {
    if (message.type == 'K') key = message.body;
  }
  client->Send(Query("sleep"));
  TestClient wrong(listener_->port());
  wrong.Send(Int32(16) + Int32(80877102) + key.substr(0, 4) + Int32(12345));
  EXPECT_EQ(wrong.Collect(), "closed");
  TestClient right(listener_->port());
  right.Send(Int32(16) + Int32(80877102) + key);
  EXPECT_EQ(right.Collect(), "closed");
  EXPECT_EQ(client->Collect(), "E:57014 Z:I");
}

TEST_F(Wire, TellsIdleClientsThatItStops) {
  auto client = Connect();
  EXPECT_TRUE(listener_->Stop(milliseconds(5000)));
  EXPECT_EQ(client->Collect(), "E:57P01 closed");
  TestClient late(listener_->port());
  EXPECT_FALSE(late.connected());
}

TEST_F(Wire, BreaksOffWhoDoesNotEndInTime) {
  auto client = Connect();
  client->Send(Query("copyout 100000000"));
  EXPECT_EQ(client->Take(100).size(), 100u);  // and then stops reading
  EXPECT_FALSE(listener_->Stop(milliseconds(100)));
}

// Yields until it is so; false after ten seconds.
bool Until(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_F(Wire, EndsSessionsThatWaitForTheirClients) {
  for (const char* before : {"rows 0", "begin", "begin;boom"}) {
    auto client = Connect();
    Ask(*client, Query(before));
    host_.End(host_.last_pid());
    EXPECT_EQ(client->Collect(), "E:57P01 closed") << before;
    EXPECT_EQ(TestClient::Field(client->last_error, 'S'), "FATAL");
  }
}

TEST_F(Wire, EndsSessionsThatCopyIn) {
  auto client = Connect();
  client->Send(Query("copyin"));
  EXPECT_EQ(client->Next().type, 'G');
  host_.End(host_.last_pid());
  EXPECT_EQ(client->Collect(), "E:57P01 closed");
}

TEST_F(Wire, EndsSessionsThatRunStatements) {
  auto client = Connect();
  client->Send(Query("sleep"));
  EXPECT_TRUE(Until([&] { return host_.sleepers() == 1; }));
  host_.End(host_.last_pid());
  EXPECT_EQ(client->Collect(), "E:57P01 closed");
}

TEST_F(Wire, EndsSessionsWhoseClientDoesNotRead) {
  auto client = Connect();
  client->Send(Query("copyout 100000000"));
  EXPECT_EQ(client->Take(100).size(), 100u);  // and then stops reading
  host_.End(host_.last_pid());
  EXPECT_TRUE(Until([&] { return listener_->sessions() == 0; }));
}

TEST_F(Wire, StopsWhatClientsHaveLeft) {
  auto client = Connect();
  client->Send(Query("sleep"));
  EXPECT_TRUE(Until([&] { return host_.sleepers() == 1; }));
  client.reset();
  EXPECT_TRUE(Until([&] { return listener_->sessions() == 0; }));
  EXPECT_EQ(host_.last_end(), "08006");
}

TEST(WireLimits, SomePlacesAreKeptForSuperusers) {
  FakeHost host;
  ListenerOptions options;
  options.max_connections = 3;
  options.reserved_connections = 1;
  options.login.trust_loopback = true;
  Result<std::unique_ptr<Listener>> listener = Listener::Start(&host, options);
  ASSERT_TRUE(listener.ok());
  const auto log_in = [&](TestClient* client, const char* user) {
    client->Send(Startup(Text("user") + Text(user) + '\0'));
    return client->Collect();
  };
  TestClient one((*listener)->port()), two((*listener)->port()), three((*listener)->port()),
      four((*listener)->port()), five((*listener)->port());
  EXPECT_EQ(log_in(&one, "cellar"), "R S S K Z:I");
  EXPECT_EQ(log_in(&two, "cellar"), "R S S K Z:I");
  EXPECT_EQ(log_in(&three, "cellar"), "E:53300 closed");
  EXPECT_THAT(TestClient::Field(three.last_error, 'M'), testing::HasSubstr("reserved"));
  EXPECT_EQ(log_in(&four, "root"), "R S S K Z:I");
  EXPECT_EQ(log_in(&five, "root"), "E:53300 closed");
}

TEST_F(Wire, CountsSessions) {
  EXPECT_EQ(listener_->sessions(), 0u);
  auto one = Connect();
  auto two = Connect();
  EXPECT_EQ(listener_->sessions(), 2u);
}

TEST_F(Wire, PassesStartupSettingsOn) {
  TestClient client(listener_->port());
  client.Send(Startup(Text("user") + Text("cellar") + Text("database") + Text("db") +
                      Text("options") + Text("-c a=b --c-d=x\\ y") + Text("TimeZone") +
                      Text("UTC") + '\0'));
  EXPECT_EQ(client.Collect(), "R S S K Z:I");
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(host_.last_options.database, "db");
  EXPECT_EQ(host_.last_options.client_address, "127.0.0.1");
  EXPECT_THAT(host_.last_options.settings,
              testing::ElementsAre(Pair("a", "b"), Pair("c_d", "x y"), Pair("TimeZone", "UTC")));
}

}  // namespace
}  // namespace cellar::pgwire
