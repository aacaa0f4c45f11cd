// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512vnni | FileCheck %s --check-prefix=AVX512
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avxvnni | FileCheck %s --check-prefix=AVXVNNI
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx2 | FileCheck %s --check-prefix=AVX2
// RUN: izh-opt %s -o %t --izh-print-assembly=target=x86-64 | FileCheck %s --check-prefix=SSE2

// Codes of eight bits with a sign: sums of two products of bytes don't fit in
// 16 bits, so that the variants without VNNI must not add them there.

!a = !pack.act<64 x block32, sums false, corr32 [128], corr16 []>
!w = !pack.weight<16 x 64, "q8_0">

// AVX512-LABEL: bytes:
// AVX512: vpdpbusd {{.*}}%zmm
// AVXVNNI-LABEL: bytes:
// AVXVNNI: {vex} vpdpbusd {{.*}}%ymm
// AVX2-LABEL: bytes:
// AVX2-NOT: dpbusd
// AVX2: vpmaddwd {{.*}}%ymm
// AVX2-NOT: dpbusd
// SSE2-LABEL: bytes:
// SSE2-NOT: pmaddubsw
// SSE2: pmaddwd {{.*}}%xmm
// SSE2-NOT: pmaddubsw
plan.kernel @bytes(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
