// RUN: izh-opt %s --izh-lower-pack-to-plan | FileCheck %s
// Heads of 24 values fill tiles of 16 rows only in pairs: 3 query heads are two
// groups, one key head and one value head a group each. Attention works by key
// heads of each tile.

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!out = !pack.act<72 x f32, sums false, corr32 [], corr16 []>
!e = !pack.weight<64 x 64, "f16">
!q = !pack.weight<72 x 64, "f16">
!w = !pack.weight<24 x 64, "f16">
!o = !pack.weight<10 x 72, "f16">
!kv = !pack.kv<1 x 24, page 64>

// CHECK: plan.state "c" page_bytes 7168
// CHECK: plan.dispatch @matmul_heads_2 {{.*}} units 4 per fixed grain 1
// CHECK: plan.dispatch @attention_3 spaces [0, 3, 4, 4, 0] offsets [{{[0-9]+}}, 0, 4, 5, {{[0-9]+}}] {{.*}} units 1 per tiles grain 1
func.func @step() -> tensor<?x10xf32> {
  %ids = pack.input ids : tensor<?xi32>
  %slots = pack.input slots : tensor<?xi32>
  %tiles = pack.input tiles : tensor<?xi32>
  %pages = pack.input pages : tensor<?xi32>
  %rows = pack.input output_rows : tensor<?xi32>
  %e = pack.weight "e" : !e
  %wq = pack.weight "q" : !q
  %wk = pack.weight "k" : !w
  %wo = pack.weight "o" : !o
  %c = pack.state "c" : !kv
  %x = pack.embed %ids, %e : (tensor<?xi32>, !e) -> tensor<?x64xf32>
  %a = pack.quantize %x : (tensor<?x64xf32>) -> !a
  %q, %d = pack.matmul_heads %a weights(%wq, %wk, %wk) slots %slots cache %c {head_dim = 24, rotary = 0, rope = 0 : i32}
      : (!a, !q, !w, !w, tensor<?xi32>, !kv) -> (tensor<?x72xf32>, !kv)
  %o = pack.attention %q cache %d tiles %tiles pages %pages {heads = 3, scale = 0.2 : f32, tile = 8}
      : (tensor<?x72xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x72xf32>
  %out = pack.quantize %o indices %rows {row_set = 1 : i32} : (tensor<?x72xf32>, tensor<?xi32>) -> !out
  %y = pack.matmul %out weights(%wo) {row_set = 1 : i32} : (!out, !o) -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}
