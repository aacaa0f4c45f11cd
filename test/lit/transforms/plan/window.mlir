// RUN: izh-opt %s --izh-lower-pack-to-plan | FileCheck %s
// A cache of which only a window is read: the plan says so, and its writer and its
// reader find the pages in arrays of their own, the inputs 9 and 10.

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!out = !pack.act<32 x f32, sums false, corr32 [], corr16 []>
!e = !pack.weight<64 x 64, "f16">
!w = !pack.weight<32 x 64, "f16">
!o = !pack.weight<10 x 32, "f16">
!kv = !pack.kv<2 x 16, page 64>

// CHECK: plan.state "c" page_bytes {{[0-9]+}} {window = 9 : i64}
// CHECK: plan.dispatch @matmul_heads_2 spaces {{.*}} offsets [{{.*}}, 9, 0, {{[0-9]+}}]
// CHECK: plan.dispatch @attention_3 spaces [0, 3, 4, 4, 0] offsets [{{[0-9]+}}, 0, 4, 10, {{[0-9]+}}]
func.func @step() -> tensor<?x10xf32> {
  %ids = pack.input ids : tensor<?xi32>
  %slots = pack.input slots {windowed} : tensor<?xi32>
  %tiles = pack.input tiles : tensor<?xi32>
  %pages = pack.input pages {windowed} : tensor<?xi32>
  %rows = pack.input output_rows : tensor<?xi32>
  %e = pack.weight "e" : !e
  %w = pack.weight "w" : !w
  %wo = pack.weight "o" : !o
  %c = pack.state "c" {window = 9 : i64} : !kv
  %x = pack.embed %ids, %e : (tensor<?xi32>, !e) -> tensor<?x64xf32>
  %a = pack.quantize %x : (tensor<?x64xf32>) -> !a
  %q, %d = pack.matmul_heads %a weights(%w, %w, %w) slots %slots cache %c {head_dim = 16, rotary = 0, rope = 0 : i32}
      : (!a, !w, !w, !w, tensor<?xi32>, !kv) -> (tensor<?x32xf32>, !kv)
  %o = pack.attention %q cache %d tiles %tiles pages %pages {heads = 2, scale = 0.2 : f32, tile = 8, window = 9}
      : (tensor<?x32xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x32xf32>
  %out = pack.quantize %o indices %rows {row_set = 1 : i32} : (tensor<?x32xf32>, tensor<?xi32>) -> !out
  %y = pack.matmul %out weights(%wo) {row_set = 1 : i32} : (!out, !o) -> tensor<?x10xf32>
  return %y : tensor<?x10xf32>
}
