// Fuzzes the reader of text rows: whatever it accepts must be well-formed, and must read the same
// once it is written and read again.
#include "text/text_format.hpp"

#include <cmath>
#include <cstdlib>

#include "bytes.hpp"

using namespace ldsm;

namespace {

void require(bool fact) {
    if (!fact) std::abort();
}

void check(const TextRows& rows, const TextOptions& options) {
    require(rows.x_indptr.size == rows.y_indptr.size && rows.x_indptr.size >= 1);
    const size_t n = rows.x_indptr.size - 1;
    require(rows.x_indptr.data[0] == 0 && rows.y_indptr.data[0] == 0);
    require(rows.x_indptr.data[n] == static_cast<int64_t>(rows.x_indices.size));
    require(rows.y_indptr.data[n] == static_cast<int64_t>(rows.y_indices.size));
    require(rows.x_indices.size == rows.x_values.size);
    require(options.max_rows < 0 || static_cast<int64_t>(n) <= options.max_rows);
    for (size_t row = 0; row < n; ++row) {
        for (int64_t i = rows.x_indptr.data[row]; i < rows.x_indptr.data[row + 1]; ++i) {
            const int32_t feature = rows.x_indices.data[i];
            require(feature >= 0 && feature < options.n_features);
            require(i == rows.x_indptr.data[row] || rows.x_indices.data[i - 1] < feature);
            require(std::isfinite(rows.x_values.data[i]) && rows.x_values.data[i] != 0);
        }
        for (int64_t i = rows.y_indptr.data[row]; i < rows.y_indptr.data[row + 1]; ++i) {
            const int32_t label = rows.y_indices.data[i];
            require(label >= 0 && label < options.n_labels);
            require(i == rows.y_indptr.data[row] || rows.y_indices.data[i - 1] < label);
        }
    }
}

template <typename T>
bool same(const Buffer<T>& a, const Buffer<T>& b) {
    return a.size == b.size && std::memcmp(a.data.get(), b.data.get(), a.size * sizeof(T)) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Bytes bytes{data, size};
    const auto flags = bytes.take<uint8_t>();
    TextOptions options;
    options.name = "fuzz";
    options.max_rows = (flags & 1) != 0 ? bytes.take<uint8_t>() : -1;
    options.n_features = (flags & 2) != 0 ? bytes.take<uint16_t>() : kMostFeatures;
    options.n_labels = (flags & 4) != 0 ? bytes.take<uint16_t>() : INT32_MAX;
    options.first_feature = (flags & 8) != 0 ? 1 : 0;
    options.comments = (flags & 16) != 0;
    options.sum_duplicates = (flags & 32) != 0;
    // A copy of just these bytes: reading past them is seen.
    const std::vector<char> text(bytes.data, bytes.data + bytes.size);
    try {
        const TextRows rows = parse_text({text.data(), text.size()}, options);
        check(rows, options);
        const auto n = static_cast<int64_t>(rows.x_indptr.size) - 1;
        const FeatureRows x{rows.x_indptr.data.get(), rows.x_indices.data.get(),
                            rows.x_values.data.get(), n, INT32_MAX};
        const LabelRows y{rows.y_indptr.data.get(), rows.y_indices.data.get(), n, INT32_MAX};
        const std::string written = format_text(x, y, options.first_feature);
        TextOptions again = options;
        again.comments = again.sum_duplicates = false;
        again.max_rows = -1;
        const TextRows back = parse_text(written, again);
        require(same(rows.x_indptr, back.x_indptr) && same(rows.x_indices, back.x_indices));
        require(same(rows.x_values, back.x_values) && same(rows.y_indptr, back.y_indptr));
        require(same(rows.y_indices, back.y_indices));
    } catch (const TextError&) {
    }
    return 0;
}
