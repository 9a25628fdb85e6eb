"""Why a text gets its tags: the classifier's explanations with words instead of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from .._features.blocks import Blocks
from .._model.explain import LabelScore, RowExplainer, explain_paths, strongest_features
from .._model.fitted import FittedModel
from .._trees.row_paths import Leaf, Step, TreePath, pull_of
from .._wording import escaped

BIAS = "(bias)"  # the same for every text; no word contains brackets
_TREES_SHOWN = 3
_EVERY_REASON = 2**31 - 1
_SHOWN_MATCH = 1 / 3  # share of a name: less is hardly a match
_DEEPEST_INDENT = 60  # the lines of a very deep tree must not become ever longer

_LIKE = 3  # words that show what the vector of a tag means

_SHARED = (
    "score",
    "tree_score",
    "index_score",
    "margin",
    "distance",
    "shares",
    "bias",
    "name",
    "certainty",
    "meaning",
)  # with LabelScore

Weighted = list[tuple[str, float]]


@dataclass(frozen=True)
class WordStep:
    """One split on the text's path: where it went, and the words that sent it there.

    Attributes
    ----------
    node, depth : int
        Number of the node in its tree, and its distance from the root.
    directions : tuple of int
        The children the text went to, counted from 0.
    words : list of (word, pull)
        With their pull towards these children (below 0: away), strongest first.
    """

    node: int
    depth: int
    directions: tuple[int, ...]
    words: Weighted

    def __str__(self) -> str:
        to = " and ".join(map(str, self.directions))
        return f"node {self.node} -> {to}: {_listed(self.words, '+.2f')}"


@dataclass(frozen=True)
class TagLeaf:
    """One leaf that the text reached: its number of training texts and their tags' shares.

    Attributes
    ----------
    node, depth : int
        Number of the leaf in its tree, and its distance from the root.
    rows : int
        Training texts that reached it.
    tags : list of (tag, share)
        The tags of these texts, most frequent first.
    """

    node: int
    depth: int
    rows: int
    tags: Weighted

    def __str__(self) -> str:
        return f"leaf {self.node} ({self.rows} texts): {_listed(self.tags)}"


@dataclass(frozen=True)
class TextPath:
    """The text's path through one tree, from the root down.

    Attributes
    ----------
    tree : int
        Number of the tree.
    steps : list of WordStep
        The splits the text went through.
    leaves : list of TagLeaf
        Where it ended.
    """

    tree: int
    steps: list[WordStep]
    leaves: list[TagLeaf]

    def __str__(self) -> str:
        parts: list[WordStep | TagLeaf] = [*self.steps, *self.leaves]
        parts.sort(key=lambda part: part.node)
        lines = (f"{'  ' * min(part.depth + 1, _DEEPEST_INDENT)}{part}" for part in parts)
        return "\n".join([f"tree {self.tree}", *lines])


@dataclass(frozen=True)
class TagScore:
    """Where the score of one tag comes from; see `LdSMClassifier.explain_scores`.

    Attributes
    ----------
    tag : str
        The tag.
    score, tree_score : float
        The final score, and the trees' own.
    index_score, margin, distance : float or None
        Of the index, of the linear classifier and to the tag's centroid, where the model has them.
    shares : dict of str to float
        What each stage adds to the log-odds of the score.
    bias : float or None
        The part of the margin that is the same for every text.
    words : list of (word, contribution)
        Words for the tag (above 0) and against it in its linear classifier, strongest first.
    name : (str, float) or None
        The name of the tag that the text matches best, and how much of it the text has.
    certainty : float
        How far the text has enough evidence to rely on the stages, from 0 (none: the score is the
        share of the training texts with the tag) to 1.
    meaning : float or None
        The score of the text's meaning for the tag, where the model uses an encoder.
    like : tuple of str
        With an encoder: the words of training texts that speak most for the tag.
    """

    tag: str
    score: float
    tree_score: float
    index_score: float | None
    margin: float | None
    distance: float | None
    shares: dict[str, float]
    bias: float | None
    words: Weighted
    name: tuple[str, float] | None = None
    certainty: float = 1.0
    meaning: float | None = None
    like: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{escaped(self.tag)}: {_listed(list(self.shares.items()), '+.2f')}"]
        if self.bias is not None:
            parts.append(f"words: {_listed(self.words, '+.2f')}")
        if self.name is not None and self.name[1] >= _SHOWN_MATCH:
            parts.append(f"the name {escaped(self.name[0])!r} matches by {self.name[1]:.0%}")
        if self.like and self.shares.get("meaning", 0) > 0:
            parts.append(f"its meaning is like that of {', '.join(map(escaped, self.like))}")
        return "; ".join(parts)


@dataclass(frozen=True)
class TextExplanation:
    """Why a text gets its tags; ``print`` shows it.

    Attributes
    ----------
    tags : list of (tag, score)
        The best tags, by all stages together.
    scores : list of TagScore
        Where the scores of these tags come from.
    words : list of (word, pull)
        The words that decided, over all splits of all trees, strongest first.
    paths : list of TextPath
        The text's path through each tree.
    """

    tags: Weighted
    scores: list[TagScore]
    words: Weighted
    paths: list[TextPath]

    @property
    def caution(self) -> str | None:
        """What to know about the scores of a text with little or no evidence."""
        certainty = max((score.certainty for score in self.scores), default=1.0)
        if certainty <= 0:
            return "no known word: the scores are the shares of the training texts with each tag"
        if certainty < 1:
            return (
                "little to go by: the scores lie between the model's and the shares of the "
                "training texts with each tag"
            )
        return None

    def __str__(self) -> str:
        lines = [f"tags: {_listed(self.tags)}"]
        if self.caution is not None:
            lines.append(self.caution)
        # With the trees alone there is nothing to add to the score.
        lines += [f"  {score}" for score in self.scores if len(score.shares) > 1]
        lines.append(f"words: {_listed(self.words, '+.2f')}")
        lines += map(str, self.paths[:_TREES_SHOWN])
        if len(self.paths) > _TREES_SHOWN:
            lines.append(f"... and {len(self.paths) - _TREES_SHOWN} more trees")
        return "\n".join(lines)


class TextExplainer:
    """Explains one row by words, or by the names of its features.

    Its shortlist and its paths through the trees are computed once, for all questions.
    """

    def __init__(self, model: FittedModel, row: Blocks, words: Sequence[str]) -> None:
        self.model, self.row, self.words = model, row, words
        self._scores = RowExplainer(model, row)

    def explanation(
        self,
        k: int,
        *,
        max_words: int,
        max_tags: int,
        columns: Sequence[int] | None = None,
    ) -> TextExplanation:
        """Why the k best labels, or those of `columns`, get their scores.

        At most `max_words` are shown in each place, and `max_tags` for each leaf.
        """
        if columns is None:
            best = self._scores.best(k, max_words)
        else:
            best = self._scores.among(columns, max_words)
        tags = [(score.label, score.score) for score in best]
        scores = [self._in_words(score) for score in best]
        classes = self.model.classes.tolist()
        paths = []
        for path, pulls in zip(self.paths, self._pulls, strict=True):
            steps = [
                WordStep(step.node, step.depth, step.directions, words[:max_words])
                for step, words in zip(path.steps, pulls, strict=True)
            ]
            leaves = [_named(leaf, classes, max_tags) for leaf in path.leaves]
            paths.append(TextPath(path.tree, steps, leaves))
        return TextExplanation(tags, scores, self.deciding(max_words), paths)

    def tag(self, column: int, max_words: int) -> TagScore:
        """Where the score of one label comes from, even if it is 0."""
        return self._in_words(self._scores.label(column, max_words))

    def place(self, column: int) -> int | None:
        """The place of a label among those with a score, from 1; None if it has none."""
        return self._scores.place(column)

    def typical(self, column: int, most: int) -> list[tuple[str, bool]]:
        """The words that speak most for a label, and whether the row has them."""
        features = strongest_features(self.model, column, most)
        return [(self.words[feature], feature in self._present) for feature in features]

    def deciding(self, most: int) -> Weighted:
        """The words that decided, over all splits of all trees, strongest first."""
        total: dict[str, float] = {}
        for pulls in self._pulls:
            for word, pull in chain.from_iterable(pulls):
                total[word] = total.get(word, 0.0) + pull / len(self.paths)
        total.pop(BIAS, None)
        return sorted(total.items(), key=lambda item: (-abs(item[1]), item[0]))[:most]

    @cached_property
    def paths(self) -> list[TreePath]:
        """The row's path through every tree, with all reasons."""
        return explain_paths(self.model, self.row, _EVERY_REASON)

    @cached_property
    def _pulls(self) -> list[list[Weighted]]:
        """For each split on each path, the words that sent the row there."""
        return [[self._pull_of_words(step) for step in path.steps] for path in self.paths]

    @cached_property
    def _present(self) -> set[int]:
        """The features that the row has."""
        return set(self.row.joined().indices.tolist())

    def _in_words(self, score: LabelScore) -> TagScore:
        words = [(self.words[feature], part) for feature, part in score.reasons]
        parts = {name: value for name, value in vars(score).items() if name in _SHARED}
        like: tuple[str, ...] = ()
        if score.meaning is not None:
            features = strongest_features(self.model, score.column, _LIKE)
            like = tuple(self.words[feature] for feature in features)
        return TagScore(tag=score.label, words=words, like=like, **parts)

    def _pull_of_words(self, step: Step) -> Weighted:
        """How far each word favoured the directions taken over the mean of the others."""
        factors = pull_of(step.directions, len(step.margins))
        with np.errstate(over="ignore", invalid="ignore"):  # a damaged file may give anything
            return [
                (
                    self.words[reason.feature] if reason.feature < len(self.words) else BIAS,
                    float(reason.contributions @ factors),
                )
                for reason in step.reasons
            ]


def _named(leaf: Leaf, classes: Sequence[Any], max_tags: int) -> TagLeaf:
    pairs = zip(leaf.labels[:max_tags].tolist(), leaf.shares[:max_tags].tolist(), strict=True)
    return TagLeaf(leaf.node, leaf.depth, leaf.rows, [(classes[i], share) for i, share in pairs])


def _listed(pairs: Weighted, form: str = ".2f") -> str:
    return ", ".join(f"{escaped(str(name))} {value:{form}}" for name, value in pairs) or "none"
