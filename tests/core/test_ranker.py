"""The compiled parts of the second stage against plain twins."""

from __future__ import annotations

from types import SimpleNamespace
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
    "compress": False,
    "seed": 3,
}
# With a finer tolerance, float32 may not get there.
EXACT = SETTINGS | {"tolerance": 1e-5, "max_epochs": 20000}


def checked(matrix: sp.csr_array) -> _core.CheckedFeatures:
    return _core.CheckedFeatures(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float32),
        matrix.shape[1],
    )


def label_pairs(lists: Any, y: Any, **settings: Any) -> Any:
    rows = (_core.CheckedLabels(*labels, N_LABELS) for labels in (lists, y))
    return _core.label_pairs(*rows, **settings)


def make_rows(seed: int = 0, n_rows: int = N_ROWS) -> sp.csr_array:
    return sp.csr_array(
        sp.random(n_rows, N_FEATURES, 0.2, format="csr", dtype=np.float32, random_state=seed)
    )


def far_apart(x: sp.csr_array, n_features: int) -> sp.csr_array:
    """The same rows; half of the features stay the first ones, the others become the last."""
    half = N_FEATURES // 2
    columns = x.indices + np.where(x.indices < half, 0, n_features - N_FEATURES)
    return sp.csr_array((x.data, columns, x.indptr), shape=(x.shape[0], n_features))


def named(vectors: Any) -> Any:
    names = ("offsets", "features", "weights", "units")
    return SimpleNamespace(**dict(zip(names, vectors, strict=True)))


def products_of(vectors: Any, x: sp.csr_array, indptr: Any, labels: Any) -> NDArray[np.float32]:
    return _core.label_products(named(vectors), checked(x), indptr, labels)


def decoded(vectors: Any) -> Any:
    """Compressed vectors as exact ones with the same entries."""
    offsets, gaps, codes, units = vectors
    features = [np.cumsum(part, dtype=np.int32) for part in np.split(gaps, offsets[1:-1])]
    weights = codes.astype(np.float32) * np.repeat(units, np.diff(offsets))
    return offsets, np.concatenate(features), weights, np.zeros(0, np.float32)


def dense(vectors: Any, n_features: int = N_FEATURES) -> NDArray[np.float64]:
    """Weights of labels x features; the last column is the constant."""
    if len(vectors[3]):
        vectors = decoded(vectors)
    offsets, features, weights, _ = vectors
    out = np.zeros((len(offsets) - 1, n_features + 1))
    out[np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), features] = weights
    return out


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


COSTS = {"noise": 0.5, "lines": 1.0}


def linear_pairs(kind: str, x: sp.csr_array) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Pairs of all rows and labels that a line tells apart, or pairs at random."""
    if kind == "noise":
        return all_pairs()
    score = unit(x) @ np.random.default_rng(0).normal(size=(N_FEATURES, N_LABELS))
    positive = score > np.quantile(score, 0.85, axis=0)
    rows = np.tile(np.arange(N_ROWS, dtype=np.int32), N_LABELS)
    return np.arange(N_LABELS + 1) * N_ROWS, rows, positive.T.ravel().astype(np.uint8)


def liblinear(x: NDArray[np.float64], positive: NDArray[Any], cost: float) -> NDArray[np.float64]:
    svc = LinearSVC(C=cost, tol=1e-8, max_iter=1_000_000, dual=True, random_state=0)
    svc.fit(x, positive)
    return np.append(svc.coef_[0], svc.intercept_[0])


def rows_learned_from(
    x: NDArray[np.float64], positive: NDArray[Any], held: NDArray[Any], cost: float
) -> NDArray[np.bool_]:
    """Most rows without a label wait; they are looked at once per phase.

    Then those on the wrong side of their margin join. There are two phases if rows are held out.
    """
    learned = ~held & ((positive == 1) | (np.arange(len(x)) % 4 == 0))
    for known in (~held, np.ones_like(held)) if held.any() else (~held,):
        learned |= known & (positive == 1)
        weights = liblinear(x[learned], positive[learned], cost)
        learned |= known & (x @ weights[:-1] + weights[-1] > -1)
    return learned


def objective(weights: NDArray[Any], x: NDArray[Any], positive: NDArray[Any], cost: float) -> float:
    margins = np.where(positive, 1, -1) * (x @ weights[:-1] + weights[-1])
    return float(0.5 * np.sum(weights**2) + cost * np.sum(np.maximum(1 - margins, 0) ** 2))


@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("every", [0, 3])
def test_the_classifiers_are_those_of_liblinear(every: int, kind: str) -> None:
    """The same weights on the rows learned from, and next to the best objective on all rows.

    Rows that wait may still come to lie on the wrong side, so liblinear on all rows is no twin.
    """
    x, cost = make_rows(), COSTS[kind]
    offsets, rows, positive = linear_pairs(kind, x)
    held = (np.arange(N_ROWS) % every == 0) if every else np.zeros(N_ROWS, bool)
    mask = held.astype(np.uint8) if every else None
    vectors, margins = _core.train_ranker(
        checked(x),
        offsets,
        rows,
        positive,
        first_label=0,
        held_out=mask,
        **(EXACT | {"cost": cost}),
    )
    assert len(margins) == held[rows].sum()
    waited = 0
    for label, weights in enumerate(dense(vectors)):
        mine = slice(offsets[label], offsets[label + 1])
        own, marks = unit(x)[rows[mine]], positive[mine]
        learned = rows_learned_from(own, marks, held[rows[mine]], cost)
        twin = liblinear(own[learned], marks[learned], cost)
        np.testing.assert_allclose(weights, twin, atol=2e-5)
        best = objective(liblinear(own, marks, cost), own, marks, cost)
        assert objective(weights, own, marks, cost) < 1.001 * best
        waited += (~learned).sum()
    # Where no line tells the labels, nearly all rows are learned from: the twin is plain liblinear.
    assert waited <= 5 if kind == "noise" else waited >= 50


@pytest.mark.parametrize("compress", [False, True])
def test_any_division_of_the_labels_gives_the_same_bits(compress: bool) -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    held = (np.arange(N_ROWS) % 4 == 0).astype(np.uint8)
    settings = SETTINGS | {"compress": compress}
    (starts, *arrays), margins = _core.train_ranker(
        checked(x), offsets, rows, positive, first_label=0, held_out=held, **settings
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
                **settings,
            )
        )
    for i, array in enumerate(arrays, 1):
        assert np.array_equal(np.concatenate([p[0][i] for p in parts]), array)
    assert np.array_equal(np.concatenate([p[1] for p in parts]), margins)
    assert starts[-1] == len(arrays[0]) == len(arrays[1])
    assert len(arrays[2]) == (N_LABELS if compress else 0)


@pytest.mark.parametrize("compress", [False, True])
def test_held_out_margins_come_from_a_classifier_that_never_saw_these_rows(compress: bool) -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    held = (np.arange(N_ROWS) % 3 == 0).astype(np.uint8)
    label = np.repeat(np.arange(N_LABELS), np.diff(offsets))
    # Held-out rows come last: every fourth place is looked at first, and no place must change.
    last = np.lexsort((held[rows], label))
    rows, positive = rows[last], positive[last]
    settings = SETTINGS | {"compress": compress}
    _, margins = _core.train_ranker(
        checked(x), offsets, rows, positive, first_label=0, held_out=held, **settings
    )
    kept = held[rows] == 0
    without = np.concatenate([[0], np.cumsum(np.bincount(label[kept], minlength=N_LABELS))])
    rough = settings | {"tolerance": 2 * SETTINGS["tolerance"]}
    vectors, _ = _core.train_ranker(
        checked(x), without, rows[kept], positive[kept], first_label=0, **rough
    )
    by_row = np.lexsort((label[~kept], rows[~kept]))
    lists = np.concatenate([[0], np.cumsum(np.bincount(rows[~kept], minlength=N_ROWS))])
    products = products_of(vectors, x, lists, label[~kept][by_row].astype(np.int32))
    assert np.array_equal(products, margins[by_row])


def test_pruning_drops_small_weights_only() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    data = (checked(x), offsets, rows, positive)
    (starts, features, weights, _), _ = _core.train_ranker(*data, first_label=0, **SETTINGS)
    prune = np.median(np.abs(weights[features == N_FEATURES]))  # some constants are smaller
    pruned = _core.train_ranker(*data, first_label=0, **(SETTINGS | {"prune": prune}))[0]
    constant = features == N_FEATURES
    kept = (np.abs(weights) >= np.float32(prune)) | constant
    assert 0 < (np.abs(weights[constant]) < prune).sum() < N_LABELS < kept.sum() < len(kept)
    assert np.array_equal(pruned[1], features[kept])
    assert np.array_equal(pruned[2], weights[kept])
    assert pruned[0][-1] == kept.sum() < starts[-1]


# -- compressed vectors -----------------------------------------------------------------------

# Bytes with and without bridges, shorts with and without.
WIDTHS = [N_FEATURES, 4096, 4097, 200_000]


@pytest.mark.parametrize("n_features", WIDTHS)
@pytest.mark.parametrize("prune", [0.0, 0.1])
def test_compressed_vectors_are_the_exact_ones_rounded(n_features: int, prune: float) -> None:
    x, pairs = far_apart(make_rows(), n_features), all_pairs()
    left_out = (np.arange(N_ROWS) % 5 == 0).astype(np.uint8)
    forms = [{"compress": compress, "prune": prune} for compress in (False, True)]
    rankers = [
        _core.train_ranker(checked(x), *pairs, first_label=0, **(SETTINGS | form))[0]
        for form in forms
    ]
    means = [
        _core.train_centroids(checked(x), *pairs, left_out=left_out, min_rows=15, **form)
        for form in forms
    ]
    for exact, compressed in (rankers, means):
        assert [array.dtype for array in exact] == [np.int64, np.int32, np.float32, np.float32]
        gap = np.uint8 if n_features <= 4096 else np.uint16
        assert [array.dtype for array in compressed] == [np.int64, gap, np.int8, np.float32]
        assert compressed[0][-1] == len(compressed[1]) == len(compressed[2])
        assert len(exact[3]) == 0
        expected, got = dense(exact, n_features), dense(compressed, n_features)
        largest = np.abs(expected).max(axis=1)
        np.testing.assert_allclose(compressed[3], largest / 127, rtol=1e-6)
        assert np.all(np.abs(got - expected) <= 0.5001 * compressed[3][:, None])
        # Only what comes to nothing is dropped, and entries of weight 0 bridge wide gaps alone.
        for label in range(N_LABELS):
            part = slice(*compressed[0][label : label + 2])
            features = np.cumsum(compressed[1][part], dtype=np.int64)
            assert np.all(np.diff(features) > 0)
            assert np.all(compressed[1][part][compressed[2][part] == 0] == np.iinfo(gap).max)
            if len(features):
                assert np.abs(compressed[2][part]).max() == 127
    bridged = (rankers[1][2] == 0).any()
    assert bridged == (n_features in (4096, 200_000))


@pytest.mark.parametrize("n_features", WIDTHS)
@pytest.mark.parametrize("batch", [1, 7, N_ROWS])
def test_products_of_compressed_vectors_are_those_of_the_rounded_ones(
    n_features: int, batch: int
) -> None:
    x, pairs = far_apart(make_rows(), n_features), all_pairs()
    settings = SETTINGS | {"compress": True, "prune": 0.05}
    vectors, _ = _core.train_ranker(checked(x), *pairs, first_label=0, **settings)
    new = far_apart(make_rows(9), n_features)
    indptr, labels = make_lists(4, 6)
    whole = products_of(vectors, new, indptr, labels)
    assert np.array_equal(whole, products_of(decoded(vectors), new, indptr, labels))
    row = np.repeat(np.arange(N_ROWS), np.diff(indptr))
    half = N_FEATURES // 2
    weights = dense(vectors, n_features)
    weights = np.delete(weights, slice(half, n_features - half), axis=1)[labels]
    expected = (unit(make_rows(9))[row] * weights[:, :-1]).sum(axis=1) + weights[:, -1]
    np.testing.assert_allclose(whole, expected, atol=1e-5)
    check_batches(vectors, new, indptr, labels, whole, batch)


# -- centroids and products -------------------------------------------------------------------


def test_centroids_are_means_of_unit_rows() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    left_out = (np.arange(N_ROWS) % 5 == 0).astype(np.uint8)
    vectors = _core.train_centroids(
        checked(x),
        offsets,
        rows,
        positive,
        left_out=left_out,
        min_rows=15,
        prune=0.02,
        compress=False,
    )
    sizes = []
    for label in range(N_LABELS):
        mine = slice(offsets[label], offsets[label + 1])
        members = rows[mine][(positive[mine] == 1) & (left_out[rows[mine]] == 0)]
        sizes.append(len(members))
        expected = unit(x)[members].mean(axis=0) if len(members) >= 15 else np.zeros(N_FEATURES)
        expected = np.append(np.where(expected >= 0.02, expected, 0), 0)  # no constant
        np.testing.assert_allclose(dense(vectors)[label], expected, atol=1e-6)
    assert min(sizes) < 15 < max(sizes)  # both kinds of label were there


def check_batches(
    vectors: Any, x: sp.csr_array, indptr: Any, labels: Any, whole: Any, batch: int
) -> None:
    """The same bits whichever rows are asked for together."""
    for start in range(0, N_ROWS, batch):
        stop = min(start + batch, N_ROWS)
        part = slice(indptr[start], indptr[stop])
        lists = indptr[start : stop + 1] - indptr[start]
        again = products_of(vectors, sp.csr_array(x[start:stop]), lists, labels[part])
        assert np.array_equal(again, whole[part])


@pytest.mark.parametrize("batch", [1, 7, N_ROWS])
def test_products_do_not_depend_on_the_batch(batch: int) -> None:
    x, pairs = make_rows(), all_pairs()
    vectors, _ = _core.train_ranker(checked(x), *pairs, first_label=0, **SETTINGS)
    weights = dense(vectors)
    new = make_rows(9)
    indptr, labels = make_lists(4, 6)
    labels = labels[::-1].copy()  # a list is in any order
    whole = products_of(vectors, new, indptr, labels)
    row = np.repeat(np.arange(N_ROWS), np.diff(indptr))
    expected = (unit(new)[row] * weights[labels, :-1]).sum(axis=1) + weights[labels, -1]
    np.testing.assert_allclose(whole, expected, atol=1e-5)
    check_batches(vectors, new, indptr, labels, whole, batch)


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
            products_of(vectors, rows, lists, labels)
            for vectors, rows in ((plain, x), (got, extreme))
        ]
        np.testing.assert_allclose(*products, atol=0.02)  # they stop at slightly other points


# -- bad input --------------------------------------------------------------------------------


def test_vectors_from_a_damaged_file_are_refused() -> None:
    x, pairs = make_rows(), all_pairs()
    vectors, _ = _core.train_ranker(checked(x), *pairs, first_label=0, **SETTINGS)
    lists, labels = make_lists(4, 6)

    def products(offsets: Any, features: Any, weights: Any) -> None:
        units = np.zeros(0, np.float32)
        products_of((offsets, features, weights, units), x, lists, labels)

    offsets, features, weights, _ = vectors
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
    for value, message in ((np.nan, "not finite"), (np.inf, "not finite"), (3e38, "too large")):
        bad = np.where(features == N_FEATURES, weights, np.float32(value))
        with pytest.raises(ValueError, match=message):
            products(offsets, features, bad)
    with pytest.raises(ValueError, match="do not fit each other"):
        products(offsets, features[:-1], weights)
    with pytest.raises(ValueError, match=r"label numbers of the lists must lie in \[0, 11\)"):
        products(offsets[:-1], features, weights)
    with pytest.raises(ValueError, match="weights must be a contiguous, aligned array"):
        products(offsets, features, weights.astype(np.float64))


@pytest.mark.parametrize("n_features", [N_FEATURES, 200_000])
def test_compressed_vectors_from_a_damaged_file_are_refused(n_features: int) -> None:
    x, pairs = far_apart(make_rows(), n_features), all_pairs()
    settings = SETTINGS | {"compress": True}
    vectors, _ = _core.train_ranker(checked(x), *pairs, first_label=0, **settings)
    lists, labels = make_lists(4, 6)
    for name, place, value, message in (
        ("offsets", 3, -5, "offsets out of range"),
        ("offsets", 3, 10**12, "offsets out of range"),
        ("features", 2, np.iinfo(vectors[1].dtype).max, "a feature out of range"),
        ("units", 3, np.nan, "a weight that is not finite"),
        ("units", 3, np.inf, "a weight that is not finite"),
        ("units", 3, 1e38, "a weight that is not finite"),
    ):
        bad = named([array.copy() for array in vectors])
        getattr(bad, name)[place] = value
        with pytest.raises(ValueError, match=f"damaged at label .*{message}"):
            _core.label_products(bad, checked(x), lists, labels)
    for name in ("offsets", "features", "weights", "units"):
        bad = named(vectors)
        setattr(bad, name, getattr(bad, name)[:-1])
        with pytest.raises(ValueError, match="do not fit each other"):
            _core.label_products(bad, checked(x), lists, labels)
    exact = vectors[2].astype(np.float32)  # floats have no units
    with pytest.raises(ValueError, match="do not fit each other"):
        products_of((*vectors[:2], exact, vectors[3]), x, lists, labels)


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
            _core.train_centroids(checked(x), *pairs, min_rows=1, prune=0.0, compress=False)


def test_training_can_be_called_back() -> None:
    cancel = np.ones(1, np.int32)
    with pytest.raises(KeyboardInterrupt):
        _core.train_ranker(
            checked(make_rows()), *all_pairs(), first_label=0, cancel=cancel, **SETTINGS
        )
