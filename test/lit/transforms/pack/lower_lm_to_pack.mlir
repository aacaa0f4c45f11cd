// RUN: izh-opt %s --izh-lower-lm-to-pack --split-input-file | FileCheck %s

// Names, embedding and rope angles have pack ops of their own.
// CHECK-LABEL: func.func @names
func.func @names() -> (tensor<?x64xf32>, tensor<?x4xf32>) {
  // CHECK-DAG: %[[IDS:.*]] = pack.input ids : tensor<?xi32>
  // CHECK-DAG: %[[POSITIONS:.*]] = pack.input positions : tensor<?xi32>
  // CHECK-DAG: %[[TABLE:.*]] = pack.weight "table" : !pack.weight<100 x 64, "f16">
  // CHECK-DAG: %[[F:.*]] = pack.vector "f" values [1.000000e+00, 5.000000e-01] : tensor<2xf32>
  // CHECK: pack.embed %[[IDS]], %[[TABLE]] : (tensor<?xi32>, !pack.weight<100 x 64, "f16">) -> tensor<?x64xf32>
  // CHECK: pack.rope_table %[[POSITIONS]], %[[F]]
  // CHECK-NOT: lm.
  %ids = lm.input ids : tensor<?xi32>
  %positions = lm.input positions : tensor<?xi32>
  %table = lm.weight "table" format "f16" : tensor<100x64xf32>
  %f = lm.constant "f" [1.0, 0.5] : tensor<2xf32>
  %x = lm.embed %ids, %table : (tensor<?xi32>, tensor<100x64xf32>) -> tensor<?x64xf32>
  %angles = lm.rope_angles %positions, %f : (tensor<?xi32>, tensor<2xf32>) -> tensor<?x4xf32>
  return %x, %angles : tensor<?x64xf32>, tensor<?x4xf32>
}

// -----

// Merged products share one quantization, with the fields of all formats.
// CHECK-LABEL: func.func @shares
func.func @shares(%x: tensor<?x64xf32>) -> (tensor<?x16xf32>, tensor<?x32xf32>, tensor<?x16xf32>) {
  // CHECK: %[[A:.*]] = pack.quantize %arg0 {{.*}} !pack.act<64 x block32, sums true, corr32[8, 128], corr16[]>
  // CHECK: pack.matmul %[[A]] weights(%{{.*}}) biases(%{{.*}}) : {{.*}} -> tensor<?x16xf32>
  // CHECK: pack.matmul %[[A]] weights(%{{.*}}) biases(%{{.*}}) : {{.*}} -> tensor<?x32xf32>
  // CHECK: pack.matmul %[[A]] weights(%{{.*}}) biases(%{{.*}}) : {{.*}} -> tensor<?x16xf32>
  %a = lm.weight "a" format "q4_0" : tensor<16x64xf32>
  %b = lm.weight "b" format "q4_1" : tensor<32x64xf32>
  %c = lm.weight "c" format "q8_0" : tensor<16x64xf32>
  %s = lm.weight "s" format "f32" : tensor<16xf32>
  %t = lm.weight "t" format "f32" : tensor<32xf32>
  %u, %v, %w = lm.linear %x weights(%a, %b, %c) biases(%s, %t, %s)
      : (tensor<?x64xf32>, tensor<16x64xf32>, tensor<32x64xf32>, tensor<16x64xf32>, tensor<16xf32>, tensor<32xf32>, tensor<16xf32>)
      -> (tensor<?x16xf32>, tensor<?x32xf32>, tensor<?x16xf32>)
  return %u, %v, %w : tensor<?x16xf32>, tensor<?x32xf32>, tensor<?x16xf32>
}

// -----

// Blocks of 256; zero points of sub-blocks of 16 go to corr16.
// CHECK-LABEL: func.func @large_blocks
func.func @large_blocks(%x: tensor<?x256xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK: !pack.act<256 x block256, sums true, corr32[], corr16[32]>
  %a = lm.weight "a" format "q4_k" : tensor<16x256xf32>
  %b = lm.weight "b" format "q6_k" : tensor<16x256xf32>
  %u, %v = lm.linear %x weights(%a, %b) : (tensor<?x256xf32>, tensor<16x256xf32>, tensor<16x256xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>)
  return %u, %v : tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// Float weights read float rows. Formats in blocks of 32 and of 256 together
// read scales of 32, with the sums that the machines' dots of signed codes need.
// CHECK-LABEL: func.func @floats
func.func @floats(%x: tensor<?x256xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK: pack.quantize %arg0 {{.*}} !pack.act<256 x f32, sums false, corr32[], corr16[]>
  // CHECK: pack.quantize %arg0 {{.*}} !pack.act<256 x block32, sums true, corr32[128], corr16[]>
  %a = lm.weight "a" format "bf16" : tensor<16x256xf32>
  %b = lm.weight "b" format "q4_k" : tensor<16x256xf32>
  %c = lm.weight "c" format "q8_0" : tensor<16x256xf32>
  %u = lm.linear %x weights(%a) : (tensor<?x256xf32>, tensor<16x256xf32>) -> tensor<?x16xf32>
  %v, %w = lm.linear %x weights(%b, %c) : (tensor<?x256xf32>, tensor<16x256xf32>, tensor<16x256xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>)
  return %u, %v, %w : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// Work on selected rows is done for output rows, through norms too.
// CHECK-LABEL: func.func @outputs
func.func @outputs(%x: tensor<?x64xf32>) -> tensor<?x16xf32> {
  // CHECK: pack.quantize %{{.*}} {row_set = 1 : i32}
  // CHECK: pack.matmul {{.*}} {row_set = 1 : i32}
  %r = lm.input output_rows : tensor<?xi32>
  %a = lm.weight "a" format "f16" : tensor<16x64xf32>
  %s = lm.select_rows %x, %r : tensor<?x64xf32>, tensor<?xi32>
  %n = lm.rms_norm %s over 64 eps 0.0 : tensor<?x64xf32>
  %y = lm.linear %n weights(%a) : (tensor<?x64xf32>, tensor<16x64xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
