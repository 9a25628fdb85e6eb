"""Let the leaves of grown trees learn from new rows: the splits stay, the counts grow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .._arrays.labels import LabelArrays
from .._arrays.lists import replaced_lists, taken_lists
from .._arrays.matrices import label_csr
from .forest import MOST_COUNTED, Forest, narrowed


def with_rows(forest: Forest, x: FeatureArrays, y: LabelArrays) -> Forest:
    """The forest with new rows counted in every node that they reach; labels in its columns.

    What the splits were chosen by (objective, balancedness, purity) stays that of the rows that
    they were grown from.
    """
    indptr, nodes = forest.visited_nodes(x.leading(forest.n_features))
    counted = _with_counts(forest, indptr, nodes, y)
    rows = np.bincount(nodes, minlength=forest.n_nodes)
    pairs = np.bincount(nodes, np.repeat(np.diff(y.indptr), np.diff(indptr)), forest.n_nodes)
    return replace(
        counted,
        node_rows=np.minimum(forest.node_rows + rows, MOST_COUNTED),
        node_labels=np.minimum(forest.node_labels + pairs.astype(np.int64), MOST_COUNTED),
    )


def with_labels(
    forest: Forest, x: FeatureArrays, y: LabelArrays, chosen: NDArray[np.bool_]
) -> Forest:
    """The forest with some labels of new rows counted in the leaves, but not the rows themselves.

    The leaves' shares of all other labels stay as they are.
    """
    matrix = label_csr(y.indptr, y.indices, y.n_labels)
    rows = np.flatnonzero(matrix @ chosen.astype(np.int32))
    if not len(rows):
        return forest
    matrix = matrix[rows]
    kept = chosen[matrix.indices]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    own = LabelArrays(
        before[matrix.indptr], matrix.indices[kept].astype(np.int32), y.classes, y.form
    )
    indptr, nodes = forest.visited_nodes(x.leading(forest.n_features).take(rows))
    return _with_counts(forest, indptr, nodes, own, most=forest.node_rows)


def _with_counts(
    forest: Forest,
    indptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
    y: LabelArrays,
    most: NDArray[np.int64] | None = None,
) -> Forest:
    """With the labels of rows counted in the leaves among the nodes that they visit."""
    leaf = forest.is_leaf[nodes]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(leaf)])
    leaves, place = np.unique(nodes[leaf].astype(np.int64), return_inverse=True)
    ones = np.ones(len(place), dtype=np.int64)
    visits = sp.csr_array((ones, place, before[indptr]), shape=(y.n_rows, len(leaves)))
    new = sp.csr_array(visits.T @ label_csr(y.indptr, y.indices, y.n_labels))
    offsets, entries = taken_lists(forest.histogram_offsets, leaves)
    labels = forest.histogram_labels[entries].astype(np.int64)
    old = sp.csr_array((forest.histogram_counts[entries], labels, offsets), shape=new.shape)
    both = sp.csr_array(old.astype(np.int64) + new)
    if most is not None:
        # A label is counted at most once for each row that a leaf knows of.
        np.minimum(both.data, np.repeat(most[leaves], np.diff(both.indptr)), out=both.data)
        both.eliminate_zeros()  # of leaves without rows
    both.sort_indices()
    labels, counts = both.indices.astype(np.int32), both.data.astype(np.int32)
    if len(forest.weight_units):
        labels = narrowed(labels, forest.n_labels - 1)
        counts = narrowed(counts, int(counts.max(initial=0)))
    offsets, (labels, counts) = replaced_lists(
        forest.histogram_offsets,
        (forest.histogram_labels, forest.histogram_counts),
        leaves,
        both.indptr.astype(np.int64),
        (labels, counts),
    )
    entropy = forest.node_entropy.copy()
    entropy[leaves] = _entropies(both)
    return replace(
        forest,
        histogram_offsets=offsets,
        histogram_labels=labels,
        histogram_counts=counts,
        node_entropy=entropy,
    )


def _entropies(histograms: sp.csr_array) -> NDArray[np.float64]:
    """Of each row's counts, in nats."""
    n_rows = histograms.shape[0]
    own = np.repeat(np.arange(n_rows), np.diff(histograms.indptr))
    sums = np.bincount(own, histograms.data, n_rows)
    shares = histograms.data / sums[own]
    return np.bincount(own, -shares * np.log(shares), n_rows).astype(np.float64)
