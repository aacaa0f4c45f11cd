// The read-only mapping: refusals, content, and what release() leaves.

#include "compiler/support/MappedFile.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace izhc;

namespace {
class MappedFileTest : public testing::Test {
protected:
  std::string path = testing::TempDir() + "mapped_file_" + std::to_string(getpid());
  void TearDown() override { std::filesystem::remove(path); }
  void write(const std::string &content) { std::ofstream(path, std::ios::binary) << content; }
};
} // namespace

TEST_F(MappedFileTest, HoldsTheContent) {
  write("hello");
  auto file = MappedFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file));
  llvm::ArrayRef<uint8_t> bytes = (*file)->bytes();
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "hello");
  EXPECT_TRUE((*file)->contains(bytes.data() + 4));
  EXPECT_FALSE((*file)->contains(bytes.data() + 5));
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
  write("");
  auto file = MappedFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_TRUE((*file)->bytes().empty());
  (*file)->release(0, 100);
}

TEST_F(MappedFileTest, ReleasedPagesCanBeReadAgain) {
  std::string content(3 << 20, 'x');
  content.back() = 'y';
  write(content);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file));
  llvm::ArrayRef<uint8_t> bytes = (*file)->bytes();
  for (uint64_t offset : {uint64_t(0), uint64_t(1), uint64_t(3 << 20), UINT64_MAX}) {
    (*file)->willNeed(offset, UINT64_MAX);
    (*file)->release(offset, UINT64_MAX);
  }
  EXPECT_EQ(bytes.front(), 'x');
  EXPECT_EQ(bytes.back(), 'y');
}

// Pages of this process that are in memory, in bytes.
static long resident() {
  long size = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> size >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

TEST_F(MappedFileTest, ReleaseShrinksTheResidentSet) {
  if (resident() == 0)
    GTEST_SKIP() << "no /proc";
  write(std::string(32 << 20, 'x'));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(static_cast<bool>(file));
  unsigned sum = 0;
  for (uint8_t byte : (*file)->bytes())
    sum += byte;
  long before = resident();
  (*file)->release(0, 32 << 20);
  EXPECT_LT(resident(), before - (24 << 20)) << sum;
}

TEST_F(MappedFileTest, RefusesWhatIsNoFile) {
  for (const char *name : {"/", "/dev/null", "/no/such/file"}) {
    auto file = MappedFile::open(name);
    ASSERT_FALSE(static_cast<bool>(file)) << name;
    std::string message = llvm::toString(file.takeError());
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}
