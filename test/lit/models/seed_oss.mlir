// RUN: %make_gguf %t.gguf --arch seed_oss --layers 1 --width 64 --ffn 96 --heads 2 --kv-heads 1 --head-size 32
// RUN: izhc compile %t.gguf -o %t.izh --target=reference --print-ir-after=models | FileCheck %s

// Queries, keys and values have biases, and the norm before the feed-forward
// part bears the name of its place behind attention.
// CHECK: lm.linear {{.*}} biases
// CHECK: lm.linear {{.*}} biases
// CHECK: lm.linear {{.*}} biases
// CHECK: lm.rope {{.*}} halves
// CHECK: lm.attention
// CHECK: %[[SUM:.*]] = lm.add
// CHECK: lm.weight "blk.0.post_attention_norm.weight"
// CHECK-NEXT: %[[NORMED:.*]] = lm.rms_norm %[[SUM]]
// CHECK: lm.linear %[[NORMED]]
