// RUN: izh-opt %s --split-input-file --verify-diagnostics
// What the ops on heads refuse.

func.func @join(%x: tensor<?x32xf32>, %y: tensor<?x9xf32>) {
  // expected-error @+1 {{can't cut its rows into so many heads}}
  %j = pack.join %x, %y heads 2 : (tensor<?x32xf32>, tensor<?x9xf32>) -> tensor<?x41xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

func.func @result(%a: !a, %w: !pack.weight<16 x 64, "f16", count 2>) {
  // expected-error @+1 {{needs rows of float32 of width 32 as its result}}
  %h = pack.head_matmul %a weight %w : (!a, !pack.weight<16 x 64, "f16", count 2>) -> tensor<?x16xf32>
  return
}
