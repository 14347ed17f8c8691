// Converts Python's arguments for the training loop: every value is checked before it is used, and
// errors are one sentence.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "train.h"

namespace slimfl {

[[noreturn]] inline void refuse(const std::string& sentence) {
    throw nb::value_error(sentence.c_str());
}

inline void require(bool condition, const char* sentence) {
    if (!condition) {
        refuse(sentence);
    }
}

inline void check_range(const Input<std::int64_t>& index, std::int64_t limit, const std::string& name) {
    for (std::int64_t i = 0; i < index.size(); ++i) {
        if (index.data()[i] < 0 || index.data()[i] >= limit) {
            refuse(name + " holds " + std::to_string(index.data()[i]) + ", but there are " + std::to_string(limit) +
                   " images");
        }
    }
}

template <class T>
inline std::vector<std::int32_t> checked_labels(nb::handle object, std::int64_t count, int classes) {
    Input<T> labels(object, "labels");
    labels.shaped("labels", {count});
    std::vector<std::int32_t> result(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < result.size(); ++i) {
        const T label = labels.data()[i];
        if (label < T{0} || static_cast<std::int64_t>(label) >= classes) {
            refuse("labels holds " + std::to_string(label) + ", but there are " + std::to_string(classes) +
                   " classes");
        }
        result[i] = static_cast<std::int32_t>(label);
    }
    return result;
}

// A dataset together with the array that owns its images.
struct CheckedData {
    Input<std::uint8_t> images;
    std::int64_t count;
    Dataset data;
};

inline CheckedData check_data(const Shapes& shapes, nb::handle images_object, nb::handle labels, nb::handle mean_object,
                              nb::handle std_object) {
    Input<std::uint8_t> images(images_object, "images");
    if (images.axes() == 3 && shapes.in_channels == 1) {
        images.shaped("images", {-1, shapes.height, shapes.width});
    } else {
        images.shaped("images", {-1, shapes.height, shapes.width, shapes.in_channels});
    }
    const std::int64_t count = images.length(0);
    Dataset data{};
    data.images = images.data();
    data.image_size = static_cast<std::size_t>(shapes.pixels()) * static_cast<std::size_t>(shapes.in_channels);
    if (Input<std::uint8_t>::has_type(labels)) {
        data.labels = checked_labels<std::uint8_t>(labels, count, shapes.classes);
    } else if (Input<std::int32_t>::has_type(labels)) {
        data.labels = checked_labels<std::int32_t>(labels, count, shapes.classes);
    } else {
        data.labels = checked_labels<std::int64_t>(labels, count, shapes.classes);
    }
    Input<float> mean(mean_object, "mean");
    Input<float> deviation(std_object, "std");
    mean.shaped("mean", {shapes.in_channels});
    deviation.shaped("std", {shapes.in_channels});
    for (int c = 0; c < shapes.in_channels; ++c) {
        require(deviation.data()[c] != 0.0f, "std must not be zero");
        for (int byte = 0; byte < 256; ++byte) {
            data.normalised.push_back((static_cast<float>(byte) / 255.0f - mean.data()[c]) / deviation.data()[c]);
        }
    }
    return CheckedData{std::move(images), count, std::move(data)};
}

inline Algorithm parse_algorithm(const std::string& name) {
    if (name == "sustrain") return Algorithm::sustrain;
    if (name == "slimtrain") return Algorithm::slimtrain;
    if (name == "ustrain") return Algorithm::ustrain;
    if (name == "width") return Algorithm::one_width;
    refuse("algorithm must be sustrain, slimtrain, ustrain or width, not " + name);
}

inline Method check_method(const Shapes& shapes, const std::string& algorithm, const std::string& mode,
                           nb::handle weights, std::optional<int> width_index) {
    Method method{};
    method.algorithm = parse_algorithm(algorithm);
    require(mode == "accumulate" || mode == "sequential", "mode must be accumulate or sequential");
    method.mode = mode == "sequential" ? Mode::sequential : Mode::accumulate;
    require(method.mode == Mode::accumulate || method.algorithm == Algorithm::slimtrain ||
                method.algorithm == Algorithm::ustrain,
            "only slimtrain and ustrain have the mode sequential");
    if (method.algorithm == Algorithm::one_width) {
        require(width_index.has_value() && *width_index >= 0 && *width_index < shapes.widths(),
                "the algorithm width needs a width_index of one of the widths");
        method.one_width = *width_index;
    }
    if (weights.is_none()) {
        method.weights.assign(static_cast<std::size_t>(shapes.widths()), 1.0);
    } else {
        Input<double> given(weights, "weights");
        given.shaped("weights", {shapes.widths()});
        method.weights.assign(given.data(), given.data() + given.size());
    }
    return method;
}

// True if a row of visits names a width; the full one need not take part.
inline bool visits_a_width(const Shapes& shapes, const std::uint8_t* row) {
    return std::any_of(row, row + shapes.widths(), [](std::uint8_t visited) { return visited != 0; });
}

// Rows of a matrix of visits, or none if every width takes part in every step.
inline std::optional<Input<std::uint8_t>> check_visits(const Shapes& shapes, const Method& method, nb::handle object,
                                                       std::int64_t steps) {
    if (object.is_none() || method.algorithm == Algorithm::one_width) {
        return std::nullopt;
    }
    Input<std::uint8_t> visits(object, "visits");
    visits.shaped("visits", {steps, shapes.widths()});
    for (std::int64_t step = 0; step < steps; ++step) {
        require(visits_a_width(shapes, visits.data() + step * shapes.widths()),
                "visits must include at least one width in every step");
    }
    return visits;
}

inline OptimiserOptions check_optimiser(const std::string& name, const std::array<double, 2>& betas, double epsilon,
                                        double weight_decay, double momentum, bool nesterov) {
    OptimiserOptions options{};
    require(name == "adam" || name == "sgd", "optimiser must be adam or sgd");
    options.kind = name == "adam" ? OptimiserOptions::Kind::adam : OptimiserOptions::Kind::sgd;
    for (double beta : betas) {
        require(beta >= 0 && beta < 1, "betas must lie in [0, 1)");
    }
    require(epsilon >= 0 && weight_decay >= 0 && momentum >= 0, "eps, weight_decay and momentum must not be negative");
    require(!nesterov || momentum > 0, "nesterov needs a momentum");
    options.beta1 = betas[0];
    options.beta2 = betas[1];
    options.epsilon = epsilon;
    options.weight_decay = weight_decay;
    options.momentum = momentum;
    options.nesterov = nesterov;
    return options;
}

// One device's arrays, checked, and its results.
struct Device {
    Input<std::int64_t> order;
    Input<std::int64_t> offsets;
    Input<double> learning_rates;
    std::optional<Input<std::uint8_t>> visits;
    InOut<float> first;
    InOut<float> second;
    OptimiserState state;
    std::vector<float> theta;
    std::vector<LossSum> losses;

    Schedule schedule() const {
        return Schedule{order.data(), offsets.data(), learning_rates.size(), visits ? visits->data() : nullptr,
                        learning_rates.data()};
    }
};

inline Device check_device(const Shapes& shapes, const Method& method, const CheckedData& data,
                           const Input<float>& theta, nb::handle order, nb::handle batch_offsets, nb::handle m,
                           nb::handle v, std::int64_t step, nb::handle learning_rates, nb::handle visits) {
    const auto parameters = static_cast<std::int64_t>(shapes.total);
    Input<double> rates(learning_rates, "learning_rates");
    rates.shaped("learning_rates", {-1});
    Device device{Input<std::int64_t>(order, "order"),
                  Input<std::int64_t>(batch_offsets, "batch_offsets"),
                  rates,
                  check_visits(shapes, method, visits, rates.size()),
                  InOut<float>(m, "m"),
                  InOut<float>(v, "v"),
                  OptimiserState{},
                  std::vector<float>(theta.data(), theta.data() + parameters),
                  std::vector<LossSum>(static_cast<std::size_t>(shapes.widths()))};
    device.order.shaped("order", {-1});
    device.offsets.shaped("batch_offsets", {rates.size() + 1});
    device.first.shaped("m", {parameters});
    device.second.shaped("v", {parameters});
    require(device.first.data() != device.second.data(), "m and v must be different arrays");
    require(step >= 0, "step must not be negative");
    check_range(device.order, data.count, "order");
    const std::int64_t* offsets = device.offsets.data();
    for (std::int64_t b = 0; b < rates.size(); ++b) {
        require(offsets[b] < offsets[b + 1], "batch_offsets must increase, for no batch may be empty");
    }
    require(offsets[0] >= 0 && offsets[rates.size()] <= device.order.size(),
            "batch_offsets must lie within order");
    device.state = OptimiserState{device.first.data(), device.second.data(), step};
    return device;
}

}  // namespace slimfl
