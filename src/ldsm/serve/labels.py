"""A searchable directory of a model's labels: names, training rows, words and test results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._model.explain import strongest_features
from .._model.fitted import FittedModel
from ..datasets.documents.tables import separator_for
from ..text.fitted import FittedText

ORDERS = ("rows", "name", "found")


@dataclass(frozen=True)
class LabelDirectory:
    """The labels of a model by their columns."""

    fitted: FittedText
    tags: list[str]
    names: list[str]  # for people

    @classmethod
    def of(cls, fitted: FittedText) -> LabelDirectory:
        model = fitted.classifier.model_
        tags: list[str] = model.classes.tolist()
        titles = fitted.titles.as_dict()
        return cls(fitted, tags, [titles.get(tag, tag) for tag in tags] if titles else tags)

    def known(self, name: str) -> str | None:
        """The tag for a name, a URI or a URI in angle brackets."""
        for one in (name, name[1:-1] if name[:1] == "<" and name[-1:] == ">" else name):
            if one in self.column:
                return self.tags[self.column[one]]
        return None

    @cached_property
    def separator(self) -> str | None:
        """The separator of labels in a table cell, as in the output of `ldsm predict`."""
        reading = self.model.training.get("reading")
        trained = reading.get("separator") if isinstance(reading, dict) else None
        return separator_for(self.tags, trained)

    @property
    def model(self) -> FittedModel:
        return self.fitted.classifier.model_

    @cached_property
    def column(self) -> dict[str, int]:
        """The column of each tag, and of each name that only one tag has."""
        by_name: dict[str, int] = {}
        for i, name in enumerate(self.names):
            by_name[name] = -1 if name in by_name else i
        unique = {name: i for name, i in by_name.items() if i >= 0}
        return unique | {tag: i for i, tag in enumerate(self.tags)}

    def name(self, tag: str) -> str:
        """The name of a tag for people."""
        if self.names is self.tags or tag not in self.column:
            return tag
        return self.names[self.column[tag]]

    def search(self, text: str, order: str) -> list[int]:
        """The columns of labels whose name or tag contains `text`.

        An exact match comes first, then labels that start with the text, then labels with a word
        that does.
        """
        wanted = " ".join(text.casefold().split())
        by_order = self._ranks[order]
        if not wanted:
            every: list[int] = np.argsort(by_order).tolist()
            return every
        found = [i for i, key in enumerate(self._keys) if wanted in key]
        inner = f" {wanted}"

        def rank(i: int) -> tuple[int, int]:
            key = self._keys[i]
            exact = wanted in (self.names[i].casefold(), self.tags[i].casefold())
            place = 0 if exact else 1 if key.startswith(wanted) else 2 if inner in key else 3
            return place, int(by_order[i])

        return sorted(found, key=rank)

    @cached_property
    def _keys(self) -> list[str]:
        both = zip(self.names, self.tags, strict=True)
        return [(name if name == tag else f"{name} {tag}").casefold() for name, tag in both]

    @cached_property
    def _ranks(self) -> dict[str, NDArray[np.int64]]:
        """The rank of each column, for each order."""
        by_name = sorted(range(len(self.names)), key=lambda i: self._keys[i])
        place = np.empty(len(by_name), dtype=np.int64)
        place[by_name] = np.arange(len(by_name))
        share = np.full(len(place), -1.0)
        if (tests := self._tested) is not None:
            able = tests[:, 0] > 0
            share[able] = tests[able, 1] / tests[able, 0]
        counts = self.model.label_counts
        keys = {"name": (place,), "rows": (place, -counts), "found": (place, -counts, -share)}
        ranks = {}
        for order in ORDERS:
            ranks[order] = np.empty(len(place), dtype=np.int64)
            ranks[order][np.lexsort(keys[order])] = np.arange(len(place))
        return ranks

    def words(self, column: int, limit: int) -> list[str]:
        """The most typical words of a label."""
        names = self.fitted.features.names
        return [names[f] for f in strongest_features(self.model, column, limit)]

    def tests(self, column: int) -> tuple[int, int] | None:
        """Number of rows with the label held out in training, and of those where it was found."""
        if self._tested is None:
            return None
        rows, hits = self._tested[column].tolist()
        return rows, hits

    @property
    def _tested(self) -> NDArray[np.uint16] | None:
        stage = self.model.second_stage
        return None if stage is None else stage.tested
