// RUN: izh-opt %s --izh-lower-lm-to-pack --izh-fuse-norm-quantize --izh-fuse-residual-add --split-input-file | FileCheck %s

// The router reads floats, the experts a row for each pair, whose norm is a
// part of the quantization; the sum over experts adds to the old rows in place.
// CHECK-LABEL: func.func @layer
func.func @layer(%ids: tensor<?xi32>, %s: tensor<64xf32>) -> tensor<?x64xf32> {
  // CHECK: %[[X:.*]] = pack.embed
  // CHECK: %[[F:.*]] = pack.quantize %[[X]] norm {{.*}} !pack.act<64 x f32
  // CHECK: %[[L:.*]] = pack.matmul %[[F]]
  // CHECK: %[[R:.*]] = pack.route %[[L]] softmax {normalize} : (tensor<?x8xf32>) -> !pack.routes<8 x 2>
  // CHECK: %[[A:.*]] = pack.quantize %[[X]] norm %arg1 indices %[[R]] {eps = 1.000000e-03 : f32, per_token = 2 : i64} : {{.*}} !pack.act<64 x block32
  // CHECK: %[[G:.*]] = pack.expert_gate %[[A]] routes %[[R]] weights(%{{.*}}, %{{.*}}) silu : {{.*}} -> tensor<?x32xf32>
  // CHECK: %[[H:.*]] = pack.quantize %[[G]] {per_token = 2 : i64}
  // CHECK: pack.expert_sum %[[H]] routes %[[R]] weight %{{.*}} residual %[[X]] {epilogue = 1 : i32, scale = 5.000000e-01 : f32}
  // CHECK-NOT: lm.
  %table = lm.weight "table" format "f16" : tensor<100x64xf32>
  %x = lm.embed %ids, %table : (tensor<?xi32>, tensor<100x64xf32>) -> tensor<?x64xf32>
  %n = lm.rms_norm %x scale %s over 64 eps 1.0e-3 : tensor<?x64xf32>, tensor<64xf32>
  %router = lm.weight "router" format "f32" : tensor<8x64xf32>
  %l = lm.linear %n weights(%router) : (tensor<?x64xf32>, tensor<8x64xf32>) -> tensor<?x8xf32>
  %r = lm.route %l softmax {normalize} : tensor<?x8xf32> -> !lm.routes<8 x 2>
  %g = lm.weight "gate" format "q4_0" : tensor<8x32x64xf32>
  %u = lm.weight "up" format "q4_1" : tensor<8x32x64xf32>
  %d = lm.weight "down" format "q4_0" : tensor<8x64x32xf32>
  %y = lm.experts %n routes %r weights(%g, %u, %d) silu
      : (tensor<?x64xf32>, !lm.routes<8 x 2>, tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8x64x32xf32>) -> tensor<?x64xf32>
  %half = lm.scale %y by 0.5 : tensor<?x64xf32>
  %z = lm.add %half, %x : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// -----

// Old rows that are read later stay: the sum has rows of its own.
// CHECK-LABEL: func.func @keeps_living_rows
func.func @keeps_living_rows(%ids: tensor<?xi32>, %n: tensor<?x64xf32>, %l: tensor<?x8xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: %[[Y:.*]] = pack.expert_sum
  // CHECK-NOT: residual
  // CHECK: lm.add %{{.*}}, %[[Y]]
  %table = lm.weight "table" format "f16" : tensor<100x64xf32>
  %x = lm.embed %ids, %table : (tensor<?xi32>, tensor<100x64xf32>) -> tensor<?x64xf32>
  %r = lm.route %l softmax : tensor<?x8xf32> -> !lm.routes<8 x 2>
  %g = lm.weight "gate" format "f16" : tensor<8x32x64xf32>
  %d = lm.weight "down" format "f16" : tensor<8x64x32xf32>
  %y = lm.experts %n routes %r weights(%g, %g, %d) silu
      : (tensor<?x64xf32>, !lm.routes<8 x 2>, tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8x64x32xf32>) -> tensor<?x64xf32>
  %z = lm.add %x, %y : tensor<?x64xf32>
  return %x, %z : tensor<?x64xf32>, tensor<?x64xf32>
}
