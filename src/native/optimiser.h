// Adam and SGD over the flat parameter vector, step by step as torch.optim defines them.
//
// As there, the scalars of a step are computed in double precision and the vectors in single.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace slimfl {

struct OptimiserOptions {
    enum class Kind { adam, sgd };
    Kind kind = Kind::adam;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;
    double momentum = 0;
    bool nesterov = false;
};

// Adam's moments, or SGD's momentum in `first`; `steps` counts the steps taken.
struct OptimiserState {
    float* first;
    float* second;
    std::int64_t steps;
};

inline void adam_step(const OptimiserOptions& options, OptimiserState& state, double learning_rate,
                      const float* gradient, float* theta, std::size_t count) {
    const double step = static_cast<double>(++state.steps);
    const double correction1 = 1 - std::pow(options.beta1, step);
    const double correction2 = 1 - std::pow(options.beta2, step);
    const float minus_rate = static_cast<float>(-learning_rate / correction1);
    const float root = static_cast<float>(std::sqrt(correction2));
    const float epsilon = static_cast<float>(options.epsilon);
    const float rest1 = static_cast<float>(1 - options.beta1);
    const float beta2 = static_cast<float>(options.beta2);
    const float rest2 = static_cast<float>(1 - options.beta2);
    const float decay = static_cast<float>(options.weight_decay);
    for (std::size_t i = 0; i < count; ++i) {
        const float g = gradient[i] + decay * theta[i];
        const float first = state.first[i] + rest1 * (g - state.first[i]);
        const float second = beta2 * state.second[i] + rest2 * g * g;
        state.first[i] = first;
        state.second[i] = second;
        theta[i] += minus_rate * first / (std::sqrt(second) / root + epsilon);
    }
}

inline void sgd_step(const OptimiserOptions& options, OptimiserState& state, double learning_rate,
                     const float* gradient, float* theta, std::size_t count) {
    const bool first_step = state.steps++ == 0;
    const float rate = static_cast<float>(learning_rate);
    const float decay = static_cast<float>(options.weight_decay);
    const float momentum = static_cast<float>(options.momentum);
    for (std::size_t i = 0; i < count; ++i) {
        float direction = gradient[i] + decay * theta[i];
        if (options.momentum != 0) {
            state.first[i] = first_step ? direction : momentum * state.first[i] + direction;
            direction = options.nesterov ? direction + momentum * state.first[i] : state.first[i];
        }
        theta[i] -= rate * direction;
    }
}

inline void optimiser_step(const OptimiserOptions& options, OptimiserState& state, double learning_rate,
                           const float* gradient, float* theta, std::size_t count) {
    if (options.kind == OptimiserOptions::Kind::adam) {
        adam_step(options, state, learning_rate, gradient, theta, count);
    } else {
        sgd_step(options, state, learning_rate, gradient, theta, count);
    }
}

}  // namespace slimfl
