#include "cellar/server/server.h"

#include <gtest/gtest.h>

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

TEST(Serve, SaysWhyItCannotStart) {
  ServeOptions options;
  options.store.directory = "/proc/no/such/place";
  bool ready = false;
  EXPECT_FALSE(Serve(options, [&](const std::string&) { ready = true; }).ok());
  EXPECT_FALSE(ready);
}

}  // namespace
}  // namespace cellar::server
