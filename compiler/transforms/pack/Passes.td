// Passes from `lm` to `pack` and on `pack` in tensor form.

#ifndef IZHC_COMPILER_TRANSFORMS_PACK_PASSES
#define IZHC_COMPILER_TRANSFORMS_PACK_PASSES

include "mlir/Pass/PassBase.td"

class PackPass<string flag> : Pass<flag, "::mlir::func::FuncOp"> {
  let dependentDialects = ["::izhc::pack::PackDialect", "::izhc::lm::LmDialect"];
}

def LowerLmToPack : PackPass<"izh-lower-lm-to-pack"> {
  let summary = "names encoded weights and gives every product quantized rows";
  let description = [{
    Chooses the form of activations for each `lm.linear` from the formats of
    its matrices (float formats, and everything with `exact`: `f32`; blocks of
    32: `block32`; blocks of 256: `block256`; matrices that want different
    forms: `f32`) and makes one `pack.quantize` for it and one `pack.matmul` for each
    of its matrices. Embedding, rope angles, inputs, weights and vectors become
    their `pack` counterparts. The choice of experts becomes `pack.route`; their
    feed-forward parts become `pack.expert_gate` and `pack.expert_sum` with a
    quantization of one row a pair before each. The other ops stay `lm` ops: the passes that
    follow make them a part of a `pack` op, since they have no kernel of their own.

    ```
    %w = lm.weight "w" format "f16" : tensor<32x64xf32>
    %y = lm.linear %x weights(%w) : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    ```
    becomes
    ```
    %w = pack.weight "w" : !pack.weight<32 x 64, "f16">
    %a = pack.quantize %x : (tensor<?x64xf32>) -> !pack.act<64 x f32, ...>
    %y = pack.matmul %a weights(%w) : (...) -> tensor<?x32xf32>
    ```
  }];
  let options = [Option<"exact", "exact", "bool", "false", "float32 activations for all formats">];
}

def FuseNormQuantize : PackPass<"izh-fuse-norm-quantize"> {
  let summary = "makes a norm a part of the quantization that reads it";
  let description = [{
    ```
    %n = lm.rms_norm %x scale %s ...   =>  %a = pack.quantize %x norm %s {eps}
    %a = pack.quantize %n
    ```
    A norm that several quantizations read is computed by each; a norm without
    scale gets a vector of ones.
  }];
}

def FuseRowSelection : PackPass<"izh-fuse-row-selection"> {
  let summary = "makes a selection of rows a part of the quantization that reads it";
  let description = [{
    ```
    %s = lm.select_rows %x, %rows      =>  %a = pack.quantize %x indices %rows
    %a = pack.quantize %s
    ```
  }];
}

def ShareQuantize : PackPass<"izh-share-quantize"> {
  let summary = "makes one quantization of those that differ only in extra fields";
  let description = [{
    Quantizations of the same rows to the same kind become one whose records
    hold the sums and zero-point corrections that any of the readers needs.

    ```
    %a = pack.quantize %x : ... -> !pack.act<64 x block32, sums true, ...>
    %b = pack.quantize %x : ... -> !pack.act<64 x block32, sums false, corr32 [8], ...>
    ```
    becomes
    ```
    %a = pack.quantize %x : ... -> !pack.act<64 x block32, sums true, corr32 [8], ...>
    ```
  }];
}

def FuseGate : PackPass<"izh-fuse-gate"> {
  let summary = "makes silu(gate) * up, or gelu(gate) * up, the epilogue of one product";
  let description = [{
    ```
    %g = pack.matmul %a weights(%wg)
    %u = pack.matmul %a weights(%wu)
    %s = lm.silu %g                    =>  %h = pack.matmul %a weights(%wg, %wu)
    %h = lm.mul %s, %u                          {epilogue = silu_gate}
    ```
  }];
}

def FuseResidualAdd : PackPass<"izh-fuse-residual-add"> {
  let summary = "makes an addition of rows the epilogue of a product";
  let description = [{
    The product, or the sum of experts' products, adds to the old rows in place,
    so the old rows must have no reader after it. A scale goes along.

    ```
    %y = pack.matmul %a weights(%w)    =>  %z = pack.matmul %a weights(%w) residual %x
    %z = lm.add %x, %y                          {epilogue = add}
    ```
  }];
}

def FuseHeads : PackPass<"izh-fuse-heads"> {
  let summary = "makes head norms, rotation and cache write a part of the q, k, v product";
  let description = [{
    Takes the three products of one set of activations that end in `lm.append`
    and `lm.attention`, and makes `pack.matmul_heads` and `pack.attention` of
    them. Norms and rotation are optional; they must be the same for queries
    and keys up to the norms' scales.

    ```
    %q, %k, %v = pack.matmul %a ... (three ops)
    %qr = lm.rope %q, %t                   %c = pack.state ...
    %kr = lm.rope %k, %t               =>  %q, %d = pack.matmul_heads %a weights(...) table %t
    %d = lm.append %c keys %kr values %v            slots %s cache %c
    %o = lm.attention %qr, %d              %r, %p = pack.attention %q cache %d tiles ...
                                           %o = pack.merge rows %r partials %p ...
    ```
    Other attentions that read the cache, with queries of their own, become
    pack.attention too. Products of float32 activations make them `exact`.
  }];
  let options = [Option<"exact", "exact", "bool", "false", "no factor below float32">,
                 Option<"cacheBits", "cache-bits", "int64_t", "16", "of a value in a cache">];
}

def FuseScales : PackPass<"izh-fuse-scales"> {
  let summary = "makes scales and caps a part of the product or look-up that they follow";
  let description = [{
    ```
    %y = pack.matmul %a weights(%w)    =>  %z = pack.matmul %a weights(%w) {scale = 0.5}
    %z = lm.scale %y by 0.5
    ```
    The same for lm.scale after pack.embed; lm.soft_cap becomes the epilogue
    soft_cap of a product.
  }];
}

def LowerRows : PackPass<"izh-lower-rows"> {
  let summary = "gives the row ops that no pass could fuse kernels of their own";
  let description = [{
    What is left of lm.rms_norm, lm.rope, lm.append, lm.attention and the ops on
    values becomes pack.norm, pack.rope, pack.append, pack.attention and
    pack.map. A norm whose only reader adds it to other rows takes the addition
    in, and a multiplication takes in silu, gelu or sigmoid.

    ```
    %n = lm.rms_norm %y scale %s over 64 eps 1.0e-5
    %z = lm.add %x, %n                 =>  %z = pack.norm %y scale %s residual %x {over = 64, ...}
    ```
  }];
  let options = [Option<"cacheBits", "cache-bits", "int64_t", "16", "of a value in a cache">];
}

#endif // IZHC_COMPILER_TRANSFORMS_PACK_PASSES
