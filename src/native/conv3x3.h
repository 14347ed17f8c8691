// The first layer, a dense 3x3 convolution of the normalised image.
//
// With channels innermost, the three taps of one kernel row are 3 * in_channels consecutive
// numbers of the padded image, so a kernel row is a small matrix product.
#pragma once

#include "tiles.h"

namespace slimfl::SLIMFL_LEVEL {

struct ConvShape {
    int in_channels;
    int width;           // pixels per row, without padding
    int image_stride;    // numbers per row of the padded image
    int channel_stride;  // padded output channels
    int vectors;         // vectors of output channels in use
};

// One row of outputs.  `image`: the padded image at the row above; weights[tap][channel].
inline void conv3x3_forward(const ConvShape& shape, const float* image, const float* weights, float* out) {
    with_stride(shape.in_channels, [&](auto pixel_stride) {
        for_vector_panels(shape.vectors, [&](auto panel, int vector) {
            for_row_tiles(shape.width, [&](auto rows, int x) {
                Tile<rows(), panel()> tile;
                tile.clear();
                for (int dy = 0; dy < 3; ++dy) {
                    tile.multiply_add(image + dy * shape.image_stride + x * pixel_stride, pixel_stride, Fixed<1>{},
                                      weights + 3 * dy * pixel_stride * shape.channel_stride + vector * kLanes,
                                      shape.channel_stride, 3 * static_cast<int>(pixel_stride));
                }
                float* to = out + x * shape.channel_stride + vector * kLanes;
                const Clamp clamp = fresh_clamp();
                tile.each([&](int m, int v, Vec sum) SLIMFL_INLINED {
                    store(to + m * shape.channel_stride + v * kLanes, relu6(sum, clamp));
                });
            });
        });
    });
}

// Adds the weight gradient of `row_count` rows.  `gradient`: their output gradients, rows unpadded.
inline void conv3x3_weight_gradient(const ConvShape& shape, const float* image, const float* gradient, int row_count,
                                    float* weight_gradient) {
    const int taps = 3 * shape.in_channels;
    const std::ptrdiff_t stride = shape.channel_stride;
    for (int dy = 0; dy < 3; ++dy) {
        for_vector_panels(shape.vectors, [&](auto panel, int vector) {
            for_row_tiles(taps, [&](auto rows, int tap) {
                float* sums = weight_gradient + (dy * taps + tap) * stride + vector * kLanes;
                Tile<rows(), panel()> tile;
                tile.read(sums, stride);
                for (int row = 0; row < row_count; ++row) {
                    tile.multiply_add(image + (row + dy) * shape.image_stride + tap, Fixed<1>{},
                                      Dynamic{shape.in_channels}, gradient + row * shape.width * stride + vector * kLanes,
                                      stride, shape.width);
                }
                tile.write(sums, stride);
            });
        });
    }
}

}  // namespace slimfl::SLIMFL_LEVEL
