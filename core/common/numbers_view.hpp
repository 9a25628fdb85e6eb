// Whole numbers of one of three widths, as models store them.
#pragma once

#include <cstdint>

namespace ldsm {

// One pointer is not null.
struct NumbersView {
    const uint8_t* bytes;
    const uint16_t* shorts;
    const int32_t* ints;

    // Calls work(numbers) with the pointer that is set.
    template <typename Work>
    void with(Work&& work) const {
        bytes != nullptr ? work(bytes) : shorts != nullptr ? work(shorts) : work(ints);
    }
};

}  // namespace ldsm
