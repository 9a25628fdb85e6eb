"""The compiled parts of the second stage against plain twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from ldsm import _core

N_ROWS, N_FEATURES, N_LABELS = 120, 30, 12
SETTINGS: dict[str, Any] = {
    "cost": 0.5,
    "tolerance": 0.5,
    "max_epochs": 30,
    "prune": 0.0,
    "seed": 3,
}


def checked(matrix: sp.csr_array) -> _core.CheckedFeatures:
    return _core.CheckedFeatures(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float32),
        N_FEATURES,
    )


def label_pairs(lists: Any, y: Any, **settings: Any) -> Any:
    rows = (_core.CheckedLabels(*labels, N_LABELS) for labels in (lists, y))
    return _core.label_pairs(*rows, **settings)


def make_rows(seed: int = 0, n_rows: int = N_ROWS) -> sp.csr_array:
    return sp.csr_array(
        sp.random(n_rows, N_FEATURES, 0.2, format="csr", dtype=np.float32, random_state=seed)
    )


def make_lists(seed: int, mean: float) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    chosen = np.random.default_rng(seed).random((N_ROWS, N_LABELS)) < mean / N_LABELS
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int64)
    return indptr, np.nonzero(chosen)[1].astype(np.int32)


def unit(matrix: sp.csr_array) -> NDArray[np.float64]:
    dense = matrix.toarray().astype(np.float64)
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return np.divide(dense, norms, out=np.zeros_like(dense), where=norms > 0)


def all_pairs(seed: int = 1) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    lists, y = make_lists(seed, 5), make_lists(seed + 1, 2)
    return label_pairs(lists, y, fill_to=0, seed=0)


# -- pairs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill_to", [0, 3, 5, 8, 100])
def test_pairs_are_the_lists_the_labels_and_the_fill(fill_to: int) -> None:
    lists, y = make_lists(1, 3), make_lists(2, 2)
    offsets, rows, positive = label_pairs(lists, y, fill_to=fill_to, seed=7)
    assert offsets[-1] == len(rows) == len(positive)
    got: list[set[int]] = [set() for _ in range(N_ROWS)]
    true: list[set[int]] = [set() for _ in range(N_ROWS)]
    for label in range(N_LABELS):
        mine = rows[offsets[label] : offsets[label + 1]]
        assert np.all(np.diff(mine) > 0)
        for row, mark in zip(mine, positive[offsets[label] : offsets[label + 1]], strict=True):
            got[row].add(label)
            if mark:
                true[row].add(label)
    for row in range(N_ROWS):
        own = set(y[1][y[0][row] : y[0][row + 1]].tolist())
        listed = set(lists[1][lists[0][row] : lists[0][row + 1]].tolist())
        assert true[row] == own
        assert own | listed <= got[row]
        # Random labels only where a row has too few; where most are wanted, all are taken.
        wanted = N_LABELS if 2 * fill_to >= N_LABELS else fill_to
        enough = len(own | listed) >= min(fill_to, N_LABELS)
        assert len(got[row]) == (len(own | listed) if enough else wanted)


def test_the_lists_must_fit_the_labels() -> None:
    lists, y = (_core.CheckedLabels(*make_lists(1, 3), N_LABELS + more) for more in (0, 1))
    with pytest.raises(ValueError, match="same number of labels. Got 12 and 13"):
        _core.label_pairs(lists, y, fill_to=0, seed=0)
    fewer = _core.CheckedLabels(np.zeros(8, np.int64), np.zeros(0, np.int32), N_LABELS)
    with pytest.raises(ValueError, match="same number of rows. Got 120 and 7"):
        _core.label_pairs(lists, fewer, fill_to=0, seed=0)


def test_the_fill_depends_on_the_seed_alone() -> None:
    lists, y = make_lists(1, 1), make_lists(2, 1)
    first, again, other = (label_pairs(lists, y, fill_to=4, seed=seed)[1] for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


# -- the linear classifiers -------------------------------------------------------------------


def test_the_classifiers_are_those_of_liblinear() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    exact = SETTINGS | {"tolerance": 1e-6, "max_epochs": 20000}
    (starts, features, weights), margins = _core.train_ranker(
        checked(x), offsets, rows, positive, first_label=0, **exact
    )
    assert len(margins) == 0
    for label in range(N_LABELS):
        mine = slice(offsets[label], offsets[label + 1])
        svc = LinearSVC(C=0.5, tol=1e-8, max_iter=100_000, dual=True, random_state=0)
        svc.fit(unit(x)[rows[mine]], positive[mine])
        dense = np.zeros(N_FEATURES + 1)
        dense[features[starts[label] : starts[label + 1]]] = weights[
            starts[label] : starts[label + 1]
        ]
        np.testing.assert_allclose(dense[:-1], svc.coef_[0], atol=2e-4)
        np.testing.assert_allclose(dense[-1], svc.intercept_[0], atol=2e-4)


def test_any_division_of_the_labels_gives_the_same_bits() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    held = (np.arange(N_ROWS) % 4 == 0).astype(np.uint8)
    (starts, features, weights), margins = _core.train_ranker(
        checked(x), offsets, rows, positive, first_label=0, held_out=held, **SETTINGS
    )
    parts: list[Any] = []
    for first, last in ((0, 1), (1, 7), (7, N_LABELS)):
        start, stop = offsets[first], offsets[last]
        parts.append(
            _core.train_ranker(
                checked(x),
                offsets[first : last + 1] - start,
                rows[start:stop],
                positive[start:stop],
                first_label=first,
                held_out=held,
                **SETTINGS,
            )
        )
    assert np.array_equal(np.concatenate([p[0][1] for p in parts]), features)
    assert np.array_equal(np.concatenate([p[0][2] for p in parts]), weights)
    assert np.array_equal(np.concatenate([p[1] for p in parts]), margins)
    assert starts[-1] == len(features)


def test_held_out_margins_come_from_a_classifier_that_never_saw_these_rows() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    held = (np.arange(N_ROWS) % 3 == 0).astype(np.uint8)
    _, margins = _core.train_ranker(
        checked(x), offsets, rows, positive, first_label=0, held_out=held, **SETTINGS
    )
    kept = held[rows] == 0
    label = np.repeat(np.arange(N_LABELS), np.diff(offsets))
    without = np.concatenate([[0], np.cumsum(np.bincount(label[kept], minlength=N_LABELS))])
    rough = SETTINGS | {"tolerance": 2 * SETTINGS["tolerance"]}
    vectors, _ = _core.train_ranker(
        checked(x), without, rows[kept], positive[kept], first_label=0, **rough
    )
    by_row = np.lexsort((label[~kept], rows[~kept]))
    lists = np.concatenate([[0], np.cumsum(np.bincount(rows[~kept], minlength=N_ROWS))])
    products = _core.label_products(
        *vectors, checked(x), lists, label[~kept][by_row].astype(np.int32)
    )
    assert np.array_equal(products, margins[by_row])


def test_the_held_out_rows_count_in_the_end() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    held = (np.arange(N_ROWS) % 3 == 0).astype(np.uint8)
    exact = SETTINGS | {"tolerance": 1e-6, "max_epochs": 20000}
    data = (checked(x), offsets, rows, positive)
    (_, _, plain), _ = _core.train_ranker(*data, first_label=0, **exact)
    (_, _, resumed), _ = _core.train_ranker(*data, first_label=0, held_out=held, **exact)
    np.testing.assert_allclose(plain, resumed, atol=2e-4)


def test_pruning_drops_small_weights_only() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    data = (checked(x), offsets, rows, positive)
    (starts, features, weights), _ = _core.train_ranker(*data, first_label=0, **SETTINGS)
    pruned = _core.train_ranker(*data, first_label=0, **(SETTINGS | {"prune": 0.1}))[0]
    large = np.abs(weights) >= np.float32(0.1)
    assert 0 < large.sum() < len(large)
    assert np.array_equal(pruned[1], features[large])
    assert np.array_equal(pruned[2], weights[large])
    assert pruned[0][-1] == large.sum() < starts[-1]


# -- centroids and products -------------------------------------------------------------------


def test_centroids_are_means_of_unit_rows() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    left_out = (np.arange(N_ROWS) % 5 == 0).astype(np.uint8)
    starts, features, weights = _core.train_centroids(
        checked(x), offsets, rows, positive, left_out=left_out, min_rows=15, prune=0.02
    )
    sizes = []
    for label in range(N_LABELS):
        mine = slice(offsets[label], offsets[label + 1])
        members = rows[mine][(positive[mine] == 1) & (left_out[rows[mine]] == 0)]
        sizes.append(len(members))
        expected = unit(x)[members].mean(axis=0) if len(members) >= 15 else np.zeros(N_FEATURES)
        got = np.zeros(N_FEATURES)
        entries = slice(starts[label], starts[label + 1])
        got[features[entries]] = weights[entries]
        np.testing.assert_allclose(got, np.where(expected >= 0.02, expected, 0), atol=1e-6)
    assert min(sizes) < 15 < max(sizes)  # both kinds of label were there


@pytest.mark.parametrize("batch", [1, 7, N_ROWS])
def test_products_do_not_depend_on_the_batch(batch: int) -> None:
    x, pairs = make_rows(), all_pairs()
    vectors, _ = _core.train_ranker(checked(x), *pairs, first_label=0, **SETTINGS)
    dense = np.zeros((N_LABELS, N_FEATURES + 1))
    for label in range(N_LABELS):
        entries = slice(vectors[0][label], vectors[0][label + 1])
        dense[label, vectors[1][entries]] = vectors[2][entries]
    new = make_rows(9)
    indptr, labels = make_lists(4, 6)
    labels = labels[::-1].copy()  # a list is in any order
    whole = _core.label_products(*vectors, checked(new), indptr, labels)
    row = np.repeat(np.arange(N_ROWS), np.diff(indptr))
    expected = (unit(new)[row] * dense[labels, :-1]).sum(axis=1) + dense[labels, -1]
    np.testing.assert_allclose(whole, expected, atol=1e-5)
    for start in range(0, N_ROWS, batch):
        stop = min(start + batch, N_ROWS)
        part = slice(indptr[start], indptr[stop])
        again = _core.label_products(
            *vectors,
            checked(sp.csr_array(new[start:stop])),
            indptr[start : stop + 1] - indptr[start],
            labels[part],
        )
        assert np.array_equal(again, whole[part])


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e30, 3e38])
def test_rows_of_any_size_count_the_same(scale: float) -> None:
    x = make_rows()
    extreme = sp.csr_array(
        ((x.data / x.data.max() * scale).astype(np.float32), x.indices, x.indptr), shape=x.shape
    )
    pairs = all_pairs()
    plain, _ = _core.train_ranker(checked(x), *pairs, first_label=0, **SETTINGS)
    got, _ = _core.train_ranker(checked(extreme), *pairs, first_label=0, **SETTINGS)
    assert np.isfinite(got[2]).all()
    if scale > 1e-40:  # below, float32 has only a few digits left
        lists, labels = make_lists(4, 6)
        products = [
            _core.label_products(*vectors, checked(rows), lists, labels)
            for vectors, rows in ((plain, x), (got, extreme))
        ]
        np.testing.assert_allclose(*products, atol=0.02)  # they stop at slightly other points


# -- bad input --------------------------------------------------------------------------------


def test_vectors_from_a_damaged_file_are_refused() -> None:
    x, pairs = make_rows(), all_pairs()
    vectors, _ = _core.train_ranker(checked(x), *pairs, first_label=0, **SETTINGS)
    lists, labels = make_lists(4, 6)

    def products(offsets: NDArray[Any], features: NDArray[Any], weights: NDArray[Any]) -> None:
        _core.label_products(offsets, features, weights, checked(x), lists, labels)

    offsets, features, weights = vectors
    for place, value in ((3, -5), (3, 10**12), (0, 2**62), (N_LABELS, 2**40)):
        bad = offsets.copy()
        bad[place] = value
        with pytest.raises(ValueError, match="damaged at label"):
            products(bad, features, weights)
    for value in (-1, N_FEATURES + 1, 2**31 - 1):
        bad = features.copy()
        bad[len(bad) // 2] = value
        with pytest.raises(ValueError, match="a feature out of range"):
            products(offsets, bad, weights)
    with pytest.raises(ValueError, match="do not fit each other"):
        products(offsets, features[:-1], weights)
    with pytest.raises(ValueError, match=r"label numbers of the lists must lie in \[0, 11\)"):
        products(offsets[:-1], features, weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost": 0.0}, "above 0"),
        ({"cost": np.inf}, "finite"),
        ({"tolerance": np.nan}, "above 0"),
        ({"max_epochs": 0}, "at least 1"),
        ({"prune": -1.0}, "prune must be finite"),
        ({"held_out": np.zeros(3, np.uint8)}, "held_out must have one entry per row"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.train_ranker(checked(make_rows()), *all_pairs(), first_label=0, **(SETTINGS | change))


def test_pairs_are_checked() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    bad_rows = rows.copy()
    bad_rows[5] = N_ROWS
    for pairs, message in (
        ((offsets, bad_rows, positive), r"row numbers of the pairs must lie in \[0, 120\)"),
        ((offsets[:-1], rows, positive), "must end at the number of entries"),
        ((offsets, rows, positive[:-1]), "as many marks as rows"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.train_ranker(checked(x), *pairs, first_label=0, **SETTINGS)
        with pytest.raises(ValueError, match=message):
            _core.train_centroids(checked(x), *pairs, min_rows=1, prune=0.0)


def test_training_can_be_called_back() -> None:
    cancel = np.ones(1, np.int32)
    with pytest.raises(KeyboardInterrupt):
        _core.train_ranker(
            checked(make_rows()), *all_pairs(), first_label=0, cancel=cancel, **SETTINGS
        )
