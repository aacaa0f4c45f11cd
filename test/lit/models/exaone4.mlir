// RUN: %make_gguf %t.gguf --arch exaone4 --layers 4 --width 64 --ffn 96 --heads 2 --kv-heads 1 --head-size 32
// RUN: izhc compile %t.gguf -o %t.izh --target=reference --print-ir-after=models | FileCheck %s

// Norms stand behind the parts of a layer only.
// CHECK: %[[ROWS:.*]] = lm.embed
// CHECK: lm.linear %[[ROWS]]
// CHECK: lm.weight "blk.0.attn_q_norm.weight"
// CHECK-NEXT: lm.rms_norm
// CHECK-NEXT: lm.rope
// CHECK: lm.attention %{{.*}} window 8
// CHECK: lm.weight "blk.0.post_attention_norm.weight"
// CHECK-NEXT: lm.rms_norm
// CHECK-NEXT: lm.add %[[ROWS]]
// CHECK: lm.silu
// The layer that sees all tokens doesn't turn anything.
// CHECK: lm.weight "blk.2.post_ffw_norm.weight"
// CHECK-NOT: lm.rope
// CHECK: lm.attention
// CHECK-NOT: window
// CHECK: return
