#include "shapes.h"

#include <stdexcept>
#include <utility>

namespace slimfl {

namespace {

// Multiply-adds of each layer for one pixel (the last: for one image).
struct Work {
    double conv;
    double depthwise1;
    double pointwise1;
    double depthwise2;
    double pointwise2;
    double linear;
};

Work work(const Shapes& shapes, const Active& a) {
    return Work{9.0 * shapes.in_channels * a.first,
                9.0 * a.first,
                static_cast<double>(a.first) * a.second,
                9.0 * a.second,
                static_cast<double>(a.second) * a.third,
                static_cast<double>(a.third) * shapes.classes};
}

}  // namespace

Shapes::Shapes(int in_channels_, int height_, int width_, Active full_, int classes_, std::vector<Active> active_)
    : in_channels(in_channels_),
      height(height_),
      width(width_),
      classes(classes_),
      full(full_),
      active(std::move(active_)) {
    const int largest = 1 << 12;
    for (int size : {in_channels, height, width, classes, full.first, full.second, full.third}) {
        if (size < 1 || size > largest) {
            throw std::invalid_argument("every size of the network must be between 1 and 4096");
        }
    }
    if (static_cast<long long>(height) * width > (1 << 24)) {
        throw std::invalid_argument("an image may have at most 16777216 pixels");
    }
    if (active.empty()) {
        throw std::invalid_argument("active must list the channel counts of at least one width");
    }
    Active before{1, 1, 1};
    for (const Active& a : active) {
        if (a.first < before.first || a.second < before.second || a.third < before.third) {
            throw std::invalid_argument("active channel counts must be positive and must not decrease from width to width");
        }
        before = a;
    }
    if (before.first != full.first || before.second != full.second || before.third != full.third) {
        throw std::invalid_argument("the last entry of active must equal channels");
    }
    const std::size_t c1 = static_cast<std::size_t>(full.first);
    const std::size_t c2 = static_cast<std::size_t>(full.second);
    const std::size_t c3 = static_cast<std::size_t>(full.third);
    depthwise1 = conv + c1 * static_cast<std::size_t>(in_channels) * 9;
    pointwise1 = depthwise1 + c1 * 9;
    depthwise2 = pointwise1 + c2 * c1;
    pointwise2 = depthwise2 + c2 * 9;
    linear = pointwise2 + c3 * c2;
    bias = linear + static_cast<std::size_t>(classes) * c3;
    total = bias + static_cast<std::size_t>(classes);
}

double Shapes::textbook_flops(const std::vector<int>& widths) const {
    double multiply_adds = 0;
    for (int index : widths) {
        const Work w = work(*this, active[static_cast<std::size_t>(index)]);
        multiply_adds += pixels() * (2 * w.conv + 3 * (w.depthwise1 + w.pointwise1 + w.depthwise2 + w.pointwise2));
        multiply_adds += 3 * w.linear;
    }
    return 2 * multiply_adds;
}

double Shapes::shared_flops(const std::vector<int>& widths) const {
    double multiply_adds = 0;
    for (std::size_t position = 0; position < widths.size(); ++position) {
        const Work w = work(*this, active[static_cast<std::size_t>(widths[position])]);
        if (position + 1 == widths.size()) {
            multiply_adds += pixels() * (2 * w.conv + 3 * (w.depthwise1 + w.pointwise1));
        }
        multiply_adds += pixels() * 3 * (w.depthwise2 + w.pointwise2) + 3 * w.linear;
    }
    return 2 * multiply_adds;
}

double Shapes::executed_flops(const std::vector<int>& widths) const {
    double flops = shared_flops(widths);
    for (int index : widths) {
        const Active& a = active[static_cast<std::size_t>(index)];
        const double dense = 2.0 * 2.0 * pixels() * a.second * a.third;
        const double lookups = 2.0 * pixels() * a.second * ((a.third + 3) / 4);
        const double tables = 11.0 * a.second * ((a.third + 3) / 4 + (pixels() + 3) / 4);
        flops += lookups + tables - dense;
    }
    return flops;
}

}  // namespace slimfl
