// RUN: split-file %s %t
// RUN: izh-opt %t/offsets.mlir -o %t/out --izh-print-assembly=target=avx2 | FileCheck %s --check-prefix=OFFSETS
// RUN: izh-opt %t/offsets.mlir -o %t/out --izh-print-assembly=target=neon | FileCheck %s --check-prefix=OFFSETS
// RUN: izh-opt %t/streams.mlir -o %t/out --izh-print-assembly=target=avx2 | FileCheck %s --check-prefix=STREAMS
// RUN: izh-opt %t/product.mlir -o %t/out --izh-print-assembly=target=avx2 | FileCheck %s --check-prefix=PRODUCT
// RUN: izh-opt %t/product.mlir -o %t/out --izh-print-assembly=target=avx512vnni | FileCheck %s --check-prefix=PRODUCT
// RUN: izh-opt %t/product.mlir -o %t/out --izh-print-assembly=target=x86-64 | FileCheck %s --check-prefix=PRODUCT
// RUN: izh-opt %t/product.mlir -o %t/out --izh-print-assembly=target=neon-dotprod | FileCheck %s --check-prefix=PRODUCT

// Loads of a stream keep the order of their addresses in inner loops. The check
// finds loads that don't; different streams may be apart; and code generation
// leaves those of products alone (LLVM's scheduler after the allocation of
// registers moves some of them by up to 448 bytes).

// OFFSETS: loads out of order: an inner loop of kernel 'backwards' loads from offset {{-?[0-9]+}} of a stream after offset {{-?[0-9]+}}
// STREAMS: loads in order: {{[1-9]}}
// PRODUCT: loads in order: {{[1-9]}}

//--- offsets.mlir
#domain = #llvm.alias_scope_domain<id = "izh.stream">
#stream = #llvm.alias_scope<id = "izh.stream0", domain = #domain>
func.func @backwards(%p: !llvm.ptr, %q: !llvm.ptr, %begin: i64, %end: i64) {
  %step = arith.constant 1 : i64
  scf.for %i = %begin to %end step %step : i64 {
    %line = arith.muli %i, %end : i64
    %a = llvm.getelementptr %p[%line] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %b = llvm.getelementptr %a[512] : (!llvm.ptr) -> !llvm.ptr, i8
    %second = llvm.load %b {alignment = 16 : i64, alias_scopes = [#stream]} : !llvm.ptr -> vector<4xi32>
    %first = llvm.load %a {alignment = 16 : i64, alias_scopes = [#stream]} : !llvm.ptr -> vector<4xi32>
    %sum = arith.subi %second, %first : vector<4xi32>
    llvm.store %sum, %q {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr
  }
  return
}

//--- streams.mlir
#domain = #llvm.alias_scope_domain<id = "izh.stream">
#near = #llvm.alias_scope<id = "izh.stream0", domain = #domain>
#far = #llvm.alias_scope<id = "izh.stream1", domain = #domain>
func.func @two(%p: !llvm.ptr, %q: !llvm.ptr, %begin: i64, %end: i64) {
  %step = arith.constant 1 : i64
  scf.for %i = %begin to %end step %step : i64 {
    %line = arith.muli %i, %end : i64
    %a = llvm.getelementptr %p[%line] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %b = llvm.getelementptr %a[4096] : (!llvm.ptr) -> !llvm.ptr, i8
    %c = llvm.getelementptr %a[64] : (!llvm.ptr) -> !llvm.ptr, i8
    %d = llvm.getelementptr %a[4160] : (!llvm.ptr) -> !llvm.ptr, i8
    %1 = llvm.load %b {alignment = 16 : i64, alias_scopes = [#far]} : !llvm.ptr -> vector<4xi32>
    %2 = llvm.load %a {alignment = 16 : i64, alias_scopes = [#near]} : !llvm.ptr -> vector<4xi32>
    %3 = llvm.load %d {alignment = 16 : i64, alias_scopes = [#far]} : !llvm.ptr -> vector<4xi32>
    %4 = llvm.load %c {alignment = 16 : i64, alias_scopes = [#near]} : !llvm.ptr -> vector<4xi32>
    %5 = arith.subi %1, %2 : vector<4xi32>
    %6 = arith.subi %3, %4 : vector<4xi32>
    %sum = arith.muli %5, %6 : vector<4xi32>
    llvm.store %sum, %q {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr
  }
  return
}

//--- product.mlir
!a = !pack.act<512 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<64 x 512, "q4_0">
!k = !pack.act<512 x block256, sums true, corr32 [], corr16 [32]>
!v = !pack.weight<64 x 512, "q6_k">
plan.kernel @simple(%a: !a, %w: !w, %o: memref<?x64xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x64xf32>) -> ()
}
plan.kernel @blocks(%a: !k, %w: !v, %o: memref<?x64xf32>) {
  pack.matmul %a weights(%w) into %o : (!k, !v, memref<?x64xf32>) -> ()
}
