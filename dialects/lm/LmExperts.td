// Mixtures of experts in the `lm` dialect: the choice of experts for each row
// and the feed-forward parts of those chosen. Included by LmOps.td.

#ifndef IZHC_DIALECTS_LM_LMEXPERTS
#define IZHC_DIALECTS_LM_LMEXPERTS

def Score : I32EnumAttr<"Score", "how an expert's rating of a row becomes its weight", [
  I32EnumAttrCase<"Softmax", 0, "softmax">,
  I32EnumAttrCase<"Sigmoid", 1, "sigmoid">,
  I32EnumAttrCase<"SoftmaxChosen", 2, "softmax_chosen">]> {
  let cppNamespace = "::izhc::lm";
}

def Gating : I32EnumAttr<"Gating", "what becomes of the products gate and up", [
  I32EnumAttrCase<"Silu", 0, "silu">,
  I32EnumAttrCase<"LimitedSilu", 1, "limited_silu">]> {
  let cppNamespace = "::izhc::lm";
}

def RoutesType : LmType<"Routes", "routes"> {
  let summary = "which experts work on each row, and with which weights";
  let description = [{
    `chosen` of `experts` experts for each row.

    `!lm.routes<128 x 8>`
  }];
  let parameters = (ins "int64_t":$experts, "int64_t":$chosen);
  let assemblyFormat = "`<` $experts `x` $chosen `>`";
  let genVerifyDecl = 1;
}

// One matrix for each expert: tensor<ExRxCxf32>.
def Matrices : Type<And<[
    3DTensorOf<[F32]>.predicate,
    CPred<"::llvm::cast<::mlir::ShapedType>($_self).hasStaticShape()">]>,
  "float32 matrices of fixed size, one an expert", "::mlir::RankedTensorType">;

def RouteOp : LmOp<"route"> {
  let summary = "chooses experts for each row";
  let description = [{
    With the ratings l of a row (one an expert), the scores are
    * `softmax`: p = softmax(l),
    * `sigmoid`: p = 1 / (1 + exp(-l)),
    * `softmax_chosen`: p = l.

    Experts are ranked by s = p + bias (bias 0 where none is given). With
    `groups` above 1 the experts are cut into so many runs of equal length; a
    run is worth the sum of its `group_best` greatest s, and only experts of the
    `group_chosen` best runs take part. The greatest s are chosen; of equals the
    first. A chosen expert's weight is p (`softmax_chosen`: the softmax of the
    chosen l), divided by the sum of the row's weights if `normalize` is set,
    times `scale`.

    `%r = lm.route %l softmax {normalize} : tensor<?x8xf32> -> !lm.routes<8 x 2>`
  }];
  let arguments = (ins Rows:$ratings, Optional<Vector>:$bias, Score:$score,
                       UnitAttr:$normalize, DefaultValuedAttr<F32Attr, "1.0f">:$scale,
                       DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<I64Attr, "1">:$group_chosen,
                       DefaultValuedAttr<I64Attr, "1">:$group_best);
  let results = (outs RoutesType:$result);
  let assemblyFormat = [{
    $ratings (`bias` $bias^)? $score attr-dict
    `:` type($ratings) (`,` type($bias)^)? `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def ExpertsOp : LmOp<"experts", [AllTypesMatch<["input", "result"]>]> {
  let summary = "the feed-forward parts of the experts chosen";
  let description = [{
    result[t] = sum over the experts e chosen for row t of
    weight * down_e(a(gate_e(input[t]), up_e(input[t]))), each product with the
    expert's bias where `biases` has them (of gate, up and down; expert after
    expert, as many values as a matrix has rows). `gating` says what a is:
    * `silu`: silu(gate) * up,
    * `limited_silu`: with g = min(gate, limit) and u = up held within
      -limit..limit: g / (1 + exp(-alpha * g)) * (u + 1).

    `%y = lm.experts %x routes %r weights(%g, %u, %d) silu : (tensor<?x64xf32>, !lm.routes<8 x 2>,
     tensor<8x32x64xf32>, tensor<8x32x64xf32>, tensor<8x64x32xf32>) -> tensor<?x64xf32>`
  }];
  let arguments = (ins Rows:$input, RoutesType:$routes, Matrices:$gate, Matrices:$up,
                       Matrices:$down, Variadic<Vector>:$biases, Gating:$gating,
                       DefaultValuedAttr<F32Attr, "1.0f">:$alpha,
                       DefaultValuedAttr<F32Attr, "0.0f">:$limit);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $input `routes` $routes `weights` `(` $gate `,` $up `,` $down `)`
    (`biases` `(` $biases^ `)`)? $gating attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_LM_LMEXPERTS
