"""What a batch says about labels: how often they occur, and what their absence means."""

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm import datasets
from ldsm._arrays.features import feature_arrays
from ldsm._arrays.labels import label_arrays
from ldsm._features.blocks import Blocks
from ldsm._features.new_rows import NewRows, _mean_deviation

DATA = datasets.make_xmc(3000, 50, 60, seed=0)
Y = sp.csr_matrix(DATA.Y)
COUNTS = np.bincount(Y.indices, minlength=60).astype(np.int64)


def batch(labels, counts=COUNTS, n_before=3000, **options):
    """New rows with the given labels, as a matrix or lists of numbers."""
    if isinstance(labels, list):
        rows = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
        columns = [label for row in labels for label in row]
        ones = np.ones(len(columns), dtype=int)
        labels = sp.csr_matrix((ones, (rows, columns)), shape=(len(labels), len(counts)))
    x = feature_arrays(np.ones((labels.shape[0], 1)))
    return NewRows(Blocks.of(x), label_arrays(labels), np.asarray(counts), n_before, **options)


@pytest.mark.parametrize("n_rows", [5, 20, 100, 1000])
def test_random_batches_are_not_skewed(n_rows):
    rng = np.random.default_rng(n_rows)
    for _ in range(20):
        assert not batch(Y[rng.choice(3000, n_rows, replace=False)]).is_skewed


@pytest.mark.parametrize("n_rows", [20, 100])
def test_rare_label_rows_are_skewed(n_rows):
    for label in np.flatnonzero((n_rows <= COUNTS) & (COUNTS < 300)):
        rows = np.flatnonzero(Y[:, [label]].toarray())[:n_rows]
        assert batch(Y[rows]).is_skewed


def test_rows_without_known_labels_are_skewed():
    counts = np.where(np.arange(60) == 7, 0, COUNTS)
    assert batch([[7]] * 5, counts).is_skewed


def test_skewed_batch_frequencies():
    rows = [[3]] * 50
    assert not batch(rows).shows_frequencies
    assert batch(rows, prior="batch").shows_frequencies


def test_absent_labels_of_new_label_rows():
    counts = np.array([5, 5, 0, 0])
    rows = [[0], [2], [1, 3], [], [2, 3]]
    assert batch(rows, counts).lacks.tolist() == [True, False, True, True, False]
    assert batch(rows, counts, absent="negative").lacks.all()
    assert not batch(rows, counts, absent="unknown").lacks.any()


def test_new_label_as_frequent_as_known_ones():
    """Usual rows show how often a new label occurs; rows that nearly all have it do not."""
    new = np.argsort(COUNTS)[-2]
    counts = np.where(np.arange(60) == new, 0, COUNTS)
    usual = batch(Y[np.random.default_rng(0).choice(3000, 600, replace=False)], counts)
    assert not usual.is_skewed and usual.y.counts[new] > 0
    assert not usual.of_unknown_frequency.any()
    examples = np.flatnonzero(Y[:, [new]].toarray())[:100]
    others = np.flatnonzero(Y[:, [new]].toarray() == 0)[:100]
    mixed = batch(Y[np.concatenate([examples, others])], counts)
    assert np.flatnonzero(mixed.of_unknown_frequency).tolist() == [new]


@pytest.mark.parametrize("mean", [0.01, 0.5, 1.0, 3.7, 40.0])
def test_poisson_mean_deviation(mean):
    drawn = np.random.default_rng(0).poisson(mean, 200_000)
    # Four standard errors of a mean of 200,000 deviations, which are about sqrt(mean) wide.
    tolerance = 4 * np.sqrt(mean / 200_000)
    found = _mean_deviation(np.array([mean]))[0]
    assert found == pytest.approx(np.abs(drawn - mean).mean(), abs=tolerance)
