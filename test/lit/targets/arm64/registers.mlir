// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon | FileCheck %s
// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon-dotprod | FileCheck %s
// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon-i8mm | FileCheck %s

// No kernel calls a function, reads addresses from a table that a loader would
// have to fill, or computes in half floats, which Armv8.0 can only convert.

!q = memref<?x128xf32>
!kv = !pack.kv<1 x 64, page 64>
!f = !pack.act<128 x f32, sums false, corr32 [], corr16 []>
!a = !pack.act<256 x block256, sums true, corr32 [], corr16 [32]>
!w = !pack.weight<16 x 128, "f16">

// CHECK-NOT: {{[[:space:]]bl[[:space:]]|:got|fmla.*8h}}
// CHECK-LABEL: attention:
// CHECK: fcvtl {{.*}}.4s
// CHECK: fmla {{.*}}.4s
// CHECK-NOT: {{[[:space:]]bl[[:space:]]|:got|fmla.*8h}}
// CHECK-LABEL: quantize:
// CHECK-NOT: {{[[:space:]]bl[[:space:]]|:got|fmla.*8h}}
// CHECK-LABEL: floats:
// CHECK: fmla {{.*}}.4s
// CHECK-NOT: {{[[:space:]]bl[[:space:]]|:got|fmla.*8h}}
// CHECK-LABEL: embed:
// CHECK: fcvt s
// CHECK-NOT: {{[[:space:]]bl[[:space:]]|:got|fmla.*8h}}
// CHECK-LABEL: angles:
// CHECK-NOT: {{[[:space:]]bl[[:space:]]|:got|fmla.*8h}}

plan.kernel @attention(%q: !q, %c: !kv, %t: memref<?xi32>, %p: memref<?xi32>, %o: !q) {
  pack.attention %q cache %c tiles %t pages %p into %o
    {scale = 0.125 : f32, heads = 2 : i64, tile = 8 : i64}
    : (!q, !kv, memref<?xi32>, memref<?xi32>, !q) -> ()
}
plan.kernel @quantize(%x: memref<?x256xf32>, %n: memref<256xf32>, %o: !a) {
  pack.quantize %x norm %n into %o {eps = 1.0e-5 : f32}
    : (memref<?x256xf32>, memref<256xf32>, !a) -> ()
}
plan.kernel @floats(%a: !f, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!f, !w, memref<?x16xf32>) -> ()
}
plan.kernel @embed(%i: memref<?xi32>, %w: !w, %o: !q) {
  pack.embed %i, %w into %o : (memref<?xi32>, !w, !q) -> ()
}
plan.kernel @angles(%p: memref<?xi32>, %f: memref<32xf32>, %o: memref<?x64xf32>) {
  pack.rope_table %p, %f into %o : (memref<?xi32>, memref<32xf32>, memref<?x64xf32>) -> ()
}
