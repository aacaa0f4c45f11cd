// RUN: izh-opt %s --split-input-file --verify-diagnostics
// What the ops on heads refuse.

func.func @shapes(%x: tensor<?x64xf32>, %w: tensor<2x16x30xf32>) {
  // expected-error @+1 {{has 2 matrices of 16 x 30 for rows of 64 and 32 values}}
  %h = lm.head_linear %x, %w : (tensor<?x64xf32>, tensor<2x16x30xf32>) -> tensor<?x32xf32>
  return
}

// -----

func.func @join(%x: tensor<?x32xf32>, %y: tensor<?x9xf32>) {
  // expected-error @+1 {{can't make rows of 41 values of 2 heads from 32 and 9}}
  %j = lm.join %x, %y heads 2 : (tensor<?x32xf32>, tensor<?x9xf32>) -> tensor<?x41xf32>
  return
}

// -----

func.func @factors(%x: tensor<?x32xf32>, %y: tensor<?x2xf32>) {
  // expected-error @+1 {{needs one factor a row, but has 2}}
  %s = lm.scale_rows %x, %y : tensor<?x32xf32>, tensor<?x2xf32>
  return
}
