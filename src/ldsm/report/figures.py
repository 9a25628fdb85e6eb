"""The figures of the page, drawn by `ldsm.plotting` and embedded as SVG in the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import plotting
from .._trees.levels import by_level
from ..evaluation import Evaluation
from ..evaluation.alignment import Estimator
from ..plotting import import_matplotlib
from .html import Markup, element

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 10_000  # for figures that evaluate single trees
_FEW = 3  # points make a curve
_SIZE = (4.8, 3.2)  # inches; at half the page's width, text is as large as the captions
_INK = "#010203"  # placeholder for the text colour of the page
# Keep text as text, in the page's font, and make the bytes of a figure reproducible.
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ldsm",
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "mathtext.default": "regular",
}


def threshold_figure(evaluation: Evaluation) -> Markup:
    """Precision, recall and F1 of the predicted sets at every threshold."""
    part, on = _part(evaluation)
    return _figure(
        "thresholds",
        lambda ax: plotting.plot_thresholds(part.threshold_curve(), ax=ax),
        "F1 against the threshold",
        f"F1 is the mean over rows (samples); precision and recall are over all pairs, on {on}.",
    )


def reliability_figure(evaluation: Evaluation) -> Markup:
    """Scores as probabilities."""
    return _figure(
        "reliability",
        lambda ax: plotting.plot_reliability(evaluation.reliability(), ax=ax),
        "Scores as probabilities",
        "The five best labels of every row, in ten bins by score: mean score of a bin against the "
        "share of true labels. On the diagonal, scores are exact probabilities. ECE is the mean "
        "distance from the diagonal.",
    )


def tree_figures(evaluation: Evaluation, estimator: Estimator) -> Iterator[Markup]:
    """Figures of the trees, where there is something to see."""
    forest = evaluation.model.forest
    part, on = _part(evaluation)
    stage = evaluation.model.second_stage is not None
    if forest.n_trees >= _FEW:
        lines = " Dashed: with the second stage." if stage else ""
        yield _figure(
            "trees",
            lambda ax: plotting.plot_metrics(part.tree_curve(), ax=ax),
            "Precision against the number of trees",
            f"Precision of the first 1, 2, 4 ... trees on {on}. Where the lines are flat, more "
            f"trees add little.{lines}",
        )
        yield _figure(
            "single",
            lambda ax: plotting.plot_single_trees(part.single_trees(), ax=ax),
            "Single trees and the forest",
            f"Mean of the single trees, with a bar from the worst to the best, compared with the "
            f"whole forest{' and the forest with its second stage' if stage else ''}, on {on}.",
        )
    levels = by_level(forest)
    n_levels, n_epochs = levels.epoch_objective.shape
    if n_levels:  # there are splits
        yield _figure(
            "depth",
            lambda ax: plotting.plot_leaf_depths(estimator, ax=ax),
            "Depth of the leaves",
            "Leaves that training rows reach, over all trees. Dashed: log K to the base of the "
            "arity, the depth of a perfectly balanced tree with one leaf for each of the K labels.",
        )
    if n_levels and n_epochs >= _FEW:
        yield _figure(
            "objective",
            lambda ax: plotting.plot_objective(estimator, ax=ax),
            "The objective during training",
            "J after each pass over a node's rows; lower is better. A line is the mean over the "
            "splits of a level, weighted by rows; level 0 holds the roots. J uses the integrity "
            "weight of each split.",
        )
    if n_levels >= _FEW:
        yield _figure(
            "splits",
            lambda ax: plotting.plot_splits(estimator, ax=ax),
            "Balance and purity of the splits",
            "By level. Balance is 0 if all children get the same number of labels; purity is 0 if "
            "no label is in two children. Lines are means weighted by rows; bands hold the middle "
            "half.",
        )


def _part(evaluation: Evaluation) -> tuple[Evaluation, str]:
    """At most `MAX_ROWS` rows, and their description."""
    part = evaluation.sample(MAX_ROWS)
    if part.n_rows == evaluation.n_rows:
        return part, "the held-out rows"
    return part, f"{part.n_rows:,} of the held-out rows, evenly spaced"


def _figure(name: str, draw: Callable[[Axes], Axes], title: str, text: str) -> Markup:
    caption = element("figcaption", element("b", f"{title}. "), text)
    return element("figure", _svg(name, draw), caption)


def _svg(name: str, draw: Callable[[Axes], Axes]) -> Markup:
    """A figure as an SVG element; its ids begin with `name`, to be unique on the page."""
    with import_matplotlib().rc_context(_SETTINGS):
        figure: Any = draw(plotting.new_axes(_SIZE)).figure
        file = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=nothing)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)  # not needed within HTML
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # would apply to the whole page
    svg = re.sub(r" font-family: [^;]*;", "", svg)  # use the page's font
    svg = svg.replace("xlink:href", "href").replace(_INK, "currentColor")
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    return Markup(svg.strip())
