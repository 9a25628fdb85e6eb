#include "text/names.hpp"

#include <algorithm>
#include <vector>

#include "text/string_hash.hpp"

namespace ldsm {

namespace {

constexpr size_t kMostDigits = 4000;  // Python refuses more than 4300

bool is_utf8(std::string_view s) {
    for (size_t i = 0; i < s.size();) {
        const auto byte = [&](size_t at) { return static_cast<uint8_t>(s[at]); };
        const uint8_t first = byte(i);
        if (first < 0x80) {
            ++i;
            continue;
        }
        const size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        if (length == 0 || first > 0xF4 || s.size() - i < length) return false;
        // The limits of the second byte exclude overlong forms, surrogates and code points beyond
        // Unicode.
        const uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        const uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        if (byte(i + 1) < low || byte(i + 1) > high) return false;
        for (size_t k = 2; k < length; ++k)
            if ((byte(i + k) & 0xC0) != 0x80) return false;
        i += length;
    }
    return true;
}

bool is_number(std::string_view s) {
    if (!s.empty() && s[0] == '-') {
        s.remove_prefix(1);
        if (s == "0") return false;
    }
    if (s.empty() || s.size() > kMostDigits || (s[0] == '0' && s.size() > 1)) return false;
    return std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Of numbers that `is_number`.
bool less(std::string_view a, std::string_view b) {
    const bool a_negative = a[0] == '-', b_negative = b[0] == '-';
    if (a_negative != b_negative) return a_negative;
    if (a_negative) return less(b.substr(1), a.substr(1));
    return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// A name that an earlier one is equal to; -1 for none.
int64_t repeated(const NamesView& names) {
    const StringHash hash;  // seeded at random: no file can be made whose names collide
    const auto is_text = [&](int64_t i) { return names.kinds == nullptr || names.kinds[i] == 0; };
    std::vector<uint64_t> hashes(static_cast<size_t>(names.n));
    for (int64_t i = 0; i < names.n; ++i) hashes[i] = hash(names[i], is_text(i));
    std::sort(hashes.begin(), hashes.end());
    for (size_t h = 0; h + 1 < hashes.size(); ++h) {
        if (hashes[h] != hashes[h + 1]) continue;
        // Equal hashes nearly always mean equal names.
        std::vector<int64_t> alike;
        for (int64_t i = 0; i < names.n; ++i) {
            if (hash(names[i], is_text(i)) != hashes[h]) continue;
            for (const int64_t other : alike)
                if (names[i] == names[other] && is_text(i) == is_text(other)) return i;
            alike.push_back(i);
        }
        while (h + 1 < hashes.size() && hashes[h] == hashes[h + 1]) ++h;
    }
    return -1;
}

}  // namespace

NameCheck check_names(const NamesView& names, const NameRules& rules) {
    for (int64_t i = 0; i < names.n; ++i) {
        const std::string_view name = names[i];
        const uint8_t kind = names.kinds == nullptr ? 0 : names.kinds[i];
        if (kind == 0) {
            if (!is_utf8(name)) return {NameProblem::kNotUtf8, i};
            continue;
        }
        if (!is_number(name) || (kind == 2 && name != "0" && name != "1"))
            return {NameProblem::kNotANumber, i};
        if (!rules.low.empty() && (less(name, rules.low) || less(rules.high, name)))
            return {NameProblem::kOutOfRange, i};
    }
    const int64_t twice = rules.unique ? repeated(names) : -1;
    return {twice < 0 ? NameProblem::kNone : NameProblem::kRepeated, twice};
}

}  // namespace ldsm
