// Gates of bulk copies (mbarriers that one thread arrives at in a round), of the block
// that runs.

#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace izh::ptx {

// Functions give what is wrong, or null.
class Gates {
public:
  const char *make(uint64_t at, uint64_t arrivals) {
    if (at % 8 != 0 || arrivals != 1)
      return "no gate that one thread arrives at";
    return all_.emplace(at, Gate()).second ? nullptr : "a gate that there is";
  }

  const char *expect(uint64_t at, uint64_t bytes) {
    Gate *gate = find(at);
    if (!gate || gate->arrived)
      return gate ? "a second arrival in a round" : kMissing;
    gate->arrived = true;
    gate->missing += static_cast<int64_t>(bytes);
    return nullptr;
  }

  // `to` and `from` as the program has them; memory that is read is the process's.
  const char *copy(uint64_t at, uint8_t *target, uint64_t to, uint64_t from, uint64_t bytes) {
    Gate *gate = find(at);
    if (!gate)
      return kMissing;
    if (to % 16 != 0 || from % 16 != 0 || bytes % 16 != 0 || bytes == 0)
      return "a copy that is not aligned";
    gate->copies.push_back({target, reinterpret_cast<const uint8_t *>(from), bytes});
    return nullptr;
  }

  // Whether the round of that parity has ended. Copies are done now, and no sooner.
  const char *await(uint64_t at, uint64_t parity, bool *passed) {
    Gate *gate = find(at);
    if (!gate)
      return kMissing;
    for (const Copy &each : gate->copies) {
      memcpy(each.to, each.from, each.bytes);
      gate->missing -= static_cast<int64_t>(each.bytes);
    }
    gate->copies.clear();
    if (gate->arrived && gate->missing == 0) {
      gate->arrived = false;
      ++gate->rounds;
    }
    *passed = gate->rounds % 2 != parity;
    return nullptr;
  }

private:
  struct Copy {
    uint8_t *to;
    const uint8_t *from;
    uint64_t bytes;
  };
  struct Gate {
    std::vector<Copy> copies; // on their way
    bool arrived = false;     // in this round
    int64_t missing = 0;      // bytes
    uint64_t rounds = 0;      // that have ended
  };
  static constexpr const char *kMissing = "a gate that was not made";

  Gate *find(uint64_t at) {
    auto found = all_.find(at);
    return found == all_.end() ? nullptr : &found->second;
  }

  std::map<uint64_t, Gate> all_; // by their addresses
};

} // namespace izh::ptx
