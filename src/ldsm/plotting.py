"""The paper's figures for any fitted model, with matplotlib: ``pip install "ldsm[plot]"``.

Every function takes an optional `ax`, draws into it or into a new figure, and returns the Axes;
``ax.figure.savefig("figure.png")`` saves it. No function changes pyplot or other global state. The
colours are the colour-blind safe palette of Okabe and Ito.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._trees.levels import balanced_depth, by_level, leaf_depths
from .evaluation import MetricCurve, SingleTrees, ThresholdCurve
from .evaluation.alignment import Estimator, classifier_of
from .metrics.calibration import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

__all__ = [
    "DepthPoint",
    "plot_depth",
    "plot_leaf_depths",
    "plot_metrics",
    "plot_objective",
    "plot_reliability",
    "plot_single_trees",
    "plot_splits",
    "plot_thresholds",
]

BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY)
MARKERS = "osD^vP*"  # not as many as colours, so that combinations repeat late
# From the root to the leaves: also ordered by lightness, and readable on black and on white.
SEQUENCE = (BLUE, GREEN, "#E69F00")
GREY = "#808080"
MAX_LINES = 7
MAX_MARKED_EPOCHS = 20
SIZE = (5.6, 3.6)  # inches


@dataclass(frozen=True)
class DepthPoint:
    """Published numbers of a tree, or of the deepest of several trees.

    Attributes
    ----------
    n_labels, arity : int
        K and M, which determine the depth of a balanced tree.
    depth : int
        Depth of the deepest tree.
    """

    n_labels: int
    arity: int
    depth: int


def plot_objective(
    model: Estimator, *, levels: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """J during training at each level of the trees; lower is better.

    A line is the mean over the splits of a level, in all trees, weighted by their rows. J uses the
    integrity weight of each split.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
        Fitted.
    levels : sequence of int, optional
        Levels to show; the roots are level 0. By default all, or seven evenly spaced ones.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The Axes with the plot.
    """
    epochs = by_level(classifier_of(model).forest_).epoch_objective
    n_levels, n_epochs = epochs.shape
    if levels is None:
        shown = np.unique(np.linspace(0, n_levels - 1, min(n_levels, MAX_LINES)).round())
        levels = shown.astype(int).tolist()
    if wrong := [level for level in levels if not 0 <= level < n_levels]:
        raise ValueError(f"'levels' must be ints in [0, {n_levels - 1}]. Got {wrong[0]!r}.")
    ax = _axes(ax)
    marker = "o" if n_epochs <= MAX_MARKED_EPOCHS else None
    for level, colour in zip(levels, _sequence(len(levels)), strict=True):
        numbers = np.arange(1, n_epochs + 1)
        ax.plot(numbers, epochs[level], color=colour, marker=marker, markersize=3, label=str(level))
    _whole_numbers(ax.xaxis)
    ax.set(xlabel="epoch", ylabel="objective J")
    if len(levels):
        _legend_beside(ax, "level")
    return ax


def plot_splits(model: Estimator, *, ax: Axes | None = None) -> Axes:
    """Balance (the paper's beta) and purity (alpha) of the splits at each level, 0 being best.

    Lines are means over the splits of a level, in all trees, weighted by their rows; bands hold the
    middle half of the rows.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
        Fitted.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The Axes with the plot.
    """
    levels = by_level(classifier_of(model).forest_)
    ax = _axes(ax)
    numbers = np.arange(len(levels.splits))
    lines = {"balance β": levels.balancedness, "purity α": levels.purity}
    for (name, statistic), colour, marker in zip(lines.items(), SERIES, MARKERS, strict=False):
        ax.fill_between(
            numbers, statistic.low, statistic.high, color=colour, alpha=0.15, linewidth=0
        )
        ax.plot(numbers, statistic.mean, color=colour, marker=marker, markersize=3, label=name)
    _whole_numbers(ax.xaxis)
    ax.set(xlabel="level", ylabel="0 is best")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def plot_depth(models: Mapping[str, Estimator | DepthPoint], *, ax: Axes | None = None) -> Axes:
    """The depth of the deepest tree against log_M K, for several models.

    Parameters
    ----------
    models : dict of str to LdSMClassifier, TextTagger or DepthPoint
        Models by name; published numbers as `DepthPoint`, drawn hollow.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The Axes with the plot.
    """
    if not models:
        raise ValueError("'models' must name at least one model. Got none.")
    ax = _axes(ax)
    widest = 1.0
    for (name, model), colour, marker in _styled(models):
        point = _depth_point(model)
        x = balanced_depth(point.n_labels, point.arity)
        widest = max(widest, x)
        face = "none" if isinstance(model, DepthPoint) else colour
        ax.plot(x, point.depth, marker, color=colour, markerfacecolor=face, label=name)
    end = 1.1 * widest
    for factor, style in ((1, "-"), (2, "--"), (3, ":")):
        name = "$\\log_M K$" if factor == 1 else f"${factor}\\,\\log_M K$"
        line = [0, factor * end]
        ax.plot([0, end], line, style, color=GREY, linewidth=1, zorder=0, label=name)
    ax.set(xlabel="$\\log_M K$", ylabel="depth of the deepest tree", xlim=(0, end), ylim=(0, None))
    for text in _legend_beside(ax).get_texts():
        text.set_parse_math(text.get_text() not in models)  # a name may contain a $
    return ax


def plot_leaf_depths(model: Estimator, *, ax: Axes | None = None) -> Axes:
    """The depths of the leaves that training rows reach, with log_M K for comparison.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
        Fitted.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The Axes with the plot.
    """
    clf = classifier_of(model)
    shares = 100 * leaf_depths(clf.forest_)
    ax = _axes(ax)
    ax.bar(np.arange(len(shares)), shares, color=SKY, width=0.85)
    lines = {
        f"$\\log_{{{clf.forest_.arity}}} K$": balanced_depth(len(clf.classes_), clf.forest_.arity),
        "mean": float(np.sum(np.arange(len(shares)) * shares) / 100),
    }
    for (name, x), colour, style in zip(lines.items(), (ORANGE, BLUE), ("--", "-"), strict=True):
        ax.axvline(x, color=colour, linestyle=style, linewidth=1.4, label=f"{name} = {x:.1f}")
    _whole_numbers(ax.xaxis)
    ax.set(xlabel="depth of the leaf", ylabel="rows, %")
    ax.legend(frameon=False)
    return ax


def plot_metrics(curve: MetricCurve, *, ax: Axes | None = None) -> Axes:
    """Metrics against the size of the model, from `Evaluation.tree_curve` or elsewhere.

    If the curve has depths, a second axis at the top shows them. If it has metrics of the model
    with its second stage, thin dashed lines show those.

    Parameters
    ----------
    curve : MetricCurve
        The curve to plot.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The Axes with the plot.
    """
    _check_kind("curve", curve, MetricCurve, "tree_curve()")
    ax = _axes(ax)
    for (name, values), colour, marker in _styled(curve.metrics):
        ax.plot(curve.sizes, 100 * np.asarray(values), color=colour, marker=marker, markersize=4,
                label=name)  # fmt: skip
        if curve.whole is not None:
            ax.axhline(100 * curve.whole[name], color=colour, linestyle="--", linewidth=0.9)
    if curve.whole is not None:
        ax.plot([], [], color=GREY, linestyle="--", linewidth=0.9, label="with second stage")
    if len(curve.sizes) > 1:
        ax.set_xscale("log", base=2)
    _size_ticks(ax, curve.sizes, [f"{size:,}" for size in curve.sizes])
    ax.set(xlabel=curve.what, ylabel="%")
    _legend_beside(ax)
    if curve.depths is not None:
        top = ax.twiny()
        top.set_xscale(ax.get_xscale(), **({"base": 2} if ax.get_xscale() == "log" else {}))
        top.set_xlim(ax.get_xlim())
        _size_ticks(top, curve.sizes, [f"{depth}" for depth in curve.depths])
        top.set_xlabel("depth of the deepest tree")
        top.spines["right"].set_visible(False)
    return ax


def plot_single_trees(trees: SingleTrees, *, ax: Axes | None = None) -> Axes:
    """Single trees, with the range from the worst to the best, compared with the ensemble.

    Parameters
    ----------
    trees : SingleTrees
        The result of `Evaluation.single_trees`.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The Axes with the plot.
    """
    _check_kind("trees", trees, SingleTrees, "single_trees()")
    ax = _axes(ax)
    names = list(trees.single)
    means = np.array([100 * trees.single[name].mean() for name in names])
    ends = np.array([[trees.single[n].min(), trees.single[n].max()] for n in names]) * 100
    n_trees = len(next(iter(trees.single.values())))
    bars = {"single trees, worst to best": means, f"{n_trees} trees": _percents(trees.together)}
    if trees.whole is not None:
        bars["with second stage"] = _percents(trees.whole)
    width = 0.8 / len(bars)
    for i, ((name, heights), colour) in enumerate(
        zip(bars.items(), (SKY, BLUE, ORANGE), strict=False)
    ):
        x = np.arange(len(names)) + (i - (len(bars) - 1) / 2) * width
        spread = np.abs(ends.T - means) if i == 0 else None
        drawn = ax.bar(x, heights, 0.92 * width, yerr=spread, color=colour, label=name,
                       error_kw={"linewidth": 1, "capsize": 3, "ecolor": GREY})  # fmt: skip
        ax.bar_label(drawn, fmt="%.1f", padding=2, fontsize="x-small")
    ax.set_xticks(np.arange(len(names)), names)
    ax.set(ylabel="%")
    ax.margins(y=0.15)
    _legend_below(ax)
    return ax


def plot_thresholds(curve: ThresholdCurve, *, ax: Axes | None = None) -> Axes:
    """F1, precision and recall of the predicted sets against the threshold.

    Vertical lines show the threshold of the model and the best one.

    Parameters
    ----------
    curve : ThresholdCurve
        The result of `Evaluation.threshold_curve`.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The Axes with the plot.
    """
    _check_kind("curve", curve, ThresholdCurve, "threshold_curve()")
    ax = _axes(ax)
    for (name, values), colour in zip(curve.metrics.items(), SERIES, strict=False):
        width = 2.2 if name == "F1" else 1.2
        ax.plot(curve.thresholds, 100 * values, color=colour, linewidth=width, label=name)
    marks = {"best": (curve.best, ":"), "model": (curve.current, "--")}
    for name, (threshold, style) in marks.items():
        if threshold is not None:
            label = f"{name}: {threshold:.2f}"
            ax.axvline(threshold, color=GREY, linestyle=style, linewidth=1.2, label=label)
    ax.set(xlabel="threshold", ylabel="%", xlim=(0, 1), ylim=(0, 100))
    _legend_beside(ax)
    return ax


def plot_reliability(
    reliability: Reliability | Mapping[str, Reliability], *, ax: Axes | None = None
) -> Axes:
    """Scores against the share of true labels; the diagonal is perfect calibration.

    Parameters
    ----------
    reliability : Reliability, or dict of str to Reliability
        As returned by `Evaluation.reliability`; several by name. For a single one, bars show the
        share of the predictions in each bin.
    ax : Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    Axes
        The Axes with the plot.
    """
    several = reliability if isinstance(reliability, Mapping) else {"": reliability}
    if not several:
        raise ValueError("'reliability' must hold at least one Reliability. Got none.")
    for one in several.values():
        _check_kind("reliability", one, Reliability, "reliability()")
    ax = _axes(ax, (4.4, 4.2))
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, label="perfect")
    if not isinstance(reliability, Mapping):
        shares = reliability.counts / max(1, reliability.counts.sum())
        ax.bar(
            reliability.scores,
            shares,
            width=0.04,
            color=SKY,
            alpha=0.5,
            label="share of predictions",
        )
    for (name, one), colour, marker in _styled(several):
        error = f"ECE {100 * one.error:.1f} points"
        label = f"{name}, {error}" if name else error
        ax.plot(one.scores, one.frequencies, color=colour, marker=marker, markersize=4, label=label)
    ax.set(xlabel="score", ylabel="share of true labels", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    _legend_below(ax, columns=1 if several is reliability else 3)
    return ax


# -- helpers --------------------------------------------------------------------------------------


def import_matplotlib() -> Any:
    """Import matplotlib, or raise an error with the command that installs it."""
    try:
        import matplotlib.figure
    except ImportError:
        raise ImportError(
            'Figures need matplotlib, which is not installed: pip install "ldsm[plot]".'
        ) from None
    return matplotlib


def new_axes(size: tuple[float, float] = SIZE) -> Axes:
    """Axes of a new figure, outside of pyplot."""
    figure = import_matplotlib().figure.Figure(figsize=size, layout="constrained")
    ax: Axes = figure.subplots()
    return ax


def _check_kind(name: str, value: Any, kind: type, method: str) -> None:
    """Raise an error that names the method for the required input."""
    if isinstance(value, kind):
        return
    what = "an" if kind.__name__[0] in "AEIOU" else "a"
    raise ValueError(
        f"{name!r} must be {what} {kind.__name__}, as returned by Evaluation(model, X, y).{method} "
        f"of ldsm.evaluation. Got {type(value).__name__}."
    )


def _axes(ax: Axes | None, size: tuple[float, float] = SIZE) -> Axes:
    ax = new_axes(size) if ax is None else ax
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _depth_point(model: Estimator | DepthPoint) -> DepthPoint:
    if isinstance(model, DepthPoint):
        return model
    clf = classifier_of(model)
    depth = int(clf.forest_.node_depth().max())
    return DepthPoint(len(clf.classes_), clf.forest_.arity, depth)


def _styled(named: Mapping[str, Any]) -> Iterable[tuple[tuple[str, Any], str, str]]:
    """Entries, each with a colour and a marker."""
    for i, item in enumerate(named.items()):
        yield item, SERIES[i % len(SERIES)], MARKERS[i % len(MARKERS)]


def _sequence(n: int) -> list[Any]:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("levels", SEQUENCE)
    return [colours(position) for position in np.linspace(0, 1, max(n, 2))[:n]]


def _percents(metrics: Mapping[str, float]) -> Any:
    return 100 * np.array(list(metrics.values()))


def _size_ticks(ax: Axes, sizes: Any, names: Sequence[str]) -> None:
    ax.set_xticks(sizes, names)
    ax.set_xticks([], minor=True)


def _whole_numbers(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def _legend_beside(ax: Axes, title: str | None = None) -> Legend:
    return ax.legend(frameon=False, title=title, loc="center left", bbox_to_anchor=(1.0, 0.5),
              fontsize="small", title_fontsize="small")  # fmt: skip


def _legend_below(ax: Axes, columns: int = 3) -> None:
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=columns,
              fontsize="small")  # fmt: skip
