// RUN: izh-opt %s --split-input-file --verify-diagnostics
// What the ops on experts refuse.

// expected-error @+1 {{can't choose 9 of 8 experts}}
func.func @too_many(%r: !lm.routes<8 x 9>) { return }

// -----

func.func @ratings(%l: tensor<?x7xf32>) {
  // expected-error @+1 {{chooses among 8 experts by 7 ratings}}
  %r = lm.route %l softmax : tensor<?x7xf32> -> !lm.routes<8 x 2>
  return
}

// -----

func.func @bias(%l: tensor<?x8xf32>, %b: tensor<7xf32>) {
  // expected-error @+1 {{has a bias of 7 values for 8 experts}}
  %r = lm.route %l bias %b sigmoid : tensor<?x8xf32>, tensor<7xf32> -> !lm.routes<8 x 2>
  return
}

// -----

func.func @bias_of_chosen(%l: tensor<?x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{ranks by ratings alone, so it can't have a bias}}
  %r = lm.route %l bias %b softmax_chosen : tensor<?x8xf32>, tensor<8xf32> -> !lm.routes<8 x 2>
  return
}

// -----

func.func @groups(%l: tensor<?x8xf32>) {
  // expected-error @+1 {{can't take 1 of 3 groups of 8 experts by their best 1}}
  %r = lm.route %l softmax {groups = 3 : i64} : tensor<?x8xf32> -> !lm.routes<8 x 2>
  return
}

// -----

func.func @small_groups(%l: tensor<?x8xf32>) {
  // expected-error @+1 {{needs 4 experts from groups that have 2}}
  %r = lm.route %l softmax {groups = 4 : i64} : tensor<?x8xf32> -> !lm.routes<8 x 4>
  return
}

// -----

func.func @shapes(%x: tensor<?x64xf32>, %r: !lm.routes<8 x 2>, %g: tensor<8x32x64xf32>) {
  // expected-error @+1 {{has matrices that don't fit rows of 64 values and 8 experts}}
  %y = lm.experts %x routes %r weights(%g, %g, %g) silu
      : (tensor<?x64xf32>, !lm.routes<8 x 2>, tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8x32x64xf32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @biases(%x: tensor<?x64xf32>, %r: !lm.routes<8 x 2>, %g: tensor<8x32x64xf32>, %d: tensor<8x64x32xf32>, %b: tensor<32xf32>) {
  // expected-error @+1 {{needs biases of gate, up and down, as many values as their matrices have rows}}
  %y = lm.experts %x routes %r weights(%g, %g, %d) biases(%b, %b, %b) silu
      : (tensor<?x64xf32>, !lm.routes<8 x 2>, tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8x64x32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<?x64xf32>
  return
}
