// RUN: izh-opt %s --izh-share-quantize --split-input-file | FileCheck %s

!a = !pack.act<64 x block32, sums true, corr32 [8], corr16 []>
!b = !pack.act<64 x block32, sums false, corr32 [16, 128], corr16 []>
!w = !pack.weight<16 x 64, "x">

// Rows are quantized once, with the fields of both readers.
// CHECK-LABEL: func.func @shares
func.func @shares(%x: tensor<?x64xf32>, %w: !w) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK-NEXT: %[[A:.*]] = pack.quantize %arg0 : (tensor<?x64xf32>) -> !pack.act<64 x block32, sums true, corr32[8, 16, 128], corr16[]>
  // CHECK-NEXT: pack.matmul %[[A]]
  // CHECK-NEXT: pack.matmul %[[A]]
  %a = pack.quantize %x : (tensor<?x64xf32>) -> !a
  %y = pack.matmul %a weights(%w) : (!a, !w) -> tensor<?x16xf32>
  %b = pack.quantize %x : (tensor<?x64xf32>) -> !b
  %z = pack.matmul %b weights(%w) : (!b, !w) -> tensor<?x16xf32>
  return %y, %z : tensor<?x16xf32>, tensor<?x16xf32>
}

// -----

!a = !pack.act<256 x block32, sums false, corr32 [], corr16 []>
!b = !pack.act<256 x block256, sums false, corr32 [], corr16 []>

// Other kinds have other codes, and so do normed rows.
// CHECK-LABEL: func.func @keeps_apart
func.func @keeps_apart(%x: tensor<?x256xf32>, %n: tensor<256xf32>) -> (!a, !b, !a) {
  // CHECK-COUNT-3: pack.quantize
  %a = pack.quantize %x : (tensor<?x256xf32>) -> !a
  %b = pack.quantize %x : (tensor<?x256xf32>) -> !b
  %c = pack.quantize %x norm %n : (tensor<?x256xf32>, tensor<256xf32>) -> !a
  return %a, %b, %c : !a, !b, !a
}
