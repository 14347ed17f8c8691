#include "memory.h"

#include <cstring>
#include <new>

namespace slimfl {

namespace {

constexpr std::size_t kLine = 64;
// Gap between two buffers, so that they do not start in the same cache set.
constexpr std::size_t kStagger = 5 * kLine;

}  // namespace

Arena::~Arena() {
    ::operator delete(base_, std::align_val_t{kLine});
}

void* Arena::carve(std::size_t bytes) {
    unsigned char* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + kLine - 1) / kLine * kLine + kStagger;
    return piece;
}

void Arena::allocate() {
    base_ = static_cast<unsigned char*>(::operator new(used_, std::align_val_t{kLine}));
    std::memset(base_, 0, used_);
    used_ = 0;
}

}  // namespace slimfl
