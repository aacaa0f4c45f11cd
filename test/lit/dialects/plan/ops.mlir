// RUN: izh-opt %s | izh-opt | FileCheck %s
// Every op of `plan` survives printing and parsing.

// CHECK: plan.memory arena 1024 weights 4096 constants 128 logits 0 vocabulary 2 tokens 128 outputs 128 tile 8 page 64
plan.memory arena 1024 weights 4096 constants 128 logits 0 vocabulary 2 tokens 128 outputs 128 tile 8 page 64
// CHECK: plan.weight "w" format "f16" rows 16 cols 64 at 0 size 4096
plan.weight "w" format "f16" rows 16 cols 64 at 0 size 4096
// CHECK: plan.weight "qkv" format "f16" rows 16 cols 64 at 2048 size 2048 view [32, 16, 16]
plan.weight "qkv" format "f16" rows 16 cols 64 at 2048 size 2048 view [32, 16, 16]
// CHECK: plan.weight "stack" format "f16" rows 16 cols 64 at 4096 size 8192 {count = 4 : i64}
plan.weight "stack" format "f16" rows 16 cols 64 at 4096 size 8192 {count = 4 : i64}
// CHECK: plan.constant "norm" count 16 at 0 size 128
plan.constant "norm" count 16 at 0 size 128
// CHECK: plan.constant "ones" count 2 at 64 size 64 values [1.000000e+00, 1.000000e+00]
plan.constant "ones" count 2 at 64 size 64 values [1.0, 1.0]
// CHECK: plan.state "cache" page_bytes 4096
plan.state "cache" page_bytes 4096
// CHECK: plan.state "memory" page_bytes 4096 per_sequence
plan.state "memory" page_bytes 4096 per_sequence
// CHECK: plan.kernel @k(%arg0: memref<?x16xf32>, %arg1: !pack.act<16 x f32, sums false, corr32[], corr16[]>) {
// CHECK:   pack.quantize %arg0 into %arg1
plan.kernel @k(%x: memref<?x16xf32>, %a: !pack.act<16 x f32, sums false, corr32 [], corr16 []>) {
  pack.quantize %x into %a : (memref<?x16xf32>, !pack.act<16 x f32, sums false, corr32 [], corr16 []>) -> ()
}
// CHECK: plan.dispatch @k spaces [0, 0] offsets [0, 512] sizes [512, 512] units 1 per tokens grain 1
plan.dispatch @k spaces [0, 0] offsets [0, 512] sizes [512, 512] units 1 per tokens grain 1
// CHECK: plan.dispatch @k {{.*}} grain 1 {output_operations = 3 : i64, token_bytes = 1 : i64, token_operations = 2 : i64}
plan.dispatch @k spaces [0, 0] offsets [0, 512] sizes [512, 512] units 1 per tokens grain 1 {output_operations = 3 : i64, token_bytes = 1 : i64, token_operations = 2 : i64}
