// Passes on the `lm` dialect.

#ifndef IZHC_COMPILER_TRANSFORMS_LM_PASSES
#define IZHC_COMPILER_TRANSFORMS_LM_PASSES

include "mlir/Pass/PassBase.td"

def SelectRowsEarly : Pass<"izh-select-rows-early", "::mlir::func::FuncOp"> {
  let summary = "selects output rows before the work on them, not after";
  let description = [{
    Moves `lm.select_rows` up through ops that treat each row by itself and
    have no other reader, so that the output product is computed only for the
    rows whose logits are asked for.

    ```
    %y = lm.linear %x weights(%w)          %s = lm.select_rows %x, %r
    %s = lm.select_rows %y, %r         =>  %y = lm.linear %s weights(%w)
    ```
  }];
  let dependentDialects = ["::izhc::lm::LmDialect"];
}

def MergeProjections : Pass<"izh-merge-projections", "::mlir::func::FuncOp"> {
  let summary = "makes one op of the products that read the same rows";
  let description = [{
    Ops `lm.linear` with the same input become one with several matrices, so
    that later passes choose one form of activations for all of them. Products
    with biases and products without stay apart, and so do float weights and
    encoded ones.

    ```
    %q = lm.linear %x weights(%a)
    %k = lm.linear %x weights(%b)      =>  %q, %k = lm.linear %x weights(%a, %b)
    ```
  }];
  let dependentDialects = ["::izhc::lm::LmDialect"];
}

#endif // IZHC_COMPILER_TRANSFORMS_LM_PASSES
