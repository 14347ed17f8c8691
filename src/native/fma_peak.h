// The measured multiply-add limit of this machine: the reference for the engine's speed.
#pragma once

namespace slimfl {

// GFLOPS of all given threads running at once for about `seconds`, at the best level.
double fma_peak(int threads, double seconds);

}  // namespace slimfl
