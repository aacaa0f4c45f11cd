// Ops on the heads of rows in the `lm` dialect, for attention whose cache holds
// something smaller than keys and values, and on rows as a whole. Included by
// LmOps.td.

#ifndef IZHC_DIALECTS_LM_LMHEADS
#define IZHC_DIALECTS_LM_LMHEADS

def HeadLinearOp : LmOp<"head_linear"> {
  let summary = "products of each head with a matrix of its own";
  let description = [{
    With a stack of H matrices of R x C values and rows of H * C values:
    result[t, h * R + r] = sum over k of weight[h][r, k] * input[t, h * C + k].

    `%y = lm.head_linear %x, %w : (tensor<?x64xf32>, tensor<2x16x32xf32>) -> tensor<?x32xf32>`
  }];
  let arguments = (ins Rows:$input, Matrices:$weight);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input `,` $weight attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def JoinOp : LmOp<"join"> {
  let summary = "heads put together from two sets of rows";
  let description = [{
    Both rows are cut into `heads` runs; each head of the result is a run of
    `lhs` followed by the run of `rhs`.

    `%k = lm.join %c, %r heads 4 : (tensor<?x64xf32>, tensor<?x32xf32>) -> tensor<?x96xf32>`
  }];
  let arguments = (ins Rows:$lhs, Rows:$rhs, I64Attr:$heads);
  let results = (outs Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs `heads` $heads attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def ScaleRowsOp : LmOp<"scale_rows", [AllTypesMatch<["input", "result"]>]> {
  let summary = "each row times a number of its own";
  let description = [{
    result[t, i] = input[t, i] * factors[t, 0].

    `%y = lm.scale_rows %x, %f : tensor<?x64xf32>, tensor<?x1xf32>`
  }];
  let arguments = (ins Rows:$input, Rows:$factors);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input `,` $factors attr-dict `:` type($input) `,` type($factors)";
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_LM_LMHEADS
