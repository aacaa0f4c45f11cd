// The hash by which artifacts name the files they were made from.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <string>

namespace izhc {

// XXH3 of 128 bits over the pieces in order, as `xxh128sum` prints it. After
// each few megabytes of `bytes` calls `done` with what was read.
std::string hashPieces(llvm::ArrayRef<llvm::ArrayRef<uint8_t>> pieces,
                       llvm::function_ref<void(llvm::ArrayRef<uint8_t>)> done);

} // namespace izhc
