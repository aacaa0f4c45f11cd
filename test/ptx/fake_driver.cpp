// A libcuda.so.1 for tests on machines without a GPU: memory of the device is
// memory of the process, kernels run in the interpreter when they are launched.
// What it pretends is chosen by the environment:
//   IZH_FAKE_GPUS=1  IZH_FAKE_CAPABILITY=90  IZH_FAKE_VERSION=13000
//   IZH_FAKE_SHARED=KIB (of a block)  IZH_FAKE_MEMORY=BYTES (of a GPU)
//   IZH_FAKE_FAIL=FUNCTION:CALL[:RESULT], the number of a call that fails, counted from 1
//   IZH_FAKE_TRACE=FILE, a line a call

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "test/ptx/interpreter.h"

namespace {

using izh::ptx::Kernel;
using izh::ptx::Module;
using Result = int;

constexpr Result kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101,
                 kBadCode = 218, kNotFound = 500, kLaunchFailed = 719;

uint64_t number(const char *name, uint64_t otherwise) {
  const char *text = getenv(name);
  return text ? strtoull(text, nullptr, 0) : otherwise;
}

struct Blocks : izh::ptx::Memory {
  std::map<uint64_t, uint64_t> sizes;
  uint64_t used = 0;
  mutable uint64_t last = 0, last_size = 0;

  bool contains(uint64_t address, uint64_t size) const override {
    if (address - last < last_size && size <= last_size - (address - last))
      return true;
    auto block = sizes.upper_bound(address);
    if (block == sizes.begin())
      return false;
    --block;
    if (address - block->first >= block->second || size > block->second - (address - block->first))
      return false;
    last = block->first;
    last_size = block->second;
    return true;
  }
};

struct LoadedModule {
  std::unique_ptr<Module> module;
};
struct LoadedFunction {
  const Module *module;
  const Kernel *kernel;
  size_t arguments;
  // The most that a launch may bring of memory that a block shares, where that was set.
  std::optional<unsigned> most_shared = {};

  unsigned dynamic_shared() const {
    constexpr uint64_t both = 48 << 10;
    if (most_shared)
      return *most_shared;
    return static_cast<unsigned>(both - std::min(both, izh::ptx::shared_bytes(*kernel)));
  }
};
struct Launch {
  LoadedFunction *function;
  uint32_t blocks, threads, shared_bytes;
  std::vector<uint64_t> arguments;
};

// A launch, or a copy to the device where there is no function.
struct Node {
  Launch launch;
  uint64_t to;
  const void *from;
  size_t bytes;
};
using Graph = std::vector<Node>;

Blocks device, pinned;
Graph *recording = nullptr;

// Counts the call, and says whether it is the one that is to fail.
Result enter(const char *function) {
  if (const char *path = getenv("IZH_FAKE_TRACE")) {
    if (FILE *file = fopen(path, "a")) {
      fprintf(file, "%s\n", function);
      fclose(file);
    }
  }
  const char *wanted = getenv("IZH_FAKE_FAIL");
  if (!wanted)
    return 0;
  const char *colon = strchr(wanted, ':');
  if (!colon || strncmp(wanted, function, static_cast<size_t>(colon - wanted)) != 0 ||
      function[colon - wanted] != 0)
    return 0;
  static uint64_t calls = 0;
  char *end = nullptr;
  if (++calls != strtoull(colon + 1, &end, 10))
    return 0;
  return *end == ':' ? atoi(end + 1) : kLaunchFailed;
}

#define ENTER()                                                                                    \
  do {                                                                                             \
    if (const Result failed = enter(__func__))                                                     \
      return failed;                                                                               \
  } while (0)

Result allocate(Blocks &blocks, size_t bytes, uint64_t limit, uint64_t *out) {
  if (bytes == 0)
    return kInvalidValue;
  if (bytes > limit - blocks.used)
    return kOutOfMemory;
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory)
    return kOutOfMemory;
  // What nobody has written is no zero.
  memset(memory, 0xE5, bytes);
  *out = reinterpret_cast<uint64_t>(memory);
  blocks.sizes[*out] = bytes;
  blocks.used += bytes;
  return 0;
}

Result release(Blocks &blocks, uint64_t address) {
  auto block = blocks.sizes.find(address);
  if (block == blocks.sizes.end())
    return kInvalidValue;
  blocks.used -= block->second;
  blocks.last_size = 0;
  blocks.sizes.erase(block);
  free(reinterpret_cast<void *>(address));
  return 0;
}

uint64_t memory_bytes() { return number("IZH_FAKE_MEMORY", uint64_t{4} << 30); }

// Of a block, in KiB: IZH_FAKE_SHARED.
uint64_t most_shared() { return number("IZH_FAKE_SHARED", 227) << 10; }

Result run(const Launch &launch) {
  std::string error;
  if (launch.function->module->launch(*launch.function->kernel, launch.blocks, launch.threads,
                                      launch.arguments, device, &error, launch.shared_bytes))
    return 0;
  fprintf(stderr, "fake driver: %s\n", error.c_str());
  return kLaunchFailed;
}

// As cuda.h lays them out.
struct LaunchAttribute {
  int kind, padding, value[16];
};
struct LaunchConfig {
  unsigned blocks[3], threads[3], shared_bytes;
  void *stream;
  LaunchAttribute *attributes;
  unsigned attribute_count;
};

struct Size {
  unsigned x, y, z;
};

Result launch(void *function, Size blocks, Size threads, unsigned shared_bytes, void **arguments) {
  if (blocks.x == 0 || blocks.y != 1 || blocks.z != 1 || threads.y != 1 || threads.z != 1 ||
      threads.x == 0 || threads.x > 1024)
    return kInvalidValue;
  auto *known = static_cast<LoadedFunction *>(function);
  if (shared_bytes > known->dynamic_shared())
    return kInvalidValue;
  Launch one = {known, blocks.x, threads.x, shared_bytes, {}};
  for (size_t i = 0; i < one.function->arguments; ++i)
    one.arguments.push_back(*static_cast<uint64_t *>(arguments[i]));
  if (!recording)
    return run(one);
  recording->push_back({std::move(one), 0, nullptr, 0});
  return 0;
}

} // namespace

extern "C" {

Result cuInit(unsigned) {
  ENTER();
  return number("IZH_FAKE_GPUS", 1) ? 0 : kNoDevice;
}

Result cuDriverGetVersion(int *version) {
  *version = static_cast<int>(number("IZH_FAKE_VERSION", 13000));
  return 0;
}

Result cuGetErrorName(Result result, const char **name) {
  *name = result == kOutOfMemory    ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
          : result == kBadCode      ? "CUDA_ERROR_INVALID_PTX"
                                    : "CUDA_ERROR_OF_THE_FAKE";
  return 0;
}

Result cuGetErrorString(Result result, const char **text) {
  *text = result == kNoDevice ? "no CUDA-capable device is detected" : "the fake driver fails";
  return 0;
}

Result cuDeviceGetCount(int *count) {
  ENTER();
  *count = static_cast<int>(number("IZH_FAKE_GPUS", 1));
  return 0;
}

Result cuDeviceGet(int *device_number, int index) {
  ENTER();
  if (index < 0 || static_cast<uint64_t>(index) >= number("IZH_FAKE_GPUS", 1))
    return kInvalidDevice;
  *device_number = index;
  return 0;
}

Result cuDeviceGetName(char *name, int bytes, int) {
  ENTER();
  snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
  return 0;
}

Result cuDeviceTotalMem_v2(size_t *bytes, int) {
  ENTER();
  *bytes = memory_bytes();
  return 0;
}

Result cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER();
  const int capability = static_cast<int>(number("IZH_FAKE_CAPABILITY", 90));
  if (attribute == 16) {
    // Few, so that blocks of some kernels have to take turns.
    *value = 1;
    return 0;
  }
  if (attribute == 97) {
    *value = static_cast<int>(most_shared());
    return 0;
  }
  if (attribute != 75 && attribute != 76)
    return kInvalidValue;
  *value = attribute == 75 ? capability / 10 : capability % 10;
  return 0;
}

Result cuDevicePrimaryCtxRetain(void **context, int) {
  ENTER();
  *context = &device;
  return 0;
}

Result cuDevicePrimaryCtxRelease_v2(int) {
  ENTER();
  // Leaks are failures of whoever reads this.
  if (!device.sizes.empty() || !pinned.sizes.empty())
    fprintf(stderr, "fake driver: %zu blocks of the device and %zu of the host were not freed\n",
            device.sizes.size(), pinned.sizes.size());
  return 0;
}

Result cuCtxSetCurrent(void *context) {
  ENTER();
  return context == &device ? 0 : kInvalidValue;
}

Result cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER();
  *total = memory_bytes();
  *free_bytes = *total - device.used;
  return 0;
}

Result cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER();
  return allocate(device, bytes, memory_bytes(), address);
}

Result cuMemFree_v2(uint64_t address) {
  ENTER();
  return release(device, address);
}

Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  ENTER();
  uint64_t address = 0;
  const Result result = allocate(pinned, bytes, UINT64_MAX, &address);
  if (result == 0)
    *memory = reinterpret_cast<void *>(address);
  return result;
}

Result cuMemFreeHost(void *memory) {
  ENTER();
  return release(pinned, reinterpret_cast<uint64_t>(memory));
}

Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *) {
  ENTER();
  if (!device.contains(to, bytes) || !pinned.contains(reinterpret_cast<uint64_t>(from), bytes))
    return kInvalidValue;
  // What it finds then is what the graph copies.
  if (recording)
    recording->push_back({{}, to, from, bytes});
  else
    memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}

Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *) {
  ENTER();
  if (!device.contains(from, bytes) || !pinned.contains(reinterpret_cast<uint64_t>(to), bytes))
    return kInvalidValue;
  memcpy(to, reinterpret_cast<void *>(from), bytes);
  return 0;
}

Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *) {
  ENTER();
  if (!device.contains(from, bytes) || !device.contains(to, bytes))
    return kInvalidValue;
  memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return 0;
}

Result cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *) {
  ENTER();
  if (!device.contains(to, bytes))
    return kInvalidValue;
  memset(reinterpret_cast<void *>(to), value, bytes);
  return 0;
}

Result cuStreamCreate(void **stream, unsigned) {
  ENTER();
  *stream = &pinned;
  return 0;
}

Result cuStreamDestroy_v2(void *) {
  ENTER();
  return 0;
}

Result cuStreamSynchronize(void *) {
  ENTER();
  return 0;
}

Result cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                          void **values) {
  ENTER();
  std::string error;
  auto parsed = Module::parse(static_cast<const char *>(image), &error);
  if (parsed) {
    *module = new LoadedModule{std::move(parsed)};
    return 0;
  }
  for (unsigned i = 0; i + 1 < count; ++i)
    if (options[i] == 5 && options[i + 1] == 6)
      snprintf(static_cast<char *>(values[i]), reinterpret_cast<size_t>(values[i + 1]), "%s",
               error.c_str());
  return kBadCode;
}

Result cuModuleUnload(void *module) {
  ENTER();
  delete static_cast<LoadedModule *>(module);
  return 0;
}

Result cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER();
  const auto *loaded = static_cast<LoadedModule *>(module);
  const Kernel *kernel = loaded->module->find(name);
  if (!kernel)
    return kNotFound;
  static std::map<const Kernel *, LoadedFunction> functions;
  functions[kernel] = {loaded->module.get(), kernel, izh::ptx::argument_count(*kernel)};
  *function = &functions[kernel];
  return 0;
}

Result cuFuncSetAttribute(void *function, int attribute, int value) {
  ENTER();
  // The most shared memory of a launch, the only one that is known.
  if (attribute != 8 || value < 0 || static_cast<uint64_t>(value) > most_shared())
    return kInvalidValue;
  static_cast<LoadedFunction *>(function)->most_shared = static_cast<unsigned>(value);
  return 0;
}

Result cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty,
                      unsigned tz, unsigned shared_bytes, void *, void **arguments, void **) {
  ENTER();
  return launch(function, {x, y, z}, {tx, ty, tz}, shared_bytes, arguments);
}

Result cuLaunchKernelEx(const LaunchConfig *config, void *function, void **arguments, void **) {
  ENTER();
  // Programmatic launch, the only attribute that is known.
  const bool known = config->attribute_count == 1 && config->attributes->kind == 6 &&
                     config->attributes->value[0] == 1;
  if (!known)
    return kInvalidValue;
  return launch(function, {config->blocks[0], config->blocks[1], config->blocks[2]},
                {config->threads[0], config->threads[1], config->threads[2]}, config->shared_bytes,
                arguments);
}

Result cuStreamBeginCapture_v2(void *, int) {
  ENTER();
  if (recording)
    return kInvalidValue;
  recording = new Graph();
  return 0;
}

Result cuStreamEndCapture(void *, void **graph) {
  *graph = recording;
  recording = nullptr;
  ENTER();
  return *graph ? 0 : kInvalidValue;
}

Result cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long) {
  ENTER();
  *exec = new Graph(*static_cast<Graph *>(graph));
  return 0;
}

Result cuGraphLaunch(void *exec, void *) {
  ENTER();
  for (const Node &node : *static_cast<Graph *>(exec)) {
    if (!node.launch.function)
      memcpy(reinterpret_cast<void *>(node.to), node.from, node.bytes);
    else if (const Result result = run(node.launch))
      return result;
  }
  return 0;
}

Result cuGraphExecDestroy(void *exec) {
  ENTER();
  delete static_cast<Graph *>(exec);
  return 0;
}

Result cuGraphDestroy(void *graph) {
  ENTER();
  delete static_cast<Graph *>(graph);
  return 0;
}

} // extern "C"
