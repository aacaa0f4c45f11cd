// Numbers in messages.

#pragma once

#include <string>

namespace izhc {

// The shortest text that means `value`: "0.1", "65504", "1e+300", "nan".
std::string shortText(double value);

} // namespace izhc
