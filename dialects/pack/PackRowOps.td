// Ops of the `pack` dialect on plain rows of float32: what is left of a model
// when products, quantizations and attention have taken in all they can. A part
// of PackOps.td.

#ifndef IZHC_DIALECTS_PACK_PACKROWOPS
#define IZHC_DIALECTS_PACK_PACKROWOPS

def MapKind : I32EnumAttr<"MapKind", "what a map computes of its values", [
  I32EnumAttrCase<"Scale", 0, "scale">,
  I32EnumAttrCase<"SoftCap", 1, "soft_cap">,
  I32EnumAttrCase<"Silu", 2, "silu">,
  I32EnumAttrCase<"Gelu", 3, "gelu">,
  I32EnumAttrCase<"Sigmoid", 4, "sigmoid">,
  I32EnumAttrCase<"Add", 5, "add">,
  I32EnumAttrCase<"Mul", 6, "mul">]> {
  let cppNamespace = "::izhc::pack";
}

def MapOp : PackOp<"map", [AttrSizedOperandSegments]> {
  let summary = "a function of the values at one place of one or two sets of rows";
  let description = [{
    With x = lhs[t, lhs_first + i] and y = rhs[t, i]:

    * `scale`: factor * x
    * `soft_cap`: factor * tanh(x / factor)
    * `silu`, `gelu` (with tanh), `sigmoid`: that function of x, times y if there is a rhs
    * `add`: factor * x + y
    * `mul`: x * y

    Unit of work: one row of `row_set`.
  }];
  let arguments = (ins AnyType:$lhs, Optional<AnyType>:$rhs, MapKind:$kind,
                       DefaultValuedAttr<F32Attr, "1.0f">:$factor,
                       DefaultValuedAttr<I64Attr, "0">:$lhs_first,
                       DefaultValuedAttr<RowSet, "::izhc::pack::RowSet::Tokens">:$row_set,
                       Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $kind $lhs (`,` $rhs^)? (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def NormOp : PackOp<"norm", [AttrSizedOperandSegments]> {
  let summary = "root-mean-square norm of runs of values, added to other rows if asked for";
  let description = [{
    Each row is cut into runs of `over` values:
    out = residual + factor * x / sqrt(mean(x^2) + eps) * scale, where `residual`
    and `scale` (`over` values) may be left out.
    Unit of work: one row of `row_set`.
  }];
  let arguments = (ins AnyType:$input, Optional<AnyType>:$scale, Optional<AnyType>:$residual,
                       I64Attr:$over, F32Attr:$eps,
                       DefaultValuedAttr<F32Attr, "1.0f">:$factor,
                       DefaultValuedAttr<RowSet, "::izhc::pack::RowSet::Tokens">:$row_set,
                       Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $input (`scale` $scale^)? (`residual` $residual^)? (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def RopeOp : PackOp<"rope"> {
  let summary = "rotation of the first values of each head of rows";
  let description = [{
    As in `matmul_heads`: the width of `table` is the number of values of each
    head of `head_dim` that turn; the others are copied.
    Unit of work: one token.
  }];
  let arguments = (ins AnyType:$input, AnyType:$table, I64Attr:$head_dim, RopeStyle:$style,
                       Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $input `table` $table (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HadamardOp : PackOp<"hadamard"> {
  let summary = "products of heads of rows with a Hadamard matrix";
  let description = [{
    Each head of `head_dim` values (a multiple of 32) is cut into runs of n, the largest power of two
    that divides `head_dim`. For each run
    out[i] = 1 / sqrt(n) * sum over j of (-1)^(number of common bits of i and j) * in[j].
    Caches of codes (`!pack.kv`) hold keys multiplied so; this makes queries that
    come from other ops than `matmul_heads` fit them.
    Unit of work: one token.
  }];
  let arguments = (ins AnyType:$input, I64Attr:$head_dim, Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $input (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def AppendOp : PackOp<"append", [AttrSizedOperandSegments]> {
  let summary = "writes the keys and values of the step's tokens to their cache";
  let description = [{
    As the end of `matmul_heads`, from rows of float32. The tensor form takes
    the old cache and returns the new one; in the buffer form `into` is the cache.
    Unit of work: one token.
  }];
  let arguments = (ins AnyType:$keys, AnyType:$values, AnyType:$slots,
                       Optional<AnyType>:$cache, Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $keys `,` $values `slots` $slots (`cache` $cache^)? (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_PACK_PACKROWOPS
