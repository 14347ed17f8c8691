// Defines what one processor level exports; included by the translation unit of each level.
#pragma once

#include "dispatch.h"
#include "ul_mobilenet.h"

namespace slimfl::SLIMFL_LEVEL {

Engine* create_engine(const Shapes& shapes) {
    return new ImageEngine(shapes);
}

// Twelve independent chains of multiply-adds, enough to cover the latency of two units.
double run_fma_chains(long iterations) {
    constexpr int kChains = 12;
    Vec chain[kChains];
    for (int i = 0; i < kChains; ++i) {
        chain[i] = splat(static_cast<float>(i));
    }
    const Vec factor = splat(0.999999f);
    const Vec term = splat(0.000001f);
    for (long i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
        for (int c = 0; c < kChains; ++c) {
            chain[c] = chain[c] * factor + term;
        }
    }
    Vec total{};
    for (int c = 0; c < kChains; ++c) {
        total += chain[c];
    }
    volatile float sink = total[0];
    static_cast<void>(sink);
    return 2.0 * kLanes * kChains * static_cast<double>(iterations);
}

}  // namespace slimfl::SLIMFL_LEVEL
