// RUN: izh-opt %s --canonicalize | FileCheck %s
// Folds of `lm` must not change a single bit of the result.

// A product with 1 is the value itself.
// CHECK-LABEL: func.func @scale_by_one
func.func @scale_by_one(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: return %arg0
  %y = lm.scale %x by 1.0 : tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// Powers of two never round, so both scales are one.
// CHECK-LABEL: func.func @scale_twice
func.func @scale_twice(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: lm.scale %arg0 by 1.500000e+00
  // CHECK-NEXT: return
  %y = lm.scale %x by 3.0 : tensor<?x8xf32>
  %z = lm.scale %y by 0.5 : tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}

// Two products that round differently from one stay two.
// CHECK-LABEL: func.func @keeps_inexact_scales
func.func @keeps_inexact_scales(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: lm.scale %arg0 by
  // CHECK-NEXT: lm.scale
  %y = lm.scale %x by 3.0 : tensor<?x8xf32>
  %z = lm.scale %y by 0.7 : tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}
