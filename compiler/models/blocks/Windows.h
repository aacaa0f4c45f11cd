// Layers that see only the last few tokens beside layers that see all.

#pragma once

#include "compiler/import/FolderMap.h"
#include "compiler/models/blocks/Hyper.h"

namespace izhc {

// Whether the model has such layers: also where their window is larger than the
// context, and Hyper::window 0.
bool hasWindows(ModelBuilder &builder, const Hyper &hyper);

// Which layers they are, by attention.sliding_window_pattern: one flag a layer,
// or a number n, and then every n-th layer sees all tokens. Without the key n is
// `period`. Without windows: none.
std::vector<bool> windowLayers(ModelBuilder &builder, const Hyper &hyper, int64_t period);

// attention.sliding_window and that key, from a folder's layer_types or
// sliding_window_pattern (a number, or text with an L for each layer with a
// window, repeated). `assumed` is the window of folders that don't name one; null
// there is an error unless no layer has a window, or `optional` and layer_types
// is absent too.
void windowKeys(FolderKeys &keys, int64_t assumed, bool optional = false);

} // namespace izhc
