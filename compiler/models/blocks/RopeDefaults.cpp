// The paths are those that RopeFolder.cpp reads.

#include "compiler/models/blocks/RopeDefaults.h"

namespace izhc {

bool lacksRope(const FolderKeys &keys) {
  // An empty object tells nothing in old folders, but is the default in new ones.
  const Json *old = keys.find("rope_scaling");
  bool hasOld = old && !(old->isObject() && old->items().empty());
  return !hasOld && !keys.find("rope_parameters");
}

void assumeYarn(FolderKeys &keys, double factor, int64_t first) {
  keys.assume("rope_parameters.rope_type", Json::of(llvm::StringRef("yarn")));
  keys.assume("rope_parameters.factor", Json::of(factor));
  keys.assume("rope_parameters.original_max_position_embeddings", Json::of(first));
  keys.assume("rope_parameters.beta_fast", Json::of(32.0));
  keys.assume("rope_parameters.beta_slow", Json::of(1.0));
}

} // namespace izhc
