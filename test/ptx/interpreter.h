// Runs the part of PTX that izhc writes, on the memory of this process: for
// tests of GPU code on machines without a GPU. Threads of a block run one after
// the other from one meeting point (barrier, shuffle) to the next, so that
// values that only a meeting point makes visible are seen, and a missing one
// shows as a wrong number in one of the two orders that blocks take in turn.
// A kernel that waits for those before it (griddepcontrol.wait) must do so in every
// thread, and before it touches what others may write.
// Asynchronous copies of a thread are done when it waits for them, and no sooner.
// Bulk copies are done when a thread waits at their gate (an mbarrier that one thread
// arrives at), and no sooner.
// Knows nothing of caches, of memory ordering between blocks, or of time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace izh::ptx {

// What kernels may read and write.
class Memory {
public:
  virtual ~Memory() = default;
  // Whether the `size` bytes at `address` belong to one block.
  virtual bool contains(uint64_t address, uint64_t size) const = 0;
};

struct Kernel;
size_t argument_count(const Kernel &kernel);
// Of memory that a block shares, what the kernel declares itself.
uint64_t shared_bytes(const Kernel &kernel);

class Module {
public:
  // Null, with a sentence in `error`, for what isn't understood.
  static std::unique_ptr<Module> parse(std::string_view text, std::string *error);
  ~Module();

  // Null if there is none.
  const Kernel *find(std::string_view name) const;
  // False, with a sentence in `error`, if a thread touches memory that isn't
  // its own or threads wait for each other forever.
  // `shared_bytes`: of the memory that is declared extern, for each block.
  bool launch(const Kernel &kernel, uint32_t blocks, uint32_t threads,
              const std::vector<uint64_t> &arguments, const Memory &memory, std::string *error,
              uint32_t shared_bytes = 0) const;

  struct Content;

private:
  explicit Module(std::unique_ptr<Content> content);
  std::unique_ptr<Content> content_;
};

} // namespace izh::ptx
