// The backward pass of the last pointwise layer, whose output gradient is one constant a channel
// and image (from the average pooling) times a bit a pixel (from the ReLU6).
//
// A sum of four terms each switched by a bit has only sixteen values.  So four terms become one
// table entry: for the input gradient, the sixteen sums of four output channels' weight rows; for
// the weight gradient, the sixteen sums of four pixels' inputs.  Looking a nibble up and adding
// one vector replaces four multiply-adds.
//
// The channels of the inputs are handled in panels of two vectors, so that a panel's tables stay in
// the first cache.
#pragma once

#include "tiles.h"

namespace slimfl::SLIMFL_LEVEL {

constexpr int kPanel = 2 * kLanes;

// Nibbles become offsets of table entries in units of two floats: the largest still fits a byte,
// and the processor multiplies by these eight bytes while it computes the address.
constexpr int kOffsetUnit = 2;
constexpr int kOffsetFactor = kPanel / kOffsetUnit;
static_assert(15 * kOffsetFactor < 256);

SLIMFL_INLINE const float* table_entry(const float* table, std::size_t offset) {
    return reinterpret_cast<const float*>(reinterpret_cast<const char*>(table) + sizeof(float) * kOffsetUnit * offset);
}

constexpr int panels(int vector_count) {
    return (vector_count + 1) / 2;
}

// Writes the sixteen sums of subsets of four vectors; entry e has bit i set if term i is in it.
SLIMFL_INLINE void store_subset_sums(float* table, const Vec (&term)[4]) {
    Vec sum[16];
    sum[0] = Vec{};
#pragma GCC unroll 16
    for (int e = 1; e < 16; ++e) {
        const int rest = e & (e - 1);
        const Vec& lowest = term[__builtin_ctz(static_cast<unsigned>(e))];
        sum[e] = rest == 0 ? lowest : sum[rest] + lowest;
    }
#pragma GCC unroll 16
    for (int e = 0; e < 16; ++e) {
        store(table + e * kPanel, sum[e]);
    }
}

// Transposes the bits of four pixels: from a nibble of four outputs for each pixel to a nibble of
// four pixels for each output, eight groups of outputs at a time in the bytes of a word.  Both are
// turned into offsets, the pixels' nibbles in place.
SLIMFL_INLINE void transpose_nibbles(std::uint8_t* pixels, std::ptrdiff_t pixel_stride, std::uint8_t* outputs,
                                     std::ptrdiff_t output_stride) {
    std::uint64_t row[4];
    for (int i = 0; i < 4; ++i) {
        std::memcpy(&row[i], pixels + i * pixel_stride, 8);
        const std::uint64_t offsets = row[i] * kOffsetFactor;
        std::memcpy(pixels + i * pixel_stride, &offsets, 8);
    }
    for (int i = 0; i < 4; i += 2) {
        const std::uint64_t odd = (row[i] >> 1 ^ row[i + 1]) & 0x0505050505050505u;
        row[i + 1] ^= odd;
        row[i] ^= odd << 1;
    }
    for (int i = 0; i < 2; ++i) {
        const std::uint64_t high = (row[i] >> 2 ^ row[i + 2]) & 0x0303030303030303u;
        row[i + 2] ^= high;
        row[i] ^= high << 2;
    }
    for (int i = 0; i < 4; ++i) {
        const std::uint64_t offsets = row[i] * kOffsetFactor;
        std::memcpy(outputs + i * output_stride, &offsets, 8);
    }
}

// Groups of four pixels whose tables are used together.
constexpr int kChunkGroups = 16;

struct MaskedScratch {
    float* table;            // [group of four pixels][nibble][panel]
    std::uint8_t* selector;  // [group of four pixels][output modulo 4][output / 4]
};

// Four pixels side by side, and their nibbles.
struct PixelGroup {
    const float* in;
    std::uint8_t* nibbles;
};

// Adds to the sums of four outputs what the pixels of a chunk contribute.
template <int Vectors>
SLIMFL_INLINE void masked_weight_gradient_block(const MaskedScratch& scratch, int nibble_stride, int groups,
                                                int output, float* sums, int sum_stride) {
    Tile<4, Vectors> tile;
    tile.read(sums, sum_stride);
    const float* table = scratch.table;
    const std::uint8_t* select = scratch.selector + output / 4;
    for (int group = 0; group < groups; ++group) {
#pragma GCC unroll 4
        for (int o = 0; o < 4; ++o) {
            const float* entry = table_entry(table, select[o * nibble_stride]);
#pragma GCC unroll 2
            for (int v = 0; v < Vectors; ++v) {
                tile.sum[o][v] += load(entry + v * kLanes);
            }
        }
        table += 16 * kPanel;
        select += 4 * nibble_stride;
    }
    tile.write(sums, sum_stride);
}

// Adds to sums[output][input] the inputs of all pixels whose output's bit is set, and turns the
// pixels' nibbles into offsets.  Pixels that do not count must have nibbles of zero.
inline void masked_weight_gradient(const PixelGroup* pixels, int groups, int channel_stride, int nibble_stride,
                                   int outputs, const MaskedScratch& scratch, float* sums) {
    for (int group = 0; group < groups; ++group) {
        for (int byte = 0; byte < nibble_stride; byte += 8) {
            transpose_nibbles(pixels[group].nibbles + byte, nibble_stride,
                              scratch.selector + 4 * group * nibble_stride + byte, nibble_stride);
        }
    }
    for_vector_panels(channel_stride / kLanes, [&](auto panel, int vector) {
        for (int group = 0; group < groups; ++group) {
            for (int v = 0; v < static_cast<int>(panel()); ++v) {
                Vec term[4];
#pragma GCC unroll 4
                for (int i = 0; i < 4; ++i) {
                    term[i] = load(pixels[group].in + i * channel_stride + (vector + v) * kLanes);
                }
                store_subset_sums(scratch.table + 16 * group * kPanel + v * kLanes, term);
            }
        }
        for (int output = 0; output < outputs; output += 4) {
            masked_weight_gradient_block<panel()>(scratch, nibble_stride, groups, output,
                                                  sums + output * channel_stride + vector * kLanes, channel_stride);
        }
    });
}

// table[panel][group of four outputs][nibble] from weights[output][input] times factor[output].
// Rows beyond the active outputs must have the factor zero.
inline void build_weight_tables(const float* weights, int weight_stride, const float* factors, int groups,
                                int vector_count, float* table) {
    for (int group = 0; group < groups; ++group) {
        for (int vector = 0; vector < vector_count; ++vector) {
            Vec term[4];
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                term[i] = factors[4 * group + i] * load(weights + (4 * group + i) * weight_stride + vector * kLanes);
            }
            store_subset_sums(table + 16 * kPanel * (vector / 2 * groups + group) + vector % 2 * kLanes, term);
        }
    }
}

// Replaces the activations of `Pixels` pixels by their gradients.
template <int Pixels, int Vectors, class Stride>
SLIMFL_INLINE void masked_input_gradient_block(const std::uint8_t* offsets, int nibble_stride, int groups,
                                               const float* table, float* activation, Stride stride) {
    Tile<Pixels, Vectors> tile;
    tile.clear();
    for (int group = 0; group < groups; ++group) {
#pragma GCC unroll 4
        for (int p = 0; p < Pixels; ++p) {
            const float* entry = table_entry(table, offsets[p * nibble_stride + group]);
#pragma GCC unroll 2
            for (int v = 0; v < Vectors; ++v) {
                tile.sum[p][v] += load(entry + v * kLanes);
            }
        }
        table += 16 * kPanel;
    }
    const Clamp clamp = fresh_clamp();
    tile.each([&](int p, int v, Vec sum) SLIMFL_INLINED {
        float* at = activation + p * stride + v * kLanes;
        store(at, where_active(load(at), sum, clamp));
    });
}

// One row and panel: replaces the inputs by the gradients that reach them, passed through their
// ReLU6.  `table` is that of the panel, `activation` the row at the panel's first channel.
template <int Vectors>
inline void masked_input_gradient(const std::uint8_t* offsets, int nibble_stride, int groups, const float* table,
                                  float* activation, int channel_stride, int width) {
    with_stride(channel_stride, [&](auto stride) {
        int x = 0;
        for (; x + 4 <= width; x += 4) {
            masked_input_gradient_block<4, Vectors>(offsets + x * nibble_stride, nibble_stride, groups, table,
                                                    activation + x * stride, stride);
        }
        for (; x < width; ++x) {
            masked_input_gradient_block<1, Vectors>(offsets + x * nibble_stride, nibble_stride, groups, table,
                                                    activation + x * stride, stride);
        }
    });
}

}  // namespace slimfl::SLIMFL_LEVEL
