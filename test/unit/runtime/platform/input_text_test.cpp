// What is read of files and pipes, and what isn't waited for.

#include "runtime/platform/input_text.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace izh {
namespace {

using testing::HasSubstr;

// The text, or the sentence of the failure in angle brackets.
std::string read_text(const std::string& path) {
  Array<char> text;
  izh_error error = {};
  if (read_input(path.c_str(), &text, &error) != IZH_OK)
    return std::string("<") + error.message + ">";
  return {text.data(), text.size()};
}

class InputTextTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0); }
  void TearDown() override { unlink(pipe_.c_str()); }

  const std::string pipe_ = testing::TempDir() + "input_text_pipe";
};

TEST_F(InputTextTest, RefusesAPipeThatNobodyWritesTo) {
  EXPECT_THAT(read_text(pipe_), HasSubstr(pipe_ + "' is a pipe that nothing writes to"));
}

TEST_F(InputTextTest, ReadsAPipeToItsEnd) {
  // A pipe that nobody reads can't be opened to write.
  const int reader = open(pipe_.c_str(), O_RDONLY | O_NONBLOCK);
  const int writer = open(pipe_.c_str(), O_WRONLY);
  ASSERT_GE(writer, 0);
  // The second half comes later, and is more than a pipe holds.
  std::thread later([writer] {
    usleep(20000);
    const std::string rest(100000, 'b');
    EXPECT_EQ(write(writer, "a", 1), 1);
    for (size_t done = 0; done < rest.size();) {
      const ssize_t count = write(writer, rest.data() + done, rest.size() - done);
      ASSERT_GT(count, 0);
      done += static_cast<size_t>(count);
    }
    close(writer);
  });
  const std::string text = read_text(pipe_);
  later.join();
  close(reader);
  EXPECT_EQ(text, "a" + std::string(100000, 'b'));
}

// As a shell gives them: the program that wrote nothing has ended already.
TEST_F(InputTextTest, TakesAPipeWhoseWriterIsGoneForAnEmptyText) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[1]);
  EXPECT_EQ(read_text("/dev/fd/" + std::to_string(ends[0])), "");
  close(ends[0]);
}

TEST_F(InputTextTest, WaitsForAStandardInputThatDoesNotWait) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  const int before = dup(STDIN_FILENO);
  ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  std::thread later([&ends] {
    usleep(20000);
    EXPECT_EQ(write(ends[1], "late", 4), 4);
    close(ends[1]);
  });
  EXPECT_EQ(read_text("-"), "late");
  later.join();
  dup2(before, STDIN_FILENO);
  close(before);
  close(ends[0]);
}

TEST_F(InputTextTest, RefusesDevicesThatGiveBytes) {
  EXPECT_THAT(read_text("/dev/zero"), HasSubstr("'/dev/zero' is a device"));
  EXPECT_EQ(read_text("/dev/null"), "");
}

TEST_F(InputTextTest, SaysWhyAFileCannotBeRead) {
  EXPECT_THAT(read_text("/nowhere/text"), HasSubstr("cannot read '/nowhere/text': No such file"));
  EXPECT_THAT(read_text(testing::TempDir()), HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace izh
