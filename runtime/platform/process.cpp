// Signal handlers call nothing that isn't async-signal-safe: write, unlink,
// signal, raise, _exit.

#include "runtime/platform/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstring>
#include <initializer_list>

namespace izh {
namespace {

const char* program_name = "";
void (*call_before_exit)() = nullptr;
char read_path[PATH_MAX];
char written_path[PATH_MAX];

void copy_path(const char* path, char* out) {
  // Empty while it changes: a handler must not see half a name.
  *static_cast<volatile char*>(out) = 0;
  if (!path || strlen(path) >= PATH_MAX) return;
  char first = path[0];
  if (first) memcpy(out + 1, path + 1, strlen(path));
  *static_cast<volatile char*>(out) = first;
}

void print(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written;
}

void remove_written() {
  if (written_path[0]) unlink(written_path);
}

void on_lost_bytes(int) {
  remove_written();
  if (call_before_exit) call_before_exit();
  print(program_name);
  print(": ");
  print(read_path[0] ? read_path : "a file");
  print(
      " lost bytes while it was read: it was cut or written in place, or its disk failed; "
      "to replace a file, write a new one beside it and rename that\n");
  _exit(1);
}

void on_end(int signal_number) {
  remove_written();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(signal_number, &action, nullptr);
}

void handle_unless_taken(int signal_number) {
  struct sigaction now = {};
  if (sigaction(signal_number, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    handle(signal_number, on_end);
}

}  // namespace

void process_prepare(const char* program, void (*before_exit)()) {
  program_name = program;
  call_before_exit = before_exit;
  // `open` takes the lowest free number, so that each lands in its place:
  // input that can't be read, output that can't be written.
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) < 0)
      (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  handle(SIGBUS, on_lost_bytes);
}

void process_reads(const char* path) { copy_path(path, read_path); }

void process_writes(const char* path) {
  copy_path(path, written_path);
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP}) handle_unless_taken(signal_number);
}

}  // namespace izh
