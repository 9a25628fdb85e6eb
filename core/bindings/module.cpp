// The module: what Python sees of the core. Only the files named bindings* know Python. They check
// what comes in, release the GIL and hand arrays over.
#include "bindings/shared.hpp"

namespace ldsm::bindings {
void bind_rows(nb::module_& m);     // bindings_rows.cpp
void bind_tree(nb::module_& m);     // bindings_tree.cpp
void bind_router(nb::module_& m);   // bindings_router.cpp
void bind_blend(nb::module_& m);    // bindings_blend.cpp
void bind_matcher(nb::module_& m);  // bindings_matcher.cpp
void bind_ranker(nb::module_& m);   // bindings_ranker.cpp
void bind_text(nb::module_& m);     // bindings_text.cpp
void bind_words(nb::module_& m);    // bindings_words.cpp
}  // namespace ldsm::bindings

NB_MODULE(_core, m) {
    using namespace ldsm::bindings;
    // Checked rows may lie in a cache until the interpreter ends, which nanobind would report.
    nb::set_leak_warnings(false);
    m.doc() = "The compiled core of ldsm: pure functions over arrays.";
    bind_rows(m);
    bind_tree(m);
    bind_router(m);
    bind_blend(m);
    bind_matcher(m);
    bind_ranker(m);
    bind_text(m);
    bind_words(m);
}
