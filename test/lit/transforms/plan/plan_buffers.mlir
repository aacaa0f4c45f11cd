// RUN: izh-opt %s --izh-plan-buffers --split-input-file | FileCheck %s

// The first buffer lives through all dispatches, so nothing shares its place.
// The one at 1024 dies before those at 2048 and 7168 (the logits) are born:
// these three share a place, one after the other.
// CHECK: plan.memory arena 3072 weights 0 constants 0 logits 1024 vocabulary 8 tokens 128 outputs 32 tile 8 page 64
plan.memory arena 8192 weights 0 constants 0 logits 7168 vocabulary 8 tokens 128 outputs 32 tile 8 page 64
plan.kernel @k(%x: memref<?xi32>, %y: memref<?x4xf32>) {}
// CHECK: plan.dispatch @k spaces [4, 0] offsets [0, 0]
plan.dispatch @k spaces [4, 0] offsets [0, 0] sizes [0, 1024] units 1 per fixed grain 1
// CHECK-NEXT: plan.dispatch @k spaces [0, 0] offsets [0, 1024] sizes [1024, 1024]
plan.dispatch @k spaces [0, 0] offsets [0, 1024] sizes [1024, 1024] units 1 per fixed grain 1
// CHECK-NEXT: plan.dispatch @k spaces [0, 0] offsets [1024, 2048] sizes [1024, 1024]
plan.dispatch @k spaces [0, 0] offsets [1024, 3072] sizes [1024, 1024] units 1 per fixed grain 1
// CHECK-NEXT: plan.dispatch @k spaces [0, 0] offsets [2048, 1024] sizes [1024, 1024]
plan.dispatch @k spaces [0, 0] offsets [3072, 2048] sizes [1024, 1024] units 1 per fixed grain 1
// CHECK-NEXT: plan.dispatch @k spaces [0, 0] offsets [0, 1024] sizes [1024, 1024]
plan.dispatch @k spaces [0, 0] offsets [0, 7168] sizes [1024, 1024] units 1 per fixed grain 1

// -----

// Weights, constants, states and inputs keep their offsets.
// CHECK: plan.memory arena 64
plan.memory arena 256 weights 4096 constants 64 logits 192 vocabulary 2 tokens 1 outputs 1 tile 8 page 64
// CHECK: plan.dispatch @k spaces [1, 2, 3, 4, 0] offsets [192, 192, 1, 2, 0]
plan.dispatch @k spaces [1, 2, 3, 4, 0] offsets [192, 192, 1, 2, 192] sizes [64, 64, 0, 0, 64] units 1 per fixed grain 1
