// Bindings for reading and writing text: any object with a buffer in, NumPy arrays out.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/shared.hpp"
#include "text/names.hpp"
#include "text/text_format.hpp"

namespace ldsm::bindings {

namespace {

constexpr int64_t kLastLine = int64_t{1} << 62;  // the lines of a text can be counted on from here

// Holds the bytes in place for as long as the GIL is released: a bytearray cannot be resized, nor a
// memory map closed, while its buffer is out.
class Bytes {
  public:
    explicit Bytes(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    }
    ~Bytes() { PyBuffer_Release(&view_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    std::string_view text() const {
        return {static_cast<const char*>(view_.buf), static_cast<size_t>(view_.len)};
    }

  private:
    Py_buffer view_;
};

template <typename T>
nb::object hand_over(Buffer<T>&& buffer) {
    T* const data = buffer.data.get();
    return as_array(data, buffer.size, 0, std::move(buffer.data));
}

nb::tuple parse(nb::handle text, std::string name, int64_t first_line, int64_t max_rows,
                int64_t n_features, int64_t n_labels, bool zero_based, bool comments,
                bool sum_duplicates) {
    if (n_features < 0 || n_features > kMostFeatures || n_labels < 0 || n_labels > INT32_MAX)
        refuse("n_features must lie in [0, 2^31 - 8) and n_labels in [0, 2^31).");
    if (first_line < 0 || first_line > kLastLine) refuse("first_line must lie in [0, 2^62].");
    const TextOptions options{std::move(name), first_line,         max_rows, n_features,
                              n_labels,        zero_based ? 0 : 1, comments, sum_duplicates};
    const Bytes bytes(text);
    TextRows rows = without_gil([&] { return parse_text(bytes.text(), options); });
    const int64_t n_lines = rows.n_lines;
    return nb::make_tuple(hand_over(std::move(rows.x_indptr)), hand_over(std::move(rows.x_indices)),
                          hand_over(std::move(rows.x_values)), hand_over(std::move(rows.y_indptr)),
                          hand_over(std::move(rows.y_indices)), n_lines);
}

nb::bytes format(In<int64_t> x_indptr, In<int32_t> x_indices, In<float> x_values,
                 In<int64_t> y_indptr, In<int32_t> y_indices, bool zero_based) {
    const size_t x_entries = std::min(x_indices.size(), x_values.size());
    check_offsets(x_indptr, x_entries, "The row offsets of X", Offsets::kOfPart);
    check_offsets(y_indptr, y_indices.size(), "The row offsets of Y", Offsets::kOfPart);
    if (x_indptr.size() != y_indptr.size()) refuse("X and Y must have the same number of rows.");
    check_aligned(x_indices, "The feature numbers of X");
    check_aligned(x_values, "The values of X");
    check_aligned(y_indices, "The label numbers of Y");
    const auto n_rows = static_cast<int64_t>(x_indptr.size()) - 1;
    const FeatureRows x{x_indptr.data(), x_indices.data(), x_values.data(), n_rows, INT32_MAX};
    const LabelRows y{y_indptr.data(), y_indices.data(), n_rows, INT32_MAX};
    const std::string text = without_gil([&] { return format_text(x, y, zero_based ? 0 : 1); });
    return nb::bytes(text.data(), text.size());
}

nb::object check(In<uint8_t> text, In<int64_t> offsets, std::optional<In<uint8_t>> kinds,
                 const std::string& low, const std::string& high, bool unique) {
    check_offsets(offsets, text.size(), "The offsets of the names");
    const auto n = static_cast<int64_t>(offsets.size()) - 1;
    if (kinds) check_equal(kinds->size(), offsets.size() - 1, "There must be a kind for each name");
    if (low.empty() != high.empty()) refuse("low and high must both be given, or neither.");
    const NamesView names{text.data(), offsets.data(), n, kinds ? kinds->data() : nullptr};
    const NameCheck found = without_gil([&] { return check_names(names, {low, high, unique}); });
    if (found.problem == NameProblem::kNone) return nb::none();
    const char* what = found.problem == NameProblem::kNotUtf8      ? "is not UTF-8"
                       : found.problem == NameProblem::kNotANumber ? "is not a whole number"
                       : found.problem == NameProblem::kOutOfRange ? "is out of range"
                                                                   : "occurs twice";
    return nb::make_tuple(found.name, what);
}

}  // namespace

void bind_text(nb::module_& m) {
    m.def("parse_text", &parse, "text"_a, nb::kw_only(), "name"_a, "first_line"_a = 1,
          "max_rows"_a = -1, "n_features"_a = kMostFeatures, "n_labels"_a = INT32_MAX,
          "zero_based"_a = true, "comments"_a = false, "sum_duplicates"_a = false,
          "Rows of text as (x_indptr, x_indices, x_values, y_indptr, y_indices, n_lines).");
    m.def("format_text", &format, as_is("x_indptr"), as_is("x_indices"), as_is("x_values"),
          as_is("y_indptr"), as_is("y_indices"), nb::kw_only(), "zero_based"_a = true,
          "Rows as text, one line each.");
    m.def("check_names", &check, as_is("text"), as_is("offsets"), as_is("kinds") = nb::none(),
          "low"_a = "", "high"_a = "", "unique"_a = true,
          "The number of a name that is wrong and what is wrong with it; None if all are right.");
}

}  // namespace ldsm::bindings
