from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

class ForestLike(Protocol):
    """What the router reads of a forest: flat arrays of documented types."""

    @property
    def arity(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def tree_offsets(self) -> NDArray[np.int64]: ...
    @property
    def first_child(self) -> NDArray[np.int32]: ...
    @property
    def weight_offsets(self) -> NDArray[np.int64]: ...
    @property
    def weight_features(self) -> NDArray[np.int32]: ...
    @property
    def weights(self) -> NDArray[np.float32]: ...
    @property
    def weight_means(self) -> NDArray[np.float32]: ...
    @property
    def weight_scales(self) -> NDArray[np.float32]: ...
    @property
    def histogram_offsets(self) -> NDArray[np.int64]: ...
    @property
    def histogram_labels(self) -> NDArray[np.int32]: ...
    @property
    def histogram_counts(self) -> NDArray[np.int32]: ...
    @property
    def node_rows(self) -> NDArray[np.int64]: ...
    @property
    def feature_maps(self) -> NDArray[np.uint64] | None: ...

class TreeParamsLike(Protocol):
    """What growing a tree reads of its parameters."""

    @property
    def arity(self) -> int: ...
    @property
    def max_nodes(self) -> int: ...
    @property
    def n_epochs(self) -> int: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def integrity_weight(self) -> float: ...
    @property
    def multiway_penalty(self) -> float: ...
    @property
    def relaxations(self) -> int: ...
    @property
    def optimizer(self) -> str: ...
    @property
    def standardize(self) -> bool: ...
    @property
    def subsample(self) -> float: ...

class CheckedFeatures:
    """Rows of X, checked when the object is made.

    It keeps the arrays, which must not be changed as long as it is used.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
        n_features: int,
    ) -> None: ...
    @staticmethod
    def if_canonical(
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
        n_features: int,
    ) -> CheckedFeatures | None:
        """None unless rows are well-formed, sorted, without duplicates, zeros, NaN and inf."""

    def rows(self, start: int, stop: int) -> CheckedFeatures:
        """Some consecutive rows, in the same arrays."""

    @property
    def n_rows(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    @property
    def is_binary(self) -> bool:
        """There are values, and they are all the same: features are there or not."""

class CheckedLabels:
    """Rows of Y, checked when the object is made.

    It keeps the arrays, which must not be changed as long as it is used.
    """

    def __init__(
        self, indptr: NDArray[np.int64], indices: NDArray[np.int32], n_labels: int
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_labels(self) -> int: ...

def grow_tree(
    x: CheckedFeatures,
    y: CheckedLabels,
    params: TreeParamsLike,
    *,
    seed: int,
    tree: int,
    memory_limit: int = 268435456,
    scratch_folder: str = "",
    cancel: NDArray[np.int32] | None = None,
    progress: NDArray[np.int64] | None = None,
    simd: str = "auto",
) -> dict[str, NDArray[Any]]: ...
def route_topk(
    forest: ForestLike,
    by_rows: bool,
    x: CheckedFeatures,
    k: int,
    fill_order: NDArray[np.int32],
    allowed: NDArray[np.uint8] | None = None,
    skip: NDArray[np.uint8] | None = None,
    cancel: NDArray[np.int32] | None = None,
    simd: str = "auto",
) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
def route_scores(
    forest: ForestLike,
    by_rows: bool,
    x: CheckedFeatures,
    skip: NDArray[np.uint8] | None = None,
    cancel: NDArray[np.int32] | None = None,
    simd: str = "auto",
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
def route_nodes(
    forest: ForestLike,
    x: CheckedFeatures,
    cancel: NDArray[np.int32] | None = None,
    simd: str = "auto",
) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
def feature_maps(forest: ForestLike) -> NDArray[np.uint64]: ...
def bag_mask(seed: int, tree: int, n_rows: int, subsample: float) -> NDArray[np.uint8]: ...
def row_order(seed: int, tree: int, n_rows: int, subsample: float) -> NDArray[np.int32]: ...
def simd_paths() -> list[str]: ...
def parse_text(
    text: Any,
    *,
    name: str,
    first_line: int = 1,
    max_rows: int = -1,
    n_features: int = 2147483639,
    n_labels: int = 2147483647,
    zero_based: bool = True,
    comments: bool = False,
    sum_duplicates: bool = False,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.float32],
    NDArray[np.int64],
    NDArray[np.int32],
    int,
]: ...
def format_text(
    x_indptr: NDArray[np.int64],
    x_indices: NDArray[np.int32],
    x_values: NDArray[np.float32],
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    *,
    zero_based: bool = True,
) -> bytes: ...
def label_pairs(
    lists: CheckedLabels,
    y: CheckedLabels,
    *,
    fill_to: int,
    seed: int,
    cancel: NDArray[np.int32] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]: ...
def train_ranker(
    x: CheckedFeatures,
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    positive: NDArray[np.uint8],
    *,
    first_label: int,
    held_out: NDArray[np.uint8] | None = None,
    cost: float,
    tolerance: float,
    max_epochs: int,
    prune: float,
    seed: int,
    cancel: NDArray[np.int32] | None = None,
    progress: NDArray[np.int64] | None = None,
) -> tuple[
    tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]], NDArray[np.float32]
]: ...
def train_centroids(
    x: CheckedFeatures,
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    positive: NDArray[np.uint8],
    *,
    left_out: NDArray[np.uint8] | None = None,
    min_rows: int,
    prune: float,
    cancel: NDArray[np.int32] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
def label_products(
    offsets: NDArray[np.int64],
    features: NDArray[np.int32],
    weights: NDArray[np.float32],
    x: CheckedFeatures,
    list_indptr: NDArray[np.int64],
    list_labels: NDArray[np.int32],
    cancel: NDArray[np.int32] | None = None,
) -> NDArray[np.float32]: ...
