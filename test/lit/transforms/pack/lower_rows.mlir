// RUN: izh-opt %s --izh-lower-rows --split-input-file | FileCheck %s

// A norm, its factor and the addition are one kernel.
// CHECK-LABEL: func.func @norm_and_addition
func.func @norm_and_addition(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>, %s: tensor<64xf32>) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[Z:.*]] = pack.norm %arg1 scale %arg2 residual %arg0 {eps = {{[0-9.E-]+}} : f32, factor = 5.000000e-01 : f32, over = 64 : i64}
  // CHECK-NEXT: return %[[Z]]
  %n = lm.rms_norm %y scale %s over 64 eps 1.0e-6 : tensor<?x64xf32>, tensor<64xf32>
  %h = lm.scale %n by 0.5 : tensor<?x64xf32>
  %z = lm.add %x, %h : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// -----

// A norm with two readers is made once, and the addition stands alone.
// CHECK-LABEL: func.func @shared_norm
func.func @shared_norm(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-NEXT: %[[N:.*]] = pack.norm %arg1 {eps = 0.000000e+00 : f32, over = 32 : i64}
  // CHECK-NEXT: pack.map add %{{.*}}, %{{.*}} :
  %n = lm.rms_norm %y over 32 eps 0.0 : tensor<?x64xf32>
  %z = lm.add %x, %n : tensor<?x64xf32>
  return %z, %n : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// A gate is taken in by the multiplication; selected rows are outputs.
// CHECK-LABEL: func.func @maps
func.func @maps(%x: tensor<?x64xf32>, %y: tensor<?x16xf32>, %rows: tensor<?xi32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK: %[[P:.*]] = pack.map scale %arg0 {lhs_first = 8 : i64}
  // CHECK: pack.map sigmoid %[[P]], %arg1 :
  // CHECK: pack.map soft_cap %{{.*}} {factor = 3.000000e+01 : f32, row_set = 1 : i32}
  %p = lm.slice %x from 8 : tensor<?x64xf32> -> tensor<?x16xf32>
  %g = lm.sigmoid %p : tensor<?x16xf32>
  %m = lm.mul %y, %g : tensor<?x16xf32>
  %o = lm.select_rows %y, %rows : tensor<?x16xf32>, tensor<?xi32>
  %c = lm.soft_cap %o at 30.0 : tensor<?x16xf32>
  return %m, %c : tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

// A cache that is looked at through a window only.
// CHECK-LABEL: func.func @window
func.func @window(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>) -> tensor<?x64xf32> {
  // CHECK: %[[C:.*]] = pack.state "c" {window = 9 : i64} : !pack.kv<2 x 16, page 64>
  // CHECK: %[[S:.*]] = pack.input slots {windowed}
  // CHECK: pack.append %arg1, %arg1 slots %[[S]] cache %[[C]]
  // CHECK: %[[P:.*]] = pack.input pages {windowed}
  // CHECK: pack.attention %arg0 {{.*}} pages %[[P]]
  %c = lm.state "c" : !lm.kv_cache<2 x 16>
  %d = lm.append %c keys %k values %k : !lm.kv_cache<2 x 16>, tensor<?x32xf32>, tensor<?x32xf32>
  %a = lm.attention %q, %d heads 4 scale 0.25 window 9 : tensor<?x64xf32>, !lm.kv_cache<2 x 16> -> tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}

// -----

// Attention whose queries and keys no product could finish; two layers may
// read one cache.
// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<?x64xf32>, %k: tensor<?x32xf32>, %t: tensor<?x16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-DAG: %[[C:.*]] = pack.state "c" : !pack.kv<2 x 16, page 64>
  // CHECK-DAG: %[[R:.*]] = pack.rope %arg1 table %arg2 {head_dim = 16 : i64, style = 1 : i32}
  // CHECK: %[[D:.*]] = pack.append %[[R]], %arg1 slots %{{.*}} cache %[[C]]
  // CHECK: %[[A:.*]]:2 = pack.attention %arg0 cache %[[D]]
  // CHECK: %[[M:.*]] = pack.merge rows %[[A]]#0 partials %[[A]]#1 {{.*}} cache %[[D]]
  // CHECK: pack.attention %[[M]] cache %[[D]]
  %r = lm.rope %k, %t halves head_dim 16 : tensor<?x32xf32>, tensor<?x16xf32>
  %c = lm.state "c" : !lm.kv_cache<2 x 16>
  %d = lm.append %c keys %r values %k : !lm.kv_cache<2 x 16>, tensor<?x32xf32>, tensor<?x32xf32>
  %a = lm.attention %q, %d heads 4 scale 0.25 : tensor<?x64xf32>, !lm.kv_cache<2 x 16> -> tensor<?x64xf32>
  %b = lm.attention %a, %d heads 4 scale 0.25 : tensor<?x64xf32>, !lm.kv_cache<2 x 16> -> tensor<?x64xf32>
  return %a, %b : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

// States of one size get a slot a sequence.
// CHECK-LABEL: func.func @recurrent
func.func @recurrent(%x: tensor<?x64xf32>, %w: tensor<192xf32>, %a: tensor<?x2xf32>, %r: tensor<2xf32>) -> tensor<?x32xf32> {
  // CHECK-DAG: pack.input sequences
  // CHECK-DAG: pack.state "rows" : !pack.slots<128>
  // CHECK: %[[C:.*]]:2 = pack.short_conv %arg0 weight %arg1 {{.*}} {silu}
  // CHECK: pack.state "memory" : !pack.slots<512>
  // CHECK: pack.delta_rule %[[C]]#0 {{.*}} {eps = {{[0-9.E-]+}} : f32, key_dim = 16 : i64, key_heads = 1 : i64, value_dim = 16 : i64}
  %s = lm.state "rows" : !lm.row_state<64 x 2>
  %c, %n = lm.short_conv %x weight %w state %s silu : tensor<?x64xf32>, tensor<192xf32>, !lm.row_state<64 x 2>
  %m = lm.state "memory" : !lm.delta_state<2 x 16 x 16>
  %o, %k = lm.delta_rule %c decay %a beta %a rate %r bias %r state %m key_heads 1 eps 1.0e-6
      : tensor<?x64xf32>, tensor<?x2xf32>, tensor<2xf32>, !lm.delta_state<2 x 16 x 16> -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}
