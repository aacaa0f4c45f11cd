// How positions turn in folders that don't tell.

#pragma once

#include "compiler/import/FolderMap.h"

namespace izhc {

// Whether config.json has neither rope_parameters nor rope_scaling.
bool lacksRope(const FolderKeys &keys);

// The yarn of such folders as published code has it: `factor` times the `first`
// tokens that the model was first trained for, ramps from 32 turns to 1.
void assumeYarn(FolderKeys &keys, double factor, int64_t first);

} // namespace izhc
