#include "cellar/store/backup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "cellar/db.h"

namespace cellar {
namespace {

TEST(DatabaseBackup, IsMadeBesideConnectionsAndRestores) {
  char name[] = "/tmp/cellar_library_XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string folder = name;
  {
    auto database = Database::Open(folder + "/store");
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    auto connection = (*database)->Connect();
    ASSERT_TRUE(connection.ok());
    ASSERT_TRUE((*connection)->ExecuteScript("CREATE TABLE t (a int PRIMARY KEY)").ok());
    auto transaction = (*connection)->Begin();
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE((*connection)->Execute("INSERT INTO t VALUES (1)").ok());
    ASSERT_TRUE(transaction->Commit().ok());
    auto open = (*connection)->Begin();  // not committed: not in the backup
    ASSERT_TRUE((*connection)->Execute("INSERT INTO t VALUES (2)").ok());
    for (uint32_t number = 1; number <= 3; ++number) {
      const auto report = (*database)->Backup(folder + "/backups", {.keep = 2});
      ASSERT_TRUE(report.ok()) << report.status().ToString();
      EXPECT_EQ(report->number, number);
      EXPECT_GT(report->bytes, 0u);
      EXPECT_LE(report->new_bytes, report->bytes);
    }
    EXPECT_EQ((*database)->Backup(folder + "/store/backups").status().sqlstate(), "22023");
    // In SQL it is the same, one row.
    EXPECT_EQ((*connection)->Execute("BACKUP STORE TO 'x'").status().sqlstate(), "25001");
    ASSERT_TRUE(open->Rollback().ok());
    auto rows = (*connection)->Query("BACKUP STORE TO '" + folder + "/backups' WITH (keep = 2)");
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    ASSERT_TRUE(rows->Next()) << rows->status().ToString();
    EXPECT_EQ(rows->GetInt(0), 4);
    EXPECT_FALSE(rows->Next());
  }
  ASSERT_EQ(store::ListBackups(folder + "/backups")->size(), 2u);
  ASSERT_TRUE(store::RestoreBackup(folder + "/backups", 0, folder + "/again").ok());
  {
    auto database = Database::Open(folder + "/again");
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    auto connection = (*database)->Connect();
    auto rows = (*connection)->Query("SELECT count(*) FROM t");
    ASSERT_TRUE(rows.ok() && rows->Next());
    EXPECT_EQ(rows->GetInt(0), 1);
    EXPECT_EQ((*connection)->Execute("CHECK DATABASE FULL").value(), 0u);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cellar
