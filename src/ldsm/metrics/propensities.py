"""Propensities of labels by the model of Jain et al. (KDD 2016)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from .inputs import common_width, fail, positive, read_labels, widen

_Floats = npt.NDArray[np.float64]
_GENERAL, _WIKIPEDIA, _AMAZON = (0.55, 1.5), (0.5, 0.4), (0.6, 2.6)
# Family names, optionally followed by "titles" and a size: "amazontitles670k".
_FAMILIES = {
    **dict.fromkeys(("amazoncat", "bibtex", "delicious", "eurlex", "mediamill"), _GENERAL),
    **dict.fromkeys(("rcv1x", "wiki10", "wikiseealso"), _GENERAL),
    **dict.fromkeys(("wikilshtc", "wikipedia", "wikipedialarge", "wikipedialshtc"), _WIKIPEDIA),
    **dict.fromkeys(("wiki500k", "wikititles500k"), _WIKIPEDIA),
    "amazon": _AMAZON,
}
# The model needs ln N > 1: with fewer training rows there are no propensities.
_FEWEST_ROWS = 3


def propensities(
    y_train: Any,
    *,
    dataset: str | None = None,
    a: float | None = None,
    b: float | None = None,
    n_labels: int | None = None,
) -> _Floats:
    """Propensity of every label by the model of Jain, Prabhu and Varma (KDD 2016).

    Annotators miss labels, especially rare ones. A label's propensity is the estimated chance that
    it was recorded where it applies, ``p = 1 / (1 + C (n + B)^-A)`` for a label on n of the N
    training rows, ``C = (ln N - 1)(B + 1)^A``.

    A label with one training row always gets ``1 / ln N``; A and B control how the propensity rises
    from there towards 1. **A** is the speed: with A near 0, all labels get almost the same
    propensity; with a large A, even labels of medium frequency count as nearly always recorded.
    **B** is the delay: it is added to every count, so labels with far fewer rows than B are treated
    alike. Neither can be computed from your own labels: the authors estimated them on Wikipedia and
    Amazon data, where missing labels could be counted. The general values are the means of the two.
    Use a data set's own values to compare with published tables, and the general ones otherwise.

    Parameters
    ----------
    y_train : 0/1 matrix or list of label-id lists
        The labels of all training rows, at least three.
    dataset : str, optional
        Use the A and B of this data set: 0.5, 0.4 for WikiLSHTC-325K and Wikipedia-500K, 0.6, 2.6
        for the Amazon sets (such as ``"amazon-670k"``), the general 0.55, 1.5 for AmazonCat and the
        other sets of the repository. Case and punctuation are ignored.
    a, b : float, optional
        A and B; give both or neither. The defaults are 0.55 and 1.5.
    n_labels : int, optional
        Number of labels, if `y_train` is lists and may lack the last ones.

    Returns
    -------
    ndarray of shape (n_labels,)
        Numbers in (0, 1).

    Examples
    --------
    >>> propensities([[0], [0, 1], [0], [0, 2]], dataset="Amazon-670K").round(3)
    array([0.788, 0.721, 0.721])
    """
    train, fixed = read_labels(y_train, "y_train")
    if n_labels is not None:
        sizes = {"n_labels": (positive("n_labels", n_labels), True)}
        train = widen(train, common_width(sizes | {"y_train": (train.shape[1], fixed)}))
    counts, n_rows = np.bincount(train.indices, minlength=train.shape[1]), train.shape[0]
    result = propensities_from_counts(counts, n_rows, dataset=dataset, a=a, b=b)
    if result is None:
        fail("y_train", f"{n_rows} rows", "of at least 3 rows: the model needs ln N > 1")
    return result


def propensities_from_counts(
    counts: npt.NDArray[np.integer[Any]],
    n_rows: int,
    *,
    dataset: str | None = None,
    a: float | None = None,
    b: float | None = None,
) -> _Floats | None:
    """Like `propensities`, but from the label counts of `n_rows` training rows.

    None for fewer than three training rows. (In a file, `n_rows` may be less than a label count.)
    """
    a, b = _constants(dataset, a, b)
    n_rows = max(n_rows, int(counts.max(initial=0)))
    if n_rows < _FEWEST_ROWS:
        return None
    c = (np.log(n_rows) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + c * (counts + b) ** -a))


def _constants(dataset: str | None, a: float | None, b: float | None) -> tuple[float, float]:
    if dataset is None and a is None and b is None:
        return _GENERAL
    if dataset is None:
        if a is None or b is None or not (0 < a < np.inf and 0 < b < np.inf):
            fail("a, b", (a, b), "two positive numbers")
        return float(a), float(b)
    if a is not None or b is not None:
        fail("dataset", dataset, "None if a and b are given")
    plain = re.sub(r"[^a-z0-9]", "", dataset.lower()).removeprefix("lf")
    for family, values in _FAMILIES.items():
        if re.fullmatch(rf"{family}(titles)?(\d+[km]?)?", plain):
            return values
    fail("dataset", dataset, f"a name that starts with one of {', '.join(_FAMILIES)}")
