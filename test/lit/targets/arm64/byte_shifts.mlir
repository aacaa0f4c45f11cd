// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon-dotprod | FileCheck %s
// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon-i8mm | FileCheck %s

// The upper nibbles of bytes are one shift: no shift of words, and no mask for
// what that would bring in from the neighbour.

!a = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<16 x 64, "q4_0">

// CHECK-LABEL: nibbles:
// CHECK-NOT: ushr {{.*}}.8h
// CHECK: ushr [[HIGH:v[0-9]+]].16b, {{.*}}, #4
// CHECK-NOT: {{and .*, }}[[HIGH]].16b
// CHECK: {{sdot|zip}}
// CHECK-NOT: ushr {{.*}}.8h
plan.kernel @nibbles(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
