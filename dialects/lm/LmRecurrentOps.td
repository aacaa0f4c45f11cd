// Ops of the `lm` dialect whose state has one size however long the sequence
// is. A part of LmOps.td.

#ifndef IZHC_DIALECTS_LM_LMRECURRENTOPS
#define IZHC_DIALECTS_LM_LMRECURRENTOPS

def ShortConvOp : LmOp<"short_conv", [AllTypesMatch<["input", "result"]>,
                                      AllTypesMatch<["state", "next"]>]> {
  let summary = "a convolution of each column over the last few tokens";
  let description = [{
    result[t, c] = sum over j < n of weight[c * n + j] * input[t - (n - 1) + j, c],
    where rows before the sequence's first are zero and those of earlier steps
    come from the state, which keeps the last n - 1. With `silu` the result is
    silu of that.

    `%y, %n = lm.short_conv %x weight %w state %s silu
     : tensor<?x128xf32>, tensor<384xf32>, !lm.row_state<128 x 2>`
  }];
  let arguments = (ins Rows:$input, Vector:$weight, RowStateType:$state, UnitAttr:$silu);
  let results = (outs Rows:$result, RowStateType:$next);
  let assemblyFormat = [{
    $input `weight` $weight `state` $state (`silu` $silu^)? attr-dict
    `:` type($input) `,` type($weight) `,` qualified(type($state))
  }];
  let hasVerifier = 1;
}

def DeltaRuleOp : LmOp<"delta_rule", [AllTypesMatch<["state", "next"]>,
                                      AllTypesMatch<["decay", "beta"]>,
                                      AllTypesMatch<["rate", "bias"]>]> {
  let summary = "linear attention whose memory is corrected by the gated delta rule";
  let description = [{
    A row of `mixed` holds queries and keys of `key_heads` heads of the state's
    K values each and then values of H heads of V values. For each of the H
    heads, with the queries q and keys k of key head h / (H / key_heads), or
    h % key_heads if `tiled`, both divided by sqrt(their square sum + eps) and q
    also by sqrt(K), and with memory S (K x V, zero before the first token):

    g = exp(rate[h] * softplus(decay[t, h] + bias[h])), b = sigmoid(beta[t, h])
    S = g S;  S = S + k (b (v - S^T k))^T;  result[t, h] = S^T q

    `%o, %n = lm.delta_rule %m decay %a beta %b rate %r bias %d state %s key_heads 2 eps 1.0e-6
     : tensor<?x256xf32>, tensor<?x4xf32>, tensor<4xf32>, !lm.delta_state<4 x 32 x 32>
     -> tensor<?x128xf32>`
  }];
  let arguments = (ins Rows:$mixed, Rows:$decay, Rows:$beta, Vector:$rate, Vector:$bias,
                       DeltaStateType:$state, I64Attr:$key_heads, F32Attr:$eps, UnitAttr:$tiled);
  let results = (outs Rows:$result, DeltaStateType:$next);
  let assemblyFormat = [{
    $mixed `decay` $decay `beta` $beta `rate` $rate `bias` $bias `state` $state
    `key_heads` $key_heads `eps` $eps (`tiled` $tiled^)? attr-dict
    `:` type($mixed) `,` type($decay) `,` type($rate) `,` qualified(type($state))
    `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_LM_LMRECURRENTOPS
