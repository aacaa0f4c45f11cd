// Error messages.

#include "runtime/base/status.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace izh {
namespace {

TEST(StatusTest, WritesTheSentenceAndReturnsTheStatus) {
  izh_error error = {};
  EXPECT_EQ(fail(&error, IZH_LIMIT, "%s has %d", "x", 3), IZH_LIMIT);
  EXPECT_STREQ(error.message, "x has 3");
  EXPECT_EQ(fail(nullptr, IZH_IO, "%s", "nobody reads this"), IZH_IO);
}

TEST(StatusTest, CutsLongMessages) {
  izh_error error;
  memset(&error, 'x', sizeof(error));
  set_error(&error, "%s", std::string(5000, 'a').c_str());
  EXPECT_EQ(strlen(error.message), sizeof(error.message) - 1);
}

TEST(StatusTest, ReplacesControlBytesOfNames) {
  izh_error error = {};
  set_error(&error, "kernel %s", "a\x1b[2Jb\n\x7f");
  EXPECT_STREQ(error.message, "kernel a?[2Jb??");
}

TEST(StatusTest, TryReturnsTheFirstFailure) {
  auto run = [](izh_status first) -> izh_status {
    IZH_TRY(first);
    return IZH_CONTEXT_FULL;
  };
  EXPECT_EQ(run(IZH_IO), IZH_IO);
  EXPECT_EQ(run(IZH_OK), IZH_CONTEXT_FULL);
}

}  // namespace
}  // namespace izh
