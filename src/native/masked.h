// The backward pass of the last pointwise layer, whose output gradient is one constant per channel
// and image (from the average pooling) times one bit per pixel (from the ReLU6).
//
// A sum of four terms each switched by a bit has only sixteen values.  So four terms become one
// table entry: for the input gradient, the sixteen sums of four output channels' weight rows; for
// the weight gradient, the sixteen sums of four pixels' inputs.  Looking a nibble up and adding
// one vector replaces four multiply-adds.
//
// The channels of the inputs are handled in panels of two vectors, so that a panel's tables stay in
// the first-level cache.
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

// Outputs whose bits are spread at once.
constexpr int kWordOutputs = 32;

// Turns the bits of 32 outputs of four pixels into offsets: by_pixel[group of four outputs][pixel] of
// nibbles of four outputs, by_output[output] of nibbles of four pixels.  Either way the four offsets
// a tile needs lie side by side.  Pixels beyond the end of a row must have no bit set.
SLIMFL_INLINE void spread_bits(const std::uint8_t* bits, std::ptrdiff_t bit_stride, std::uint8_t* by_pixel,
                               std::uint8_t* by_output) {
    typedef std::uint32_t Groups __attribute__((vector_size(kWordOutputs)));
    const Groups shift = {0, 4, 8, 12, 16, 20, 24, 28};
    Groups nibbles{};
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
        const std::uint8_t* byte = bits + p * bit_stride;
        const std::uint32_t word = byte[0] | byte[1] << 8 | byte[2] << 16 | static_cast<std::uint32_t>(byte[3]) << 24;
        nibbles |= ((word - Groups{}) >> shift & 15u) << 8 * p;
    }
    const Groups pixel_offsets = nibbles * kOffsetFactor;
    std::memcpy(by_pixel, &pixel_offsets, sizeof(pixel_offsets));
    // Transposes the bits within every four bytes: first in squares of two by two, then these.
    const Groups inner = (nibbles ^ nibbles >> 7) & 0x000A000Au;
    nibbles ^= inner ^ inner << 7;
    const Groups outer = (nibbles ^ nibbles >> 14) & 0x00000C0Cu;
    nibbles ^= outer ^ outer << 14;
    const Groups output_offsets = nibbles * kOffsetFactor;
    std::memcpy(by_output, &output_offsets, sizeof(output_offsets));
}

// Groups of four pixels whose tables are used together.
constexpr int kChunkGroups = 16;

// Adds to the sums of all outputs what the pixels of a chunk contribute.
template <int Vectors>
SLIMFL_APART void masked_weight_gradient_panel(const float* table, const std::uint8_t* by_output,
                                               std::ptrdiff_t offset_stride, int groups, int outputs, float* sums,
                                               std::ptrdiff_t sum_stride) {
    for (int output = 0; output < outputs; output += 4) {
        Tile<4, Vectors> tile;
        tile.read(sums, sum_stride);
        const float* entries = table;
        const std::uint8_t* offset = by_output;
        for (int group = 0; group < groups; ++group) {
#pragma GCC unroll 4
            for (int o = 0; o < 4; ++o) {
                const float* entry = table_entry(entries, offset[o]);
#pragma GCC unroll 2
                for (int v = 0; v < Vectors; ++v) {
                    tile.sum[o][v] += load(entry + v * kLanes);
                }
            }
            entries += 16 * kPanel;
            offset += offset_stride;
        }
        tile.write(sums, sum_stride);
        by_output += 4;
        sums += 4 * sum_stride;
    }
}

// Adds to sums[output][input] the inputs of all pixels whose output's bit is set.
inline void masked_weight_gradient(const float* const* pixels, const std::uint8_t* by_output, int offset_stride,
                                   int groups, int channel_stride, int outputs, float* table, float* sums) {
    for_vector_panels(channel_stride / kLanes, [&](auto panel, int vector) {
        for (int group = 0; group < groups; ++group) {
            for (int v = 0; v < static_cast<int>(panel()); ++v) {
                Vec term[4];
#pragma GCC unroll 4
                for (int i = 0; i < 4; ++i) {
                    term[i] = load(pixels[group] + i * channel_stride + (vector + v) * kLanes);
                }
                store_subset_sums(table + 16 * group * kPanel + v * kLanes, term);
            }
        }
        masked_weight_gradient_panel<panel()>(table, by_output, offset_stride, groups, outputs,
                                              sums + vector * kLanes, channel_stride);
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
SLIMFL_INLINE void masked_input_gradient_block(const std::uint8_t* offsets, int groups, const float* table,
                                               float* activation, Stride stride) {
    Tile<Pixels, Vectors> tile;
    tile.clear();
    for (int group = 0; group < groups; ++group) {
#pragma GCC unroll 4
        for (int p = 0; p < Pixels; ++p) {
            const float* entry = table_entry(table, offsets[p]);
#pragma GCC unroll 2
            for (int v = 0; v < Vectors; ++v) {
                tile.sum[p][v] += load(entry + v * kLanes);
            }
        }
        table += 16 * kPanel;
        offsets += 4;
    }
    const Clamp clamp = fresh_clamp();
    tile.each([&](int p, int v, Vec sum) SLIMFL_INLINED {
        float* at = activation + p * stride + v * kLanes;
        store(at, where_active(load(at), sum, clamp));
    });
}

// One row and panel: replaces the inputs by the gradients that reach them, passed through their
// ReLU6.  `offsets` has `offset_stride` bytes for every four pixels; `table` is that of the panel,
// `activation` the row at the panel's first channel.
template <int Vectors>
SLIMFL_APART void masked_input_gradient(const std::uint8_t* offsets, std::ptrdiff_t offset_stride, int groups,
                                        const float* table, float* activation, int channel_stride, int width) {
    with_stride(channel_stride, [&](auto stride) {
        int x = 0;
        for (; x + 4 <= width; x += 4) {
            masked_input_gradient_block<4, Vectors>(offsets, groups, table, activation + x * stride, stride);
            offsets += offset_stride;
        }
        for (int p = 0; x + p < width; ++p) {
            masked_input_gradient_block<1, Vectors>(offsets + p, groups, table, activation + (x + p) * stride, stride);
        }
    });
}

}  // namespace slimfl::SLIMFL_LEVEL
