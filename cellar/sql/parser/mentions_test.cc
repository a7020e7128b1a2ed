#include "cellar/sql/parser/mentions.h"

#include <gmock/gmock.h>

namespace cellar::sql {
namespace {

using testing::ElementsAre;

std::vector<std::string> Spelled(const std::vector<NameMention>& mentions) {
  std::vector<std::string> out;
  for (const NameMention& mention : mentions) {
    std::string& name = out.emplace_back();
    for (const std::string& part : mention.parts) name += (name.empty() ? "" : "|") + part;
  }
  return out;
}

TEST(Mentions, FindTypesWhereTypesStand) {
  EXPECT_THAT(
      Spelled(TypeMentions("a::Mood, cast(b AS s.\"My \"\"T\"), c as d, x :: db.s.t[] '::no'")),
      ElementsAre("mood", "s|My \"T", "db|s|t"));
  EXPECT_THAT(Spelled(TypeMentions("'a::mood' /* ::t */ -- ::u\n")), ElementsAre());
  EXPECT_THAT(Spelled(TypeMentions("a::mood::text AS text")), ElementsAre("mood", "text"));
}

TEST(Mentions, FindCollationsBehindTheirWord) {
  EXPECT_THAT(Spelled(CollationMentions("a COLLATE \"de-x-icu\" < b collate S . c")),
              ElementsAre("de-x-icu", "s|c"));
  EXPECT_THAT(Spelled(CollationMentions("'x collate y' || \"collate\" z")), ElementsAre());
}

TEST(Mentions, AreReplacedWhereTheyMatch) {
  const std::string text = "a::old || b::s.old || c::new";
  const auto is_old = [](const std::vector<std::string>& parts) { return parts.back() == "old"; };
  EXPECT_EQ(ReplaceMentions(text, TypeMentions(text), "\"New one\"", is_old),
            "a::\"New one\" || b::\"New one\" || c::new");
  EXPECT_EQ(ReplaceMentions(text, CollationMentions(text), "x", is_old), text);
}

}  // namespace
}  // namespace cellar::sql
