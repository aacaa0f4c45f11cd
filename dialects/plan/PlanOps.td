// The `plan` dialect: what the runtime does in one step, as dispatches of
// kernels over buffers at fixed places. It is the last form before machine
// code and the artifact.

#ifndef IZHC_DIALECTS_PLAN_PLANOPS
#define IZHC_DIALECTS_PLAN_PLANOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def PlanDialect : Dialect {
  let name = "plan";
  let cppNamespace = "::izhc::plan";
  let summary = "dispatches, buffers and kernels of one step";
}

class PlanOp<string mnemonic, list<Trait> traits = []>
    : Op<PlanDialect, mnemonic, traits>;

def Space : I32EnumAttr<"Space", "where a bound buffer lives", [
  I32EnumAttrCase<"Arena", 0, "arena">,
  I32EnumAttrCase<"Weights", 1, "weights">,
  I32EnumAttrCase<"Constants", 2, "constants">,
  I32EnumAttrCase<"State", 3, "state">,
  I32EnumAttrCase<"Input", 4, "input">]> {
  let cppNamespace = "::izhc::plan";
}

def Extent : I32EnumAttr<"Extent", "what the number of units is a multiple of", [
  I32EnumAttrCase<"Fixed", 0, "fixed">,
  I32EnumAttrCase<"Tokens", 1, "tokens">,
  I32EnumAttrCase<"Outputs", 2, "outputs">,
  I32EnumAttrCase<"Tiles", 3, "tiles">,
  I32EnumAttrCase<"Merges", 4, "merges">,
  I32EnumAttrCase<"Sequences", 5, "sequences">]> {
  let cppNamespace = "::izhc::plan";
}

// The arrays that the runtime fills before a step, all int32.
def Input : I32EnumAttr<"Input", "an array that the runtime fills for a step", [
  I32EnumAttrCase<"Ids", 0, "ids">,
  I32EnumAttrCase<"Positions", 1, "positions">,
  I32EnumAttrCase<"Slots", 2, "slots">,
  I32EnumAttrCase<"OutputRows", 3, "output_rows">,
  I32EnumAttrCase<"Tiles", 4, "tiles">,
  I32EnumAttrCase<"Pages", 5, "pages">,
  I32EnumAttrCase<"Parts", 6, "parts">,
  I32EnumAttrCase<"Merges", 7, "merges">,
  I32EnumAttrCase<"Sequences", 8, "sequences">]> {
  let cppNamespace = "::izhc::plan";
}

def KernelOp : PlanOp<"kernel", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "one unit-parallel computation on buffers";
  let description = [{
    The body has one op of `pack` in buffer form; the block arguments are the
    kernel's bindings, in the order of its operands, the destination last.
    Row buffers are `memref<?xWxf32>`, arrays `memref<?xi32>`, vectors
    `memref<Nxf32>`; activations, weights, caches and routes keep their pack
    types.

    A target turns it into a function
    `void name(ptr bindings, ptr params, i64 begin, i64 end)` that computes
    units begin..end: `bindings` points to one base address for each argument,
    `params` to int64 values: [0] tokens, [1] outputs, [2] tiles, [3] merges.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$arguments)>];
}

def DispatchOp : PlanOp<"dispatch"> {
  let summary = "runs a kernel over its units, then waits for all of them";
  let description = [{
    Binding i of the kernel is the `size` bytes at `offsets[i]` of
    `spaces[i]`; for states the offset is the index of the state, for inputs
    the number of the input. The number of units is `units` times the extent's count; they are
    handed out in pieces of `grain` units. The amounts of work, where there is
    any, are what speeds are predicted from: bytes of weights that a step of
    one token reads, and operations (two a weight) for a token or for a row of
    the outputs.

    All extents are known when a step begins. What depends on values of the
    step, like the rows that each expert works on, is a loop inside of the
    kernel over a table that an earlier dispatch has written; its units are cut
    along what is fixed (tiles of the experts' matrices), so that they stay equal.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       DenseI32ArrayAttr:$spaces, DenseI64ArrayAttr:$offsets,
                       DenseI64ArrayAttr:$sizes, I64Attr:$units,
                       Extent:$extent, I64Attr:$grain,
                       OptionalAttr<I64Attr>:$token_bytes,
                       OptionalAttr<I64Attr>:$token_operations,
                       OptionalAttr<I64Attr>:$output_operations);
  let assemblyFormat = [{
    $kernel `spaces` $spaces `offsets` $offsets `sizes` $sizes
    `units` $units `per` $extent `grain` $grain attr-dict
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// What the artifact is made of
//
// After --izh-lower-pack-to-plan a module holds, directly in its body and in
// this order: one plan.memory, the plan.weight, plan.constant and plan.state
// ops, the plan.kernel ops (in the order of their first use; this is the order
// of Plan.kernels in the artifact) and the plan.dispatch ops in the order of
// execution. --izh-plan-buffers then only changes offsets in the arena.
//===----------------------------------------------------------------------===//

def MemoryOp : PlanOp<"memory"> {
  let summary = "sizes of the spaces and limits of one step";
  let description = [{
    `arena_bytes`, `weights_bytes` and `constants_bytes` are the sizes of the
    three spaces. The logits, float32 [max_outputs][vocabulary], lie at
    `logits_offset` of the arena when the step is done. A step has at most
    `max_tokens` tokens and `max_outputs` output rows; an attention tile has at
    most `tile_tokens` rows and a page of a cache `page_tokens` tokens. Where
    `span` is given, tiles may take single spans of so many tokens of a context,
    and there is room for what they leave of `partials` rows and spans.

    `plan.memory arena 1024 weights 4096 constants 64 logits 0 vocabulary 2
     tokens 128 outputs 128 tile 8 page 64 span 256 partials 1024`
  }];
  let arguments = (ins I64Attr:$arena_bytes, I64Attr:$weights_bytes,
                       I64Attr:$constants_bytes, I64Attr:$logits_offset,
                       I64Attr:$vocabulary, I64Attr:$max_tokens, I64Attr:$max_outputs,
                       I64Attr:$tile_tokens, I64Attr:$page_tokens,
                       DefaultValuedAttr<I64Attr, "0">:$span_tokens,
                       DefaultValuedAttr<I64Attr, "0">:$max_partials);
  let assemblyFormat = [{
    `arena` $arena_bytes `weights` $weights_bytes `constants` $constants_bytes
    `logits` $logits_offset `vocabulary` $vocabulary `tokens` $max_tokens
    `outputs` $max_outputs `tile` $tile_tokens `page` $page_tokens
    (`span` $span_tokens^)? (`partials` $max_partials^)? attr-dict
  }];
  let hasVerifier = 1;
}

def WeightOp : PlanOp<"weight"> {
  let summary = "places an encoded matrix in the weights section";
  let description = [{
    The tensor `name` of the model's file, `rows` by `cols` in the format
    `format` (`count` such matrices one after the other, each beginning with a
    tile of its own), packed as PackedLayout says, fills the `size` bytes at `offset`
    (a multiple of 64) of the section. The ops are in the order of first use,
    which is the order of the bytes. `view`: which rows of the tensor, as in
    `lm.weight`.

    `plan.weight "blk.0.ffn_up.weight" format "q4_1" rows 1536 cols 576 at 0 size 552960`
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$format, I64Attr:$rows, I64Attr:$cols,
                       I64Attr:$offset, I64Attr:$size, OptionalAttr<DenseI64ArrayAttr>:$view,
                       DefaultValuedAttr<I64Attr, "1">:$count);
  let assemblyFormat = [{
    $name `format` $format `rows` $rows `cols` $cols `at` $offset `size` $size
    (`view` $view^)? attr-dict
  }];
  let hasVerifier = 1;
}

def ConstantOp : PlanOp<"constant"> {
  let summary = "places a vector of float32 in the constants section";
  let description = [{
    `count` floats at `offset` (a multiple of 64) of the section: `values`, or
    without them the tensor `name` of the model's file, converted to float32.
    The `size` bytes from `offset` belong to this vector; those behind its
    floats are zero.

    `plan.constant "output_norm.weight" count 576 at 0 size 2368`
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$count, I64Attr:$offset, I64Attr:$size,
                       OptionalAttr<DenseF32ArrayAttr>:$values);
  let assemblyFormat = [{
    $name `count` $count `at` $offset `size` $size (`values` $values^)? attr-dict
  }];
  let hasVerifier = 1;
}

def StateOp : PlanOp<"state"> {
  let summary = "a pool of pages, or of one slot a sequence, that lives on between steps";
  let description = [{
    The n-th op is state number n of the bindings. A pool has as many pages of
    `page_bytes` as the session asks for and starts as zeros.

    With `per_sequence` it has one such page for each sequence instead, and may
    hold anything at first.

    `plan.state "cache.0" page_bytes 49152`
    `plan.state "memory.0" page_bytes 4096 per_sequence`
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$page_bytes, UnitAttr:$per_sequence);
  let assemblyFormat = "$name `page_bytes` $page_bytes (`per_sequence` $per_sequence^)? attr-dict";
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_PLAN_PLANOPS
