// RUN: izh-opt %s -o %t --izh-print-assembly=target=cuda:sm_80 | FileCheck %s

// Codebooks of 16 entries are looked up by permutations of bytes, signed codes
// multiplied as such.

!a = !pack.act<64 x block32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "iq4_nl">

// CHECK-LABEL: .visible .entry codebook(
// CHECK: prmt.b32
// CHECK: prmt.b32
// CHECK: mma.sync.aligned.m16n8k32
plan.kernel @codebook(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
