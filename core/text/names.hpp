// Names as the files of models store them: UTF-8 bytes and offsets. They are checked here, without
// making a string of each.
#pragma once

#include <cstdint>
#include <string_view>

namespace ldsm {

struct NamesView {
    const uint8_t* text;
    const int64_t* offsets;  // checked: n + 1, ascending, within the text
    int64_t n;
    const uint8_t* kinds;  // 0: a text, 1: a whole number, 2: 0 or 1 for a bool; null: all texts

    std::string_view operator[](int64_t i) const {
        return {reinterpret_cast<const char*>(text) + offsets[i],
                static_cast<size_t>(offsets[i + 1] - offsets[i])};
    }
};

enum class NameProblem { kNone, kNotUtf8, kNotANumber, kOutOfRange, kRepeated };

struct NameCheck {
    NameProblem problem;
    int64_t name;  // the one that has it
};

struct NameRules {
    std::string_view low, high;  // numbers lie between them; empty: anywhere
    bool unique;
};

// Numbers must be written as Python writes them. A number and a bool of the same value are the same
// name, as they are in Python.
NameCheck check_names(const NamesView& names, const NameRules& rules);

}  // namespace ldsm
