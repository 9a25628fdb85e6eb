#include "routing/feature_maps.hpp"

namespace ldsm {

FeatureMapArrays feature_maps(const ForestView& forest) {
    const int64_t words = forest.map_words();
    FeatureMapArrays out(static_cast<size_t>(forest.n_nodes), 0);
    uint64_t n_maps = 0;
    for (int64_t node = 0; node < forest.n_nodes; ++node) {
        const Range entries = forest.entries_of(node);
        // 16 bytes a word, and about four an entry.
        if (4 * words > entries.end - entries.begin) continue;
        out[node] = ++n_maps;
        out.resize(out.size() + static_cast<size_t>(words) * 2, 0);
        uint64_t* map = out.data() + out.size() - words * 2;
        if (!forest.weights.each_feature(entries, [&](int64_t, uint32_t f) {
                map[f / 64 * 2] |= uint64_t{1} << (f % 64);
                if (f / 64 + 1 < words) ++map[(f / 64 + 1) * 2 + 1];
            }))
            refuse_feature(node);
        for (int64_t w = 1; w < words; ++w) map[w * 2 + 1] += map[(w - 1) * 2 + 1];
    }
    return out;
}

}  // namespace ldsm
