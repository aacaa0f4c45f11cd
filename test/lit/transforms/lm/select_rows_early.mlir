// RUN: izh-opt %s --izh-select-rows-early --split-input-file | FileCheck %s

// Without this the output product would be computed for every token.
// CHECK-LABEL: func.func @moves_ahead
func.func @moves_ahead(%x: tensor<?x8xf32>, %w: tensor<9x8xf32>, %s: tensor<8xf32>, %r: tensor<?xi32>) -> tensor<?x9xf32> {
  // CHECK-NEXT: %[[SELECTED:.*]] = lm.select_rows %arg0, %arg3
  // CHECK-NEXT: %[[NORM:.*]] = lm.rms_norm %[[SELECTED]] scale %arg2
  // CHECK-NEXT: %[[LOGITS:.*]] = lm.linear %[[NORM]] weights(%arg1)
  // CHECK-NEXT: return %[[LOGITS]]
  %n = lm.rms_norm %x scale %s over 8 eps 0.0 : tensor<?x8xf32>, tensor<8xf32>
  %y = lm.linear %n weights(%w) : (tensor<?x8xf32>, tensor<9x8xf32>) -> tensor<?x9xf32>
  %z = lm.select_rows %y, %r : tensor<?x9xf32>, tensor<?xi32>
  return %z : tensor<?x9xf32>
}

// -----

// A selection of the sum would have no kernel: norms take selections in, scales don't.
// CHECK-LABEL: func.func @keeps_scaled_sums
func.func @keeps_scaled_sums(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %r: tensor<?xi32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: lm.add
  // CHECK-NEXT: lm.scale
  // CHECK-NEXT: lm.select_rows
  // CHECK-NEXT: lm.rms_norm
  %s = lm.add %x, %y : tensor<?x8xf32>
  %h = lm.scale %s by 0.5 : tensor<?x8xf32>
  %n = lm.rms_norm %h over 8 eps 0.0 : tensor<?x8xf32>
  %z = lm.select_rows %n, %r : tensor<?x8xf32>, tensor<?xi32>
  return %z : tensor<?x8xf32>
}

// -----

// All rows are wanted elsewhere: moving would compute some of them twice.
// CHECK-LABEL: func.func @keeps_shared
func.func @keeps_shared(%x: tensor<?x8xf32>, %r: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  // CHECK-NEXT: lm.silu
  // CHECK-NEXT: lm.select_rows
  %y = lm.silu %x : tensor<?x8xf32>
  %z = lm.select_rows %y, %r : tensor<?x8xf32>, tensor<?xi32>
  return %y, %z : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// An op with two row operands would need two selections.
// CHECK-LABEL: func.func @keeps_sums
func.func @keeps_sums(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %r: tensor<?xi32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: lm.add
  // CHECK-NEXT: lm.select_rows
  %s = lm.add %x, %y : tensor<?x8xf32>
  %z = lm.select_rows %s, %r : tensor<?x8xf32>, tensor<?xi32>
  return %z : tensor<?x8xf32>
}
