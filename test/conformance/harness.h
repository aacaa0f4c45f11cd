// Compiles one kernel for one target and runs it in this process, or under
// emulation (remote.h, test/ptx). Tests give
// the kernel as text and compare buffers with references of their own; the
// targets are those of the registry, so a new one is tested by being there.

#pragma once

#include "compiler/target/Target.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/schema/device_code.h"
#include "test/ptx/interpreter.h"
#include "gtest/gtest.h"
#include <cstring>
#include <functional>

namespace izhc::conformance {

// Whether this machine's processor has what the target's code requires (or all
// but what tile_model.h stands in for), or a runner for that machine family is
// given.
bool runsHere(const Target &target);

// Bytes at a multiple of 64, between guards that the destructor checks: a
// kernel that writes outside of its buffer fails the test.
class Buffer {
public:
  explicit Buffer(size_t bytes, uint8_t fill = 0);
  ~Buffer();
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  size_t size() const { return bytes; }
  uint8_t *data() { return start; }
  template <typename T> T *as() { return reinterpret_cast<T *>(start); }

private:
  size_t bytes;
  uint8_t *start;
};

// A buffer with the elements of an array.
template <typename T> class Array : public Buffer {
public:
  explicit Array(size_t count, uint8_t fill = 0) : Buffer(count * sizeof(T), fill), count(count) {}
  Array(const std::vector<T> &values) : Array(values.size()) {
    std::memcpy(data(), values.data(), values.size() * sizeof(T));
  }
  T &operator[](size_t i) { return as<T>()[i]; }
  size_t count;
};

// Executable code of a module's only kernel.
class Kernel {
public:
  // `text` is a module with one plan.kernel. Reports a test failure and leaves
  // an empty kernel if the target can't compile it.
  Kernel(Target &target, const std::string &text);
  ~Kernel();
  Kernel(const Kernel &) = delete;

  explicit operator bool() const { return code != nullptr || device != nullptr; }
  size_t codeBytes() const { return bytes; }
  bool hasForms() const { return !forms.empty(); }

  struct Step {
    int64_t tokens = 0, outputs = 0, tiles = 0;
  };
  // Computes units begin..end; bindings in the order of the kernel's arguments,
  // each a place in a Buffer. `all`: these are all units, which a device's form
  // for that many rows may compute in its way.
  void run(std::vector<void *> bindings, Step step, int64_t begin, int64_t end,
           bool all = false) const;

private:
  void compile(Target &target, const std::string &text);
  void loadDevice(const CodeBlob &blob);
  void runOnDevice(const std::vector<void *> &bindings, Step step, int64_t begin, int64_t end,
                   bool all) const;
  void runElsewhere(llvm::ArrayRef<void *> bindings, Step step, int64_t begin, int64_t end) const;

  std::string arch;
  void *code = nullptr;
  size_t bytes = 0, mapped = 0;
  uint32_t entry = 0;
  // GPU code, its kernel, how many threads a block of it has, and what its launches bring
  // of memory that a block shares.
  std::unique_ptr<izh::ptx::Module> device;
  const izh::ptx::Kernel *deviceKernel = nullptr;
  uint32_t threads = 0, sharedBytes = 0;
  struct Form {
    izh::schema::DeviceForm record;
    const izh::ptx::Kernel *kernel;
    const izh::ptx::Kernel *then; // null: nothing follows
  };
  std::vector<Form> forms;
  uint64_t scratchOfRow = 0;
};

// The context that kernels are parsed in, with the dialects that they use.
mlir::MLIRContext &context();

// A fixture whose parameter is the index of a target in allTargets(). Skips
// targets that this machine can't run.
class TargetTest : public testing::TestWithParam<int> {
protected:
  void SetUp() override;
  Target &target();
};
// Whether IZH_EVERY_CASE asks for what usual runs leave out, as being much the
// same as what they do.
bool everyCase();
std::vector<int> targetIndices();
std::string targetName(const testing::TestParamInfo<int> &info);

#define IZH_FOR_EACH_TARGET(FIXTURE)                                                               \
  INSTANTIATE_TEST_SUITE_P(, FIXTURE, testing::ValuesIn(izhc::conformance::targetIndices()),       \
                           izhc::conformance::targetName)

// Numbers for inputs: uniform in -1..1, the same on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 2 + 1) {}
  uint32_t bits();
  float next() { return int32_t(bits()) * 0x1p-31f; }
  uint32_t below(uint32_t limit) { return bits() % limit; }
  std::vector<float> floats(size_t count, float scale = 1.0f);

private:
  uint64_t state;
};

// Replaces each `$name` of `text` by its value; names end at a non-word character.
std::string fill(std::string text, std::vector<std::pair<std::string, std::string>> values);
inline std::string number(int64_t value) { return std::to_string(value); }

// The shortest time of one call, in nanoseconds, over `repeats` calls.
double fastest(int repeats, const std::function<void()> &call);

} // namespace izhc::conformance
