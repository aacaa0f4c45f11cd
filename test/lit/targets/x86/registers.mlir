// RUN: izh-opt %s -o %t --izh-print-assembly=target=x86-64 | FileCheck %s --check-prefix=SSE2
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx2 | FileCheck %s --check-prefix=AVX2
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avxvnni | FileCheck %s --check-prefix=AVX2
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512vnni | FileCheck %s --check-prefix=AVX512
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512bf16 | FileCheck %s --check-prefix=BF16
// RUN: izh-opt %s -o %t --izh-print-assembly=target=avx512fp16 | FileCheck %s --check-prefix=FP16

// No kernel of a variant uses registers or conversions that its machines lack,
// and none calls a function.

!q = memref<?x128xf32>
!kv = !pack.kv<1 x 64, page 64>
!f = !pack.act<128 x f32, sums false, corr32 [], corr16 []>
!a = !pack.act<256 x block256, sums true, corr32 [], corr16 [32]>
!w = !pack.weight<16 x 128, "f16">

// SSE2-NOT: {{%[yz]mm|vcvt|fmadd|pshufb|roundps|blendv|pmulld|call}}
// SSE2-LABEL: attention:
// SSE2-NOT: {{%[yz]mm|vcvt|fmadd|pshufb|roundps|blendv|pmulld|call}}
// SSE2-LABEL: quantize:
// SSE2-NOT: {{%[yz]mm|vcvt|fmadd|pshufb|roundps|blendv|pmulld|call}}
// SSE2-LABEL: floats:
// SSE2-NOT: {{%[yz]mm|vcvt|fmadd|pshufb|roundps|blendv|pmulld|call}}
// SSE2-LABEL: embed:
// SSE2-NOT: {{%[yz]mm|vcvt|fmadd|pshufb|roundps|blendv|pmulld|call}}
// SSE2-LABEL: angles:
// SSE2-NOT: {{%[yz]mm|vcvt|fmadd|pshufb|roundps|blendv|pmulld|call}}

// AVX2-NOT: {{%zmm|call}}
// AVX2-LABEL: attention:
// AVX2-NOT: {{%zmm|call}}
// AVX2: vcvtph2ps
// AVX2: vfmadd{{.*}}%ymm
// AVX2-NOT: {{%zmm|call}}
// AVX2-LABEL: quantize:
// AVX2-NOT: {{%zmm|call}}
// AVX2-LABEL: floats:
// AVX2-NOT: {{%zmm|call}}

// AVX512-LABEL: attention:
// AVX512: vfmadd{{.*}}%zmm
// AVX512-LABEL: quantize:
// AVX512: %zmm
// AVX512-LABEL: floats:
// AVX512: vfmadd{{.*}}%zmm

// BF16-NOT: call
// BF16-LABEL: attention:
// BF16-NOT: call
// BF16: vcvtneps2bf16
// BF16: vdpbf16ps
// BF16-NOT: call
// BF16-LABEL: quantize:

// FP16-NOT: call
// FP16-LABEL: attention:
// FP16-NOT: call
// FP16: vfmadd{{.*}}ph{{.*}}%zmm
// FP16-NOT: call
// FP16-LABEL: quantize:

plan.kernel @attention(%q: !q, %c: !kv, %t: memref<?xi32>, %p: memref<?xi32>, %o: !q) {
  pack.attention %q cache %c tiles %t pages %p into %o
    {scale = 0.125 : f32, heads = 2 : i64, tile = 8 : i64}
    : (!q, !kv, memref<?xi32>, memref<?xi32>, !q) -> ()
}
plan.kernel @quantize(%x: memref<?x256xf32>, %n: memref<256xf32>, %o: !a) {
  pack.quantize %x norm %n into %o {eps = 1.0e-5 : f32}
    : (memref<?x256xf32>, memref<256xf32>, !a) -> ()
}
plan.kernel @floats(%a: !f, %w: !w, %o: memref<?x16xf32>) {
  pack.matmul %a weights(%w) into %o : (!f, !w, memref<?x16xf32>) -> ()
}
plan.kernel @embed(%i: memref<?xi32>, %w: !w, %o: !q) {
  pack.embed %i, %w into %o : (memref<?xi32>, !w, !q) -> ()
}
plan.kernel @angles(%p: memref<?xi32>, %f: memref<32xf32>, %o: memref<?x64xf32>) {
  pack.rope_table %p, %f into %o : (memref<?xi32>, memref<32xf32>, memref<?x64xf32>) -> ()
}
