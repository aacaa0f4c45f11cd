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
  let useDefaultAttributePrinterParser = 1;
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
  I32EnumAttrCase<"Tiles", 3, "tiles">]> {
  let cppNamespace = "::izhc::plan";
}

// The arrays that the runtime fills before a step, all int32.
def Input : I32EnumAttr<"Input", "an array that the runtime fills for a step", [
  I32EnumAttrCase<"Ids", 0, "ids">,
  I32EnumAttrCase<"Positions", 1, "positions">,
  I32EnumAttrCase<"Slots", 2, "slots">,
  I32EnumAttrCase<"OutputRows", 3, "output_rows">,
  I32EnumAttrCase<"Tiles", 4, "tiles">,
  I32EnumAttrCase<"Pages", 5, "pages">]> {
  let cppNamespace = "::izhc::plan";
}

def KernelOp : PlanOp<"kernel", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "one unit-parallel computation on buffers";
  let description = [{
    The body has one op of `pack` in buffer form; the block arguments are the
    kernel's bindings, in the order of its operands, the destination last.
    Row buffers are `memref<?xWxf32>`, arrays `memref<?xi32>`, vectors
    `memref<Nxf32>`; activations, weights and caches keep their pack types.

    A target turns it into a function
    `void name(ptr bindings, ptr params, i64 begin, i64 end)` that computes
    units begin..end: `bindings` points to one base address for each argument,
    `params` to int64 values: [0] tokens, [1] outputs, [2] tiles.
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
    handed out in pieces of `grain` units.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       DenseI32ArrayAttr:$spaces, DenseI64ArrayAttr:$offsets,
                       DenseI64ArrayAttr:$sizes, I64Attr:$units,
                       Extent:$extent, I64Attr:$grain);
  let assemblyFormat = [{
    $kernel `spaces` $spaces `offsets` $offsets `sizes` $sizes
    `units` $units `per` $extent `grain` $grain attr-dict
  }];
  let hasVerifier = 1;
}

#endif // IZHC_DIALECTS_PLAN_PLANOPS
