#include "ranking/centroids.hpp"

#include <vector>

#include "common/unit_rows.hpp"

namespace ldsm {

EncodedWeights train_centroids(const FeatureRows& x, const PairsView& pairs,
                               const uint8_t* left_out, int64_t min_rows, const VectorForm& form,
                               Monitor& monitor) {
    EncodedWeights out;
    const UnitRows rows(x);
    DenseWeights sums(x.n_features, form);
    std::vector<int32_t> members;
    for (int64_t label = 0; label < pairs.n_labels; ++label) {
        monitor.check();
        members.clear();
        for (int64_t p = pairs.offsets[label]; p < pairs.offsets[label + 1]; ++p)
            if (pairs.positive[p] && !(left_out && left_out[pairs.rows[p]]))
                members.push_back(pairs.rows[p]);
        if (static_cast<int64_t>(members.size()) < min_rows) members.clear();
        const auto size = static_cast<float>(members.size());
        for (const int32_t row : members)
            rows.each(row, [&](int32_t feature, float value) {
                sums.data()[feature] += value / size;
                sums.touch(feature);
            });
        sums.give(out);
        monitor.report(label + 1);
    }
    return out;
}

}  // namespace ldsm
