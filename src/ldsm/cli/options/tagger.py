"""Options for texts, and how training data is split and turned into features."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._trees.params import is_ranked
from ...classifier import LdSMClassifier
from ...datasets import Dataset
from ...text import TextTagger, default_vectorizer
from ...text.corpus import read_pairs
from ...text.saved_form import features_of
from ...text.training import vectorized, vectorized_by
from ..command import option, wrong_use
from .estimator import EstimatorOptions, defaults, describe

_PANEL = "Words: for texts only"
# The options of scikit-learn's TfidfVectorizer that matter most; scripts can set the others.
_VECTORIZER: dict[str, tuple[Any, dict[str, Any], str]] = {
    "min_df": (int, {"min": 1}, "Minimum number of documents that a word must occur in."),
    "max_words": (int, {"min": 1}, "Maximum number of words; the most frequent ones are kept."),
    "ngrams": (int, {"min": 1}, "Also use sequences of up to this many words."),
    "stop_words": (str, {"metavar": "LANGUAGE"}, "Leave out stop words: `english`."),
}


@dataclass(frozen=True)
class WordOptions:
    """How texts become features; a bundle of options."""

    words: dict[str, Any]  # settings of the vectorizer, by option

    @staticmethod
    def options() -> Sequence[inspect.Parameter]:
        words = default_vectorizer().get_params()
        shown = {"min_df": words["min_df"], "ngrams": words["ngram_range"][1]}
        return [
            _option(name, kind, text, shown.get(name), **settings)
            for name, (kind, settings, text) in _VECTORIZER.items()
        ]

    @staticmethod
    def collect(values: dict[str, Any]) -> WordOptions:
        chosen = {name: value for name, value in values.items() if value is not None}
        if chosen.get("stop_words", "english") != "english":
            raise wrong_use(
                f"only 'english' is available, got {chosen['stop_words']!r}.", "--stop-words"
            )
        return WordOptions(chosen)

    def vectorizer(self) -> Any:
        """The tagger's default vectorizer with the given options."""
        names = {"max_words": "max_features", "ngrams": "ngram_range"}
        changes = {
            names.get(name, name): (1, value) if name == "ngrams" else value
            for name, value in self.words.items()
        }
        return default_vectorizer().set_params(**changes)

    def parts(self, params: Mapping[str, Any]) -> Callable[[int], bool]:
        """Whether a number of texts get bigrams and sub-words, given the estimator's parameters."""
        settings = {**defaults(), **params}
        return lambda n_texts: not self.words and is_ranked(settings, n_texts)

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
        default = inspect.signature(TextTagger.__init__).parameters["min_tag_count"].default
        text = describe(TextTagger).get("min_tag_count", "")
        return [_option("min_tag_count", int, text, default, min=1), *WordOptions.options()]

    @staticmethod
    def collect(values: dict[str, Any]) -> TaggerOptions:
        count = values.pop("min_tag_count")
        return TaggerOptions(WordOptions.collect(values).words, count)

    def tagger(
        self,
        params: EstimatorOptions,
        *,
        vectorized: bool = False,
        encoder: Path | None = None,
    ) -> TextTagger:
        """The tagger; `vectorized` if its texts are already features."""
        more = {} if self.min_tag_count is None else {"min_tag_count": self.min_tag_count}
        vectorizer = None if vectorized or not self.words else self.vectorizer()
        return TextTagger(LdSMClassifier(**params), vectorizer, encoder=encoder, **more)

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
            return self.tagger(params, encoder=encoder)
        if encoder is not None:
            raise wrong_use(f"{name} holds features, not texts.", "--encoder")
        if rows.text_form is not None:
            WordOptions(self.words).refuse(f"{name} already holds features.")
            return self.tagger(params, vectorized=True)
        self.refuse(f"{name} holds features, not texts.")
        return LdSMClassifier(**params)


def _option(name: str, kind: Any, text: str, default: Any, **settings: Any) -> inspect.Parameter:
    if default is not None:
        text = f"{text} [dim]\\[default: {default}][/dim]"
    return option(
        name, kind | None, None, help=text, rich_help_panel=_PANEL, show_default=False, **settings
    )


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
