#include "text/text_format.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#ifndef __cpp_lib_to_chars  // older libc++: no from_chars for floating point
#include <locale.h>
#include <stdlib.h>
#if __has_include(<xlocale.h>)
#include <xlocale.h>
#endif
#endif

namespace ldsm {
namespace {

static_assert(FLT_EVAL_METHOD == 0, "parse_value needs double arithmetic that rounds to double");

constexpr size_t kShownLine = 80;   // characters of a faulty line in its message
constexpr size_t kShownToken = 40;  // and of the faulty word

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') <= 9; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Printable ASCII of any bytes: a message must be valid text even if the file is not.
std::string shown(std::string_view text, size_t limit) {
    static const char* hex = "0123456789abcdef";
    std::string out = "'";
    for (const char c : text.substr(0, limit)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\t') {
            out += "\\t";
        } else if (c == '\r') {
            out += "\\r";
        } else if (byte >= 0x20 && byte < 0x7f) {
            out += c;
        } else {
            out += "\\x";
            out += hex[byte >> 4];
            out += hex[byte & 15];
        }
    }
    out += "'";
    if (text.size() > limit) out += " (shortened)";
    return out;
}

std::string range(int64_t first, int64_t count) {
    if (count == 0) return "none is declared";
    return "allowed are " + std::to_string(first) + " to " + std::to_string(first + count - 1);
}

enum class Number { kFine, kMalformed, kTooLarge };

// Correct rounding for any digits, slower. `token` is already known to be an unsigned decimal
// number whose first digit counts 10^magnitude.
Number parse_value_exactly(std::string_view token, int64_t magnitude, float* value) {
#ifdef __cpp_lib_to_chars
    const auto result = std::from_chars(token.data(), token.data() + token.size(), *value);
    const bool out_of_range = result.ec == std::errc::result_out_of_range;
#else
    static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
    *value = strtof_l(std::string(token).c_str(), nullptr, c_locale);
    const bool out_of_range = std::isinf(*value);
#endif
    if (!out_of_range) return Number::kFine;
    if (magnitude > 0) return Number::kTooLarge;
    *value = 0.0f;  // smaller than half the smallest float32
    return Number::kFine;
}

// Reads a decimal number at *at, correctly rounded to float32, and moves *at behind it.
//
// Digits that fit 2^53 and a power of ten that is exact in double need one rounding to double
// (Clinger). Rounding that again to float32 goes wrong only if the double lies exactly half way
// between two floats, so those few, and all longer numbers, take the exact road.
Number parse_value(const char** at, float* value) {
    static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                         1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                         1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    constexpr uint64_t kLowBits = (uint64_t{1} << 29) - 1;  // what float32 drops of a double
    constexpr uint64_t kHalfWay = uint64_t{1} << 28;
    constexpr int64_t kHugeExponent = int64_t{1} << 40;

    const char* p = *at;
    const bool negative = *p == '-';
    if (negative || *p == '+') ++p;
    const char* const start = p;
    uint64_t digits = 0;  // wraps beyond 19 digits; used only below that
    while (is_digit(*p)) digits = digits * 10 + static_cast<uint64_t>(*p++ - '0');
    int64_t n_digits = p - start;
    int64_t exponent = 0;
    if (*p == '.') {
        const char* const fraction = ++p;
        while (is_digit(*p)) digits = digits * 10 + static_cast<uint64_t>(*p++ - '0');
        exponent = fraction - p;
        n_digits -= exponent;
    }
    if (n_digits == 0) return Number::kMalformed;
    if (*p == 'e' || *p == 'E') {
        ++p;
        const bool down = *p == '-';
        if (down || *p == '+') ++p;
        if (!is_digit(*p)) return Number::kMalformed;
        int64_t written = 0;
        for (; is_digit(*p); ++p)
            if (written < kHugeExponent) written = written * 10 + (*p - '0');
        exponent += down ? -written : written;
    }
    *at = p;

    if (n_digits <= 19 && digits <= (uint64_t{1} << 53) && exponent >= -22 && exponent <= 22) {
        const double d = exponent < 0 ? static_cast<double>(digits) / kPowers[-exponent]
                                      : static_cast<double>(digits) * kPowers[exponent];
        if ((std::bit_cast<uint64_t>(d) & kLowBits) != kHalfWay) {
            *value = static_cast<float>(negative ? -d : d);
            return Number::kFine;
        }
    }
    const char* first = start;  // non-zero digit
    int64_t leading = 0;
    while (*first == '0' || *first == '.') leading += *first++ == '0';
    const int64_t magnitude = n_digits - leading - 1 + exponent;
    const Number result =
        parse_value_exactly({start, static_cast<size_t>(p - start)}, magnitude, value);
    if (negative) *value = -*value;
    return result;
}

// Reads lines that each end in '\n': no scan below can run past the end of the text.
class LineParser {
  public:
    LineParser(const TextOptions& options, TextRows& out) : options_(options), out_(out) {}

    void parse(const char* begin, const char* end) {
        end_ = end;
        for (const char* p = begin; p != end; ++out_.n_lines) {
            line_ = p;
            p = parse_line(p) + 1;
        }
    }

  private:
    // Moves from the start of a line to its '\n'.
    const char* parse_line(const char* p) {
        const char* content = p;
        while (is_blank(*content)) ++content;
        if (options_.comments && *content == '#') return newline(content);
        const bool blank = at_end(content);
        if (static_cast<int64_t>(out_.x_indptr.size) - 1 == options_.max_rows) {
            if (!blank) fail("there are more rows than the header declares");
            return newline(content);
        }
        if (!blank) content = parse_features(parse_labels(p));
        out_.x_indptr.push(static_cast<int64_t>(out_.x_indices.size));
        out_.y_indptr.push(static_cast<int64_t>(out_.y_indices.size));
        return newline(content);
    }

    const char* parse_labels(const char* p) {
        if (is_blank(*p)) return p;
        if (is_digit(*p)) {
            const char* behind = p;
            while (is_digit(*behind)) ++behind;
            if (*behind == ':') return p;  // no labels: the row starts with a feature
        }
        const char* const list = p;
        const size_t row = out_.y_indices.size;
        bool ascending = true;
        for (;; ++p) {
            if (!is_digit(*p))
                fail("expected label numbers joined by commas, or feature:value, not " +
                     shown(word(list), kShownToken));
            const char* const token = p;
            const uint64_t label = parse_number(&p);
            if (label >= static_cast<uint64_t>(options_.n_labels))
                fail("label " + shown(number(token), kShownToken) +
                     " is out of range: " + range(0, options_.n_labels));
            ascending = ascending && (out_.y_indices.size == row ||
                                      static_cast<int32_t>(label) > last(out_.y_indices));
            out_.y_indices.push(static_cast<int32_t>(label));
            if (*p != ',') break;
        }
        if (!at_word_end(p))
            fail("expected label numbers joined by commas, or feature:value, not " +
                 shown(word(list), kShownToken));
        if (!ascending) {
            int32_t* const begin = out_.y_indices.data.get() + row;
            int32_t* const end = out_.y_indices.data.get() + out_.y_indices.size;
            std::sort(begin, end);
            out_.y_indices.size -= static_cast<size_t>(end - std::unique(begin, end));
        }
        return p;
    }

    const char* parse_features(const char* p) {
        const size_t row = out_.x_indices.size;
        const auto first_feature = static_cast<uint64_t>(options_.first_feature);
        int32_t previous = -1;
        bool ascending = true, zeros = false;
        for (;;) {
            while (is_blank(*p)) ++p;
            if (at_line_end(p)) break;
            const char* const token = p;
            const uint64_t written = parse_number(&p);
            if (p == token || *p != ':')
                fail("expected feature:value, not " + shown(word(token), kShownToken));
            // A feature below the first one wraps around and is out of range like one too large.
            if (written - first_feature >= static_cast<uint64_t>(options_.n_features))
                fail("feature " + shown(number(token), kShownToken) +
                     " is out of range: " + range(options_.first_feature, options_.n_features) +
                     (written == 0 && first_feature == 1 ? " (zero_based=True starts at 0)" : ""));
            const auto feature = static_cast<int32_t>(written - first_feature);
            ++p;
            float value;
            const Number read = parse_value(&p, &value);
            if (read != Number::kFine || !at_word_end(p))
                fail("the value in " + shown(word(token), kShownToken) +
                     (read == Number::kTooLarge ? " is too large for float32"
                                                : " is not a finite decimal number"));
            ascending = ascending && feature > previous;
            previous = feature;
            zeros = zeros || value == 0.0f;
            out_.x_indices.push(feature);
            out_.x_values.push(value);
        }
        if (!ascending) sort_features(row);
        if (!ascending || zeros) drop_zeros(row);
        return p;
    }

    void sort_features(size_t row) {
        int32_t* const indices = out_.x_indices.data.get();
        float* const values = out_.x_values.data.get();
        scratch_.clear();
        for (size_t i = row; i < out_.x_indices.size; ++i)
            scratch_.emplace_back(indices[i], values[i]);
        std::stable_sort(scratch_.begin(), scratch_.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        size_t kept = row;
        for (size_t i = 0; i < scratch_.size(); ++kept) {
            const int32_t feature = scratch_[i].first;
            double sum = scratch_[i].second;
            for (++i; i < scratch_.size() && scratch_[i].first == feature; ++i) {
                if (!options_.sum_duplicates)
                    fail("feature " + std::to_string(feature + options_.first_feature) +
                         " occurs twice (duplicates='sum' adds the values)");
                sum += scratch_[i].second;
            }
            indices[kept] = feature;
            values[kept] = static_cast<float>(sum);
            if (!std::isfinite(values[kept]))
                fail("the values of feature " + std::to_string(feature + options_.first_feature) +
                     " add up to a number too large for float32");
        }
        out_.x_indices.size = out_.x_values.size = kept;
    }

    void drop_zeros(size_t row) {
        int32_t* const indices = out_.x_indices.data.get();
        float* const values = out_.x_values.data.get();
        size_t kept = row;
        for (size_t i = row; i < out_.x_indices.size; ++i) {
            if (values[i] == 0.0f) continue;
            indices[kept] = indices[i];
            values[kept++] = values[i];
        }
        out_.x_indices.size = out_.x_values.size = kept;
    }

    // A whole number, or one that no limit admits if it has too many digits for uint64.
    static uint64_t parse_number(const char** at) {
        const char* p = *at;
        const char* const start = p;
        uint64_t value = 0;
        while (is_digit(*p)) value = value * 10 + static_cast<uint64_t>(*p++ - '0');
        *at = p;
        if (p - start > 18) {
            const char* first = start;
            while (*first == '0') ++first;
            if (p - first > 18) return INT64_MAX;
        }
        return value;
    }

    static bool at_end(const char* p) { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }
    bool at_line_end(const char* p) const { return at_end(p) || (*p == '#' && options_.comments); }
    bool at_word_end(const char* p) const { return is_blank(*p) || at_line_end(p); }

    const char* newline(const char* p) const {
        return static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end_ - p)));
    }
    static int32_t last(const Buffer<int32_t>& buffer) { return buffer.data[buffer.size - 1]; }

    std::string_view word(const char* p) const {
        const char* end = p;
        while (!at_word_end(end)) ++end;
        return {p, static_cast<size_t>(end - p)};
    }
    static std::string_view number(const char* p) {
        const char* end = p;
        while (is_digit(*end)) ++end;
        return {p, static_cast<size_t>(end - p)};
    }

    [[noreturn]] void fail(const std::string& what) const {
        const char* end = newline(line_);
        if (end != line_ && end[-1] == '\r') --end;
        throw TextError(
            options_.name + ":" + std::to_string(options_.first_line + out_.n_lines) + ": " + what +
            ". The line: " + shown({line_, static_cast<size_t>(end - line_)}, kShownLine));
    }

    const TextOptions& options_;
    TextRows& out_;
    const char* line_ = nullptr;
    const char* end_ = nullptr;
    std::vector<std::pair<int32_t, float>> scratch_;
};

size_t count(std::string_view text, char c) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), c));
}

}  // namespace

TextRows parse_text(std::string_view text, const TextOptions& options) {
    // Each feature has a colon, each label but a row's first a comma: sizes that cannot be
    // exceeded, found at the speed of memory. Pages that stay unused are never touched.
    const size_t lines = count(text, '\n') + 1;
    const size_t features = count(text, ':');
    TextRows out;
    out.x_indptr = Buffer<int64_t>(lines + 1);
    out.y_indptr = Buffer<int64_t>(lines + 1);
    out.x_indices = Buffer<int32_t>(features);
    out.x_values = Buffer<float>(features);
    out.y_indices = Buffer<int32_t>(count(text, ',') + lines);
    out.x_indptr.push(0);
    out.y_indptr.push(0);

    LineParser parser(options, out);
    const size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0: no whole line
    parser.parse(text.data(), text.data() + whole);
    if (whole != text.size()) {
        const std::string tail = std::string(text.substr(whole)) + '\n';
        parser.parse(tail.data(), tail.data() + tail.size());
    }
    return out;
}

std::string format_text(const FeatureRows& x, const LabelRows& y, int32_t first_feature) {
    constexpr size_t kLongest = 32;  // "-1.1754944e-38" and any integer are shorter
    std::string out;
    char word[kLongest];
    const auto append = [&](auto number) {
        out.append(word, std::to_chars(word, word + kLongest, number).ptr);
    };
    for (int64_t i = 0; i < x.n_rows; ++i) {
        for (int64_t j = y.indptr[i]; j < y.indptr[i + 1]; ++j) {
            if (j > y.indptr[i]) out += ',';
            append(y.indices[j]);
        }
        for (int64_t j = x.indptr[i]; j < x.indptr[i + 1]; ++j) {
            out += ' ';
            append(int64_t{x.indices[j]} + first_feature);
            out += ':';
            append(x.values[j]);
        }
        out += '\n';
    }
    return out;
}

}  // namespace ldsm
