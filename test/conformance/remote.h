// Runs a kernel for another machine family in a program under emulation, named
// by an environment variable for each family:
//   IZH_RUNNER_AARCH64="qemu-aarch64 -cpu max FOLDER/kernel_runner"

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <utility>
#include <vector>

namespace izhc::conformance {

// Whether there is a runner for `arch`; it runs every variant of the family.
bool hasRunner(llvm::StringRef arch);

struct RemoteCall {
  llvm::ArrayRef<uint8_t> code;
  uint64_t entry;
  int64_t params[3], begin, end;
  // What the kernel may touch, read back afterwards.
  std::vector<llvm::MutableArrayRef<uint8_t>> blocks;
  // Each binding is a place in a block: which, and at what offset.
  std::vector<std::pair<uint64_t, uint64_t>> bindings;
};

// False if the runner ended, as it does when a kernel faults.
bool runRemotely(llvm::StringRef arch, const RemoteCall &call);

} // namespace izhc::conformance
