// RUN: izh-opt %s | izh-opt | FileCheck %s
// Every op and type of `lm` survives printing and parsing.

// CHECK-LABEL: func.func @step
func.func @step() -> tensor<?x100xf32> {
  // CHECK: lm.input ids : tensor<?xi32>
  %ids = lm.input ids : tensor<?xi32>
  // CHECK: lm.input positions : tensor<?xi32>
  %positions = lm.input positions : tensor<?xi32>
  // CHECK: lm.input output_rows : tensor<?xi32>
  %rows = lm.input output_rows : tensor<?xi32>
  // CHECK: lm.weight "embed" format "f16" : tensor<100x64xf32>
  %table = lm.weight "embed" format "f16" : tensor<100x64xf32>
  %scale = lm.weight "norm" format "f32" : tensor<64xf32>
  %head_scale = lm.weight "head_norm" format "f32" : tensor<16xf32>
  %wq = lm.weight "q" format "f16" : tensor<64x64xf32>
  %wk = lm.weight "k" format "f16" : tensor<32x64xf32>
  %bq = lm.weight "q.bias" format "f32" : tensor<64xf32>
  %bk = lm.weight "k.bias" format "f32" : tensor<32xf32>
  // CHECK: lm.constant "frequencies" [1.000000e+00, 5.000000e-01] : tensor<2xf32>
  %frequencies = lm.constant "frequencies" [1.0, 0.5] : tensor<2xf32>
  // CHECK: lm.state "cache" : !lm.kv_cache<2 x 16>
  %cache = lm.state "cache" : !lm.kv_cache<2 x 16>
  // CHECK: lm.embed %{{.*}}, %{{.*}} : (tensor<?xi32>, tensor<100x64xf32>) -> tensor<?x64xf32>
  %x = lm.embed %ids, %table : (tensor<?xi32>, tensor<100x64xf32>) -> tensor<?x64xf32>
  // CHECK: lm.rope_angles %{{.*}}, %{{.*}} {magnitude = 1.250000e+00 : f32}
  %angles = lm.rope_angles %positions, %frequencies {magnitude = 1.25 : f32}
      : (tensor<?xi32>, tensor<2xf32>) -> tensor<?x4xf32>
  // CHECK: lm.rms_norm %{{.*}} scale %{{.*}} over 64 eps 9.99999974E-6 : tensor<?x64xf32>, tensor<64xf32>
  %n = lm.rms_norm %x scale %scale over 64 eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>
  // CHECK: %[[QK:.*]]:2 = lm.linear %{{.*}} weights(%{{.*}}, %{{.*}}) biases(%{{.*}}, %{{.*}})
  %q, %k = lm.linear %n weights(%wq, %wk) biases(%bq, %bk)
      : (tensor<?x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>, tensor<64xf32>, tensor<32xf32>)
      -> (tensor<?x64xf32>, tensor<?x32xf32>)
  // CHECK: lm.rms_norm %[[QK]]#0 scale %{{.*}} over 16 eps
  %qn = lm.rms_norm %q scale %head_scale over 16 eps 1.0e-5 : tensor<?x64xf32>, tensor<16xf32>
  // CHECK: lm.rms_norm %[[QK]]#1 over 16 eps 0.000000e+00 : tensor<?x32xf32>
  %kn = lm.rms_norm %k over 16 eps 0.0 : tensor<?x32xf32>
  // CHECK: lm.rope %{{.*}}, %{{.*}} pairs head_dim 16 : tensor<?x64xf32>, tensor<?x4xf32>
  %qr = lm.rope %qn, %angles pairs head_dim 16 : tensor<?x64xf32>, tensor<?x4xf32>
  // CHECK: lm.rope %{{.*}}, %{{.*}} halves head_dim 16
  %kr = lm.rope %kn, %angles halves head_dim 16 : tensor<?x32xf32>, tensor<?x4xf32>
  // CHECK: lm.append %{{.*}} keys %{{.*}} values %{{.*}} : !lm.kv_cache<2 x 16>, tensor<?x32xf32>, tensor<?x32xf32>
  %filled = lm.append %cache keys %kr values %k : !lm.kv_cache<2 x 16>, tensor<?x32xf32>, tensor<?x32xf32>
  // CHECK: lm.attention %{{.*}}, %{{.*}} heads 4 scale 2.500000e-01 : tensor<?x64xf32>, !lm.kv_cache<2 x 16> -> tensor<?x64xf32>
  %o = lm.attention %qr, %filled heads 4 scale 0.25 : tensor<?x64xf32>, !lm.kv_cache<2 x 16> -> tensor<?x64xf32>
  // CHECK: lm.attention %{{.*}} sinks %{{.*}} heads 4 scale 2.500000e-01 window 9 softcap 5.000000e+01 : {{.*}}, !lm.kv_cache<2 x 16, values 8>, tensor<4xf32> -> tensor<?x32xf32>
  %sinks = lm.weight "sinks" format "f32" : tensor<4xf32>
  %narrow = lm.state "narrow" : !lm.kv_cache<2 x 16, values 8>
  %narrowed = lm.attention %qr, %narrow sinks %sinks heads 4 scale 0.25 window 9 softcap 50.0 : tensor<?x64xf32>, !lm.kv_cache<2 x 16, values 8>, tensor<4xf32> -> tensor<?x32xf32>
  // CHECK: lm.silu %{{.*}} : tensor<?x64xf32>
  %s = lm.silu %o : tensor<?x64xf32>
  // CHECK: lm.mul %{{.*}}, %{{.*}} : tensor<?x64xf32>
  %m = lm.mul %s, %o : tensor<?x64xf32>
  // CHECK: lm.gelu %{{.*}} : tensor<?x64xf32>
  %ge = lm.gelu %m : tensor<?x64xf32>
  // CHECK: lm.sigmoid %{{.*}} : tensor<?x64xf32>
  %si = lm.sigmoid %ge : tensor<?x64xf32>
  // CHECK: lm.soft_cap %{{.*}} at 3.000000e+01 : tensor<?x64xf32>
  %capped = lm.soft_cap %si at 30.0 : tensor<?x64xf32>
  // CHECK: lm.slice %{{.*}} from 16 : tensor<?x64xf32> -> tensor<?x8xf32>
  %part = lm.slice %capped from 16 : tensor<?x64xf32> -> tensor<?x8xf32>
  // CHECK: lm.weight "qkv" format "f16" view [64, 32, 48] : tensor<64x64xf32>
  %view = lm.weight "qkv" format "f16" view [64, 32, 48] : tensor<64x64xf32>
  // CHECK: lm.rope_angles %{{.*}} {growth = 1.000000e-01 : f32, period = 16 : i64}
  %growing = lm.rope_angles %positions, %frequencies {growth = 0.1 : f32, period = 16}
      : (tensor<?xi32>, tensor<2xf32>) -> tensor<?x4xf32>
  // CHECK: lm.short_conv %{{.*}} weight %{{.*}} state %{{.*}} silu : tensor<?x64xf32>, tensor<192xf32>, !lm.row_state<64 x 2>
  %taps = lm.weight "conv" format "f32" : tensor<192xf32>
  %rows_before = lm.state "rows" : !lm.row_state<64 x 2>
  %conv, %rows_after = lm.short_conv %o weight %taps state %rows_before silu : tensor<?x64xf32>, tensor<192xf32>, !lm.row_state<64 x 2>
  // CHECK: lm.delta_rule %{{.*}} decay %{{.*}} beta %{{.*}} rate %{{.*}} bias %{{.*}} state %{{.*}} key_heads 1 eps 9.99999997E-7 tiled
  %two = lm.slice %o from 0 : tensor<?x64xf32> -> tensor<?x2xf32>
  %memory = lm.state "memory" : !lm.delta_state<2 x 16 x 16>
  %found, %memory_after = lm.delta_rule %conv decay %two beta %two rate %frequencies bias %frequencies state %memory key_heads 1 eps 1.0e-6 tiled
      : tensor<?x64xf32>, tensor<?x2xf32>, tensor<2xf32>, !lm.delta_state<2 x 16 x 16> -> tensor<?x32xf32>
  // CHECK: lm.scale %{{.*}} by 5.000000e-01 : tensor<?x64xf32>
  %half = lm.scale %m by 0.5 : tensor<?x64xf32>
  // CHECK: lm.add %{{.*}}, %{{.*}} : tensor<?x64xf32>
  %y = lm.add %x, %half : tensor<?x64xf32>
  // CHECK: lm.linear %{{.*}} weights(%{{.*}}) : (tensor<?x64xf32>, tensor<100x64xf32>) -> tensor<?x100xf32>
  %logits = lm.linear %y weights(%table) : (tensor<?x64xf32>, tensor<100x64xf32>) -> tensor<?x100xf32>
  // CHECK: lm.select_rows %{{.*}}, %{{.*}} : tensor<?x100xf32>, tensor<?xi32>
  %chosen = lm.select_rows %logits, %rows : tensor<?x100xf32>, tensor<?xi32>
  return %chosen : tensor<?x100xf32>
}

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %b: tensor<8xf32>, %bh: tensor<256xf32>, %bx: tensor<512xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: lm.weight "gate" format "f16" : tensor<8x32x64xf32>
  %g = lm.weight "gate" format "f16" : tensor<8x32x64xf32>
  %d = lm.weight "down" format "f16" : tensor<8x64x32xf32>
  // CHECK: lm.route %{{.*}} softmax {normalize} : tensor<?x8xf32> -> !lm.routes<8 x 2>
  %r = lm.route %l softmax {normalize} : tensor<?x8xf32> -> !lm.routes<8 x 2>
  // CHECK: lm.experts %{{.*}} routes %{{.*}} weights(%{{.*}}, %{{.*}}, %{{.*}}) silu
  %y = lm.experts %x routes %r weights(%g, %g, %d) silu
      : (tensor<?x64xf32>, !lm.routes<8 x 2>, tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8x64x32xf32>) -> tensor<?x64xf32>
  // CHECK: lm.route %{{.*}} bias %{{.*}} sigmoid {group_best = 2 : i64, group_chosen = 2 : i64, groups = 4 : i64, scale = 2.500000e+00 : f32}
  %s = lm.route %l bias %b sigmoid {groups = 4 : i64, group_chosen = 2 : i64, group_best = 2 : i64, scale = 2.5 : f32}
      : tensor<?x8xf32>, tensor<8xf32> -> !lm.routes<8 x 3>
  // CHECK: lm.experts {{.*}} biases(%{{.*}}, %{{.*}}, %{{.*}}) limited_silu {alpha = 1.702000e+00 : f32, limit = 7.000000e+00 : f32}
  %z = lm.experts %x routes %s weights(%g, %g, %d) biases(%bh, %bh, %bx) limited_silu {alpha = 1.702 : f32, limit = 7.0 : f32}
      : (tensor<?x64xf32>, !lm.routes<8 x 3>, tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8x64x32xf32>, tensor<256xf32>, tensor<256xf32>, tensor<512xf32>) -> tensor<?x64xf32>
  return %y, %z : tensor<?x64xf32>, tensor<?x64xf32>
}

// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<?x64xf32>, %y: tensor<?x8xf32>) -> tensor<?x40xf32> {
  %w = lm.weight "w" format "f16" : tensor<2x16x32xf32>
  // CHECK: lm.head_linear %{{.*}}, %{{.*}} : (tensor<?x64xf32>, tensor<2x16x32xf32>) -> tensor<?x32xf32>
  %h = lm.head_linear %x, %w : (tensor<?x64xf32>, tensor<2x16x32xf32>) -> tensor<?x32xf32>
  // CHECK: lm.join %{{.*}}, %{{.*}} heads 2 : (tensor<?x32xf32>, tensor<?x8xf32>) -> tensor<?x40xf32>
  %j = lm.join %h, %y heads 2 : (tensor<?x32xf32>, tensor<?x8xf32>) -> tensor<?x40xf32>
  %f = lm.weight "f" format "f32" : tensor<1x40xf32>
  %one = lm.linear %j weights(%f) : (tensor<?x40xf32>, tensor<1x40xf32>) -> tensor<?x1xf32>
  // CHECK: lm.scale_rows %{{.*}}, %{{.*}} : tensor<?x40xf32>, tensor<?x1xf32>
  %s = lm.scale_rows %j, %one : tensor<?x40xf32>, tensor<?x1xf32>
  return %s : tensor<?x40xf32>
}
