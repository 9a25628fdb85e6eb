"""The report page: results first, the model and its trees last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._storage.paths import PathLike
from .._storage.text_files import writing
from ..evaluation import Evaluation
from ..evaluation.alignment import Estimator, classifier_of
from ..plotting import import_matplotlib
from ..text.tagger import TextTagger
from .examples import examples
from .figures import reliability_figure
from .html import Markup, element, page
from .internals import internals, model_section
from .label_table import costly_labels, label_table
from .labels import Sets, count_labels
from .results import head, results, threshold


@dataclass(frozen=True)
class Report:
    """A finished report.

    Attributes
    ----------
    html : str
        The page: one self-contained document. Its only script searches and sorts a table.
    metrics : dict of str to float
        All metrics, with the names of `ldsm.evaluation.Scores.as_dict`.
    """

    html: str
    metrics: dict[str, float]

    def save(self, path: PathLike) -> None:
        """Write the page to a file, completely or not at all.

        Parameters
        ----------
        path : path
            Usually with the suffix ``.html``.
        """
        with writing(path) as file:
            file.write(self.html.encode("utf-8", "backslashreplace"))


def make_report(
    model: Estimator,
    X: Any,
    y: Any = None,
    *,
    model_name: str = "the model",
    data_name: str = "held-out rows",
    feature_names: Sequence[str] | None = None,
) -> Report:
    """Evaluate a model on labelled rows not used in training, and report on one HTML page.

    The same model and rows give the same page. Needs matplotlib: ``pip install "ldsm[plot]"``.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
        Fitted.
    X : matrix, texts or Dataset
        Rows or texts; a Dataset includes its labels. See `ldsm.evaluation.Evaluation`.
    y : labels, optional
        In any form that `fit` accepts.
    model_name, data_name : str
        Names for the page.
    feature_names : sequence of str, optional
        For models that read features and have no names for them.

    Examples
    --------
    >>> from ldsm import LdSMClassifier, datasets
    >>> train = datasets.make_xmc(200, 40, 10, seed=0)
    >>> test = datasets.make_xmc(50, 40, 10, seed=0, part="test")
    >>> report = make_report(LdSMClassifier(3, random_state=0).fit(train), test)
    >>> report.save("report.html")
    >>> report.html[:15], sorted(report.metrics)[:2]
    ('<!DOCTYPE html>', ['best_precision@1', 'best_precision@3'])
    """
    import_matplotlib()  # fail early if it is missing
    evaluation = Evaluation(model, X, y, feature_names=feature_names)
    scores = evaluation.scores(propensities=evaluation.model.propensities())
    sets = Sets.of(evaluation)
    counts = count_labels(evaluation, sets)
    title = f"{model_name} on {data_name}"
    params = classifier_of(model).get_params(deep=False)
    words = isinstance(model, TextTagger)
    parts = [
        head(title, evaluation, scores, reads_texts=words),
        _section("Results", results(evaluation, scores)),
        *([_section("Threshold", *threshold(evaluation, scores))] if scores.sets else []),
        _section("Labels that cost most", *costly_labels(evaluation, sets, counts)),
        _section("All labels", *label_table(evaluation, counts)),
        _section("Examples", examples(evaluation)),
        _section("Calibration", reliability_figure(evaluation)),
        _section("The model", model_section(evaluation, model.fingerprint_, reads_texts=words)),
        _internals(*internals(evaluation, model, counts, params)),
    ]
    return Report(page(title, *parts), scores.as_dict())


def _section(title: str, *parts: Markup) -> Markup:
    return element("section", element("h2", title), *parts)


def _internals(*parts: Markup) -> Markup:
    title = element("summary", element("h2", "Trees and internals"))
    return element("section", element("details", title, *parts))
