// What all bindings share: the types of arrays, checks of input, releasing the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "common/csr.hpp"
#include "common/monitor.hpp"
#include "common/scratch.hpp"

namespace ldsm::bindings {

namespace nb = nanobind;
using namespace nb::literals;

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Shared = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using Cancel = std::optional<Shared<int32_t>>;
using Counter = std::optional<Shared<int64_t>>;

// Memory as an array of NumPy's, which keeps the owner.
template <typename T, typename Owner>
nb::object as_array(T* data, size_t size, size_t columns, Owner&& owner) {
    nb::capsule kept(new Owner(std::move(owner)),
                     [](void* p) noexcept { delete static_cast<Owner*>(p); });
    const size_t shape[2] = {columns == 0 ? size : size / columns, columns};
    return nb::cast(nb::ndarray<nb::numpy, T>(data, columns == 0 ? 1 : 2, shape, kept));
}

// Gives a vector's memory to NumPy without copying it.
template <typename T>
nb::object hand_over(std::vector<T>&& numbers, size_t columns = 0) {
    T* const data = numbers.data();
    const size_t size = numbers.size();
    return as_array(data, size, columns, std::move(numbers));
}

// The same for an array that may lie in a file.
template <typename T>
nb::object hand_over(FlatArray<T>&& array, size_t columns = 0) {
    const size_t size = array.size();
    auto [data, owner] = array.take();
    return as_array(data, size, columns, std::move(owner));
}

template <typename... T>
nb::tuple hand_over_all(std::vector<T>&... numbers) {
    return nb::make_tuple(hand_over(std::move(numbers))...);
}

// Numbers are written out, everything else is text.
template <typename Part>
std::string written(const Part& part) {
    if constexpr (std::is_arithmetic_v<Part>)
        return std::to_string(part);
    else
        return part;
}

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
    throw nb::value_error((written(parts) + ...).c_str());
}

inline void check_equal(int64_t a, int64_t b, const char* rule) {
    if (a != b) refuse(rule, ". Got ", a, " and ", b, ".");
}

// NumPy can place an array at any byte, but the core and the compiler rely on alignment.
template <typename Array>
bool aligned(const Array& array) {
    return reinterpret_cast<uintptr_t>(array.data()) % alignof(typename Array::Scalar) == 0;
}

template <typename Array>
void check_aligned(const Array& array, const std::string& name) {
    if (!aligned(array)) refuse(name, " must lie aligned in memory. Copy the array.");
}

// Offsets never fall. Those of whole arrays start at 0 and end at the number of entries; those of a
// part of larger arrays lie within them.
enum class Offsets { kOfAll, kOfPart };

inline void check_offsets(const In<int64_t>& offsets, size_t entries, const std::string& name,
                          Offsets kind = Offsets::kOfAll) {
    check_aligned(offsets, name);
    if (offsets.size() < 1) refuse(name, " must not be empty.");
    const int64_t* o = offsets.data();
    const int64_t first = o[0], last = o[offsets.size() - 1];
    const auto end = static_cast<int64_t>(entries);
    const bool all = kind == Offsets::kOfAll;
    if (first < 0 || (all && first != 0)) refuse(name, " must start at 0. Got ", first, ".");
    for (size_t i = 1; i < offsets.size(); ++i)
        if (o[i] < o[i - 1])
            refuse(name, " must not decrease. Got ", o[i - 1], " then ", o[i], " at position ", i,
                   ".");
    if (last > end || (all && last != end))
        refuse(name, " must end at the number of entries, ", entries, ". Got ", last, ".");
}

// Without a branch per number, so that the compiler can check several at once. Which one is wrong
// only matters if there is one.
inline void check_range(const In<int32_t>& indices, int64_t limit, const std::string& name) {
    check_aligned(indices, name);
    const int32_t* v = indices.data();
    const auto wrong = [limit](int32_t number) {
        return static_cast<uint32_t>(number) >= static_cast<uint32_t>(limit);
    };
    bool any = false;
    for (size_t i = 0; i < indices.size(); ++i) any |= wrong(v[i]);
    if (!any) return;
    const auto i = static_cast<size_t>(std::find_if(v, v + indices.size(), wrong) - v);
    refuse(name, " must lie in [0, ", limit, "). Got ", v[i], " at position ", i, ".");
}

// Handles a pending Ctrl-C; does nothing on threads other than the main one.
inline void poll_signals() {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

// Runs `work` without the GIL; a cancelled call raises KeyboardInterrupt. (The kernels are chosen
// before: that reads an environment variable, which another thread may set only with the GIL.)
template <typename Work>
auto without_gil(Work&& work) {
    try {
        nb::gil_scoped_release release;
        return work();
    } catch (const Cancelled&) {
        PyErr_SetString(PyExc_KeyboardInterrupt, "cancelled");
        throw nb::python_error();
    }
}

inline int32_t never_cancelled = 0;
inline int64_t uncounted = 0;

inline Monitor make_monitor(const Cancel& cancel, const Counter& progress = std::nullopt) {
    if ((cancel && cancel->size() != 1) || (progress && progress->size() != 1))
        refuse("cancel and progress must be arrays of one number.");
    if (cancel) check_aligned(*cancel, "cancel");
    if (progress) check_aligned(*progress, "progress");
    return Monitor(cancel ? cancel->data() : &never_cancelled,
                   progress ? progress->data() : &uncounted, poll_signals);
}

// An argument that must come in its own type: an array that had to be converted would be a copy.
inline auto as_is(const char* name) { return nb::arg(name).noconvert(); }

}  // namespace ldsm::bindings
