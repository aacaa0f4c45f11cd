// Opening libcuda and looking up what is called of it.

#include "runtime/platform/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstring>

#include "runtime/base/status.h"

namespace izh::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

struct Opened {
  Driver driver;
  izh_status status = IZH_OK;
  izh_error error = {};
};

// dlsym gives data pointers; the representation of functions' is the same.
template <typename Function>
bool find(void* library, const char* symbol, Function* out) {
  void* address = dlsym(library, symbol);
  static_assert(sizeof(address) == sizeof(*out));
  memcpy(out, &address, sizeof(address));
  return address != nullptr;
}

izh_status find_all(void* library, Driver* driver, izh_error* error) {
  int version = 0;
  if (find(library, "cuDriverGetVersion", &driver->version)) (void)driver->version(&version);
  const char* missing = nullptr;
#define IZH_DRIVER_FUNCTION(member, symbol, arguments) \
  if (!find(library, #symbol, &driver->member) && !missing) missing = #symbol;
  IZH_DRIVER_FUNCTIONS
#undef IZH_DRIVER_FUNCTION
  if (version >= kLaunchWithVersion) {
    (void)find(library, "cuLaunchKernelEx", &driver->launch_with);
  }
  if (!missing && version >= kLeastVersion) return IZH_OK;
  return fail(error, IZH_UNSUPPORTED_CPU,
              "the NVIDIA driver here is for CUDA %d.%d%s%s, but this runtime needs one for CUDA "
              "%d.%d or later: update the driver, or use --device cpu",
              version / 1000, version % 1000 / 10, missing ? " and lacks " : "",
              missing ? missing : "", kLeastVersion / 1000, kLeastVersion % 1000 / 10);
}

izh_status open(Driver* driver, izh_error* error) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return fail(error, IZH_UNSUPPORTED_CPU,
                "the NVIDIA driver's %s can't be opened (%s): to use a GPU, install the driver; "
                "--device cpu needs none",
                kLibrary, dlerror());
  }
  IZH_TRY(find_all(library, driver, error));
  const Result result = driver->init(0);
  if (result == 0) return IZH_OK;
  const char* text = nullptr;
  (void)driver->error_text(result, &text);
  return fail(error, IZH_UNSUPPORTED_CPU,
              "the NVIDIA driver is there but can't be used: %s (error %d); use --device cpu, or "
              "see whether nvidia-smi works",
              text ? text : "unknown error", result);
}

Opened opened;

void open_once() { opened.status = open(&opened.driver, &opened.error); }

}  // namespace

izh_status driver_open(const Driver** out, izh_error* error) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, &open_once);
  if (opened.status != IZH_OK) {
    if (error) *error = opened.error;
    return opened.status;
  }
  *out = &opened.driver;
  return IZH_OK;
}

}  // namespace izh::cuda
