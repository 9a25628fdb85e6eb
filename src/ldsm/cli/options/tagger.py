"""Options for texts, and how training data is split and turned into features."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._trees.params import AUTO, is_ranked
from ...classifier import LdSMClassifier
from ...datasets import Dataset
from ...text import TextTagger
from ...text.corpus import read_pairs
from ...text.saved_form import features_of
from ...text.training import vectorized, vectorized_by
from ...text.vectorizer import CONSTRAINTS, WORD_DEFAULTS, WORDS, word_vectorizer
from ..command import as_words, wrong_use
from .estimator import EstimatorOptions, defaults, describe, parameter_option, parse

_PANEL = "Words: for texts only"


@dataclass(frozen=True)
class WordOptions:
    """How texts become features; a bundle of options."""

    words: dict[str, Any]  # parameters of TextTagger

    @staticmethod
    def options() -> Sequence[inspect.Parameter]:
        return _options(WORDS)

    @staticmethod
    def collect(values: dict[str, Any]) -> WordOptions:
        return WordOptions(_parsed(values))

    def vectorizer(self) -> Any:
        """The tagger's vectorizer of words."""
        return word_vectorizer({**WORD_DEFAULTS, **self.words})

    def parts(self, params: Mapping[str, Any]) -> Callable[[int], bool]:
        """Whether a number of texts get bigrams and sub-words, given the estimator's parameters."""
        settings = {**defaults(), **params}
        is_default = self.words.get("ngrams", AUTO) == AUTO
        return lambda n_texts: is_default and is_ranked(settings, n_texts)

    def refuse(self, reason: str) -> None:
        """Raise an error if any of these options is given: they would have no effect."""
        for name in self.words:
            raise wrong_use(reason, f"--{name.replace('_', '-')}")


@dataclass(frozen=True)
class TaggerOptions(WordOptions):
    """How texts become features, and which tags are learned; a bundle of options."""

    min_tag_count: int | None

    @staticmethod
    def options() -> Sequence[inspect.Parameter]:
        return _options(CONSTRAINTS)

    @staticmethod
    def collect(values: dict[str, Any]) -> TaggerOptions:
        words = _parsed(values)
        return TaggerOptions(words, words.pop("min_tag_count", None))

    def tagger(self, params: EstimatorOptions, encoder: Path | None = None) -> TextTagger:
        """The tagger with these options."""
        more: dict[str, Any] = {}
        if self.min_tag_count is not None:
            more["min_tag_count"] = self.min_tag_count
        return TextTagger(LdSMClassifier(**params), encoder=encoder, **self.words, **more)

    def given(self) -> list[str]:
        """The given options as words of a command."""
        count = {} if self.min_tag_count is None else {"min_tag_count": self.min_tag_count}
        return as_words({**count, **self.words})

    def refuse(self, reason: str) -> None:
        if self.min_tag_count is not None:
            raise wrong_use(reason, "--min-tag-count")
        super().refuse(reason)

    def estimator(
        self,
        params: EstimatorOptions,
        rows: Dataset | None,
        name: object,
        encoder: Path | None = None,
    ) -> LdSMClassifier | TextTagger:
        """The estimator for the rows of `name`; None stands for documents read one by one."""
        if rows is None or rows.texts is not None:
            return self.tagger(params, encoder)
        if rows.text_form is not None:
            WordOptions(self.words).refuse(f"{name} already holds features.")
            return self.tagger(params, encoder)
        if encoder is not None:
            raise wrong_use(f"{name} holds features, not texts.", "--encoder")
        self.refuse(f"{name} holds features, not texts.")
        return LdSMClassifier(**params)


def _options(names: Iterable[str]) -> list[inspect.Parameter]:
    """The options of some parameters of TextTagger."""
    texts, signature = describe(TextTagger), inspect.signature(TextTagger.__init__)
    return [
        parameter_option(
            name, signature.parameters[name].default, CONSTRAINTS[name], texts.get(name, ""), _PANEL
        )
        for name in names
    ]


def _parsed(values: Mapping[str, str | None]) -> dict[str, Any]:
    """The given options."""
    return {
        name: parse(name, text, CONSTRAINTS[name])
        for name, text in values.items()
        if text is not None
    }


def split_off(data: Dataset, validation: float, seed: int) -> tuple[Dataset, Dataset]:
    """Rows to train on and rows held out."""
    if not 0 < validation < 1:
        raise wrong_use(f"must lie between 0 and 1, got {validation}.", "--validation")
    train, held_out = data.split(validation, seed=seed)
    if len(held_out) == 0:
        raise wrong_use(
            f"no row can be held out: each of the {len(data):,} rows has a label that no other row "
            "has. Train without --validation, or leave out rare labels.",
            "--validation",
        )
    return train, held_out


def with_features(
    train: Dataset, held_out: Dataset, words: WordOptions, params: Mapping[str, Any]
) -> tuple[Dataset, Dataset]:
    """The rows with their texts vectorized as in training, with the words of the training rows."""
    if train.texts is None:
        return train, held_out
    featured = vectorized(read_pairs(train), words.vectorizer(), with_parts=words.parts(params))
    return featured, vectorized_by(features_of(featured))(held_out)
