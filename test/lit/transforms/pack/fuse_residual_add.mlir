// RUN: izh-opt %s --izh-fuse-residual-add --split-input-file | FileCheck %s

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16">

// The product adds to the old rows, scaled where the model scales it.
// CHECK-LABEL: func.func @fuses
func.func @fuses(%ids: tensor<?xi32>, %a: !a, %w: !w) -> tensor<?x64xf32> {
  // CHECK-NEXT: %[[X:.*]] = pack.embed
  // CHECK-NEXT: %[[Y:.*]] = pack.matmul %arg1 weights(%arg2) residual %[[X]] {epilogue = 1 : i32} :
  // CHECK-NEXT: pack.matmul %arg1 weights(%arg2) residual %[[Y]] {epilogue = 1 : i32, scale = 2.500000e-01 : f32}
  %x = pack.embed %ids, %w : (tensor<?xi32>, !w) -> tensor<?x64xf32>
  %p = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x64xf32>
  %y = lm.add %x, %p : tensor<?x64xf32>
  %q = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x64xf32>
  %s = lm.scale %q by 0.25 : tensor<?x64xf32>
  %z = lm.add %s, %y : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16">

// The old rows are read later: adding in place would spoil them.
// CHECK-LABEL: func.func @keeps_living_rows
func.func @keeps_living_rows(%ids: tensor<?xi32>, %a: !a, %w: !w) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: lm.add
  %x = pack.embed %ids, %w : (tensor<?xi32>, !w) -> tensor<?x64xf32>
  %p = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x64xf32>
  %y = lm.add %x, %p : tensor<?x64xf32>
  return %x, %y : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16">

// The product has another reader, which wants it without the sum.
// CHECK-LABEL: func.func @keeps_shared_product
func.func @keeps_shared_product(%ids: tensor<?xi32>, %a: !a, %w: !w) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: lm.add
  %x = pack.embed %ids, %w : (tensor<?xi32>, !w) -> tensor<?x64xf32>
  %p = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x64xf32>
  %y = lm.add %x, %p : tensor<?x64xf32>
  return %p, %y : tensor<?x64xf32>, tensor<?x64xf32>
}
