#include "train.h"

#include <algorithm>

#include "losses.h"

namespace slimfl {

Trainer::Trainer(const Shapes& shapes, Engine& engine, const Dataset& data, const Method& method)
    : shapes_(shapes),
      engine_(engine),
      data_(data),
      method_(method),
      gradient_(shapes.total),
      logit_gradients_(static_cast<std::size_t>(shapes.widths()) * static_cast<std::size_t>(shapes.classes)),
      probabilities_(static_cast<std::size_t>(shapes.classes)),
      widest_(static_cast<std::size_t>(shapes.classes)) {}

void Trainer::select(const std::uint8_t* visits) {
    widths_.clear();
    if (method_.algorithm == Algorithm::one_width) {
        widths_.push_back(method_.one_width);
        return;
    }
    for (int w = 0; w < shapes_.widths(); ++w) {
        if (visits == nullptr || visits[w] != 0) {
            widths_.push_back(w);
        }
    }
}

void Trainer::pass(const float* theta, const Batch& batch, Target widest_target, Target narrow_target, bool store,
                   float* gradient, std::vector<LossSum>& losses) {
    const int classes = shapes_.classes;
    const int count = static_cast<int>(widths_.size());
    if (store) {
        stored_.resize(static_cast<std::size_t>(batch.count) * static_cast<std::size_t>(classes));
    }
    engine_.begin(theta, widths_.data(), count);
    for (std::int64_t b = 0; b < batch.count; ++b) {
        const std::int64_t index = batch.index[b];
        const int label = data_.labels[static_cast<std::size_t>(index)];
        double* stored = stored_.data() + b * classes;
        engine_.forward(data_.image(index), data_.normalised.data());
        for (int q = count - 1; q >= 0; --q) {
            const int w = widths_[static_cast<std::size_t>(q)];
            const bool is_widest = q == count - 1;
            const Target target = is_widest ? widest_target : narrow_target;
            const double weight =
                method_.algorithm == Algorithm::one_width ? 1.0 : method_.weights[static_cast<std::size_t>(w)];
            const double scale = weight / static_cast<double>(batch.count);
            double* probabilities = is_widest ? widest_.data() : probabilities_.data();
            float* logit_gradient = logit_gradients_.data() + q * classes;
            const float* logits = engine_.logits(q);
            LossSum& sum = losses[static_cast<std::size_t>(w)];
            if (target == Target::label) {
                sum.total += label_loss(logits, classes, label, scale, probabilities, logit_gradient);
            } else {
                const double* distribution = target == Target::widest ? widest_.data() : stored;
                sum.total += target_loss(logits, classes, distribution, scale, probabilities, logit_gradient);
            }
            ++sum.images;
        }
        if (store) {
            std::copy(widest_.begin(), widest_.end(), stored);
        }
        engine_.backward(logit_gradients_.data());
    }
    engine_.finish(gradient);
}

void Trainer::gradient(const float* theta, const Batch& batch, const std::uint8_t* visits, float* gradient,
                       std::vector<LossSum>& losses) {
    select(visits);
    const bool distils = method_.algorithm == Algorithm::sustrain || method_.algorithm == Algorithm::ustrain;
    pass(theta, batch, Target::label, distils ? Target::widest : Target::label, false, gradient, losses);
}

void Trainer::sequential_step(float* theta, OptimiserState& state, const Batch& batch, double learning_rate,
                              const OptimiserOptions& options, std::vector<LossSum>& losses) {
    const std::vector<int> visited = widths_;
    const bool distils = method_.algorithm == Algorithm::ustrain;
    for (auto w = visited.rbegin(); w != visited.rend(); ++w) {
        const bool is_widest = w == visited.rbegin();
        widths_.assign(1, *w);
        const Target target = distils && !is_widest ? Target::stored : Target::label;
        pass(theta, batch, target, target, distils && is_widest, gradient_.data(), losses);
        optimiser_step(options, state, learning_rate, gradient_.data(), theta, shapes_.total);
    }
}

void Trainer::train(float* theta, OptimiserState& state, const Schedule& schedule, const OptimiserOptions& options,
                    std::vector<LossSum>& losses) {
    for (std::int64_t step = 0; step < schedule.steps; ++step) {
        const Batch batch{schedule.order + schedule.offsets[step], schedule.offsets[step + 1] - schedule.offsets[step]};
        const std::uint8_t* visits = schedule.visits == nullptr ? nullptr : schedule.visits + step * shapes_.widths();
        const double learning_rate = schedule.learning_rates[step];
        if (method_.mode == Mode::sequential) {
            select(visits);
            sequential_step(theta, state, batch, learning_rate, options, losses);
        } else {
            gradient(theta, batch, visits, gradient_.data(), losses);
            optimiser_step(options, state, learning_rate, gradient_.data(), theta, shapes_.total);
        }
    }
}

void evaluate(const Shapes& shapes, Engine& engine, const Dataset& data, const Batch& batch, Score* scores, int count) {
    std::vector<double> probabilities(static_cast<std::size_t>(shapes.classes));
    for (std::int64_t b = 0; b < batch.count; ++b) {
        const int label = data.labels[static_cast<std::size_t>(batch.index[b])];
        engine.forward(data.image(batch.index[b]), data.normalised.data());
        for (int q = 0; q < count; ++q) {
            const float* logits = engine.logits(q);
            scores[q].loss += label_loss(logits, shapes.classes, label, 1.0, probabilities.data(), nullptr);
            scores[q].correct += std::max_element(logits, logits + shapes.classes) - logits == label ? 1 : 0;
        }
    }
}

}  // namespace slimfl
