// Lines of /proc/self/cgroup are "number:controllers:/folder"; version 2 has
// one line, without controllers.

#include "runtime/platform/control_group.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "runtime/platform/small_file.h"

namespace izh {
namespace {

constexpr size_t kMaxFolder = 640;

// True if `name` is one of the comma-separated controllers.
bool lists(const char* list, size_t length, const char* name) {
  for (const char* end = list + length; list < end;) {
    const char* comma =
        static_cast<const char*>(memchr(list, ',', static_cast<size_t>(end - list)));
    const char* stop = comma ? comma : end;
    const size_t count = static_cast<size_t>(stop - list);
    if (count == strlen(name) && memcmp(list, name, count) == 0) return true;
    list = stop + 1;
  }
  return false;
}

}  // namespace

void visit_control_groups(const char* controller,
                          void (*visit)(void* argument, const ControlGroup& group),
                          void* argument) {
  char text[4096];
  if (!read_small_file("/proc/self/cgroup", text, sizeof(text))) return;
  char* rest = nullptr;
  for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    char* first = strchr(line, ':');
    char* second = first ? strchr(first + 1, ':') : nullptr;
    if (!second || strlen(second + 1) > kMaxFolder - 80) continue;
    const bool unified = second == first + 1;
    if (!unified && !lists(first + 1, static_cast<size_t>(second - first - 1), controller)) {
      continue;
    }
    char folder[kMaxFolder];
    const char* root = "/sys/fs/cgroup";
    snprintf(folder, sizeof(folder), "%s%s%s%s", root, unified ? "" : "/",
             unified ? "" : controller, second + 1);
    const size_t shortest = strlen(root) + (unified ? 0 : 1 + strlen(controller));
    for (;;) {
      visit(argument, {folder, unified});
      char* slash = strrchr(folder, '/');
      if (!slash || static_cast<size_t>(slash - folder) < shortest) break;
      *slash = 0;
    }
  }
}

bool read_group_file(const ControlGroup& group, const char* name, char* out, size_t capacity) {
  char path[kMaxFolder + 64];
  snprintf(path, sizeof(path), "%s/%s", group.folder, name);
  return read_small_file(path, out, capacity);
}

}  // namespace izh
