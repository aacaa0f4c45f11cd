// RUN: izh-opt %s --izh-lower-pack-to-plan | FileCheck %s
// A step with two equal layers: kernels are shared, weights come in the order
// of first use, rows and records have room for 128 tokens.

!a = !pack.act<64 x block32, sums false, corr32 [128], corr16 []>
!w = !pack.weight<64 x 64, "q8_0">
!head = !pack.weight<100 x 64, "q8_0">

// 100 rows are 7 tiles; logits are 128 * 100 floats.
// CHECK: plan.memory arena {{[0-9]+}} weights 16320 constants 320 logits {{[0-9]+}} vocabulary 100 tokens 512 outputs 128 tile 128 page 64 span 256 partials 1024
// CHECK-NEXT: plan.weight "head" format "q8_0" rows 100 cols 64 at 0 size 7616
// CHECK-NEXT: plan.weight "down.0" format "q8_0" rows 64 cols 64 at 7616 size 4352
// CHECK-NEXT: plan.weight "down.1" format "q8_0" rows 64 cols 64 at 11968 size 4352
// CHECK-NEXT: plan.constant "norm" count 64 at 0 size 320
// CHECK-NEXT: plan.kernel @embed_0(%arg0: memref<?xi32>, %arg1: !pack.weight<100 x 64, "q8_0">, %arg2: memref<?x64xf32>) {
// CHECK-NEXT:   pack.embed %arg0, %arg1 into %arg2
// CHECK:      plan.kernel @quantize_1(%arg0: memref<?x64xf32>, %arg1: memref<64xf32>, %arg2: !pack.act
// CHECK-NEXT:   pack.quantize %arg0 norm %arg1 into %arg2 {eps = 1.000000e-03 : f32}
// CHECK:      plan.kernel @matmul_2(
// CHECK-NEXT:   pack.matmul %arg0 weights(%arg1) into %arg2 {epilogue = 1 : i32}
// CHECK:      plan.kernel @quantize_3(%arg0: memref<?x64xf32>, %arg1: memref<?xi32>,
// CHECK-NEXT:   pack.quantize %arg0 indices %arg1 into %arg2 {row_set = 1 : i32}
// CHECK:      plan.kernel @matmul_4(
// CHECK-NOT:  plan.kernel
// 128 rows of 64 floats and 64 bytes behind them; 128 records of 192 bytes.
// CHECK:      plan.dispatch @embed_0 spaces [4, 1, 0] offsets [0, 0, [[X:[0-9]+]]] sizes [0, 7616, 131136] units 1 per tokens grain 1
// CHECK-NEXT: plan.dispatch @quantize_1 spaces [0, 2, 0] offsets {{\[}}[[X]], 0, [[A:[0-9]+]]] sizes [131136, 320, 98304] units 1 per tokens grain 1
// CHECK-NEXT: plan.dispatch @matmul_2 spaces [0, 1, 0] offsets {{\[}}[[A]], 7616, [[X]]] sizes [98304, 4352, 131136] units 4 per fixed grain 2 {token_bytes = 4352 : i64, token_operations = 8192 : i64}
// CHECK-NEXT: plan.dispatch @quantize_1
// CHECK-NEXT: plan.dispatch @matmul_2 spaces [0, 1, 0] offsets {{\[[0-9]+}}, 11968, [[X]]]
// CHECK-NEXT: plan.dispatch @quantize_3 spaces [0, 4, 0] offsets {{\[}}[[X]], 3, {{.*}} units 1 per outputs grain 1
// CHECK-NEXT: plan.dispatch @matmul_4 {{.*}} sizes [24576, 7616, 51264] units 7 per fixed grain 2 {output_operations = 12800 : i64, token_bytes = 7616 : i64}
// CHECK-NOT:  func.func
func.func @step() -> tensor<?x100xf32> {
  %unused = pack.weight "unused" : !w
  %down1 = pack.weight "down.1" : !w
  %down0 = pack.weight "down.0" : !w
  %head = pack.weight "head" : !head
  %norm = pack.vector "norm" : tensor<64xf32>
  %ids = pack.input ids : tensor<?xi32>
  %rows = pack.input output_rows : tensor<?xi32>
  %x = pack.embed %ids, %head : (tensor<?xi32>, !head) -> tensor<?x64xf32>
  %a0 = pack.quantize %x norm %norm {eps = 1.0e-3 : f32} : (tensor<?x64xf32>, tensor<64xf32>) -> !a
  %y = pack.matmul %a0 weights(%down0) residual %x {epilogue = 1 : i32} : (!a, !w, tensor<?x64xf32>) -> tensor<?x64xf32>
  %a1 = pack.quantize %y norm %norm {eps = 1.0e-3 : f32} : (tensor<?x64xf32>, tensor<64xf32>) -> !a
  %z = pack.matmul %a1 weights(%down1) residual %y {epilogue = 1 : i32} : (!a, !w, tensor<?x64xf32>) -> tensor<?x64xf32>
  %out = pack.quantize %z indices %rows {row_set = 1 : i32} : (tensor<?x64xf32>, tensor<?xi32>) -> !a
  %logits = pack.matmul %out weights(%head) {row_set = 1 : i32} : (!a, !head) -> tensor<?x100xf32>
  return %logits : tensor<?x100xf32>
}
