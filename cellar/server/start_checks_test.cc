#include "cellar/server/start_checks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cellar::server {
namespace {

namespace fs = std::filesystem;

class StartChecks : public testing::Test {
 protected:
  StartChecks() {
    std::string folder = testing::TempDir() + "/start_checks_XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    root_ = folder;
    fs::create_directory(root_ + "/store");
    std::ofstream(root_ + "/store/CELLAR") << "x";
    std::ofstream(root_ + "/key") << "x";
  }
  ~StartChecks() override { fs::remove_all(root_); }

  std::string StoreState(mode_t mode, uid_t user) const {
    EXPECT_EQ(::chmod((root_ + "/store").c_str(), mode), 0);
    return std::string(CheckStoreDirectory(root_ + "/store", user).sqlstate());
  }
  std::string KeyState(mode_t mode, uid_t user) const {
    EXPECT_EQ(::chmod((root_ + "/key").c_str(), mode), 0);
    return std::string(CheckKeyFile(root_ + "/key", user).sqlstate());
  }

  std::string root_;
  const uid_t self_ = ::geteuid();
};

constexpr const char* kFine = "";
constexpr const char* kRefused = "55000";

TEST_F(StartChecks, AStoreIsClosedToOthers) {
  for (mode_t mode : {0700U, 0750U, 0500U}) EXPECT_EQ(StoreState(mode, self_), kFine) << mode;
  for (mode_t mode : {0755U, 0770U, 0777U, 0701U, 0702U, 01777U}) {
    EXPECT_EQ(StoreState(mode, self_), kRefused) << mode;
  }
  const Status refused = CheckStoreDirectory(root_ + "/store", self_);
  EXPECT_NE(refused.detail().find("1777"), std::string::npos);
  EXPECT_NE(refused.hint().find("chmod 700"), std::string::npos);
}

TEST_F(StartChecks, WhatIsNoStoreYetIsLeftToItsMaker) {
  fs::remove(root_ + "/store/CELLAR");
  EXPECT_EQ(StoreState(0777, self_), kFine);
  EXPECT_TRUE(CheckStoreDirectory(root_ + "/absent", self_).ok());
}

TEST_F(StartChecks, AStoreBelongsToWhoServesIt) {
  EXPECT_EQ(StoreState(0700, self_ + 1), kRefused);
  EXPECT_EQ(StoreState(0700, 0), kFine);
}

TEST_F(StartChecks, KeysAreClosedToOthers) {
  EXPECT_EQ(KeyState(0600, self_), kFine);
  EXPECT_EQ(KeyState(0400, self_), kFine);
  for (mode_t mode : {0660U, 0604U, 0644U, 0666U}) {
    EXPECT_EQ(KeyState(mode, self_), kRefused) << mode;
  }
  // Root's may be read by the group of the server's user.
  EXPECT_EQ(KeyState(0640, self_), self_ == 0 ? kFine : kRefused);
  EXPECT_EQ(KeyState(0600, self_ + 1), self_ == 0 ? kFine : kRefused);
  EXPECT_FALSE(CheckKeyFile(root_ + "/absent", self_).ok());
}

TEST_F(StartChecks, RulesAreNotWrittenByAnybody) {
  ASSERT_EQ(::chmod((root_ + "/key").c_str(), 0644), 0);
  EXPECT_TRUE(CheckRulesFile(root_ + "/key").ok());
  ASSERT_EQ(::chmod((root_ + "/key").c_str(), 0646), 0);
  EXPECT_EQ(CheckRulesFile(root_ + "/key").sqlstate(), kRefused);
  EXPECT_FALSE(CheckRulesFile(root_ + "/absent").ok());
}

TEST_F(StartChecks, WarnOfRootForeignersAndOpenParents) {
  const std::string store = root_ + "/store";
  EXPECT_EQ(StartWarnings(store, self_).size(), self_ == 0 ? 1U : 0U);
  EXPECT_EQ(StartWarnings(store, self_ + 1).size(), 1U);
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  EXPECT_EQ(StartWarnings(store, self_ + 1).size(), 1U);
  ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);
  const std::vector<std::string> warnings = StartWarnings(store, self_ + 1);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(warnings[1].find("writable by all"), std::string::npos);
}

TEST_F(StartChecks, CopyStaysOutOfTheStore) {
  const std::string store = root_ + "/store";
  fs::create_directory(store + "/spill");
  fs::create_directory(root_ + "/store2");
  fs::create_directory_symlink(store, root_ + "/alias");
  EXPECT_TRUE(CheckCopyDirectories({root_ + "/store2"}, store).ok());
  EXPECT_TRUE(CheckCopyDirectories({}, store).ok());
  for (const std::string& directory :
       {store, store + "/spill", root_, std::string("/"), root_ + "/alias", root_ + "/alias/spill",
        root_ + "/store2/../store"}) {
    EXPECT_FALSE(CheckCopyDirectories({root_ + "/store2", directory}, store).ok()) << directory;
  }
}

}  // namespace
}  // namespace cellar::server
