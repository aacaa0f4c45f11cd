// RUN: izh-opt %s --izh-lower-rows=cache-bits=8 --split-input-file --verify-diagnostics | FileCheck %s

// Caches of blocks, values of another size than keys, and what only attention
// needs to know.
// CHECK-LABEL: func.func @lowers
func.func @lowers(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>, %s: tensor<1xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  // CHECK: %[[D:.*]] = pack.append %arg1, %arg2 {{.*}} -> !pack.kv<1 x 64, page 64, values 32, bits 8>
  // CHECK: pack.attention %arg0 cache %[[D]] {{.*}} sinks %arg3 {exact, heads = 1 : i64
  // CHECK: pack.merge {{.*}} sinks %arg3 cache %[[D]]
  // CHECK: pack.attention %arg0 cache %[[D]] {{.*}} softcap = 3.000000e+00 : f32, {{.*}} window = 5
  // CHECK: pack.merge {{.*}} window = 5
  // CHECK-NOT: lm.
  %c = lm.state "c" : !lm.kv_cache<1 x 64, values 32>
  %d = lm.append %c keys %k values %v : !lm.kv_cache<1 x 64, values 32>, tensor<?x64xf32>, tensor<?x32xf32>
  %o = lm.attention %q, %d sinks %s heads 1 scale 1.0 : tensor<?x64xf32>, !lm.kv_cache<1 x 64, values 32>, tensor<1xf32> -> tensor<?x32xf32>
  %p = lm.attention %q, %d heads 1 scale 1.0 window 5 softcap 3.0 : tensor<?x64xf32>, !lm.kv_cache<1 x 64, values 32> -> tensor<?x32xf32>
  return %o, %p : tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

// Blocks of codes have 32 values.
func.func @refuses_heads_without_blocks(%k: tensor<?x80xf32>) {
  // expected-error @+1 {{has heads of 80 and 80 values, which the blocks of 32 of this type of cache don't divide}}
  %c = lm.state "c" : !lm.kv_cache<1 x 80>
  %d = lm.append %c keys %k values %k : !lm.kv_cache<1 x 80>, tensor<?x80xf32>, tensor<?x80xf32>
  return
}
