// The `lm` dialect: what a language model computes in one step, as ops on rows
// of float32 (one row a token) and on states that live on between steps. It
// knows the encodings of weights by name only, and nothing of buffers.

#ifndef IZHC_DIALECTS_LM_LMOPS
#define IZHC_DIALECTS_LM_LMOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def LmDialect : Dialect {
  let name = "lm";
  let cppNamespace = "::izhc::lm";
  let summary = "what a language model computes, on rows and states";
  let description = [{
    A model is a function `@step` without arguments that returns the logits.
    What comes from outside is named by ops: `lm.input` (the arrays of the
    step), `lm.weight`, `lm.constant` and `lm.state`. All ops are pure: an op
    that changes a state returns the new one, and the last value of each state
    is what the next step sees.
  }];
  let useDefaultTypePrinterParser = 1;
}

class LmOp<string mnemonic, list<Trait> traits = []>
    : Op<LmDialect, mnemonic, !listconcat([Pure], traits)>;

class LmType<string name, string mnemonic_> : TypeDef<LmDialect, name> {
  let mnemonic = mnemonic_;
}

//===----------------------------------------------------------------------===//
// Enumerations and types
//===----------------------------------------------------------------------===//

def InputKind : I32EnumAttr<"InputKind", "an array that the caller gives for a step", [
  I32EnumAttrCase<"Ids", 0, "ids">,
  I32EnumAttrCase<"Positions", 1, "positions">,
  I32EnumAttrCase<"OutputRows", 2, "output_rows">]> {
  let cppNamespace = "::izhc::lm";
}

def RopeStyle : I32EnumAttr<"RopeStyle", "which two values of a head turn together", [
  I32EnumAttrCase<"Halves", 0, "halves">,
  I32EnumAttrCase<"Pairs", 1, "pairs">]> {
  let cppNamespace = "::izhc::lm";
}

def KvCacheType : LmType<"KvCache", "kv_cache"> {
  let summary = "keys and values of all earlier tokens of a sequence";
  let description = [{
    `heads` heads of `dim` values each, for keys and for values; where
    `values` is given, a value has that many instead.

    `!lm.kv_cache<3 x 64>`, `!lm.kv_cache<1 x 576, values 512>`
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$dim,
                        DefaultValuedParameter<"int64_t", "0">:$values);
  let assemblyFormat = "`<` $heads `x` $dim (`,` `values` $values^)? `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilder<(ins "int64_t":$heads, "int64_t":$dim), [{
    return $_get($_ctxt, heads, dim, int64_t(0));
  }]>];
  let extraClassDeclaration = [{
    // Values of one value head.
    int64_t getValueDim() const { return getValues() ? getValues() : getDim(); }
  }];
}

def RowStateType : LmType<"RowState", "row_state"> {
  let summary = "the last `rows` rows of `width` values of a sequence";
  let description = [{ `!lm.row_state<128 x 3>` }];
  let parameters = (ins "int64_t":$width, "int64_t":$rows);
  let assemblyFormat = "`<` $width `x` $rows `>`";
}

def DeltaStateType : LmType<"DeltaState", "delta_state"> {
  let summary = "a memory of `keys` x `values` numbers for each of `heads` heads";
  let description = [{ `!lm.delta_state<4 x 32 x 64>` }];
  let parameters = (ins "int64_t":$heads, "int64_t":$keys, "int64_t":$values);
  let assemblyFormat = "`<` $heads `x` $keys `x` $values `>`";
}

// One row of `width` values a token: tensor<?xWxf32>.
def Rows : Type<And<[
    2DTensorOf<[F32]>.predicate,
    CPred<"::llvm::cast<::mlir::ShapedType>($_self).getDimSize(1) > 0">]>,
  "rows of float32 with a fixed width", "::mlir::RankedTensorType">;
def Matrix : Type<And<[
    2DTensorOf<[F32]>.predicate,
    CPred<"::llvm::cast<::mlir::ShapedType>($_self).hasStaticShape()">]>,
  "a float32 matrix of fixed size", "::mlir::RankedTensorType">;
def Vector : Type<And<[
    1DTensorOf<[F32]>.predicate,
    CPred<"::llvm::cast<::mlir::ShapedType>($_self).hasStaticShape()">]>,
  "a float32 vector of fixed size", "::mlir::RankedTensorType">;
def Numbers : Type<1DTensorOf<[I32]>.predicate, "an array of int32", "::mlir::RankedTensorType">;

include "dialects/lm/LmExperts.td"
include "dialects/lm/LmHeads.td"

//===----------------------------------------------------------------------===//
// What comes from outside
//===----------------------------------------------------------------------===//

def InputOp : LmOp<"input"> {
  let summary = "an array that the caller gives for a step";
  let description = [{
    `ids` and `positions` have one entry a token, `output_rows` one for each
    row of logits: the token that it belongs to.

    `%ids = lm.input ids : tensor<?xi32>`
  }];
  let arguments = (ins InputKind:$kind);
  let results = (outs Numbers:$result);
  let assemblyFormat = "$kind attr-dict `:` type($result)";
}

def WeightOp : LmOp<"weight"> {
  let summary = "a matrix, a vector or a stack of matrices of the model's file";
  let description = [{
    `name` is that of the tensor in the file, `format` that of its encoding.
    The values never enter the IR. With `view [first, run, stride]`, row r is
    row first + (r / run) * stride + r % run of a matrix in the file: one part
    of several that were stored together.

    `%w = lm.weight "output.weight" format "f16" : tensor<49152x576xf32>`
    `%k = lm.weight "qkv.weight" format "f16" view [576, 192, 192] : tensor<192x576xf32>`
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$format, OptionalAttr<DenseI64ArrayAttr>:$view);
  let results = (outs AnyTypeOf<[Matrix, Vector, Matrices]>:$result);
  let assemblyFormat = "$name `format` $format (`view` $view^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def ConstantOp : LmOp<"constant"> {
  let summary = "a vector that the compiler computed";
  let description = [{
    `%f = lm.constant "rope.frequencies" [1.0, 0.1] : tensor<2xf32>`
  }];
  let arguments = (ins StrAttr:$name, DenseF32ArrayAttr:$values);
  let results = (outs Vector:$result);
  let assemblyFormat = "$name $values attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def StateOp : LmOp<"state"> {
  let summary = "a state as the step finds it";
  let description = [{
    `%c = lm.state "cache.0" : !lm.kv_cache<3 x 64>`
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyTypeOf<[KvCacheType, RowStateType, DeltaStateType]>:$result);
  let assemblyFormat = "$name attr-dict `:` qualified(type($result))";
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

def EmbedOp : LmOp<"embed"> {
  let summary = "rows of a matrix by their numbers";
  let description = [{
    result[t, :] = weight[ids[t], :]

    `%x = lm.embed %ids, %w : (tensor<?xi32>, tensor<100x64xf32>) -> tensor<?x64xf32>`
  }];
  let arguments = (ins Numbers:$ids, Matrix:$weight);
  let results = (outs Rows:$result);
  let assemblyFormat = "$ids `,` $weight attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def RmsNormOp : LmOp<"rms_norm", [AllTypesMatch<["input", "result"]>]> {
  let summary = "root-mean-square normalisation of runs of values";
  let description = [{
    Each row is cut into runs of `over` values (the whole row, or one head), and
    v = x / sqrt(mean(x^2) + eps) * scale for the values of a run. `scale` has
    `over` values and is the same for all runs; without it nothing is multiplied.

    `%n = lm.rms_norm %x scale %w over 64 eps 1.0e-5 : tensor<?x192xf32>, tensor<64xf32>`
  }];
  let arguments = (ins Rows:$input, Optional<Vector>:$scale, I64Attr:$over, F32Attr:$eps);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $input (`scale` $scale^)? `over` $over `eps` $eps attr-dict
    `:` type($input) (`,` type($scale)^)?
  }];
  let hasVerifier = 1;
}

def LinearOp : LmOp<"linear", [AttrSizedOperandSegments]> {
  let summary = "products of rows with one or more matrices";
  let description = [{
    result_i[t, r] = sum over k of weight_i[r, k] * input[t, k] (+ bias_i[r]).
    One result for each matrix; `biases` is empty or has one for each.

    `%q, %k = lm.linear %x weights(%a, %b) : (tensor<?x64xf32>, tensor<64x64xf32>,
     tensor<32x64xf32>) -> (tensor<?x64xf32>, tensor<?x32xf32>)`
  }];
  let arguments = (ins Rows:$input, Variadic<Matrix>:$weights, Variadic<Vector>:$biases);
  let results = (outs Variadic<Rows>:$results);
  let assemblyFormat = [{
    $input `weights` `(` $weights `)` (`biases` `(` $biases^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def AddOp : LmOp<"add", [AllTypesMatch<["lhs", "rhs", "result"]>, Commutative]> {
  let summary = "sum of two sets of rows, value by value";
  let arguments = (ins Rows:$lhs, Rows:$rhs);
  let results = (outs Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def MulOp : LmOp<"mul", [AllTypesMatch<["lhs", "rhs", "result"]>, Commutative]> {
  let summary = "product of two sets of rows, value by value";
  let arguments = (ins Rows:$lhs, Rows:$rhs);
  let results = (outs Rows:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def SiluOp : LmOp<"silu", [AllTypesMatch<["input", "result"]>]> {
  let summary = "x / (1 + exp(-x)), value by value";
  let arguments = (ins Rows:$input);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def GeluOp : LmOp<"gelu", [AllTypesMatch<["input", "result"]>]> {
  let summary = "x / 2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), value by value";
  let arguments = (ins Rows:$input);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def SigmoidOp : LmOp<"sigmoid", [AllTypesMatch<["input", "result"]>]> {
  let summary = "1 / (1 + exp(-x)), value by value";
  let arguments = (ins Rows:$input);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def SoftCapOp : LmOp<"soft_cap", [AllTypesMatch<["input", "result"]>]> {
  let summary = "cap * tanh(x / cap), value by value";
  let description = [{
    `%y = lm.soft_cap %x at 30.0 : tensor<?x64xf32>`
  }];
  let arguments = (ins Rows:$input, F32Attr:$cap);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input `at` $cap attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def SliceOp : LmOp<"slice"> {
  let summary = "some columns of rows";
  let description = [{
    result[t, i] = input[t, first + i]

    `%y = lm.slice %x from 64 : tensor<?x192xf32> -> tensor<?x32xf32>`
  }];
  let arguments = (ins Rows:$input, I64Attr:$first);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input `from` $first attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def ScaleOp : LmOp<"scale", [AllTypesMatch<["input", "result"]>]> {
  let summary = "product with a number";
  let description = [{
    `%y = lm.scale %x by 0.5 : tensor<?x64xf32>`. A factor of 1 folds away, and
    so does a scale of a scale.
  }];
  let arguments = (ins Rows:$input, F32Attr:$factor);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($result)";
  let hasFolder = 1;
}

def SelectRowsOp : LmOp<"select_rows", [AllTypesMatch<["input", "result"]>]> {
  let summary = "the rows that an output is wanted for";
  let description = [{
    result[i, :] = input[rows[i], :]
  }];
  let arguments = (ins Rows:$input, Numbers:$rows);
  let results = (outs Rows:$result);
  let assemblyFormat = "$input `,` $rows attr-dict `:` type($input) `,` type($rows)";
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def RopeAnglesOp : LmOp<"rope_angles"> {
  let summary = "cosines and sines for rotary positions";
  let description = [{
    With n frequencies and a = float32(positions[t]) * frequencies[i]:
    result[t, i] = m * cos(a), result[t, n + i] = m * sin(a), where m is
    `magnitude`, with `growth` b (and its `period` l) times
    1 + b * log(1 + floor(positions[t] / l)).

    `%a = lm.rope_angles %p, %f : (tensor<?xi32>, tensor<32xf32>) -> tensor<?x64xf32>`
  }];
  let arguments = (ins Numbers:$positions, Vector:$frequencies,
                       DefaultValuedAttr<F32Attr, "1.0f">:$magnitude,
                       DefaultValuedAttr<F32Attr, "0.0f">:$growth,
                       DefaultValuedAttr<I64Attr, "1">:$period);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $positions `,` $frequencies attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def RopeOp : LmOp<"rope", [AllTypesMatch<["input", "result"]>]> {
  let summary = "rotation of the first values of each head";
  let description = [{
    The width of `angles` is the number of values of a head that turn: values
    i and i + width/2 (`halves`) or 2i and 2i + 1 (`pairs`) become
    a cos - b sin and b cos + a sin.

    `%r = lm.rope %q, %a halves head_dim 64 : tensor<?x576xf32>, tensor<?x64xf32>`
  }];
  let arguments = (ins Rows:$input, Rows:$angles, RopeStyle:$style, I64Attr:$head_dim);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $input `,` $angles $style `head_dim` $head_dim attr-dict
    `:` type($input) `,` type($angles)
  }];
  let hasVerifier = 1;
}

def AppendOp : LmOp<"append", [AllTypesMatch<["cache", "result"]>]> {
  let summary = "a cache with the keys and values of this step behind the old ones";
  let arguments = (ins KvCacheType:$cache, Rows:$keys, Rows:$values);
  let results = (outs KvCacheType:$result);
  let assemblyFormat = [{
    $cache `keys` $keys `values` $values attr-dict
    `:` qualified(type($cache)) `,` type($keys) `,` type($values)
  }];
  let hasVerifier = 1;
}

def AttentionOp : LmOp<"attention"> {
  let summary = "causal grouped-query attention";
  let description = [{
    For a token at position p and each of `heads` query heads h, with key head
    h / (heads / key heads): softmax over positions 0..p of s = scale * (q . k),
    times the values. The cache must hold this step's tokens already; it may be
    that of another layer.

    * `window` w > 0: only positions p - w + 1 .. p.
    * `softcap` c > 0: c * tanh(s / c) takes the place of s.
    * `sinks`: a number for each query head; e^sink is added to the sum that
      the softmax divides by.

    The result has `heads` times the cache's value size columns.

    `%o = lm.attention %q, %c heads 9 scale 0.125
     : tensor<?x576xf32>, !lm.kv_cache<3 x 64> -> tensor<?x576xf32>`
  }];
  let arguments = (ins Rows:$queries, KvCacheType:$cache, Optional<Vector>:$sinks,
                       I64Attr:$heads, F32Attr:$scale,
                       DefaultValuedAttr<I64Attr, "0">:$window,
                       DefaultValuedAttr<F32Attr, "0.0f">:$softcap);
  let results = (outs Rows:$result);
  let assemblyFormat = [{
    $queries `,` $cache (`sinks` $sinks^)? `heads` $heads `scale` $scale
    (`window` $window^)? (`softcap` $softcap^)? attr-dict
    `:` type($queries) `,` qualified(type($cache)) (`,` type($sinks)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

include "dialects/lm/LmRecurrentOps.td"

#endif // IZHC_DIALECTS_LM_LMOPS
