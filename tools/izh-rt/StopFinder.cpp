// The text that is held is never longer than a piece and the longest stop
// string, so a plain search does.

#include "tools/izh-rt/StopFinder.h"

#include <algorithm>

namespace izh::rt {

// The longest tail of the held text that a stop string begins with.
size_t StopFinder::heldBack() const {
  size_t keep = 0;
  for (const std::string &stop : stops)
    for (size_t length = std::min(stop.size(), held.size()); length > keep; --length)
      if (held.compare(held.size() - length, length, stop, 0, length) == 0)
        keep = length;
  return keep;
}

std::string StopFinder::feed(const std::string &piece, bool *stopped) {
  held += piece;
  size_t end = std::string::npos;
  for (const std::string &stop : stops)
    end = std::min(end, held.find(stop));
  *stopped = end != std::string::npos;
  if (!*stopped)
    end = held.size() - heldBack();
  std::string shown = held.substr(0, end);
  held.erase(0, *stopped ? held.size() : end);
  return shown;
}

std::string StopFinder::finish() {
  std::string rest;
  rest.swap(held);
  return rest;
}

} // namespace izh::rt
