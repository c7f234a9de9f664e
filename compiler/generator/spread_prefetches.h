#pragma once

#include "Halide.h"

namespace onnx2halide {

/// Makes the prefetches of a pipeline ask for each cache line about once, evenly over time.
///
/// A kernel's sums read a panel of weights again for each tile of pixels or rows; meanwhile they prefetch the next
/// panel: `sum.update().prefetch(weights, k, k, steps_of_a_panel, PrefetchBoundStrategy::NonFaulting)`. Halide would
/// ask for the whole panel during each tile, so that the first tile waits for memory and the others repeat its
/// requests; and it requests one line in four of weights that a loop of unrolled iterations reads. With this pass each
/// tile asks for a part of the panel; if only a run knows how many tiles there are, it decides how large a part.
/// Prefetches of reads that it does not understand, or of many lines at once, are dropped.
void spread_prefetches(Halide::Pipeline& pipeline);

}  // namespace onnx2halide
