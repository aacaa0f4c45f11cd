// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon-i8mm | FileCheck %s

// Eight rows of activations are multiplied two by two. Codes are zipped before
// they are unpacked: two zips for the sixteen dwords of two vectors of nibbles.

!a = !pack.act<512 x block256, sums true, corr32 [], corr16 []>
!w = !pack.weight<16 x 512, "q4_k">

// CHECK-LABEL: eight_rows:
// CHECK-NOT: sdot
// CHECK: zip1 [[LOW:v[0-9]+]].4s
// CHECK-NOT: sdot
// CHECK: and {{.*}}, [[LOW]].16b
// CHECK-NOT: sdot
// CHECK: smmla
plan.kernel @eight_rows(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
