// What no decent client sends: each gets a clear answer or a closed connection, and costs nothing.
#include <gtest/gtest.h>

#include <fstream>

#include "cellar/pgwire/fake_host.h"
#include "cellar/pgwire/listener.h"
#include "cellar/pgwire/test_client.h"

namespace cellar::pgwire {
namespace {

using std::chrono::milliseconds;

class Hostile : public testing::Test {
 protected:
  Hostile() {
    options_.login_timeout = milliseconds(600);
    options_.max_connections = 3;
    options_.max_half_open_per_address = 5;
    options_.login.trust_loopback = true;
    Result<std::unique_ptr<Listener>> started = Listener::Start(&host_, options_);
    if (started.ok()) listener_ = std::move(*started);
  }
  std::string Answer(std::string_view first_bytes) {
    TestClient client(listener_->port());
    client.Send(first_bytes);
    return client.Collect();
  }
  FakeHost host_;
  ListenerOptions options_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(Hostile, ClosesOnStartupPacketsThatMakeNoSense) {
  EXPECT_EQ(Answer(Int32(0)), "closed");
  EXPECT_EQ(Answer(Int32(0x7FFFFFFF) + "x"), "closed");
  EXPECT_EQ(Answer("GET / HTTP/1.1\r\n\r\n"), "closed");
  EXPECT_EQ(Answer(Int32(10001) + std::string(9997, 'x')), "closed");
}

struct StartupCase {
  const char* name;
  std::string packet;
  const char* answer;
};
TEST_F(Hostile, RefusesBadStartupPackets) {
  const std::string user = Text("user") + Text("cellar");
  const StartupCase cases[] = {
      {"NoTerminator", Startup(user + "x"), "E:08P01 closed"},
      {"BytesAfterTerminator", Startup(user + '\0' + "x"), "E:08P01 closed"},
      {"Version99", Startup(user + '\0', 99 << 16), "E:0A000 closed"},
      {"Version2", Startup(user + '\0', 2 << 16), "E:0A000 closed"},
      {"NoUser", Startup(Text("database") + Text("x") + '\0'), "E:28000 closed"},
      {"UnknownRole", Startup(Text("user") + Text("mallory") + '\0'), "E:28000 closed"},
      {"UnknownDatabase", Startup(user + Text("database") + Text("nowhere") + '\0'),
       "R E:3D000 closed"},
      {"Replication", Startup(user + Text("replication") + Text("true") + '\0'), "E:0A000 closed"},
      {"NotUtf8", Startup(user + Text("application_name") + Text("\xff") + '\0'), "E:22021 closed"},
      {"BadOptions", Startup(user + Text("options") + Text("-x") + '\0'), "E:42601 closed"},
  };
  for (const StartupCase& one : cases) EXPECT_EQ(Answer(one.packet), one.answer) << one.name;
}

TEST_F(Hostile, NegotiatesMinorVersionsAndProtocolOptions) {
  EXPECT_EQ(
      Answer(Startup(Text("user") + Text("cellar") + Text("_pq_.x") + Text("1") + '\0', 196610) +
             Frame('X', "")),
      "v R S S K Z:I");
}

TEST_F(Hostile, AnswersEachEncryptionRequestOnce) {
  const std::string ssl = Int32(8) + Int32(80877103), gss = Int32(8) + Int32(80877104);
  TestClient client(listener_->port());
  client.Send(gss);
  EXPECT_EQ(client.Take(1), "N");
  client.Send(ssl);
  EXPECT_EQ(client.Take(1), "N");
  EXPECT_EQ(client.LogIn(), "R S S K Z:I");
  TestClient twice(listener_->port());
  twice.Send(ssl);
  EXPECT_EQ(twice.Take(1), "N");
  twice.Send(ssl);
  EXPECT_EQ(twice.Collect(), "closed");
}

TEST_F(Hostile, ClosesSlowLogins) {
  TestClient client(listener_->port());
  client.Send(std::string_view("\0\0", 2));
  EXPECT_EQ(client.Collect(), "closed");
}

TEST_F(Hostile, LimitsSessions) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<TestClient>(listener_->port()));
    EXPECT_EQ(clients.back()->LogIn(), "R S S K Z:I");
  }
  EXPECT_EQ(Answer(PlainStartup()), "E:53300 closed");
  clients.back()->Send(Frame('X', ""));
  EXPECT_EQ(clients.back()->Collect(), "closed");
  // The place is free as soon as the thread has ended.
  std::string answer;
  for (int i = 0; i < 100 && answer != "R S S K Z:I"; ++i) {
    TestClient client(listener_->port());
    answer = client.LogIn();
  }
  EXPECT_EQ(answer, "R S S K Z:I");
}

TEST_F(Hostile, LimitsHalfOpenConnections) {
  std::vector<std::unique_ptr<TestClient>> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(std::make_unique<TestClient>(listener_->port()));
    waiting.back()->Send(Int32(8) + Int32(80877103));
    EXPECT_EQ(waiting.back()->Take(1), "N");
  }
  EXPECT_EQ(Answer(PlainStartup()), "closed");
}

TEST_F(Hostile, EndsOnFramesThatCannotBeReadOn) {
  const std::string frames[] = {Frame('y', ""), "Q" + Int32(3), "Q" + Int32(0x7FFFFFFF),
                                "Q" + Int32(0xFFFFFFFF), std::string("\0", 1) + Int32(4)};
  for (const std::string& frame : frames) {
    TestClient client(listener_->port());
    client.LogIn();
    client.Send(frame);
    EXPECT_EQ(client.Collect(), "E:08P01 closed");
    EXPECT_EQ(TestClient::Field(client.last_error, 'S'), "FATAL");
  }
}

struct FrameCase {
  const char* name;
  std::string frames, answer;
};
TEST_F(Hostile, StaysUsableAfterBadFrames) {
  const std::string parse = Parse("", "params", {25, 25});
  const std::string two = Text("") + Text("");
  const FrameCase cases[] = {
      {"NegativeLength",
       parse + Frame('B', two + Int16(0) + Int16(1) + Int32(0xFFFFFFFB) + Int16(0)) + Sync(),
       "1 E:08P01 Z:I"},
      {"LengthPastTheEnd",
       parse + Frame('B', two + Int16(0) + Int16(1) + Int32(1000) + "x") + Sync(), "1 E:08P01 Z:I"},
      {"TooFewParameters",
       parse + Frame('B', two + Int16(0) + Int16(1) + Int32(1) + "x" + Int16(0)) + Sync(),
       "1 E:08P01 Z:I"},
      {"FormatSeven", parse + Frame('B', two + Int16(1) + Int16(7) + Int16(0) + Int16(0)) + Sync(),
       "1 E:22023 Z:I"},
      {"FormatsDoNotFit",
       parse +
           Frame('B', two + Int16(3) + Int16(0) + Int16(0) + Int16(0) + Int16(2) +
                          Int32(0xFFFFFFFF) + Int32(0xFFFFFFFF) + Int16(0)) +
           Sync(),
       "1 E:08P01 Z:I"},
      {"BytesAfterBind", parse + Frame('B', two + Int16(0) + Int16(0) + Int16(0) + "x") + Sync(),
       "1 E:08P01 Z:I"},
      {"BindWithoutEnd", Frame('B', "abc") + Sync(), "E:08P01 Z:I"},
      {"ParseManyTypes", Frame('P', two + Int16(-1)) + Sync(), "E:08P01 Z:I"},
      {"DescribeX", Frame('D', "X" + Text("")) + Sync(), "E:08P01 Z:I"},
      {"CloseX", Frame('C', "X" + Text("")) + Sync(), "E:08P01 Z:I"},
      {"EmptyDescribe", Frame('D', "") + Sync(), "E:08P01 Z:I"},
      {"ExecuteShort", Frame('E', Text("")) + Sync(), "E:08P01 Z:I"},
      {"NoSuchPortal", Execute("nothing") + Sync(), "E:34000 Z:I"},
      {"QueryAfterNul", Frame('Q', Text("rows 1") + "x"), "E:08P01 Z:I"},
      {"QueryWithoutNul", Frame('Q', "rows 1"), "E:08P01 Z:I"},
      {"QueryNotUtf8", Query("rows \xc3("), "E:22021 Z:I"},
      {"ParseNotUtf8", Parse("", "rows \xff") + Sync(), "E:22021 Z:I"},
      {"TwoErrorsOneAnswer",
       Parse("", "bad syntax") + Frame('B', "") + Execute("") + Frame('D', "P") + Sync(),
       "E:42601 Z:I"},
      {"CopyDataOutOfPlace", Frame('d', "x") + Frame('c', "") + Frame('f', Text("")) + Sync(),
       "Z:I"},
  };
  TestClient client(listener_->port());
  client.LogIn();
  for (const FrameCase& one : cases) {
    client.Send(one.frames);
    EXPECT_EQ(client.Collect(), one.answer) << one.name;
    client.Send(Query("rows 0"));
    EXPECT_EQ(client.Collect(), "T C:SELECT 0 Z:I") << one.name;
  }
}

TEST_F(Hostile, NamesTheBytesThatAreNotText) {
  TestClient client(listener_->port());
  client.LogIn();
  client.Send(Query("rows \xc3("));
  client.Collect();
  EXPECT_EQ(TestClient::Field(client.last_error, 'M'),
            "invalid byte sequence for encoding \"UTF8\": 0xc3 0x28");
}

TEST_F(Hostile, ReadsPastMessagesThatAreTooLong) {
  TestClient client(listener_->port());
  client.LogIn();
  const size_t size = kMaxMessageBytes + 100;
  client.Send("Q" + Int32(static_cast<uint32_t>(size + 4)));
  const std::string piece(1 << 20, ' ');
  for (size_t sent = 0; sent < size; sent += piece.size()) {
    client.Send(std::string_view(piece).substr(0, std::min(piece.size(), size - sent)));
  }
  EXPECT_EQ(client.Collect(), "E:54000 Z:I");
  client.Send(Query("rows 0"));
  EXPECT_EQ(client.Collect(), "T C:SELECT 0 Z:I");
}

size_t ResidentKilobytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

TEST_F(Hostile, AllocatesNothingForLengthsThatAreOnlyClaimed) {
  const size_t before = ResidentKilobytes();
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<TestClient>(listener_->port()));
    clients.back()->LogIn();
    clients.back()->Send("Q" + Int32(kMaxMessageBytes) + "x");
  }
  EXPECT_LT(ResidentKilobytes(), before + 4096);
}

TEST_F(Hostile, SurvivesClientsThatVanish) {
  for (int i = 0; i < 20; ++i) {
    TestClient client(listener_->port());
    if (client.LogIn() != "R S S K Z:I") continue;
    client.Send(i % 2 == 0 ? Query("rows 100000") : Query("copyin") + Frame('d', "half a li"));
  }
  std::string answer;
  for (int i = 0; i < 200 && answer != "R S S K Z:I"; ++i) {
    TestClient client(listener_->port());
    answer = client.LogIn();
  }
  EXPECT_EQ(answer, "R S S K Z:I");
}

}  // namespace
}  // namespace cellar::pgwire
