// RUN: izh-opt %s -o %t --izh-print-assembly=target=cuda:sm_80 | FileCheck %s --check-prefixes=ALL,AMPERE
// RUN: izh-opt %s -o %t --izh-print-assembly=target=cuda:sm_90 | FileCheck %s --check-prefixes=ALL,HOPPER

// A kernel is an entry that takes its bindings one by one, then the counts of
// the step and two numbers of units. Codes are read 16 bytes at a time, straight
// from global memory, and multiplied as matrices; on later GPUs kernels wait for
// those before them; nothing is left to a library.

!a = !pack.act<64 x block32, sums false, corr32 [8], corr16 []>
!w = !pack.weight<16 x 64, "q4_0">

// AMPERE: .version 7.0
// AMPERE: .target sm_80
// HOPPER: .version 8.0
// HOPPER: .target sm_90
// ALL-NOT: .extern
// ALL: .visible .entry nibbles(
// ALL-NEXT: .param .u64 .ptr
// ALL-NEXT: .param .u64 .ptr
// ALL-NEXT: .param .u64 .ptr
// ALL-NEXT: .param .u64 .ptr
// ALL-NEXT: .param .u64 nibbles_param_4
// ALL-NEXT: .param .u64 nibbles_param_5
// ALL: .reqntid 128
// AMPERE-NOT: griddepcontrol
// HOPPER: griddepcontrol.wait
// ALL-NOT: ld.b32
// ALL: ld.global.nc.v4.b32
// ALL: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
// ALL: bar.sync
// ALL: st.global.b32
// ALL-NOT: .extern
plan.kernel @nibbles(%a: !a, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!a, !w, memref<?x16xf32>) -> ()
}
