// The matrix unit of AMX (Sapphire Rapids and later).

#pragma once

#include "compiler/target/vector/MatrixUnit.h"

namespace izhc::x86 {

const MatrixUnit &amxUnit();

} // namespace izhc::x86
