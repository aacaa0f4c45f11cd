// One row reads its weights once. They are fetched to all caches: fetches for
// one use (prefetchnta) pass over the caches where the weights may lie.
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx2 | FileCheck %s
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512vnni | FileCheck %s

!a = !pack.act<512 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<16 x 512, "q4_0">
plan.kernel @product(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}

// CHECK-NOT: {{prefetch(nta|t2|w)}}
// CHECK: prefetcht0
// CHECK-NOT: {{prefetch(nta|t2|w)}}
