// The sizes of a step, which code, plan and runtime agree on.

#pragma once

#include <cstdint>

namespace izhc {

// Tokens of one step: longer prompts are cut into chunks.
constexpr int64_t kMaxTokens = 128;
// Rows of one attention tile.
constexpr int64_t kTileTokens = 8;
// Tokens of one page of a cache.
constexpr int64_t kPageTokens = 64;
// The logits of one step take no more than this, unless one row does.
constexpr int64_t kMaxLogitsBytes = int64_t(64) << 20;

} // namespace izhc
