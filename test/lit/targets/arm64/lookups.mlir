// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon-dotprod | FileCheck %s
// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon | FileCheck %s

// Codebooks are looked up in a register.

!a = !pack.act<64 x block32, sums false, corr32 [12], corr16 []>
!w = !pack.weight<16 x 64, "mxfp4">

// CHECK-LABEL: book:
// CHECK: tbl {{.*}}.16b
plan.kernel @book(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
