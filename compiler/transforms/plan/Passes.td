// Passes from `pack` to `plan` and on `plan`.

#ifndef IZHC_COMPILER_TRANSFORMS_PLAN_PASSES
#define IZHC_COMPILER_TRANSFORMS_PLAN_PASSES

include "mlir/Pass/PassBase.td"

def LowerPackToPlan : Pass<"izh-lower-pack-to-plan", "::mlir::ModuleOp"> {
  let summary = "outlines every op into a kernel and a dispatch on buffers";
  let description = [{
    Replaces the module's function by the ops that PlanOps.td lists. Equal ops
    on equal types share a kernel. Weights and vectors get offsets in the order
    of their first use. Every set of rows gets a buffer of its own in the
    arena, with room for the most rows that a step may have;
    --izh-plan-buffers then lets buffers share places.

    Products are handed out in pieces of about 768 KiB of weights, small ones
    in eighths, everything else unit by unit.

    ```
    func.func @step() -> tensor<?x100xf32> {
      %a = pack.quantize %x ...
      %y = pack.matmul %a weights(%w) ...
    ```
    becomes
    ```
    plan.memory arena ...
    plan.weight "w" format "f16" rows 100 cols 64 at 0 size ...
    plan.kernel @quantize_0(%0: memref<?x64xf32>, %1: !pack.act<...>) { pack.quantize %0 into %1 ... }
    plan.kernel @matmul_1(...) { pack.matmul ... }
    plan.dispatch @quantize_0 ...
    plan.dispatch @matmul_1 ...
    ```

    An op that has no kernel is an error.
  }];
  let dependentDialects = ["::izhc::plan::PlanDialect", "::izhc::pack::PackDialect"];
}

def PlanBuffers : Pass<"izh-plan-buffers", "::mlir::ModuleOp"> {
  let summary = "lets buffers that are never alive together share a place";
  let description = [{
    Buffers of the arena are told apart by their offset before the pass. A
    buffer is alive from the first dispatch that binds it to the last (the
    logits: to the end). The largest are placed first, each at the lowest
    offset that is free during its life.

    ```
    plan.memory arena 3072 ...             plan.memory arena 2048 ...
    plan.dispatch @a ... 0, 1024       =>  plan.dispatch @a ... 0, 1024
    plan.dispatch @b ... 1024, 2048        plan.dispatch @b ... 1024, 0
    ```
  }];
  let dependentDialects = ["::izhc::plan::PlanDialect"];
}

#endif // IZHC_COMPILER_TRANSFORMS_PLAN_PASSES
