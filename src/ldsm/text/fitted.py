"""What a fitted tagger holds: replaced as a whole, so that other threads never see a mixture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._features.blocks import Blocks, stacked
from .._storage.strings import Strings
from ..classifier import LdSMClassifier
from .corpus import in_chunks, read_pairs, read_texts, tags_of
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
    """What people call tags, where that is not the tag itself, from a vocabulary."""

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


def fitted_text(tagger: TextTagger) -> FittedText:
    """What a tagger holds, to be taken once: another thread may replace it."""
    check_is_fitted(tagger, "fitted_")
    return tagger.fitted_


def hold_text(tagger: TextTagger, fitted: FittedText) -> TextTagger:
    """Make the tagger answer by `fitted`."""
    tagger.fitted_ = fitted
    return tagger


class FittedText(NamedTuple):
    """The classifier, how texts become its features, tags that were not learned, and titles."""

    classifier: LdSMClassifier
    features: TextFeatures
    rare: RareTags
    titles: TagTitles

    def rows(self, texts: Any) -> Blocks:
        """The features of documents, also of those that were vectorized earlier."""
        if has_made_features(texts):
            return made_blocks(self.features, texts)
        chunks = list(self.chunks(texts))
        if not chunks:
            raise ValueError("texts must hold at least one document. Got none.")
        return stacked(chunks)

    def chunks(self, texts: Any) -> Iterator[Blocks]:
        """The features of documents, some at a time."""
        # Not a generator: wrong arguments are refused at the call.
        if has_made_features(texts):
            return made_blocks(self.features, texts).chunks(CHUNK)
        return map(self.features.blocks, in_chunks(read_texts(texts), CHUNK))

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
        row = self.features.blocks([text])
        return TextExplainer(self.classifier.model_, row, self.features.names)

    def allowed(self, tags: Any) -> NDArray[np.uint8] | None:
        """1 for each tag that may be predicted; None if all may."""
        if tags is None:
            return None
        model = self.classifier.model_
        chosen = [] if isinstance(tags, str) else list(dict.fromkeys(tags))
        unknown = set(chosen) - set(model.classes.tolist())
        if unknown or not chosen:
            raise ValueError(
                "The 'tags' parameter must be a list of tags seen in fit. "
                f"Got {unknown.pop() if unknown else tags!r}."
            )
        return model.allowed_columns(chosen)
