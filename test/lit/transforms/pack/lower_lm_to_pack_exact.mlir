// RUN: izh-opt %s --izh-lower-lm-to-pack=exact | FileCheck %s

// With `exact` no activation is rounded, whatever the weights are.
// CHECK-LABEL: func.func @exact
func.func @exact(%x: tensor<?x64xf32>) -> tensor<?x16xf32> {
  // CHECK: pack.quantize %arg0 {{.*}} !pack.act<64 x f32, sums false, corr32[], corr16[]>
  %a = lm.weight "a" format "q4_1" : tensor<16x64xf32>
  %y = lm.linear %x weights(%a) : (tensor<?x64xf32>, tensor<16x64xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
