"""A model file for commands: an estimator with its path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._features.blocks import Blocks
from .._loading import load
from .._model.facts import counted_features
from .._model.fitted import FittedModel
from .._storage.locks import locked
from ..classifier import LdSMClassifier
from ..datasets import Dataset
from ..evaluation.alignment import Estimator, check_kind, classifier_of, model_rows
from ..text import TextTagger
from ..text.fitted import fitted_text
from ..text.tagger import give_encoder
from .command import wrong_use
from .screen import Screen

LABEL_NAMES = "label_names"  # in the training record: the file that named the labels


@dataclass(frozen=True)
class Model:
    """A fitted estimator and the file it is loaded from or saved to."""

    path: Path
    estimator: Estimator

    @property
    def reads_texts(self) -> bool:
        return isinstance(self.estimator, TextTagger)

    @property
    def kind(self) -> str:
        return "texts to tags" if self.reads_texts else "features to labels"

    @property
    def classifier(self) -> LdSMClassifier:
        return classifier_of(self.estimator)

    @property
    def fitted(self) -> FittedModel:
        return self.classifier.model_

    @property
    def encoder(self) -> Path | None:
        """The absolute path of the encoder, if it was given."""
        path = self.estimator.encoder if isinstance(self.estimator, TextTagger) else None
        return None if path is None else Path(path).absolute()

    def note(self, **facts: Any) -> None:
        """Add facts to the training record, which is saved in the file."""
        self.classifier.training_ = {**self.fitted.training, **facts}

    def counted_features(self) -> str:
        """The number of features of each kind, in words."""
        words = isinstance(self.estimator, TextTagger) and self.estimator.features_.are_words
        return counted_features(self.fitted, "word" if words else "feature")

    def feature_names(self) -> list[str]:
        """The words of a model that reads texts, else the feature numbers."""
        if isinstance(self.estimator, TextTagger):
            return self.estimator.features_.names
        return [str(i) for i in range(self.fitted.n_features)]

    def checked(self, data: Dataset) -> Dataset:
        """The data, if the model can read it; otherwise an error that names the model's file."""
        check_kind(self.estimator, data, self.path)
        self._check_codes(data)
        return data

    def _check_codes(self, data: Dataset) -> None:
        """Raise an error for numbers or codes as labels, if the model was trained on their names.

        Each of them would count as a new label.
        """
        file, labels = self.fitted.training.get(LABEL_NAMES), list(data.label_names or ())
        known = self.fitted.columns
        are_codes = all(any(map(str.isdigit, label)) and label not in known for label in labels)
        if isinstance(file, str) and labels and are_codes:
            raise ValueError(
                f"The labels of the data, such as {labels[0]!r:.80}, are unknown to {self.path}, "
                f"which was trained with --label-names {file}: use that option here, too."
            )

    def rows(self, rows: Dataset | Sequence[str]) -> Blocks:
        """Texts or rows of features in the model's features; unknown features are left out."""
        if isinstance(rows, Dataset):
            return model_rows(self.estimator, rows, self.path)
        assert isinstance(self.estimator, TextTagger)
        return fitted_text(self.estimator).rows(rows)


def no_label(name: str, known: Iterable[str]) -> str:
    """The error message for an unknown label, with the closest known one."""
    by_case = {label.lower(): label for label in known}
    close = difflib.get_close_matches(name.lower(), by_case, n=1)
    hint = f"; did you mean {by_case[close[0]]!r}" if close else ""
    return f"the model has no label {name!r}{hint}" + ("?" if close else ".")


def open_model(path: Path, n_jobs: int | None = None, encoder: Path | None = None) -> Model:
    """Load a model file of any kind; `encoder` is that of a model that was trained with one."""
    model = Model(path, load(path))
    if n_jobs is not None:
        model.classifier.set_params(n_jobs=n_jobs)
    if encoder is not None:
        if not isinstance(model.estimator, TextTagger):
            raise wrong_use(f"{path} reads features, not texts.", "--encoder")
        give_encoder(model.estimator, encoder)
    return model


def hold_lock(screen: Screen, path: Path) -> None:
    """Keep other processes from changing a model until the command ends; call before reading."""
    screen.until_end.enter_context(
        locked(
            path,
            changes=True,
            waiting=lambda: screen.note(f"waiting for another process that is changing {path}"),
        )
    )
