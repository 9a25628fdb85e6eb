"""``ldsm explain``: show why a row gets its labels: stages, words and the path through a tree."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from .._features.blocks import Blocks
from .._trees.row_paths import TreePath
from .._wording import shortened
from ..text.explanations import TagScore, TextExplainer, TextPath, Weighted
from .command import wrong_use
from .model import Model, no_label, open_model
from .options.model import EncoderOption, ModelArgument
from .options.reader import STDIN, Reader, names_a_path
from .screen import Screen

_WORDS = 10
_TITLE_WIDTH = 60  # characters of the text
_LABELS_OF_LEAF = 4


def explain_command(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    what: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="Text, - for stdin, or a data file (see --row)."),
    ],
    row: Annotated[int, typer.Option(min=0, help="Row of the data file, from 0.")] = 0,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of labels to explain.")] = 5,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL", help="Explain this label, predicted or not; may be repeated."
        ),
    ] = None,
    tree: Annotated[
        int | None,
        typer.Option(
            min=0, help="Tree to show. Default: the one with the highest share of the best label."
        ),
    ] = None,
    words: Annotated[int, typer.Option(min=1, help="Number of words to show per node.")] = 4,
    encoder: EncoderOption = None,
) -> None:
    """Explain the labels of a text or of a row in a data file.

    Shows the best labels and the number of trees that support each. With a second stage, it also
    shows what each stage adds to the log-odds of the scores, and the words for and against each
    label. The log-odds are relative to the mean over the shortlist (base); for a single label, the
    base is its score for a row without features. Finally, it shows the words that decided the path
    over all splits of all trees, and the path through one tree, with the deciding words of each
    split and the training rows of the leaf.

    Use --label to ask why a label was predicted, or why not.
    """
    if not what.strip():
        raise wrong_use("the text is empty.", "TEXT")
    opened = open_model(model, encoder=encoder)
    fitted = opened.fitted
    if names_a_path(what):
        reader = reader.as_trained(opened.fitted.training, Path(what))
    x, names, text = _row(opened, reader, what, row)
    explainer = TextExplainer(fitted, x, names)
    paths = explainer.paths
    if tree is not None and tree >= len(paths):
        raise wrong_use(f"must be a tree from 0 to {len(paths) - 1}, got {tree}.", "--tree")
    asked = None if label is None else _columns(opened, label)
    explanation = explainer.explanation(
        k, columns=asked, max_words=max(words, _WORDS), max_tags=_LABELS_OF_LEAF
    )
    for missing in (fitted.classes[i] for i in asked or () if explainer.place(i) is None):
        screen.note(f"{missing}: no tree and no feature of this row suggests it; its score is 0")
    if screen.json:
        screen.data(asdict(explanation))
        return
    votes = _votes(paths, fitted.classes.tolist())
    title = shortened(text, _TITLE_WIDTH)
    if not opened.reads_texts or names_a_path(what):
        title = f"row {row} of {what}" + (f": {title}" if title else "")
    rows = [
        [str(label), f"{score:.4f}", f"{len(votes.get(label, ()))} of {len(paths)}"]
        for label, score in explanation.tags
    ]
    screen.table(["label", "score", "trees"], rows, title=title)
    if explanation.caution is not None:
        screen.note(explanation.caution)
    kind = "word" if opened.reads_texts else "feature"
    if fitted.second_stage is not None and explanation.scores:
        _show_stages(screen, explanation.scores, kind, words)
    if asked is not None and fitted.second_stage is not None:
        _show_typical(screen, explainer, asked, kind)
    rows = [[word, f"{pull:+.3f}"] for word, pull in explanation.words]
    screen.table([kind, "pull"], rows, title=f"deciding {kind}s over all splits of the trees")
    if tree is None:
        surest = votes.get(explanation.tags[0][0], {}) if explanation.tags else {}
        tree = max(surest, key=lambda number: (surest[number], -number), default=0)
    columns = ["depth", "node", "to", "because of"]
    rows = _path_rows(opened, explanation.paths[tree], words)
    screen.table(columns, rows, title=f"path through tree {tree}", text=["because of"])


def _show_stages(screen: Screen, scores: Sequence[TagScore], kind: str, words: int) -> None:
    """Show what each stage adds to a label's score, and the words of its linear classifier."""
    stages = list(scores[0].shares)
    rows = [
        [str(s.tag), f"{sum(s.shares.values()):+.2f}", *(f"{s.shares[n]:+.2f}" for n in stages)]
        for s in scores
    ]
    screen.table(["label", "log-odds", *stages], rows, title="what each stage adds")
    if any(s.name is not None for s in scores):
        rows = [[str(s.tag), s.name[0], f"{s.name[1]:.0%}"] for s in scores if s.name is not None]
        columns = ["label", "name", "share found in the text"]
        screen.table(columns, rows, title="names that match", text=["label", "name"])
    if scores[0].bias is None:
        return
    rows = []
    for s in scores:
        in_favour = [word for word in s.words if word[1] > 0]
        against = [word for word in s.words if word[1] < 0]
        numbers = [f"{s.margin:+.2f}", f"{s.bias:+.2f}"]
        rows.append([str(s.tag), *numbers, _listed(in_favour, words), _listed(against, words)])
    columns = ["label", "margin", "bias", "for", "against"]
    title = f"{kind}s for and against each label, by its linear classifier"
    screen.table(columns, rows, title=title, text=["for", "against"])


def _show_typical(
    screen: Screen, explainer: TextExplainer, columns: Sequence[int], kind: str
) -> None:
    """Show the most typical words of some labels, and which of them occur in the row."""
    model = explainer.model
    if model.second_stage is None or model.second_stage.ranker is None:
        return
    rows = []
    for column in columns:
        best = explainer.typical(column, _WORDS)
        found = [word for word, is_here in best if is_here]
        missing = [word for word, is_here in best if not is_here]
        rows.append([str(model.classes[column]), ", ".join(found), ", ".join(missing)])
    title = f"most typical {kind}s of the label"
    heads = ["label", "in the row", "not in the row"]
    screen.table(heads, rows, title=title, text=heads[1:])


def _listed(words: Weighted, limit: int) -> str:
    return ", ".join(f"{word} {weight:+.2f}" for word, weight in words[:limit])


def _row(model: Model, reader: Reader, what: str, row: int) -> tuple[Blocks, Sequence[str], str]:
    """The row as the model reads it, the names of its features, and its text, if it has one."""
    made = reader.made_features(Path(what)) if names_a_path(what) else None
    if model.reads_texts and made is None:
        if Path(what) == STDIN and sys.stdin is None:
            raise wrong_use("stdin is closed.", "TEXT")
        text = sys.stdin.read() if Path(what) == STDIN else what
        if names_a_path(text):
            text = _document(reader, Path(text), row)
        return model.rows([text]), model.feature_names(), text
    path = Path(what)
    if not path.exists():
        raise wrong_use(f"the model reads features, but file {what!r} does not exist.", "TEXT")
    data = reader.load(path)
    if row >= len(data):
        raise wrong_use(f"{what} has rows 0 to {len(data) - 1}, got {row}.", "--row")
    model.checked(data)
    names = None if model.reads_texts else data.feature_names
    return model.rows(data.select([row])), names or model.feature_names(), ""


def _document(reader: Reader, path: Path, row: int) -> str:
    """One document of a file of texts."""
    number = -1
    for number, document in enumerate(reader.texts(path)):
        if number == row:
            return document.text
    raise wrong_use(f"{path} has rows 0 to {number}, got {row}.", "--row")


def _columns(model: Model, labels: Sequence[str]) -> list[int]:
    number = {str(label): i for i, label in enumerate(model.fitted.classes.tolist())}
    for label in labels:
        if label not in number:
            raise wrong_use(no_label(label, number), "--label")
    return [number[label] for label in labels]


def _votes(paths: Sequence[TreePath], classes: Sequence[Any]) -> dict[Any, dict[int, float]]:
    """For each label, the trees that reach a leaf with it, and its largest share there."""
    votes: dict[Any, dict[int, float]] = {}
    for path in paths:
        for leaf in path.leaves:
            for label, share in zip(leaf.labels.tolist(), leaf.shares.tolist(), strict=True):
                trees = votes.setdefault(classes[label], {})
                trees[path.tree] = max(share, trees.get(path.tree, 0.0))
    return votes


def _path_rows(model: Model, path: TextPath, words: int) -> list[list[str]]:
    """The path through one tree, one table row per node, depth first."""
    steps = {step.node: step for step in path.steps}
    leaves = {leaf.node: leaf for leaf in path.leaves}
    forest = model.fitted.forest
    start = int(forest.tree_offsets[path.tree])
    rows = []
    todo = [0]
    while todo:
        node = todo.pop()
        if node in leaves:
            leaf = leaves[node]
            shares = ", ".join(f"{tag} {100 * share:.0f} %" for tag, share in leaf.tags)
            rows.append([str(leaf.depth), str(node), "leaf", f"{leaf.rows:,} rows: {shares}"])
            continue
        step = steps[node]
        first = int(forest.first_child[start + node])
        children = [first + m for m in step.directions]
        to = ", ".join(map(str, children))
        rows.append([str(step.depth), str(node), to, _listed(step.words, words)])
        todo += reversed(children)
    return rows
