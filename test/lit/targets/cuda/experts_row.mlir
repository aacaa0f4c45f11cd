// RUN: izh-opt %s -o %t --split-input-file --izh-print-assembly=target=cuda:sm_90 | FileCheck %s

// In a step of one row the kernel of the ratings makes their row and leaves the record of
// the experts' products, which make the choice; the sum makes it, and loads weights, before
// the gate has ended.

!row = !pack.act<256 x f32, sums false, corr32 [], corr16 []>
!a = !pack.act<256 x block32, sums false, corr32 [8], corr16 []>
!h = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!routes = !pack.routes<32 x 4>
!up = !pack.weight<64 x 256, "q4_0", count 32>
!down = !pack.weight<256 x 64, "q4_0", count 32>

// CHECK-LABEL: .visible .entry ratings_1_one_quantize_0_leaves_quantize_3_4096(
// CHECK: griddepcontrol.launch_dependents
// CHECK: ld.global.nc.b32
// CHECK: griddepcontrol.wait
// CHECK: fma.rn.f32
// CHECK: cvt.rni.s32.f32
// CHECK-LABEL: .visible .entry gate_4_one_route_2_left_late(
// CHECK-NOT: griddepcontrol.launch_dependents
// CHECK: griddepcontrol.wait
// CHECK: griddepcontrol.launch_dependents
// CHECK: ld.relaxed.gpu.global
// CHECK: redux.sync.max.u32
// CHECK: ld.global.nc
// CHECK-LABEL: .visible .entry sum_6_one_route_2_early_makes_quantize_5_
// CHECK: griddepcontrol.launch_dependents
// CHECK: ld.relaxed.gpu.global
// CHECK: redux.sync.max.u32
// CHECK: ld.global.nc
// CHECK: griddepcontrol.wait
// CHECK: cvt.rni.s32.f32
// CHECK-NOT: .entry route_2_one
plan.kernel @quantize_0(%x: memref<?x256xf32>, %n: memref<256xf32>, %o: !row) {
  pack.quantize %x norm %n into %o {eps = 1.0e-6 : f32} : (memref<?x256xf32>, memref<256xf32>, !row) -> ()
}
plan.kernel @ratings_1(%a: !row, %w: !pack.weight<32 x 256, "f32">, %o: memref<?x32xf32>) {
  pack.matmul %a weights(%w) into %o : (!row, !pack.weight<32 x 256, "f32">, memref<?x32xf32>) -> ()
}
plan.kernel @route_2(%r: memref<?x32xf32>, %o: !routes) {
  pack.route %r softmax into %o {normalize} : (memref<?x32xf32>, !routes) -> ()
}
plan.kernel @quantize_3(%x: memref<?x256xf32>, %n: memref<256xf32>, %i: !routes, %o: !a) {
  pack.quantize %x norm %n indices %i into %o {eps = 1.0e-6 : f32, per_token = 4 : i64} : (memref<?x256xf32>, memref<256xf32>, !routes, !a) -> ()
}
plan.kernel @gate_4(%a: !a, %r: !routes, %g: !up, %u: !up, %o: memref<?x64xf32>) {
  pack.expert_gate %a routes %r weights(%g, %u) silu into %o : (!a, !routes, !up, !up, memref<?x64xf32>) -> ()
}
plan.kernel @quantize_5(%x: memref<?x64xf32>, %o: !h) {
  pack.quantize %x into %o {per_token = 4 : i64} : (memref<?x64xf32>, !h) -> ()
}
plan.kernel @sum_6(%a: !h, %r: !routes, %w: !down, %o: memref<?x256xf32>) {
  pack.expert_sum %a routes %r weight %w into %o {epilogue = 1 : i32} : (!h, !routes, !down, memref<?x256xf32>) -> ()
}
plan.dispatch @quantize_0 spaces [0, 2, 0] offsets [0, 0, 16384] sizes [16384, 1024, 32768]
  units 1 per tokens grain 1
plan.dispatch @ratings_1 spaces [0, 1, 0] offsets [16384, 0, 49152] sizes [32768, 32768, 2048]
  units 2 per fixed grain 1
plan.dispatch @route_2 spaces [0, 0] offsets [49152, 51200] sizes [2048, 2048]
  units 1 per fixed grain 1
plan.dispatch @quantize_3 spaces [0, 2, 0, 0] offsets [0, 0, 51200, 53248] sizes [16384, 1024, 2048, 24576]
  units 4 per tokens grain 1
plan.dispatch @gate_4 spaces [0, 0, 1, 1, 0] offsets [53248, 51200, 32768, 327680, 77824] sizes [24576, 2048, 294912, 294912, 16384]
  units 4 per fixed grain 1
plan.dispatch @quantize_5 spaces [0, 0] offsets [77824, 94208] sizes [16384, 8192]
  units 4 per tokens grain 1
plan.dispatch @sum_6 spaces [0, 0, 1, 0] offsets [94208, 51200, 622592, 0] sizes [8192, 2048, 294912, 16384]
  units 16 per fixed grain 1

// -----

// Where the products of experts are written over the ratings, the choice is a kernel of its
// own; where the two rows are normalized otherwise, so is the experts' record.

!row = !pack.act<256 x f32, sums false, corr32 [], corr16 []>
!a = !pack.act<256 x block32, sums false, corr32 [8], corr16 []>
!h = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!routes = !pack.routes<32 x 4>
!up = !pack.weight<64 x 256, "q4_0", count 32>
!down = !pack.weight<256 x 64, "q4_0", count 32>

// CHECK-LABEL: .visible .entry rates_1_one_quant_0(
// CHECK-LABEL: .visible .entry choice_2_one(
// CHECK-LABEL: .visible .entry gates_4_one(
plan.kernel @quant_0(%x: memref<?x256xf32>, %n: memref<256xf32>, %o: !row) {
  pack.quantize %x norm %n into %o {eps = 1.0e-6 : f32} : (memref<?x256xf32>, memref<256xf32>, !row) -> ()
}
plan.kernel @rates_1(%a: !row, %w: !pack.weight<32 x 256, "f32">, %o: memref<?x32xf32>) {
  pack.matmul %a weights(%w) into %o : (!row, !pack.weight<32 x 256, "f32">, memref<?x32xf32>) -> ()
}
plan.kernel @choice_2(%r: memref<?x32xf32>, %o: !routes) {
  pack.route %r softmax into %o {normalize} : (memref<?x32xf32>, !routes) -> ()
}
plan.kernel @quant_3(%x: memref<?x256xf32>, %n: memref<256xf32>, %i: !routes, %o: !a) {
  pack.quantize %x norm %n indices %i into %o {eps = 1.0e-5 : f32, per_token = 4 : i64} : (memref<?x256xf32>, memref<256xf32>, !routes, !a) -> ()
}
plan.kernel @gates_4(%a: !a, %r: !routes, %g: !up, %u: !up, %o: memref<?x64xf32>) {
  pack.expert_gate %a routes %r weights(%g, %u) silu into %o : (!a, !routes, !up, !up, memref<?x64xf32>) -> ()
}
plan.kernel @quant_5(%x: memref<?x64xf32>, %o: !h) {
  pack.quantize %x into %o {per_token = 4 : i64} : (memref<?x64xf32>, !h) -> ()
}
plan.kernel @sums_6(%a: !h, %r: !routes, %w: !down, %o: memref<?x256xf32>) {
  pack.expert_sum %a routes %r weight %w into %o {epilogue = 1 : i32} : (!h, !routes, !down, memref<?x256xf32>) -> ()
}
plan.dispatch @quant_0 spaces [0, 2, 0] offsets [0, 0, 16384] sizes [16384, 1024, 32768]
  units 1 per tokens grain 1
plan.dispatch @rates_1 spaces [0, 1, 0] offsets [16384, 0, 49152] sizes [32768, 32768, 2048]
  units 2 per fixed grain 1
plan.dispatch @choice_2 spaces [0, 0] offsets [49152, 51200] sizes [2048, 2048]
  units 1 per fixed grain 1
plan.dispatch @quant_3 spaces [0, 2, 0, 0] offsets [0, 0, 51200, 53248] sizes [16384, 1024, 2048, 24576]
  units 4 per tokens grain 1
plan.dispatch @gates_4 spaces [0, 0, 1, 1, 0] offsets [53248, 51200, 32768, 327680, 49152] sizes [24576, 2048, 294912, 294912, 2048]
  units 4 per fixed grain 1
plan.dispatch @quant_5 spaces [0, 0] offsets [49152, 94208] sizes [2048, 8192]
  units 4 per tokens grain 1
plan.dispatch @sums_6 spaces [0, 0, 1, 0] offsets [94208, 51200, 622592, 0] sizes [8192, 2048, 294912, 16384]
  units 16 per fixed grain 1
