#include "cellar/engines/rocksdb/disk_space.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace cellar::engines {
namespace {

TEST(DiskSpace, KeepsAReserveAndGivesIt) {
  std::string path = testing::TempDir() + "cellar_disk_space_XXXXXX";
  const std::string directory = ::mkdtemp(path.data());
  const std::string reserve = directory + "/reserve";
  {
    DiskSpace space(directory, 1 << 20);
    EXPECT_GT(space.FreeBytes(), 0u);
    EXPECT_GE(DiskSpace::TotalBytes(directory), space.FreeBytes(true));
    space.GiveReserve();
    EXPECT_FALSE(std::filesystem::exists(reserve));
    space.KeepReserve();
    space.KeepReserve();
    EXPECT_EQ(std::filesystem::file_size(reserve), size_t{1} << 20);
    space.GiveReserve();
    EXPECT_FALSE(std::filesystem::exists(reserve));
    space.KeepReserve();
  }
  EXPECT_FALSE(std::filesystem::exists(reserve));
  // One from before a crash.
  std::ofstream(reserve) << "x";
  DiskSpace(directory, 1 << 20).GiveReserve();
  EXPECT_FALSE(std::filesystem::exists(reserve));
  EXPECT_EQ(DiskSpace("/no/such/directory", 1).FreeBytes(), UINT64_MAX);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace cellar::engines
