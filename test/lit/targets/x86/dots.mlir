// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512vnni | FileCheck %s --check-prefix=AVX512
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avxvnni | FileCheck %s --check-prefix=AVXVNNI
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx2 | FileCheck %s --check-prefix=AVX2
// RUN: izh-opt %s -o %t --izh-print-assembly=target=x86-64 | FileCheck %s --check-prefix=SSE2

// Every variant multiplies codes with its own instruction, in registers of its
// own width, and with none that its machines lack.

!a = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<16 x 64, "q4_0">

// AVX512-LABEL: nibbles:
// AVX512: vpdpbusd {{.*}}%zmm
// AVXVNNI-LABEL: nibbles:
// AVXVNNI-NOT: {{%zmm|\{%k}}
// AVXVNNI: {vex} vpdpbusd {{.*}}%ymm
// AVXVNNI-NOT: {{%zmm|\{%k}}
// AVX2-LABEL: nibbles:
// AVX2-NOT: {{%zmm|dpbusd}}
// AVX2: vpmaddubsw {{.*}}%ymm
// AVX2-NOT: {{%zmm|dpbusd}}
// AVX2: vpmaddwd {{.*}}%ymm
// AVX2-NOT: {{%zmm|dpbusd}}
// SSE2-LABEL: nibbles:
// SSE2-NOT: {{%[yz]mm|pmaddubsw|pshufb|pmulld|pmovsx|pmovzx|dpbusd}}
// SSE2: pmaddwd {{.*}}%xmm
// SSE2-NOT: {{%[yz]mm|pmaddubsw|pshufb|pmulld|pmovsx|pmovzx|dpbusd}}
plan.kernel @nibbles(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
