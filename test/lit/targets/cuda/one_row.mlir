// RUN: izh-opt %s -o %t --split-input-file --izh-print-assembly=target=cuda:sm_90 | FileCheck %s

// A product that alone reads a record has a form that makes it, for steps of one
// row: weights are loaded before earlier kernels have ended, all else after.

!a = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<32 x 64, "q4_0">

// CHECK-LABEL: .visible .entry matmul_1_one_quantize_0(
// CHECK: .param .u64 matmul_1_one_quantize_0_param_8
// CHECK: griddepcontrol.launch_dependents
// CHECK: ld.global.nc.v4.b32
// CHECK: griddepcontrol.wait
// CHECK: cvt.rni.s32.f32
// CHECK: mma.sync.aligned.m16n8k32
plan.kernel @quantize_0(%x: memref<?x64xf32>, %n: memref<64xf32>, %o: !a) {
  pack.quantize %x norm %n into %o {eps = 1.0e-5 : f32} : (memref<?x64xf32>, memref<64xf32>, !a) -> ()
}
plan.kernel @matmul_1(%a: !a, %w: !w, %o: memref<?x32xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x32xf32>) -> ()
}
plan.dispatch @quantize_0 spaces [0, 2, 0] offsets [0, 0, 32768] sizes [32768, 256, 32768]
  units 1 per tokens grain 1
plan.dispatch @matmul_1 spaces [0, 1, 0] offsets [32768, 0, 65536] sizes [32768, 1152, 16384]
  units 2 per fixed grain 1

// -----

// Where the product is written over the row, blocks that begin late would find
// something else: the record is made by a kernel of its own.

!a = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<32 x 64, "q4_0">

// CHECK-LABEL: .visible .entry late_1_one(
// CHECK-NOT: cvt.rni.s32.f32
// CHECK: mma.sync.aligned.m16n8k32
// CHECK-NOT: .entry late_1_one_early_0
plan.kernel @early_0(%x: memref<?x64xf32>, %o: !a) {
  pack.quantize %x into %o : (memref<?x64xf32>, !a) -> ()
}
plan.kernel @late_1(%a: !a, %w: !w, %o: memref<?x32xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x32xf32>) -> ()
}
plan.dispatch @early_0 spaces [0, 0] offsets [0, 32768] sizes [32768, 32768]
  units 1 per tokens grain 1
plan.dispatch @late_1 spaces [0, 1, 0] offsets [32768, 0, 16384] sizes [32768, 1152, 16384]
  units 2 per fixed grain 1

// -----

// A gated product of many rows leaves the record of what it stores, a block of 32 at a
// time, and its reader begins with a copy of that.

!narrow = !pack.act<4096 x block32, sums false, corr32 [8], corr16 []>
!wide = !pack.act<8192 x block32, sums false, corr32 [8], corr16 []>
!up = !pack.weight<8192 x 4096, "q4_0">
!down = !pack.weight<64 x 8192, "q4_0">

// CHECK-LABEL: .visible .entry gate_0_one_leaves_quantize_1_
// CHECK: mbarrier.init
// CHECK: cp.async.bulk
// CHECK: griddepcontrol.wait
// CHECK: mma.sync.aligned.m16n8k32
// CHECK: cvt.rni.s32.f32
// CHECK: st.global.{{b8|u8}}
// CHECK-LABEL: .visible .entry down_2_one_left(
// CHECK: griddepcontrol.wait
// CHECK-NOT: cvt.rni.s32.f32
// CHECK: mma.sync.aligned.m16n8k32
plan.kernel @gate_0(%a: !narrow, %g: !up, %u: !up, %o: memref<?x8192xf32>) {
  pack.matmul %a weights(%g, %u) into %o {epilogue = 2 : i32} : (!narrow, !up, !up, memref<?x8192xf32>) -> ()
}
plan.kernel @quantize_1(%x: memref<?x8192xf32>, %o: !wide) {
  pack.quantize %x into %o : (memref<?x8192xf32>, !wide) -> ()
}
plan.kernel @down_2(%a: !wide, %w: !down, %o: memref<?x64xf32>) {
  pack.matmul %a weights(%w) into %o : (!wide, !down, memref<?x64xf32>) -> ()
}
plan.dispatch @gate_0 spaces [0, 1, 1, 0] offsets [0, 0, 18874368, 327680] sizes [327680, 18874368, 18874368, 4194304]
  units 512 per fixed grain 1
plan.dispatch @quantize_1 spaces [0, 0] offsets [327680, 4521984] sizes [4194304, 4194304]
  units 1 per tokens grain 1
plan.dispatch @down_2 spaces [0, 1, 0] offsets [4521984, 0, 8716288] sizes [4194304, 294912, 32768]
  units 4 per fixed grain 1
