// The processor levels that the module was compiled for, and the choice at run time.
#pragma once

#include <string>
#include <vector>

#include "engine.h"
#include "shapes.h"

namespace slimfl {

#define SLIMFL_DECLARE_LEVEL(level)              \
    namespace level {                            \
    Engine* create_engine(const Shapes& shapes); \
    double run_fma_chains(long iterations);      \
    }

SLIMFL_DECLARE_LEVEL(portable)
#if defined(SLIMFL_X86)
SLIMFL_DECLARE_LEVEL(avx2)
SLIMFL_DECLARE_LEVEL(avx512)
#endif

#undef SLIMFL_DECLARE_LEVEL

struct Level {
    const char* name;
    Engine* (*create_engine)(const Shapes& shapes);  // the caller owns the engine
    double (*run_fma_chains)(long iterations);       // returns the operations done
};

// The levels this processor supports, best first.
const std::vector<Level>& supported_levels();

// The level of that name, or the best one for "auto"; throws std::invalid_argument.
const Level& find_level(const std::string& name);

}  // namespace slimfl
