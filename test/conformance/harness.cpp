// Maps a target's code as the runtime does: copied to fresh pages, then made
// executable.

#include "test/conformance/harness.h"
#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/conformance/remote.h"
#include "test/conformance/tile_model.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <chrono>
#include <cstdlib>
#include <map>
#include <sys/mman.h>

namespace izhc::conformance {

namespace {

struct Feature {
  unsigned bit;
  const char *name, *arch;
};
const Feature features[] = {
#define IZH_CPU_FEATURE(bit, name, arch) {bit, #name, #arch},
#include "runtime/schema/cpu_features.def"
};

// LLVM puts dots and dashes into some names: sse4.1, amx-tile.
std::string plain(llvm::StringRef name) {
  std::string result;
  for (char c : name)
    if (llvm::isAlnum(c))
      result.push_back(c);
  return result;
}

uint64_t hostFeatures() {
  std::string arch = llvm::Triple(llvm::sys::getProcessTriple()).getArchName().str();
  uint64_t bits = 0;
  for (const auto &entry : llvm::sys::getHostCPUFeatures())
    for (const Feature &feature : features)
      if (entry.second && arch == feature.arch && plain(entry.first()) == feature.name)
        bits |= uint64_t(1) << feature.bit;
  return tilesPermitted() ? bits : bits & ~modelledFeatures();
}

// Features that the code of a target of this family requires in vain.
uint64_t missingFeatures(const Target &target) {
  static const uint64_t host = hostFeatures();
  return target.requiredFeatures() & ~host;
}

constexpr size_t kGuard = 256;
constexpr uint8_t kGuardByte = 0xA5;

} // namespace

static bool isOfThisFamily(llvm::StringRef arch) {
  return arch == llvm::Triple(llvm::sys::getProcessTriple()).getArchName();
}

static bool isDevice(llvm::StringRef arch) { return arch == "nvptx64"; }

bool everyCase() { return std::getenv("IZH_EVERY_CASE") != nullptr; }

bool runsHere(const Target &target) {
  // Interpreting takes long, and GPUs of different age get the same arithmetic.
  if (isDevice(target.arch()))
    return target.name() == "cuda:sm_90" || everyCase();
  if (!isOfThisFamily(target.arch()))
    return hasRunner(target.arch());
  return (missingFeatures(target) & ~modelledFeatures()) == 0;
}

// Blocks of all buffers that there are, guards included, by their addresses.
static std::map<uint8_t *, size_t> &liveBlocks() {
  static std::map<uint8_t *, size_t> blocks;
  return blocks;
}

Buffer::Buffer(size_t bytes, uint8_t fill) : bytes(bytes) {
  size_t total = (bytes + 2 * kGuard + 63) / 64 * 64;
  auto *block = static_cast<uint8_t *>(std::aligned_alloc(64, total));
  std::memset(block, kGuardByte, total);
  liveBlocks()[block] = bytes + 2 * kGuard;
  start = block + kGuard;
  std::memset(start, fill, bytes);
}

Buffer::~Buffer() {
  for (size_t i = 0; i < kGuard; ++i) {
    if (start[-1 - ptrdiff_t(i)] == kGuardByte && start[bytes + i] == kGuardByte)
      continue;
    ADD_FAILURE() << "a kernel wrote " << i + 1 << " bytes outside of a buffer of " << bytes;
    break;
  }
  liveBlocks().erase(start - kGuard);
  std::free(start - kGuard);
}

mlir::MLIRContext &context() {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registry.insert<pack::PackDialect, plan::PlanDialect>();
    auto *result = new mlir::MLIRContext(registry, mlir::MLIRContext::Threading::DISABLED);
    result->loadAllAvailableDialects();
    return result;
  }();
  return *context;
}

Kernel::Kernel(Target &target, const std::string &text) { compile(target, text); }

void Kernel::compile(Target &target, const std::string &text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context());
  if (!module) {
    ADD_FAILURE() << "the test's kernel can't be parsed:\n" << text;
    return;
  }
  std::vector<std::string> order;
  for (auto kernel : module->getOps<plan::KernelOp>())
    order.push_back(kernel.getSymName().str());
  ASSERT_EQ(order.size(), 1u) << "tests compile one kernel at a time";
  // A warning says that the code is slower than it could be: see LoadOrder.h.
  mlir::ScopedDiagnosticHandler handler(&context(), [&](mlir::Diagnostic &diagnostic) {
    ADD_FAILURE() << diagnostic.str() << "\n" << text;
    return mlir::success();
  });
  ASSERT_TRUE(succeeded(target.lowerKernels(*module))) << text;
  if (isOfThisFamily(target.arch()) && missingFeatures(target))
    modelTiles(*module);
  auto blob = target.emit(*module, order);
  ASSERT_TRUE(succeeded(blob)) << text;
  arch = target.arch().str();
  bytes = blob->bytes.size();
  if (isDevice(arch))
    return loadDevice(*blob);
  mapped = (bytes + 4095) / 4096 * 4096;
  void *pages = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memcpy(pages, blob->bytes.data(), bytes);
  ASSERT_EQ(mprotect(pages, mapped, PROT_READ | PROT_EXEC), 0);
  __builtin___clear_cache(static_cast<char *>(pages), static_cast<char *>(pages) + mapped);
  code = pages;
  entry = blob->entries.front();
}

void Kernel::loadDevice(const CodeBlob &blob) {
  izh::schema::DeviceCode code;
  izh::schema::DeviceKernel kernel;
  std::memcpy(&code, blob.bytes.data(), sizeof(code));
  std::memcpy(&kernel, blob.bytes.data() + blob.entries.front(), sizeof(kernel));
  auto text = reinterpret_cast<const char *>(blob.bytes.data());
  std::string error;
  device = izh::ptx::Module::parse({text + code.text_offset, code.text_size - 1}, &error);
  ASSERT_TRUE(device) << error;
  deviceKernel = device->find(text + kernel.name_offset);
  ASSERT_TRUE(deviceKernel);
  threads = kernel.threads;
  sharedBytes = kernel.shared_bytes;
  scratchOfRow = code.row_scratch_bytes;
  for (uint32_t i = 0; i < kernel.forms; ++i) {
    Form form;
    std::memcpy(&form.record,
                blob.bytes.data() + blob.entries.front() + sizeof(kernel) + i * sizeof(form.record),
                sizeof(form.record));
    form.kernel = device->find(text + form.record.name_offset);
    ASSERT_TRUE(form.kernel);
    form.then =
        form.record.then_threads ? device->find(text + form.record.then_name_offset) : nullptr;
    ASSERT_EQ(form.then != nullptr, form.record.then_threads != 0);
    forms.push_back(form);
  }
}

namespace {
// All buffers and what the launch itself brings.
struct Buffers : izh::ptx::Memory {
  bool contains(uint64_t address, uint64_t size) const override {
    auto *begin = reinterpret_cast<uint8_t *>(address);
    auto block = liveBlocks().upper_bound(begin);
    if (block == liveBlocks().begin())
      return false;
    --block;
    return size <= block->second && size_t(begin - block->first) <= block->second - size;
  }
};
} // namespace

void Kernel::runOnDevice(const std::vector<void *> &bindings, Step step, int64_t begin, int64_t end,
                         bool all) const {
  auto [kernel, count, shared] = std::tuple(deviceKernel, threads, sharedBytes);
  const Form *chosen = nullptr;
  for (const Form &form : forms) {
    uint64_t units = izh::schema::form_units(form.record, step.tokens, step.outputs, step.tiles);
    if (!all || units == 0)
      break;
    std::tie(kernel, count, shared) =
        std::tuple(form.kernel, form.record.threads, form.record.shared_bytes);
    end = int64_t(units);
    chosen = &form;
  }
  Buffer scratch(scratchOfRow * step.tokens, 0xEE);
  Array<int64_t> params(std::vector<int64_t>{step.tokens, step.outputs, step.tiles, 0, 0,
                                             reinterpret_cast<int64_t>(scratch.data())});
  std::vector<uint64_t> arguments;
  for (void *binding : bindings)
    arguments.push_back(reinterpret_cast<uint64_t>(binding));
  arguments.push_back(reinterpret_cast<uint64_t>(params.data()));
  arguments.push_back(begin);
  arguments.push_back(end);
  std::string error;
  EXPECT_TRUE(
      device->launch(*kernel, uint32_t(end - begin), count, arguments, Buffers(), &error, shared))
      << error;
  if (!chosen || !chosen->then)
    return;
  arguments.back() = chosen->record.then_units ? chosen->record.then_units : step.tokens;
  EXPECT_TRUE(device->launch(*chosen->then, uint32_t(arguments.back()), chosen->record.then_threads,
                             arguments, Buffers(), &error))
      << error;
}

Kernel::~Kernel() {
  if (code)
    munmap(code, mapped);
}

void Kernel::run(std::vector<void *> bindings, Step step, int64_t begin, int64_t end,
                 bool all) const {
  if (isDevice(arch))
    return runOnDevice(bindings, step, begin, end, all);
  if (!isOfThisFamily(arch))
    return runElsewhere(bindings, step, begin, end);
  using Function = void (*)(void *const *, const int64_t *, int64_t, int64_t);
  auto function = reinterpret_cast<Function>(static_cast<uint8_t *>(code) + entry);
  int64_t params[3] = {step.tokens, step.outputs, step.tiles};
  function(bindings.data(), params, begin, end);
  EXPECT_FALSE(tilesConfigured()) << "a kernel left tiles in use";
}

void Kernel::runElsewhere(llvm::ArrayRef<void *> bindings, Step step, int64_t begin,
                          int64_t end) const {
  RemoteCall call = {{static_cast<const uint8_t *>(code), bytes},
                     entry,
                     {step.tokens, step.outputs, step.tiles},
                     begin,
                     end,
                     {},
                     {}};
  for (void *binding : bindings) {
    auto *address = static_cast<uint8_t *>(binding);
    auto block = liveBlocks().upper_bound(address);
    ASSERT_TRUE(block != liveBlocks().begin() &&
                std::prev(block)->second > size_t(address - std::prev(block)->first))
        << "a kernel's arguments have to lie in a Buffer";
    --block;
    auto known = llvm::find_if(call.blocks, [&](auto one) { return one.data() == block->first; });
    call.bindings.emplace_back(known - call.blocks.begin(), address - block->first);
    if (known == call.blocks.end())
      call.blocks.push_back({block->first, block->second});
  }
  EXPECT_TRUE(runRemotely(arch, call)) << "the kernel did not come back";
}

static const TargetList &targets() {
  static const TargetList list = allTargets();
  return list;
}

void TargetTest::SetUp() {
  if (!runsHere(target()))
    GTEST_SKIP() << "this machine can't run code for " << target().name().str();
}

Target &TargetTest::target() { return *targets()[GetParam()]; }

std::vector<int> targetIndices() {
  std::vector<int> indices(targets().size());
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = int(i);
  return indices;
}

std::string targetName(const testing::TestParamInfo<int> &info) {
  std::string name = targets()[info.param]->name().str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  return name;
}

// The generator of Steele, Lea and Flood (splitmix64).
uint32_t Random::bits() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return uint32_t((z ^ (z >> 31)) >> 32);
}

std::vector<float> Random::floats(size_t count, float scale) {
  std::vector<float> result(count);
  for (float &value : result)
    value = scale * next();
  return result;
}

std::string fill(std::string text, std::vector<std::pair<std::string, std::string>> values) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      result.push_back(text[i++]);
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && llvm::isAlpha(text[end]))
      ++end;
    std::string name = text.substr(i + 1, end - i - 1);
    bool found = false;
    for (const auto &[key, value] : values)
      if (key == name) {
        result += value;
        found = true;
      }
    EXPECT_TRUE(found) << "no value for $" << name;
    i = end;
  }
  return result;
}

double fastest(int repeats, const std::function<void()> &call) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    call();
    auto end = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double, std::nano>(end - start).count());
  }
  return best;
}

} // namespace izhc::conformance
