// RUN: izh-opt %s --izh-fuse-gate --split-input-file | FileCheck %s

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">

// gate comes first, whichever factor is the silu.
// CHECK-LABEL: func.func @fuses
func.func @fuses(%a: !a, %wg: !w, %wu: !w) -> tensor<?x16xf32> {
  // CHECK-NEXT: %[[H:.*]] = pack.matmul %arg0 weights(%arg1, %arg2) {epilogue = 2 : i32}
  // CHECK-NEXT: return %[[H]]
  %u = pack.matmul %a weights(%wu) : (!a, !w) -> tensor<?x16xf32>
  %g = pack.matmul %a weights(%wg) : (!a, !w) -> tensor<?x16xf32>
  %s = lm.silu %g : tensor<?x16xf32>
  %h = lm.mul %u, %s : tensor<?x16xf32>
  return %h : tensor<?x16xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">

// gelu has an epilogue of its own.
// CHECK-LABEL: func.func @fuses_gelu
func.func @fuses_gelu(%a: !a, %wg: !w, %wu: !w) -> tensor<?x16xf32> {
  // CHECK-NEXT: pack.matmul %arg0 weights(%arg1, %arg2) {epilogue = 3 : i32}
  %g = pack.matmul %a weights(%wg) : (!a, !w) -> tensor<?x16xf32>
  %u = pack.matmul %a weights(%wu) : (!a, !w) -> tensor<?x16xf32>
  %s = lm.gelu %g : tensor<?x16xf32>
  %h = lm.mul %s, %u : tensor<?x16xf32>
  return %h : tensor<?x16xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">

// The gate's rows are read elsewhere, so they must stay.
// CHECK-LABEL: func.func @keeps_shared_gate
func.func @keeps_shared_gate(%a: !a, %wg: !w, %wu: !w) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK: lm.silu
  // CHECK: lm.mul
  %g = pack.matmul %a weights(%wg) : (!a, !w) -> tensor<?x16xf32>
  %u = pack.matmul %a weights(%wu) : (!a, !w) -> tensor<?x16xf32>
  %s = lm.silu %g : tensor<?x16xf32>
  %h = lm.mul %s, %u : tensor<?x16xf32>
  return %h, %g : tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">

// One kernel reads one set of activations.
// CHECK-LABEL: func.func @keeps_different_activations
func.func @keeps_different_activations(%a: !a, %b: !a, %w: !w) -> tensor<?x16xf32> {
  // CHECK: lm.mul
  %g = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x16xf32>
  %u = pack.matmul %b weights(%w) : (!a, !w) -> tensor<?x16xf32>
  %s = lm.silu %g : tensor<?x16xf32>
  %h = lm.mul %s, %u : tensor<?x16xf32>
  return %h : tensor<?x16xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">

// A product without a bias gets one of zeros beside one that has one.
// CHECK-LABEL: func.func @fuses_single_bias
func.func @fuses_single_bias(%a: !a, %w: !w, %b: tensor<16xf32>) -> tensor<?x16xf32> {
  // CHECK: %[[ZEROS:.*]] = pack.vector "zeros.16"
  // CHECK: pack.matmul %arg0 weights(%arg1, %arg1) biases(%arg2, %[[ZEROS]]) {epilogue = 2 : i32}
  %g = pack.matmul %a weights(%w) biases(%b) : (!a, !w, tensor<16xf32>) -> tensor<?x16xf32>
  %u = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x16xf32>
  %s = lm.silu %g : tensor<?x16xf32>
  %h = lm.mul %s, %u : tensor<?x16xf32>
  return %h : tensor<?x16xf32>
}
