// RUN: izh-opt %s --split-input-file --verify-diagnostics

func.func @dot(%acc: vector<4xi32>, %codes: vector<8xi8>) {
  // expected-error @+1 {{needs four codes for each of the 4 lanes, but has 8}}
  %0 = pack.dot %acc, %codes, %codes max 15 : vector<4xi32>, vector<8xi8>
  return
}

// -----

// expected-error @+1 {{expected f32, block32 or block256, found 'block64'}}
func.func private @kind(!pack.act<64 x block64, sums false, corr32 [], corr16 []>)

// -----

func.func @embed_width(%i: tensor<?xi32>, %w: !pack.weight<10 x 64, "f16">) {
  // expected-error @+1 {{needs rows of float32 of width 64 as its result, but has 'tensor<?x32xf32>'}}
  %x = pack.embed %i, %w : (tensor<?xi32>, !pack.weight<10 x 64, "f16">) -> tensor<?x32xf32>
  return
}

// -----

func.func @embed_matrix(%i: tensor<?xi32>, %w: tensor<10x64xf32>) {
  // expected-error @+1 {{can't take this type as its matrix: 'tensor<10x64xf32>'}}
  %x = pack.embed %i, %w : (tensor<?xi32>, tensor<10x64xf32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @embed_ids(%i: tensor<?xf32>, %w: !pack.weight<10 x 64, "f16">) {
  // expected-error @+1 {{needs an array of int32 as its ids, but has 'tensor<?xf32>'}}
  %x = pack.embed %i, %w : (tensor<?xf32>, !pack.weight<10 x 64, "f16">) -> tensor<?x64xf32>
  return
}

// -----

plan.kernel @no_destination(%i: memref<?xi32>, %w: !pack.weight<10 x 64, "f16">) {
  // expected-error @+1 {{needs a destination or results, not both and not none}}
  pack.embed %i, %w : (memref<?xi32>, !pack.weight<10 x 64, "f16">) -> ()
}

// -----

func.func @table_width(%p: tensor<?xi32>, %f: tensor<4xf32>) {
  // expected-error @+1 {{needs rows of float32 of width 8 as its result}}
  %t = pack.rope_table %p, %f : (tensor<?xi32>, tensor<4xf32>) -> tensor<?x4xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

func.func @norm_length(%x: tensor<?x64xf32>, %n: tensor<32xf32>) {
  // expected-error @+1 {{needs a float32 vector of length 64 as its norm, but has 'tensor<32xf32>'}}
  %a = pack.quantize %x norm %n : (tensor<?x64xf32>, tensor<32xf32>) -> !a
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

func.func @selected_tokens(%x: tensor<?x64xf32>, %i: tensor<?xi32>) {
  // expected-error @+1 {{selects rows, so its row set must be outputs}}
  %a = pack.quantize %x indices %i : (tensor<?x64xf32>, tensor<?xi32>) -> !a
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

func.func @no_matrix(%a: !a) {
  // expected-error @+1 {{needs at least one matrix}}
  %y = pack.matmul %a weights() : (!a) -> tensor<?x64xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 32, "f16">

func.func @columns(%a: !a, %w: !w) {
  // expected-error @+1 {{multiplies activations of width 64 with a matrix of 32 columns}}
  %y = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x16xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">

func.func @biases(%a: !a, %w: !w, %b: tensor<16xf32>) {
  // expected-error @+1 {{has 1 biases, but not one for each of its 2 matrices}}
  %y = pack.matmul %a weights(%w, %w) biases(%b) : (!a, !w, !w, tensor<16xf32>) -> tensor<?x32xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">

func.func @gate(%a: !a, %w: !w) {
  // expected-error @+1 {{needs gate and up of equal shape for its epilogue}}
  %y = pack.matmul %a weights(%w) {epilogue = 2 : i32} : (!a, !w) -> tensor<?x16xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<16 x 64, "f16">

func.func @residual(%a: !a, %w: !w) {
  // expected-error @+1 {{has a residual exactly if it is a tensor form that adds}}
  %y = pack.matmul %a weights(%w) {epilogue = 1 : i32} : (!a, !w) -> tensor<?x16xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !pack.kv<2 x 16, page 64>

func.func @results(%a: !a, %w: !w, %s: tensor<?xi32>, %c: !kv) {
  // expected-error @+1 {{has the wrong count of results: 1}}
  %q = pack.matmul_heads %a weights(%w, %w, %w) slots %s cache %c {head_dim = 16, rotary = 0, rope = 0 : i32}
      : (!a, !w, !w, !w, tensor<?xi32>, !kv) -> tensor<?x32xf32>
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !pack.kv<2 x 16, page 64>

func.func @two_matrices(%a: !a, %w: !w, %s: tensor<?xi32>, %c: !kv) {
  // expected-error @+1 {{needs three matrices, for queries, keys and values}}
  %q, %d = pack.matmul_heads %a weights(%w, %w) slots %s cache %c {head_dim = 16, rotary = 0, rope = 0 : i32}
      : (!a, !w, !w, tensor<?xi32>, !kv) -> (tensor<?x32xf32>, !kv)
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !pack.kv<1 x 16, page 64>

func.func @cache(%a: !a, %w: !w, %s: tensor<?xi32>, %c: !kv) {
  // expected-error @+1 {{makes keys and values that don't fit into its cache}}
  %q, %d = pack.matmul_heads %a weights(%w, %w, %w) slots %s cache %c {head_dim = 16, rotary = 0, rope = 0 : i32}
      : (!a, !w, !w, !w, tensor<?xi32>, !kv) -> (tensor<?x32xf32>, !kv)
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!q = !pack.weight<40 x 64, "f16">
!w = !pack.weight<32 x 64, "f16">
!kv = !pack.kv<2 x 16, page 64>

func.func @queries(%a: !a, %q: !q, %w: !w, %s: tensor<?xi32>, %c: !kv) {
  // expected-error @+1 {{can't cut its queries into heads}}
  %r, %d = pack.matmul_heads %a weights(%q, %w, %w) slots %s cache %c {head_dim = 16, rotary = 0, rope = 0 : i32}
      : (!a, !q, !w, !w, tensor<?xi32>, !kv) -> (tensor<?x40xf32>, !kv)
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !pack.kv<2 x 16, page 64>

func.func @no_table(%a: !a, %w: !w, %s: tensor<?xi32>, %c: !kv) {
  // expected-error @+1 {{has a table exactly if its heads are turned}}
  %q, %d = pack.matmul_heads %a weights(%w, %w, %w) slots %s cache %c {head_dim = 16, rotary = 16, rope = 1 : i32}
      : (!a, !w, !w, !w, tensor<?xi32>, !kv) -> (tensor<?x32xf32>, !kv)
  return
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<32 x 64, "f16">
!kv = !pack.kv<2 x 16, page 64>

func.func @rotary(%a: !a, %w: !w, %t: tensor<?x32xf32>, %s: tensor<?xi32>, %c: !kv) {
  // expected-error @+1 {{can only turn an even number of a head's values}}
  %q, %d = pack.matmul_heads %a weights(%w, %w, %w) table %t slots %s cache %c {head_dim = 16, rotary = 32, rope = 1 : i32}
      : (!a, !w, !w, !w, tensor<?x32xf32>, tensor<?xi32>, !kv) -> (tensor<?x32xf32>, !kv)
  return
}

// -----

!kv = !pack.kv<2 x 16, page 64>

func.func @heads(%q: tensor<?x48xf32>, %c: !kv, %i: tensor<?xi32>) {
  // expected-error @+1 {{needs as many query heads as key heads, or a multiple, and tiles of at least one row}}
  %o = pack.attention %q cache %c tiles %i pages %i {heads = 3, scale = 1.0 : f32, tile = 8}
      : (tensor<?x48xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x48xf32>
  return
}

// -----

func.func @map_columns(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{reads columns that its left operand doesn't have}}
  %y = pack.map scale %x {lhs_first = 5} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @map_operands(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{has the wrong count of operands for its kind}}
  %y = pack.map mul %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @norm_runs(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{can't cut its rows into such runs}}
  %y = pack.norm %x {over = 3, eps = 0.0 : f32} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @rope_heads(%x: tensor<?x8xf32>, %t: tensor<?x4xf32>) {
  // expected-error @+1 {{can't cut its rows into heads}}
  %y = pack.rope %x table %t {head_dim = 3, style = 1 : i32} : (tensor<?x8xf32>, tensor<?x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @hadamard_blocks(%x: tensor<?x48xf32>) {
  // expected-error @+1 {{can't cut its rows into heads, or those into blocks of 32}}
  %y = pack.hadamard %x {head_dim = 48} : (tensor<?x48xf32>) -> tensor<?x48xf32>
  return
}

// -----

func.func @rope_values(%x: tensor<?x8xf32>, %t: tensor<?x6xf32>) {
  // expected-error @+1 {{can only turn an even number of a head's values}}
  %y = pack.rope %x table %t {head_dim = 4, style = 1 : i32} : (tensor<?x8xf32>, tensor<?x6xf32>) -> tensor<?x8xf32>
  return
}

// -----

!kv = !pack.kv<1 x 8, page 64>

func.func @append_cache(%x: tensor<?x8xf32>, %s: tensor<?xi32>) {
  // expected-error @+1 {{takes the cache it returns, or writes to one}}
  %y = pack.append %x, %x slots %s : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>) -> !kv
  return
}

// -----

func.func @short(%numbers: vector<16xi8>) {
  // expected-error @+1 {{needs a table of 16 bytes, but has 3}}
  %0 = pack.lookup %numbers [0, 1, 2] : vector<16xi8>
  return
}

// -----

func.func @conv_state(%x: tensor<?x8xf32>, %w: tensor<24xf32>, %q: tensor<?xi32>, %s: !pack.slots<8>) {
  // expected-error @+1 {{keeps too many or too few rows}}
  %y, %n = pack.short_conv %x weight %w sequences %q state %s : (tensor<?x8xf32>, tensor<24xf32>, tensor<?xi32>, !pack.slots<8>) -> (tensor<?x8xf32>, !pack.slots<8>)
  return
}

// -----

!kv = !pack.kv<2 x 16, page 64>

func.func @softcap(%q: tensor<?x32xf32>, %c: !kv, %i: tensor<?xi32>) {
  // expected-error @+1 {{needs a window and a softcap that are not negative}}
  %o = pack.attention %q cache %c tiles %i pages %i {heads = 2, scale = 1.0 : f32, tile = 8, softcap = -1.0 : f32}
      : (tensor<?x32xf32>, !kv, tensor<?xi32>, tensor<?xi32>) -> tensor<?x32xf32>
  return
}

// -----

// expected-error @+1 {{a page of 24 tokens is no whole part of a span of 256 in panels of 16}}
func.func @page(%c: !pack.kv<2 x 16, page 24>)

// -----

// expected-error @+1 {{a cache needs at least one head and one value a head}}
func.func @no_heads(%c: !pack.kv<0 x 16, page 64>)

// -----

// expected-error @+1 {{a cache has 16, 8 or 4 bits a value, not 5}}
func.func @bits(%c: !pack.kv<2 x 32, page 64, values 32, bits 5>)

// -----

// expected-error @+1 {{heads of 48 values can't be cut into blocks of 32}}
func.func @blocks(%c: !pack.kv<2 x 48, page 64, values 48, bits 8>)

// -----

!kv = !pack.kv<2 x 16, page 64>

func.func @parts(%q: memref<?x32xf32>, %c: !kv, %i: memref<?xi32>) {
  // expected-error @+1 {{has a place for partials exactly if it is a buffer form with parts}}
  pack.attention %q cache %c tiles %i pages %i parts %i into %q {heads = 2, scale = 1.0 : f32, tile = 8}
      : (memref<?x32xf32>, !kv, memref<?xi32>, memref<?xi32>, memref<?xi32>, memref<?x32xf32>) -> ()
  return
}

// -----

!kv = !pack.kv<2 x 16, page 64>

func.func @merge_heads(%p: tensor<?x64xf32>, %i: tensor<?xi32>, %c: !kv, %r: tensor<?x32xf32>) {
  // expected-error @+1 {{needs heads, and a window that is not negative}}
  %m = pack.merge rows %r partials %p merges %i cache %c {heads = 2, window = -1}
      : (tensor<?x32xf32>, tensor<?x64xf32>, tensor<?xi32>, !kv) -> tensor<?x32xf32>
  return
}

// -----

!kv = !pack.kv<2 x 16, page 64>

func.func @merge_rows(%p: tensor<?x64xf32>, %i: tensor<?xi32>, %c: !kv) {
  // expected-error @+1 {{has rows exactly if it is a tensor form}}
  %m = pack.merge partials %p merges %i cache %c {heads = 2}
      : (tensor<?x64xf32>, tensor<?xi32>, !kv) -> tensor<?x32xf32>
  return
}

// -----

func.func @pairs(%a: vector<4xbf16>, %c: vector<4xf32>) {
  // expected-error @+1 {{needs two numbers for each of the 4 lanes, but has 4}}
  %d = pack.dot_pairs %a, %a add %c : vector<4xbf16>, vector<4xf32>
  return
}

// -----

func.func @delta_memory(%m: tensor<?x64xf32>, %a: tensor<?x4xf32>, %r: tensor<4xf32>, %q: tensor<?xi32>, %s: !pack.slots<8>) {
  // expected-error @+1 {{has a memory of another size}}
  %y, %n = pack.delta_rule %m decay %a beta %a rate %r bias %r sequences %q state %s {key_heads = 2, key_dim = 8, value_dim = 8, eps = 0.0 : f32}
    : (tensor<?x64xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<?xi32>, !pack.slots<8>) -> (tensor<?x32xf32>, !pack.slots<8>)
  return
}
