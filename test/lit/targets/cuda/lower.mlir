// RUN: izh-opt %s --izh-lower-kernels=target=cuda:sm_80 | FileCheck %s

// A kernel becomes one that can be launched with a block for each unit; its
// number of threads is bound. What else the plan says is gone.

// CHECK-LABEL: llvm.func ptx_kernelcc @angles
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-SAME: passthrough = {{.*}}"nvvm.reqntid", "128"]]
// CHECK-NOT: plan.
// CHECK-NOT: scf.
plan.kernel @angles(%p: memref<?xi32>, %f: memref<32xf32>, %o: memref<?x64xf32>) {
  pack.rope_table %p, %f into %o : (memref<?xi32>, memref<32xf32>, memref<?x64xf32>) -> ()
}
plan.dispatch @angles spaces [4, 2, 0] offsets [1, 0, 0] sizes [0, 128, 8192]
  units 1 per tokens grain 1
