// The multiply-add limit of this machine, measured: the yardstick for the engine's speed.
#pragma once

namespace slimfl {

// GFLOPS of all given threads running at once for about so many seconds, best level.
double fma_peak(int threads, double seconds);

}  // namespace slimfl
