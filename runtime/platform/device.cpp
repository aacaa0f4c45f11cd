// Devices: NVIDIA GPUs by way of their driver.

#include "runtime/platform/device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/heap.h"
#include "runtime/base/status.h"
#include "runtime/platform/clock.h"
#include "runtime/platform/cpu.h"
#include "runtime/platform/cuda_driver.h"
#include "runtime/schema/device_code.h"

namespace izh {

using cuda::Result;

struct Device {
  const cuda::Driver* driver = nullptr;
  cuda::DeviceNumber number = 0;
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  DeviceInfo info = {};
  void* staging[2] = {};  // of kStagingBytes
};

namespace {

constexpr const char* kArch = "nvptx64";
constexpr size_t kStagingBytes = size_t{8} << 20;

// Fails with what the driver says of `result`.
izh_status failed(const Device& device, Result result, const char* doing, izh_error* error) {
  const char* name = nullptr;
  const char* text = nullptr;
  (void)device.driver->error_name(result, &name);
  (void)device.driver->error_text(result, &text);
  const izh_status status = result == cuda::kOutOfMemory ? IZH_OUT_OF_MEMORY : IZH_IO;
  return fail(error, status, "device %s failed while %s: %s (%s)", device.info.id, doing,
              text ? text : "unknown error", name ? name : "no name");
}

#define IZH_DRIVER(device, call, doing)                                                      \
  do {                                                                                       \
    const Result izh_driver_result = (device)->driver->call;                                 \
    if (izh_driver_result != 0) return failed(*(device), izh_driver_result, (doing), error); \
  } while (0)

// Bits for the compute capability and all below. Code for 90 and later shares memory
// as those GPUs of data centers can, some later ones of desktops not.
uint64_t features_of(int capability, int shared_bytes) {
  uint64_t bits = 0;
  for (const int least : {80, 90}) {
    char name[16];
    const int length = snprintf(name, sizeof(name), "sm_%d", least);
    if (capability < least || (least == 90 && shared_bytes < int(schema::kMaxSharedBytes)))
      continue;
    bits |= uint64_t{1} << cpu_feature_bit(name, size_t(length));
  }
  return bits;
}

izh_status describe(const cuda::Driver& driver, uint32_t index, cuda::DeviceNumber* number,
                    DeviceInfo* info, izh_error* error) {
  Device device;
  device.driver = &driver;
  *info = {};
  snprintf(info->id, sizeof(info->id), "cuda:%u", index);
  device.info = *info;
  IZH_DRIVER(&device, device_get(number, static_cast<int>(index)), "being looked for");
  IZH_DRIVER(&device, device_name(info->name, sizeof(info->name) - 1, *number), "being named");
  int major = 0, minor = 0;
  IZH_DRIVER(&device, device_attribute(&major, cuda::kComputeMajor, *number), "being described");
  IZH_DRIVER(&device, device_attribute(&minor, cuda::kComputeMinor, *number), "being described");
  int multiprocessors = 0;
  IZH_DRIVER(&device, device_attribute(&multiprocessors, cuda::kMultiprocessors, *number),
             "being described");
  info->multiprocessors = multiprocessors > 0 ? static_cast<uint32_t>(multiprocessors) : 1;
  int shared_bytes = 0;
  IZH_DRIVER(&device, device_attribute(&shared_bytes, cuda::kMostSharedBytes, *number),
             "being described");
  size_t bytes = 0;
  IZH_DRIVER(&device, device_memory(&bytes, *number), "being described");
  info->arch = kArch;
  info->features = features_of(10 * major + minor, shared_bytes);
  info->total_bytes = bytes;
  return IZH_OK;
}

// The number behind "cuda:"; 0 for "cuda". False if `wanted` is neither.
bool gpu_number(const char* wanted, uint32_t* out) {
  *out = 0;
  if (strncmp(wanted, "cuda", 4) != 0) return false;
  if (wanted[4] == 0) return true;
  if (wanted[4] != ':' || wanted[5] < '0' || wanted[5] > '9') return false;
  char* end = nullptr;
  const unsigned long number = strtoul(wanted + 5, &end, 10);
  *out = static_cast<uint32_t>(number);
  return *end == 0 && number < 1024;
}

izh_status make(Device* device, uint32_t index, izh_error* error) {
  IZH_TRY(describe(*device->driver, index, &device->number, &device->info, error));
  IZH_DRIVER(device, context_retain(&device->context, device->number), "being opened");
  IZH_DRIVER(device, context_use(device->context), "being opened");
  IZH_DRIVER(device, stream_create(&device->stream, cuda::kStreamNonBlocking), "being opened");
  for (void*& buffer : device->staging) {
    IZH_DRIVER(device, host_alloc(&buffer, kStagingBytes, 0), "memory for copies was taken");
  }
  return IZH_OK;
}

}  // namespace

const char* device_kinds() { return "cpu, cuda or cuda:N for GPU N"; }

bool device_known(const char* wanted) {
  uint32_t number = 0;
  return strcmp(wanted, "cpu") == 0 || gpu_number(wanted, &number);
}

const char* device_kind_for(const char* arch) {
  return strcmp(arch, kArch) == 0 ? "cuda" : nullptr;
}

izh_status device_count(uint32_t* out, izh_error* error) {
  const cuda::Driver* driver = nullptr;
  IZH_TRY(cuda::driver_open(&driver, error));
  int count = 0;
  if (driver->device_count(&count) != 0 || count < 0) count = 0;
  *out = static_cast<uint32_t>(count);
  return IZH_OK;
}

izh_status device_describe(uint32_t index, DeviceInfo* out, izh_error* error) {
  const cuda::Driver* driver = nullptr;
  IZH_TRY(cuda::driver_open(&driver, error));
  cuda::DeviceNumber number;
  return describe(*driver, index, &number, out, error);
}

izh_status device_open(Device** out, izh_error* error) {
  *out = nullptr;
  const char* wanted = getenv("IZH_DEVICE");
  if (!wanted || !*wanted || strcmp(wanted, "cpu") == 0) return IZH_OK;
  uint32_t index = 0, count = 0;
  if (!gpu_number(wanted, &index)) {
    return fail(error, IZH_INVALID_ARGUMENT, "IZH_DEVICE is \"%s\", but it can be %s", wanted,
                device_kinds());
  }
  IZH_TRY(device_count(&count, error));
  if (index >= count) {
    return fail(error, IZH_INVALID_ARGUMENT,
                "%s was asked for, but this machine has %u GPUs that the NVIDIA driver shows%s",
                wanted, count, count ? ": their numbers begin with 0" : "; use --device cpu");
  }
  Device* device = heap_create<Device>();
  if (!device) return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the device");
  izh_status status = cuda::driver_open(&device->driver, error);
  if (status == IZH_OK) status = make(device, index, error);
  if (status != IZH_OK) {
    device_close(device);
    return status;
  }
  *out = device;
  return IZH_OK;
}

void device_close(Device* device) {
  if (!device) return;
  if (device->context) {
    (void)device->driver->context_use(device->context);
    for (void* buffer : device->staging) {
      if (buffer) (void)device->driver->host_free(buffer);
    }
    if (device->stream) (void)device->driver->stream_destroy(device->stream);
    (void)device->driver->context_release(device->number);
  }
  heap_destroy(device);
}

const DeviceInfo& device_info(const Device* device) { return device->info; }

izh_status device_begin(Device* device, izh_error* error) {
  IZH_DRIVER(device, context_use(device->context), "work began");
  return IZH_OK;
}

// ---- Memory

izh_status device_free_bytes(Device* device, uint64_t* out, izh_error* error) {
  size_t free = 0, total = 0;
  IZH_TRY(device_begin(device, error));
  IZH_DRIVER(device, memory_info(&free, &total), "telling its memory");
  *out = free;
  return IZH_OK;
}

izh_status device_alloc(Device* device, uint64_t bytes, const char* what, DeviceAddress* out,
                        izh_error* error) {
  *out = 0;
  IZH_TRY(device_begin(device, error));
  // A block of nothing still needs an address.
  const size_t size = bytes ? static_cast<size_t>(bytes) : 1;
  cuda::Address address = 0;
  const Result result = device->driver->memory_alloc(&address, size);
  if (result == cuda::kOutOfMemory) {
    return fail(error, IZH_OUT_OF_MEMORY,
                "device %s (%s) refuses %llu MiB for %s: close what else uses it, or ask for fewer "
                "tokens",
                device->info.id, device->info.name, static_cast<unsigned long long>(bytes >> 20),
                what);
  }
  if (result != 0) return failed(*device, result, "memory was taken", error);
  *out = address;
  IZH_DRIVER(device, fill(address, 0, size, device->stream), "memory was cleared");
  return IZH_OK;
}

void device_free(Device* device, DeviceAddress address) {
  if (address) (void)device->driver->memory_free(address);
}

// Two pieces take turns: while one is read by the device, the next is filled.
izh_status device_upload(Device* device, DeviceAddress to, const void* from, uint64_t bytes,
                         izh_error* error) {
  IZH_TRY(device_begin(device, error));
  const char* next = static_cast<const char*>(from);
  for (uint64_t done = 0, turn = 0; done < bytes; ++turn) {
    const size_t piece = bytes - done < kStagingBytes ? size_t(bytes - done) : kStagingBytes;
    void* buffer = device->staging[turn % 2];
    memcpy(buffer, next + done, piece);
    // The other piece's copy, which was given before, ran beside this.
    IZH_DRIVER(device, stream_wait(device->stream), "weights were copied");
    IZH_DRIVER(device, copy_in(to + done, buffer, piece, device->stream), "weights were copied");
    done += piece;
  }
  return device_wait(device, error);
}

izh_status device_download(Device* device, void* to, DeviceAddress from, uint64_t bytes,
                           izh_error* error) {
  char* next = static_cast<char*>(to);
  for (uint64_t done = 0; done < bytes;) {
    const size_t piece = bytes - done < kStagingBytes ? size_t(bytes - done) : kStagingBytes;
    IZH_DRIVER(device, copy_out(device->staging[0], from + done, piece, device->stream),
               "results were copied");
    IZH_TRY(device_wait(device, error));
    memcpy(next + done, device->staging[0], piece);
    done += piece;
  }
  return IZH_OK;
}

namespace {

izh_status copy_within(Device* device, const DeviceAddress* buffers, size_t bytes, double* out,
                       izh_error* error) {
  constexpr int kCopies = 16;
  uint64_t begin = 0;
  // The first copy meets a device that may be asleep.
  for (int i = 0; i <= kCopies; ++i) {
    IZH_DRIVER(device, copy_within(buffers[(i + 1) % 2], buffers[i % 2], bytes, device->stream),
               "its memory was measured");
    if (i != 0) continue;
    IZH_TRY(device_wait(device, error));
    begin = clock_ns();
  }
  IZH_TRY(device_wait(device, error));
  const uint64_t elapsed = clock_ns() - begin;
  *out = elapsed ? 2.0 * kCopies * static_cast<double>(bytes) / static_cast<double>(elapsed) : 0;
  return IZH_OK;
}

}  // namespace

izh_status device_copy_rate(Device* device, double* out, izh_error* error) {
  constexpr size_t kBytes = size_t{256} << 20;
  *out = 0;
  DeviceAddress buffers[2] = {};
  izh_status status = IZH_OK;
  for (DeviceAddress& buffer : buffers) {
    if (status == IZH_OK) status = device_alloc(device, kBytes, "a measurement", &buffer, error);
  }
  if (status == IZH_OK) status = copy_within(device, buffers, kBytes, out, error);
  for (const DeviceAddress buffer : buffers) device_free(device, buffer);
  return status;
}

izh_status device_host_alloc(Device* device, size_t bytes, void** out, izh_error* error) {
  *out = nullptr;
  IZH_TRY(device_begin(device, error));
  IZH_DRIVER(device, host_alloc(out, bytes, 0), "memory for inputs was taken");
  memset(*out, 0, bytes);
  return IZH_OK;
}

void device_host_free(Device* device, void* memory) {
  if (memory) (void)device->driver->host_free(memory);
}

// ---- Code

izh_status device_load(Device* device, const char* text, const char* name, DeviceCode** out,
                       izh_error* error) {
  *out = nullptr;
  IZH_TRY(device_begin(device, error));
  char log[400] = "";
  int options[] = {cuda::kErrorLog, cuda::kErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
  cuda::Module module = nullptr;
  const Result result = device->driver->module_load(&module, text, 2, options, values);
  if (result != 0) {
    const char* what = nullptr;
    (void)device->driver->error_name(result, &what);
    return fail(error, IZH_UNSUPPORTED_CPU,
                "the driver of %s can't compile the code of %s (%s)%s%.300s: update the driver, or "
                "use --device cpu",
                device->info.id, name, what ? what : "unknown error", *log ? ": " : "", log);
  }
  *out = reinterpret_cast<DeviceCode*>(module);
  return IZH_OK;
}

void device_unload(Device* device, DeviceCode* code) {
  if (code) (void)device->driver->module_unload(reinterpret_cast<cuda::Module>(code));
}

izh_status device_find(Device* device, DeviceCode* code, const char* kernel, uint32_t shared_bytes,
                       DeviceFunction** out, izh_error* error) {
  cuda::Function function = nullptr;
  IZH_DRIVER(device, module_function(&function, reinterpret_cast<cuda::Module>(code), kernel),
             "a kernel was looked up");
  // Without this, what the kernel declares itself and this may be 48 KiB together.
  if (shared_bytes != 0) {
    IZH_DRIVER(device,
               function_set(function, cuda::kMaxDynamicSharedBytes, static_cast<int>(shared_bytes)),
               "a kernel was given memory that its threads share");
  }
  *out = reinterpret_cast<DeviceFunction*>(function);
  return IZH_OK;
}

// ---- Work

izh_status device_send(Device* device, DeviceAddress to, const void* from, size_t bytes,
                       izh_error* error) {
  IZH_DRIVER(device, copy_in(to, from, bytes, device->stream), "inputs were copied");
  return IZH_OK;
}

izh_status device_launch(Device* device, DeviceFunction* function, uint32_t blocks,
                         uint32_t threads, uint32_t shared_bytes, bool overlaps, void** arguments,
                         izh_error* error) {
  if (overlaps && device->driver->launch_with) {
    cuda::LaunchAttribute attribute = {};
    attribute.kind = cuda::kProgrammaticLaunch;
    attribute.value[0] = 1;
    cuda::LaunchConfig config = {};
    config.blocks[0] = blocks;
    config.threads[0] = threads;
    config.shared_bytes = shared_bytes;
    config.blocks[1] = config.blocks[2] = config.threads[1] = config.threads[2] = 1;
    config.stream = device->stream;
    config.attributes = &attribute;
    config.attribute_count = 1;
    IZH_DRIVER(device,
               launch_with(&config, reinterpret_cast<cuda::Function>(function), arguments, nullptr),
               "a kernel was started");
    return IZH_OK;
  }
  IZH_DRIVER(device,
             launch(reinterpret_cast<cuda::Function>(function), blocks, 1, 1, threads, 1, 1,
                    shared_bytes, device->stream, arguments, nullptr),
             "a kernel was started");
  return IZH_OK;
}

izh_status device_wait(Device* device, izh_error* error) {
  IZH_DRIVER(device, stream_wait(device->stream), "kernels ran");
  return IZH_OK;
}

izh_status device_record(Device* device, izh_error* error) {
  IZH_DRIVER(device, capture_begin(device->stream, cuda::kCaptureThreadLocal), "recording");
  return IZH_OK;
}

izh_status device_recorded(Device* device, DeviceGraph** out, izh_error* error) {
  cuda::Graph graph = nullptr;
  cuda::GraphExec exec = nullptr;
  IZH_DRIVER(device, capture_end(device->stream, &graph), "recording");
  const Result result = device->driver->graph_make(&exec, graph, 0);
  (void)device->driver->graph_destroy(graph);
  if (result != 0) return failed(*device, result, "recording", error);
  *out = reinterpret_cast<DeviceGraph*>(exec);
  return IZH_OK;
}

izh_status device_replay(Device* device, DeviceGraph* graph, izh_error* error) {
  IZH_DRIVER(device, graph_launch(reinterpret_cast<cuda::GraphExec>(graph), device->stream),
             "kernels were started");
  return IZH_OK;
}

void device_forget(Device* device, DeviceGraph* graph) {
  if (graph) (void)device->driver->graph_exec_destroy(reinterpret_cast<cuda::GraphExec>(graph));
}

}  // namespace izh
