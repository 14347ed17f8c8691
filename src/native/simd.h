// The fixed-width vector every kernel is written in: 16, 8 or 4 floats, whatever the flags of the
// including translation unit allow.  Every level has its own namespace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef SLIMFL_LEVEL
#error "define SLIMFL_LEVEL, the namespace of the processor level, before including the kernels"
#endif

#define SLIMFL_INLINE inline __attribute__((always_inline))
// The same for lambdas.
#define SLIMFL_INLINED __attribute__((always_inline))
// For loops that need every register, which the variables of a caller would take from them.
#define SLIMFL_APART inline __attribute__((noinline))

namespace slimfl::SLIMFL_LEVEL {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef std::int32_t IntVec __attribute__((vector_size(kLanes * 4)));
typedef std::uint32_t BitVec __attribute__((vector_size(kLanes * 4)));
typedef float UnalignedVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

constexpr int padded(int channels) {
    return (channels + kLanes - 1) / kLanes * kLanes;
}

constexpr int vectors(int channels) {
    return (channels + kLanes - 1) / kLanes;
}

SLIMFL_INLINE Vec load(const float* from) {
    return *reinterpret_cast<const UnalignedVec*>(from);
}

SLIMFL_INLINE void store(float* to, Vec value) {
    *reinterpret_cast<UnalignedVec*>(to) = value;
}

SLIMFL_INLINE Vec splat(float value) {
    return value - Vec{};
}

// The two ends of the ReLU6, as vectors.
struct Clamp {
    Vec zero;
    Vec six;
};

// Reads the ends through a pointer that the compiler cannot see through: otherwise it would keep them in
// registers through the loops before, which need every register for their sums.
SLIMFL_INLINE Clamp fresh_clamp() {
    static const float ends[2] = {0.0f, 6.0f};
    const float* from = ends;
    asm volatile("" : "+r"(from));
    return Clamp{splat(from[0]), splat(from[1])};
}

// min(max(x, 0), 6), in the operand order in which a NaN stays one.
SLIMFL_INLINE Vec relu6(Vec x, const Clamp& clamp) {
#if defined(__AVX512F__)
    return _mm512_min_ps(clamp.six, _mm512_max_ps(clamp.zero, x));
#elif defined(__AVX2__)
    return _mm256_min_ps(clamp.six, _mm256_max_ps(clamp.zero, x));
#elif defined(__SSE2__)
    return _mm_min_ps(clamp.six, _mm_max_ps(clamp.zero, x));
#else
    const Vec positive = clamp.zero > x ? clamp.zero : x;
    return clamp.six < positive ? clamp.six : positive;
#endif
}

// The gradient passed where the activation lies strictly between 0 and 6, else zero.
SLIMFL_INLINE Vec where_active(Vec activation, Vec gradient, const Clamp& clamp) {
    const IntVec inside = (activation > clamp.zero) & (activation < clamp.six);
    return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(gradient) & inside);
}

// The first `kept` lanes of `old`, the others of `fresh`.
SLIMFL_INLINE Vec keep_lanes(Vec old, Vec fresh, int kept) {
    static const std::int32_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    IntVec number;
    std::memcpy(&number, numbers, sizeof(number));
    return number < kept ? old : fresh;
}

// One bit per lane: whether the clamped activation lies strictly between 0 and 6.  As integers, the
// bits of such floats are ordered as they are, and the sign of a difference says which is larger.
SLIMFL_INLINE unsigned active_bits(Vec activation, const Clamp& clamp) {
    const BitVec bits = reinterpret_cast<BitVec>(activation);
    const BitVec inside = (reinterpret_cast<BitVec>(clamp.zero) - bits) & (bits - reinterpret_cast<BitVec>(clamp.six));
#if defined(__AVX512F__)
    return _mm512_movepi32_mask(reinterpret_cast<__m512i>(inside));
#elif defined(__AVX2__)
    return static_cast<unsigned>(_mm256_movemask_ps(reinterpret_cast<__m256>(inside)));
#elif defined(__SSE2__)
    return static_cast<unsigned>(_mm_movemask_ps(reinterpret_cast<__m128>(inside)));
#else
    unsigned mask = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
        mask |= (inside[lane] >> 31) << lane;
    }
    return mask;
#endif
}

// Writes the bits of the lanes of vector `number` of a panel.
SLIMFL_INLINE void store_bits(std::uint8_t* panel, int number, unsigned bits) {
    if constexpr (kLanes == 16) {
        const std::uint16_t both = static_cast<std::uint16_t>(bits);
        std::memcpy(panel + 2 * number, &both, 2);
    } else if constexpr (kLanes == 8) {
        panel[number] = static_cast<std::uint8_t>(bits);
    } else {
        // Two vectors share a byte; the first comes first.
        panel[0] = static_cast<std::uint8_t>(number == 0 ? bits : panel[0] | bits << 4);
    }
}

// A stride known to the compiler, or one that is not.
template <int Value>
struct Fixed {
    SLIMFL_INLINE constexpr operator std::ptrdiff_t() const { return Value; }
};

struct Dynamic {
    std::ptrdiff_t value;
    SLIMFL_INLINE operator std::ptrdiff_t() const { return value; }
};

// Calls `work` with the stride, as a constant for those of the usual sizes.
template <class Work>
SLIMFL_INLINE void with_stride(int stride, Work work) {
    switch (stride) {
        case 1: return work(Fixed<1>{});
        case 16: return work(Fixed<16>{});
        case 32: return work(Fixed<32>{});
        default: return work(Dynamic{stride});
    }
}

}  // namespace slimfl::SLIMFL_LEVEL
