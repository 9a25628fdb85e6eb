"""The site: `make docs` builds it into build/docs/html, without a network."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx_gallery.sorting import ExplicitOrder

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "site"))

from public_names import is_record, public_modules, public_objects  # noqa: E402

import ldsm  # noqa: E402
import pages  # noqa: E402

project = "ldsm"
author = "the ldsm developers"
copyright = author
version = release = ldsm.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["site"]
templates_path = ["site/templates"]

# Pages are Markdown that reads well without Sphinx, too: only what GitHub shows as code or as text.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # as GitHub names them, so that links work in both places
smartquotes = False  # two hyphens are an option's

# The reference: a page for each public name, from the `__all__` of its module.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autosummary_context = {"described_elsewhere": ["ldsm.text.TextTagger"]}  # as ldsm.TextTagger
autodoc_typehints = "none"  # numpydoc describes them
autodoc_default_options = {"members": True, "member-order": "bysource"}
numpydoc_show_class_members = False  # methods are on the page of their class, in full
numpydoc_attributes_as_param_list = True

# Every docstring has a summary, and says what each parameter is: a missing or unknown one is a
# warning, as are sections that numpydoc does not know or that are out of order.
numpydoc_validation_checks = {
    "GL06", "GL07", "GL08", "GL10", "PR01", "PR02", "PR03", "PR04", "PR07", "PR09", "PR10",
    "RT04", "RT05", "SS01", "SS02", "SS03", "YD01",
}  # fmt: skip
# Modules have no parameters; the fields of records are described as attributes.
_unlike_functions = [*public_modules(), *(n for n, kind in public_objects() if is_record(kind))]
numpydoc_validation_exclude = {rf"^{re.escape(name)}$" for name in _unlike_functions}

# A name in backquotes is a link wherever it is the name of something that is described.
toc_object_entries_show_parents = "hide"
default_role = "py:obj"
nitpick_ignore_regex = [
    # Backquotes name arguments and words as often as objects. Full names must lead somewhere.
    ("py:obj", r"(?!ldsm\.).*"),
]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": ExplicitOrder(
        [
            "tags_from_csv.py",
            "matrices_and_metrics.py",
            "thresholds.py",
            "rare_labels.py",
            "explanations.py",
            "incremental_learning.py",
            "serving.py",
            "dask_cluster.py",
            "*",
        ]
    ),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"ldsm {release}"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": "ldsm"},
    "show_toc_level": 2,
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

linkcheck_timeout = 20
linkcheck_ignore = [r"http://(localhost|127\.0\.0\.1)"]


def is_about_an_example(record: logging.LogRecord) -> bool:
    """For sphinx-gallery, which takes blanks in the path of the checkout for those of its files."""
    return "file name(s) with spaces" not in record.getMessage()


def setup(app: Any) -> None:
    """Pages from outside of docs/ are made first; links to their files then lead to the pages."""
    logging.getLogger("sphinx.sphinx-gallery").addFilter(is_about_an_example)
    for name in ("csv", "tsv"):
        app.add_lexer(name, TextLexer)
    pages.write()
    app.connect("source-read", pages.relink_page)
    app.connect("autodoc-skip-member", pages.skip_member)
