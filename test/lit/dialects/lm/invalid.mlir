// RUN: izh-opt %s --split-input-file --verify-diagnostics
// Each case is refused with a sentence that names both sizes.

// expected-error @+1 {{a cache needs at least one head and one value a head}}
func.func private @empty_cache(!lm.kv_cache<0 x 16>)

// -----

func.func @constant_count() {
  // expected-error @+1 {{has 1 values for a vector of 2}}
  %c = lm.constant "c" [1.0] : tensor<2xf32>
  return
}

// -----

func.func @embed_width(%ids: tensor<?xi32>, %w: tensor<10x8xf32>) {
  // expected-error @+1 {{makes rows of 4 values from a matrix of 8 columns}}
  %x = lm.embed %ids, %w : (tensor<?xi32>, tensor<10x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @norm_runs(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{can't cut rows of 8 values into runs of 3}}
  %n = lm.rms_norm %x over 3 eps 0.0 : tensor<?x8xf32>
  return
}

// -----

func.func @norm_scale(%x: tensor<?x8xf32>, %s: tensor<8xf32>) {
  // expected-error @+1 {{has a scale of 8 values for runs of 4}}
  %n = lm.rms_norm %x scale %s over 4 eps 0.0 : tensor<?x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @norm_eps(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{needs an eps that is not negative}}
  %n = lm.rms_norm %x over 8 eps -1.0 : tensor<?x8xf32>
  return
}

// -----

func.func @linear_results(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error @+1 {{has 1 matrices for 2 results}}
  %a, %b = lm.linear %x weights(%w) : (tensor<?x8xf32>, tensor<4x8xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

func.func @linear_biases(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{has 1 biases for 2 matrices}}
  %y, %z = lm.linear %x weights(%w, %w) biases(%b)
      : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return
}

// -----

func.func @linear_columns(%x: tensor<?x8xf32>, %w: tensor<4x9xf32>) {
  // expected-error @+1 {{multiplies rows of 8 values with a matrix of 9 columns}}
  %y = lm.linear %x weights(%w) : (tensor<?x8xf32>, tensor<4x9xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @linear_rows(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error @+1 {{makes rows of 5 values from a matrix of 4 rows}}
  %y = lm.linear %x weights(%w) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @linear_bias_size(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{adds a bias of 8 values to rows of 4}}
  %y = lm.linear %x weights(%w) biases(%b) : (tensor<?x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @angles(%p: tensor<?xi32>, %f: tensor<4xf32>) {
  // expected-error @+1 {{makes rows of 4 values from 4 frequencies}}
  %a = lm.rope_angles %p, %f : (tensor<?xi32>, tensor<4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @rope_heads(%x: tensor<?x8xf32>, %a: tensor<?x4xf32>) {
  // expected-error @+1 {{can't cut rows of 8 values into heads of 5}}
  %y = lm.rope %x, %a halves head_dim 5 : tensor<?x8xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @rope_rotary(%x: tensor<?x8xf32>, %a: tensor<?x8xf32>) {
  // expected-error @+1 {{can't turn 8 values of heads of 4}}
  %y = lm.rope %x, %a halves head_dim 4 : tensor<?x8xf32>, tensor<?x8xf32>
  return
}

// -----

func.func @append_width(%c: !lm.kv_cache<2 x 4>, %k: tensor<?x8xf32>, %v: tensor<?x4xf32>) {
  // expected-error @+1 {{needs keys of 8 and values of 8 columns, but has 8 and 4}}
  %d = lm.append %c keys %k values %v : !lm.kv_cache<2 x 4>, tensor<?x8xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @attention_heads(%q: tensor<?x12xf32>, %c: !lm.kv_cache<2 x 4>) {
  // expected-error @+1 {{can't share 2 key heads among 3 query heads}}
  %o = lm.attention %q, %c heads 3 scale 1.0 : tensor<?x12xf32>, !lm.kv_cache<2 x 4> -> tensor<?x12xf32>
  return
}

// -----

func.func @attention_width(%q: tensor<?x12xf32>, %c: !lm.kv_cache<2 x 4>) {
  // expected-error @+1 {{needs queries of 16 values, but has 12}}
  %o = lm.attention %q, %c heads 4 scale 1.0 : tensor<?x12xf32>, !lm.kv_cache<2 x 4> -> tensor<?x12xf32>
  return
}

// -----

func.func @attention_result(%q: tensor<?x16xf32>, %c: !lm.kv_cache<2 x 4, values 3>) {
  // expected-error @+1 {{makes rows of 12 values, not of 16}}
  %o = lm.attention %q, %c heads 4 scale 1.0 : tensor<?x16xf32>, !lm.kv_cache<2 x 4, values 3> -> tensor<?x16xf32>
  return
}

// -----

func.func @attention_sinks(%q: tensor<?x16xf32>, %c: !lm.kv_cache<2 x 4>, %s: tensor<2xf32>) {
  // expected-error @+1 {{has 2 sinks for 4 heads}}
  %o = lm.attention %q, %c sinks %s heads 4 scale 1.0 : tensor<?x16xf32>, !lm.kv_cache<2 x 4>, tensor<2xf32> -> tensor<?x16xf32>
  return
}

// -----

func.func @attention_window(%q: tensor<?x16xf32>, %c: !lm.kv_cache<2 x 4>) {
  // expected-error @+1 {{needs a window and a softcap that are not negative}}
  %o = lm.attention %q, %c heads 4 scale 1.0 window -1 : tensor<?x16xf32>, !lm.kv_cache<2 x 4> -> tensor<?x16xf32>
  return
}

// -----

func.func @rows_of_unknown_width(%x: tensor<?x?xf32>) {
  // expected-error @+1 {{must be rows of float32 with a fixed width}}
  %y = lm.silu %x : tensor<?x?xf32>
  return
}

// -----

func.func @view_of_a_vector() {
  // expected-error @+1 {{is a view of something that is no matrix}}
  %w = lm.weight "w" format "f32" view [0, 4, 4] : tensor<4xf32>
  return
}

// -----

func.func @view_numbers() {
  // expected-error @+1 {{needs a view of three numbers: first row, rows of a run, and from one run to the next}}
  %w = lm.weight "w" format "f32" view [0, 4, 2] : tensor<4x4xf32>
  return
}

// -----

func.func @cap(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{needs a cap above zero}}
  %y = lm.soft_cap %x at 0.0 : tensor<?x8xf32>
  return
}

// -----

func.func @slice(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{takes 4 columns from 5 on of 8}}
  %y = lm.slice %x from 5 : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @conv(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %s: !lm.row_state<8 x 2>) {
  // expected-error @+1 {{needs a weight of 24 values and a state of rows of 8, but has 8}}
  %y, %n = lm.short_conv %x weight %w state %s : tensor<?x8xf32>, tensor<8xf32>, !lm.row_state<8 x 2>
  return
}

// -----

func.func @delta_heads(%m: tensor<?x64xf32>, %a: tensor<?x3xf32>, %r: tensor<3xf32>, %s: !lm.delta_state<3 x 8 x 8>) {
  // expected-error @+1 {{can't share 2 key heads among the heads of}}
  %y, %n = lm.delta_rule %m decay %a beta %a rate %r bias %r state %s key_heads 2 eps 0.0 : tensor<?x64xf32>, tensor<?x3xf32>, tensor<3xf32>, !lm.delta_state<3 x 8 x 8> -> tensor<?x24xf32>
  return
}

// -----

func.func @delta_rows(%m: tensor<?x63xf32>, %a: tensor<?x4xf32>, %r: tensor<4xf32>, %s: !lm.delta_state<4 x 8 x 8>) {
  // expected-error @+1 {{needs rows of 64 values and makes rows of 32}}
  %y, %n = lm.delta_rule %m decay %a beta %a rate %r bias %r state %s key_heads 2 eps 0.0 : tensor<?x63xf32>, tensor<?x4xf32>, tensor<4xf32>, !lm.delta_state<4 x 8 x 8> -> tensor<?x32xf32>
  return
}

// -----

func.func @delta_numbers(%m: tensor<?x64xf32>, %a: tensor<?x2xf32>, %r: tensor<4xf32>, %s: !lm.delta_state<4 x 8 x 8>) {
  // expected-error @+1 {{needs one number for each of its 4 heads}}
  %y, %n = lm.delta_rule %m decay %a beta %a rate %r bias %r state %s key_heads 2 eps 0.0 : tensor<?x64xf32>, tensor<?x2xf32>, tensor<4xf32>, !lm.delta_state<4 x 8 x 8> -> tensor<?x32xf32>
  return
}
