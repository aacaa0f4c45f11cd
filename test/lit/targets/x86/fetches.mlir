// One row reads its weights once. They are fetched to all caches: fetches for
// one use (prefetchnta) pass over the caches where the weights may lie.
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx2 | FileCheck %s --check-prefix=NEAR
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512vnni | FileCheck %s --check-prefix=FAR

!a = !pack.act<512 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<16 x 512, "q4_0">
plan.kernel @product(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}

// NEAR-NOT: prefetchnta
// NEAR: prefetcht0
// NEAR-NOT: prefetchnta

// FAR-NOT: prefetchnta
// FAR: prefetcht1
// FAR-NOT: prefetchnta
