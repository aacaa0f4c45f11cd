// Asynchronous copies of a thread: done when it waits for them, and no sooner.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace izh::ptx {

class Copies {
public:
  void begin(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    copies_.push_back({to, from, bytes, groups_});
  }
  // What has begun since the last time is a group.
  void commit() { ++groups_; }
  // Does those of all groups but the last `but`.
  void await(uint64_t but) {
    size_t done = 0;
    for (; done < copies_.size() && copies_[done].group + but < groups_; ++done)
      memcpy(copies_[done].to, copies_[done].from, copies_[done].bytes);
    copies_.erase(copies_.begin(), copies_.begin() + static_cast<ptrdiff_t>(done));
  }

private:
  struct Copy {
    uint8_t *to;
    const uint8_t *from;
    uint32_t bytes;
    uint64_t group;
  };
  std::vector<Copy> copies_; // in the order of their groups
  uint64_t groups_ = 0;
};

} // namespace izh::ptx
