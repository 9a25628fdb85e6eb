"""Feature indexes, shortlists and the best of lists against plain twins."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldsm import _core
from ldsm._arrays.features import feature_arrays
from matching import (
    N_FEATURES,
    N_FOLDS,
    N_LABELS,
    N_ROWS,
    by_index,
    by_trees,
    index_of_all,
    make_forest,
    naive_list,
    problem,
    rows_of,
    shortlists,
    unit,
)
from problems import core_arguments

FOLDS = np.random.default_rng(5).integers(0, N_FOLDS, N_ROWS).astype(np.uint8)


def indexes_of(X: Any, Y: Any, keep: int = 8, dtype: Any = np.int32) -> list[Any]:
    found = _core.train_feature_indexes(*core_arguments(X, Y), FOLDS, n_folds=N_FOLDS, keep=keep)
    return [
        SimpleNamespace(offsets=offsets, labels=labels.astype(dtype), codes=codes, units=units)
        for offsets, labels, codes, units in found
    ]


# -- the index --------------------------------------------------------------------------------


def naive_index(
    X: NDArray[np.float32], Y: NDArray[np.int64], rows: NDArray[np.bool_], keep: int
) -> tuple[list[dict[int, int]], list[float]]:
    """For each feature {label: code} and the unit, learned from some rows."""
    count = Y.sum(axis=0)
    lift = np.sqrt(np.sqrt(len(X) / np.maximum(count, 1)))
    values = unit(X).astype(np.float64)[rows]
    codes, units = [], []
    for f in range(X.shape[1]):
        sums = values[:, f] @ Y[rows]
        weights = (sums / (values[:, f].sum() + 2) * lift).astype(np.float32)
        best = sorted(np.flatnonzero(weights).tolist(), key=lambda k: (-weights[k], k))[:keep]
        largest = np.float32(max((weights[k] for k in best), default=0))
        units.append(largest / np.float32(255))
        found = {k: round(float(weights[k] / units[-1])) for k in sorted(best)}
        codes.append({k: code for k, code in found.items() if code})
    return codes, units


@pytest.mark.parametrize("keep", [1, 5, 12, 1000])
@pytest.mark.parametrize("kind", ["fours", "weights"])
@pytest.mark.parametrize("seed", range(3))
def test_index_matches_twin(seed: int, kind: str, keep: int) -> None:
    X, Y = problem(kind, seed)
    found = indexes_of(X, Y, keep)
    assert len(found) == N_FOLDS + 1
    for fold, index in enumerate(found):
        seen = fold != FOLDS  # the last is of all rows
        codes, units = naive_index(X, Y, seen, keep)
        assert [array.dtype for array in vars(index).values()] == [
            np.int64, np.int32, np.uint8, np.float32,
        ]  # fmt: skip
        np.testing.assert_allclose(index.units, units, rtol=1e-6)
        assert index.offsets[0] == 0 and len(index.offsets) == N_FEATURES + 1
        for f in range(N_FEATURES):
            part = slice(*index.offsets[f : f + 2])
            labels, numbers = index.labels[part].tolist(), index.codes[part].tolist()
            assert labels == sorted(labels)
            assert dict(zip(labels, numbers, strict=True)) == codes[f], f
        assert not codes[4] and index.units[4] == 0  # a feature of no row
        assert 7 not in index.labels  # a label of no row


def test_label_limit_and_ties() -> None:
    """One feature, and labels that are equally frequent: only the order of labels decides."""
    X, Y = np.ones((20, 1), np.float32), np.ones((20, 30), np.int64)
    offsets, labels, codes, _ = index_of_all(X, Y, keep=6)
    assert offsets.tolist() == [0, 6]
    assert labels.tolist() == list(range(6))
    assert codes.tolist() == [255] * 6


def test_zero_weights_are_dropped() -> None:
    X = np.zeros((400, 2), np.float32)
    X[:, 0] = 1
    Y = np.zeros((400, 2), np.int64)
    Y[:, 0] = 1
    Y[0] = [0, 1]
    X[0] = [1e-4, 1]  # next to nothing of the feature is in rows with label 1
    offsets, labels, codes, _ = index_of_all(X, Y, keep=10)
    assert offsets.tolist() == [0, 1, 2]
    assert labels.tolist() == [0, 1]
    assert codes.tolist() == [255, 255]


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_index_ignores_row_scale(scale: float) -> None:
    X, Y = problem("fours")
    for plain, scaled in zip(
        indexes_of(X, Y), indexes_of((X * scale).astype(np.float32), Y), strict=True
    ):
        assert np.array_equal(plain.labels, scaled.labels)
        assert np.array_equal(plain.codes, scaled.codes)
        np.testing.assert_allclose(plain.units, scaled.units, rtol=1e-6)


def test_vanishing_values() -> None:
    x = feature_arrays(np.array([[1e30, 1e-20], [0, 1]], np.float32)).checked
    y = _core.CheckedLabels(np.arange(3), np.zeros(2, np.int32), 1)
    folds = np.array([0, 1], np.uint8)
    offsets, labels, _, _ = _core.train_feature_indexes(x, y, folds, n_folds=2, keep=5)[-1]
    assert offsets.tolist() == [0, 1, 2] and labels.tolist() == [0, 0]


def test_index_by_ranges_of_features() -> None:
    x, y = core_arguments(*problem("weights"))
    whole = _core.train_feature_indexes(x, y, FOLDS, n_folds=N_FOLDS, keep=3)
    n_features = len(whole[0][3])
    cuts = [0, 1, 1, n_features // 2, n_features]
    parts = [
        _core.train_feature_indexes(x, y, FOLDS, n_folds=N_FOLDS, keep=3, first=a, last=b)
        for a, b in pairwise(cuts)
    ]
    for variant, (offsets, *others) in enumerate(whole):
        found = [part[variant] for part in parts]
        lengths = np.concatenate([np.diff(one[0]) for one in found])
        assert np.array_equal(lengths, np.diff(offsets))
        for i, array in enumerate(others, start=1):
            assert np.array_equal(np.concatenate([one[i] for one in found]), array)


def test_arguments_of_an_index_are_checked() -> None:
    x, y = core_arguments(*problem("weights"))
    for changes, message in (
        ({"n_folds": 0}, "n_folds must lie in"),
        ({"n_folds": 65}, "n_folds must lie in"),
        ({"keep": 0}, "keep be at least 1"),
        ({"n_folds": 2}, r"fold must lie in \[0, n_folds\)"),
        ({"fold": FOLDS[:-1]}, "fold must have one entry per row"),
        ({"first": -1}, "0 <= first <= last"),
        ({"first": 2, "last": 1}, "Got 2 and 1"),
        ({"last": 1000}, "0 <= first <= last"),
    ):
        settings = {"fold": FOLDS, "n_folds": N_FOLDS, "keep": 5} | changes
        with pytest.raises(ValueError, match=message):
            _core.train_feature_indexes(x, y, **settings)
    with pytest.raises(ValueError, match="same number of rows"):
        _core.train_feature_indexes(x.rows(0, 9), y, FOLDS[:9], n_folds=N_FOLDS, keep=5)
    with pytest.raises(KeyboardInterrupt):
        _core.train_feature_indexes(
            x, y, FOLDS, n_folds=N_FOLDS, keep=5, cancel=np.ones(1, np.int32)
        )


# -- shortlists -------------------------------------------------------------------------------


def check_lists(found: Any, trees: Any, indexed: Any, length: int, allowed: Any = None) -> None:
    indptr, labels, tree_scores, index_scores, *others, most_telling, evidence = found
    assert all(len(scores) == 0 for scores in others)
    assert len(most_telling) == len(evidence) == len(trees)
    assert len(indptr) == len(trees) + 1
    assert len(tree_scores) == len(labels) == indptr[-1]
    assert len(index_scores) == (len(labels) if indexed else 0)
    for row, (a, b) in enumerate(rows_of(indptr)):
        matchers = [trees[row]] + ([indexed[row]] if indexed else [])
        expected = naive_list(matchers, length, allowed)
        assert labels[a:b].tolist() == expected
        assert tree_scores[a:b].tolist() == [trees[row].get(k, 0) for k in expected]
        if indexed:
            assert index_scores[a:b].tolist() == [indexed[row].get(k, 0) for k in expected]


@pytest.mark.parametrize("length", [1, 2, 7, N_LABELS, 10_000])
@pytest.mark.parametrize("kind", ["fours", "weights"])
def test_shortlists_alternate_matchers(kind: str, length: int) -> None:
    X, Y = problem(kind)
    new = problem(kind, 1)[0]
    forest, values = make_forest(X, Y), unit(new)
    x = feature_arrays(new).checked
    allowed = (np.arange(N_LABELS) % 3 != 1).astype(np.uint8)
    for leaf_scores in ("probability", "histogram"):
        forest = replace(forest, leaf_scores=leaf_scores)
        trees = by_trees(forest, new)
        for dtype in (np.uint8, np.uint16, np.int32):
            index = indexes_of(X, Y, dtype=dtype)[-1]
            indexed = [by_index(index, row) for row in values]
            for may in (None, allowed):
                for path in _core.simd_paths():
                    found = shortlists(forest, x, length, [index], may, simd=path)
                    check_lists(found, trees, indexed, length, may)
        alone = shortlists(forest, x, length, [])
        check_lists(alone, trees, None, length)


@pytest.mark.parametrize("length", [1, 2, 7, N_LABELS])
@pytest.mark.parametrize("kind", ["fours", "weights"])
def test_dropped_labels_leave_gaps(kind: str, length: int) -> None:
    X, Y = problem(kind)
    new = problem(kind, 1)[0]
    forest, index = make_forest(X, Y), indexes_of(X, Y)[-1]
    trees, indexed = by_trees(forest, new), [by_index(index, row) for row in unit(new)]
    # The same labels under other numbers; the last six, which are frequent, are dropped.
    rng, by_count = np.random.default_rng(3), np.argsort(Y.sum(axis=0))
    first = np.concatenate([rng.permutation(by_count[:-6]), by_count[-6:]]).astype(np.int32)
    number = np.argsort(first).astype(np.int32)
    changes = {"histogram_labels": number[forest.histogram_labels], "places": first}
    dropped = replace(forest, n_labels=N_LABELS - 6, **changes)
    renamed = SimpleNamespace(**(vars(index) | {"labels": number[index.labels]}))
    x = feature_arrays(new).checked
    indptr, labels, tree_scores, index_scores, *_ = shortlists(dropped, x, length, [renamed])
    n_empty = 0
    for row, (a, b) in enumerate(rows_of(indptr)):
        expected = naive_list([trees[row], indexed[row]], length, None)
        left = sorted((int(number[k]), k) for k in expected if number[k] < N_LABELS - 6)
        n_empty += len(expected) - len(left)
        assert labels[a:b].tolist() == [k for k, _ in left]
        assert tree_scores[a:b].tolist() == [trees[row].get(k, 0) for _, k in left]
        assert index_scores[a:b].tolist() == [indexed[row].get(k, 0) for _, k in left]
    assert n_empty > 10


@pytest.mark.parametrize("n_labels", [65_536, 65_537, 500_000])
def test_the_same_lists_among_many_labels(n_labels: int) -> None:
    """Beyond 65,536 labels, sums are kept in a hash table."""
    X, Y = problem("weights")
    new = problem("weights", 1)[0]
    forest, index = make_forest(X, Y), indexes_of(X, Y)[-1]
    rng = np.random.default_rng(7)
    number = np.sort(rng.choice(n_labels, N_LABELS, replace=False)).astype(np.int32)
    number[-1] = n_labels - 1
    x = feature_arrays(new).checked
    expected = shortlists(forest, x, 7, [index])
    forest = replace(forest, histogram_labels=number[forest.histogram_labels], n_labels=n_labels)
    index = SimpleNamespace(**(vars(index) | {"labels": number[index.labels]}))
    found = shortlists(forest, x, 7, [index])
    assert np.array_equal(found[1], number[expected[1]])
    for position in (0, *range(2, len(found))):
        assert np.array_equal(found[position], expected[position])
    scores = _core.route_scores(forest, x)
    assert len(scores[1]) and set(scores[1].tolist()) <= set(number.tolist())


@pytest.mark.parametrize("may", [None, 3])
def test_given_rankings_take_turns(may: int | None) -> None:
    X, Y = problem("fours")
    new = problem("fours", 1)[0]
    forest, rng = make_forest(X, Y), np.random.default_rng(0)
    trees, allowed = by_trees(forest, new), None
    if may is not None:
        allowed = (np.arange(N_LABELS) % may != 1).astype(np.uint8)
    rankings = [
        [rng.permutation(N_LABELS)[: rng.integers(0, 9)].tolist() for _ in new] for _ in range(2)
    ]
    given = [
        (np.cumsum([0, *map(len, lists)]), np.concatenate(lists).astype(np.int32))
        for lists in rankings
    ]
    x = feature_arrays(new).checked
    indptr, labels, tree_scores, *_ = shortlists(forest, x, 9, [], allowed, given=given)
    for row, (a, b) in enumerate(rows_of(indptr)):
        others = [{k: -at for at, k in enumerate(lists[row])} for lists in rankings]
        expected = naive_list([trees[row], *others], 9, allowed)
        assert labels[a:b].tolist() == expected
        assert tree_scores[a:b].tolist() == [trees[row].get(k, 0) for k in expected]
    offsets, listed = given[0]
    for wrong, words in (
        ((offsets[:-1], listed[: offsets[-2]]), "one list per row"),
        ((offsets, listed + np.int32(N_LABELS)), "labels of a ranking"),
    ):
        with pytest.raises(ValueError, match=words):
            shortlists(forest, x, 9, [], given=[wrong])


def test_each_fold_has_its_index() -> None:
    X, Y = problem("weights")
    forest, values = make_forest(X, Y), unit(X)
    trees = by_trees(forest, X)
    *indexes, _ = indexes_of(X, Y)
    indexed = [by_index(indexes[FOLDS[row]], values[row]) for row in range(N_ROWS)]
    x = feature_arrays(X).checked
    found = shortlists(forest, x, 9, indexes, fold=FOLDS)
    check_lists(found, trees, indexed, 9)
    # Without folds the first index is for all rows.
    found = shortlists(forest, x, 9, indexes)
    check_lists(found, trees, [by_index(indexes[0], row) for row in values], 9)


def test_skipped_trees() -> None:
    X, Y = problem("weights")
    forest, index = make_forest(X, Y), indexes_of(X, Y)[-1]
    halves = [by_trees(forest.trees(*part), X) for part in ((0, 2), (2, 4))]
    which = np.arange(N_ROWS) % 3  # 2: no tree is left
    skip = np.ones((N_ROWS, 4), np.uint8)
    skip[which == 0, :2] = 0
    skip[which == 1, 2:] = 0
    trees = [halves[w][row] if w < 2 else {} for row, w in enumerate(which)]
    indexed = [by_index(index, row) for row in unit(X)]
    found = shortlists(forest, feature_arrays(X).checked, 9, [index], skip=skip)
    check_lists(found, trees, indexed, 9)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("batch", [1, 7])
def test_shortlists_independent_of_batch(batch: int, compress: bool) -> None:
    X, Y = problem("weights")
    forest = make_forest(X, Y, compress=compress)
    *indexes, _ = indexes_of(X, Y)
    x = feature_arrays(X).checked
    whole = shortlists(forest, x, 9, indexes, fold=FOLDS)
    for start in range(0, N_ROWS, batch):
        stop = min(start + batch, N_ROWS)
        fold = FOLDS[start:stop]
        indptr, *arrays = shortlists(forest, x.rows(start, stop), 9, indexes, fold=fold)
        assert np.array_equal(indptr, whole[0][start : stop + 1] - whole[0][start])
        part, rows = slice(whole[0][start], whole[0][stop]), slice(start, stop)
        *of_pairs, most_telling, evidence = whole[1:]
        expected = [*(array[part] for array in of_pairs), most_telling[rows], evidence[rows]]
        for again, array in zip(arrays, expected, strict=True):
            assert again.tobytes() == array.tobytes()


def test_evidence_of_rows() -> None:
    X, Y = problem("weights")
    X[3] = 0
    forest, x = make_forest(X, Y), feature_arrays(X).checked
    *indexes, index = indexes_of(X, Y)

    def weights_of(row: int, its: Any) -> Any:
        return 255 * its.units[np.flatnonzero(X[row])].astype(np.float64)

    *_, most_telling, evidence = shortlists(forest, x, 9, indexes, fold=FOLDS)
    for row in range(N_ROWS):
        weights = weights_of(row, indexes[FOLDS[row]])
        assert most_telling[row] == np.float32(max(weights, default=0))
        assert evidence[row] == np.float32(sum(weights))
    assert evidence[3] == 0 < evidence.max()
    # Parts of words count only if they are said to, and none of them by itself.
    counted = (np.arange(N_FEATURES) % 2).astype(np.uint8)
    both = {"sub_words": x, "sub_indexes": [index]}
    *_, most_telling, evidence = shortlists(
        forest, x, 9, [index], **both, telling_sub_words=counted
    )
    for row in range(N_ROWS):
        weights = weights_of(row, index)
        assert most_telling[row] == np.float32(max(weights, default=0))
        parts = weights[counted[np.flatnonzero(X[row])] == 1]
        assert evidence[row] == np.float32(sum(weights) + sum(parts))
    # Without an index, all features are alike.
    *_, evidence = shortlists(forest, x, 9, [])
    assert np.array_equal(evidence, np.count_nonzero(X, axis=1))
    with pytest.raises(ValueError, match="telling_sub_words must be per sub-word"):
        shortlists(forest, x, 9, [index], **both, telling_sub_words=counted[1:])


def lists_with(index: Any, X: Any, Y: Any, **options: Any) -> Any:
    return shortlists(make_forest(X, Y), feature_arrays(X).checked, 9, [index], **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_damaged_index(dtype: Any) -> None:
    X, Y = problem("weights")

    def changed(name: str, place: int, value: Any) -> Any:
        index = indexes_of(X, Y, dtype=dtype)[-1]
        getattr(index, name)[place] = value
        return index

    for place in (0, 3, N_FEATURES):
        for value in (-5, 10**12, 2**62, -(2**62), 2**63 - 1):
            with pytest.raises(ValueError, match="index is damaged: offsets out of range"):
                lists_with(changed("offsets", place, value), X, Y)
    outside = [N_LABELS, np.iinfo(dtype).max] + ([-1, -(2**31)] if dtype == np.int32 else [])
    for value in outside:
        with pytest.raises(ValueError, match="index is damaged: a label out of range"):
            lists_with(changed("labels", 11, value), X, Y)
    for value in (np.nan, -1.0, np.inf, -np.inf):
        with pytest.raises(ValueError, match="not a positive number"):
            lists_with(changed("units", 2, value), X, Y)


def test_arrays_of_an_index_must_fit() -> None:
    X, Y = problem("weights")
    for name in ("offsets", "labels", "codes", "units"):
        index = indexes_of(X, Y)[-1]
        setattr(index, name, getattr(index, name)[:-1])
        with pytest.raises(ValueError, match="do not fit each other or X in size"):
            lists_with(index, X, Y)
        setattr(index, name, getattr(indexes_of(X, Y)[-1], name).astype(np.float64))
        with pytest.raises(ValueError, match=f"feature index's {name} must be a contiguous"):
            lists_with(index, X, Y)
        delattr(index, name)
        with pytest.raises(AttributeError, match=name):
            lists_with(index, X, Y)


def test_random_index_bytes() -> None:
    X, Y = problem("weights")
    forest, x = make_forest(X, Y), feature_arrays(X).checked
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        index = indexes_of(X, Y)[-1]
        name = rng.choice(["offsets", "labels", "codes", "units"])
        raw = getattr(index, name).view(np.uint8)
        raw[rng.integers(len(raw), size=3)] = rng.integers(256, size=3)
        try:
            indptr, labels, *_ = shortlists(forest, x, 9, [index])
        except ValueError:
            refused += 1
            continue
        assert np.diff(indptr).max() <= 9
        assert labels.min() >= 0 and labels.max() < N_LABELS
        for a, b in rows_of(indptr):
            assert np.all(np.diff(labels[a:b]) > 0)
    assert 50 < refused < 350


def test_arguments_of_shortlists_are_checked() -> None:
    X, Y = problem("weights")
    index = indexes_of(X, Y)[-1]
    for options, message in (
        ({"fold": FOLDS}, "fold must name one of the indexes"),
        ({"fold": FOLDS[:-1]}, "fold must have one entry per row"),
        ({"allowed": np.ones(3, np.uint8)}, "allowed must have one entry per label"),
        ({"skip": np.ones((N_ROWS, 3), np.uint8)}, "skip must have"),
        ({"simd": "mmx"}, "must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            lists_with(index, X, Y, **options)
    forest = make_forest(X, Y)
    x = feature_arrays(X).checked
    with pytest.raises(ValueError, match="fold must name one of the indexes"):
        shortlists(forest, x, 9, [], fold=np.zeros(N_ROWS, np.uint8))
    with pytest.raises(ValueError, match="length must be at least 1"):
        shortlists(forest, x, 0, [index])
    with pytest.raises(ValueError, match="features of the forest"):
        shortlists(forest, feature_arrays(X[:, 1:]).checked, 9, [])
    with pytest.raises(KeyboardInterrupt):
        lists_with(index, X, Y, cancel=np.ones(1, np.int32))


# -- the best of lists ------------------------------------------------------------------------


def random_lists(rng: Any, allowed: Any) -> tuple[Any, Any, Any]:
    """Lists of 0 to 12 labels; many scores are equal, and some are 0."""
    rows = [
        np.sort(rng.choice(np.flatnonzero(allowed), rng.integers(13), replace=False))
        for _ in range(60)
    ]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    labels = np.concatenate(rows).astype(np.int32)
    return indptr, labels, rng.choice([0, 0.1, 0.3, 0.3, 0.7], len(labels)).astype(np.float32)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("k", [1, 4, 13])
def test_best_of_lists_matches_sort(k: int, restricted: bool, weighted: bool) -> None:
    rng = np.random.default_rng(k)
    allowed = np.ones(N_LABELS, np.uint8)
    if restricted:
        allowed[rng.choice(N_LABELS, 10, replace=False)] = 0
    indptr, labels, scores = random_lists(rng, allowed)
    fill = rng.permutation(N_LABELS).astype(np.int32)
    weights = rng.choice([0.5, 1.0, 3.0], N_LABELS) if weighted else None
    top, values = _core.best_of_lists(
        indptr, labels, scores, k, fill, allowed if restricted else None, weights
    )
    assert top.dtype == np.int32 and values.dtype == np.float32
    assert top.shape == values.shape == (60, k)
    filled = 0
    for row, (a, b) in enumerate(rows_of(indptr)):
        score = dict(zip(labels[a:b].tolist(), scores[a:b].tolist(), strict=True))
        merit = {n: s * (1 if weights is None else weights[n]) for n, s in score.items() if s > 0}
        best = sorted(merit, key=lambda n: (-merit[n], n))[:k]
        others = [n for n in fill.tolist() if allowed[n] and n not in best][: k - len(best)]
        filled += len(others)
        assert top[row].tolist() == best + others
        assert values[row].tolist() == [score[n] for n in best] + [0] * len(others)
    assert filled > 0


def test_ties_and_label_weights() -> None:
    indptr = np.array([0, 5], np.int64)
    labels = np.array([7, 2, 5, 9, 4], np.int32)
    scores = np.array([0.3, 0.3, 0.6, 0, np.nan], np.float32)
    fill = np.arange(9, -1, -1, dtype=np.int32)
    top, values = _core.best_of_lists(indptr, labels, scores, 5, fill)
    assert top.tolist() == [[5, 2, 7, 9, 8]]  # what has no score comes from the fill order
    assert values[0, 3:].tolist() == [0, 0]
    weights = np.ones(10)
    weights[7] = 3
    top, values = _core.best_of_lists(indptr, labels, scores, 2, fill, None, weights)
    assert top.tolist() == [[7, 5]]
    assert np.array_equal(values, np.array([[0.3, 0.6]], np.float32))


def test_lists_are_checked() -> None:
    good: dict[str, Any] = {
        "indptr": np.array([0, 2, 3], np.int64),
        "labels": np.array([0, 2, 1], np.int32),
        "scores": np.array([0.5, 0.2, 0.1], np.float32),
        "k": 2,
        "fill_order": np.array([2, 1, 0], np.int32),
    }
    assert _core.best_of_lists(**good)[0].tolist() == [[0, 2], [1, 2]]
    for changes, message in (
        ({"k": 0}, r"k must lie in \[1, 3\]"),
        ({"k": 4}, r"k must lie in \[1, 3\]. Got 4"),
        ({"allowed": np.array([0, 2, 0], np.uint8)}, r"k must lie in \[1, 1\]"),
        ({"allowed": np.ones(2, np.uint8)}, "allowed must have one entry per label"),
        ({"label_weights": np.ones(2)}, "label_weights must have one entry per label"),
        ({"scores": np.ones(2, np.float32)}, "as many scores as labels"),
        ({"labels": np.array([0, 3, 1], np.int32)}, "labels of the lists must lie in"),
        ({"labels": np.array([0, -1, 1], np.int32)}, "labels of the lists must lie in"),
        ({"indptr": np.array([0, 2, 9], np.int64)}, "must end at the number of entries"),
        ({"indptr": np.array([0, 3, 2], np.int64)}, "offsets of the lists"),
        ({"fill_order": np.array([3, 1, 2], np.int32)}, "fill_order must lie in"),
        ({"fill_order": np.array([2, 2, 2], np.int32), "k": 3}, "fill_order must name every"),
    ):
        with pytest.raises(ValueError, match=message):
            _core.best_of_lists(**(good | changes))


# -- an index that is added to -----------------------------------------------------------------


def extended(index: Any, masses: Any, X: Any, Y: Any, lifts: Any, **options: Any) -> Any:
    settings = {"keep": 8, "seed": 1} | options
    return _core.extend_feature_index(index, masses, *core_arguments(X, Y), *lifts, **settings)


def test_index_update() -> None:
    X, Y = problem("weights")
    *_, index = indexes_of(X, Y)
    lift = np.sqrt(np.sqrt(len(X) / np.maximum(Y.sum(axis=0), 1)))
    masses = np.abs(unit(X)).sum(axis=0).astype(np.float32)
    # Without rows, or with rows that have nothing of a feature, its labels stay as they are.
    nothing = np.zeros_like(X)
    same = extended(index, masses, nothing, Y, (lift, lift))
    names = ("offsets", "labels", "codes", "units")
    assert all(np.array_equal(a, getattr(index, n)) for a, n in zip(same, names, strict=True))
    # Twice the same rows: each share is nearly what it was, less what is taken for granted.
    offsets, labels, codes, units = extended(index, masses, X, Y, (lift, lift))
    for f in range(N_FEATURES):
        part, old = (slice(o[f], o[f + 1]) for o in (offsets, index.offsets))
        before = dict(
            zip(index.labels[old].tolist(), index.codes[old] * index.units[f], strict=True)
        )
        after = dict(zip(labels[part].tolist(), codes[part] * units[f], strict=True))
        grown = (2 * masses[f]) / (2 * masses[f] + 2) * (masses[f] + 2) / max(masses[f], 1e-9)
        for label, weight in after.items():
            if label in before:
                assert abs(weight - grown * before[label]) <= 2.1 * units[f]
    # The last bit is drawn, but always in the same way.
    again = extended(index, masses, X, Y, (lift, lift))
    assert np.array_equal(again[2], codes)
    assert not np.array_equal(extended(index, masses, X, Y, (lift, lift), seed=2)[2], codes)


def test_small_index_updates_add_up() -> None:
    """Less than a step of the codes each time, but right on average."""
    n_features = 400
    X, Y = np.ones((500, n_features), np.float32), np.zeros((500, 2), np.int64)
    Y[:, 0], Y[:100, 1] = 1, 1
    found = _core.train_feature_indexes(
        *core_arguments(X, Y), np.zeros(500, np.uint8), n_folds=1, keep=8
    )[-1]
    index = SimpleNamespace(
        **dict(zip(("offsets", "labels", "codes", "units"), found, strict=True))
    )
    masses = unit(X).sum(axis=0).astype(np.float32)
    row, own, flat = X[:1], np.array([[0, 1]]), np.ones(2)
    for _ in range(50):
        index = SimpleNamespace(
            **dict(
                zip(
                    ("offsets", "labels", "codes", "units"),
                    extended(index, masses, row, own, (flat, flat), seed=_),
                    strict=True,
                )
            )
        )
        masses = masses + unit(row)[0].astype(np.float32)
    weights = (index.codes.reshape(n_features, 2) * index.units[:, None]).mean(axis=0)
    # The mass of each label, relative to the lift that the first index was made with.
    mass = weights[1] * (masses[0] + 2)
    first = found[2].reshape(n_features, 2)[0, 1] * found[3][0] * (masses[0] - 50 / 20 + 2)
    assert mass - first == pytest.approx(50 / 20, rel=0.2)


def test_mismatched_index_update() -> None:
    X, Y = problem("weights")
    *_, index = indexes_of(X, Y)
    lift = np.ones(N_LABELS)
    masses = np.ones(N_FEATURES, np.float32)
    for wrong in (
        {"masses": masses[:3]},
        {"lifts": (lift[:3], lift)},
        {"lifts": (lift, lift[:3])},
        {"keep": 0},
    ):
        options = {"masses": masses, "lifts": (lift, lift)} | wrong
        with pytest.raises(ValueError, match="must be"):
            extended(index, options.pop("masses"), X, Y, options.pop("lifts"), **options)
    for name, value in (("offsets", index.offsets[::-1].copy()), ("labels", index.labels + 10**6)):
        broken = SimpleNamespace(**(vars(index) | {name: value}))
        with pytest.raises(ValueError, match="damaged"):
            extended(broken, masses, X, Y, (lift, lift))
