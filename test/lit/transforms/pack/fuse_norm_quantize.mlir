// RUN: izh-opt %s --izh-fuse-norm-quantize --split-input-file | FileCheck %s

!act = !pack.act<64 x block32, sums false, corr32 [], corr16 []>

// A norm has no kernel of its own: it must become a part of the quantization.
// CHECK-LABEL: func.func @fuses
func.func @fuses(%x: tensor<?x64xf32>, %s: tensor<64xf32>) -> !act {
  // CHECK-NEXT: %[[A:.*]] = pack.quantize %arg0 norm %arg1 {eps = 9.99999974E-6 : f32}
  // CHECK-NEXT: return %[[A]]
  %n = lm.rms_norm %x scale %s over 64 eps 1.0e-5 : tensor<?x64xf32>, tensor<64xf32>
  %a = pack.quantize %n : (tensor<?x64xf32>) -> !act
  return %a : !act
}

// -----

!act = !pack.act<2 x f32, sums false, corr32 [], corr16 []>

// Without a scale the kernel multiplies with ones.
// CHECK-LABEL: func.func @makes_ones
func.func @makes_ones(%x: tensor<?x2xf32>) -> !act {
  // CHECK: %[[ONES:.*]] = pack.vector "ones.2" values [1.000000e+00, 1.000000e+00] : tensor<2xf32>
  // CHECK: pack.quantize %arg0 norm %[[ONES]]
  %n = lm.rms_norm %x over 2 eps 0.0 : tensor<?x2xf32>
  %a = pack.quantize %n : (tensor<?x2xf32>) -> !act
  return %a : !act
}

// -----

!act = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

// A norm over heads is not the quantization's norm.
// CHECK-LABEL: func.func @keeps_head_norms
func.func @keeps_head_norms(%x: tensor<?x64xf32>) -> !act {
  // CHECK-NEXT: lm.rms_norm
  // CHECK-NEXT: pack.quantize %{{.*}} :
  %n = lm.rms_norm %x over 16 eps 0.0 : tensor<?x64xf32>
  %a = pack.quantize %n : (tensor<?x64xf32>) -> !act
  return %a : !act
}

// -----

!act = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

// Only one norm fits into a quantization.
// CHECK-LABEL: func.func @keeps_second_norm
func.func @keeps_second_norm(%x: tensor<?x64xf32>, %s: tensor<64xf32>) -> !act {
  // CHECK-NEXT: %[[N:.*]] = lm.rms_norm
  // CHECK-NEXT: pack.quantize %[[N]] norm %arg1
  %m = lm.rms_norm %x scale %s over 64 eps 0.0 : tensor<?x64xf32>, tensor<64xf32>
  %n = lm.rms_norm %m scale %s over 64 eps 0.0 : tensor<?x64xf32>, tensor<64xf32>
  %a = pack.quantize %n : (tensor<?x64xf32>) -> !act
  return %a : !act
}
