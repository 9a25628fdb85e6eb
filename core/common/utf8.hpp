// Reads UTF-8.
#pragma once

#include <cstdint>
#include <string_view>

namespace ldsm {

// The code point at `at`, which is moved past it. Bytes that are not UTF-8 are read one by one, as
// characters that are in no word.
inline uint32_t next_character(std::string_view text, size_t& at) {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    const uint8_t first = byte(at);
    if (first < 0x80) return ++at, first;
    const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length == 1 || text.size() - at < length) return ++at, UINT32_MAX;
    uint32_t c = first & (0x7F >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((byte(at + i) & 0xC0) != 0x80) return ++at, UINT32_MAX;
        c = c << 6 | (byte(at + i) & 0x3F);
    }
    constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < kLeast[length]) return ++at, UINT32_MAX;  // written longer than it is
    at += length;
    return c;
}

}  // namespace ldsm
