// The NVIDIA driver's library, opened at run time: nothing of it is linked, and
// a machine without it runs everything else. The declarations are those of
// CUDA's driver API that this runtime calls, under names of their own.

#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/include/izh/izh.h"

namespace izh::cuda {

using Result = int;  // 0: success
using DeviceNumber = int;
using Address = uint64_t;
struct ContextObject;
struct ModuleObject;
struct FunctionObject;
struct StreamObject;
struct GraphObject;
struct GraphExecObject;
using Context = ContextObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;
using Graph = GraphObject*;
using GraphExec = GraphExecObject*;

// Values of the driver's enumerations.
constexpr Result kOutOfMemory = 2;
constexpr Result kNoDevice = 100;
constexpr int kMultiprocessors = 16, kComputeMajor = 75, kComputeMinor = 76;  // attributes
constexpr int kMostSharedBytes = 97;              // that a block may have
constexpr int kErrorLog = 5, kErrorLogBytes = 6;  // options of loading a module
constexpr int kCaptureThreadLocal = 1;            // capture mode
constexpr unsigned kStreamNonBlocking = 1;
constexpr int kMaxDynamicSharedBytes = 8;  // attribute of a function
constexpr int kProgrammaticLaunch = 6;     // attribute of a launch
// The least that has all functions below, as the driver counts: 11.0.
constexpr int kLeastVersion = 11000;
// The least that records launches with attributes in graphs.
constexpr int kLaunchWithVersion = 12030;

// Of cuLaunchKernelEx.
struct LaunchAttribute {
  int kind;
  int padding;
  int value[16];
};
struct LaunchConfig {
  unsigned blocks[3];
  unsigned threads[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);

// IZH_DRIVER_FUNCTION(member, exported name, arguments)
#define IZH_DRIVER_FUNCTIONS                                                                       \
  IZH_DRIVER_FUNCTION(init, cuInit, (unsigned flags))                                              \
  IZH_DRIVER_FUNCTION(version, cuDriverGetVersion, (int* version))                                 \
  IZH_DRIVER_FUNCTION(error_name, cuGetErrorName, (Result result, const char** name))              \
  IZH_DRIVER_FUNCTION(error_text, cuGetErrorString, (Result result, const char** text))            \
  IZH_DRIVER_FUNCTION(device_count, cuDeviceGetCount, (int* count))                                \
  IZH_DRIVER_FUNCTION(device_get, cuDeviceGet, (DeviceNumber * device, int index))                 \
  IZH_DRIVER_FUNCTION(device_name, cuDeviceGetName, (char* name, int bytes, DeviceNumber device))  \
  IZH_DRIVER_FUNCTION(device_memory, cuDeviceTotalMem_v2, (size_t* bytes, DeviceNumber device))    \
  IZH_DRIVER_FUNCTION(device_attribute, cuDeviceGetAttribute,                                      \
                      (int* value, int attribute, DeviceNumber device))                            \
  IZH_DRIVER_FUNCTION(context_retain, cuDevicePrimaryCtxRetain,                                    \
                      (Context * context, DeviceNumber device))                                    \
  IZH_DRIVER_FUNCTION(context_release, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))        \
  IZH_DRIVER_FUNCTION(context_use, cuCtxSetCurrent, (Context context))                             \
  IZH_DRIVER_FUNCTION(memory_info, cuMemGetInfo_v2, (size_t* free, size_t* total))                 \
  IZH_DRIVER_FUNCTION(memory_alloc, cuMemAlloc_v2, (Address * address, size_t bytes))              \
  IZH_DRIVER_FUNCTION(memory_free, cuMemFree_v2, (Address address))                                \
  IZH_DRIVER_FUNCTION(host_alloc, cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags))   \
  IZH_DRIVER_FUNCTION(host_free, cuMemFreeHost, (void* memory))                                    \
  IZH_DRIVER_FUNCTION(copy_in, cuMemcpyHtoDAsync_v2,                                               \
                      (Address to, const void* from, size_t bytes, Stream stream))                 \
  IZH_DRIVER_FUNCTION(copy_out, cuMemcpyDtoHAsync_v2,                                              \
                      (void* to, Address from, size_t bytes, Stream stream))                       \
  IZH_DRIVER_FUNCTION(copy_within, cuMemcpyDtoDAsync_v2,                                           \
                      (Address to, Address from, size_t bytes, Stream stream))                     \
  IZH_DRIVER_FUNCTION(fill, cuMemsetD8Async,                                                       \
                      (Address to, unsigned char value, size_t bytes, Stream stream))              \
  IZH_DRIVER_FUNCTION(stream_create, cuStreamCreate, (Stream * stream, unsigned flags))            \
  IZH_DRIVER_FUNCTION(stream_destroy, cuStreamDestroy_v2, (Stream stream))                         \
  IZH_DRIVER_FUNCTION(stream_wait, cuStreamSynchronize, (Stream stream))                           \
  IZH_DRIVER_FUNCTION(                                                                             \
      module_load, cuModuleLoadDataEx,                                                             \
      (Module * module, const void* image, unsigned count, int* options, void** values))           \
  IZH_DRIVER_FUNCTION(module_unload, cuModuleUnload, (Module module))                              \
  IZH_DRIVER_FUNCTION(module_function, cuModuleGetFunction,                                        \
                      (Function * function, Module module, const char* name))                      \
  IZH_DRIVER_FUNCTION(function_set, cuFuncSetAttribute,                                            \
                      (Function function, int attribute, int value))                               \
  IZH_DRIVER_FUNCTION(launch, cuLaunchKernel,                                                      \
                      (Function function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, \
                       unsigned threads_x, unsigned threads_y, unsigned threads_z,                 \
                       unsigned shared_bytes, Stream stream, void** arguments, void** extra))      \
  IZH_DRIVER_FUNCTION(capture_begin, cuStreamBeginCapture_v2, (Stream stream, int mode))           \
  IZH_DRIVER_FUNCTION(capture_end, cuStreamEndCapture, (Stream stream, Graph * graph))             \
  IZH_DRIVER_FUNCTION(graph_make, cuGraphInstantiateWithFlags,                                     \
                      (GraphExec * exec, Graph graph, unsigned long long flags))                   \
  IZH_DRIVER_FUNCTION(graph_launch, cuGraphLaunch, (GraphExec exec, Stream stream))                \
  IZH_DRIVER_FUNCTION(graph_exec_destroy, cuGraphExecDestroy, (GraphExec exec))                    \
  IZH_DRIVER_FUNCTION(graph_destroy, cuGraphDestroy, (Graph graph))

struct Driver {
#define IZH_DRIVER_FUNCTION(member, symbol, arguments) Result(*member) arguments = nullptr;
  IZH_DRIVER_FUNCTIONS
#undef IZH_DRIVER_FUNCTION
  // NULL where the driver is older than kLaunchWithVersion.
  Result (*launch_with)(const LaunchConfig* config, Function function, void** arguments,
                        void** extra) = nullptr;
};

// The driver, opened and initialised once and never closed. On failure the
// sentence says what is missing: the library, a function, or a device.
[[nodiscard]] izh_status driver_open(const Driver** out, izh_error* error);

}  // namespace izh::cuda
