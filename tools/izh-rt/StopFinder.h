// Looks for stop strings in a text that arrives in pieces: what may be the
// beginning of one is held back until more is known.

#pragma once

#include <string>
#include <vector>

namespace izh::rt {

class StopFinder {
public:
  explicit StopFinder(std::vector<std::string> stops) : stops(std::move(stops)) {}

  // Appends a piece. Returns what may be shown now. `*stopped` is set when a
  // stop string was found; it and what follows are never shown.
  std::string feed(const std::string &piece, bool *stopped);
  // What was held back, at the end of the text.
  std::string finish();

private:
  size_t heldBack() const;

  std::vector<std::string> stops;
  std::string held;
};

} // namespace izh::rt
