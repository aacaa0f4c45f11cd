// RUN: izh-opt %s --izh-lower-pack-to-plan | FileCheck %s
// A mixture of 8 experts, 2 for each token: stacks are placed whole, rows of
// pairs have room for 256, and units are tiles of one expert's matrix.

!f = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!a = !pack.act<64 x block32, sums false, corr32 [128], corr16 []>
!h = !pack.act<120 x f32, sums false, corr32 [], corr16 []>
!r = !pack.routes<8 x 2>
!up = !pack.weight<120 x 64, "q8_0", count 8>
!down = !pack.weight<64 x 120, "f16", count 8>
!head = !pack.weight<128 x 64, "q8_0">

// 120 rows of each expert are 8 tiles of 1088 bytes.
// CHECK: plan.weight "up" format "q8_0" rows 120 cols 64 at {{[0-9]+}} size 69632 {count = 8 : i64}
// CHECK: plan.kernel @route_{{.*}}(%arg0: memref<?x8xf32>, %arg1: !pack.routes<8 x 2>)
// CHECK: plan.kernel @expert_gate_
// CHECK: plan.kernel @expert_sum_
// The table: 64 bytes, 16 for each expert, 16 for each of 256 pairs.
// CHECK: plan.dispatch @route_{{.*}} sizes [{{[0-9]+}}, 16576] units 1 per fixed grain 1
// CHECK: plan.dispatch @quantize_{{.*}} units 2 per tokens grain 2
// CHECK: plan.dispatch @expert_gate_{{.*}} units 8 per fixed grain 1
// CHECK: plan.dispatch @expert_sum_{{.*}} units 4 per fixed grain 2
func.func @step() -> tensor<?x128xf32> {
  %ids = pack.input ids : tensor<?xi32>
  %rows = pack.input output_rows : tensor<?xi32>
  %head = pack.weight "head" : !head
  %up = pack.weight "up" : !up
  %down = pack.weight "down" : !down
  %router = pack.weight "router" : !pack.weight<8 x 64, "f32">
  %x = pack.embed %ids, %head : (tensor<?xi32>, !head) -> tensor<?x64xf32>
  %q = pack.quantize %x : (tensor<?x64xf32>) -> !f
  %l = pack.matmul %q weights(%router) : (!f, !pack.weight<8 x 64, "f32">) -> tensor<?x8xf32>
  %r = pack.route %l softmax : (tensor<?x8xf32>) -> !r
  %a = pack.quantize %x indices %r {per_token = 2 : i64} : (tensor<?x64xf32>, !r) -> !a
  %g = pack.expert_gate %a routes %r weights(%up, %up) silu : (!a, !r, !up, !up) -> tensor<?x120xf32>
  %h = pack.quantize %g {per_token = 2 : i64} : (tensor<?x120xf32>) -> !h
  %y = pack.expert_sum %h routes %r weight %down residual %x {epilogue = 1 : i32} : (!h, !r, !down, tensor<?x64xf32>) -> tensor<?x64xf32>
  %out = pack.quantize %y indices %rows {row_set = 1 : i32} : (tensor<?x64xf32>, tensor<?xi32>) -> !a
  %logits = pack.matmul %out weights(%head) {row_set = 1 : i32} : (!a, !head) -> tensor<?x128xf32>
  return %logits : tensor<?x128xf32>
}
