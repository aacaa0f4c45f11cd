// Mapped files and code.

#include "runtime/platform/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/platform/read_ahead.h"

namespace izh {
namespace {

std::string temporary(const char* name) {
  return testing::TempDir() + "izh_file_test_" + std::to_string(getpid()) + "_" + name;
}

void writeFile(const std::string& path, const std::vector<uint8_t>& bytes) {
  FILE* file = fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  fclose(file);
}

TEST(FileTest, MapsTheBytesOfTheFile) {
  const std::string path = temporary("bytes");
  writeFile(path, {1, 2, 3, 4, 5});
  MappedFile file;
  ASSERT_EQ(file_map(path.c_str(), &file, nullptr), IZH_OK);
  EXPECT_EQ(file.size, 5u);
  EXPECT_EQ(file.data[4], 5);
  file_unmap(&file);
  EXPECT_EQ(file.data, nullptr);
  unlink(path.c_str());
}

TEST(FileTest, ReadsAheadAnyRangeAndStopsAtOnce) {
  const std::string path = temporary("ahead");
  writeFile(path, std::vector<uint8_t>((9 << 20) + 5, 7));
  MappedFile file;
  ASSERT_EQ(file_map(path.c_str(), &file, nullptr), IZH_OK);
  for (const uint64_t offset : {0, 1, 4096, 5 << 20, (9 << 20) + 4}) {
    read_ahead_stop(read_ahead_start(file, offset, file.size - offset));
  }
  read_ahead_stop(read_ahead_start(file, 3, 0));
  read_ahead_stop(nullptr);
  file_unmap(&file);
  // Bytes that are not a file's are in memory already.
  EXPECT_EQ(read_ahead_start({file.data, 5, -1}, 0, 5), nullptr);
  unlink(path.c_str());
}

TEST(FileTest, ReadsTheBytesIntoMemoryOfItsOwn) {
  const std::string path = temporary("copy");
  // More than one call reads, and no whole number of pages.
  std::vector<uint8_t> bytes((20 << 20) + 77);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 31 >> 7);
  writeFile(path, bytes);
  MappedFile file;
  ASSERT_EQ(file_read(path.c_str(), &file, nullptr), IZH_OK);
  writeFile(path, {});
  EXPECT_TRUE(file.copied);
  ASSERT_EQ(file.size, bytes.size());
  EXPECT_EQ(memcmp(file.data, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file.data) % 4096, 0u);
  file_unmap(&file);
  EXPECT_EQ(file.data, nullptr);
  izh_error error = {};
  EXPECT_EQ(file_read(path.c_str(), &file, &error), IZH_BAD_ARTIFACT);
  unlink(path.c_str());
  EXPECT_EQ(file_read(path.c_str(), &file, &error), IZH_IO);
}

// A file that takes no space on the disk, but more memory than there is.
TEST(FileTest, DoesNotReadWhatMemoryCannotHold) {
  const std::string path = temporary("huge");
  writeFile(path, {1});
  if (truncate(path.c_str(), off_t{1} << 43) != 0) GTEST_SKIP() << "no file of 8 TiB can be made";
  MappedFile file;
  izh_error error = {};
  EXPECT_EQ(file_read(path.c_str(), &file, &error), IZH_OUT_OF_MEMORY);
  EXPECT_NE(strstr(error.message, "map it instead"), nullptr) << error.message;
  unlink(path.c_str());
}

TEST(FileTest, SaysWhyAFileCannotBeMapped) {
  MappedFile file;
  izh_error error = {};
  EXPECT_EQ(file_map("/nonexistent/model.izh", &file, &error), IZH_IO);
  EXPECT_NE(strstr(error.message, "/nonexistent/model.izh"), nullptr);
  EXPECT_EQ(file_map("/", &file, &error), IZH_IO);
  EXPECT_NE(strstr(error.message, "not a regular file"), nullptr);
  const std::string empty = temporary("empty");
  writeFile(empty, {});
  EXPECT_EQ(file_map(empty.c_str(), &file, &error), IZH_BAD_ARTIFACT);
  EXPECT_NE(strstr(error.message, "is empty"), nullptr);
  unlink(empty.c_str());
  const std::string pipe = temporary("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(file_map(pipe.c_str(), &file, &error), IZH_IO);
  unlink(pipe.c_str());
}

#if defined(__x86_64__)
using Function = int (*)();

TEST(FileTest, RunsCodeFromAFileAndFromMemory) {
  std::vector<uint8_t> bytes(65536 + 6);
  const uint8_t code[] = {0xb8, 42, 0, 0, 0, 0xc3};  // mov eax, 42; ret
  memcpy(bytes.data() + 65536, code, sizeof(code));
  const std::string path = temporary("code");
  writeFile(path, bytes);
  MappedFile file;
  ASSERT_EQ(file_map(path.c_str(), &file, nullptr), IZH_OK);
  MappedCode mapped, copied;
  ASSERT_EQ(code_map(file, "test", 65536, 6, &mapped, nullptr), IZH_OK);
  EXPECT_EQ(reinterpret_cast<Function>(const_cast<uint8_t*>(mapped.data))(), 42);
  const MappedFile memory = {bytes.data(), bytes.size(), -1};
  ASSERT_EQ(code_map(memory, "test", 65536, 6, &copied, nullptr), IZH_OK);
  EXPECT_EQ(reinterpret_cast<Function>(const_cast<uint8_t*>(copied.data))(), 42);
  code_unmap(&mapped);
  code_unmap(&copied);
  file_unmap(&file);
  unlink(path.c_str());
}
#endif

}  // namespace
}  // namespace izh
