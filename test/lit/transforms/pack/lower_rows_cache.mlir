// RUN: izh-opt %s --izh-lower-rows=cache-bits=8 --split-input-file --verify-diagnostics

// Blocks of codes have 32 values.
func.func @refuses_heads_without_blocks(%k: tensor<?x80xf32>) {
  // expected-error @+1 {{has heads of 80 and 80 values, which the blocks of 32 of this type of cache don't divide}}
  %c = lm.state "c" : !lm.kv_cache<1 x 80>
  %d = lm.append %c keys %k values %k : !lm.kv_cache<1 x 80>, tensor<?x80xf32>, tensor<?x80xf32>
  return
}
