// RUN: izh-opt %s --izh-merge-projections --split-input-file | FileCheck %s

// Products of the same rows share one op, though the second weight is named
// after the first product.
// CHECK-LABEL: func.func @merges
func.func @merges(%x: tensor<?x8xf32>) -> (tensor<?x4xf32>, tensor<?x6xf32>) {
  // CHECK: %[[A:.*]] = lm.weight "a"
  // CHECK: %[[B:.*]] = lm.weight "b"
  // CHECK: %[[R:.*]]:2 = lm.linear %arg0 weights(%[[A]], %[[B]])
  // CHECK: return %[[R]]#0, %[[R]]#1
  %a = lm.weight "a" format "f16" : tensor<4x8xf32>
  %y = lm.linear %x weights(%a) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %b = lm.weight "b" format "f16" : tensor<6x8xf32>
  %z = lm.linear %x weights(%b) : (tensor<?x8xf32>, tensor<6x8xf32>) -> tensor<?x6xf32>
  return %y, %z : tensor<?x4xf32>, tensor<?x6xf32>
}

// -----

// With and without bias: they can't be one op, but the two without can.
// CHECK-LABEL: func.func @keeps_biases_apart
func.func @keeps_biases_apart(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>)
    -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK: %[[PLAIN:.*]]:2 = lm.linear %arg0 weights(%arg1, %arg1) :
  // CHECK: %[[BIASED:.*]] = lm.linear %arg0 weights(%arg1) biases(%arg2)
  // CHECK: return %[[PLAIN]]#0, %[[BIASED]], %[[PLAIN]]#1
  %p = lm.linear %x weights(%w) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %q = lm.linear %x weights(%w) biases(%b) : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %r = lm.linear %x weights(%w) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  return %p, %q, %r : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// A matrix that depends on the first product can't be moved ahead of it.
// CHECK-LABEL: func.func @keeps_other_inputs
func.func @keeps_other_inputs(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: %[[Y:.*]] = lm.linear %arg0 weights(%arg1)
  // CHECK-NEXT: lm.linear %[[Y]] weights(%arg1)
  %y = lm.linear %x weights(%w) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %z = lm.linear %y weights(%w) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  return %z : tensor<?x8xf32>
}

// -----

// A product with float weights would take the other one's activations with it.
// CHECK-LABEL: func.func @keeps_floats_apart
func.func @keeps_floats_apart(%x: tensor<?x32xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  // CHECK-COUNT-2: lm.linear
  %a = lm.weight "a" format "f32" : tensor<4x32xf32>
  %b = lm.weight "b" format "q8_0" : tensor<4x32xf32>
  %y = lm.linear %x weights(%a) : (tensor<?x32xf32>, tensor<4x32xf32>) -> tensor<?x4xf32>
  %z = lm.linear %x weights(%b) : (tensor<?x32xf32>, tensor<4x32xf32>) -> tensor<?x4xf32>
  return %y, %z : tensor<?x4xf32>, tensor<?x4xf32>
}
