// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon-dotprod | FileCheck %s --check-prefix=DOTPROD
// RUN: izh-opt %s -o %t --izh-print-assembly=target=neon | FileCheck %s --check-prefix=NEON

// Every variant multiplies codes with its own instruction and with none that
// its machines lack. Four dots share one load of activations.

!a = !pack.act<512 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<16 x 512, "q4_0">

// DOTPROD-LABEL: nibbles:
// DOTPROD-NOT: smlal
// DOTPROD: sdot {{.*}}.4b[0]
// DOTPROD: sdot {{.*}}.4b[3]
// DOTPROD-NOT: smlal
// Sums of eight dots fit into 16 bits: none is widened before the block's end.
// NEON-LABEL: nibbles:
// NEON-NOT: sdot
// NEON: smull
// NEON-NEXT: smlal
// NEON-NOT: sdot
// NEON: addp
// NEON-NEXT: sadalp
// NEON-NOT: sdot
plan.kernel @nibbles(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
