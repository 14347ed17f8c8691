// The interface of a processor-specific engine: forward and backward of one image
// at several nested widths at once, and the summed gradient of all images since begin().
#pragma once

#include <cstdint>

namespace slimfl {

struct Shapes;

class Engine {
public:
    virtual ~Engine() = default;

    // Takes the parameters and the widths (ascending indices) that take part from now on, and
    // sets the gradient to zero.
    virtual void begin(const float* theta, const int* widths, int count) = 0;

    // Computes the logits of one image.  `normalised` maps [channel][byte] to the network's input.
    virtual void forward(const std::uint8_t* image, const float* normalised) = 0;

    // Logits of the last image at the participating width of the given position.
    virtual const float* logits(int position) const = 0;

    // Adds the gradient of the last image, given that of the logits, [position][class].
    virtual void backward(const float* logit_gradients) = 0;

    // Writes the gradient in the layout of theta; zero where no participating width reaches.
    virtual void finish(float* gradient) = 0;
};

}  // namespace slimfl
