// Metadata as text for people.

#pragma once

#include "compiler/import/GgufFile.h"

namespace izhc {

// "u32", "string", "array of f32" ...
std::string typeText(const GgufValue &value);
// The value; long strings and arrays are cut.
std::string valueText(const GgufValue &value);

} // namespace izhc
