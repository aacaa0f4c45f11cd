// RUN: izh-opt %s --izh-lower-pack-to-plan --split-input-file --verify-diagnostics
// What has no kernel is told to the user, whatever the IR looks like.

func.func @step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{'lm.silu' op has no kernel of its own, and no pass could make it a part of one: a model of this make can't be compiled yet}}
  %y = lm.silu %x : tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// expected-error @+1 {{needs one function of one block, the step}}
module {
}

// -----

func.func @step() {
  // expected-error @+1 {{must return the rows of logits and nothing else}}
  return
}

// -----

func.func @step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{must return a product of the selected output rows}}
  return %x : tensor<?x64xf32>
}

// -----

func.func @step(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{reads a value that comes from outside of the function}}
  %a = pack.quantize %x : (tensor<?x64xf32>) -> !pack.act<64 x f32, sums false, corr32 [], corr16 []>
  return %x : tensor<?x64xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16">

func.func @step() -> tensor<?x64xf32> {
  %ids = pack.input ids : tensor<?xi32>
  %w = pack.weight "w" : !w
  %x = pack.embed %ids, %w : (tensor<?xi32>, !w) -> tensor<?x64xf32>
  %a = pack.quantize %x : (tensor<?x64xf32>) -> !a
  // expected-error @+1 {{overwrites rows that are read later}}
  %y = pack.matmul %a weights(%w) residual %x {epilogue = 1 : i32} : (!a, !w, tensor<?x64xf32>) -> tensor<?x64xf32>
  %b = pack.quantize %x : (tensor<?x64xf32>) -> !a
  return %y : tensor<?x64xf32>
}
