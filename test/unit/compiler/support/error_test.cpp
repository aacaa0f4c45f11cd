// Messages that hold foreign text.

#include "compiler/support/Error.h"

#include <gtest/gtest.h>

using namespace izhc;

TEST(ErrorTest, FormatsTheMessage) {
  EXPECT_EQ(llvm::toString(makeError("{0} has {1} rows", "w", 3)), "w has 3 rows");
}

TEST(ErrorTest, QuotesControlBytesAndCutsLongText) {
  EXPECT_EQ(quote("plain text"), "'plain text'");
  EXPECT_EQ(quote(llvm::StringRef("a\n\0\xff", 4)), "'a\\x0A\\x00\\xFF'");
  EXPECT_EQ(quote("abcdef", 3), "'abc...'");
}
