// The yardstick of the training loop: for every row a bare sparse dot product and a bare sparse
// update of two weight vectors, and nothing else. No labels, no objective, no step size.
//
// `bare_plain` is the obvious loop; `bare_lanes` sums in four partial sums, which a compiler may not
// do by itself, and is the harder mark.
#include <cstdint>

extern "C" float bare_plain(const int64_t* indptr, const int32_t* feature, const float* value,
                            int64_t n_rows, int epochs, float* w) {
    float sum = 0;
    for (int epoch = 0; epoch < epochs; ++epoch)
        for (int64_t row = 0; row < n_rows; ++row) {
            float a = 0, b = 0;
            for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
                a += value[i] * w[2 * int64_t{feature[i]}];
                b += value[i] * w[2 * int64_t{feature[i]} + 1];
            }
            a = 1e-3f * (a - 0.5f);
            b = 1e-3f * (b - 0.5f);
            for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
                w[2 * int64_t{feature[i]}] -= a * value[i];
                w[2 * int64_t{feature[i]} + 1] -= b * value[i];
            }
            sum += a + b;
        }
    return sum;
}

extern "C" float bare_lanes(const int64_t* indptr, const int32_t* feature, const float* value,
                            int64_t n_rows, int epochs, float* w) {
    float sum = 0;
    for (int epoch = 0; epoch < epochs; ++epoch)
        for (int64_t row = 0; row < n_rows; ++row) {
            float a[4] = {}, b[4] = {};
            int64_t i = indptr[row];
            const int64_t end = indptr[row + 1];
            for (; i + 4 <= end; i += 4)
                for (int lane = 0; lane < 4; ++lane) {
                    const float* cell = w + 2 * int64_t{feature[i + lane]};
                    a[lane] += value[i + lane] * cell[0];
                    b[lane] += value[i + lane] * cell[1];
                }
            for (; i < end; ++i) {
                a[0] += value[i] * w[2 * int64_t{feature[i]}];
                b[0] += value[i] * w[2 * int64_t{feature[i]} + 1];
            }
            const float step_a = 1e-3f * ((a[0] + a[2]) + (a[1] + a[3]) - 0.5f);
            const float step_b = 1e-3f * ((b[0] + b[2]) + (b[1] + b[3]) - 0.5f);
            for (i = indptr[row]; i < end; ++i) {
                float* cell = w + 2 * int64_t{feature[i]};
                cell[0] -= step_a * value[i];
                cell[1] -= step_b * value[i];
            }
            sum += step_a + step_b;
        }
    return sum;
}
