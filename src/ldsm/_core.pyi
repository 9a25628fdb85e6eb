from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._matching.feature_index import FeatureIndex
from ._matching.meaning import Meaning
from ._matching.names import NameIndex
from ._ranking.blend import Pairs
from ._ranking.label_vectors import LabelVectors
from ._trees.forest import Forest
from ._trees.params import TreeParams

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]
Floats = NDArray[np.float32]
Csr = tuple[Offsets, Ints, Floats]
Vectors = tuple[Offsets, NDArray[Any], NDArray[Any], Floats]

class CheckedFeatures:
    """Rows of X, checked when the object is made.

    It keeps the arrays, which must not be changed as long as it is used.
    """

    def __init__(self, indptr: Offsets, indices: Ints, values: Floats, n_features: int) -> None: ...
    @staticmethod
    def if_canonical(
        indptr: Offsets, indices: Ints, values: Floats, n_features: int
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
    """Rows of Y; see `CheckedFeatures`."""

    def __init__(self, indptr: Offsets, indices: Ints, n_labels: int) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_labels(self) -> int: ...

def grow_tree(
    x: CheckedFeatures,
    y: CheckedLabels,
    params: TreeParams,
    *,
    seed: int,
    tree: int,
    memory_limit: int = 268435456,
    scratch_folder: str = "",
    cancel: Ints | None = None,
    progress: Offsets | None = None,
    simd: str = "auto",
) -> dict[str, NDArray[Any]]: ...
def route_topk(
    forest: Forest,
    x: CheckedFeatures,
    k: int,
    fill_order: Ints,
    allowed: Bytes | None = None,
    skip: Bytes | None = None,
    cancel: Ints | None = None,
    simd: str = "auto",
) -> tuple[Ints, Floats]: ...
def route_scores(
    forest: Forest,
    x: CheckedFeatures,
    cancel: Ints | None = None,
    simd: str = "auto",
) -> Csr: ...
def route_nodes(forest: Forest, x: CheckedFeatures, simd: str = "auto") -> tuple[Offsets, Ints]: ...
def feature_maps(forest: Forest) -> NDArray[np.uint64]: ...
def bag_mask(seed: int, tree: int, n_rows: int, subsample: float) -> Bytes: ...
def row_order(seed: int, tree: int, n_rows: int, subsample: float) -> Ints: ...
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
) -> tuple[Offsets, Ints, Floats, Offsets, Ints, int]: ...
def format_text(
    x_indptr: Offsets,
    x_indices: Ints,
    x_values: Floats,
    y_indptr: Offsets,
    y_indices: Ints,
    *,
    zero_based: bool = True,
) -> bytes: ...
def check_names(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    kinds: NDArray[np.uint8] | None = None,
    low: str = "",
    high: str = "",
    unique: bool = True,
) -> tuple[int, str] | None: ...
def count_words(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    characters: NDArray[np.uint8],
    *,
    cancel: Ints | None = None,
) -> tuple[Offsets, Ints, Ints, Bytes, Offsets, Offsets, Ints]: ...
def spell_words(
    text: NDArray[np.uint8], offsets: NDArray[np.int64], *, cancel: Ints | None = None
) -> tuple[Offsets, Ints, Ints, Bytes, Offsets]: ...

class WordFinder:
    def __init__(
        self,
        words: NDArray[np.uint8],
        word_offsets: NDArray[np.int64],
        bigrams: NDArray[np.uint64],
        sub_words: NDArray[np.uint8],
        sub_word_offsets: NDArray[np.int64],
    ) -> None: ...
    def count(
        self,
        text: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        characters: NDArray[np.uint8],
        *,
        head_words: int = 0,
        more_times: int = 0,
        cancel: Ints | None = None,
    ) -> tuple[tuple[Offsets, Ints, Ints], ...]: ...

def count_phrases(
    indptr: NDArray[np.int64],
    sequence: NDArray[np.int32],
    words: NDArray[np.uint8],
    word_offsets: NDArray[np.int64],
    sub_words: NDArray[np.uint8],
    sub_word_offsets: NDArray[np.int64],
    *,
    cancel: Ints | None = None,
) -> tuple[Offsets, Ints, Ints]: ...
def find_bigrams(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    column: NDArray[np.int32],
    least: int,
    first: int,
    last: int,
    *,
    cancel: Ints | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]: ...
def count_bigrams(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    bigrams: NDArray[np.uint64],
    *,
    cancel: Ints | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]: ...
def train_feature_indexes(
    x: CheckedFeatures,
    y: CheckedLabels,
    fold: Bytes,
    *,
    n_folds: int,
    keep: int,
    first: int = 0,
    last: int | None = None,
    cancel: Ints | None = None,
) -> list[tuple[Offsets, Ints, Bytes, Floats]]: ...
def extend_feature_index(
    index: FeatureIndex,
    masses: Floats,
    x: CheckedFeatures,
    y: CheckedLabels,
    lift_before: NDArray[np.float64],
    lift_after: NDArray[np.float64],
    *,
    keep: int,
    seed: int,
    cancel: Ints | None = None,
) -> tuple[Offsets, Ints, Bytes, Floats]: ...

class MatchRows:
    """The same rows as each matcher reads them."""

    def __init__(
        self,
        trees: CheckedFeatures,
        indexed: CheckedFeatures | None = None,
        sub_words: CheckedFeatures | None = None,
        skip: Bytes | None = None,
        fold: Bytes | None = None,
        given: Sequence[tuple[Offsets, Ints]] = [],
        added: Sequence[tuple[Offsets, Ints]] = [],
    ) -> None: ...

def rank_by_meaning(
    meaning: Meaning,
    rows: NDArray[np.int16],
    length: int,
    allowed: Bytes | None = None,
    places: Ints | None = None,
    cancel: Ints | None = None,
    simd: str = "auto",
) -> tuple[Offsets, Ints]: ...
def meaning_scores(
    meaning: Meaning,
    rows: NDArray[np.int16],
    list_indptr: Offsets,
    list_labels: Ints,
    cancel: Ints | None = None,
    simd: str = "auto",
) -> Floats: ...
def sums_by_label(
    rows: NDArray[np.int16],
    indptr: Offsets,
    labels: Ints,
    slot: Ints,
    n_slots: int,
    cancel: Ints | None = None,
) -> tuple[NDArray[Any], Offsets]: ...

class Matchers:
    """What finds labels besides the trees."""

    def __init__(
        self,
        indexes: Sequence[FeatureIndex],
        sub_indexes: Sequence[FeatureIndex] = [],
        telling_sub_words: Bytes | None = None,
        names: NameIndex | None = None,
        match_names: bool = False,
        unseen: Bytes | None = None,
    ) -> None: ...

def shortlists(
    forest: Forest,
    rows: MatchRows,
    matchers: Matchers,
    length: int,
    allowed: Bytes | None = None,
    cancel: Ints | None = None,
    simd: str = "auto",
) -> tuple[Offsets, Ints, Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]: ...
def best_of_lists(
    indptr: Offsets,
    labels: Ints,
    scores: Floats,
    k: int,
    fill_order: Ints,
    allowed: Bytes | None = None,
    label_weights: NDArray[np.float64] | None = None,
) -> tuple[Ints, Floats]: ...
def blend_terms(
    pairs: Pairs, terms: Sequence[str], tree_share: float | None = None, gamma: float = 0.0
) -> NDArray[np.float64]: ...
def blend_probabilities(
    pairs: Pairs,
    terms: Sequence[str],
    tree_share: float | None,
    gamma: float,
    coefficients: Sequence[float],
) -> Floats: ...
def logistic_sums(
    design: NDArray[np.float64],
    truth: NDArray[np.uint8],
    weights: NDArray[np.float64],
    coefficients: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]: ...

class CheckedPairs:
    """The (row, label) pairs that labels are trained on; see `CheckedFeatures`."""

    def __init__(
        self, offsets: Offsets, rows: Ints, positive: Bytes, n_rows: int, first_label: int = 0
    ) -> None: ...

class RankerParams:
    """How a ranker is trained."""

    def __init__(
        self, *, cost: float, tolerance: float, max_epochs: int, prune: float, compress: bool
    ) -> None: ...

class RankerStart:
    """The weights that training starts from, and by label how firmly they stay."""

    def __init__(
        self,
        vectors: LabelVectors,
        squares: Floats,
        firmness: NDArray[np.float64],
        rows: NDArray[np.float64],
    ) -> None: ...

def label_pairs(
    lists: Sequence[CheckedLabels],
    y: CheckedLabels,
    *,
    first: int,
    last: int,
    fill_to: int,
    seed: int,
    cancel: Ints | None = None,
) -> tuple[Offsets, Ints, Bytes]: ...
def train_ranker(
    x: CheckedFeatures,
    pairs: CheckedPairs,
    params: RankerParams,
    *,
    seed: int,
    held_out: Bytes | None = None,
    start: RankerStart | None = None,
    cancel: Ints | None = None,
    simd: str = "auto",
) -> tuple[Vectors, Floats]: ...
def train_centroids(
    x: CheckedFeatures,
    pairs: CheckedPairs,
    *,
    left_out: Bytes | None = None,
    min_rows: int,
    prune: float,
    compress: bool,
) -> Vectors: ...
def encode_vectors(
    offsets: Offsets, features: Ints, weights: Floats, n_features: int, compress: bool
) -> Vectors: ...
def encode_codes(
    offsets: Offsets, features: Ints, codes: NDArray[np.int8], n_features: int
) -> tuple[Offsets, NDArray[Any], NDArray[np.int8]]: ...
def widest_gap(n_features: int) -> int: ...

class VectorsByFeature:
    def __init__(self, vectors: LabelVectors, n_features: int) -> None: ...

def squared_norms(vectors: LabelVectors, labels: Ints) -> NDArray[np.float64]: ...
def label_products(
    vectors: LabelVectors,
    x: CheckedFeatures,
    list_indptr: Offsets,
    list_labels: Ints,
    cancel: Ints | None = None,
    by_feature: VectorsByFeature | None = None,
) -> Floats: ...
