"""One sparse vector of features per label: what the ranker and the centroids have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._arrays.lists import replaced_lists, taken_lists
from .._execution.threads import CancelFlag
from .._features.blocks import MAIN, Layout
from .._matching.part import LARGEST, Scorer
from .._storage.fields import Array, Sizes, Table
from .._storage.gaps import check_order
from .._trees.columns import Moved

if TYPE_CHECKING:
    from typing_extensions import Self

NO_UNITS = np.zeros(0, np.float32)
FEW_ROWS = 4  # are answered feature by feature

Offsets = NDArray[np.int64]
Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LabelVectors(Scorer):
    """One sparse vector per label; feature number D is a constant 1.

    Exact vectors have float weights and numbers of features. Compressed ones have the gaps between
    features, starting from 0, and weights that are multiples of the label's unit.
    """

    offsets: NDArray[np.int64]  # n_labels + 1
    features: NDArray[Any]  # int32, ascending within a label, or gaps as uint8 or uint16
    weights: NDArray[Any]  # float32 or int8
    units: NDArray[np.float32]  # n_labels, or empty if the weights are floats

    OWNER: ClassVar = "label"
    TABLE: ClassVar = Table(
        "label vectors",
        Array("offsets", (np.int64,), ("labels+1",)),
        Array("features", (np.int32, np.uint16, np.uint8), ("entries",)),
        Array("weights", (np.float32, np.int8), ("entries",), halves=True),
        Array("units", (np.float32,), ("units",), bounds=(0, LARGEST), default=NO_UNITS, since=2),
    )

    def check(self, name: str, sizes: Sizes, *, verify: bool) -> None:
        compressed, n_units = self.is_compressed, len(self.units)
        if compressed == (self.features.dtype == np.int32):
            raise ValueError(f"the features of its {name} have a wrong type for its weights")
        if n_units != (sizes["labels"] if compressed else 0):
            raise ValueError(f"its {name} must have a unit for each label if it is compressed")
        if verify:
            limit = sizes["features"] + 1
            check_order(
                name, self.offsets, self.features, limit, "feature", "label", gaps=compressed
            )
            if not compressed and not np.isfinite(self.weights).all():
                raise ValueError(f"its {name} has a weight that is not finite")

    @classmethod
    def concatenated(cls, parts: Sequence[Sequence[NDArray[Any]]]) -> Self:
        """The vectors of consecutive labels from the arrays of each part."""
        ends = np.cumsum([0] + [part[0][-1] for part in parts])
        offsets = [part[0][1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(
            np.concatenate([np.zeros(1, np.int64), *offsets]),
            *(np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True)),
        )

    @classmethod
    def packed(cls, matrix: sp.csr_array, n_features: int, *, prune: float, compress: bool) -> Self:
        """The rows of a matrix, features ascending, without what is smaller than `prune`."""
        values = matrix.data.astype(np.float32)
        kept = np.abs(values) >= max(prune, np.finfo(np.float32).tiny)
        offsets, features = _offsets(kept, matrix.indptr), matrix.indices[kept].astype(np.int32)
        return cls(*_core.encode_vectors(offsets, features, values[kept], n_features, compress))

    @property
    def is_compressed(self) -> bool:
        return bool(self.weights.dtype == np.int8)

    def taken(self, labels: NDArray[np.int64]) -> Self:
        """The vectors of the given labels, in their order."""
        offsets, entries = taken_lists(self.offsets, labels)
        units = self.units[labels] if len(self.units) else self.units
        return type(self)(offsets, self.features[entries], self.weights[entries], units)

    def replaced(self, labels: NDArray[np.int64], others: Self) -> Self:
        """With other vectors for the given labels, which ascend."""
        offsets, (features, weights) = replaced_lists(
            self.offsets,
            (self.features, self.weights),
            labels,
            others.offsets,
            (others.features, others.weights),
        )
        units = self.units.copy()
        if len(units):
            units[labels] = others.units
        return type(self)(offsets, features, weights, units)

    def relabelled(self, moved: Moved) -> Self:
        columns, units = moved.columns, self.units
        if not columns.only_adds:
            return self.taken(columns.source)
        # A new label's vector is empty.
        lengths = columns.taken(np.diff(self.offsets), 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        units = columns.taken(units, 0) if len(units) else units
        return type(self)(offsets, self.features, self.weights, units)

    def widened(self, name: str, before: Layout, after: Layout) -> Self:
        return self.with_room(before[MAIN], after[MAIN] - before[MAIN], after.width_for(name))

    def with_room(self, at: int, more: int, n_features: int) -> Self:
        """The same vectors among `n_features`, of which `more` new ones are numbered from `at`."""
        owner, features = self.entries()
        behind = features >= at
        if not self.is_compressed:
            shifted = (features + more * behind).astype(np.int32)
            return type(self)(self.offsets, shifted, self.weights, self.units)
        # Only the gap before the first feature behind them grows.
        first = behind.copy()
        first[1:] &= ~behind[:-1] | (owner[1:] != owner[:-1])
        gaps = self.features + more * first.astype(np.int64)
        widest = _core.widest_gap(n_features)
        if gaps.max(initial=0) <= widest:
            gaps = gaps.astype(np.min_scalar_type(widest))
            return type(self)(self.offsets, gaps, self.weights, self.units)
        real = self.weights != 0
        shifted = (features + more * behind)[real].astype(np.int32)
        offsets = _offsets(real, self.offsets)
        encoded = _core.encode_codes(offsets, shifted, self.weights[real], n_features)
        return type(self)(*encoded, self.units)

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The label and the feature of each weight."""
        owner = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        features = self.features.astype(np.int64)
        if self.is_compressed:
            running = np.concatenate([np.zeros(1, np.int64), np.cumsum(features)])
            features = running[1:] - running[self.offsets[:-1]][owner]
        return owner, features

    def matrix(self, n_features: int) -> sp.csr_array:
        """The vectors as rows; the last column is the constant."""
        owner, features = self.entries()
        values = self.weights.astype(np.float32)
        if self.is_compressed:
            values *= self.units[owner]
        shape = (len(self.offsets) - 1, n_features + 1)
        return sp.csr_array((values, features, self.offsets), shape=shape)

    def vector(self, label: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The features of a label's vector and their weights."""
        part = slice(*self.offsets[label : label + 2].tolist())
        features = self.features[part].astype(np.int64)
        if not len(self.units):
            return features, self.weights[part]
        return np.cumsum(features), self.weights[part] * self.units[label]

    def products(
        self, x: FeatureArrays, indptr: Offsets, labels: Labels, cancel: CancelFlag | None
    ) -> NDArray[np.float32]:
        """Products of each row, scaled to unit length, with the vectors of its labels."""
        by_feature = self._by_feature(x.n_features) if x.n_rows <= FEW_ROWS else None
        return _core.label_products(self, x.checked, indptr, labels, cancel, by_feature)

    def _by_feature(self, n_features: int) -> _core.VectorsByFeature | None:
        """The weights by feature, for single rows; computed once, never saved.

        An array in a file is not read for them.
        """
        if isinstance(self.features, np.memmap):
            return None
        if "by_feature" not in vars(self):
            vars(self)["by_feature"] = _core.VectorsByFeature(self, n_features)
        found: _core.VectorsByFeature = vars(self)["by_feature"]
        return found

    def squared_distances(
        self, x: FeatureArrays, indptr: Offsets, labels: Labels, cancel: CancelFlag | None = None
    ) -> NDArray[np.float64]:
        """Squared distances of each row, scaled to unit length, to the vectors of its labels."""
        products = self.products(x, indptr, labels, cancel).astype(np.float64)
        lengths = (np.diff(x.indptr) > 0).astype(np.float64)  # an empty row has length 0
        own = np.repeat(lengths, np.diff(indptr))
        return np.maximum(own - 2 * products + self._squared_norms(labels), 0.0)

    def _squared_norms(self, labels: Labels) -> NDArray[np.float64]:
        """Squared norms of the vectors of `labels`, each computed once."""
        chosen, place = np.unique(labels, return_inverse=True)
        return _core.squared_norms(self, chosen)[place]


def _offsets(kept: NDArray[np.bool_], offsets: NDArray[Any]) -> Offsets:
    """Where the entries of each label begin when only some are kept."""
    return np.asarray(np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[offsets])
