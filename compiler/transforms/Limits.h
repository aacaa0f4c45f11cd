// The sizes of a step, which code, plan and runtime agree on.

#pragma once

#include <cstdint>

namespace izhc {

// Tokens of one step: longer prompts are cut into chunks. So many keep a GPU
// busy; processors take fewer (runtime/schema/step.h).
constexpr int64_t kMaxTokens = 512;
// Rows of one step whose logits are wanted.
constexpr int64_t kMaxOutputs = 128;
// Rows of a tile of a plan without attention.
constexpr int64_t kMostTileTokens = 128;
// Rows of one attention tile: query vectors enough to share the conversion of a
// key, but tiles enough for all threads. `group`: query heads of a key head.
constexpr int64_t tileTokens(int64_t group) { return group <= 2 ? 32 : group <= 8 ? 16 : 8; }
// Rows times spans of attention that a step may leave for merging.
constexpr int64_t kMaxPartials = 1024;
// Tokens of one page of a cache.
constexpr int64_t kPageTokens = 64;
// The logits of one step take no more than this, unless one row does.
constexpr int64_t kMaxLogitsBytes = int64_t(64) << 20;

} // namespace izhc
