"""What a fitted tagger holds: replaced as a whole, so that other threads never see a mixture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._execution.threads import state_of
from .._features.blocks import Blocks, stacked
from .._storage.strings import Strings
from ..classifier import LdSMClassifier
from ..datasets.dataset import Dataset
from .corpus import in_chunks, read_pairs, read_texts, tags_of
from .encoders.encoder import FittedEncoder
from .explanations import TextExplainer
from .features import TextFeatures
from .training import has_made_features, made_blocks

if TYPE_CHECKING:
    from .tagger import TextTagger

CHUNK = 1024  # documents vectorized together; no more of a stream is held in memory


class RareTags(NamedTuple):
    """Tags that were not learned, and their documents."""

    names: Strings
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> RareTags:
        return cls(Strings.pack(counts), np.array(list(counts.values()), dtype=np.int64))

    def as_dict(self) -> dict[str, int]:
        return dict(zip(self.names, self.counts.tolist(), strict=True))


class TagTitles(NamedTuple):
    """The names of tags for people, from a vocabulary, if they differ from the tags."""

    tags: Strings
    titles: Strings

    @classmethod
    def of(cls, names: Mapping[str, Sequence[str]] | None) -> TagTitles:
        """The first name of each tag."""
        first = {tag: own[0] for tag, own in (names or {}).items() if own and own[0] != tag}
        return cls(Strings.pack(first), Strings.pack(first.values()))

    def as_dict(self) -> dict[str, str]:
        return dict(zip(self.tags, self.titles, strict=True))

    def relabelled(self, names: Mapping[str, str | None]) -> TagTitles:
        """With other names for some tags; None for those that are dropped."""
        titles = {names.get(tag, tag): title for tag, title in self.as_dict().items()}
        return TagTitles.of({tag: [title] for tag, title in titles.items() if tag is not None})


class TagGroups:
    """Which tags belong to which groups, in the form of a model file."""

    def __init__(
        self, tags: Strings, groups: Strings, tag: NDArray[np.int32], group: NDArray[np.int32]
    ) -> None:
        self.tags, self.groups = tags, groups
        self.tag, self.group = tag, group  # a number of each, for every member of a group
        if len(tag) != len(group):
            raise ValueError("its groups of tags have a member without a tag")
        for name, numbers, names in (("tag", tag, tags), ("group", group, groups)):
            if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(names):
                raise ValueError(f"its groups of tags have a {name} that does not exist")

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_members")

    @classmethod
    def of(cls, groups: Mapping[str, Iterable[str]]) -> TagGroups:
        """The groups of each tag."""
        number: dict[str, int] = {}
        pairs = [
            (place, number.setdefault(group, len(number)))
            for place, its in enumerate(groups.values())
            for group in its
        ]
        tag, group = np.array(pairs, dtype=np.int32).reshape(-1, 2).T.copy()
        return cls(Strings.pack(groups), Strings.pack(number), tag, group)

    def as_dict(self) -> dict[str, list[str]]:
        """The tags of each group."""
        return {group: [*tags] for group, tags in self._members.items()}

    @cached_property
    def _members(self) -> dict[str, list[str]]:
        tags, groups = list(self.tags), list(self.groups)
        members: dict[str, list[str]] = {group: [] for group in sorted(groups)}
        for tag, group in zip(self.tag.tolist(), self.group.tolist(), strict=True):
            members[groups[group]].append(tags[tag])
        return {group: its for group, its in members.items() if its}

    def relabelled(self, names: Mapping[str, str | None]) -> TagGroups:
        """With other names for some tags; None for those that are dropped."""
        groups: dict[str, list[str]] = {}
        for group, tags in self._members.items():
            for tag in tags:
                if (name := names.get(tag, tag)) is not None:
                    groups.setdefault(name, []).append(group)
        return TagGroups.of(groups)

    def expanded(self, chosen: Any, tags: Mapping[str, int]) -> Any:
        """Tags instead of the names of groups among the chosen ones; a tag is always itself."""
        if chosen is None or isinstance(chosen, str) or not isinstance(chosen, Iterable):
            return chosen
        return [
            tag
            for name in chosen
            for tag in ([name] if name in tags else self._members.get(name, [name]))
        ]


def fitted_text(tagger: TextTagger) -> FittedText:
    """What a tagger holds. Take it once, because another thread may replace it."""
    check_is_fitted(tagger, "fitted_")
    return tagger.fitted_


def hold_text(tagger: TextTagger, fitted: FittedText) -> TextTagger:
    """Make the tagger answer by `fitted`."""
    tagger.fitted_ = fitted
    return tagger


class FittedText(NamedTuple):
    """The classifier, how texts become its features, and more facts about tags."""

    classifier: LdSMClassifier
    features: TextFeatures
    rare: RareTags
    titles: TagTitles
    groups: TagGroups
    encoder: FittedEncoder | None = None

    def require_encoder(self, remedy: str) -> None:
        """Raise an error, with how to give it, if predictions need an encoder that is missing."""
        if self.encoder is None or self.encoder.encoder is not None:
            return
        if self.classifier.model_.reads_dense:
            raise self.encoder.missing(remedy)

    def blocks(self, texts: list[str], first: int = 0) -> Blocks:
        """The features of documents; errors of the encoder count them from `first`."""
        x = self.features.blocks(texts)
        if self.encoder is None or not self.classifier.model_.reads_dense:
            return x
        return x.with_dense(self.encoder.rows(texts, first))

    def rows(self, texts: Any) -> Blocks:
        """The features of documents, also of those that were vectorized earlier."""
        if has_made_features(texts):
            return self._made(texts)
        chunks = list(self.chunks(texts))
        if not chunks:
            raise ValueError("texts must hold at least one document. Got none.")
        return stacked(chunks)

    def chunks(self, texts: Any) -> Iterator[Blocks]:
        """The features of documents, some at a time."""
        # Not a generator: wrong arguments are refused at the call.
        if has_made_features(texts):
            return self._made(texts).chunks(CHUNK)
        return map(self.blocks, in_chunks(read_texts(texts), CHUNK), count(0, CHUNK))

    def _made(self, data: Dataset) -> Blocks:
        """Features that were made earlier; a ValueError if some that the model needs are not."""
        dense = None
        if self.encoder is not None and self.classifier.model_.reads_dense:
            dense = self.encoder.made_earlier(data)
        return made_blocks(self.features, data).with_dense(dense)

    def with_tags(self, texts: Any, tags: Any) -> tuple[Blocks, list[list[str]]]:
        """The features of documents, and their tags."""
        if has_made_features(texts) and tags is None:
            return self.rows(texts), list(tags_of(texts))
        true: list[list[str]] = []

        def documents() -> Iterator[str]:
            for text, names in read_pairs(texts, tags):
                true.append(names)
                yield text

        return self.rows(documents()), true

    def explainer(self, text: str) -> TextExplainer:
        """Explains why a document gets its tags."""
        row = self.blocks([text])
        return TextExplainer(self.classifier.model_, row, self.features.names)

    def chosen(self, only: Any, without: Any) -> dict[str, Any]:
        """The choice of a request, with tags instead of groups."""
        tags, groups = self.classifier.model_.columns, self.groups
        return {
            "only": groups.expanded(only, tags),
            "without": groups.expanded(without, tags),
        }

    def allowed(self, only: Any, without: Any) -> NDArray[np.uint8] | None:
        """1 for each tag that may be predicted; None if all may."""
        return self.classifier.model_.allowed(**self.chosen(only, without))
