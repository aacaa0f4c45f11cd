// Real files below $IZH_SHARED, where it is set: all must open.

#include "test/unit/compiler/import/open.h"

#include <cstdlib>
#include <filesystem>

using namespace izhc;
using namespace izhc::test;

TEST(SharedFilesTest, AllOpen) {
  const char *shared = std::getenv("IZH_SHARED");
  if (!shared)
    GTEST_SKIP() << "IZH_SHARED is not set";
  size_t opened = 0;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(shared)) {
    if (entry.path().extension() != ".gguf")
      continue;
    auto model = openModel(entry.path().string());
    ASSERT_TRUE(static_cast<bool>(model)) << llvm::toString(model.takeError());
    EXPECT_TRUE(!(*model)->metadata().empty() || !(*model)->tensors().empty());
    ++opened;
  }
  EXPECT_GT(opened, 0u);
}
