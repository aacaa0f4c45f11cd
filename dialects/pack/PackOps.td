// The `pack` dialect: products and attention on encoded weights and quantized
// activations. Its ops exist in two forms. On tensors they are pure and have a
// result; inside a `plan.kernel` their operands are buffers, the destination is
// the last operand (`into`), and they have no result.

#ifndef IZHC_DIALECTS_PACK_PACKOPS
#define IZHC_DIALECTS_PACK_PACKOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def PackDialect : Dialect {
  let name = "pack";
  let cppNamespace = "::izhc::pack";
  let summary = "encoded weights, quantized activations and the ops on them";
  let useDefaultTypePrinterParser = 1;
}

class PackOp<string mnemonic, list<Trait> traits = []>
    : Op<PackDialect, mnemonic, traits>;

class PackType<string name, string mnemonic_> : TypeDef<PackDialect, name> {
  let mnemonic = mnemonic_;
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def ActKind : I32EnumAttr<"ActKind", "how activations are stored", [
  I32EnumAttrCase<"F32", 0, "f32">,
  I32EnumAttrCase<"Block32", 1, "block32">,
  I32EnumAttrCase<"Block256", 2, "block256">]> {
  let cppNamespace = "::izhc::pack";
}

def Epilogue : I32EnumAttr<"Epilogue", "what happens to the sums of a product", [
  I32EnumAttrCase<"Store", 0, "store">,
  I32EnumAttrCase<"Add", 1, "add">,
  I32EnumAttrCase<"SiluGate", 2, "silu_gate">,
  I32EnumAttrCase<"GeluGate", 3, "gelu_gate">,
  I32EnumAttrCase<"SoftCap", 4, "soft_cap">]> {
  let cppNamespace = "::izhc::pack";
}

def RowSet : I32EnumAttr<"RowSet", "which rows of a step an op works on", [
  I32EnumAttrCase<"Tokens", 0, "tokens">,
  I32EnumAttrCase<"Outputs", 1, "outputs">]> {
  let cppNamespace = "::izhc::pack";
}

def RopeStyle : I32EnumAttr<"RopeStyle", "which two values of a head turn together", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"Halves", 1, "halves">,
  I32EnumAttrCase<"Pairs", 2, "pairs">]> {
  let cppNamespace = "::izhc::pack";
}

// Numbered as plan::Input.
def StepInput : I32EnumAttr<"StepInput", "an array that the runtime fills for a step", [
  I32EnumAttrCase<"Ids", 0, "ids">,
  I32EnumAttrCase<"Positions", 1, "positions">,
  I32EnumAttrCase<"Slots", 2, "slots">,
  I32EnumAttrCase<"OutputRows", 3, "output_rows">,
  I32EnumAttrCase<"Tiles", 4, "tiles">,
  I32EnumAttrCase<"Pages", 5, "pages">,
  I32EnumAttrCase<"Parts", 6, "parts">,
  I32EnumAttrCase<"Merges", 7, "merges">,
  I32EnumAttrCase<"Sequences", 8, "sequences">]> {
  let cppNamespace = "::izhc::pack";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def ActType : PackType<"Act", "act"> {
  let summary = "rows of activations in the form that products read";
  let description = [{
    One record a row. dialects/pack/ActLayout.h gives the byte offsets.

    * `f32`: `width` floats.
    * `block32`: int8 codes, one float scale per 32 values (amax / 127).
    * `block256`: int8 codes; one float step per 256 values times a power of
      two per 32 (exponent, at least 0).

    `sums`: also the scaled sum of codes per 32 values, for encodings with a
    minimum. `corr32` / `corr16`: for each zero point z that readers need,
    -z times the sum of codes per 32 / per 16 values.

    `!pack.act<576 x block32, sums true, corr32 [8, 128], corr16 []>`
  }];
  let parameters = (ins "int64_t":$width, "::izhc::pack::ActKind":$kind, "bool":$sums,
                        OptionalArrayRefParameter<"int64_t">:$corr32,
                        OptionalArrayRefParameter<"int64_t">:$corr16);
  let assemblyFormat = [{
    `<` $width `x` custom<ActKindName>($kind) `,` `sums` $sums `,`
    `corr32` `[` (`]`) : ($corr32^ `]`)? `,` `corr16` `[` (`]`) : ($corr16^ `]`)? `>`
  }];
}

def WeightType : PackType<"Weight", "weight"> {
  let summary = "an encoded matrix in tiles of 16 rows";
  let description = [{
    `rows` outputs by `cols` inputs. `format` names a FormatSpec, which gives
    the layout (compiler/formats/PackedLayout.h). Rows are padded to a multiple
    of 16 with zero scales. `count` matrices of that size may be stacked, each
    beginning with a tile of its own: one an expert.

    `!pack.weight<1536 x 576, "q4_1">`, `!pack.weight<768 x 2048, "q4_1", count 128>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$cols, "::mlir::StringAttr":$format,
                        DefaultValuedParameter<"int64_t", "1">:$count);
  let assemblyFormat = "`<` $rows `x` $cols `,` $format (`,` `count` $count^)? `>`";
  let builders = [TypeBuilder<(ins "int64_t":$rows, "int64_t":$cols,
                                   "::mlir::StringAttr":$format), [{
    return $_get($_ctxt, rows, cols, format, int64_t(1));
  }]>];
}

def KvType : PackType<"Kv", "kv"> {
  let summary = "a paged key and value cache of one layer";
  let description = [{
    A page holds `page` tokens: first the keys of all heads, then their values,
    both in panels that products read in order (dialects/pack/KvLayout.h).
    Slot s of the pool is token s % page of page s / page.

    A key has `dim` values, and so has a value unless `values` says otherwise.
    `bits` is 16 for float16 (the default), or 8 or 4 for blocks of 32 codes
    with a float16 scale. Blocks hold keys and values times a Hadamard matrix,
    which spreads single large values; queries are multiplied by it as well,
    which leaves q . k as it was, and so are attention's sums, which brings the
    values back.

    `!pack.kv<3 x 64, page 64>`, `!pack.kv<1 x 576, page 64, values 512, bits 8>`
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$dim, "int64_t":$page,
                        DefaultValuedParameter<"int64_t", "0">:$values,
                        DefaultValuedParameter<"int64_t", "16">:$bits);
  let assemblyFormat = [{
    `<` $heads `x` $dim `,` `page` $page (`,` `values` $values^)? (`,` `bits` $bits^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    // Values of one value head.
    int64_t getValueDim() const { return getValues() ? getValues() : getDim(); }
    // Whether keys and values are stored times a Hadamard matrix.
    bool isTurned() const { return getBits() < 16; }
    int64_t getPageBytes() const;
  }];
}

//===----------------------------------------------------------------------===//
// Ops without inputs
//===----------------------------------------------------------------------===//

def PackWeightOp : PackOp<"weight", [Pure]> {
  let summary = "names an encoded matrix of the model";
  let description = [{
    `view`: which rows of the tensor in the file, as in `lm.weight`.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<DenseI64ArrayAttr>:$view);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$name (`view` $view^)? attr-dict `:` type($result)";
}

def PackVectorOp : PackOp<"vector", [Pure]> {
  let summary = "names a vector of the model, stored as float32";
  let description = [{
    The tensor `name` of the file, or `values` where the compiler made them.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<DenseF32ArrayAttr>:$values);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$name (`values` $values^)? attr-dict `:` type($result)";
}

def PackInputOp : PackOp<"input", [Pure]> {
  let summary = "an array that the runtime fills for a step";
  let description = [{
    `%slots = pack.input slots : tensor<?xi32>`
  }];
  let arguments = (ins StepInput:$kind);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$kind attr-dict `:` type($result)";
}

def PackStateOp : PackOp<"state", [Pure]> {
  let summary = "names a cache as the step finds it";
  let description = [{
    `%c = pack.state "blk.0.cache" : !pack.kv<3 x 64, page 64>`
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Ops that become kernels
//===----------------------------------------------------------------------===//

def EmbedOp : PackOp<"embed"> {
  let summary = "looks up rows of an encoded matrix";
  let description = [{
    out[t, :] = scale * decode(weight)[ids[t], :]. An id outside of the matrix
    is refused by the runtime before the step. Unit of work: one token.
  }];
  let arguments = (ins AnyType:$ids, AnyType:$weight,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale,
                       Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $ids `,` $weight (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def RopeTableOp : PackOp<"rope_table"> {
  let summary = "cosines and sines of the step's positions";
  let description = [{
    With n = the number of frequencies and a = float32(position[t]) *
    frequencies[i] rounded to float32:
    out[t, i] = m * cos(a), out[t, n + i] = m * sin(a), where m is `magnitude` *
    (1 + growth * log(1 + floor(position[t] / period))).
    Unit of work: one token.
  }];
  let arguments = (ins AnyType:$positions, AnyType:$frequencies,
                       DefaultValuedAttr<F32Attr, "1.0f">:$magnitude,
                       DefaultValuedAttr<F32Attr, "0.0f">:$growth,
                       DefaultValuedAttr<I64Attr, "1">:$period,
                       Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $positions `,` $frequencies (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def QuantizeOp : PackOp<"quantize", [AttrSizedOperandSegments]> {
  let summary = "root-mean-square norm (optional) and conversion to records";
  let description = [{
    With `norm`: v = x / sqrt(mean(x^2) + eps) * norm, else v = x. The result
    is v as the records of its `!pack.act` type (kind f32 only copies).
    With `indices`, row i of the result is made from row indices[i] of the
    input and the row set is `outputs`. Where they are `!pack.routes`, row i is
    made from the row that pair i belongs to, and the row set is `tokens`.
    `per_token`: rows of the result for each row of the set; above 1 with routes
    (the number of experts chosen), or where the input's rows are pairs already
    or hold so many runs of the record's width each.

    block32: scale = amax / 127 and code = round_half_even(v * (127 / amax)) over
    each 32 values. An amax below 2^-100 counts as 0: scale 0, codes 0.
    block256: S = amax over 256 / 127; a block of 32 with maximum m takes
    n = min(15, exponent(amax256 / m)) (floor of log2; 15 where m is 0), the group's step is
    S * 2^-max(n), a block's exponent is max(n) - n and its codes are
    round_half_even(v / (step * 2^exponent)) by multiplication with the
    reciprocal; all powers of two are exact.
    Unit of work: one row.
  }];
  let arguments = (ins AnyType:$input, Optional<AnyType>:$norm,
                       Optional<AnyType>:$indices,
                       DefaultValuedAttr<F32Attr, "0.0f">:$eps,
                       DefaultValuedAttr<RowSet, "::izhc::pack::RowSet::Tokens">:$row_set,
                       Optional<AnyType>:$into,
                       DefaultValuedAttr<I64Attr, "1">:$per_token);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $input (`norm` $norm^)? (`indices` $indices^)? (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MatmulOp : PackOp<"matmul", [AttrSizedOperandSegments]> {
  let summary = "products of one set of activations with one or more matrices";
  let description = [{
    y[t, r] = sum over k of weight[r, k] * act[t, k] (+ bias[r]), the matrices
    stacked row-wise in the order given.

    * `store`: out[t, r] = scale * y[t, r]
    * `add`: out[t, r] = out[t, r] + scale * y[t, r]; the tensor form takes the old rows as `residual`
    * `silu_gate`: two matrices of equal shape, gate and up:
      out[t, r] = silu(gate[t, r]) * up[t, r]
    * `gelu_gate`: the same with gelu (its form with tanh)
    * `soft_cap`: out[t, r] = scale * tanh(y[t, r] / scale)

    `biases` is empty or has one vector for each matrix.
    Unit of work: one tile of 16 rows (of gate and of up together for
    a gated epilogue), all rows of activations of `row_set`. Tiles of the matrices
    are numbered through; a matrix whose rows are not a multiple of 16 ends
    with a padded tile whose surplus rows are not stored.
  }];
  let arguments = (ins AnyType:$act, Variadic<AnyType>:$weights,
                       Variadic<AnyType>:$biases, Optional<AnyType>:$residual,
                       DefaultValuedAttr<Epilogue, "::izhc::pack::Epilogue::Store">:$epilogue,
                       DefaultValuedAttr<F32Attr, "1.0f">:$scale,
                       DefaultValuedAttr<RowSet, "::izhc::pack::RowSet::Tokens">:$row_set,
                       Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    $act `weights` `(` $weights `)` (`biases` `(` $biases^ `)`)?
    (`residual` $residual^)? (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MatmulHeadsOp : PackOp<"matmul_heads", [AttrSizedOperandSegments]> {
  let summary = "query, key and value products, ready for attention";
  let description = [{
    The three products of `matmul` (+ biases), then for each head of
    `head_dim` values: RMS norm over the head with `q_norm` / `k_norm` where
    given (eps), rotation of the first `rotary` values by `table` (style
    `halves`: values i and i + rotary/2; `pairs`: 2i and 2i + 1), queries to
    `queries` as float32, keys and values to the cache at slots[t] as float16
    (round to nearest even).

    rotated: a' = a cos - b sin, b' = b cos + a sin.

    Unit of work: one group of heads whose rows are the least common multiple
    of head_dim and 16; queries' groups first, then keys', then values'. The
    tensor form returns (queries, cache).
  }];
  let arguments = (ins AnyType:$act, Variadic<AnyType>:$weights,
                       Variadic<AnyType>:$biases, Optional<AnyType>:$q_norm,
                       Optional<AnyType>:$k_norm, Optional<AnyType>:$table,
                       AnyType:$slots, AnyType:$cache, Optional<AnyType>:$queries,
                       I64Attr:$head_dim, I64Attr:$rotary, RopeStyle:$rope,
                       DefaultValuedAttr<F32Attr, "0.0f">:$eps);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $act `weights` `(` $weights `)` (`biases` `(` $biases^ `)`)?
    (`q_norm` $q_norm^)? (`k_norm` $k_norm^)? (`table` $table^)?
    `slots` $slots `cache` $cache (`into` $queries^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def AttentionOp : PackOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "causal grouped-query attention over a paged cache";
  let description = [{
    For a query token at position p and head h (key head h / (heads / kv
    heads)): softmax over keys 0..p of s = scale * (q . k), times the values.
    `window` w > 0: only keys p - w + 1 .. p. `softcap` c > 0: c * tanh(s / c)
    takes the place of s. `sinks`: a float for each head; e^sink joins the sum
    of weights. With `exact` no factor is rounded below float32.

    The context is cut into spans of 256 keys at fixed positions. A span has a
    softmax of its own: maximum m, sum of weights l, weighted values o; spans are
    merged in order by
      M' = max(M, m), c = e^(M - M'), f = e^(m - M'), L = L c + l f, O = O c + o f,
    and the result is O / L. So it doesn't depend on how tokens are grouped, nor
    on which spans are computed together.

    `tiles`: i32 [n][4] = {first row, rows, first position, index of the
    sequence's first entry in `pages`}; `pages`: i32, physical page of each page
    of a sequence. Rows of one tile are consecutive positions of one sequence.
    `parts` (with it `partials`): i32 [n][4] = {first span, end of spans, place
    p}: which spans of its rows a tile takes; where p >= 0 it takes one, and row
    i of the tile leaves {m, l, o} of head h at (p + i) * heads + h of
    `partials` (records as dialects/pack/KvLayout.h says) for pack.merge.
    Unit of work: one key head of one tile, numbered tile * kv heads + head. The
    tensor form returns the rows and, with `parts`, the partials.
  }];
  let arguments = (ins AnyType:$queries, AnyType:$cache, AnyType:$tiles,
                       AnyType:$pages, Optional<AnyType>:$parts, Optional<AnyType>:$sinks,
                       F32Attr:$scale, I64Attr:$heads, I64Attr:$tile,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F32Attr, "0.0f">:$softcap, UnitAttr:$exact,
                       Optional<AnyType>:$into, Optional<AnyType>:$partials);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $queries `cache` $cache `tiles` $tiles `pages` $pages (`parts` $parts^)? (`sinks` $sinks^)?
    (`into` $into^)? (`partials` $partials^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MergeOp : PackOp<"merge", [AttrSizedOperandSegments]> {
  let summary = "rows of attention from the spans that tiles left";
  let description = [{
    `merges`: i32 [n][4] = {row, position, place of the first span, places from
    one span to the next}. The spans of a row that its `window` (as in
    pack.attention) sees are merged in order and written over the row. The
    tensor form takes the rows of the attention and returns them. Unit of work: one
    head of one merge, numbered merge * heads + head.
  }];
  let arguments = (ins Optional<AnyType>:$rows, AnyType:$partials, AnyType:$merges,
                       Optional<AnyType>:$sinks, AnyType:$cache, I64Attr:$heads,
                       DefaultValuedAttr<I64Attr, "0">:$window, Optional<AnyType>:$into);
  let results = (outs Optional<AnyType>:$result);
  let assemblyFormat = [{
    (`rows` $rows^)? `partials` $partials `merges` $merges (`sinks` $sinks^)? `cache` $cache
    (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

include "dialects/pack/PackExperts.td"
include "dialects/pack/PackHeads.td"

//===----------------------------------------------------------------------===//
// The dot product of machines
//===----------------------------------------------------------------------===//

def DotOp : PackOp<"dot", [Pure, AllTypesMatch<["acc", "result"]>, AllTypesMatch<["codes", "values"]>]> {
  let summary = "adds products of four bytes to each 32-bit lane";
  let description = [{
    result[i] = acc[i] + sum over j in 0..3 of codes[4i+j] * values[4i+j].
    `values` are signed bytes; `codes` are unsigned bytes of at most `max`, or
    signed bytes when `signed_codes` is set. Every machine has one lowering of
    this op; it may keep narrower partial sums over a chain of dots as long as
    `max` shows that they can't overflow.
  }];
  let arguments = (ins VectorOfRankAndType<[1], [I32]>:$acc,
                       VectorOfRankAndType<[1], [I8]>:$codes,
                       VectorOfRankAndType<[1], [I8]>:$values,
                       I64Attr:$max, UnitAttr:$signed_codes);
  let results = (outs VectorOfRankAndType<[1], [I32]>:$result);
  let assemblyFormat = [{
    $acc `,` $codes `,` $values `max` $max (`signed` $signed_codes^)? attr-dict
    `:` type($result) `,` type($codes)
  }];
  let hasVerifier = 1;
}

def LookupOp : PackOp<"lookup", [Pure, AllTypesMatch<["indices", "result"]>]> {
  let summary = "replaces four-bit numbers by what a table of 16 bytes holds";
  let description = [{
    result[i] = table[indices[i]]; indices are below 16. Every machine has one
    lowering of this op: a shuffle of bytes where there is one, else selections.

    `%codes = pack.lookup %numbers [0, 1, 2, ...] : vector<64xi8>`
  }];
  let arguments = (ins VectorOfRankAndType<[1], [I8]>:$indices, DenseI8ArrayAttr:$table);
  let results = (outs VectorOfRankAndType<[1], [I8]>:$result);
  let assemblyFormat = "$indices $table attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def DotPairsOp : PackOp<"dot_pairs", [Pure, AllTypesMatch<["acc", "result"]>, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "adds products of two bfloat16 numbers to each float lane";
  let description = [{
    result[i] = acc[i] + lhs[2i] * rhs[2i] + lhs[2i+1] * rhs[2i+1], rounded as
    the machine does. Only for machines that say that they have it.
  }];
  let arguments = (ins VectorOfRankAndType<[1], [F32]>:$acc,
                       VectorOfRankAndType<[1], [BF16]>:$lhs,
                       VectorOfRankAndType<[1], [BF16]>:$rhs);
  let results = (outs VectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = "$lhs `,` $rhs `add` $acc attr-dict `:` type($lhs) `,` type($acc)";
  let hasVerifier = 1;
}

include "dialects/pack/PackRowOps.td"
include "dialects/pack/PackRecurrentOps.td"

#endif // IZHC_DIALECTS_PACK_PACKOPS
