// RUN: izh-opt %s --izh-lower-rows=cache-bits=8 --split-input-file --verify-diagnostics

// Codes are kept of rotated keys: queries that nothing has rotated can't meet them.
func.func @refuses_plain_queries(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>) -> tensor<?x32xf32> {
  // expected-error @+1 {{has queries, keys and values that are no plain products turned alike, which this type of cache needs: compile without --kv}}
  %c = lm.state "c" : !lm.kv_cache<1 x 64, values 32>
  %d = lm.append %c keys %k values %v : !lm.kv_cache<1 x 64, values 32>, tensor<?x64xf32>, tensor<?x32xf32>
  %o = lm.attention %q, %d heads 1 scale 1.0 : tensor<?x64xf32>, !lm.kv_cache<1 x 64, values 32> -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

// Blocks of codes have 32 values.
func.func @refuses_heads_without_blocks(%k: tensor<?x80xf32>) {
  // expected-error @+1 {{has heads of 80 and 80 values, which the blocks of 32 of this type of cache don't divide}}
  %c = lm.state "c" : !lm.kv_cache<1 x 80>
  %d = lm.append %c keys %k values %k : !lm.kv_cache<1 x 80>, tensor<?x80xf32>, tensor<?x80xf32>
  return
}
