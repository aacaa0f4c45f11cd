// Mixtures of experts in the `pack` dialect. Rows are grouped by expert, so
// that each expert's weights are read once for all of its rows, and those of
// experts that nobody chose not at all. Included by PackOps.td.

#ifndef IZHC_DIALECTS_PACK_PACKEXPERTS
#define IZHC_DIALECTS_PACK_PACKEXPERTS

def Score : I32EnumAttr<"Score", "how an expert's rating of a row becomes its weight", [
  I32EnumAttrCase<"Softmax", 0, "softmax">,
  I32EnumAttrCase<"Sigmoid", 1, "sigmoid">,
  I32EnumAttrCase<"SoftmaxChosen", 2, "softmax_chosen">]> {
  let cppNamespace = "::izhc::pack";
}

def Gating : I32EnumAttr<"Gating", "what becomes of the products gate and up", [
  I32EnumAttrCase<"Silu", 0, "silu">,
  I32EnumAttrCase<"LimitedSilu", 1, "limited_silu">]> {
  let cppNamespace = "::izhc::pack";
}

def RoutesType : PackType<"Routes", "routes"> {
  let summary = "the pairs of rows and experts of a step, grouped by expert";
  let description = [{
    Every row of the step makes `chosen` pairs with experts. The table lists
    the experts that have pairs, in ascending order, with their ranges of
    pairs; within a range rows ascend. dialects/pack/RoutesLayout.h gives the bytes.

    `!pack.routes<128 x 8>`
  }];
  let parameters = (ins "int64_t":$experts, "int64_t":$chosen);
  let assemblyFormat = "`<` $experts `x` $chosen `>`";
}

def RouteOp : PackOp<"route", [AttrSizedOperandSegments]> {
  let summary = "chooses experts for each row and groups the pairs";
  let description = [{
    The choice and the weights are those of `lm.route`. Ratings that are not
    numbers choose some experts, whichever. Unit of work: all rows together,
    since the order of pairs depends on all choices.
  }];
  let arguments = (ins AnyType:$ratings, Optional<AnyType>:$bias, Score:$score,
                       UnitAttr:$normalize, DefaultValuedAttr<F32Attr, "1.0f">:$scale,
                       DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<I64Attr, "1">:$group_chosen,
                       DefaultValuedAttr<I64Attr, "1">:$group_best,
                       Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $ratings (`bias` $bias^)? $score (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    RoutesType getRoutes() {
      return ::llvm::cast<RoutesType>(getInto() ? getInto().getType() : getResult().getType());
    }
  }];
}

def ExpertGateOp : PackOp<"expert_gate", [AttrSizedOperandSegments]> {
  let summary = "gated products of each pair with its expert's matrices";
  let description = [{
    `weights` are the stacks of gate and up. For pair p of expert e:
    out[p, r] = a(gate, up) with gate = sum over k of weights_0[e][r, k] *
    act[p, k] (+ biases_0[e * rows + r]) and up likewise; `gating` says what a
    is, see `lm.experts`.

    The number of pairs of an expert is known at run time only. Unit of work:
    one tile of 16 rows of gate and up of all experts, so the number of units
    doesn't depend on the routes and all units cost the same; inside, experts
    without pairs are not met.
  }];
  let arguments = (ins AnyType:$act, AnyType:$routes, Variadic<AnyType>:$weights,
                       Variadic<AnyType>:$biases, Gating:$gating,
                       DefaultValuedAttr<F32Attr, "1.0f">:$alpha,
                       DefaultValuedAttr<F32Attr, "0.0f">:$limit, Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $act `routes` $routes `weights` `(` $weights `)` (`biases` `(` $biases^ `)`)?
    $gating (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def ExpertSumOp : PackOp<"expert_sum", [AttrSizedOperandSegments]> {
  let summary = "weighted sums of the products of each row's pairs";
  let description = [{
    y[p, r] = sum over k of weight[e][r, k] * act[p, k] (+ bias[e * rows + r])
    for pair p of expert e. With `store`, out[t, r] = sum over the pairs p of
    row t of scale * weight(p) * y[p, r]; with `add`, out[t, r] plus that sum:
    the tensor form takes the old rows as `residual`. Pairs are added in the
    order of experts, so the sum doesn't depend on other rows.

    Unit of work: one tile of 16 rows of all experts.
  }];
  let arguments = (ins AnyType:$act, AnyType:$routes, AnyType:$weight,
                       Optional<AnyType>:$bias, Optional<AnyType>:$residual,
                       DefaultValuedAttr<Epilogue, "::izhc::pack::Epilogue::Store">:$epilogue,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale, Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $act `routes` $routes `weight` $weight (`bias` $bias^)? (`residual` $residual^)?
    (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_PACK_PACKEXPERTS
