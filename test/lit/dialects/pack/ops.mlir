// RUN: izh-opt %s | izh-opt | FileCheck %s
// Every op of `pack` survives printing and parsing, in tensor and buffer form.

!f = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!b = !pack.act<64 x block32, sums true, corr32 [8, 128], corr16 [32]>
!w = !pack.weight<64 x 64, "f16">
!kv = !pack.kv<4 x 16, page 64>

// CHECK-LABEL: func.func @tensors
func.func @tensors(%s: tensor<64xf32>, %h: tensor<16xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: pack.input ids : tensor<?xi32>
  %ids = pack.input ids : tensor<?xi32>
  %positions = pack.input positions : tensor<?xi32>
  %slots = pack.input slots : tensor<?xi32>
  %rows = pack.input output_rows : tensor<?xi32>
  %tiles = pack.input tiles : tensor<?xi32>
  // CHECK: pack.input pages : tensor<?xi32>
  %pages = pack.input pages : tensor<?xi32>
  // CHECK: pack.weight "w" : !pack.weight<64 x 64, "f16">
  %w = pack.weight "w" : !w
  // CHECK: pack.vector "v" : tensor<64xf32>
  %v = pack.vector "v" : tensor<64xf32>
  // CHECK: pack.vector "f" values [1.000000e+00, 5.000000e-01] : tensor<2xf32>
  %f = pack.vector "f" values [1.0, 0.5] : tensor<2xf32>
  // CHECK: pack.state "c" : !pack.kv<4 x 16, page 64>
  %c = pack.state "c" : !kv
  // CHECK: pack.embed %{{.*}}, %{{.*}} {scale = 2.000000e+00 : f32} : (tensor<?xi32>, !pack.weight<64 x 64, "f16">) -> tensor<?x64xf32>
  %x = pack.embed %ids, %w {scale = 2.0 : f32} : (tensor<?xi32>, !w) -> tensor<?x64xf32>
  // CHECK: pack.rope_table %{{.*}}, %{{.*}} : (tensor<?xi32>, tensor<2xf32>) -> tensor<?x4xf32>
  %t = pack.rope_table %positions, %f : (tensor<?xi32>, tensor<2xf32>) -> tensor<?x4xf32>
  // CHECK: pack.quantize %{{.*}} norm %{{.*}} {eps = 9.99999974E-6 : f32} : (tensor<?x64xf32>, tensor<64xf32>) -> !pack.act<64 x block32, sums true, corr32[8, 128], corr16[32]>
  %a = pack.quantize %x norm %v {eps = 1.0e-5 : f32} : (tensor<?x64xf32>, tensor<64xf32>) -> !b
  // CHECK: pack.matmul_heads %{{.*}} weights(%{{.*}}, %{{.*}}, %{{.*}}) biases(%{{.*}}, %{{.*}}, %{{.*}}) q_norm %{{.*}} k_norm %{{.*}} table %{{.*}} slots %{{.*}} cache %{{.*}}
  %q, %d = pack.matmul_heads %a weights(%w, %w, %w) biases(%v, %v, %v) q_norm %h k_norm %h table %t slots %slots cache %c
      {head_dim = 16, rotary = 4, rope = 1 : i32, eps = 1.0e-5 : f32}
      : (!b, !w, !w, !w, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>, tensor<16xf32>, tensor<?x4xf32>, tensor<?xi32>, !kv) -> (tensor<?x64xf32>, !kv)
  // CHECK: pack.attention %{{.*}} sinks %{{.*}} {heads = 4 : i64, scale = 2.500000e-01 : f32, softcap = 5.000000e+01 : f32, tile = 8 : i64, window = 9 : i64}
  // CHECK-SAME: !pack.kv<2 x 16, page 64, values 8>
  %sinks = pack.vector "sinks" : tensor<4xf32>
  %narrow = pack.state "narrow" : !pack.kv<2 x 16, page 64, values 8>
  %m = pack.attention %q cache %narrow tiles %tiles pages %pages sinks %sinks
      {heads = 4, scale = 0.25 : f32, tile = 8, window = 9, softcap = 50.0 : f32}
      : (tensor<?x64xf32>, !pack.kv<2 x 16, page 64, values 8>, tensor<?xi32>, tensor<?xi32>, tensor<4xf32>) -> tensor<?x32xf32>
  // CHECK: pack.attention %{{.*}} cache %{{.*}} tiles %{{.*}} pages %{{.*}} {heads = 4 : i64, scale = 2.500000e-01 : f32, tile = 8 : i64}
  %o = pack.attention %q cache %d tiles %tiles pages %pages {heads = 4, scale = 0.25 : f32, tile = 8}
      : (tensor<?x64xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  // CHECK: %[[L:.*]] = pack.append %{{.*}}, %{{.*}} slots %{{.*}} cache %{{.*}} : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?xi32>, !pack.kv<2 x 32, page 64, values 32, bits 4>)
  %four = pack.state "four" : !pack.kv<2 x 32, page 64, values 32, bits 4>
  %filled = pack.append %x, %x slots %slots cache %four : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?xi32>, !pack.kv<2 x 32, page 64, values 32, bits 4>) -> !pack.kv<2 x 32, page 64, values 32, bits 4>
  // CHECK: pack.attention %{{.*}} cache %[[L]] tiles %{{.*}} pages %{{.*}} parts %{{.*}} {exact, heads = 2 : i64
  %parts = pack.input parts : tensor<?xi32>
  %merges = pack.input merges : tensor<?xi32>
  %once, %partials = pack.attention %q cache %filled tiles %tiles pages %pages parts %parts {heads = 2, scale = 0.25 : f32, tile = 8, exact}
      : (tensor<?x64xf32>, !pack.kv<2 x 32, page 64, values 32, bits 4>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x64xf32>, tensor<?x96xf32>)
  // CHECK: pack.merge rows %{{.*}} partials %{{.*}} merges %{{.*}} cache %[[L]] {heads = 2 : i64}
  %merged = pack.merge rows %once partials %partials merges %merges cache %filled {heads = 2}
      : (tensor<?x64xf32>, tensor<?x96xf32>, tensor<?xi32>, !pack.kv<2 x 32, page 64, values 32, bits 4>) -> tensor<?x64xf32>
  %ao = pack.quantize %o : (tensor<?x64xf32>) -> !f
  // CHECK: pack.matmul %{{.*}} weights(%{{.*}}) residual %{{.*}} {epilogue = 1 : i32}
  %y = pack.matmul %ao weights(%w) residual %x {epilogue = 1 : i32} : (!f, !w, tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: pack.matmul %{{.*}} weights(%{{.*}}, %{{.*}}) {epilogue = 2 : i32}
  %g = pack.matmul %ao weights(%w, %w) {epilogue = 2 : i32} : (!f, !w, !w) -> tensor<?x64xf32>
  // CHECK: pack.quantize %{{.*}} indices %{{.*}} {row_set = 1 : i32}
  %out = pack.quantize %y indices %rows {row_set = 1 : i32} : (tensor<?x64xf32>, tensor<?xi32>) -> !f
  %z = pack.matmul %out weights(%w) {row_set = 1 : i32} : (!f, !w) -> tensor<?x64xf32>
  // CHECK: pack.weight "w" view [0, 16, 48] : !pack.weight<64 x 64, "f16">
  %view = pack.weight "w" view [0, 16, 48] : !w
  // CHECK: pack.map soft_cap %{{.*}} {factor = 3.000000e+01 : f32, row_set = 1 : i32} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %capped = pack.map soft_cap %z {factor = 30.0 : f32, row_set = 1 : i32} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: pack.map silu %{{.*}}, %{{.*}} {lhs_first = 32 : i64} : (tensor<?x64xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %e = pack.map scale %y {lhs_first = 8} : (tensor<?x64xf32>) -> tensor<?x8xf32>
  %gated = pack.map silu %y, %e {lhs_first = 32} : (tensor<?x64xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: pack.norm %{{.*}} scale %{{.*}} residual %{{.*}} {eps = 9.99999974E-6 : f32, over = 16 : i64}
  %n = pack.norm %y scale %h residual %x {over = 16, eps = 1.0e-5 : f32} : (tensor<?x64xf32>, tensor<16xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: pack.rope %{{.*}} table %{{.*}} {head_dim = 16 : i64, style = 2 : i32}
  %r = pack.rope %n table %t {head_dim = 16, style = 2 : i32} : (tensor<?x64xf32>, tensor<?x4xf32>) -> tensor<?x64xf32>
  // CHECK: pack.hadamard %{{.*}} {head_dim = 32 : i64} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %turned = pack.hadamard %r {head_dim = 32} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: pack.append %{{.*}}, %{{.*}} slots %{{.*}} cache %{{.*}} : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?xi32>, !pack.kv<4 x 16, page 64>) -> !pack.kv<4 x 16, page 64>
  %f2 = pack.append %r, %n slots %slots cache %c : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?xi32>, !kv) -> !kv
  // CHECK: pack.input sequences : tensor<?xi32>
  %sequences = pack.input sequences : tensor<?xi32>
  %rows_before = pack.state "rows" : !pack.slots<128>
  %taps = pack.vector "taps" : tensor<192xf32>
  // CHECK: pack.short_conv %{{.*}} weight %{{.*}} sequences %{{.*}} state %{{.*}} {silu} : (tensor<?x64xf32>, tensor<192xf32>, tensor<?xi32>, !pack.slots<128>) -> (tensor<?x64xf32>, !pack.slots<128>)
  %conv, %rows_after = pack.short_conv %y weight %taps sequences %sequences state %rows_before {silu} : (tensor<?x64xf32>, tensor<192xf32>, tensor<?xi32>, !pack.slots<128>) -> (tensor<?x64xf32>, !pack.slots<128>)
  %memory = pack.state "memory" : !pack.slots<512>
  %two = pack.map scale %y : (tensor<?x64xf32>) -> tensor<?x2xf32>
  // CHECK: pack.delta_rule %{{.*}} decay %{{.*}} beta %{{.*}} rate %{{.*}} bias %{{.*}} sequences %{{.*}} state %{{.*}}
  %found, %memory_after = pack.delta_rule %conv decay %two beta %two rate %f bias %f sequences %sequences state %memory
      {key_heads = 1, key_dim = 16, value_dim = 16, eps = 1.0e-6 : f32}
      : (tensor<?x64xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<?xi32>, !pack.slots<512>) -> (tensor<?x32xf32>, !pack.slots<512>)
  return %z, %g : tensor<?x64xf32>, tensor<?x64xf32>
}

// CHECK-LABEL: plan.kernel @buffers
plan.kernel @buffers(%a: !b, %w: !w, %v: memref<64xf32>, %y: memref<?x64xf32>) {
  // CHECK: pack.matmul %arg0 weights(%arg1) biases(%arg2) into %arg3 {epilogue = 1 : i32}
  pack.matmul %a weights(%w) biases(%v) into %y {epilogue = 1 : i32} : (!b, !w, memref<64xf32>, memref<?x64xf32>) -> ()
}

// CHECK-LABEL: func.func @pairs
func.func @pairs(%a: vector<8xbf16>, %b: vector<8xbf16>, %c: vector<4xf32>) -> vector<4xf32> {
  // CHECK: pack.dot_pairs %{{.*}}, %{{.*}} add %{{.*}} : vector<8xbf16>, vector<4xf32>
  %d = pack.dot_pairs %a, %b add %c : vector<8xbf16>, vector<4xf32>
  return %d : vector<4xf32>
}

// CHECK-LABEL: func.func @dot
func.func @dot(%acc: vector<4xi32>, %codes: vector<16xi8>, %values: vector<16xi8>) -> vector<4xi32> {
  // CHECK: pack.dot %arg0, %arg1, %arg2 max 15 : vector<4xi32>, vector<16xi8>
  %0 = pack.dot %acc, %codes, %values max 15 : vector<4xi32>, vector<16xi8>
  // CHECK: pack.dot %{{.*}}, %arg1, %arg2 max 128 signed : vector<4xi32>, vector<16xi8>
  %1 = pack.dot %0, %codes, %values max 128 signed : vector<4xi32>, vector<16xi8>
  return %1 : vector<4xi32>
}

// CHECK-LABEL: func.func @lookup
func.func @lookup(%numbers: vector<16xi8>) -> vector<16xi8> {
  // CHECK: pack.lookup %arg0 [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1] : vector<16xi8>
  %0 = pack.lookup %numbers [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1] : vector<16xi8>
  return %0 : vector<16xi8>
}

!r = !pack.routes<8 x 2>
!up = !pack.weight<32 x 64, "f16", count 8>
!down = !pack.weight<64 x 32, "f16", count 8>
!h = !pack.act<32 x f32, sums false, corr32 [], corr16 []>

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<?x64xf32>, %l: tensor<?x8xf32>, %b: tensor<8xf32>) -> tensor<?x64xf32> {
  // CHECK: pack.weight "up" : !pack.weight<32 x 64, "f16", count 8>
  %u = pack.weight "up" : !up
  %d = pack.weight "down" : !down
  // CHECK: pack.route %{{.*}} bias %{{.*}} sigmoid {normalize} : (tensor<?x8xf32>, tensor<8xf32>) -> !pack.routes<8 x 2>
  %r = pack.route %l bias %b sigmoid {normalize} : (tensor<?x8xf32>, tensor<8xf32>) -> !r
  // CHECK: pack.quantize %{{.*}} indices %{{.*}} {per_token = 2 : i64}
  %a = pack.quantize %x indices %r {per_token = 2 : i64} : (tensor<?x64xf32>, !r) -> !f
  // CHECK: pack.expert_gate %{{.*}} routes %{{.*}} weights(%{{.*}}, %{{.*}}) silu
  %g = pack.expert_gate %a routes %r weights(%u, %u) silu : (!f, !r, !up, !up) -> tensor<?x32xf32>
  %h = pack.quantize %g {per_token = 2 : i64} : (tensor<?x32xf32>) -> !h
  // CHECK: pack.expert_sum %{{.*}} routes %{{.*}} weight %{{.*}} residual %{{.*}} {epilogue = 1 : i32}
  %y = pack.expert_sum %h routes %r weight %d residual %x {epilogue = 1 : i32} : (!h, !r, !down, tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: plan.kernel @expert_buffers
plan.kernel @expert_buffers(%a: !h, %r: !r, %d: !down, %b: memref<512xf32>, %y: memref<?x64xf32>) {
  // CHECK: pack.expert_sum %arg0 routes %arg1 weight %arg2 bias %arg3 into %arg4
  pack.expert_sum %a routes %r weight %d bias %b into %y : (!h, !r, !down, memref<512xf32>, memref<?x64xf32>) -> ()
}

// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<?x128xf32>, %y: tensor<?x8xf32>) -> tensor<?x40xf32> {
  %w = pack.weight "w" : !pack.weight<16 x 64, "f16", count 2>
  %v = pack.weight "v" : !pack.weight<1 x 64, "f16">
  // CHECK: pack.quantize %{{.*}} {per_token = 2 : i64} : (tensor<?x128xf32>) -> !pack.act<64 x f32
  %a = pack.quantize %x {per_token = 2 : i64} : (tensor<?x128xf32>) -> !f
  // CHECK: pack.head_matmul %{{.*}} weight %{{.*}} : (!pack.act<64 x f32, {{.*}}>, !pack.weight<16 x 64, "f16", count 2>) -> tensor<?x32xf32>
  %h = pack.head_matmul %a weight %w : (!f, !pack.weight<16 x 64, "f16", count 2>) -> tensor<?x32xf32>
  // CHECK: pack.join %{{.*}}, %{{.*}} heads 2 : (tensor<?x32xf32>, tensor<?x8xf32>) -> tensor<?x40xf32>
  %j = pack.join %h, %y heads 2 : (tensor<?x32xf32>, tensor<?x8xf32>) -> tensor<?x40xf32>
  %one = pack.matmul %a weights(%v) : (!f, !pack.weight<1 x 64, "f16">) -> tensor<?x1xf32>
  // CHECK: pack.scale_rows %{{.*}}, %{{.*}} : (tensor<?x40xf32>, tensor<?x1xf32>) -> tensor<?x40xf32>
  %s = pack.scale_rows %j, %one : (tensor<?x40xf32>, tensor<?x1xf32>) -> tensor<?x40xf32>
  return %s : tensor<?x40xf32>
}
