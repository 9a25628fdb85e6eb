"""Training data for commands: rows held out, texts made into features."""

from __future__ import annotations

from ..datasets import Dataset
from .command import wrong_use


def split_off(data: Dataset, validation: float, seed: int) -> tuple[Dataset, Dataset]:
    """Rows to train on and rows held out."""
    if not 0 < validation < 1:
        raise wrong_use(f"must lie between 0 and 1, got {validation}.", "--validation")
    return data.split(validation, seed=seed)


def matrices(train: Dataset, held_out: Dataset) -> tuple[Dataset, Dataset]:
    """Texts as features, by the words of the rows to train on."""
    if train.texts is None:
        return train, held_out
    raise NotImplementedError
