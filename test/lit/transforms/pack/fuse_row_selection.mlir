// RUN: izh-opt %s --izh-fuse-row-selection --split-input-file | FileCheck %s

!act = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

// A selection has no kernel: the quantization picks the rows.
// CHECK-LABEL: func.func @fuses
func.func @fuses(%x: tensor<?x64xf32>, %r: tensor<?xi32>) -> !act {
  // CHECK-NEXT: pack.quantize %arg0 indices %arg1 {row_set = 1 : i32}
  %s = lm.select_rows %x, %r : tensor<?x64xf32>, tensor<?xi32>
  %a = pack.quantize %s {row_set = 1 : i32} : (tensor<?x64xf32>) -> !act
  return %a : !act
}

// -----

!act = !pack.act<64 x f32, sums false, corr32 [], corr16 []>

// Only one selection fits.
// CHECK-LABEL: func.func @keeps_second
func.func @keeps_second(%x: tensor<?x64xf32>, %r: tensor<?xi32>) -> !act {
  // CHECK-NEXT: lm.select_rows
  // CHECK-NEXT: pack.quantize %{{.*}} indices %arg1
  %s = lm.select_rows %x, %r : tensor<?x64xf32>, tensor<?xi32>
  %t = lm.select_rows %s, %r : tensor<?x64xf32>, tensor<?xi32>
  %a = pack.quantize %t {row_set = 1 : i32} : (tensor<?x64xf32>) -> !act
  return %a : !act
}
