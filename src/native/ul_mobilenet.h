// The engine: forward and backward of one image at all participating widths.
//
// Both directions run through the image row by row with all layers interleaved, each layer as
// soon as the rows it needs exist, so that a row is reused while it is still in the first-level
// cache.  What the backward pass needs of the forward one is kept for the whole image (it fits the
// second-level cache at the usual sizes); gradients live in rings or strips of a few rows only.
#pragma once

#include "conv3x3.h"
#include "depthwise.h"
#include "engine.h"
#include "masked.h"
#include "memory.h"
#include "pointwise.h"
#include "shapes.h"

namespace slimfl::SLIMFL_LEVEL {

class ImageEngine final : public Engine {
public:
    explicit ImageEngine(const Shapes& shapes)
        : shapes_(shapes),
          stride1_(padded(shapes.full.first)),
          stride2_(padded(shapes.full.second)),
          stride3_(padded(shapes.full.third)) {
        for (int pass = 0; pass < 2; ++pass) {
            lay_out(pass == 1);
            if (pass == 0) {
                arena_.allocate();
            }
        }
    }

    void begin(const float* theta, const int* widths, int count) override {
        count_ = count;
        for (int q = 0; q < count; ++q) {
            participants_[q] = &buffers_[widths[q]];
            const WidthBuffers& p = *participants_[q];
            shared_[q] = SharedWidth{p.active.first, p.active.second, p.stride2, p.activation3, p.suffix};
        }
        find_input_runs();
        pack(theta);
        clear_gradients();
    }

    void forward(const std::uint8_t* image, const float* normalised) override {
        read_image(image, normalised);
        for (int q = 0; q < count_; ++q) {
            std::memset(participants_[q]->pooled, 0, sizeof(float) * static_cast<std::size_t>(stride3_));
        }
        for (int step = 0; step < shapes_.height + 2; ++step) {
            if (step < shapes_.height) {
                conv3x3_forward(conv_shape(), image_ + step * image_stride(), conv_, padded_row(activation1_, stride1_, step));
            }
            if (step >= 1 && step <= shapes_.height) {
                forward_shared_row(step - 1);
            }
            if (step >= 2) {
                forward_own_row(step - 2);
            }
        }
        for (int q = 0; q < count_; ++q) {
            classify(*participants_[q]);
        }
    }

    const float* logits(int position) const override { return participants_[position]->logits; }

    void backward(const float* logit_gradients) override {
        for (int q = 0; q < count_; ++q) {
            WidthBuffers& p = *participants_[q];
            backward_classifier(p, logit_gradients + q * shapes_.classes);
            backward_pooled_weights(p);
            backward_pooled_inputs(p);
        }
        zero_row(ring_row(gradient2_, stride1_, -1), stride1_);
        for (int step = 0; step <= shapes_.height; ++step) {
            backward_shared_row(step);
            if (step >= 1) {
                backward_first_row(step - 1);
            }
        }
    }

    void finish(float* gradient) override {
        std::memset(gradient, 0, sizeof(float) * shapes_.total);
        const Active top = participants_[count_ - 1]->active;
        const int taps = 9 * shapes_.in_channels;
        for (int o = 0; o < top.first; ++o) {
            for (int c = 0; c < shapes_.in_channels; ++c) {
                for (int t = 0; t < 9; ++t) {
                    gradient[shapes_.conv + o * taps + c * 9 + t] =
                        conv_gradient_[(t * shapes_.in_channels + c) * stride1_ + o];
                }
            }
            for (int t = 0; t < 9; ++t) {
                gradient[shapes_.depthwise1 + o * 9 + t] = depthwise1_gradient_[t * stride1_ + o];
            }
        }
        int first_input = 0;
        for (int q = 0; q < count_; ++q) {
            const WidthBuffers& p = *participants_[q];
            const float* pointwise1 = pointwise1_gradient_ + q * segment_stride();
            for (int o = 0; o < top.second; ++o) {
                for (int i = first_input; i < p.active.first; ++i) {
                    gradient[shapes_.pointwise1 + o * shapes_.full.first + i] = pointwise1[o * stride1_ + i];
                }
            }
            first_input = p.active.first;
            for (int o = 0; o < p.active.second; ++o) {
                for (int t = 0; t < 9; ++t) {
                    gradient[shapes_.depthwise2 + o * 9 + t] += p.depthwise2_gradient[t * stride2_ + o];
                }
            }
            for (int o = 0; o < p.active.third; ++o) {
                for (int i = 0; i < p.active.second; ++i) {
                    gradient[shapes_.pointwise2 + o * shapes_.full.second + i] +=
                        p.pointwise2_gradient[o * p.stride2 + i];
                }
            }
        }
        const std::size_t linear_size = shapes_.total - shapes_.linear;
        std::memcpy(gradient + shapes_.linear, linear_gradient_, sizeof(float) * linear_size);
    }

private:
    // Rows of gradients a depthwise layer looks at, rounded up to a power of two.
    static constexpr int kRingRows = 4;
    // Rows whose weight gradients of the dense layers are summed in registers.
    static constexpr int kStripRows = 2;

    // Buffers of each width.
    struct WidthBuffers {
        Active active;
        int stride2;               // padded second channel count
        int words;                 // of 32 outputs
        float* activation3;        // first pointwise layer's, padded image
        float* activation4;        // second depthwise layer's, padded image; backward, their gradients
        std::uint8_t* bits;        // where the last ReLU6 passes gradients, rows of whole pixel groups
        std::uint8_t* by_pixel;    // of spread_bits, whole image
        std::uint8_t* by_output;   // of spread_bits, a chunk
        float* pooled;             // channel averages of the last activation
        float* logits;
        float* factors;            // gradient of each channel sum
        float* table;              // of masked_input_gradient
        float* masked_sums;        // of masked_weight_gradient, one image
        float* suffix;             // strip of rows
        float* depthwise2_gradient;
        float* pointwise2_gradient;
    };

    template <class T>
    T* carve(std::ptrdiff_t count) {
        return static_cast<T*>(arena_.carve(sizeof(T) * static_cast<std::size_t>(count)));
    }

    void lay_out(bool allocated) {
        const std::ptrdiff_t widths = shapes_.widths();
        const std::ptrdiff_t padded_pixels = static_cast<std::ptrdiff_t>(shapes_.height + 2) * (shapes_.width + 2);
        const std::ptrdiff_t pixels = shapes_.pixels();
        const std::ptrdiff_t grouped_pixels = static_cast<std::ptrdiff_t>(shapes_.height) * row_groups() * 4;
        const std::ptrdiff_t ring = kRingRows * (shapes_.width + 2);
        const std::ptrdiff_t strip = kStripRows * shapes_.width;
        const int taps = 9 * shapes_.in_channels;

        buffers_ = carve<WidthBuffers>(widths);
        participants_ = carve<WidthBuffers*>(widths);
        shared_ = carve<SharedWidth>(widths);
        runs_ = carve<InputRun>(2 * widths);

        image_ = carve<float>(padded_pixels * shapes_.in_channels);
        conv_ = carve<float>(taps * stride1_);
        depthwise1_ = carve<float>(9 * stride1_);
        pointwise1_by_input_ = carve<float>(stride1_ * stride2_);
        pointwise1_by_output_ = carve<float>(stride1_ * stride2_);
        depthwise2_ = carve<float>(9 * stride2_);
        pointwise2_by_input_ = carve<float>(stride2_ * stride3_);
        pointwise2_by_output_ = carve<float>(stride2_ * stride3_);
        linear_ = carve<float>(static_cast<std::ptrdiff_t>(shapes_.total - shapes_.linear));

        activation1_ = carve<float>(padded_pixels * stride1_);
        activation2_ = carve<float>(pixels * stride1_);
        gradient2_ = carve<float>(ring * stride1_);
        gradient1_ = carve<float>(strip * stride1_);
        chunk_table_ = carve<float>(16 * kChunkGroups * kPanel);

        conv_gradient_ = carve<float>(taps * stride1_);
        depthwise1_gradient_ = carve<float>(9 * stride1_);
        pointwise1_gradient_ = carve<float>(widths * segment_stride());
        linear_gradient_ = carve<float>(static_cast<std::ptrdiff_t>(shapes_.total - shapes_.linear));

        for (int w = 0; w < widths; ++w) {
            WidthBuffers b{};
            b.active = shapes_.active[static_cast<std::size_t>(w)];
            b.stride2 = padded(b.active.second);
            b.words = (padded(b.active.third) + kWordOutputs - 1) / kWordOutputs;
            b.activation3 = carve<float>(padded_pixels * b.stride2);
            b.activation4 = carve<float>(padded_pixels * b.stride2);
            b.bits = carve<std::uint8_t>(grouped_pixels * bit_stride(b));
            b.by_pixel = carve<std::uint8_t>(grouped_pixels / 4 * offset_stride(b));
            b.by_output = carve<std::uint8_t>(kChunkGroups * offset_stride(b));
            b.pooled = carve<float>(stride3_);
            b.logits = carve<float>(shapes_.classes);
            b.factors = carve<float>(stride3_);
            b.table = carve<float>(16 * kPanel * groups(b) * panels(b.stride2 / kLanes));
            b.masked_sums = carve<float>(padded(b.active.third) * b.stride2);
            b.suffix = carve<float>(strip * stride2_);
            b.depthwise2_gradient = carve<float>(9 * stride2_);
            b.pointwise2_gradient = carve<float>(padded(b.active.third) * b.stride2);
            if (allocated) {
                buffers_[w] = b;
            }
        }
    }

    static int groups(const WidthBuffers& p) { return (p.active.third + 3) / 4; }

    // Groups of four pixels per row; the last one may be incomplete.
    int row_groups() const { return (shapes_.width + 3) / 4; }

    // Bytes per pixel of `bits`, and per four pixels of `by_pixel` and `by_output`.
    static int bit_stride(const WidthBuffers& p) { return p.words * kWordOutputs / 8; }
    static int offset_stride(const WidthBuffers& p) { return p.words * kWordOutputs; }

    std::uint8_t* bit_row(const WidthBuffers& p, int row) const {
        return p.bits + static_cast<std::ptrdiff_t>(row) * row_groups() * 4 * bit_stride(p);
    }

    std::uint8_t* offset_row(const WidthBuffers& p, int row) const {
        return p.by_pixel + static_cast<std::ptrdiff_t>(row) * row_groups() * offset_stride(p);
    }

    std::ptrdiff_t segment_stride() const { return static_cast<std::ptrdiff_t>(stride2_) * stride1_; }

    int image_stride() const { return (shapes_.width + 2) * shapes_.in_channels; }

    ConvShape conv_shape() const {
        return ConvShape{shapes_.in_channels, shapes_.width, image_stride(), stride1_, top_vectors()};
    }

    int top_vectors() const { return vectors(participants_[count_ - 1]->active.first); }

    // The first pixel inside the border of row `row` of a padded image.
    std::ptrdiff_t padded_pixel(int row) const {
        return static_cast<std::ptrdiff_t>(row + 1) * (shapes_.width + 2) + 1;
    }

    float* padded_row(float* image, int stride, int row) const { return image + padded_pixel(row) * stride; }

    // The whole row `row` (from -1 on, border included) of a ring.
    float* ring_row(float* ring, int stride, int row) const {
        return ring + static_cast<std::ptrdiff_t>((row + 1) % kRingRows) * (shapes_.width + 2) * stride;
    }

    void zero_row(float* row, int stride) const {
        std::memset(row, 0, sizeof(float) * static_cast<std::size_t>((shapes_.width + 2) * stride));
    }

    // Cuts the input channels of the first pointwise layer in runs of vectors of one segment.
    void find_input_runs() {
        run_count_ = 0;
        int first = 0;
        for (int q = 0; q < count_; ++q) {
            const int end = shared_[q].inputs;
            if (end > first) {
                const int vector = first / kLanes;
                runs_[run_count_++] = InputRun{q, vector, vectors(end) - vector, first % kLanes};
            }
            first = end;
        }
    }

    void pack(const float* theta) {
        const Active& full = shapes_.full;
        const int channels = shapes_.in_channels;
        for (int o = 0; o < full.first; ++o) {
            for (int c = 0; c < channels; ++c) {
                for (int t = 0; t < 9; ++t) {
                    conv_[(t * channels + c) * stride1_ + o] = theta[shapes_.conv + (o * channels + c) * 9 + t];
                }
            }
            for (int t = 0; t < 9; ++t) {
                depthwise1_[t * stride1_ + o] = theta[shapes_.depthwise1 + o * 9 + t];
            }
        }
        pack_matrix(theta + shapes_.pointwise1, full.second, full.first, pointwise1_by_input_, stride2_,
                    pointwise1_by_output_, stride1_);
        for (int o = 0; o < full.second; ++o) {
            for (int t = 0; t < 9; ++t) {
                depthwise2_[t * stride2_ + o] = theta[shapes_.depthwise2 + o * 9 + t];
            }
        }
        pack_matrix(theta + shapes_.pointwise2, full.third, full.second, pointwise2_by_input_, stride3_,
                    pointwise2_by_output_, stride2_);
        std::memcpy(linear_, theta + shapes_.linear, sizeof(float) * (shapes_.total - shapes_.linear));
    }

    static void pack_matrix(const float* from, int outputs, int inputs, float* by_input, int output_stride,
                            float* by_output, int input_stride) {
        for (int o = 0; o < outputs; ++o) {
            for (int i = 0; i < inputs; ++i) {
                by_input[i * output_stride + o] = from[o * inputs + i];
                by_output[o * input_stride + i] = from[o * inputs + i];
            }
        }
    }

    void clear_gradients() {
        const auto clear = [](float* values, std::ptrdiff_t count) {
            std::memset(values, 0, sizeof(float) * static_cast<std::size_t>(count));
        };
        clear(conv_gradient_, 9 * shapes_.in_channels * stride1_);
        clear(depthwise1_gradient_, 9 * stride1_);
        clear(pointwise1_gradient_, count_ * segment_stride());
        clear(linear_gradient_, static_cast<std::ptrdiff_t>(shapes_.total - shapes_.linear));
        for (int q = 0; q < count_; ++q) {
            WidthBuffers& p = *participants_[q];
            clear(p.depthwise2_gradient, 9 * stride2_);
            clear(p.pointwise2_gradient, padded(p.active.third) * p.stride2);
        }
    }

    void read_image(const std::uint8_t* image, const float* normalised) {
        const int channels = shapes_.in_channels;
        for (int row = 0; row < shapes_.height; ++row) {
            float* to = padded_row(image_, channels, row);
            for (int x = 0; x < shapes_.width; ++x) {
                for (int c = 0; c < channels; ++c) {
                    *to++ = normalised[256 * c + *image++];
                }
            }
        }
    }

    // First depthwise and first pointwise layer, common to all widths.
    void forward_shared_row(int row) {
        const float* in[3];
        for (int dy = 0; dy < 3; ++dy) {
            in[dy] = padded_row(activation1_, stride1_, row + dy - 1) - stride1_;
        }
        float* middle = activation2_ + static_cast<std::ptrdiff_t>(row) * shapes_.width * stride1_;
        depthwise_forward(in, depthwise1_, stride1_, middle, stride1_, top_vectors(), shapes_.width);
        shared_pointwise_forward(middle, stride1_, pointwise1_by_input_, stride2_, shared_, count_, padded_pixel(row),
                                 shapes_.width);
    }

    // Second depthwise and second pointwise layer of each width.
    void forward_own_row(int row) {
        for (int q = 0; q < count_; ++q) {
            WidthBuffers& p = *participants_[q];
            const float* in[3];
            for (int dy = 0; dy < 3; ++dy) {
                in[dy] = padded_row(p.activation3, p.stride2, row + dy - 1) - p.stride2;
            }
            float* out = padded_row(p.activation4, p.stride2, row);
            depthwise_forward(in, depthwise2_, stride2_, out, p.stride2, vectors(p.active.second), shapes_.width);
            pooled_pointwise_forward(out, p.stride2, p.active.second, pointwise2_by_input_, stride3_,
                                     vectors(p.active.third), p.pooled, bit_row(p, row), bit_stride(p),
                                     shapes_.width);
        }
    }

    void classify(WidthBuffers& p) const {
        const float scale = 1.0f / static_cast<float>(shapes_.pixels());
        for (int o = 0; o < p.active.third; ++o) {
            p.pooled[o] *= scale;
        }
        const float* bias = linear_ + shapes_.classes * shapes_.full.third;
        for (int k = 0; k < shapes_.classes; ++k) {
            const float* weights = linear_ + k * shapes_.full.third;
            float sum = bias[k];
            for (int o = 0; o < p.active.third; ++o) {
                sum += weights[o] * p.pooled[o];
            }
            p.logits[k] = sum;
        }
    }

    void backward_classifier(WidthBuffers& p, const float* logit_gradient) {
        const int inputs = shapes_.full.third;
        const float scale = 1.0f / static_cast<float>(shapes_.pixels());
        float* bias_gradient = linear_gradient_ + shapes_.classes * inputs;
        std::memset(p.factors, 0, sizeof(float) * static_cast<std::size_t>(stride3_));
        for (int k = 0; k < shapes_.classes; ++k) {
            const float gradient = logit_gradient[k];
            for (int o = 0; o < p.active.third; ++o) {
                linear_gradient_[k * inputs + o] += gradient * p.pooled[o];
                p.factors[o] += gradient * scale * linear_[k * inputs + o];
            }
            bias_gradient[k] += gradient;
        }
    }

    // Weight gradient of the last pointwise layer, the whole image.
    void backward_pooled_weights(WidthBuffers& p) {
        const int outputs = padded(p.active.third);
        std::memset(p.masked_sums, 0, sizeof(float) * static_cast<std::size_t>(outputs * p.stride2));
        const float* chunk[kChunkGroups];
        int filled = 0;
        for (int row = 0; row < shapes_.height; ++row) {
            const float* in = padded_row(p.activation4, p.stride2, row);
            for (int group = 0; group < row_groups(); ++group) {
                for (int word = 0; word < p.words; ++word) {
                    spread_bits(bit_row(p, row) + 4 * group * bit_stride(p) + word * kWordOutputs / 8, bit_stride(p),
                                offset_row(p, row) + group * offset_stride(p) + word * kWordOutputs,
                                p.by_output + filled * offset_stride(p) + word * kWordOutputs);
                }
                chunk[filled++] = in + 4 * group * p.stride2;
                if (filled == kChunkGroups || (row == shapes_.height - 1 && group == row_groups() - 1)) {
                    masked_weight_gradient(chunk, p.by_output, offset_stride(p), filled, p.stride2, outputs,
                                           chunk_table_, p.masked_sums);
                    filled = 0;
                }
            }
        }
        for (int o = 0; o < p.active.third; ++o) {
            for (int lane = 0; lane < p.stride2; lane += kLanes) {
                float* to = p.pointwise2_gradient + o * p.stride2 + lane;
                store(to, load(to) + p.factors[o] * load(p.masked_sums + o * p.stride2 + lane));
            }
        }
    }

    // Input gradient of the last pointwise layer, the whole image, in place of the inputs.
    void backward_pooled_inputs(WidthBuffers& p) {
        build_weight_tables(pointwise2_by_output_, stride2_, p.factors, groups(p), p.stride2 / kLanes, p.table);
        for_vector_panels(p.stride2 / kLanes, [&](auto panel, int vector) {
            for (int row = 0; row < shapes_.height; ++row) {
                masked_input_gradient<panel()>(offset_row(p, row), offset_stride(p), groups(p),
                                               p.table + 16 * kPanel * (vector / 2) * groups(p),
                                               padded_row(p.activation4, p.stride2, row) + vector * kLanes, p.stride2,
                                               shapes_.width);
            }
        });
    }

    // Second depthwise and first pointwise layer; the row below the image is zero.
    void backward_shared_row(int row) {
        float* out = ring_row(gradient2_, stride1_, row);
        if (row == shapes_.height) {
            zero_row(out, stride1_);
            return;
        }
        const int strip_row = row % kStripRows;
        const std::ptrdiff_t strip_offset = static_cast<std::ptrdiff_t>(strip_row) * shapes_.width * stride2_;
        const float* carried = nullptr;
        for (int q = count_ - 1; q >= 0; --q) {
            WidthBuffers& p = *participants_[q];
            float* suffix = p.suffix + strip_offset;
            const float* gradient = padded_row(p.activation4, p.stride2, row) - p.stride2;
            const std::ptrdiff_t row_stride = static_cast<std::ptrdiff_t>(shapes_.width + 2) * p.stride2;
            depthwise_backward({{gradient - row_stride, gradient, gradient + row_stride},
                                padded_row(p.activation3, p.stride2, row),
                                p.stride2,
                                depthwise2_,
                                p.depthwise2_gradient,
                                stride2_,
                                carried,
                                suffix,
                                stride2_},
                               vectors(p.active.second), shapes_.width);
            carried = suffix;
        }
        const float* in = activation2_ + static_cast<std::ptrdiff_t>(row) * shapes_.width * stride1_;
        shared_pointwise_input_gradient(shared_, count_, runs_, run_count_, strip_offset, stride2_,
                                        pointwise1_by_output_, in, out + stride1_, stride1_, shapes_.width);
        if (strip_row == kStripRows - 1 || row == shapes_.height - 1) {
            shared_pointwise_weight_gradient(shared_, count_, runs_, run_count_, stride2_,
                                             in - static_cast<std::ptrdiff_t>(strip_row) * shapes_.width * stride1_,
                                             stride1_, pointwise1_gradient_, segment_stride(),
                                             (strip_row + 1) * shapes_.width);
        }
    }

    // First depthwise layer and the weights of the convolution.
    void backward_first_row(int row) {
        const int strip_row = row % kStripRows;
        float* out = gradient1_ + static_cast<std::ptrdiff_t>(strip_row) * shapes_.width * stride1_;
        depthwise_backward({{ring_row(gradient2_, stride1_, row - 1), ring_row(gradient2_, stride1_, row),
                             ring_row(gradient2_, stride1_, row + 1)},
                            padded_row(activation1_, stride1_, row),
                            stride1_,
                            depthwise1_,
                            depthwise1_gradient_,
                            stride1_,
                            nullptr,
                            out,
                            stride1_},
                           top_vectors(), shapes_.width);
        if (strip_row == kStripRows - 1 || row == shapes_.height - 1) {
            conv3x3_weight_gradient(conv_shape(), image_ + (row - strip_row) * image_stride(), gradient1_,
                                    strip_row + 1, conv_gradient_);
        }
    }

    const Shapes& shapes_;
    const int stride1_;
    const int stride2_;
    const int stride3_;
    Arena arena_;

    WidthBuffers* buffers_ = nullptr;  // one per width
    WidthBuffers** participants_ = nullptr;
    SharedWidth* shared_ = nullptr;  // one per participant
    InputRun* runs_ = nullptr;
    int count_ = 0;
    int run_count_ = 0;

    float* image_ = nullptr;  // normalised, padded
    float* conv_ = nullptr;
    float* depthwise1_ = nullptr;
    float* pointwise1_by_input_ = nullptr;
    float* pointwise1_by_output_ = nullptr;
    float* depthwise2_ = nullptr;
    float* pointwise2_by_input_ = nullptr;
    float* pointwise2_by_output_ = nullptr;
    float* linear_ = nullptr;  // weights, then biases

    float* activation1_ = nullptr;  // padded image
    float* activation2_ = nullptr;
    float* gradient2_ = nullptr;  // ring of padded rows
    float* gradient1_ = nullptr;  // strip of rows
    float* chunk_table_ = nullptr;

    float* conv_gradient_ = nullptr;
    float* depthwise1_gradient_ = nullptr;
    float* pointwise1_gradient_ = nullptr;  // [participant][output][input]
    float* linear_gradient_ = nullptr;
};

}  // namespace slimfl::SLIMFL_LEVEL
