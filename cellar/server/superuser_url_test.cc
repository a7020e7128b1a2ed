#include "cellar/server/superuser_url.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "cellar/auth/scram.h"
#include "cellar/kv/memory_engine.h"
#include "cellar/session/first_user.h"

namespace cellar::server {
namespace {

namespace fs = std::filesystem;

class SuperuserUrlTest : public testing::Test {
 protected:
  SuperuserUrlTest() {
    std::string folder = testing::TempDir() + "/superuser_url_XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    directory_ = folder;
    path_ = directory_ + "/superuser.url";
    database_ = std::move(*session::Database::Open(kv::MakeMemoryEngine(), {}));
  }
  ~SuperuserUrlTest() override { fs::remove_all(directory_); }

  SuperuserUrl Prepare(bool may_make = true) {
    Result<SuperuserUrl> url =
        PrepareSuperuserUrl(database_.get(), directory_, may_make, "127.0.0.1:0", "cellar");
    EXPECT_TRUE(url.ok()) << url.status().ToString();
    return url.ok() ? *url : SuperuserUrl();
  }
  std::string Content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& content) const { std::ofstream(path_) << content; }
  // Whether it opens the store.
  bool Fits(const std::string& secret) {
    const std::string verifier = session::FindFirstUser(database_.get()).verifier;
    const auto parsed = auth::ParseScramVerifier(verifier);
    return parsed && auth::PasswordFits(secret, *parsed);
  }
  static std::string SecretIn(const std::string& url) {
    const size_t start = std::string("postgresql://cellar:").size();
    return url.substr(start, url.find('@') - start);
  }

  std::string directory_, path_;
  std::unique_ptr<session::Database> database_;
};

TEST_F(SuperuserUrlTest, TheFirstStartMakesASecret) {
  const SuperuserUrl url = Prepare();
  EXPECT_EQ(url.secret, SuperuserSecret::kMade);
  EXPECT_EQ(url.user, "cellar");
  EXPECT_EQ(url.path, path_);
  EXPECT_EQ(url.verifier, session::FindFirstUser(database_.get()).verifier);
  const std::string secret = SecretIn(Content());
  EXPECT_EQ(Content(), "postgresql://cellar:" + secret + "@127.0.0.1:0/cellar\n");
  EXPECT_EQ(secret.size(), 32U);
  EXPECT_EQ(PercentEncoded(secret), secret);
  EXPECT_TRUE(Fits(secret));
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
  EXPECT_FALSE(fs::exists(path_ + ".new"));
}

TEST_F(SuperuserUrlTest, LaterStartsKeepItAndFollowTheAddress) {
  Prepare();
  const std::string before = Content();
  const SuperuserUrl url = Prepare();
  EXPECT_EQ(url.secret, SuperuserSecret::kKept);
  EXPECT_EQ(Content(), before);
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  ASSERT_TRUE(UpdateSuperuserUrl(url, "[::1]:5433", "cellar").ok());
  EXPECT_EQ(Content(), "postgresql://cellar:" + SecretIn(before) + "@[::1]:5433/cellar\n");
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777U, 0600U);
  EXPECT_EQ(Prepare(false).secret, SuperuserSecret::kKept);
}

TEST_F(SuperuserUrlTest, WithoutLeaveNothingIsMade) {
  const SuperuserUrl url = Prepare(false);
  EXPECT_EQ(url.secret, SuperuserSecret::kNone);
  EXPECT_EQ(url.verifier, "");
  EXPECT_FALSE(fs::exists(path_));
  ASSERT_TRUE(UpdateSuperuserUrl(url, "127.0.0.1:1", "cellar").ok());
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(SuperuserUrlTest, AChosenPasswordStaysAndTheFileGoes) {
  Prepare();
  const std::string chosen = *auth::MakePasswordVerifier("chosen");
  ASSERT_TRUE(session::SetFirstUserVerifier(database_.get(), chosen).ok());
  SuperuserUrl url = Prepare();
  EXPECT_EQ(url.secret, SuperuserSecret::kNone);
  EXPECT_TRUE(url.stale);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(Fits("chosen"));
  url = Prepare();
  EXPECT_FALSE(url.stale);
  EXPECT_EQ(session::FindFirstUser(database_.get()).verifier, chosen);
}

TEST_F(SuperuserUrlTest, APasswordThatWasTakenAwayIsReplaced) {
  Prepare();
  const std::string before = SecretIn(Content());
  ASSERT_TRUE(session::SetFirstUserVerifier(database_.get(), "").ok());
  EXPECT_EQ(Prepare().secret, SuperuserSecret::kMade);
  EXPECT_NE(SecretIn(Content()), before);
  EXPECT_TRUE(Fits(SecretIn(Content())));
  EXPECT_FALSE(Fits(before));
}

// As a start leaves it that was interrupted before the store knew the secret.
TEST_F(SuperuserUrlTest, AFileWithoutASecretInTheStoreIsWrittenAnew) {
  Write("postgresql://cellar:abcdefghijklmnopqrstuvwxyz012345@127.0.0.1:1/cellar\n");
  std::ofstream(path_ + ".new") << "half of another";
  EXPECT_EQ(Prepare().secret, SuperuserSecret::kMade);
  EXPECT_TRUE(Fits(SecretIn(Content())));
}

TEST_F(SuperuserUrlTest, ForeignFilesAreNotTaken) {
  ASSERT_TRUE(
      session::SetFirstUserVerifier(database_.get(), *auth::MakePasswordVerifier("chosen")).ok());
  for (const char* text : {"", "postgresql://", "postgresql://cellar@h/d", "postgresql://:@/",
                           "http://cellar:chosen@h/d", "postgresql://cellar:other@h:1/cellar\n",
                           "postgresql://cellar:a@b:c/chosen@"}) {
    Write(text);
    const SuperuserUrl url = Prepare();
    EXPECT_EQ(url.secret, SuperuserSecret::kNone) << text;
    EXPECT_TRUE(url.stale) << text;
  }
  // A link is not followed: what it leads to stays.
  std::ofstream(directory_ + "/other") << "postgresql://cellar:chosen@h/d";
  fs::create_symlink(directory_ + "/other", path_);
  EXPECT_TRUE(Prepare().stale);
  EXPECT_TRUE(fs::exists(directory_ + "/other"));
  EXPECT_FALSE(fs::is_symlink(path_));
}

TEST_F(SuperuserUrlTest, AFileThatCannotBeWrittenIsAnErrorAndNoPassword) {
  fs::create_directory(path_ + ".new");
  fs::create_directory(path_ + ".new/full");
  EXPECT_FALSE(
      PrepareSuperuserUrl(database_.get(), directory_, true, "127.0.0.1:0", "cellar").ok());
  EXPECT_EQ(session::FindFirstUser(database_.get()).verifier, "");
}

TEST(PercentEncoded, EncodesWhatUrlsDoNotTake) {
  EXPECT_EQ(PercentEncoded("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(PercentEncoded("a b/ü@"), "a%20b%2F%C3%BC%40");
}

}  // namespace
}  // namespace cellar::server
