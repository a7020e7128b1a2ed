#include "cellar/store/open.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace cellar::store {
namespace {

TEST(OpenDatabase, TakesLayoutAndSealingFromTheEnvironment) {
  char name[] = "/tmp/cellar_store_XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  StoreOptions options;
  options.directory = std::string(name) + "/store";
  for (const char* variable : {"CELLAR_DEFAULT_TABLE_LAYOUT", "CELLAR_SEAL"}) {
    const char* before = std::getenv(variable);
    const std::string kept = before == nullptr ? "" : before;
    ::setenv(variable, "nonsense", 1);
    EXPECT_EQ(OpenDatabase(options).status().sqlstate(), "22023") << variable;
    // What the program says counts more.
    options.table_layout = "pages";
    options.seal = "off";
    EXPECT_TRUE(OpenDatabase(options).ok()) << variable;
    options.table_layout = options.seal = "";
    ::setenv(variable, kept.c_str(), 1);
  }
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace cellar::store
