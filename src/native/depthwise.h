// Depthwise 3x3 convolutions, vectorised over channels; every call handles one row.
//
// Inputs of both directions lie in padded rows, so that no border needs a branch.
#pragma once

#include "simd.h"

namespace slimfl::SLIMFL_LEVEL {

// out[x] = relu6(sum over taps of weight * in), `in` being three padded rows.
inline void depthwise_forward(const float* const in[3], const float* weights, int weight_stride, float* out,
                              int channel_stride, int vector_count, int width) {
    with_stride(channel_stride, [&](auto stride) {
        const Clamp clamp = fresh_clamp();
        for (int vector = 0; vector < vector_count; ++vector) {
            const int lane = vector * kLanes;
            Vec weight[9];
#pragma GCC unroll 9
            for (int tap = 0; tap < 9; ++tap) {
                weight[tap] = load(weights + tap * weight_stride + lane);
            }
            const float* above = in[0] + lane;
            const float* centre = in[1] + lane;
            const float* below = in[2] + lane;
            float* to = out + lane;
            for (int x = 0; x < width; ++x) {
                Vec top = weight[0] * load(above);
                Vec middle = weight[3] * load(centre);
                Vec bottom = weight[6] * load(below);
#pragma GCC unroll 2
                for (int dx = 1; dx < 3; ++dx) {
                    top += weight[dx] * load(above + dx * stride);
                    middle += weight[3 + dx] * load(centre + dx * stride);
                    bottom += weight[6 + dx] * load(below + dx * stride);
                }
                store(to, relu6(top + middle + bottom, clamp));
                above += stride;
                centre += stride;
                below += stride;
                to += stride;
            }
        }
    });
}

// What one row of a depthwise layer's backward pass reads and writes.
struct DepthwiseBackward {
    const float* gradient[3];  // padded rows of the output's gradient
    const float* activation;   // the layer's input in this row, after its ReLU6
    int channel_stride;        // of these
    const float* weights;
    float* weight_gradient;
    int weight_stride;     // of these
    const float* carried;  // unless null, a gradient to add to what is written
    float* out;            // the input's gradient, passed through its ReLU6
    int out_stride;        // of these
};

// Both gradients of `Pixels` neighbouring pixels at once: each surrounding gradient is needed for
// both and usually for several pixels.
template <int Pixels, bool Carries, class Stride>
SLIMFL_INLINE void depthwise_backward_block(const DepthwiseBackward& row, Stride stride, int x, int lane,
                                            Vec (&weight_sum)[9], const Clamp& clamp) {
    Vec input[Pixels];
    Vec sum[Pixels];
#pragma GCC unroll 4
    for (int p = 0; p < Pixels; ++p) {
        input[p] = load(row.activation + (x + p) * stride + lane);
    }
#pragma GCC unroll 3
    for (int dy = 0; dy < 3; ++dy) {
        const float* from = row.gradient[2 - dy] + x * stride + lane;
        const float* weights = row.weights + 3 * dy * row.weight_stride + lane;
#pragma GCC unroll 8
        for (int column = 0; column < Pixels + 2; ++column) {
            const Vec neighbour = load(from + column * stride);
#pragma GCC unroll 4
            for (int p = 0; p < Pixels; ++p) {
                const int dx = p + 2 - column;
                if (dx >= 0 && dx < 3) {
                    const Vec product = load(weights + dx * row.weight_stride) * neighbour;
                    sum[p] = dy == 0 && dx == 2 ? product : sum[p] + product;
                    weight_sum[3 * dy + dx] += input[p] * neighbour;
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int p = 0; p < Pixels; ++p) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(x + p) * row.out_stride + lane;
        Vec result = where_active(input[p], sum[p], clamp);
        if (Carries) {
            result += load(row.carried + at);
        }
        store(row.out + at, result);
    }
}

template <bool Carries>
inline void depthwise_backward_row(const DepthwiseBackward& row, int vector_count, int width) {
    with_stride(row.channel_stride, [&](auto stride) {
        const Clamp clamp = fresh_clamp();
        for (int lane = 0; lane < vector_count * kLanes; lane += kLanes) {
            Vec weight_sum[9];
#pragma GCC unroll 9
            for (int tap = 0; tap < 9; ++tap) {
                weight_sum[tap] = Vec{};
            }
            int x = 0;
            for (; x + 2 <= width; x += 2) {
                depthwise_backward_block<2, Carries>(row, stride, x, lane, weight_sum, clamp);
            }
            if (x < width) {
                depthwise_backward_block<1, Carries>(row, stride, x, lane, weight_sum, clamp);
            }
#pragma GCC unroll 9
            for (int tap = 0; tap < 9; ++tap) {
                float* to = row.weight_gradient + tap * row.weight_stride + lane;
                store(to, load(to) + weight_sum[tap]);
            }
        }
    });
}

inline void depthwise_backward(const DepthwiseBackward& row, int vector_count, int width) {
    if (row.carried != nullptr) {
        depthwise_backward_row<true>(row, vector_count, width);
    } else {
        depthwise_backward_row<false>(row, vector_count, width);
    }
}

}  // namespace slimfl::SLIMFL_LEVEL
