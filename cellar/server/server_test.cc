#include "cellar/server/server.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace cellar::server {
namespace {

TEST(ListenAddress, ReadsHostAndPort) {
  const std::tuple<const char*, const char*, int> cases[] = {{"127.0.0.1:5433", "127.0.0.1", 5433},
                                                             {"localhost:0", "localhost", 0},
                                                             {"[::1]:1", "::1", 1},
                                                             {":5433", "127.0.0.1", 5433},
                                                             {"5433", "127.0.0.1", 5433},
                                                             {"*:65535", "*", 65535}};
  for (const auto& [text, host, port] : cases) {
    auto parsed = ParseListenAddress(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->first, host);
    EXPECT_EQ(parsed->second, port);
  }
}

TEST(ListenAddress, RefusesWhatIsNone) {
  for (const char* text : {"", "host", "host:", "host:x", "host:65536", "host:-1", "::1:5433"}) {
    EXPECT_FALSE(ParseListenAddress(text).ok()) << text;
  }
}

TEST(OpenDatabase, TakesLayoutAndSealingFromTheEnvironment) {
  char name[] = "/tmp/cellar_server_XXXXXX";
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

TEST(Serve, SaysWhyItCannotStart) {
  ServeOptions options;
  options.store.directory = "/proc/no/such/place";
  bool ready = false;
  EXPECT_FALSE(Serve(options, [&](const std::string&) { ready = true; }).ok());
  EXPECT_FALSE(ready);
}

}  // namespace
}  // namespace cellar::server
