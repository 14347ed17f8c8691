// The register-blocked product every dense kernel is made of: a tile of up to six rows (pixels or
// output channels, broadcast) times up to two vectors, accumulated in registers.
#pragma once

#include <type_traits>

#include "simd.h"

namespace slimfl::SLIMFL_LEVEL {

constexpr int kTileRows = 6;

template <int Rows, int Vectors>
struct Tile {
    Vec sum[Rows][Vectors];

    SLIMFL_INLINE void clear() {
#pragma GCC unroll 8
        for (int m = 0; m < Rows; ++m) {
#pragma GCC unroll 8
            for (int v = 0; v < Vectors; ++v) {
                sum[m][v] = Vec{};
            }
        }
    }

    SLIMFL_INLINE void read(const float* from, std::ptrdiff_t row_stride) {
#pragma GCC unroll 8
        for (int m = 0; m < Rows; ++m) {
#pragma GCC unroll 8
            for (int v = 0; v < Vectors; ++v) {
                sum[m][v] = load(from + m * row_stride + v * kLanes);
            }
        }
    }

    SLIMFL_INLINE void write(float* to, std::ptrdiff_t row_stride) const {
#pragma GCC unroll 8
        for (int m = 0; m < Rows; ++m) {
#pragma GCC unroll 8
            for (int v = 0; v < Vectors; ++v) {
                store(to + m * row_stride + v * kLanes, sum[m][v]);
            }
        }
    }

    // Calls work(row, vector, sum) for all sums.
    template <class Work>
    SLIMFL_INLINE void each(Work work) const {
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
#pragma GCC unroll 8
            for (int m = 0; m < Rows; ++m) {
                work(m, v, sum[m][v]);
            }
        }
    }

    // sum[m][v] += a[m * row_stride + k * a_step] * b[k * b_step + v] for k < count.
    template <class RowStride, class Step>
    SLIMFL_INLINE void multiply_add(const float* a, RowStride row_stride, Step a_step, const float* b,
                                    std::ptrdiff_t b_step, int count) {
#pragma GCC unroll 2
        for (int k = 0; k < count; ++k) {
            Vec right[Vectors];
#pragma GCC unroll 8
            for (int v = 0; v < Vectors; ++v) {
                right[v] = load(b + v * kLanes);
            }
#pragma GCC unroll 8
            for (int m = 0; m < Rows; ++m) {
                const Vec left = splat(a[m * row_stride]);
#pragma GCC unroll 8
                for (int v = 0; v < Vectors; ++v) {
                    sum[m][v] += left * right[v];
                }
            }
            a += a_step;
            b += b_step;
        }
    }
};

// Cuts `count` rows into tiles of nearly equal size, since a small last tile would be bound by the
// latency of its few sums; calls work(std::integral_constant<int, rows>, first row).
template <class Work>
SLIMFL_INLINE void for_row_tiles(int count, Work work) {
    int first = 0;
    for (int left = (count + kTileRows - 1) / kTileRows; left > 0; --left) {
        const int rows = (count - first + left - 1) / left;
        switch (rows) {
            case 1: work(std::integral_constant<int, 1>{}, first); break;
            case 2: work(std::integral_constant<int, 2>{}, first); break;
            case 3: work(std::integral_constant<int, 3>{}, first); break;
            case 4: work(std::integral_constant<int, 4>{}, first); break;
            case 5: work(std::integral_constant<int, 5>{}, first); break;
            default: work(std::integral_constant<int, 6>{}, first); break;
        }
        first += rows;
    }
}

// Goes through `count` vectors two by two; calls work(std::integral_constant<int, vectors>, first).
template <class Work>
SLIMFL_INLINE void for_vector_panels(int count, Work work) {
    int first = 0;
    for (; first + 2 <= count; first += 2) {
        work(std::integral_constant<int, 2>{}, first);
    }
    if (first < count) {
        work(std::integral_constant<int, 1>{}, first);
    }
}

}  // namespace slimfl::SLIMFL_LEVEL
