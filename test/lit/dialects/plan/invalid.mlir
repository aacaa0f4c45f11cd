// RUN: izh-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{needs limits of at least one}}
plan.memory arena 1024 weights 0 constants 0 logits 0 vocabulary 2 tokens 0 outputs 1 tile 8 page 64

// -----

// expected-error @+1 {{has its logits outside of the arena}}
plan.memory arena 1024 weights 0 constants 0 logits 512 vocabulary 2 tokens 128 outputs 128 tile 8 page 64

// -----

// expected-error @+1 {{needs a span and room for partials, or neither}}
plan.memory arena 1024 weights 0 constants 0 logits 0 vocabulary 2 tokens 1 outputs 1 tile 8 page 64 span 256

// -----

// expected-error @+1 {{needs at least one row, column and byte}}
plan.weight "w" format "f16" rows 16 cols 0 at 0 size 4096

// -----

// expected-error @+1 {{needs an offset that is a multiple of 64}}
plan.weight "w" format "f16" rows 16 cols 64 at 32 size 4096

// -----

// expected-error @+1 {{needs four bytes for each of its 16 floats}}
plan.constant "c" count 16 at 0 size 63

// -----

// expected-error @+1 {{needs an offset that is a multiple of 64}}
plan.constant "c" count 16 at 4 size 64

// -----

// expected-error @+1 {{has 1 values for 2 floats}}
plan.constant "c" count 2 at 0 size 64 values [1.0]

// -----

// expected-error @+1 {{needs pages of a positive multiple of 64 bytes}}
plan.state "s" page_bytes 100

// -----

// expected-error @+1 {{needs one offset and one size for each of its 2 bindings}}
plan.dispatch @k spaces [0, 0] offsets [0] sizes [4, 4] units 1 per fixed grain 1

// -----

// expected-error @+1 {{needs at least one unit and a grain of at least one}}
plan.dispatch @k spaces [0] offsets [0] sizes [4] units 1 per fixed grain 0

// -----

// expected-error @+1 {{needs a view of three numbers: first row, rows of a run, and from one run to the next}}
plan.weight "w" format "f16" rows 16 cols 64 at 0 size 2048 view [0, 16]
