#include "dispatch.h"

#include <stdexcept>

namespace slimfl {

namespace {

std::vector<Level> detect() {
    std::vector<Level> levels;
#if defined(SLIMFL_X86)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
        levels.push_back({"avx512", avx512::create_engine, avx512::run_fma_chains});
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        levels.push_back({"avx2", avx2::create_engine, avx2::run_fma_chains});
    }
#endif
    levels.push_back({"portable", portable::create_engine, portable::run_fma_chains});
    return levels;
}

}  // namespace

const std::vector<Level>& supported_levels() {
    static const std::vector<Level> levels = detect();
    return levels;
}

const Level& find_level(const std::string& name) {
    std::string known;
    for (const Level& level : supported_levels()) {
        if (name == "auto" || name == level.name) {
            return level;
        }
        known += std::string(known.empty() ? "" : ", ") + level.name;
    }
    throw std::invalid_argument("simd must be auto or one of " + known + ", not " + name);
}

}  // namespace slimfl
