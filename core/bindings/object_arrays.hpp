// The arrays of a Python object, such as a forest: views, no copies.
#pragma once

#include "bindings/shared.hpp"
#include "common/numbers_view.hpp"

namespace ldsm::bindings {

class ArraysOf {
  public:
    // `name` is for messages: "forest".
    ArraysOf(nb::handle object, const char* name) : object_(object), name_(name) {}

    // Whether there is such an array, and not None.
    bool has(const char* name) const { return !attribute(name).is_none(); }

    // Sets the pointer that has the array's type, returns the size.
    template <typename T, typename... Others>
    size_t array(const char* name, const T*& data, Others&... others) const {
        return any<In>(name, data, others...);
    }
    // The same for an array of two dimensions.
    template <typename T, typename... Others>
    size_t matrix(const char* name, const T*& data, Others&... others) const {
        return any<In2>(name, data, others...);
    }
    size_t numbers(const char* name, NumbersView& view) const {
        return array(name, view.bytes, view.shorts, view.ints);
    }
    int64_t number(const char* name) const {
        int64_t result = 0;
        if (!nb::try_cast(attribute(name), result, false))
            refuse("The ", name_, "'s ", name, " must be an int.");
        return result;
    }

  private:
    // Looked up here: an attribute that is missing must not raise within `try_cast`.
    nb::object attribute(const char* name) const { return object_.attr(name); }

    template <template <typename> typename Array, typename T, typename... Others>
    size_t any(const char* name, const T*& data, Others&... others) const {
        Array<T> result;
        if (nb::try_cast(attribute(name), result, false) && aligned(result)) {
            kept_.emplace_back(result);
            data = result.data();
            return result.size();
        }
        if constexpr (sizeof...(Others) > 0)
            return any<Array>(name, others...);
        else
            refuse("The ", name_, "'s ", name,
                   " must be a contiguous, aligned array of the documented type.");
    }

    nb::handle object_;
    const char* name_;
    mutable std::vector<nb::ndarray<>> kept_;  // the arrays live as long as the views
};

}  // namespace ldsm::bindings
