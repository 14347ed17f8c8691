// NumPy arrays in and out: every array is checked for type, shape and layout before its memory is
// used, and errors are one sentence.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace slimfl {

namespace nb = nanobind;

template <class T>
const char* type_name() {
    if constexpr (std::is_same_v<T, float>) {
        return "float32";
    } else if constexpr (std::is_same_v<T, double>) {
        return "float64";
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
        return "int64";
    } else if constexpr (std::is_same_v<T, std::int32_t>) {
        return "int32";
    } else {
        static_assert(std::is_same_v<T, std::uint8_t>);
        return "uint8";
    }
}

template <class Array>
bool is_contiguous(const Array& array) {
    std::int64_t expected = 1;
    for (std::size_t axis = array.ndim(); axis-- > 0;) {
        if (array.shape(axis) == 0) {
            return true;
        }
        if (array.shape(axis) != 1 && array.stride(axis) != expected) {
            return false;
        }
        expected *= static_cast<std::int64_t>(array.shape(axis));
    }
    return true;
}

// A contiguous array of T that stays alive as long as this does.  `Access` is nb::ro for inputs
// and empty for arrays that are written.
template <class T, class... Access>
class Array {
public:
    using View = nb::ndarray<Access..., nb::device::cpu>;

    Array(nb::handle object, const std::string& name) {
        if (!nb::try_cast<View>(object, view_, false)) {
            const bool written = sizeof...(Access) == 0;
            throw nb::value_error((name + " must be a " + (written ? "writable " : "") + "NumPy array").c_str());
        }
        if (view_.dtype() != nb::dtype<T>()) {
            throw nb::value_error((name + " must have the type " + type_name<T>()).c_str());
        }
        if (!is_contiguous(view_)) {
            throw nb::value_error((name + " must be contiguous in C order").c_str());
        }
    }

    static bool has_type(nb::handle object) {
        View view;
        return nb::try_cast<View>(object, view, false) && view.dtype() == nb::dtype<T>();
    }

    // Demands a shape; -1 stands for any length.
    Array& shaped(const std::string& name, std::initializer_list<std::int64_t> shape) {
        bool fits = view_.ndim() == shape.size();
        std::string wanted;
        std::size_t axis = 0;
        for (std::int64_t length : shape) {
            fits = fits && (length < 0 || static_cast<std::int64_t>(view_.shape(axis)) == length);
            wanted += (axis == 0 ? "" : ", ") + (length < 0 ? std::string("any") : std::to_string(length));
            ++axis;
        }
        if (!fits) {
            throw nb::value_error((name + " must have the shape (" + wanted + ")").c_str());
        }
        return *this;
    }

    std::size_t axes() const { return view_.ndim(); }
    std::int64_t length(std::size_t axis) const { return static_cast<std::int64_t>(view_.shape(axis)); }
    std::int64_t size() const { return static_cast<std::int64_t>(view_.size()); }
    T* data() const { return static_cast<T*>(const_cast<void*>(static_cast<const void*>(view_.data()))); }

private:
    View view_;
};

template <class T>
using Input = Array<T, nb::ro>;
template <class T>
using InOut = Array<T>;

// A new NumPy array with the values of a vector.
template <class T>
nb::object to_numpy(std::vector<T> values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), {kept->size()}, owner));
}

}  // namespace slimfl
