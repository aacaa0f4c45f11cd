// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512vnni | FileCheck %s --check-prefix=AVX512
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx2 | FileCheck %s --check-prefix=AVX2
// RUN: izh-opt %s -o %t --izh-print-assembly=target=x86-64 | FileCheck %s --check-prefix=SSE2

// Codebooks are looked up in registers: by a shuffle of bytes, and by
// selections on machines that have none.

!a = !pack.act<64 x block32, sums false, corr32 [12], corr16 []>
!w = !pack.weight<16 x 64, "mxfp4">

// AVX512-LABEL: book:
// AVX512: vpshufb {{.*}}%zmm
// AVX2-LABEL: book:
// AVX2: vpshufb {{.*}}%ymm
// SSE2-LABEL: book:
// SSE2-NOT: pshufb
// SSE2: pxor
// SSE2-NOT: pshufb
plan.kernel @book(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
