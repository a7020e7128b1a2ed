#include "cellar/auth/hba.h"

#include <gtest/gtest.h>

namespace cellar::auth {
namespace {

std::string MethodFor(const HbaRules& rules, const std::string& address, const std::string& user,
                      const std::string& database, bool encrypted = false) {
  HbaClient client;
  client.address = address;
  client.user = user;
  client.database = database;
  client.encrypted = encrypted;
  const HbaRule* rule = rules.Find(client, [](std::string_view member, std::string_view role) {
    return member == role || (member == "ann" && role == "staff");
  });
  if (rule == nullptr) return "none";
  return rule->method == HbaMethod::kTrust    ? "trust"
         : rule->method == HbaMethod::kReject ? "reject"
                                              : "scram";
}

TEST(Hba, TheFirstRuleThatFitsCounts) {
  auto rules = HbaRules::Parse(
      "# a comment\n"
      "local all all trust\n"
      "\n"
      "host all \"all\" 127.0.0.1/32 reject # a user of that name\n"
      "host shop,\"my db\" +staff 10.0.0.0/8 trust\n"
      "hostssl all all 0.0.0.0/0 scram-sha-256\n"
      "hostnossl sameuser all 192.168.0.0 255.255.0.0 scram-sha-256\n"
      "host samerole all ::1/128 \\\n"
      "  trust\n");
  ASSERT_TRUE(rules.ok()) << rules.status().ToString();
  const HbaRules& r = **rules;
  EXPECT_EQ(r.rules().size(), 6u);
  EXPECT_EQ(MethodFor(r, "127.0.0.1", "all", "x"), "reject");
  EXPECT_EQ(MethodFor(r, "127.0.0.1", "bob", "x"), "none");
  EXPECT_EQ(MethodFor(r, "10.1.2.3", "ann", "shop"), "trust");
  EXPECT_EQ(MethodFor(r, "10.1.2.3", "ann", "my db"), "trust");
  EXPECT_EQ(MethodFor(r, "10.1.2.3", "bob", "shop"), "none");
  EXPECT_EQ(MethodFor(r, "11.1.2.3", "ann", "shop"), "none");
  EXPECT_EQ(MethodFor(r, "11.1.2.3", "ann", "shop", true), "scram");
  EXPECT_EQ(MethodFor(r, "192.168.7.7", "bob", "bob"), "scram");
  EXPECT_EQ(MethodFor(r, "192.168.7.7", "bob", "shop"), "none");
  EXPECT_EQ(MethodFor(r, "::1", "ann", "staff"), "trust");
  EXPECT_EQ(MethodFor(r, "::1", "bob", "staff"), "none");
}

TEST(Hba, MistakesNameLineAndColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"\nhosts all all all trust", "line 2, column 1: invalid connection type \"hosts\""},
      {"host all all all md6", "line 1, column 18: invalid authentication method \"md6\""},
      {"host all all all md5", "line 1, column 18: authentication method \"md5\" is not supported"},
      {"host all", "line 1, column 9: end-of-line before role specification"},
      {"host all all 1.2.3.4 trust", "line 1, column 22: invalid IP mask \"trust\""},
      {"host all all 1.2.3.4/33 trust",
       "line 1, column 14: invalid CIDR mask in address \"1.2.3.4/33\""},
      {"host all all there trust",
       "line 1, column 14: \"there\" is not an IP address; host names are not supported"},
      {"host \"all all all trust", "line 1, column 6: a quoted name does not end"},
      {"host a,,b all all trust", "line 1, column 8: a name is missing"},
      {"host @list all all trust", "line 1, column 6: names from other files are not supported"},
      {"local all all trust map=x",
       "line 1, column 21: unrecognized authentication option name: \"map=x\""},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(HbaRules::Parse(text).status().message(), message) << text;
  }
  EXPECT_FALSE(HbaRules::Load("/no/such/file").ok());
}

}  // namespace
}  // namespace cellar::auth
