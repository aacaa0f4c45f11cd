// RUN: %make_gguf %t.gguf --arch gemma2 --layers 2 --width 64 --ffn 96 --heads 2 --kv-heads 1 --head-size 32
// RUN: izhc compile %t.gguf -o %t.izh --target=reference --print-ir-after=models | FileCheck %s

// Embeddings are scaled by the root of their width, 64.
// CHECK: lm.embed
// CHECK-NEXT: lm.scale %{{.*}} by 8.000000e+00
// The first layer sees a window, products are capped, norms stand on both
// sides, and gates are bent by gelu.
// CHECK: lm.rms_norm {{.*}}over 64
// CHECK: lm.attention %{{.*}} heads 2 scale 0.176776692 window 8 softcap 1.500000e+00
// CHECK: lm.weight "blk.0.post_attention_norm.weight"
// CHECK-NEXT: lm.rms_norm
// CHECK-NEXT: lm.add
// CHECK: lm.gelu
// CHECK: lm.weight "blk.0.post_ffw_norm.weight"
// CHECK-NEXT: lm.rms_norm
// CHECK-NEXT: lm.add
// The second sees all tokens.
// CHECK: lm.attention %{{.*}} heads 2 scale 0.176776692 softcap 1.500000e+00
// CHECK: lm.soft_cap %{{.*}} at 2.000000e+00
