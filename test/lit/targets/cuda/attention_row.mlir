// RUN: izh-opt %s -o %t --split-input-file --izh-print-assembly=target=cuda:sm_90 | FileCheck %s

// In a step of one row, the products of heads are only multiplied, by pairs of
// tiles; attention has a block for each head and span, loads old keys and values
// before it waits, finishes the heads, and merges the spans in the block that ends
// last.

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!i = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!q = !pack.weight<64 x 64, "q4_0">
!w = !pack.weight<32 x 64, "q4_0">
!kv = !pack.kv<1 x 32, page 64>

// CHECK-LABEL: .visible .entry matmul_heads_1_raw(
// CHECK: ld.global.nc.v4.b32
// CHECK: griddepcontrol.wait
// CHECK: mma.sync
// CHECK-LABEL: .visible .entry attention_2_one_matmul_heads_1(
// CHECK-NOT: griddepcontrol.wait
// CHECK: ld.global.nc.b32
// CHECK: griddepcontrol.wait
// CHECK: atom.add.acq_rel.gpu.global.u32
// CHECK: ld.relaxed.gpu.global.b32
// CHECK-NOT: .entry merge_3_one
plan.kernel @matmul_heads_1(%a: !i, %q: !q, %k: !w, %v: !w, %s: memref<?xi32>, %c: !kv, %o: memref<?x64xf32>) {
  pack.matmul_heads %a weights(%q, %k, %v) slots %s cache %c into %o {head_dim = 32 : i64, rotary = 0 : i64, rope = 0 : i32}
    : (!i, !q, !w, !w, memref<?xi32>, !kv, memref<?x64xf32>) -> ()
}
plan.kernel @attention_2(%q: memref<?x64xf32>, %c: !kv, %t: memref<?xi32>, %p: memref<?xi32>, %r: memref<?xi32>, %o: memref<?x64xf32>, %l: memref<?x96xf32>) {
  pack.attention %q cache %c tiles %t pages %p parts %r into %o partials %l
    {scale = 0.125 : f32, heads = 2 : i64, tile = 8 : i64}
    : (memref<?x64xf32>, !kv, memref<?xi32>, memref<?xi32>, memref<?xi32>, memref<?x64xf32>, memref<?x96xf32>) -> ()
}
plan.kernel @merge_3(%l: memref<?x96xf32>, %m: memref<?xi32>, %c: !kv, %o: memref<?x64xf32>) {
  pack.merge partials %l merges %m cache %c into %o {heads = 2 : i64}
    : (memref<?x96xf32>, memref<?xi32>, !kv, memref<?x64xf32>) -> ()
}
plan.dispatch @matmul_heads_1 spaces [0, 1, 1, 1, 4, 3, 0] offsets [0, 0, 2304, 3456, 3, 0, 4096]
  sizes [4096, 2304, 1152, 1152, 4, 16384, 4096] units 4 per fixed grain 1
plan.dispatch @attention_2 spaces [0, 3, 4, 4, 4, 0, 0] offsets [4096, 0, 4, 5, 6, 8192, 12288]
  sizes [4096, 16384, 4, 4, 4, 4096, 4096] units 1 per tiles grain 1
plan.dispatch @merge_3 spaces [0, 4, 3, 0] offsets [12288, 7, 0, 8192]
  sizes [4096, 4, 16384, 4096] units 2 per merges grain 4

// -----

// Where something else still reads the queries, they are finished for it.

!i = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!q = !pack.weight<64 x 64, "q4_0">
!w = !pack.weight<32 x 64, "q4_0">
!kv = !pack.kv<1 x 32, page 64>

// CHECK-LABEL: .visible .entry matmul_heads_1_one(
// CHECK-LABEL: .visible .entry attention_2_one(
// CHECK-NOT: .entry attention_2_one_matmul_heads_1
plan.kernel @matmul_heads_1(%a: !i, %q: !q, %k: !w, %v: !w, %s: memref<?xi32>, %c: !kv, %o: memref<?x64xf32>) {
  pack.matmul_heads %a weights(%q, %k, %v) slots %s cache %c into %o {head_dim = 32 : i64, rotary = 0 : i64, rope = 0 : i32}
    : (!i, !q, !w, !w, memref<?xi32>, !kv, memref<?x64xf32>) -> ()
}
plan.kernel @attention_2(%q: memref<?x64xf32>, %c: !kv, %t: memref<?xi32>, %p: memref<?xi32>, %r: memref<?xi32>, %o: memref<?x64xf32>, %l: memref<?x96xf32>) {
  pack.attention %q cache %c tiles %t pages %p parts %r into %o partials %l
    {scale = 0.125 : f32, heads = 2 : i64, tile = 8 : i64}
    : (memref<?x64xf32>, !kv, memref<?xi32>, memref<?xi32>, memref<?xi32>, memref<?x64xf32>, memref<?x96xf32>) -> ()
}
plan.kernel @merge_3(%l: memref<?x96xf32>, %m: memref<?xi32>, %c: !kv, %o: memref<?x64xf32>) {
  pack.merge partials %l merges %m cache %c into %o {heads = 2 : i64}
    : (memref<?x96xf32>, memref<?xi32>, !kv, memref<?x64xf32>) -> ()
}
plan.dispatch @matmul_heads_1 spaces [0, 1, 1, 1, 4, 3, 0] offsets [0, 0, 2304, 3456, 3, 0, 4096]
  sizes [4096, 2304, 1152, 1152, 4, 16384, 4096] units 4 per fixed grain 1
plan.dispatch @attention_2 spaces [0, 3, 4, 4, 4, 0, 0] offsets [4096, 0, 4, 5, 6, 8192, 12288]
  sizes [4096, 16384, 4, 4, 4, 4096, 4096] units 1 per tiles grain 1
plan.dispatch @merge_3 spaces [0, 4, 3, 0] offsets [12288, 7, 0, 8192]
  sizes [4096, 4, 16384, 4096] units 2 per merges grain 4
plan.dispatch @attention_2 spaces [0, 3, 4, 4, 4, 0, 0] offsets [4096, 0, 4, 5, 6, 8192, 12288]
  sizes [4096, 16384, 4, 4, 4, 4096, 4096] units 1 per tiles grain 1
