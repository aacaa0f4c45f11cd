// Passes that run the code generators of targets/, for tests.

#pragma once

namespace izhc {

// --izh-lower-kernels=target=NAME   plan.kernel -> functions of the LLVM dialect
// --izh-print-assembly=target=NAME  the same, then prints assembly to standard
//                                   output and leaves an empty module
void registerTargetPasses();

} // namespace izhc
