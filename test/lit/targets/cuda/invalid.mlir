// RUN: izh-opt %s --izh-lower-kernels=target=cuda:sm_80 --split-input-file --verify-diagnostics

// Products of float weights read float activations only.
!a = !pack.act<64 x block32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">
plan.kernel @floats(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  // expected-error @+1 {{multiplies float weights with integer activations; quantize to f32}}
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}

// -----

!b = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!x = !pack.weight<16 x 64, "q9_9">
plan.kernel @unknown(%a: !b, %w: !x, %o: memref<?x16xf32>) {
  // expected-error @+1 {{reads weights of the unknown format 'q9_9'}}
  pack.matmul %a weights(%w) into %o : (!b, !x, memref<?x16xf32>) -> ()
}

// -----

plan.kernel @other(%p: memref<?xi32>) {
  // expected-error @+1 {{has no GPU form; leave the cuda targets out for this model}}
  %0 = pack.vector "v" : memref<8xf32>
}
