// `expert_gate`, `expert_sum` and `route` of a step's only row, which has a pair with
// each of the experts that it has chosen: a block has two tiles of one expert, and the
// block that ends last adds what the experts' blocks have left. The order of additions
// is that of the other forms.

#pragma once

#include "targets/cuda/codegen/PairProducts.h"

namespace izhc::cuda {

namespace expert_row {

// units 0: there is no such form. These have a block for each unit.
OneRowShape shape(pack::ExpertGateOp op);
OneRowShape shape(pack::ExpertSumOp op);

// Of Block::scratch; the counters in it are left as they are found: zeroes.
int64_t scratchBytes(pack::ExpertSumOp op);

// Call Block::prepare.
void emit(Block &block, pack::ExpertGateOp op);
void emit(Block &block, pack::ExpertSumOp op);

} // namespace expert_row

// Makes the choices of a step's only row where `op` leaves its table, with no more of that
// than these, and without weights unless `weighted`. All threads of the block call it;
// with a barrier at the end.
void chooseExperts(Block &block, pack::RouteOp op, bool weighted);

} // namespace izhc::cuda
