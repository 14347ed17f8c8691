// The sizes of one slimmable network and where its tensors lie in the flat parameter vector.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace slimfl {

// How many leading channels of the three channel dimensions one width uses.
struct Active {
    int first;
    int second;
    int third;
};

struct Shapes {
    int in_channels = 0;
    int height = 0;
    int width = 0;
    int classes = 0;
    Active full{0, 0, 0};
    std::vector<Active> active;  // one entry per width, narrowest first; the last is the full one

    // Offsets of the tensors in the flat vector, in their order, and its length.
    std::size_t conv = 0;
    std::size_t depthwise1 = 0;
    std::size_t pointwise1 = 0;
    std::size_t depthwise2 = 0;
    std::size_t pointwise2 = 0;
    std::size_t linear = 0;
    std::size_t bias = 0;
    std::size_t total = 0;

    Shapes(int in_channels, int height, int width, Active full, int classes, std::vector<Active> active);

    int widths() const { return static_cast<int>(active.size()); }
    int pixels() const { return height * width; }

    // Floating-point operations that training one image at the given widths costs when every width
    // is computed on its own: forward, weight gradients and input gradients, the latter not for
    // the first layer.  A multiply-add counts as two; padding counts as computed.
    double textbook_flops(const std::vector<int>& widths) const;

    // The same when what the widths have in common is computed once: the first two layers, and of
    // the first pointwise layer everything, since a narrow output is a partial sum of a wider one.
    double shared_flops(const std::vector<int>& widths) const;

    // What is left of shared_flops when the backward pass of the last pointwise layer sums
    // table entries of four masked terms each instead of multiplying them out; the additions that
    // build the tables are included.
    double executed_flops(const std::vector<int>& widths) const;
};

}  // namespace slimfl
