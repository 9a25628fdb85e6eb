"""What a fitted tagger holds: replaced as a whole, so that other threads never see a mixture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .._model.inputs import new_rows
from .._storage.strings import Strings
from ..classifier import LdSMClassifier
from .features import TextFeatures


class RareTags(NamedTuple):
    """Tags that were not learned, and their documents."""

    names: Strings
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> RareTags:
        return cls(Strings.pack(counts), np.array(list(counts.values()), dtype=np.int64))

    def as_dict(self) -> dict[str, int]:
        return dict(zip(self.names, self.counts.tolist(), strict=True))


class FittedText(NamedTuple):
    """The classifier, how texts become its features, and the tags that were not learned."""

    classifier: LdSMClassifier
    features: TextFeatures
    rare: RareTags

    def rows(self, texts: list[str]) -> FeatureArrays:
        """The features of texts as the core reads them."""
        return new_rows(self.classifier, self.features.transform(texts))
