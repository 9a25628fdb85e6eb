"""The compiled parts of the second stage against plain twins."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from label_vectors import (
    EXACT,
    N_FEATURES,
    N_LABELS,
    N_ROWS,
    SETTINGS,
    WIDTHS,
    all_pairs,
    checked,
    dense,
    far_apart,
    label_pairs,
    make_lists,
    make_rows,
    named,
    products_of,
    train_centroids,
    train_ranker,
    unit,
)
from ldsm import _core

# -- pairs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill_to", [0, 3, 5, 8, 100])
def test_pairs_cover_lists_labels_and_fill(fill_to: int) -> None:
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


def test_mismatched_lists() -> None:
    lists, y = (_core.CheckedLabels(*make_lists(1, 3), N_LABELS + more) for more in (0, 1))
    with pytest.raises(ValueError, match="same number of labels. Got 12 and 13"):
        _core.label_pairs([lists], y, first=0, last=N_LABELS, fill_to=0, seed=0)
    fewer = _core.CheckedLabels(np.zeros(8, np.int64), np.zeros(0, np.int32), N_LABELS)
    with pytest.raises(ValueError, match="same number of rows. Got 120 and 7"):
        _core.label_pairs([lists], fewer, first=0, last=N_LABELS, fill_to=0, seed=0)
    for first, last in ((-1, 3), (4, 3), (0, N_LABELS + 1)):
        with pytest.raises(ValueError, match=f"<= 12. Got {first} and {last}"):
            _core.label_pairs([lists], lists, first=first, last=last, fill_to=0, seed=0)


@pytest.mark.parametrize("fill_to", [0, 3, 5, 100])
def test_pairs_of_ranges_and_chunks(fill_to: int) -> None:
    """Neither the range of labels nor the chunks of rows change them."""
    lists, y = make_lists(1, 3), make_lists(2, 2)
    offsets, rows, positive = label_pairs(lists, y, fill_to=fill_to, seed=7)
    own = _core.CheckedLabels(*y, N_LABELS)
    cuts = [0, 50, 50, 51, N_ROWS]
    chunks = []
    for start, stop in pairwise(cuts):
        indptr, labels = lists[0][start : stop + 1], lists[1]
        part = labels[indptr[0] : indptr[-1]]
        chunks.append(_core.CheckedLabels(indptr - indptr[0], part, N_LABELS))
    for first, last in ((0, 3), (3, 4), (4, 4), (4, N_LABELS)):
        found = _core.label_pairs(chunks, own, first=first, last=last, fill_to=fill_to, seed=7)
        start, stop = offsets[[first, last]]
        assert np.array_equal(found[0], offsets[first : last + 1] - start)
        assert np.array_equal(found[1], rows[start:stop])
        assert np.array_equal(found[2], positive[start:stop])


def test_fill_depends_on_seed() -> None:
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
def test_classifiers_match_liblinear(every: int, kind: str) -> None:
    """The same weights on the rows learned from, and next to the best objective on all rows.

    Rows that wait may still come to lie on the wrong side, so liblinear on all rows is no twin.
    """
    x, cost = make_rows(), COSTS[kind]
    offsets, rows, positive = linear_pairs(kind, x)
    held = (np.arange(N_ROWS) % every == 0) if every else np.zeros(N_ROWS, bool)
    mask = held.astype(np.uint8) if every else None
    vectors, margins = train_ranker(
        checked(x),
        offsets,
        rows,
        positive,
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


@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize("empty", [0.0, 0.3])
def test_full_rows_match_liblinear(every: int, empty: float) -> None:
    """Rows that have most features are laid out in another way, alike on all SIMD paths."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=(N_ROWS, N_FEATURES)) * (rng.random((N_ROWS, N_FEATURES)) >= empty)
    values[3] = 0
    x, (offsets, rows, positive) = sp.csr_array(values), all_pairs()
    held = (np.arange(N_ROWS) % every == 0) if every else np.zeros(N_ROWS, bool)
    mask = held.astype(np.uint8) if every else None
    data = (checked(x), offsets, rows, positive)
    vectors, margins = train_ranker(*data, held_out=mask, **EXACT)
    for label, weights in enumerate(dense(vectors)):
        mine = slice(offsets[label], offsets[label + 1])
        own, marks = unit(x)[rows[mine]], positive[mine]
        learned = rows_learned_from(own, marks, held[rows[mine]], EXACT["cost"])
        twin = liblinear(own[learned], marks[learned], EXACT["cost"])
        np.testing.assert_allclose(weights, twin, atol=2e-5)
    plain, found = train_ranker(*data, held_out=mask, simd="portable", **EXACT)
    assert np.array_equal(found, margins)
    for one, other in zip(plain, vectors, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("compress", [False, True])
def test_label_ranges_same_bits(compress: bool) -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    held = (np.arange(N_ROWS) % 4 == 0).astype(np.uint8)
    settings = SETTINGS | {"compress": compress}
    (starts, *arrays), margins = train_ranker(
        checked(x), offsets, rows, positive, held_out=held, **settings
    )
    parts: list[Any] = []
    for first, last in ((0, 1), (1, 7), (7, N_LABELS)):
        parts.append(
            train_ranker(
                checked(x),
                offsets,
                rows,
                positive,
                part=(first, last),
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
def test_held_out_margins(compress: bool) -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    held = (np.arange(N_ROWS) % 3 == 0).astype(np.uint8)
    label = np.repeat(np.arange(N_LABELS), np.diff(offsets))
    # Held-out rows come last: every fourth place is looked at first, and no place must change.
    last = np.lexsort((held[rows], label))
    rows, positive = rows[last], positive[last]
    settings = SETTINGS | {"compress": compress}
    _, margins = train_ranker(checked(x), offsets, rows, positive, held_out=held, **settings)
    kept = held[rows] == 0
    without = np.concatenate([[0], np.cumsum(np.bincount(label[kept], minlength=N_LABELS))])
    rough = settings | {"tolerance": 2 * SETTINGS["tolerance"]}
    vectors, _ = train_ranker(checked(x), without, rows[kept], positive[kept], **rough)
    by_row = np.lexsort((label[~kept], rows[~kept]))
    lists = np.concatenate([[0], np.cumsum(np.bincount(rows[~kept], minlength=N_ROWS))])
    products = products_of(vectors, x, lists, label[~kept][by_row].astype(np.int32))
    assert np.array_equal(products, margins[by_row])


def test_pruning_drops_small_weights_only() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    data = (checked(x), offsets, rows, positive)
    (starts, features, weights, _), _ = train_ranker(*data, **SETTINGS)
    prune = np.median(np.abs(weights[features == N_FEATURES]))  # some constants are smaller
    pruned = train_ranker(*data, **(SETTINGS | {"prune": prune}))[0]
    constant = features == N_FEATURES
    kept = (np.abs(weights) >= np.float32(prune)) | constant
    assert 0 < (np.abs(weights[constant]) < prune).sum() < N_LABELS < kept.sum() < len(kept)
    assert np.array_equal(pruned[1], features[kept])
    assert np.array_equal(pruned[2], weights[kept])
    assert pruned[0][-1] == kept.sum() < starts[-1]


# -- compressed vectors -----------------------------------------------------------------------

# Bytes with and without bridges, shorts with and without.


@pytest.mark.parametrize("n_features", WIDTHS)
@pytest.mark.parametrize("prune", [0.0, 0.1])
def test_compressed_vectors_are_rounded(n_features: int, prune: float) -> None:
    x, pairs = far_apart(make_rows(), n_features), all_pairs()
    left_out = (np.arange(N_ROWS) % 5 == 0).astype(np.uint8)
    forms = [{"compress": compress, "prune": prune} for compress in (False, True)]
    rankers = [train_ranker(checked(x), *pairs, **(SETTINGS | form))[0] for form in forms]
    means = [
        train_centroids(checked(x), *pairs, left_out=left_out, min_rows=15, **form)
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


# -- centroids --------------------------------------------------------------------------------


def test_centroids_are_means_of_unit_rows() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    left_out = (np.arange(N_ROWS) % 5 == 0).astype(np.uint8)
    vectors = train_centroids(
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


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e30, 3e38])
def test_row_scale_does_not_matter(scale: float) -> None:
    x = make_rows()
    extreme = sp.csr_array(
        ((x.data / x.data.max() * scale).astype(np.float32), x.indices, x.indptr), shape=x.shape
    )
    pairs = all_pairs()
    plain, _ = train_ranker(checked(x), *pairs, **SETTINGS)
    got, _ = train_ranker(checked(extreme), *pairs, **SETTINGS)
    assert np.isfinite(got[2]).all()
    if scale > 1e-40:  # below, float32 has only a few digits left
        lists, labels = make_lists(4, 6)
        products = [
            products_of(vectors, rows, lists, labels)
            for vectors, rows in ((plain, x), (got, extreme))
        ]
        np.testing.assert_allclose(*products, atol=0.02)  # they stop at slightly other points


# -- bad input --------------------------------------------------------------------------------


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
        train_ranker(checked(make_rows()), *all_pairs(), **(SETTINGS | change))


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
            train_ranker(checked(x), *pairs, **SETTINGS)
        with pytest.raises(ValueError, match=message):
            train_centroids(checked(x), *pairs, min_rows=1, prune=0.0, compress=False)


def test_training_can_be_cancelled() -> None:
    cancel = np.ones(1, np.int32)
    with pytest.raises(KeyboardInterrupt):
        train_ranker(checked(make_rows()), *all_pairs(), cancel=cancel, **SETTINGS)


# -- going on ---------------------------------------------------------------------------------


def proximal(
    before: NDArray[Any],
    firm: NDArray[Any],
    x: NDArray[Any],
    positive: NDArray[Any],
    cost: float,
) -> NDArray[Any]:
    """The plain twin: fits the rows and stays close to the former weights, by their firmness."""
    sign = np.where(positive, 1, -1)
    inputs = np.column_stack([x, np.ones(len(x))])

    def loss(weights: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        away = weights - before
        short = np.maximum(1 - sign * (inputs @ weights), 0)
        value = 0.5 * np.sum(firm * away**2) + cost * np.sum(short**2)
        return float(value), firm * away - 2 * cost * (sign * short) @ inputs

    return np.asarray(
        minimize(loss, before, jac=True, method="L-BFGS-B", options={"ftol": 1e-14}).x
    )


def test_updates_start_from_weights() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    data = (checked(x), offsets, rows, np.ones_like(positive) - positive)
    start, _ = train_ranker(*data, **EXACT)
    rng = np.random.default_rng(0)
    squares = rng.random(N_FEATURES).astype(np.float32) * 9
    firmness, rows_before = rng.random(N_LABELS), rng.random(N_LABELS) * 20
    firmness[3] = rows_before[3] = 0  # a new label
    going_on = {"squares": squares, "firmness": firmness, "rows_before": rows_before}
    vectors, _ = train_ranker(
        checked(x), offsets, rows, positive, start=named(start), **going_on, **EXACT
    )
    moved = 0.0
    for label, (before, after) in enumerate(zip(dense(start), dense(vectors), strict=True)):
        mine = slice(offsets[label], offsets[label + 1])
        firm = np.append(1 + firmness[label] * squares, 1 + rows_before[label])
        twin = proximal(before, firm, unit(x)[rows[mine]], positive[mine], EXACT["cost"])
        # Rows that wait may be left out: see above.
        np.testing.assert_allclose(after, twin, atol=0.02)
        moved += np.abs(after - before).sum()
    assert moved > 10
    # Firm weights stay; and labels without rows keep what they have, to the bit.
    firm_ones = going_on | {
        "firmness": np.full(N_LABELS, 1e9),
        "rows_before": np.full(N_LABELS, 1e9),
    }
    stiff, _ = train_ranker(
        checked(x),
        offsets,
        rows,
        positive,
        start=named(start),
        **firm_ones | {"squares": np.ones(N_FEATURES, np.float32)},
        **EXACT,
    )
    np.testing.assert_allclose(dense(stiff), dense(start), atol=1e-5)
    none = (np.zeros(N_LABELS + 1, np.int64), rows[:0], positive[:0])
    same, _ = train_ranker(checked(x), *none, start=named(start), **going_on, **EXACT)
    assert all(np.array_equal(a, b) for a, b in zip(same, start, strict=True))


def test_mismatched_updates() -> None:
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    start, _ = train_ranker(checked(x), offsets, rows, positive, **SETTINGS)
    good: dict[str, Any] = {
        "start": named(start),
        "squares": np.ones(N_FEATURES, np.float32),
        "firmness": np.ones(N_LABELS),
        "rows_before": np.ones(N_LABELS),
    }
    bad: dict[str, list[Any]] = {
        "start": [named((start[0][:5], *start[1:]))],
        "squares": [np.ones(3, np.float32), -np.ones(N_FEATURES, np.float32)],
        "firmness": [np.ones(3), np.full(N_LABELS, np.nan)],
        "rows_before": [np.ones(3), np.full(N_LABELS, np.inf)],
    }

    def updated(**changes: Any) -> None:
        settings = good | changes | SETTINGS
        train_ranker(checked(x), offsets, rows, positive, **settings)

    for name, values in bad.items():
        for value in values:
            with pytest.raises(ValueError, match=r"belong together|per label|per feature|must be"):
                updated(**{name: value})
    with pytest.raises(ValueError, match="damaged"):
        updated(start=named((start[0], start[1] + 1000, *start[2:])))


def test_starting_weights_must_be_of_all_labels() -> None:
    x, pairs = make_rows(), all_pairs()
    (offsets, features, weights, units), _ = train_ranker(
        checked(x), *pairs, **(SETTINGS | {"compress": True})
    )
    few = 5
    end = offsets[few]
    fewer = named((offsets[: few + 1], features[:end], weights[:end], units[:few]))
    amounts = {"squares": np.ones(N_FEATURES, np.float32), "firmness": np.ones(few)}
    start = {"start": fewer, "rows_before": np.ones(few), **amounts, **SETTINGS}
    vectors, _ = train_ranker(checked(x), *pairs, part=(0, few), **start)
    assert len(vectors[0]) == few + 1
    for part in ((0, few + 1), (few, N_LABELS), (N_LABELS - 1, N_LABELS)):
        with pytest.raises(ValueError, match="must be of all labels"):
            train_ranker(checked(x), *pairs, part=part, **start)
    for first in (-1, 2**31):
        with pytest.raises(ValueError, match=f"first_label must lie in .* Got {first}"):
            _core.CheckedPairs(*pairs, N_ROWS, first)


def test_label_streams_are_independent() -> None:
    """A label that is trained among a few others gets the same weights as among all."""
    x, (offsets, rows, positive) = make_rows(), all_pairs()
    rough = SETTINGS | {"max_epochs": 1}
    (starts, features, weights, _), _ = train_ranker(checked(x), offsets, rows, positive, **rough)
    chosen = [2, 5, N_LABELS - 1]
    kept = np.isin(np.repeat(np.arange(N_LABELS), np.diff(offsets)), chosen)
    few = np.where(np.isin(np.arange(N_LABELS), chosen), np.diff(offsets), 0)
    few = np.concatenate([[0], np.cumsum(few)])
    (its, its_features, its_weights, _), _ = train_ranker(
        checked(x), few, rows[kept], positive[kept], **rough
    )
    for label in chosen:
        own, full = slice(*its[label : label + 2]), slice(*starts[label : label + 2])
        assert np.array_equal(its_features[own], features[full])
        assert np.array_equal(its_weights[own], weights[full])
