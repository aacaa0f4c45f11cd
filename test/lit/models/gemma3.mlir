// RUN: %make_gguf %t.gguf --arch gemma3 --layers 3 --width 64 --ffn 96 --heads 2 --kv-heads 1 --head-size 4
// RUN: izhc compile %t.gguf -o %t.izh --target=reference --print-ir-after=models | FileCheck %s

// Of all tokens: powers of 10000, stretched by 8. Of windows: powers of 100,
// which nothing stretches.
// CHECK: lm.constant "rope.frequencies" [1.250000e-01, 1.250000e-03]
// CHECK-NEXT: %[[FAR:.*]] = lm.rope_angles
// CHECK: lm.constant "rope.frequencies" [1.000000e+00, 1.000000e-01]
// CHECK-NEXT: %[[NEAR:.*]] = lm.rope_angles
// CHECK: lm.scale %{{.*}} by 8.000000e+00
// Heads of queries are normed before they are turned.
// CHECK: lm.weight "blk.0.attn_q_norm.weight"
// CHECK-NEXT: %[[NORMED:.*]] = lm.rms_norm
// CHECK-NEXT: lm.rope %[[NORMED]], %[[NEAR]] halves
// CHECK: lm.attention %{{.*}} scale 5.000000e-01 window 8
// CHECK: lm.gelu
// CHECK: lm.weight "blk.0.post_ffw_norm.weight"
// The file says that every third layer sees all tokens.
// CHECK: lm.attention %{{.*}} scale 5.000000e-01 window 8
// CHECK: lm.rope %{{.*}}, %[[FAR]] halves
// CHECK: lm.attention
// CHECK-NOT: window
// CHECK: return
