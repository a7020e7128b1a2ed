// Sessions as others see, cancel and end them.
#include "cellar/session/session_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cellar/session/session_internal.h"
#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

using testing::ElementsAre;
using Reason = CancelToken::Reason;

TEST(CancelTokenReasons, HeavierOnesStay) {
  CancelToken token;
  token.Cancel(Reason::kUser);
  EXPECT_EQ(token.Check().sqlstate(), "57014");
  token.Clear();
  EXPECT_TRUE(token.Check().ok());
  token.Cancel(Reason::kShutdown);
  token.Cancel(Reason::kUser);
  token.Clear();
  EXPECT_EQ(token.Check().sqlstate(), "57P01");
  EXPECT_TRUE(token.ends_session());
}

TEST(CancelTokenReasons, OfAParentCountToo) {
  CancelToken token, parent;
  token.SetParent(&parent);
  EXPECT_TRUE(token.Check().ok());
  parent.Cancel(Reason::kUser);
  EXPECT_EQ(token.Check().sqlstate(), "57014");
  token.SetParent(nullptr);
  EXPECT_TRUE(token.Check().ok());
}

TEST(CancelTokenReasons, DeadlinesPass) {
  CancelToken token;
  token.SetDeadline(std::chrono::steady_clock::now() + std::chrono::hours(1));
  EXPECT_TRUE(token.Check().ok());
  token.SetDeadline(std::chrono::steady_clock::now());
  EXPECT_EQ(token.Check().sqlstate(), "57014");
}

TEST(SessionEntries, WakeTheirDoorOnceTheyEnd) {
  SessionEntry entry(1, 2, {});
  int woken = 0;
  entry.SetWake([&] { ++woken; });
  entry.cancel().Cancel(Reason::kUser);
  EXPECT_EQ(woken, 0);
  entry.End(Reason::kShutdown);
  EXPECT_EQ(woken, 1);
  entry.SetWake([&] { woken += 10; });  // a door that comes late
  EXPECT_EQ(woken, 11);
  entry.SetWake({});
  entry.End(Reason::kShutdown);
  EXPECT_EQ(woken, 11);
}

TEST(SessionEntries, KeepTheBeginningOfAQuery) {
  SessionEntry entry(1, 2, {});
  std::string text(kMaxShownQueryBytes - 1, 'x');
  entry.Work(text + "\xC3\xA4" + "more", 5);
  EXPECT_EQ(entry.View().query, text);  // not half a character
  entry.Work(text + "yz", 6);
  EXPECT_EQ(entry.View().query, text + "y");
  EXPECT_EQ(entry.View().query_micros, 6);
}

TEST(SessionRegistryTest, WaitsForTheEndOfASession) {
  SessionRegistry registry;
  auto entry = std::make_shared<SessionEntry>(registry.NextPid(), 2, SessionView());
  ASSERT_TRUE(registry.Add(entry));
  const CancelToken never;
  const Result<bool> still =
      registry.WaitUntilGone(entry->pid(), std::chrono::milliseconds(1), never);
  ASSERT_TRUE(still.ok());
  EXPECT_FALSE(*still);
  std::thread ending([&] { registry.Remove(entry->pid()); });
  const Result<bool> gone =
      registry.WaitUntilGone(entry->pid(), std::chrono::milliseconds(INT64_MAX), never);
  ending.join();
  ASSERT_TRUE(gone.ok());
  EXPECT_TRUE(*gone);
  EXPECT_FALSE(registry.Cancel(entry->pid(), 2));
  registry.EndAll();
  EXPECT_FALSE(registry.Add(entry));
}

// Runs something in the session while a statement hands out its rows.
class CallingSink : public TextSink {
 public:
  std::function<void()> call;
  Status OnRows(const RowBatch& batch) override {
    if (call) std::exchange(call, nullptr)();
    return TextSink::OnRows(batch);
  }
};

TEST(Statements, AreTheSessionsWhileTheyRun) {
  TestSession sessions;
  const std::unique_ptr<Session> session = sessions.Open();
  Session::Impl& impl = *session->impl();
  EXPECT_EQ(impl.statement, &impl.no_statement);
  CallingSink sink;
  sink.call = [&] {
    EXPECT_EQ(impl.statement->text, "SELECT current_query(), 1 AS a");
    EXPECT_EQ(impl.statement->sink, &sink);
    EXPECT_EQ(impl.entry->View().state, SessionState::kActive);
  };
  EXPECT_TRUE(TestSession::RunIn(session.get(), "SELECT current_query(), 1 AS a", &sink).ok());
  EXPECT_THAT(sink.rows, ElementsAre("SELECT current_query(), 1 AS a|1"));
  EXPECT_EQ(impl.statement, &impl.no_statement);
  EXPECT_EQ(impl.entry->View().state, SessionState::kIdle);
  EXPECT_EQ(impl.entry->View().transaction_micros, 0);
  EXPECT_TRUE(TestSession::RunIn(session.get(), "BEGIN; SELECT 1", &sink).ok());
  EXPECT_EQ(impl.entry->View().state, SessionState::kInTransaction);
  EXPECT_NE(impl.entry->View().transaction_micros, 0);
  EXPECT_FALSE(TestSession::RunIn(session.get(), "SELECT 1/0", &sink).ok());
  EXPECT_EQ(impl.entry->View().state, SessionState::kInFailedTransaction);
}

TEST(Statements, PortalsKeepTheirOwn) {
  TestSession sessions;
  const std::unique_ptr<Session> session = sessions.Open();
  Session::Impl& impl = *session->impl();
  CallingSink sink;
  sink.session = session.get();
  sink.types = {MakeType(TypeId::kInt4)};
  ASSERT_TRUE(session->ExecuteSimple("BEGIN", &sink).ok());
  ASSERT_TRUE(session->Parse("s", "SELECT generate_series(1, 10)", {}, &sink).ok());
  ASSERT_TRUE(session->Bind("p", "s", {}).ok());
  const Statement* own = impl.portals.at("p")->statement.get();
  for (int i = 0; i < 2; ++i) {
    sink.call = [&] { EXPECT_EQ(impl.statement, own); };
    Result<ExecuteOutcome> outcome = session->ExecutePortal("p", 3, false, &sink);
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(*outcome, ExecuteOutcome::kSuspended);
    EXPECT_EQ(impl.statement, &impl.no_statement);
  }
  // A statement that fails takes the portal with it, and is still told as its own.
  ASSERT_TRUE(session->Parse("", "ROLLBACK", {}, &sink).ok());
  ASSERT_TRUE(session->Bind("", "", {}).ok());
  ASSERT_TRUE(session->ExecutePortal("", 0, true, &sink).ok());
  EXPECT_FALSE(impl.portals.contains("p"));
}

TEST(Statements, CancelIsForWhatRuns) {
  TestSession sessions;
  const std::unique_ptr<Session> session = sessions.Open();
  session->Cancel(false);  // nothing runs
  TextSink sink;
  EXPECT_TRUE(TestSession::RunIn(session.get(), "SELECT 1", &sink).ok());
  CallingSink calling;
  calling.call = [&] { session->Cancel(false); };
  // The rest of the message does not run either.
  EXPECT_EQ(TestSession::RunIn(session.get(), "SELECT 1; CREATE TABLE left_out (a int)", &calling)
                .sqlstate(),
            "57014");
  EXPECT_EQ(TestSession::RunIn(session.get(), "TABLE left_out", &sink).sqlstate(), "42P01");
  session->Cancel(true);
  EXPECT_TRUE(session->ending());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(TestSession::RunIn(session.get(), "SELECT 1", &sink).sqlstate(), "57P01");
}

TEST(Statements, OfOthersAreSeenAndStopped) {
  TestSession sessions;
  const std::unique_ptr<Session> victim = sessions.Open();
  const std::string pid = std::to_string(victim->pid());
  EXPECT_THAT(
      sessions.Run("SELECT state, query, xact_start IS NULL FROM pg_stat_activity WHERE pid = " +
                   pid),
      ElementsAre("idle||t"));
  std::string state;
  std::thread running([&] {
    TextSink sink;
    state = TestSession::RunIn(victim.get(), "SELECT pg_sleep(600)", &sink).sqlstate();
  });
  while (sessions
             .Run("SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = "
                  "'SELECT pg_sleep(600)' AND pid = " +
                  pid)
             .empty()) {
    std::this_thread::yield();
  }
  EXPECT_THAT(sessions.Run("SELECT pg_cancel_backend(" + pid + ")"), ElementsAre("t"));
  running.join();
  EXPECT_EQ(state, "57014");
  EXPECT_THAT(sessions.Run("SELECT pg_terminate_backend(" + pid + ", 1)"), ElementsAre("f"));
  TextSink sink;
  EXPECT_EQ(TestSession::RunIn(victim.get(), "SELECT 1", &sink).sqlstate(), "57P01");
}

}  // namespace
}  // namespace cellar::session
