// Bindings for the meaning of rows and labels.
#include "matching/meaning.hpp"

#include "bindings/forest.hpp"

namespace ldsm::bindings {

namespace {

using Rows = In2<int16_t>;

struct MeaningArrays {
    explicit MeaningArrays(nb::handle meaning) : arrays(meaning, "meaning") {
        const size_t codes = arrays.matrix("codes", view.codes);
        const size_t units = arrays.array("units", view.units);
        const size_t biases = arrays.array("biases", view.biases);
        view.n_labels = static_cast<int64_t>(units);
        view.width = units == 0 ? 0 : static_cast<int64_t>(codes / units);
        if (biases != units || static_cast<size_t>(view.width) * units != codes ||
            view.width > kWidest || view.n_labels > INT32_MAX)
            refuse("The arrays of the meaning do not fit each other in size.");
    }
    // The rows are short enough for products of 32 bits.
    DenseRows rows(const Rows& values) const {
        check_equal(static_cast<int64_t>(values.shape(1)), view.width,
                    "Dense rows and label vectors must have the same width");
        check_aligned(values, "The dense rows");
        const DenseRows rows{values.data(), static_cast<int64_t>(values.shape(0))};
        // Rounding may lengthen a row of unit length a little.
        constexpr int64_t kLongest = (int64_t{1} << 14) + 64;
        for (int64_t row = 0; row < rows.n_rows; ++row) {
            int64_t squares = 0;
            for (int64_t i = 0; i < view.width; ++i) {
                const int64_t value = rows.values[row * view.width + i];
                squares += value * value;
            }
            if (squares > kLongest * kLongest) refuse("A dense row must be at most 2^14 long.");
        }
        return rows;
    }
    ArraysOf arrays;
    MeaningView view{};
};

nb::tuple ranking(nb::handle meaning, const Rows& values, int64_t length,
                  std::optional<In<uint8_t>> allowed, std::optional<In<int32_t>> places,
                  Cancel cancel, const std::string& simd) {
    const MeaningArrays vectors(meaning);
    const DenseRows rows = vectors.rows(values);
    if (length < 1) refuse("length must be at least 1. Got ", length, ".");
    const uint8_t* may = checked_allowed(allowed, static_cast<int32_t>(vectors.view.n_labels));
    const int32_t* at = checked_places(places, static_cast<int32_t>(vectors.view.n_labels));
    Monitor monitor = make_monitor(cancel);
    const Kernels& kernels = select_kernels(simd);
    LabelLists out = without_gil(
        [&] { return rank_by_meaning(vectors.view, rows, length, may, at, kernels, monitor); });
    return hand_over_all(out.offsets, out.labels);
}

nb::object scores(nb::handle meaning, const Rows& values, In<int64_t> list_indptr,
                  In<int32_t> list_labels, Cancel cancel, const std::string& simd) {
    const MeaningArrays vectors(meaning);
    const DenseRows rows = vectors.rows(values);
    check_offsets(list_indptr, list_labels.size(), "The row offsets of the lists");
    check_range(list_labels, vectors.view.n_labels, "The label numbers of the lists");
    const LabelRows lists{list_indptr.data(), list_labels.data(),
                          static_cast<int64_t>(list_indptr.size()) - 1,
                          static_cast<int32_t>(vectors.view.n_labels)};
    check_equal(rows.n_rows, lists.n_rows,
                "Dense rows and lists must have the same number of rows");
    Monitor monitor = make_monitor(cancel);
    const Kernels& kernels = select_kernels(simd);
    std::vector<float> out(list_labels.size());
    without_gil([&] { meaning_scores(vectors.view, rows, lists, out.data(), kernels, monitor); });
    return hand_over(std::move(out));
}

nb::tuple sums(const Rows& values, In<int64_t> indptr, In<int32_t> labels, In<int32_t> slot,
               int64_t n_slots, Cancel cancel) {
    check_aligned(values, "The dense rows");
    check_aligned(slot, "slot");
    const auto n_rows = static_cast<int64_t>(values.shape(0));
    const auto width = static_cast<int64_t>(values.shape(1));
    const auto n_labels = static_cast<int32_t>(slot.size());
    check_offsets(indptr, labels.size(), "The row offsets of the labels");
    check_range(labels, n_labels, "The labels");
    check_equal(n_rows, static_cast<int64_t>(indptr.size()) - 1,
                "Dense rows and labels must have the same number of rows");
    if (n_slots < 0 || n_slots > INT32_MAX) refuse("n_slots must not be negative.");
    for (size_t i = 0; i < slot.size(); ++i)
        if (slot.data()[i] < -1 || slot.data()[i] >= n_slots)
            refuse("slot must lie in [-1, ", n_slots, "). Got ", slot.data()[i], ".");
    std::vector<int64_t> n_rows_of(slot.size());
    for (size_t i = 0; i < labels.size(); ++i) ++n_rows_of[static_cast<size_t>(labels.data()[i])];
    const auto most = std::max_element(n_rows_of.begin(), n_rows_of.end());
    const LabelRows by_row{indptr.data(), labels.data(), n_rows, n_labels};
    Monitor monitor = make_monitor(cancel);
    std::vector<int64_t> counts(static_cast<size_t>(n_slots));
    const auto summed = [&]<typename Sum>(Sum) {
        std::vector<Sum> out(static_cast<size_t>(n_slots * width));
        without_gil([&] {
            sum_by_label({values.data(), n_rows}, width, by_row, slot.data(), out.data(),
                         counts.data(), monitor);
        });
        return hand_over(std::move(out), static_cast<size_t>(width));
    };
    const bool narrow = most == n_rows_of.end() || *most < (int64_t{1} << 16);
    nb::object out = narrow ? summed(int32_t{}) : summed(int64_t{});
    return nb::make_tuple(out, hand_over(std::move(counts)));
}

}  // namespace

void bind_meaning(nb::module_& m) {
    m.def("rank_by_meaning", &ranking, "meaning"_a, as_is("rows"), "length"_a,
          as_is("allowed") = nb::none(), as_is("places") = nb::none(), as_is("cancel") = nb::none(),
          "simd"_a = "auto",
          "The labels of each row by their vectors, best first: (offsets, labels).");
    m.def("meaning_scores", &scores, "meaning"_a, as_is("rows"), as_is("list_indptr"),
          as_is("list_labels"), as_is("cancel") = nb::none(), "simd"_a = "auto",
          "The scores of listed labels by their vectors.");
    m.def("sums_by_label", &sums, as_is("rows"), as_is("indptr"), as_is("labels"), as_is("slot"),
          "n_slots"_a, as_is("cancel") = nb::none(),
          "The sum of the dense rows of each wanted label, and their number: (sums, counts).");
}

}  // namespace ldsm::bindings
