// The dense parts of the two pointwise layers: forward of both, both gradients of the first.
//
// In the first one, all widths share their input.  A narrow width's output is the sum over the
// leading input channels only, a partial sum of the next wider one's: the input channels are
// visited in segments, one per width, and each width's result is taken after its segment.  Backward,
// an input channel of segment s receives from output channel o the gradients of all widths from
// max(s, segment of o) on; given the sums of those gradients (`suffix` below), both gradients cost
// no more than the widest width alone.
#pragma once

#include "tiles.h"

namespace slimfl::SLIMFL_LEVEL {

// One participating width's part in the shared layer.
struct SharedWidth {
    int inputs;     // active input channels
    int outputs;    // active output channels
    int out_stride; // padded output channels
    float* out;     // activations, padded image
    float* suffix;  // output gradients summed over this and all wider widths, a strip of rows
};

// A run of whole vectors of input channels all in one segment.  A vector two segments share
// occurs in a run of each; the second keeps the lanes of the first.
struct InputRun {
    int segment;
    int first_vector;
    int vectors;
    int kept_lanes;
};

// One row of the first pointwise layer; writes relu6 of each width's result at `offset` pixels of
// its padded image.  weights[input][output].
inline void shared_pointwise_forward(const float* in, int in_stride, const float* weights, int weight_stride,
                                     const SharedWidth* widths, int width_count, std::ptrdiff_t offset, int width) {
    const int all_vectors = vectors(widths[width_count - 1].outputs);
    with_stride(in_stride, [&](auto stride) {
        for_vector_panels(all_vectors, [&](auto panel, int vector) {
            for_row_tiles(width, [&](auto rows, int x) {
                Tile<rows(), panel()> tile;
                tile.clear();
                int input = 0;
                for (int s = 0; s < width_count; ++s) {
                    const SharedWidth& slim = widths[s];
                    tile.multiply_add(in + x * stride + input, stride, Fixed<1>{},
                                      weights + input * weight_stride + vector * kLanes, weight_stride,
                                      slim.inputs - input);
                    input = slim.inputs;
                    const int wanted = slim.out_stride / kLanes - vector;
                    float* to = slim.out + (offset + x) * slim.out_stride + vector * kLanes;
                    const Clamp clamp = fresh_clamp();
                    if (wanted >= static_cast<int>(panel())) {
                        tile.each([&](int m, int v, Vec sum) SLIMFL_INLINED {
                            store(to + m * slim.out_stride + v * kLanes, relu6(sum, clamp));
                        });
                    } else if (wanted > 0) {
                        tile.each([&](int m, int v, Vec sum) SLIMFL_INLINED {
                            if (v == 0) {
                                store(to + m * slim.out_stride, relu6(sum, clamp));
                            }
                        });
                    }
                }
            });
        });
    });
}

// Input gradient of one row, passed through the ReLU6 of `activation`.  `row_offset` is the row's
// first number in the suffix strips; weights[output][input]; out is a row without padding.
inline void shared_pointwise_input_gradient(const SharedWidth* widths, int width_count, const InputRun* runs,
                                            int run_count, std::ptrdiff_t row_offset, int suffix_stride,
                                            const float* weights, const float* activation, float* out,
                                            int channel_stride, int width) {
    with_stride(suffix_stride, [&](auto stride) {
        for (int r = 0; r < run_count; ++r) {
            const InputRun& run = runs[r];
            for_vector_panels(run.vectors, [&](auto panel, int panel_start) {
                const int lane = (run.first_vector + panel_start) * kLanes;
                const int kept = panel_start == 0 ? run.kept_lanes : 0;
                for_row_tiles(width, [&](auto rows, int x) {
                    Tile<rows(), panel()> tile;
                    tile.clear();
                    int output = 0;
                    for (int s = 0; s < width_count; ++s) {
                        const float* from = widths[s > run.segment ? s : run.segment].suffix;
                        tile.multiply_add(from + row_offset + x * stride + output, stride, Fixed<1>{},
                                          weights + output * channel_stride + lane, channel_stride,
                                          widths[s].outputs - output);
                        output = widths[s].outputs;
                    }
                    const Clamp clamp = fresh_clamp();
                    tile.each([&](int m, int v, Vec sum) SLIMFL_INLINED {
                        const std::ptrdiff_t at = (x + m) * channel_stride + lane + v * kLanes;
                        Vec result = where_active(load(activation + at), sum, clamp);
                        if (v == 0 && kept > 0) {
                            result = keep_lanes(load(out + at), result, kept);
                        }
                        store(out + at, result);
                    });
                });
            });
        }
    });
}

// Adds the weight gradient of `count` pixels to sums[segment][output][input]; of segment s only
// its own input channels are meant.
inline void shared_pointwise_weight_gradient(const SharedWidth* widths, int width_count, const InputRun* runs,
                                             int run_count, int suffix_stride, const float* in, int channel_stride,
                                             float* sums, std::ptrdiff_t segment_stride, int count) {
    for (int r = 0; r < run_count; ++r) {
        const InputRun& run = runs[r];
        for_vector_panels(run.vectors, [&](auto panel, int panel_start) {
            const int lane = (run.first_vector + panel_start) * kLanes;
            int output = 0;
            for (int s = 0; s < width_count; ++s) {
                const float* from = widths[s > run.segment ? s : run.segment].suffix + output;
                float* to = sums + run.segment * segment_stride + output * channel_stride + lane;
                for_row_tiles(widths[s].outputs - output, [&](auto rows, int o) {
                    Tile<rows(), panel()> tile;
                    tile.read(to + o * channel_stride, channel_stride);
                    tile.multiply_add(from + o, Fixed<1>{}, Dynamic{suffix_stride}, in + lane, channel_stride, count);
                    tile.write(to + o * channel_stride, channel_stride);
                });
                output = widths[s].outputs;
            }
        });
    }
}

// `count` pixels of the last pointwise layer. Of their activations, only the channel sums are kept
// and, for the backward pass, one bit each: where the ReLU6 passes gradients.
inline void pooled_pointwise_forward(const float* in, int in_stride, int inputs, const float* weights,
                                     int weight_stride, int output_vectors, float* channel_sums, std::uint8_t* bits,
                                     int bit_stride, int count) {
    with_stride(in_stride, [&](auto stride) {
        for_vector_panels(output_vectors, [&](auto panel, int vector) {
            for_row_tiles(count, [&](auto rows, int x) {
                Tile<rows(), panel()> tile;
                tile.clear();
                tile.multiply_add(in + x * stride, stride, Fixed<1>{}, weights + vector * kLanes, weight_stride,
                                  inputs);
                const Clamp clamp = fresh_clamp();
                Vec total[panel()];
                total[0] = clamp.zero;
                total[panel() - 1] = clamp.zero;
                // A copy: the compiler must assume that the bytes stored below alias the variable.
                const std::ptrdiff_t pixel_stride = bit_stride;
                std::uint8_t* to_bits = bits + x * pixel_stride + vector * kLanes / 8;
                tile.each([&](int m, int v, Vec sum) SLIMFL_INLINED {
                    const Vec activation = relu6(sum, clamp);
                    total[v] += activation;
                    store_bits(to_bits + m * pixel_stride, v, active_bits(activation, clamp));
                });
                float* to = channel_sums + vector * kLanes;
                store(to, load(to) + total[0]);
                if (panel() > 1) {
                    store(to + kLanes, load(to + kLanes) + total[panel() - 1]);
                }
            });
        });
    });
}

}  // namespace slimfl::SLIMFL_LEVEL
