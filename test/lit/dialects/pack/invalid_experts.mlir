// RUN: izh-opt %s --split-input-file --verify-diagnostics
// What the ops on experts refuse.

!r = !pack.routes<8 x 4>

func.func @groups(%l: tensor<?x8xf32>) {
  // expected-error @+1 {{can't choose so many experts from such groups}}
  %r = pack.route %l softmax {groups = 4 : i64} : (tensor<?x8xf32>) -> !r
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

func.func @per_token(%x: tensor<?x64xf32>, %r: !pack.routes<8 x 2>) {
  // expected-error @+1 {{makes a row of each pair, so its row set must be tokens and per_token the experts chosen}}
  %a = pack.quantize %x indices %r : (tensor<?x64xf32>, !pack.routes<8 x 2>) -> !a
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

func.func @no_rows(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{makes at least one row of each}}
  %a = pack.quantize %x {per_token = 0 : i64} : (tensor<?x64xf32>) -> !a
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16", count 4>

func.func @stack(%a: !a, %r: !pack.routes<8 x 2>, %w: !w) {
  // expected-error @+1 {{needs stacks of 8 matrices, but has one of 4}}
  %y = pack.expert_gate %a routes %r weights(%w, %w) silu : (!a, !pack.routes<8 x 2>, !w, !w) -> tensor<?x32xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16", count 8>

func.func @one_stack(%a: !a, %r: !pack.routes<8 x 2>, %w: !w) {
  // expected-error @+1 {{needs two stacks of matrices, gate and up}}
  %y = pack.expert_gate %a routes %r weights(%w) silu : (!a, !pack.routes<8 x 2>, !w) -> tensor<?x32xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16", count 8>
!v = !pack.weight<16 x 64, "f16", count 8>

func.func @shapes(%a: !a, %r: !pack.routes<8 x 2>, %w: !w, %v: !v) {
  // expected-error @+1 {{needs gate and up of equal shape}}
  %y = pack.expert_gate %a routes %r weights(%w, %v) silu : (!a, !pack.routes<8 x 2>, !w, !v) -> tensor<?x32xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16", count 8>

func.func @epilogue(%a: !a, %r: !pack.routes<8 x 2>, %w: !w) {
  // expected-error @+1 {{can only store its sums or add them}}
  %y = pack.expert_sum %a routes %r weight %w {epilogue = 2 : i32} : (!a, !pack.routes<8 x 2>, !w) -> tensor<?x64xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16", count 8>

func.func @residual(%a: !a, %r: !pack.routes<8 x 2>, %w: !w) {
  // expected-error @+1 {{has a residual exactly if it is a tensor form that adds}}
  %y = pack.expert_sum %a routes %r weight %w {epilogue = 1 : i32} : (!a, !pack.routes<8 x 2>, !w) -> tensor<?x64xf32>
  return
}
