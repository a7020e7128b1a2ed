#include "cellar/session/first_user.h"

#include "cellar/session/test_session.h"

namespace cellar::session {
namespace {

constexpr const char* kVerifier =
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

TEST(FirstUser, HasNoPasswordUntilOneIsSet) {
  TestSession session;
  FirstUser first = FindFirstUser(session.database());
  EXPECT_EQ(first.name, "cellar");
  EXPECT_TRUE(first.can_login);
  EXPECT_EQ(first.verifier, "");
  ASSERT_TRUE(SetFirstUserVerifier(session.database(), kVerifier).ok());
  EXPECT_EQ(FindFirstUser(session.database()).verifier, kVerifier);
  EXPECT_EQ(session.database()->PasswordVerifier("cellar"), kVerifier);
  EXPECT_TRUE(session.database()->IsSuperuser("cellar"));
  EXPECT_EQ(session.Run("SELECT rolpassword FROM pg_authid WHERE rolname = 'cellar'"),
            std::vector<std::string>{kVerifier});
}

TEST(FirstUser, IsFoundUnderItsNewName) {
  TestSession session;
  ASSERT_TRUE(SetFirstUserVerifier(session.database(), kVerifier).ok());
  session.Run("CREATE ROLE other SUPERUSER LOGIN");
  SessionOptions as_other;
  as_other.user = "other";
  const std::unique_ptr<Session> other = session.Open(as_other);
  TextSink sink;
  ASSERT_TRUE(TestSession::RunIn(other.get(),
                                 "ALTER ROLE cellar RENAME TO root; ALTER ROLE root NOLOGIN", &sink)
                  .ok());
  const FirstUser first = FindFirstUser(session.database());
  EXPECT_EQ(first.name, "root");
  EXPECT_FALSE(first.can_login);
  EXPECT_EQ(first.verifier, kVerifier);
  ASSERT_TRUE(SetFirstUserVerifier(session.database(), "").ok());
  EXPECT_EQ(FindFirstUser(session.database()).verifier, "");
}

}  // namespace
}  // namespace cellar::session
