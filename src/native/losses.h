// Cross entropy against a label or against another distribution, in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace slimfl {

// Writes the softmax of the logits; returns the logarithm of its denominator.
inline double softmax(const float* logits, int classes, double* probabilities) {
    double largest = logits[0];
    for (int k = 1; k < classes; ++k) {
        largest = std::max(largest, static_cast<double>(logits[k]));
    }
    double total = 0;
    for (int k = 0; k < classes; ++k) {
        probabilities[k] = std::exp(logits[k] - largest);
        total += probabilities[k];
    }
    for (int k = 0; k < classes; ++k) {
        probabilities[k] /= total;
    }
    return largest + std::log(total);
}

// Loss against a label.  `probabilities` receives the softmax, `gradient` (unless null) the
// gradient of scale * loss with respect to the logits.
inline double label_loss(const float* logits, int classes, int label, double scale, double* probabilities,
                         float* gradient) {
    const double normaliser = softmax(logits, classes, probabilities);
    if (gradient != nullptr) {
        for (int k = 0; k < classes; ++k) {
            gradient[k] = static_cast<float>(scale * (probabilities[k] - (k == label ? 1.0 : 0.0)));
        }
    }
    return normaliser - logits[label];
}

// Loss against a distribution, which is taken as a constant.
inline double target_loss(const float* logits, int classes, const double* target, double scale, double* probabilities,
                          float* gradient) {
    const double normaliser = softmax(logits, classes, probabilities);
    double loss = 0;
    for (int k = 0; k < classes; ++k) {
        loss += target[k] * (normaliser - logits[k]);
        gradient[k] = static_cast<float>(scale * (probabilities[k] - target[k]));
    }
    return loss;
}

}  // namespace slimfl
