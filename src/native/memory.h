// One zeroed, cache-line aligned block of memory from which an engine carves all its buffers.
//
// Defined out of line on purpose: the kernels are compiled several times under different
// processor flags, and a function shared between them must not exist in an AVX variant that the
// linker could pick for every processor.
#pragma once

#include <cstddef>

namespace slimfl {

class Arena {
public:
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    // Carving happens twice: once without memory to learn the size, then, after allocate(), for
    // real.  Both passes must ask for the same pieces in the same order.
    void* carve(std::size_t bytes);
    void allocate();

private:
    unsigned char* base_ = nullptr;
    std::size_t used_ = 0;
};

}  // namespace slimfl
