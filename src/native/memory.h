// One zeroed, cache-line aligned block of memory from which an engine allocates all its buffers.
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

    // Buffers are requested twice: first without memory, to find the size, then after allocate().
    // Both passes must ask for the same pieces in the same order.
    void* carve(std::size_t bytes);
    void allocate();

private:
    unsigned char* base_ = nullptr;
    std::size_t used_ = 0;
};

}  // namespace slimfl
