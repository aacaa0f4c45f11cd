// What a model asks of a machine for each token, and how fast a machine of
// given limits can be at most. What `izhc compile --stats` prints.

#pragma once

#include "compiler/emit/Artifact.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace llvm {
class raw_ostream;
}

namespace izhc::tool {

// What a machine can do in a second, in units of 10^9.
struct MachineLimits {
  double gbps = 0; // bytes read from memory
  double gops = 0; // operations of int8 products: a multiplication and an addition are two
  // Microseconds that a phase takes beyond its bytes and operations: all threads
  // meet behind it, take over what others have left, and begin to read elsewhere.
  double phaseUs = 0;
};

// "gbps=50,gops=940,phase_us=1", in any order, the last one if it is known.
// `izh-rt bench` measures these numbers.
llvm::Expected<MachineLimits> parseMachine(llvm::StringRef text);

// Bytes of keys and values that a token leaves for all later ones, and what a
// sequence takes beside them, whatever its length: the states that it has
// instead, and what layers with a window keep.
uint64_t cacheBytesPerToken(const emit::Plan &plan);
uint64_t stateBytes(const emit::Plan &plan);
uint64_t windowBytes(const emit::Plan &plan);
// Bytes of keys and values that a token with `context` tokens before it reads.
uint64_t cacheBytesRead(const emit::Plan &plan, uint64_t context);

// Tokens a second, as if the slower of memory and arithmetic, and the threads'
// meetings, were all that takes time.
struct Prediction {
  double tokensPerSecond = 0;
  bool memory = false; // it is memory that limits
};
// One token after another, each with `context` tokens before it.
Prediction predictDecode(const emit::Plan &plan, const MachineLimits &machine, uint64_t context);
// A prompt of `tokens`, whose last one gives a row of logits. Attention's
// arithmetic doesn't count.
Prediction predictPrompt(const emit::Plan &plan, const MachineLimits &machine, uint64_t tokens);

// `machine` may be null: then nothing is predicted.
void printRoofline(const emit::Plan &plan, const MachineLimits *machine, llvm::raw_ostream &out);

} // namespace izhc::tool
