// The training algorithms: which widths see which loss and when the optimiser steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine.h"
#include "optimiser.h"
#include "shapes.h"

namespace slimfl {

enum class Algorithm { sustrain, slimtrain, ustrain, one_width };
enum class Mode { accumulate, sequential };

// Images [count][height][width][channel] and labels, all checked, and the normalisation of bytes.
struct Dataset {
    const std::uint8_t* images;
    std::size_t image_size;
    std::vector<std::int32_t> labels;
    std::vector<float> normalised;  // [channel][byte]

    const std::uint8_t* image(std::int64_t index) const {
        return images + static_cast<std::size_t>(index) * image_size;
    }
};

struct Method {
    Algorithm algorithm;
    Mode mode;
    int one_width;                // of Algorithm::one_width
    std::vector<double> weights;  // of each width's loss
};

// The sum of one width's losses over the images that visited it.
struct LossSum {
    double total = 0;
    std::int64_t images = 0;
};

// One batch as indices into the dataset.
struct Batch {
    const std::int64_t* index;
    std::int64_t count;
};

// The batches of one device, batch b being order[offsets[b]] to order[offsets[b + 1]].
struct Schedule {
    const std::int64_t* order;
    const std::int64_t* offsets;
    std::int64_t steps;
    const std::uint8_t* visits;  // [step][width]; null for every width
    const double* learning_rates;
};

// Trains one or several devices with one engine, in one thread.
class Trainer {
public:
    Trainer(const Shapes& shapes, Engine& engine, const Dataset& data, const Method& method);

    // Gradient and losses of one batch in accumulate mode.
    void gradient(const float* theta, const Batch& batch, const std::uint8_t* visits, float* gradient,
                  std::vector<LossSum>& losses);

    // All steps of a schedule; theta and state are updated in place.
    void train(float* theta, OptimiserState& state, const Schedule& schedule, const OptimiserOptions& options,
               std::vector<LossSum>& losses);

private:
    // What a width's loss is compared with.
    enum class Target { label, widest, stored };

    // Gradient of the widths listed in widths_.  The widest is compared with `widest_target`, the
    // others with `narrow_target`; `store` keeps the widest one's softmax for Target::stored.
    void pass(const float* theta, const Batch& batch, Target widest_target, Target narrow_target, bool store,
              float* gradient, std::vector<LossSum>& losses);

    void select(const std::uint8_t* visits);
    void sequential_step(float* theta, OptimiserState& state, const Batch& batch, double learning_rate,
                         const OptimiserOptions& options, std::vector<LossSum>& losses);

    const Shapes& shapes_;
    Engine& engine_;
    const Dataset& data_;
    const Method& method_;
    std::vector<int> widths_;
    std::vector<float> gradient_;
    std::vector<float> logit_gradients_;
    std::vector<double> probabilities_;
    std::vector<double> widest_;
    std::vector<double> stored_;  // [image of the batch][class]
};

// Correct answers and summed losses of a range of images at the given widths (ascending).
struct Score {
    std::int64_t correct = 0;
    double loss = 0;
};

void evaluate(const Shapes& shapes, Engine& engine, const Dataset& data, const Batch& batch, Score* scores, int count);

}  // namespace slimfl
