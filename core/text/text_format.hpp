// Sparse rows as lines of text, the format of the Extreme Classification Repository and of
// svmlight:
//
//   label,label,... feature:value feature:value ...
//
// A row without labels starts with a space, a tab or its first feature:value; a row without
// features is its labels alone; an empty line is a row with neither. Features need not be in order:
// they are sorted. Explicit zeros are dropped. A label named twice counts once. Anything else is an
// error that names the line.
//
// Text is taken block by block, so that a file of any size is read in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/csr.hpp"

namespace ldsm {

struct TextOptions {
    std::string name;             // of the file, for messages
    int64_t first_line = 1;       // number of the first line of the text, for messages
    int64_t max_rows = -1;        // only blank lines may follow these rows; -1: any number of rows
    int64_t n_features = 0;       // features lie in [first_feature, first_feature + n_features)
    int64_t n_labels = 0;         // labels lie in [0, n_labels)
    int32_t first_feature = 0;    // what the file calls feature 0: svmlight counts from 1
    bool comments = false;        // '#' hides the rest of a line; a line of comment alone is no row
    bool sum_duplicates = false;  // add up a feature's values within a row instead of refusing them
};

// What std::vector does not offer: memory of a known maximum size that is not filled with zeros
// first.
template <typename T>
struct Buffer {
    std::unique_ptr<T[]> data;
    size_t size = 0;

    Buffer() = default;
    explicit Buffer(size_t capacity) : data(new T[capacity]) {}
    void push(T value) { data[size++] = value; }
};

struct TextRows {
    Buffer<int64_t> x_indptr;
    Buffer<int32_t> x_indices;
    Buffer<float> x_values;
    Buffer<int64_t> y_indptr;
    Buffer<int32_t> y_indices;
    int64_t n_lines = 0;
};

// "file:line: what is wrong. The line: '...'", printable ASCII whatever the file held.
struct TextError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

TextRows parse_text(std::string_view text, const TextOptions& options);

// The lines of these rows; values in the fewest digits that read back as the same float32.
std::string format_text(const FeatureRows& x, const LabelRows& y, int32_t first_feature);

}  // namespace ldsm
