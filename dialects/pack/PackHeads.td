// Ops on the heads of rows in the `pack` dialect. Included by PackOps.td.

#ifndef IZHC_DIALECTS_PACK_PACKHEADS
#define IZHC_DIALECTS_PACK_PACKHEADS

def HeadMatmulOp : PackOp<"head_matmul"> {
  let summary = "products of each head with a matrix of its own";
  let description = [{
    `weight` is a stack of H matrices of R rows; row t of the step has the
    records t * H + h of its heads h:
    out[t, h * R + r] = sum over k of weight[h][r, k] * act[t * H + h, k].
    Unit of work: one tile of 16 rows of one head, numbered head * tiles + tile.
  }];
  let arguments = (ins AnyType:$act, AnyType:$weight, Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $act `weight` $weight (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def JoinOp : PackOp<"join"> {
  let summary = "heads put together from two sets of rows";
  let description = [{
    Both rows are cut into `heads` runs; each head of the result is a run of
    `lhs` followed by the run of `rhs`. Unit of work: one row.
  }];
  let arguments = (ins AnyType:$lhs, AnyType:$rhs, I64Attr:$heads, Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `heads` $heads (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def ScaleRowsOp : PackOp<"scale_rows"> {
  let summary = "each row times a number of its own";
  let description = [{
    out[t, i] = input[t, i] * factors[t, 0]. Unit of work: one row.
  }];
  let arguments = (ins AnyType:$input, AnyType:$factors, Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $input `,` $factors (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_PACK_PACKHEADS
