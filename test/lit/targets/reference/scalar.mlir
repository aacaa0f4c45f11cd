// RUN: izh-opt %s -o %t --izh-print-assembly=target=reference | FileCheck %s

// The oracle computes one value at a time: no packed arithmetic, no fused
// multiply and add, no call, nothing beyond SSE2.

!a = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<16 x 64, "q4_0">
!q = memref<?x128xf32>
!kv = !pack.kv<1 x 64, page 64>

// CHECK-NOT: {{%[yz]mm|(mul|add|sub|div)p[sd]|pmul|pmadd|padd[bwdq]|fmadd|call}}
// CHECK-LABEL: nibbles:
// CHECK: imull
// CHECK: mulss
// CHECK-NOT: {{%[yz]mm|(mul|add|sub|div)p[sd]|pmul|pmadd|padd[bwdq]|fmadd|call}}
// CHECK-LABEL: attention:
// CHECK-NOT: {{%[yz]mm|(mul|add|sub|div)p[sd]|pmul|pmadd|padd[bwdq]|fmadd|call}}
plan.kernel @nibbles(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
plan.kernel @attention(%q: !q, %c: !kv, %t: memref<?xi32>, %p: memref<?xi32>, %o: !q) {
  pack.attention %q cache %c tiles %t pages %p into %o
    {scale = 0.125 : f32, heads = 2 : i64, tile = 8 : i64}
    : (!q, !kv, memref<?xi32>, memref<?xi32>, !q) -> ()
}
