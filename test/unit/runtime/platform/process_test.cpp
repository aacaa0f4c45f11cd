// What signals and closed streams do to a program. Each test runs in a process
// of its own.

#include "runtime/platform/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

namespace izh {
namespace {

// A file of one page that goes with the test.
class ProcessTest : public testing::Test {
 protected:
  ProcessTest() : path(testing::TempDir() + "izh_process_XXXXXX") {
    descriptor = mkstemp(path.data());
    EXPECT_EQ(ftruncate(descriptor, 4096), 0);
  }
  ~ProcessTest() override {
    close(descriptor);
    unlink(path.c_str());
  }
  std::string path;
  int descriptor;
};

using ProcessDeathTest = ProcessTest;

TEST_F(ProcessDeathTest, SaysThatAMappedFileLostItsBytes) {
  auto lose = [&] {
    process_prepare("program", nullptr);
    process_reads("model.izh");
    void* data = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED || ftruncate(descriptor, 0) != 0) _exit(3);
    _exit(*static_cast<volatile char*>(data) + 4);
  };
  EXPECT_EXIT(lose(), testing::ExitedWithCode(1), "^program: model.izh lost bytes.*rename that\n$");
}

TEST_F(ProcessDeathTest, RemovesAnUnfinishedFileWhenTerminated) {
  auto end = [&] {
    process_prepare("program", nullptr);
    process_writes(path.c_str());
    raise(SIGTERM);
  };
  EXPECT_EXIT(end(), testing::KilledBySignal(SIGTERM), "");
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(ProcessDeathTest, LeavesAFinishedFile) {
  auto end = [&] {
    process_prepare("program", nullptr);
    process_writes(path.c_str());
    process_writes(nullptr);
    raise(SIGINT);
  };
  EXPECT_EXIT(end(), testing::KilledBySignal(SIGINT), "");
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST_F(ProcessDeathTest, NoFileIsTakenForAStreamThatWasClosed) {
  auto open_one = [&] {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    process_prepare("program", nullptr);
    char byte = 0;
    const bool ok = open(path.c_str(), O_RDWR) > STDERR_FILENO &&
                    read(STDIN_FILENO, &byte, 1) < 0 && errno == EBADF &&
                    write(STDOUT_FILENO, &byte, 1) < 0 && errno == EBADF;
    _exit(ok ? 7 : 8);
  };
  EXPECT_EXIT(open_one(), testing::ExitedWithCode(7), "");
}

TEST_F(ProcessDeathTest, WritingTooMuchOrToNobodyFails) {
  auto overflow = [&] {
    process_prepare("program", nullptr);
    int ends[2];
    const rlimit limit = {4096, 4096};
    if (pipe(ends) != 0 || close(ends[0]) != 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(3);
    const bool ok = write(ends[1], "x", 1) < 0 && errno == EPIPE &&
                    pwrite(descriptor, "x", 1, 8192) < 0 && errno == EFBIG;
    _exit(ok ? 7 : 8);
  };
  EXPECT_EXIT(overflow(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace izh
