// Reads piece by piece: the length of a pipe is known at its end only.

#include "runtime/platform/input_text.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/status.h"

namespace izh {
namespace {

struct Input {
  const char* path;
  int file;
  // It was opened here, and doesn't wait.
  bool opened;
  bool pipe = false;
  // A terminal ends when its user says so, other devices perhaps never.
  bool device = false;
};

izh_status cannot_read(const char* path, izh_error* error) {
  return fail(error, IZH_IO, "cannot read '%s': %s", path, strerror(errno));
}

izh_status is_device(const Input& input, izh_error* error) {
  return fail(error, IZH_IO, "'%s' is a device, but a file, a pipe or - for input is needed",
              input.path);
}

izh_status no_writer(const Input& input, izh_error* error) {
  return fail(error, IZH_IO,
              "'%s' is a pipe that nothing writes to: begin to write first, or give a file or - "
              "for input",
              input.path);
}

izh_status classify(Input* input, izh_error* error) {
  struct stat facts;
  if (fstat(input->file, &facts) != 0) return cannot_read(input->path, error);
  input->pipe = S_ISFIFO(facts.st_mode);
  const bool device = S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode);
  input->device = device && isatty(input->file) != 1;
  return IZH_OK;
}

// Whether a writer was there and is gone: the pipe is empty, not idle.
bool was_written(const Input& input) {
  pollfd state = {input.file, POLLIN, 0};
  return poll(&state, 1, 0) == 1 && (state.revents & POLLHUP) != 0;
}

// For what doesn't wait by itself: all that is opened here, and standard input
// perhaps.
bool wait_for_more(const Input& input) {
  pollfd state = {input.file, POLLIN, 0};
  return poll(&state, 1, -1) >= 0 || errno == EINTR;
}

izh_status read_all(const Input& input, Array<char>* out, izh_error* error) {
  char piece[1 << 16];
  for (;;) {
    const ssize_t count = read(input.file, piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    // A pipe has nothing yet only where somebody may write to it.
    const bool later = count < 0 && errno == EAGAIN;
    if (later && input.opened && input.device) return is_device(input, error);
    if (later && wait_for_more(input)) continue;
    if (count < 0) return cannot_read(input.path, error);
    if (count == 0) {
      const bool idle = input.pipe && input.opened && out->empty() && !was_written(input);
      return idle ? no_writer(input, error) : IZH_OK;
    }
    if (input.device) return is_device(input, error);
    if (!out->append(piece, static_cast<size_t>(count))) {
      return fail(error, IZH_OUT_OF_MEMORY, "no memory is left to read '%s'", input.path);
    }
    if (out->size() > kMaxInputBytes) {
      return fail(error, IZH_LIMIT,
                  "'%s' has more than %zu MiB, which is more than can be read at once", input.path,
                  kMaxInputBytes >> 20);
    }
  }
}

}  // namespace

izh_status read_input(const char* path, Array<char>* out, izh_error* error) {
  out->clear();
  const bool standard = strcmp(path, "-") == 0;
  Input input = {path, STDIN_FILENO, !standard};
  // A named pipe must not block the open.
  if (!standard) input.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (input.file < 0) return cannot_read(path, error);
  izh_status status = classify(&input, error);
  if (status == IZH_OK) status = read_all(input, out, error);
  if (!standard) close(input.file);
  return status;
}

}  // namespace izh
