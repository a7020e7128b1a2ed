#include "cellar/base/interrupt.h"

#include <gtest/gtest.h>

namespace cellar {
namespace {

TEST(Interrupt, IsHeardOnceInTenThousandStepsOrAMegabyte) {
  CancelToken token;
  token.Cancel(CancelToken::Reason::kUser);
  size_t steps = 0, bytes = 0;
  const auto work = [&](size_t* done, size_t more, void (*poll)(size_t)) {
    return CatchInterrupted([&] {
      const InterruptScope scope(&token);
      while (*done < 10'000'000) {
        poll(more);
        *done += more;
      }
      return Status();
    });
  };
  EXPECT_EQ(work(&steps, 1, PollSteps).sqlstate(), "57014");
  EXPECT_LE(steps, 10'000u);
  EXPECT_EQ(work(&bytes, 1000, PollBytes).sqlstate(), "57014");
  EXPECT_LE(bytes, size_t{1} << 20);
}

TEST(Interrupt, IsForTheThreadThatListens) {
  CancelToken token;
  token.Cancel(CancelToken::Reason::kUser);
  const auto work = [] {
    size_t seen = 0;
    InPieces(std::string(3 << 20, 'x'), [&](std::string_view piece) { seen += piece.size(); });
    return seen;
  };
  EXPECT_EQ(work(), size_t{3} << 20);
  const Status status = CatchInterrupted([&] {
    const InterruptScope scope(&token);
    {
      const InterruptScope deaf(nullptr);
      EXPECT_EQ(work(), size_t{3} << 20);
    }
    work();
    return Status();
  });
  EXPECT_EQ(status.sqlstate(), "57014");
  EXPECT_TRUE(InterruptScope::Check().ok());
}

}  // namespace
}  // namespace cellar
