// What `--target` means.

#pragma once

#include "compiler/target/Target.h"
#include "llvm/Support/Error.h"

namespace izhc {

// The machine that the compiler runs on.
struct HostMachine {
  llvm::StringRef arch;
  uint64_t features; // bits of cpu_features.def
};

bool runsOn(const Target &target, const HostMachine &host);

// Keeps of `all` what `spec` names, in the order of `all`: names separated by
// commas, `native` for the best one of this machine, `default` for the
// portable set. What stands before a colon names all variants with that
// beginning. An unknown name is an error that lists the known ones.
llvm::Expected<TargetList> chooseTargets(TargetList all, llvm::StringRef spec,
                                         const HostMachine &host);

} // namespace izhc
