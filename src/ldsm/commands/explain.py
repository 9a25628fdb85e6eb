"""``ldsm explain``: why these labels: the words, the path through the trees, the leaves."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ..explain import TreePath
from ..text_explain import TagLeaf, TextPath, in_words
from .command import wrong_use
from .model import Model, ModelArgument, open_model
from .reader import STDIN, Reader
from .screen import Screen, shortened

_ALL_REASONS = 1_000_000  # of a node: no more than the features that the row has
_WORDS = 10
_LABELS_OF_LEAF = 4


def explain_command(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    what: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="The text, - for stdin; the data file if the model reads features."
        ),
    ],
    row: Annotated[int, typer.Option(min=0, help="Row of the data file, from 0.")] = 0,
    k: Annotated[int, typer.Option("-k", min=1, help="Labels to explain.")] = 5,
    tree: Annotated[
        int | None, typer.Option(min=0, help="Tree to show, by default the one surest of the best.")
    ] = None,
    words: Annotated[int, typer.Option(min=1, help="Words to show for each node.")] = 4,
) -> None:
    """Explain the labels of a text, or of a row of a data file.

    Three answers: the best labels and how many trees speak for each; the words that pulled the text
    its way, over all splits of all trees; and the way through one tree, with the words that decided
    at each split and the training rows of the leaf at its end.
    """
    opened = open_model(model)
    X, names = _row(opened, reader, what, row)
    paths = opened.clf.explain(X, max_reasons=_ALL_REASONS)
    if tree is not None and tree >= len(paths):
        raise wrong_use(f"the model has trees 0 to {len(paths) - 1}, got {tree}.", "--tree")
    labels, scores = opened.clf.predict_topk(X, k=min(k, len(opened.clf.classes_)))
    best = list(zip(labels[0].tolist(), scores[0].tolist(), strict=True))
    classes = opened.clf.classes_.tolist()
    told = in_words(
        paths, best, names, classes, max_words=max(words, _WORDS), max_tags=_LABELS_OF_LEAF
    )
    if screen.json:
        screen.data(asdict(told))
        return
    votes = _votes(paths, classes)
    title = f"row {row} of {what}" if opened.tagger is None else shortened(what, 60)
    rows = [
        [str(label), f"{score:.4f}", f"{len(votes.get(label, ()))} of {len(paths)}"]
        for label, score in best
    ]
    screen.table(["label", "score", "trees"], rows, title=title)
    rows = [[word, f"{pull:+.3f}"] for word, pull in told.words]
    kind = "feature" if opened.tagger is None else "word"
    screen.table([kind, "pull"], rows, title="what decided, over all splits")
    if tree is None:
        surest = votes.get(best[0][0], {})
        tree = max(surest, key=lambda number: (surest[number], -number), default=0)
    columns = ["depth", "node", "to", "because of"]
    rows = _way(opened, told.paths[tree], words)
    screen.table(columns, rows, title=f"the way through tree {tree}", text=["because of"])


def _row(model: Model, reader: Reader, what: str, row: int) -> tuple[Any, Sequence[str]]:
    """The row as the trees read it, and the names of its features."""
    if model.tagger is not None:
        text = sys.stdin.read() if Path(what) == STDIN else what
        return model.features([text]), model.words()
    path = Path(what)
    if not path.exists():
        raise wrong_use(f"the model reads features, and path {what!r} does not exist.", "TEXT")
    data = reader.load(path)
    if row >= len(data):
        raise wrong_use(f"{what} has rows 0 to {len(data) - 1}, got {row}.", "--row")
    names = data.feature_names or [str(i) for i in range(model.clf.n_features_in_)]
    return model.features(data.select([row])), names


def _votes(paths: Sequence[TreePath], classes: Sequence[Any]) -> dict[Any, dict[int, float]]:
    """For each label the trees with a leaf that holds it, and its largest share there."""
    found: dict[Any, dict[int, float]] = {}
    for path in paths:
        for leaf in path.leaves:
            for label, share in zip(leaf.labels.tolist(), leaf.shares.tolist(), strict=True):
                trees = found.setdefault(classes[label], {})
                trees[path.tree] = max(share, trees.get(path.tree, 0.0))
    return found


def _way(model: Model, path: TextPath, words: int) -> list[list[str]]:
    """The way through one tree, a row for each node, depth first."""
    steps = {step.node: step for step in path.steps}
    leaves = {leaf.node: leaf for leaf in path.leaves}
    forest = model.clf.forest_
    start = int(forest.tree_offsets[path.tree])
    rows = []
    todo = [0]
    while todo:
        node = todo.pop()
        if node in leaves:
            rows.append(_leaf_row(leaves[node]))
            continue
        step = steps[node]
        first = int(forest.first_child[start + node])
        children = [first + m for m in step.directions]
        reasons = ", ".join(f"{word} {pull:+.2f}" for word, pull in step.words[:words])
        rows.append([str(step.depth), str(node), ", ".join(map(str, children)), reasons])
        todo += reversed(children)
    return rows


def _leaf_row(leaf: TagLeaf) -> list[str]:
    shares = ", ".join(f"{tag} {100 * share:.0f} %" for tag, share in leaf.tags)
    return [str(leaf.depth), str(leaf.node), "leaf", f"{leaf.rows:,} rows: {shares}"]
