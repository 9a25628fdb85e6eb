"""Label vectors from dense rows: the same as the twin, in every path and form."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from ldsm import _core
from ldsm._arrays.dense_rows import UNIT, DenseRows, LabelVectors, dense_rows
from ldsm._arrays.labels import LabelArrays, label_arrays
from ldsm._matching.meaning import Meaning
from ldsm._matching.space import RIDGE, LabelledRows, NameMap, Space
from ldsm._trees.columns import Moved, NewColumns

N_ROWS, N_LABELS = 60, 11


def problem(seed: int, width: int = 6) -> tuple[DenseRows, Any, LabelVectors]:
    """Rows, one of them empty, their labels and the vectors of some names.

    Label 3 has neither a row nor a name, label 5 has no row.
    """
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(N_ROWS, width))
    values[7] = 0
    y = (rng.random((N_ROWS, N_LABELS)) < 0.2).astype(np.int32)
    y[:, [3, 5]] = 0
    numbers = np.array([0, 1, 2, 5, 8])
    names = dense_rows(rng.normal(size=(len(numbers), width)), len(numbers))
    return dense_rows(values, N_ROWS), y, LabelVectors(numbers, names)


def shown(rows: DenseRows, y: Any) -> LabelledRows:
    own = sp.csr_array(y)
    indptr, indices = own.indptr.astype(np.int64), own.indices.astype(np.int32)
    return LabelledRows(rows, LabelArrays(indptr, indices, np.arange(y.shape[1]), "sparse"))


def trained(rows: DenseRows, y: Any, names: LabelVectors | None) -> Meaning:
    return Meaning.of(Space.of(rows), shown(rows, y), names)


def twin(rows: DenseRows, y: Any, names: LabelVectors | None) -> naive.NaiveMeaning:
    by_label = {}
    if names is not None:
        by_label = dict(zip(names.labels.tolist(), names.rows.values.tolist(), strict=True))
    labels = [set(np.flatnonzero(own).tolist()) for own in y]
    return naive.NaiveMeaning(rows.values.tolist(), labels, y.shape[1], by_label)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("named", [True, False])
def test_vectors_equal_the_twin(seed: int, named: bool) -> None:
    rows, y, names = problem(seed)
    own = names if named else None
    meaning, expected = trained(rows, y, own), twin(rows, y, own)
    codes, units, biases = zip(*expected.vectors, strict=True)
    assert meaning.codes.tolist() == list(codes)
    assert meaning.units.tolist() == list(units)
    assert meaning.biases.tolist() == list(biases)
    assert meaning.mean.tolist() == expected.mean
    lower = [v for i, row in enumerate(expected.precision) for v in row[: i + 1]]
    assert meaning.precision.tolist() == lower
    assert (meaning.units[5] > 0) == named and meaning.units[3] == 0


@pytest.mark.parametrize("simd", ["portable", "auto"])
@pytest.mark.parametrize("width", [1, 6, 16, 37])
def test_rankings_and_scores_equal_the_twin(simd: str, width: int) -> None:
    rows, y, names = problem(1, width)
    meaning, expected = trained(rows, y, names), twin(rows, y, names)
    allowed = np.array([1, 0] * N_LABELS, dtype=np.uint8)[:N_LABELS]
    for length, may in ((4, None), (20, None), (3, allowed)):
        offsets, labels = _core.rank_by_meaning(meaning, rows.values, length, may, simd=simd)
        for row, (a, b) in enumerate(pairwise(offsets.tolist())):
            wanted = expected.ranked(rows.values[row].tolist(), length, may)
            assert labels[a:b].tolist() == wanted, row
    every = np.tile(np.arange(N_LABELS, dtype=np.int32), N_ROWS)
    indptr = np.arange(0, len(every) + 1, N_LABELS)
    scores = _core.meaning_scores(meaning, rows.values, indptr, every, simd=simd)
    for row in (0, 7, 13):
        wanted = [expected.score(rows.values[row].tolist(), k) for k in range(N_LABELS)]
        assert scores[row * N_LABELS : (row + 1) * N_LABELS].tolist() == wanted


def test_equal_scores_go_by_place() -> None:
    vectors = Meaning(
        np.ones((5, 2), np.int8),
        np.ones(5, np.float32),
        np.array([0, 0, -1, 0, 0], np.float32),
        np.zeros(2, np.float32),
        np.zeros(3, np.float32),
    )
    row = np.array([[1, 1]], np.int16)
    assert _core.rank_by_meaning(vectors, row, 4)[1].tolist() == [2, 0, 1, 3]
    places = np.array([4, 2, 0, 1, 3], np.int32)
    found = _core.rank_by_meaning(vectors, row, 4, None, places)[1]
    assert found.tolist() == [2, 3, 1, 4]


@pytest.mark.parametrize("batch", [1, 5, 33])
def test_rankings_do_not_depend_on_the_batch(batch: int) -> None:
    rows, y, names = problem(2, 20)
    meaning = trained(rows, y, names)
    offsets, labels = _core.rank_by_meaning(meaning, rows.values, 5)
    parts = [
        _core.rank_by_meaning(meaning, rows.values[start : start + batch], 5)
        for start in range(0, N_ROWS, batch)
    ]
    assert np.concatenate([own for _, own in parts]).tolist() == labels.tolist()
    lengths = np.concatenate([np.diff(starts) for starts, _ in parts])
    assert lengths.tolist() == np.diff(offsets).tolist()


def test_held_out_rows_are_left_out() -> None:
    rows, y, names = problem(3)
    held = np.array([2, 7, 20, 41])
    space, whole = Space.of(rows), shown(rows, y)
    kept = np.setdiff1d(np.arange(N_ROWS), held)
    expected = Meaning.of(space, shown(rows.take(kept), y[kept]), names, 2)
    found = Meaning.of(space, whole, names, 2).relearned(space, whole.without(held), names, 2)
    for name, array in found.arrays().items():
        assert np.array_equal(array, expected.arrays()[name]), name
    part, every = NameMap.of(space, whole.without(held), names), NameMap.of(space, whole, names)
    wanted = NameMap.of(space, shown(rows.take(kept), y[kept]), names)
    assert part is not None and every is not None and wanted is not None
    assert np.array_equal(part.slope, wanted.slope)
    assert not np.array_equal(every.slope, wanted.slope)


def test_sums_of_labels() -> None:
    rows, y, _ = problem(0)
    labels = np.array([9, 2, 3])
    sums, counts = shown(rows, y).sums(labels)
    assert np.array_equal(sums, y[:, labels].T @ rows.values.astype(np.int64))
    assert counts.tolist() == np.delete(y, 7, axis=0)[:, labels].sum(axis=0).tolist()
    many = 70_000  # rows, whose sum needs more than 32 bits
    largest = DenseRows(np.full((many, 1), -UNIT, dtype=np.int16))
    assert shown(largest, np.ones((many, 1))).sums(np.array([0]))[0].tolist() == [[-UNIT * many]]
    own, slot = shown(rows, y).y, np.full(N_LABELS, -1, dtype=np.int32)
    slot[4] = 2
    with pytest.raises(ValueError, match=r"slot must lie in \[-1, 2\). Got 2"):
        _core.sums_by_label(rows.values, own.indptr, own.indices, slot, 2)
    with pytest.raises(ValueError, match="same number of rows. Got 59 and 60"):
        _core.sums_by_label(rows.values[1:], own.indptr, own.indices, slot, 3)


def test_whitened_vectors_are_those_of_ridge_regression() -> None:
    rows, y, _ = problem(3)
    meaning = trained(rows, y, None)
    x = np.delete(rows.values, 7, axis=0) / 2**14
    own = np.delete(y, 7, axis=0)
    centred = x - x.mean(axis=0)
    spread = centred.T @ centred / len(x)
    ridge = np.trace(spread) / 6 * (0.03 + 6 / len(x))
    counts = own.sum(axis=0)[:, None]
    means = own.T @ centred / (counts + 3)
    vectors = means @ np.linalg.inv(spread + ridge * np.eye(6))
    found = meaning.codes * (meaning.units * 2.0**14)[:, None]
    np.testing.assert_allclose(found, vectors, atol=np.abs(vectors).max() / 127)
    biases = vectors @ x.mean(axis=0) + (vectors * means).sum(axis=1) / 2
    np.testing.assert_allclose(meaning.biases, biases, atol=0.02)


def moved(source: list[int], n_labels: int, in_indexes: bool) -> Moved:
    place = np.full(N_LABELS, -1)
    place[source] = np.arange(len(source))
    columns = NewColumns(np.where(place < n_labels, place, -1), n_labels)
    return Moved(columns, NewColumns(place, len(source)), None, in_indexes)


def test_relabelled() -> None:
    rows, y, names = problem(0)
    meaning = trained(rows, y, names)
    order = [4, 0, 9, 2, 8]  # the last one is dropped
    for kept in (True, False):
        new = meaning.relabelled(moved(order, 4, kept))
        assert np.array_equal(new.codes[:4], meaning.codes[order[:4]])
        assert np.array_equal(new.biases[:4], meaning.biases[order[:4]])
        assert new.units.tolist() == [*meaning.units[order[:4]], meaning.units[8] if kept else 0]
    more = NewColumns(np.arange(1, N_LABELS + 1), N_LABELS + 2)
    wider = meaning.relabelled(Moved(more, more, None, False))
    assert wider.units[0] == wider.units[-1] == 0
    assert np.array_equal(wider.codes[1:-1], meaning.codes)


def test_learned_vectors_are_those_of_all_rows() -> None:
    rows, y, names = problem(1)
    y[7] = 0  # a row without a meaning counts for nothing here, but does in the label counts
    first, later = slice(0, 40), np.arange(40, N_ROWS)
    space = Space.of(rows.rows(0, 40))
    before = Meaning.of(space, shown(rows.rows(0, 40), y[first]), names)
    labels = label_arrays(sp.csr_array(y[later]))
    counts = y[first].sum(axis=0).astype(np.int64)
    blocks = SimpleNamespace(dense=rows.take(later))
    batch = SimpleNamespace(x=blocks, y=labels, counts_before=counts)
    new: Any = SimpleNamespace(new=batch, min_rows=1)
    after = before.learned("meaning", new)
    expected = Meaning.of(space, shown(rows, y), names)
    for one, other in ((after, expected), (expected, after)):
        unit = one.units[:, None]
        rounding = 1.1 * (before.units[:, None] + unit)
        assert np.all(np.abs(one.codes * unit - other.codes * other.units[:, None]) <= rounding)
    np.testing.assert_allclose(after.biases, expected.biases, atol=0.05)
    unchanged = np.flatnonzero(labels.counts == 0)
    assert np.array_equal(after.codes[unchanged], before.codes[unchanged])


def test_labels_of_few_rows_are_known_by_their_names() -> None:
    rows, y, names = problem(1)
    space = Space.of(rows)
    counts = np.delete(y, 7, axis=0).sum(axis=0)
    least = int(np.median(counts)) + 2
    found, whole = (Meaning.of(space, shown(rows, y), names, n) for n in (least, 1))
    alone = Meaning.of(space, shown(rows, 0 * y), names)
    few = counts < least
    assert few[names.labels].any() and few.sum() > few[names.labels].sum()
    assert np.array_equal(found.codes[few], alone.codes[few])
    assert np.array_equal(found.codes[~few], whole.codes[~few])
    batch = SimpleNamespace(
        x=SimpleNamespace(dense=rows.rows(8, 9)),
        y=label_arrays(sp.csr_array(y[8:9])),
        counts_before=counts,
    )
    new: Any = SimpleNamespace(new=batch, min_rows=least)
    assert ((y[8] > 0) & (counts + 1 < least)).any()
    after = found.learned("meaning", new)
    assert np.array_equal(after.codes[counts + 1 < least], found.codes[counts + 1 < least])


def test_means_are_predicted_from_names() -> None:
    rng = np.random.default_rng(4)
    n_labels, n_rows, width = 300, 3000, 8
    given = dense_rows(rng.normal(size=(n_labels, width)), n_labels)
    y = np.eye(n_labels)[np.arange(n_rows) % n_labels]
    # Rows lie elsewhere than names: turned, shifted, and apart from each other.
    turned = given.values @ rng.normal(size=(width, width)) / UNIT
    rows = dense_rows(y @ turned + 2 + 0.1 * rng.normal(size=(n_rows, width)), n_rows)
    names, space = LabelVectors(np.arange(n_labels), given), Space.of(rows)
    hidden = np.arange(n_labels) % 3 == 0
    found = NameMap.of(space, shown(rows, y * ~hidden), names)
    assert found is not None
    # The same regression with NumPy.
    means = space.deviations(*shown(rows, y).sums(np.arange(n_labels)))
    e, m = given.values[~hidden] / UNIT, means[~hidden]
    e0, m0 = e.mean(axis=0), m.mean(axis=0)
    covariance = (e - e0).T @ (e - e0) / len(e)
    covariance += np.eye(width) * np.trace(covariance) / width * (RIDGE + width / len(e))
    slope = np.linalg.solve(covariance, (e - e0).T @ (m - m0) / len(e))
    expected = (given.values / UNIT - e0) @ slope + m0
    np.testing.assert_allclose(found.predicted(given), expected, atol=1e-4)
    # It is closer to the means of hidden labels than their names are.
    error = np.square(found.predicted(given)[hidden] - means[hidden]).sum()
    assert error < 0.3 * np.square(given.values[hidden] / UNIT - space.mean - means[hidden]).sum()
    assert NameMap.of(space, shown(rows, 0 * y), names) is None


def test_names_of_labels_that_are_new() -> None:
    rows, y, names = problem(2)
    without = trained(rows, y, None)
    found, expected = without.with_names(names), trained(rows, y, names)
    for name in ("codes", "units", "biases"):
        own, wanted = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(own[5], wanted[5], rtol=1e-3)
        kept = [k for k in range(N_LABELS) if k != 5]
        assert np.array_equal(own[kept], getattr(without, name)[kept])


WRONG = {
    "width": (np.zeros((2, 5), np.int16), "the same width. Got 5 and 6"),
    "long rows": (np.full((2, 6), 30_000, np.int16), r"at most 2\^14 long"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_rows(wrong: str) -> None:
    rows, y, names = problem(0)
    values, message = WRONG[wrong]
    with pytest.raises(ValueError, match=message):
        _core.rank_by_meaning(trained(rows, y, names), values, 3)


def test_arrays_that_do_not_fit() -> None:
    rows, y, names = problem(0)
    whole = trained(rows, y, names).arrays()
    for changes in ({"units": whole["units"][1:].copy()}, {"biases": whole["biases"][1:].copy()}):
        with pytest.raises(ValueError, match="do not fit each other"):
            _core.rank_by_meaning(Meaning(**{**whole, **changes}), rows.values, 3)
    with pytest.raises(ValueError, match="The places of labels must be"):
        places = np.zeros(N_LABELS, np.int32)
        _core.rank_by_meaning(Meaning(**whole), rows.values, 3, None, places)
    with pytest.raises(ValueError, match="length must be at least 1"):
        _core.rank_by_meaning(Meaning(**whole), rows.values, 0)
