"""A few held-out rows, told apart by how sure the model is and whether it is right, explained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._runtime.wording import shortened
from ..evaluation.held_out import HeldOut
from ..text.explanations import TextExplanation, Weighted, in_words
from .html import Markup, element, joined, table

MOST_WORDS = 6
NAME_WIDTH = 60  # characters of a label
_EVERY_REASON = 2**31 - 1
_CHARACTERS = 420  # of a document that are shown


def examples(held_out: HeldOut) -> Iterator[Markup]:
    """Each example's heading, the row, its labels and why."""
    k = held_out.top[0].shape[1]
    for title, row in _chosen(held_out).items():
        X = held_out.row(row)
        told = in_words(
            held_out.clf.explain(X, max_reasons=_EVERY_REASON),
            held_out.clf.explain_scores(X, k, max_reasons=_EVERY_REASON),
            held_out.feature_names,
            held_out.clf.classes_.tolist(),
            max_words=_EVERY_REASON,
            max_tags=1,
        )
        yield element("h3", f"{title}: row {row:,}")
        yield _content(held_out, row)
        yield _labels(held_out, row, told)
        yield _trees(held_out, told)


def _chosen(held_out: HeldOut) -> dict[str, int]:
    """Rows by what they are examples of; equals: the first."""
    columns, scores = held_out.top
    best = scores[:, 0].astype(np.float64)
    truth = held_out.truth
    right = np.asarray(truth[np.arange(held_out.n_rows), columns[:, 0]]).ravel() > 0
    labelled = np.diff(truth.indptr) > 0
    order = {
        "Surest and right": np.where(right, -best, np.inf),
        "Surest and wrong": np.where(labelled & ~right, -best, np.inf),
        "A typical score": np.abs(best - np.median(best)),
        "Least sure": best,
    }
    found: dict[str, int] = {}
    for title, key in order.items():
        key[list(found.values())] = np.inf
        row = int(np.argmin(key))
        if key[row] < np.inf:
            found[title] = row
    return found


def _content(held_out: HeldOut, row: int) -> Markup:
    if held_out.texts is not None:
        return element("blockquote", shortened(held_out.texts[row], _CHARACTERS) or "(empty)")
    n = int(held_out.x.indptr[row + 1] - held_out.x.indptr[row])
    return element("p", f"{n:,} feature{'s' * (n != 1)} other than 0.", class_="note")


def _labels(held_out: HeldOut, row: int, told: TextExplanation) -> Markup:
    truth = held_out.truth
    true = held_out.clf.classes_[truth.indices[truth.indptr[row] : truth.indptr[row + 1]]].tolist()
    kind = "features" if held_out.texts is None else "words"
    stages = list(told.scores[0].shares) if told.scores else []
    linear = bool(told.scores) and told.scores[0].bias is not None
    heads = ["label", "true", "score"]
    heads += stages if len(stages) > 1 else []
    heads += [f"{kind} for and against it"] if linear else []
    rows = []
    for s in told.scores:
        cells: list[Any] = [
            shortened(str(s.tag), NAME_WIDTH),
            _yes_or_no(s.tag in true),
            f"{s.score:.3f}",
        ]
        cells += [f"{s.shares[name]:+.2f}" for name in stages] if len(stages) > 1 else []
        rows.append([*cells, _listed(s.words)] if linear else cells)
    said = {s.tag for s in told.scores}
    missed = [shortened(str(label), NAME_WIDTH) for label in true if label not in said]
    if missed:
        text = f"True labels that are missing here: {', '.join(missed)}."
    else:
        text = "All its true labels are here." if true else "The row has no label."
    shown = table(heads, rows, text=["true", heads[-1]] if linear else ["true"])
    return joined([shown, element("p", text, class_="note")])


def _trees(held_out: HeldOut, told: TextExplanation) -> Markup:
    leaves = [leaf for path in told.paths for leaf in path.leaves]
    depth = np.mean([leaf.depth for leaf in leaves])
    text = (
        f"In the trees: {len(leaves)} leaves in {len(told.paths)} trees, at a mean depth of "
        f"{depth:.1f}. What pulled the row its way most: {_listed(told.words) or 'nothing'}."
    )
    return element("p", text, class_="note")


def _yes_or_no(value: bool) -> Markup:
    return element("span", "yes" if value else "no", class_="good" if value else "bad")


def _listed(pairs: Weighted) -> str:
    return ", ".join(f"{shortened(word, 40)} {part:+.2f}" for word, part in pairs[:MOST_WORDS])
