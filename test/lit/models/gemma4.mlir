// RUN: %make_gguf %t.gguf --arch gemma4 --layers 4 --width 64 --ffn 96 --heads 2 --kv-heads 2 --head-size 32
// RUN: izhc compile %t.gguf -o %t.izh --target=reference --print-ir-after=models | FileCheck %s

// What layers add for each token: a row of a table and a product of the scaled
// embedding, normed part by part, in equal shares.
// CHECK: %[[ROWS:.*]] = lm.scale %{{.*}} by 8.000000e+00
// CHECK: lm.weight "per_layer_token_embd.weight"
// CHECK: lm.linear %[[ROWS]]
// CHECK-NEXT: lm.scale %{{.*}} by 1.250000e-01
// CHECK: lm.rms_norm %{{.*}} over 32
// CHECK: lm.scale %{{.*}} by 5.6568{{[0-9]*}}
// CHECK: %[[EXTRA:.*]] = lm.scale %{{.*}} by 0.707106{{[0-9]*}}

// The first layer: a window, heads of 32, values normed without weights, and
// products that nothing scales.
// CHECK: lm.weight "blk.0.attn_v.weight"
// CHECK: %[[V:.*]] = lm.rms_norm %{{.*}} over 32 eps {{[^,]*}} : tensor<?x64xf32>{{$}}
// CHECK: lm.append {{.*}} values %[[V]]
// CHECK-SAME: !lm.kv_cache<2 x 32>
// CHECK: lm.attention %{{.*}} heads 2 scale 1.000000e+00 window 8
// CHECK: lm.slice %[[EXTRA]] from 0
// CHECK: lm.weight "blk.0.post_norm.weight"
// CHECK: lm.scale

// The second: all tokens, one key head of 64, whose product is that of the
// values too.
// CHECK: lm.weight "blk.1.attn_k.weight"
// CHECK: %[[K:.*]] = lm.linear
// CHECK: lm.rms_norm %[[K]] scale
// CHECK: lm.rms_norm %[[K]] over 64
// CHECK: %[[FAR:.*]] = lm.append
// CHECK-SAME: !lm.kv_cache<1 x 64>
// CHECK: lm.attention %{{.*}} heads 2 scale 1.000000e+00 :
// CHECK: lm.slice %[[EXTRA]] from 32

// The last two have no caches of their own, and wider feed-forward parts.
// CHECK-NOT: lm.append
// CHECK: lm.weight "blk.2.ffn_up.weight" format "f32" : tensor<192x64xf32>
// CHECK: lm.attention %{{.*}}, %[[FAR]] heads 2
