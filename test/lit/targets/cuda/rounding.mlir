// RUN: izh-opt %s -o %t --izh-print-assembly=target=cuda:sm_80 | FileCheck %s

// Codes are rounded by a conversion, and four of them stored as a word. The sum of a number and 1.5 * 2^23 has them
// in its low byte too, but ptxas stores that byte as the sum converted to one.

!a = !pack.act<64 x block32, sums false, corr32 [], corr16 []>

// CHECK-LABEL: .visible .entry codes(
// CHECK-NOT: 0f4B400000
// CHECK: cvt.rni.s32.f32
// CHECK: st.global.b32
plan.kernel @codes(%x: memref<?x64xf32>, %o: !a) {
  pack.quantize %x into %o : (memref<?x64xf32>, !a) -> ()
}
