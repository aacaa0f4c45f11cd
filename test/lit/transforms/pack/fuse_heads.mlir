// RUN: izh-opt %s --izh-fuse-heads --split-input-file | FileCheck %s

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!wq = !pack.weight<64 x 64, "f16">
!wk = !pack.weight<32 x 64, "f16">
!kv = !lm.kv_cache<2 x 16>

// Biases, head norms, rotation and cache write all go into the product.
// CHECK-LABEL: func.func @fuses
func.func @fuses(%a: !a, %q: !wq, %k: !wk, %v: !wk, %t: tensor<?x8xf32>, %qs: tensor<16xf32>, %ks: tensor<16xf32>, %bq: tensor<64xf32>, %bk: tensor<32xf32>) -> tensor<?x64xf32> {
  // CHECK: %[[CACHE:.*]] = pack.state "c" : !pack.kv<2 x 16, page 64>
  // CHECK: %[[SLOTS:.*]] = pack.input slots : tensor<?xi32>
  // CHECK: %[[R:.*]]:2 = pack.matmul_heads %arg0 weights(%arg1, %arg2, %arg3) biases(%arg7, %arg8, %arg8)
  // CHECK-SAME: q_norm %arg5 k_norm %arg6 table %arg4 slots %[[SLOTS]] cache %[[CACHE]]
  // CHECK-SAME: eps = 9.99999974E-6 : f32, head_dim = 16 : i64, rope = 2 : i32, rotary = 8 : i64
  // CHECK: %[[TILES:.*]] = pack.input tiles : tensor<?xi32>
  // CHECK: %[[PAGES:.*]] = pack.input pages : tensor<?xi32>
  // CHECK: %[[PARTS:.*]] = pack.input parts : tensor<?xi32>
  // CHECK: %[[MERGES:.*]] = pack.input merges : tensor<?xi32>
  // CHECK: %[[O:.*]]:2 = pack.attention %[[R]]#0 cache %[[R]]#1 tiles %[[TILES]] pages %[[PAGES]] parts %[[PARTS]] {exact, heads = 4 : i64, scale = 2.500000e-01 : f32, tile = 32 : i64}
  // CHECK-SAME: -> (tensor<?x64xf32>, tensor<?x128xf32>)
  // CHECK: pack.merge rows %[[O]]#0 partials %[[O]]#1 merges %[[MERGES]] cache %[[R]]#1 {heads = 4 : i64}
  // CHECK-NOT: lm.
  // CHECK-NOT: pack.matmul %
  %c = lm.state "c" : !kv
  %mq = pack.matmul %a weights(%q) biases(%bq) : (!a, !wq, tensor<64xf32>) -> tensor<?x64xf32>
  %mk = pack.matmul %a weights(%k) biases(%bk) : (!a, !wk, tensor<32xf32>) -> tensor<?x32xf32>
  %mv = pack.matmul %a weights(%v) biases(%bk) : (!a, !wk, tensor<32xf32>) -> tensor<?x32xf32>
  %nq = lm.rms_norm %mq scale %qs over 16 eps 1.0e-5 : tensor<?x64xf32>, tensor<16xf32>
  %nk = lm.rms_norm %mk scale %ks over 16 eps 1.0e-5 : tensor<?x32xf32>, tensor<16xf32>
  %rq = lm.rope %nq, %t pairs head_dim 16 : tensor<?x64xf32>, tensor<?x8xf32>
  %rk = lm.rope %nk, %t pairs head_dim 16 : tensor<?x32xf32>, tensor<?x8xf32>
  %d = lm.append %c keys %rk values %mv : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %o = lm.attention %rq, %d heads 4 scale 0.25 : tensor<?x64xf32>, !kv -> tensor<?x64xf32>
  return %o : tensor<?x64xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !lm.kv_cache<2 x 16>

// Without norms and rotation there is no table.
// CHECK-LABEL: func.func @fuses_plain
func.func @fuses_plain(%a: !a, %w: !w) -> tensor<?x32xf32> {
  // CHECK: pack.matmul_heads %arg0 weights(%arg1, %arg1, %arg1) slots
  // CHECK-SAME: rope = 0 : i32, rotary = 0 : i64
  %c = lm.state "c" : !kv
  %q = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %k = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %v = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %d = lm.append %c keys %k values %v : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %o = lm.attention %q, %d heads 2 scale 0.25 : tensor<?x32xf32>, !kv -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !lm.kv_cache<2 x 16>

// Only the keys are turned: the kernel would turn both.
// CHECK-LABEL: func.func @keeps_half_turned
func.func @keeps_half_turned(%a: !a, %w: !w, %t: tensor<?x16xf32>) -> tensor<?x32xf32> {
  // CHECK: lm.attention
  %c = lm.state "c" : !kv
  %q = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %k = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %v = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %r = lm.rope %k, %t halves head_dim 16 : tensor<?x32xf32>, tensor<?x16xf32>
  %d = lm.append %c keys %r values %v : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %o = lm.attention %q, %d heads 2 scale 0.25 : tensor<?x32xf32>, !kv -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !lm.kv_cache<2 x 16>

// The values are rows of something else than this layer's input.
// CHECK-LABEL: func.func @keeps_other_activations
func.func @keeps_other_activations(%a: !a, %b: !a, %w: !w) -> tensor<?x32xf32> {
  // CHECK: lm.attention
  %c = lm.state "c" : !kv
  %q = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %k = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %v = pack.matmul %b weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %d = lm.append %c keys %k values %v : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %o = lm.attention %q, %d heads 2 scale 0.25 : tensor<?x32xf32>, !kv -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !lm.kv_cache<2 x 16>

// A norm over the whole row is not one of heads.
// CHECK-LABEL: func.func @keeps_row_norm
func.func @keeps_row_norm(%a: !a, %w: !w, %s: tensor<32xf32>) -> tensor<?x32xf32> {
  // CHECK: lm.attention
  %c = lm.state "c" : !kv
  %q = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %k = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %v = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %n = lm.rms_norm %q scale %s over 32 eps 0.0 : tensor<?x32xf32>, tensor<32xf32>
  %d = lm.append %c keys %k values %v : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %o = lm.attention %n, %d heads 2 scale 0.25 : tensor<?x32xf32>, !kv -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

!kv = !lm.kv_cache<2 x 16>

// A cache that is read but not written has no kernel here.
// CHECK-LABEL: func.func @keeps_bare_cache
func.func @keeps_bare_cache(%q: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // CHECK: lm.attention
  %c = lm.state "c" : !kv
  %o = lm.attention %q, %c heads 2 scale 0.25 : tensor<?x32xf32>, !kv -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !lm.kv_cache<2 x 16>

// Products without a bias get one of zeros beside those that have one.
// CHECK-LABEL: func.func @fuses_single_bias
func.func @fuses_single_bias(%a: !a, %w: !w, %b: tensor<32xf32>) -> tensor<?x32xf32> {
  // CHECK-DAG: %[[K:.*]] = pack.vector "zeros.32" values {{.*}} : tensor<32xf32>
  // CHECK: pack.matmul_heads %arg0 weights(%arg1, %arg1, %arg1) biases(%arg2, %{{.*}}, %{{.*}})
  // CHECK-NOT: lm.attention
  %c = lm.state "c" : !kv
  %q = pack.matmul %a weights(%w) biases(%b) : (!a, !w, tensor<32xf32>) -> tensor<?x32xf32>
  %k = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %v = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %d = lm.append %c keys %k values %v : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %o = lm.attention %q, %d heads 2 scale 0.25 : tensor<?x32xf32>, !kv -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !lm.kv_cache<2 x 16>

// Where all readers of a cache have windows, it keeps the widest of them, and
// products and attention look for its pages there.
// CHECK-LABEL: func.func @keeps_the_widest_window
func.func @keeps_the_widest_window(%a: !a, %w: !w, %other: tensor<?x64xf32>) -> (tensor<?x32xf32>, tensor<?x64xf32>) {
  // CHECK: %[[CACHE:.*]] = pack.state "c" {window = 9 : i64} : !pack.kv<2 x 16, page 64>
  // CHECK: %[[SLOTS:.*]] = pack.input slots {windowed}
  // CHECK: pack.matmul_heads {{.*}} slots %[[SLOTS]] cache %[[CACHE]]
  // CHECK: %[[PAGES:.*]] = pack.input pages {windowed}
  // CHECK: pack.attention {{.*}} pages %[[PAGES]] {{.*}} window = 9
  // CHECK: %[[MORE:.*]] = pack.input pages {windowed}
  // CHECK: pack.attention {{.*}} pages %[[MORE]] {{.*}} window = 7
  %c = lm.state "c" : !kv
  %q = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %k = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %v = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %d = lm.append %c keys %k values %v : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %o = lm.attention %q, %d heads 2 scale 0.25 window 9 : tensor<?x32xf32>, !kv -> tensor<?x32xf32>
  %p = lm.attention %other, %d heads 4 scale 0.25 window 7 : tensor<?x64xf32>, !kv -> tensor<?x64xf32>
  return %o, %p : tensor<?x32xf32>, tensor<?x64xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !lm.kv_cache<2 x 16>

// A second attention with queries of its own reads the same cache, all of it.
// CHECK-LABEL: func.func @shares_the_cache
func.func @shares_the_cache(%a: !a, %w: !w, %other: tensor<?x64xf32>) -> (tensor<?x32xf32>, tensor<?x64xf32>) {
  // CHECK: pack.state "c" : !pack.kv<2 x 16, page 64>
  // CHECK-NOT: windowed
  // CHECK: %[[R:.*]]:2 = pack.matmul_heads
  // CHECK: pack.attention %[[R]]#0 cache %[[R]]#1
  // CHECK: pack.attention %arg2 cache %[[R]]#1 {{.*}} window = 7
  // CHECK-NOT: lm.
  %c = lm.state "c" : !kv
  %q = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %k = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %v = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x32xf32>
  %d = lm.append %c keys %k values %v : !kv, tensor<?x32xf32>, tensor<?x32xf32>
  %o = lm.attention %q, %d heads 2 scale 0.25 : tensor<?x32xf32>, !kv -> tensor<?x32xf32>
  %p = lm.attention %other, %d heads 4 scale 0.25 window 7 : tensor<?x64xf32>, !kv -> tensor<?x64xf32>
  return %o, %p : tensor<?x32xf32>, tensor<?x64xf32>
}
