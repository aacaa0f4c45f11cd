// The other end is kernel_runner.c. One process serves all calls of a family.

#include "test/conformance/remote.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <csignal>
#include <cstdlib>
#include <memory>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace izhc::conformance {

namespace {

const char *commandOf(llvm::StringRef arch) {
  return std::getenv(("IZH_RUNNER_" + arch.upper()).c_str());
}

class Runner {
public:
  explicit Runner(const char *command) {
    // Writing to one that has ended is an error, not the end.
    std::signal(SIGPIPE, SIG_IGN);
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0)
      return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    for (int end : {in[0], in[1], out[0], out[1]})
      posix_spawn_file_actions_addclose(&actions, end);
    std::string text = std::string("exec ") + command;
    char *words[] = {const_cast<char *>("sh"), const_cast<char *>("-c"), text.data(), nullptr};
    if (posix_spawnp(&process, "sh", &actions, nullptr, words, environ) != 0)
      process = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to = in[1];
    from = out[0];
  }
  ~Runner() {
    close(to);
    close(from);
    if (process > 0)
      waitpid(process, nullptr, 0);
  }

  bool send(const void *data, size_t bytes) {
    auto *at = static_cast<const uint8_t *>(data);
    for (ssize_t n; bytes; at += n, bytes -= n)
      if ((n = write(to, at, bytes)) <= 0)
        return false;
    return true;
  }
  bool receive(void *data, size_t bytes) {
    auto *at = static_cast<uint8_t *>(data);
    for (ssize_t n; bytes; at += n, bytes -= n)
      if ((n = read(from, at, bytes)) <= 0)
        return false;
    return true;
  }
  bool sendWord(uint64_t word) { return send(&word, sizeof(word)); }

  bool call(const RemoteCall &c) {
    bool sent = true;
    for (uint64_t word : {uint64_t(c.code.size()), c.entry, uint64_t(c.params[0]),
                          uint64_t(c.params[1]), uint64_t(c.params[2]), uint64_t(c.begin),
                          uint64_t(c.end), uint64_t(c.blocks.size()), uint64_t(c.bindings.size())})
      sent = sent && sendWord(word);
    for (auto block : c.blocks)
      sent = sent && sendWord(block.size());
    for (auto [block, offset] : c.bindings)
      sent = sent && sendWord(block) && sendWord(offset);
    sent = sent && send(c.code.data(), c.code.size());
    for (auto block : c.blocks)
      sent = sent && send(block.data(), block.size());
    for (auto block : c.blocks)
      sent = sent && receive(block.data(), block.size());
    return sent;
  }

private:
  pid_t process = -1;
  int to = -1, from = -1;
};

} // namespace

bool hasRunner(llvm::StringRef arch) {
  const char *command = commandOf(arch);
  return command && *command;
}

bool runRemotely(llvm::StringRef arch, const RemoteCall &call) {
  static llvm::StringMap<std::unique_ptr<Runner>> runners;
  std::unique_ptr<Runner> &runner = runners[arch];
  if (!runner)
    runner = std::make_unique<Runner>(commandOf(arch));
  if (runner->call(call))
    return true;
  runner.reset();
  return false;
}

} // namespace izhc::conformance
