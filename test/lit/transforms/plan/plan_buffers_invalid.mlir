// RUN: izh-opt %s --izh-plan-buffers --split-input-file --verify-diagnostics

// expected-error @+1 {{needs one plan.memory, run --izh-lower-pack-to-plan first}}
module {
}

// -----

// expected-error @+1 {{has no dispatch that writes the logits}}
plan.memory arena 256 weights 0 constants 0 logits 128 vocabulary 2 tokens 1 outputs 1 tile 8 page 64
plan.dispatch @k spaces [0] offsets [0] sizes [64] units 1 per fixed grain 1
