// RUN: izh-opt %s --izh-lower-rows=cache-bits=8 | FileCheck %s
// RUN: izh-opt %s --izh-lower-rows | FileCheck %s --check-prefix=FLOATS

// Codes are kept of keys times a Hadamard matrix: the queries of every reader are
// multiplied by it too, or their products would be others.
// CHECK-LABEL: func @turns_queries
// FLOATS-LABEL: func @turns_queries
// FLOATS-NOT: pack.hadamard
func.func @turns_queries(%q: tensor<?x128xf32>, %r: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>) {
  // CHECK: %[[D:.*]] = pack.append %arg2, %arg3
  %c = lm.state "c" : !lm.kv_cache<1 x 64, values 32>
  %d = lm.append %c keys %k values %v : !lm.kv_cache<1 x 64, values 32>, tensor<?x64xf32>, tensor<?x32xf32>
  // CHECK: %[[Q:.*]] = pack.hadamard %arg0 {head_dim = 64 : i64} : (tensor<?x128xf32>) -> tensor<?x128xf32>
  // CHECK: pack.attention %[[Q]] cache %[[D]]
  %o = lm.attention %q, %d heads 2 scale 1.0 : tensor<?x128xf32>, !lm.kv_cache<1 x 64, values 32> -> tensor<?x64xf32>
  // CHECK: %[[R:.*]] = pack.hadamard %arg1 {head_dim = 64 : i64}
  // CHECK: pack.attention %[[R]] cache %[[D]]
  %p = lm.attention %r, %d heads 1 scale 1.0 : tensor<?x64xf32>, !lm.kv_cache<1 x 64, values 32> -> tensor<?x32xf32>
  return %o, %p : tensor<?x64xf32>, tensor<?x32xf32>
}
