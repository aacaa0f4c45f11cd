// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon-dotprod | FileCheck %s --check-prefix=DOTPROD
// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon | FileCheck %s --check-prefix=NEON

// Codes of eight bits with a sign are multiplied as they are, without sums for
// a zero point. Two products fit into 16 bits, but not two pairs of them, so
// that no pairs are added there.

!a = !pack.act<64 x block32, sums false, corr32 [128], corr16 []>
!w = !pack.weight<16 x 64, "q8_0">

// DOTPROD-LABEL: bytes:
// DOTPROD-NOT: {{eor|smull|usdot}}
// DOTPROD: sdot
// DOTPROD-NOT: {{eor|smull|usdot}}
// NEON-LABEL: bytes:
// NEON-NOT: {{sdot|addp.*8h}}
// NEON: sadalp
// NEON-NOT: {{sdot|addp.*8h}}
// NEON: addp {{.*}}.4s
// NEON-NOT: {{sdot|addp.*8h}}
plan.kernel @bytes(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
