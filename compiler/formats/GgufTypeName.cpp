// The names of all weight types that GGUF files may hold, for messages about
// those that have no file here.

#include "compiler/formats/Format.h"

using namespace izhc;

// By number; empty where the number was given back.
static constexpr llvm::StringLiteral kNames[] = {
    "f32",     "f16",   "q4_0",   "q4_1",  "",      "",       "q5_0", "q5_1",    "q8_0",
    "q8_1",    "q2_k",  "q3_k",   "q4_k",  "q5_k",  "q6_k",   "q8_k", "iq2_xxs", "iq2_xs",
    "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s", "iq2_s", "iq4_xs", "i8",   "i16",     "i32",
    "i64",     "f64",   "iq1_m",  "bf16",  "",      "",       "",     "tq1_0",   "tq2_0",
    "",        "",      "",       "mxfp4", "nvfp4"};

llvm::StringRef izhc::ggufTypeName(uint32_t type) {
  return type < std::size(kNames) ? llvm::StringRef(kNames[type]) : llvm::StringRef();
}
