// Choice of variants by name, by machine or by default.

#include "compiler/pipeline/TargetChoice.h"
#include "compiler/support/Error.h"
#include "llvm/ADT/SmallVector.h"

namespace izhc {

bool runsOn(const Target &target, const HostMachine &host) {
  return target.arch() == host.arch && (target.requiredFeatures() & ~host.features) == 0;
}

static llvm::Error markNative(const TargetList &all, const HostMachine &host,
                              std::vector<bool> &chosen) {
  int best = -1;
  for (auto [index, target] : llvm::enumerate(all))
    if (runsOn(*target, host) && (best < 0 || target->rank() > all[best]->rank()))
      best = index;
  if (best < 0)
    return makeError("--target=native: izhc has no code generator for this machine ({0})",
                     host.arch);
  chosen[best] = true;
  return llvm::Error::success();
}

static llvm::Error markNamed(const TargetList &all, llvm::StringRef name,
                             std::vector<bool> &chosen) {
  std::string known;
  bool found = false;
  for (auto [index, target] : llvm::enumerate(all)) {
    llvm::StringRef family = target->name().split(':').first;
    if (target->name() == name || family == name)
      found = chosen[index] = true;
    known += target->name().str() + ", ";
  }
  if (found)
    return llvm::Error::success();
  return makeError("--target: there is no target {0}; known are {1}native and default", quote(name),
                   known);
}

llvm::Expected<TargetList> chooseTargets(TargetList all, llvm::StringRef spec,
                                         const HostMachine &host) {
  std::vector<bool> chosen(all.size());
  llvm::SmallVector<llvm::StringRef> names;
  spec.split(names, ',');
  for (llvm::StringRef name : names) {
    name = name.trim();
    llvm::Error error = llvm::Error::success();
    if (name == "default") {
      for (auto [index, target] : llvm::enumerate(all))
        chosen[index] = chosen[index] || target->inDefaultSet();
    } else if (name == "native") {
      error = markNative(all, host, chosen);
    } else {
      error = markNamed(all, name, chosen);
    }
    if (error)
      return std::move(error);
  }
  TargetList result;
  for (auto [index, target] : llvm::enumerate(all))
    if (chosen[index])
      result.push_back(std::move(target));
  if (result.empty())
    return makeError("--target={0} names no target; see 'izhc targets'", spec);
  return result;
}

} // namespace izhc
