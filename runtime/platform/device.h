// A device beside the processor that kernels can run on: its memory, its code
// and the order of its work. Which kinds there are is known here alone.
//
// A device and what is made on it may be used by one thread at a time.

#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/include/izh/izh.h"

namespace izh {

struct Device;
struct DeviceCode;
struct DeviceFunction;
struct DeviceGraph;
using DeviceAddress = uint64_t;

struct DeviceInfo {
  char name[96];
  char id[16];        // as IZH_DEVICE takes it
  const char* arch;   // as variants spell it
  uint64_t features;  // bits of runtime/schema/cpu_features.def
  uint64_t total_bytes;
  uint32_t multiprocessors;
};

// What IZH_DEVICE may be, for help texts.
const char* device_kinds();
// Whether `wanted` is spelled as one of these, be it there or not.
bool device_known(const char* wanted);
// Which kind runs code of `arch`, as variants spell it; NULL: a processor does.
const char* device_kind_for(const char* arch);

// Opens the device that IZH_DEVICE (environment) names; `*out` is NULL where
// it names the processor, or nothing. A device that isn't there is an error.
[[nodiscard]] izh_status device_open(Device** out, izh_error* error);
void device_close(Device* device);
const DeviceInfo& device_info(const Device* device);

// How many devices there are, and number `index` of them. Fails where the driver
// does.
[[nodiscard]] izh_status device_count(uint32_t* out, izh_error* error);
[[nodiscard]] izh_status device_describe(uint32_t index, DeviceInfo* out, izh_error* error);

// Bytes that can still be taken.
[[nodiscard]] izh_status device_free_bytes(Device* device, uint64_t* out, izh_error* error);
// `bytes` of zeroes, aligned to 256. `what` names them in the sentence.
[[nodiscard]] izh_status device_alloc(Device* device, uint64_t bytes, const char* what,
                                      DeviceAddress* out, izh_error* error);
void device_free(Device* device, DeviceAddress address);
// Copies through memory that the device reads directly, in pieces. Returns when
// it is done.
[[nodiscard]] izh_status device_upload(Device* device, DeviceAddress to, const void* from,
                                       uint64_t bytes, izh_error* error);
// The same from the device, after all work before.
[[nodiscard]] izh_status device_download(Device* device, void* to, DeviceAddress from,
                                         uint64_t bytes, izh_error* error);
// Gigabytes a second that copies within the device's memory read and write
// together. Takes half a gigabyte there for some milliseconds.
[[nodiscard]] izh_status device_copy_rate(Device* device, double* out, izh_error* error);
// Memory of this process that the device reads directly; zeroes.
[[nodiscard]] izh_status device_host_alloc(Device* device, size_t bytes, void** out,
                                           izh_error* error);
void device_host_free(Device* device, void* memory);

// Compiles the zero-terminated text of kernels. `name` is the file's.
[[nodiscard]] izh_status device_load(Device* device, const char* text, const char* name,
                                     DeviceCode** out, izh_error* error);
void device_unload(Device* device, DeviceCode* code);
// `shared_bytes`: the most that its launches bring of memory that a block shares.
[[nodiscard]] izh_status device_find(Device* device, DeviceCode* code, const char* kernel,
                                     uint32_t shared_bytes, DeviceFunction** out,
                                     izh_error* error);

// ---- Work, done in the order in which it is given.

// Makes the device the one that this thread works with; before the others.
[[nodiscard]] izh_status device_begin(Device* device, izh_error* error);
// `from` is memory of device_host_alloc that stays as it is until device_wait.
[[nodiscard]] izh_status device_send(Device* device, DeviceAddress to, const void* from,
                                     size_t bytes, izh_error* error);
// `arguments`: addresses of the values. `overlaps`: the kernel may begin before
// the one before it has ended, and waits for that itself; where the driver can't
// do that, it begins later.
[[nodiscard]] izh_status device_launch(Device* device, DeviceFunction* function, uint32_t blocks,
                                       uint32_t threads, uint32_t shared_bytes, bool overlaps,
                                       void** arguments, izh_error* error);
[[nodiscard]] izh_status device_wait(Device* device, izh_error* error);

// Launches between these are recorded, not done; `*out` does them all at once.
[[nodiscard]] izh_status device_record(Device* device, izh_error* error);
[[nodiscard]] izh_status device_recorded(Device* device, DeviceGraph** out, izh_error* error);
[[nodiscard]] izh_status device_replay(Device* device, DeviceGraph* graph, izh_error* error);
void device_forget(Device* device, DeviceGraph* graph);

}  // namespace izh
