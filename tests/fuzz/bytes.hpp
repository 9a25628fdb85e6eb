// Turns the bytes of a fuzzer into numbers and arrays, from the front; zeros when they run out.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

struct Bytes {
    const uint8_t* data;
    size_t size;

    template <typename T>
    T take() {
        T value{};
        const size_t n = size < sizeof(T) ? size : sizeof(T);
        std::memcpy(&value, data, n);
        data += n;
        size -= n;
        return value;
    }
    // A whole number in [low, high].
    int64_t number(int64_t low, int64_t high) {
        return low + static_cast<int64_t>(take<uint16_t>()) % (high - low + 1);
    }
    bool coin() { return (take<uint8_t>() & 1) != 0; }
    // Any values at all, exactly `n` of them: a byte too far is seen by AddressSanitizer.
    template <typename T>
    std::vector<T> array(int64_t n) {
        std::vector<T> out(static_cast<size_t>(n));
        for (T& value : out) value = take<T>();
        return out;
    }
    // Whole numbers that mostly make sense, and now and then do not.
    template <typename T>
    std::vector<T> numbers(int64_t n, int64_t limit) {
        std::vector<T> out(static_cast<size_t>(n));
        for (T& value : out) {
            const auto byte = take<uint8_t>();
            value = byte == 255 ? take<T>() : static_cast<T>(limit > 0 ? byte % limit : 0);
        }
        return out;
    }
    // Offsets of `n` parts: mostly ascending, from 0; the last is `entries` unless they are wild.
    std::vector<int64_t> offsets(int64_t n, int64_t entries) {
        std::vector<int64_t> out(static_cast<size_t>(n) + 1, 0);
        const bool wild = take<uint8_t>() == 255;
        for (int64_t i = 1; i <= n; ++i) {
            const int64_t step = take<uint8_t>() % 8;
            out[i] = wild                          ? take<int64_t>()
                     : out[i - 1] + step < entries ? out[i - 1] + step
                                                   : entries;
        }
        if (!wild) out[n] = entries;
        return out;
    }
};
