// The list of all targets, from the folders that cmake found.

#include "compiler/target/Target.h"

namespace izhc {

namespace targets {
#define IZH_ENTRY(folder) void add_##folder(TargetList &list);
#include "targets/Registry.inc"
#undef IZH_ENTRY
} // namespace targets

TargetList allTargets() {
  TargetList list;
#define IZH_ENTRY(folder) targets::add_##folder(list);
#include "targets/Registry.inc"
#undef IZH_ENTRY
  return list;
}

} // namespace izhc
