// The module: what Python sees of the core. Only the files of this folder know Python. They check
// what comes in, release the GIL and hand arrays over.
#include "bindings/shared.hpp"

namespace ldsm::bindings {
void bind_rows(nb::module_& m);
void bind_tree(nb::module_& m);
void bind_router(nb::module_& m);
void bind_matching(nb::module_& m);
void bind_meaning(nb::module_& m);
void bind_ranker(nb::module_& m);
void bind_label_vectors(nb::module_& m);
void bind_blend(nb::module_& m);
void bind_text(nb::module_& m);
void bind_words(nb::module_& m);
}  // namespace ldsm::bindings

NB_MODULE(_core, m) {
    using namespace ldsm::bindings;
    // Checked rows may lie in a cache until the interpreter ends, which nanobind would report.
    nb::set_leak_warnings(false);
    m.doc() = "The compiled core of ldsm: pure functions over arrays.";
    bind_rows(m);
    bind_tree(m);
    bind_router(m);
    bind_matching(m);
    bind_meaning(m);
    bind_ranker(m);
    bind_label_vectors(m);
    bind_blend(m);
    bind_text(m);
    bind_words(m);
}
