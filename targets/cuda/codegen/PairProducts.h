// `matmul` and `matmul_heads` of up to eight rows at a time, with pairs of tiles
// (PairBatch.h), where their weights can be read so.

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

bool isPaired(pack::MatmulOp op);
bool isPaired(pack::MatmulHeadsOp op);

// How a form for one row is launched.
struct OneRowShape {
  int64_t units = 0; // 0: there is none
  int64_t threads = 0;
  // Blocks that a multiprocessor is to have at a time, which take units in turn; 0: there
  // is a block for each unit.
  int64_t atOnce = 0;
  // Blocks of one of these, or of the next, that it is to have registers for; 0: as
  // many as there are.
  int64_t together = 0;
};

// `streams`: bulk copies can be had (PairStream.h).
OneRowShape oneRowShape(pack::MatmulOp op, bool streams);

// Whether that form can leave a record of what it stores, with streams; its units are
// then two of those of oneRowShape.
bool canLeaveRecord(pack::MatmulOp op);

// Of matmul_heads, a form for one row that only multiplies: queries go to where
// their heads are to go, keys to Block::scratch from kRawHeads on, values behind
// them.
constexpr int64_t kRawHeads = 4096;
OneRowShape rawHeadsShape(pack::MatmulHeadsOp op, bool streams);
int64_t rawHeadsScratch(pack::MatmulHeadsOp op);
void emitRawHeads(Block &block, pack::MatmulHeadsOp op);

// Call Block::prepare themselves. With Block::oneRow they serve one row only.
void emitPairedMatmul(Block &block, pack::MatmulOp op);
void emitPairedHeads(Block &block, pack::MatmulHeadsOp op);

} // namespace izhc::cuda
