// RUN: izh-opt %s --izh-fuse-scales --split-input-file | FileCheck %s

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16">

// Scales and caps cost nothing where the values are made.
// CHECK-LABEL: func.func @fuses
func.func @fuses(%ids: tensor<?xi32>, %a: !a, %w: !w) -> (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK-NEXT: %[[X:.*]] = pack.embed %arg0, %arg2 {scale = 1.200000e+01 : f32}
  // CHECK-NEXT: %[[Y:.*]] = pack.matmul %arg1 weights(%arg2) {scale = 1.250000e-01 : f32}
  // CHECK-NEXT: %[[Z:.*]] = pack.matmul %arg1 weights(%arg2) {epilogue = 4 : i32, scale = 3.000000e+01 : f32}
  // CHECK-NEXT: return %[[X]], %[[Y]], %[[Z]]
  %e = pack.embed %ids, %w : (tensor<?xi32>, !w) -> tensor<?x64xf32>
  %x = lm.scale %e by 12.0 : tensor<?x64xf32>
  %p = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x64xf32>
  %y = lm.scale %p by 0.125 : tensor<?x64xf32>
  %q = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x64xf32>
  %z = lm.soft_cap %q at 30.0 : tensor<?x64xf32>
  return %x, %y, %z : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16">

// The unscaled rows are read as well.
// CHECK-LABEL: func.func @keeps_shared_rows
func.func @keeps_shared_rows(%a: !a, %w: !w) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK: lm.scale
  %p = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x64xf32>
  %y = lm.scale %p by 0.125 : tensor<?x64xf32>
  return %p, %y : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

!a = !pack.act<64 x f32, sums false, corr32 [], corr16 []>
!w = !pack.weight<64 x 64, "f16">

// A cap comes after the scale; one factor can't say both.
// CHECK-LABEL: func.func @keeps_cap_of_scaled
func.func @keeps_cap_of_scaled(%a: !a, %w: !w) -> tensor<?x64xf32> {
  // CHECK: pack.matmul {{.*}} {scale = 5.000000e-01 : f32}
  // CHECK: lm.soft_cap
  %p = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x64xf32>
  %y = lm.scale %p by 0.5 : tensor<?x64xf32>
  %z = lm.soft_cap %y at 30.0 : tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}
