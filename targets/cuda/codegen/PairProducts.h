// `matmul` and `matmul_heads` of up to eight rows at a time, with pairs of tiles
// (PairBatch.h), where their weights can be read so.

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

bool isPaired(pack::MatmulOp op);
bool isPaired(pack::MatmulHeadsOp op);

// Units of the form for one row, which blocks take in turn; 0: there is none.
// matmul_heads has a block for each of as many units as for more rows.
int64_t oneRowUnits(pack::MatmulOp op);
// Blocks of it that a multiprocessor is to have at a time.
int64_t oneRowAtOnce(pack::MatmulOp op);

// Of matmul_heads, a form for one row that only multiplies: queries go to where
// their heads are to go, keys to Block::scratch from kRawHeads on, values behind
// them.
constexpr int64_t kRawHeads = 4096;
int64_t rawHeadsUnits(pack::MatmulHeadsOp op);
int64_t rawHeadsThreads(pack::MatmulHeadsOp op);
int64_t rawHeadsScratch(pack::MatmulHeadsOp op);
void emitRawHeads(Block &block, pack::MatmulHeadsOp op);

// Call Block::prepare themselves. With Block::oneRow they serve one row only.
void emitPairedMatmul(Block &block, pack::MatmulOp op);
void emitPairedHeads(Block &block, pack::MatmulHeadsOp op);

} // namespace izhc::cuda
