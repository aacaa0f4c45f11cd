// RUN: izh-opt %s -o %t --izh-print-assembly=target=amx | FileCheck %s
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512bf16 | FileCheck %s --check-prefix=OTHERS

// Products of many rows are made by tiles, which are configured before and
// released behind them; few rows are left to vpdpbusd. No other variant has an
// instruction of AMX.

!a = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<16 x 64, "q4_0">
!a256 = !pack.act<256 x block256, sums false, corr32 [], corr16 [32]>
!w256 = !pack.weight<16 x 256, "q6_k">
!f = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

// CHECK-LABEL: nibbles:
// CHECK-DAG: vpdpbusd
// CHECK-DAG: ldtilecfg
// CHECK: tileloadd {{.*}}%tmm4
// CHECK: tileloadd {{.*}}%tmm6
// CHECK: tilezero %tmm0
// CHECK: tdpbssd %tmm6, %tmm4, %tmm0
// CHECK: tilestored %tmm0
// CHECK: tilerelease
// CHECK-LABEL: halves:
// CHECK: tdpbssd
// CHECK-LABEL: floats:
// CHECK-NOT: {{tdp|tile}}
// OTHERS-NOT: {{tdpb|tilel|tilez|tiles|tiler}}
plan.kernel @nibbles(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
plan.kernel @halves(%a: !a256, %w: !w256, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a256, !w256, memref<?x16xf32>) -> ()
}
plan.kernel @floats(%a: !f, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!f, !w, memref<?x16xf32>) -> ()
}
