// Ops of the `pack` dialect on states of fixed size. A part of PackOps.td.

#ifndef IZHC_DIALECTS_PACK_PACKRECURRENTOPS
#define IZHC_DIALECTS_PACK_PACKRECURRENTOPS

def SlotsType : PackType<"Slots", "slots"> {
  let summary = "a state of `count` floats for each sequence";
  let description = [{
    Slot s lies at s times `getSlotBytes()`. It may hold anything before the
    sequence's first token.

    `!pack.slots<256>`
  }];
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let extraClassDeclaration = [{
    int64_t getSlotBytes() const { return (4 * getCount() + 63) / 64 * 64; }
  }];
}

def ShortConvOp : PackOp<"short_conv"> {
  let summary = "a convolution of each column over the last few tokens";
  let description = [{
    As `lm.short_conv`. The slot of a sequence holds the last n - 1 rows, the
    oldest first. `sequences`: i32 [n][4] = {first row, rows, first position,
    slot}; a first position of 0 begins with zeros.
    Unit of work: up to 256 columns of one sequence, numbered sequence * blocks + block.
  }];
  let arguments = (ins AnyType:$input, AnyType:$weight, AnyType:$sequences, AnyType:$state,
                       Optional<AnyType>:$into, UnitAttr:$silu);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $input `weight` $weight `sequences` $sequences `state` $state (`into` $into^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kColumns = 256;
  }];
}

def DeltaRuleOp : PackOp<"delta_rule"> {
  let summary = "linear attention whose memory is corrected by the gated delta rule";
  let description = [{
    As `lm.delta_rule`. The slot of a sequence holds the memories as
    [head][key][value]; `sequences` as for `short_conv`. Tokens are taken one by
    one, so the result doesn't depend on how they are grouped.
    Unit of work: one head of one sequence, numbered sequence * heads + head.
  }];
  let arguments = (ins AnyType:$mixed, AnyType:$decay, AnyType:$beta, AnyType:$rate, AnyType:$bias,
                       AnyType:$sequences, AnyType:$state, Optional<AnyType>:$into,
                       I64Attr:$key_heads, I64Attr:$key_dim, I64Attr:$value_dim, F32Attr:$eps,
                       UnitAttr:$tiled);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = [{
    $mixed `decay` $decay `beta` $beta `rate` $rate `bias` $bias `sequences` $sequences
    `state` $state (`into` $into^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_PACK_PACKRECURRENTOPS
