"""Options for texts, and how training data is split and turned into features."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...classifier import LdSMClassifier
from ...datasets import Dataset
from ...text import TextTagger, default_vectorizer
from ..command import option, wrong_use
from .estimator import EstimatorOptions, describe

_PANEL = "Words: for texts only"
# The options of scikit-learn's TfidfVectorizer that matter most; scripts can set the others.
_VECTORIZER: dict[str, tuple[Any, dict[str, Any], str]] = {
    "min_df": (int, {"min": 1}, "Minimum number of documents that a word must occur in."),
    "max_words": (int, {"min": 1}, "Maximum number of words; the most frequent ones are kept."),
    "ngrams": (int, {"min": 1}, "Also use sequences of up to this many words."),
    "stop_words": (str, {"metavar": "LANGUAGE"}, "Leave out stop words: `english`."),
}


@dataclass(frozen=True)
class TaggerOptions:
    """How texts become features; a bundle of options."""

    min_tag_count: int | None
    words: dict[str, Any]  # settings of the vectorizer, by option

    @staticmethod
    def options() -> Sequence[inspect.Parameter]:
        default = inspect.signature(TextTagger.__init__).parameters["min_tag_count"].default
        words = default_vectorizer().get_params()
        shown = {"min_df": words["min_df"], "ngrams": words["ngram_range"][1]}
        texts = {
            "min_tag_count": (int, {"min": 1}, describe(TextTagger).get("min_tag_count", "")),
            **_VECTORIZER,
        }
        shown["min_tag_count"] = default
        return [
            option(
                name,
                kind | None,
                None,
                help=f"{text} [dim]\\[default: {shown[name]}][/dim]" if name in shown else text,
                rich_help_panel=_PANEL,
                show_default=False,
                **settings,
            )
            for name, (kind, settings, text) in texts.items()
        ]

    @staticmethod
    def collect(values: dict[str, Any]) -> TaggerOptions:
        count = values.pop("min_tag_count")
        chosen = {name: value for name, value in values.items() if value is not None}
        if chosen.get("stop_words", "english") != "english":
            raise wrong_use(
                f"only 'english' is available, got {chosen['stop_words']!r}.", "--stop-words"
            )
        return TaggerOptions(count, chosen)

    def vectorizer(self) -> Any:
        """The tagger's default vectorizer with the given options."""
        names = {"max_words": "max_features", "ngrams": "ngram_range"}
        changes = {
            names.get(name, name): (1, value) if name == "ngrams" else value
            for name, value in self.words.items()
        }
        return default_vectorizer().set_params(**changes)

    def tagger(self, params: EstimatorOptions) -> TextTagger:
        more = {} if self.min_tag_count is None else {"min_tag_count": self.min_tag_count}
        return TextTagger(LdSMClassifier(**params), self.vectorizer(), **more)

    def refuse(self, data: str) -> None:
        """Raise an error if options for texts are given with data of features."""
        named = [*self.words, *(["min_tag_count"] if self.min_tag_count is not None else [])]
        if named:
            flag = f"--{named[0].replace('_', '-')}"
            raise wrong_use(f"{data} holds features, not texts.", flag)


def split_off(data: Dataset, validation: float, seed: int) -> tuple[Dataset, Dataset]:
    """Rows to train on and rows held out."""
    if not 0 < validation < 1:
        raise wrong_use(f"must lie between 0 and 1, got {validation}.", "--validation")
    train, held_out = data.split(validation, seed=seed)
    if len(held_out) == 0:
        raise wrong_use(
            f"no row can be held out: each of the {len(data):,} rows is the only one with one of "
            "its labels. Train without, or leave rare labels out.",
            "--validation",
        )
    return train, held_out


def matrices(train: Dataset, held_out: Dataset, words: TaggerOptions) -> tuple[Dataset, Dataset]:
    """Turn texts into features, with the words of the rows to train on."""
    if train.texts is None:
        words.refuse(train.source)
        return train, held_out
    vectorizer = words.vectorizer()
    return train.vectorize(vectorizer), held_out.vectorize(vectorizer, fit=False)
