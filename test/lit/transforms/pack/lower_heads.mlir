// RUN: izh-opt %s --izh-lower-lm-to-pack --izh-fuse-norm-quantize --izh-lower-rows | FileCheck %s

// Each head becomes a record of its own; a norm over the whole row is no part
// of their quantization.
// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<?x64xf32>, %y: tensor<?x8xf32>, %s: tensor<64xf32>, %f: tensor<?x1xf32>) -> tensor<?x40xf32> {
  // CHECK: %[[N:.*]] = pack.norm %arg0
  // CHECK: %[[A:.*]] = pack.quantize %[[N]] {per_token = 2 : i64} : (tensor<?x64xf32>) -> !pack.act<32 x block32
  // CHECK: %[[H:.*]] = pack.head_matmul %[[A]] weight %{{.*}} : {{.*}}count 2>) -> tensor<?x32xf32>
  // CHECK: %[[J:.*]] = pack.join %[[H]], %arg1 heads 2
  // CHECK: pack.scale_rows %[[J]], %arg3
  %n = lm.rms_norm %x scale %s over 64 eps 1.0e-3 : tensor<?x64xf32>, tensor<64xf32>
  %w = lm.weight "w" format "q8_0" : tensor<2x16x32xf32>
  %h = lm.head_linear %n, %w : (tensor<?x64xf32>, tensor<2x16x32xf32>) -> tensor<?x32xf32>
  %j = lm.join %h, %y heads 2 : (tensor<?x32xf32>, tensor<?x8xf32>) -> tensor<?x40xf32>
  %r = lm.scale_rows %j, %f : tensor<?x40xf32>, tensor<?x1xf32>
  return %r : tensor<?x40xf32>
}
