// RUN: izh-opt %s --izh-lower-lm-to-pack --split-input-file --verify-diagnostics

func.func @format(%x: tensor<?x64xf32>) {
  // expected-error @+1 {{tensor 'a' has the unknown format 'q9'}}
  %a = lm.weight "a" format "q9" : tensor<16x64xf32>
  return
}

// -----

func.func @columns(%x: tensor<?x48xf32>) {
  // expected-error @+1 {{tensor 'a' has 48 columns, but its format 'q4_1' needs a multiple of 32}}
  %a = lm.weight "a" format "q4_1" : tensor<16x48xf32>
  return
}

// -----

func.func @foreign_matrix(%x: tensor<?x64xf32>, %w: tensor<16x64xf32>) {
  // expected-error @+1 {{multiplies with a matrix that is no tensor of the file}}
  %y = lm.linear %x weights(%w) : (tensor<?x64xf32>, tensor<16x64xf32>) -> tensor<?x16xf32>
  return
}

// -----

func.func @foreign_table(%ids: tensor<?xi32>, %w: tensor<16x64xf32>) {
  // expected-error @+1 {{looks up rows of a matrix that is no tensor of the file}}
  %y = lm.embed %ids, %w : (tensor<?xi32>, tensor<16x64xf32>) -> tensor<?x64xf32>
  return
}
