// RUN: izh-opt %s --split-input-file --verify-diagnostics

func.func @dot(%acc: vector<4xi32>, %codes: vector<8xi8>) {
  // expected-error @+1 {{needs four codes for each of the 4 lanes, but has 8}}
  %0 = pack.dot %acc, %codes, %codes max 15 : vector<4xi32>, vector<8xi8>
  return
}

// -----

// expected-error @+1 {{expected f32, block32 or block256, found 'block64'}}
func.func private @kind(!pack.act<64 x block64, sums false, corr32 [], corr16 []>)
