"""Shortlists with sub-words and names against plain twins."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ldsm._arrays.features import feature_arrays
from ldsm._matching.names import MATCHED, NameIndex
from matching import (
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

N_SUB_WORDS, N_NAMES = 30, 40


def some_names(rng: Any) -> tuple[Any, list[set[int]]]:
    """An index of names, and the sub-words of each name."""
    spelled = [
        set(rng.choice(N_SUB_WORDS, size=rng.integers(0, 7)).tolist()) for _ in range(N_NAMES)
    ]
    idf = (1 + 4 * rng.random(N_SUB_WORDS)).astype(np.float32)
    postings = [[n for n in range(N_NAMES) if part in spelled[n]] for part in range(N_SUB_WORDS)]
    norms = [np.sqrt(sum(float(idf[p]) ** 2 for p in parts)) for parts in spelled]
    index = SimpleNamespace(
        offsets=np.cumsum([0, *map(len, postings)]).astype(np.int64),
        names=np.array([name for names in postings for name in names], dtype=np.uint8),
        idf=idf,
        norms=np.array(norms, dtype=np.float32),
        owners=np.sort(rng.integers(0, N_LABELS, N_NAMES)).astype(np.int32),
    )
    return index, spelled


def sub_word_rows(rng: Any) -> Any:
    X = rng.random((N_ROWS, N_SUB_WORDS)).astype(np.float32)
    X[rng.random(X.shape) < 0.8] = 0
    X[3] = 0
    return X


def naive_matches(row: Any, index: Any, spelled: Any) -> dict[int, tuple[float, float]]:
    """Coverage and cosine of the best name of each label."""
    out: dict[int, tuple[float, float]] = {}
    for name, parts in enumerate(spelled):
        here = [p for p in parts if row[p]]
        if not here:
            continue
        idf, norm = index.idf.astype(np.float64), float(index.norms[name])
        coverage = sum(idf[p] ** 2 for p in here) / norm**2
        cosine = sum(idf[p] * row[p] for p in here) / norm
        label = int(index.owners[name])
        if label not in out or coverage * cosine > out[label][0] * out[label][1] * (1 + 1e-9):
            out[label] = (coverage, cosine)
    return out


@pytest.mark.parametrize("length", [1, 5, 12, N_LABELS])
@pytest.mark.parametrize("match_names", [True, False])
def test_four_matchers_match_twin(length: int, match_names: bool) -> None:
    X, Y = problem("weights")
    unseen = np.zeros(N_LABELS, np.uint8)
    unseen[[7, 8, 20]] = 1
    Y[:, unseen == 1] = 0
    forest = make_forest(X, Y)
    trees = by_trees(forest, X)
    rng = np.random.default_rng(2)
    index, spelled = some_names(rng)
    parts = sub_word_rows(rng)
    words, sub_words = (
        SimpleNamespace(**dict(zip(("offsets", "labels", "codes", "units"), arrays, strict=True)))
        for arrays in (index_of_all(X, Y, 6), index_of_all(parts, Y, 6))
    )
    allowed = (np.arange(N_LABELS) % 7 != 2).astype(np.uint8)
    found = shortlists(
        forest, feature_arrays(X).checked, length, [words], allowed,
        sub_words=feature_arrays(parts).checked, sub_indexes=[sub_words], names=index,
        match_names=match_names, unseen=unseen,
    )  # fmt: skip
    indptr, labels, tree_scores, index_scores, sub_scores, coverages, cosines, best, *_ = found
    assert len(best) == N_ROWS
    values, spelled_values, some_new = unit(X), unit(parts), 0
    for row, (a, b) in enumerate(rows_of(indptr)):
        by_name = naive_matches(spelled_values[row].astype(np.float64), index, spelled)
        merits = {k: o * c for k, (o, c) in by_name.items() if o >= 0.25}
        matchers: list[Any] = [
            trees[row], by_index(words, values[row]), by_index(sub_words, spelled_values[row]),
        ]  # fmt: skip
        if match_names:
            matchers.append({k: merit for k, merit in merits.items() if not unseen[k]})
        known = set(naive_list(matchers, length, allowed))
        new = {k for k in merits if unseen[k] and allowed[k]}
        some_new += len(new - known)
        expected = sorted(known | new)
        assert labels[a:b].tolist() == expected
        assert sub_scores[a:b].tolist() == [matchers[2].get(k, 0) for k in expected]
        assert index_scores[a:b].tolist() == [matchers[1].get(k, 0) for k in expected]
        assert tree_scores[a:b].tolist() == [trees[row].get(k, 0) for k in expected]
        matched = np.array([by_name.get(k, (0, 0)) for k in expected]).reshape(-1, 2)
        np.testing.assert_allclose(coverages[a:b], np.minimum(matched[:, 0], 1), rtol=1e-5)
        np.testing.assert_allclose(cosines[a:b], matched[:, 1], rtol=1e-5)
        most = max((c for _, c in by_name.values()), default=0)
        assert best[row] == pytest.approx(most, rel=1e-5)
    assert some_new > 10


def test_damaged_name_index() -> None:
    X, Y = problem("weights")
    forest, x = make_forest(X, Y), feature_arrays(X).checked
    rng = np.random.default_rng(2)
    index, _ = some_names(rng)
    parts = feature_arrays(sub_word_rows(rng)).checked

    def ask(**changes: Any) -> None:
        damaged: Any = SimpleNamespace(**(vars(index) | changes))
        shortlists(forest, x, 5, [], sub_words=parts, names=damaged, match_names=True)

    ask()
    for changes, message in (
        ({"owners": np.full(N_NAMES, N_LABELS, np.int32)}, "a label out of range"),
        ({"owners": np.full(N_NAMES, -1, np.int32)}, "a label out of range"),
        ({"norms": np.zeros(N_NAMES, np.float32)}, "a name of no length"),
        ({"norms": np.full(N_NAMES, np.nan, np.float32)}, "a name of no length"),
        ({"norms": np.full(N_NAMES, 1e-38, np.float32)}, "too large to add up"),
        ({"idf": np.zeros(N_SUB_WORDS, np.float32)}, "an idf that is not positive"),
        ({"idf": np.full(N_SUB_WORDS, np.inf, np.float32)}, "an idf that is not positive"),
        ({"names": index.names + np.uint8(200)}, "a name out of range"),
        ({"offsets": index.offsets[::-1].copy()}, "offsets out of range"),
        ({"offsets": index.offsets[1:]}, "do not fit each other or X"),
        ({"owners": index.owners[1:]}, "do not fit each other or X"),
    ):
        with pytest.raises(ValueError, match=message):
            ask(**changes)
    with pytest.raises(ValueError, match="Matchers that read sub-words need those of the rows"):
        shortlists(forest, x, 5, [], names=index)
    with pytest.raises(ValueError, match="one number of rows"):
        shortlists(forest, x, 5, [], sub_words=parts.rows(0, 3), names=index)


def test_name_odds_leave_row_out() -> None:
    empty = np.zeros(0, np.float32)
    index = NameIndex(
        np.zeros(1, np.int64), np.zeros(0, np.int32), empty, empty, np.zeros(0, np.int32),
        np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64),
    )  # fmt: skip
    labels = np.array([0, 0, 0, 1, 1, 2], np.int32)
    coverages = np.array([1, MATCHED, 0.9, 1, 0.1, 0.2], np.float32)
    truth = np.array([True, False, True, False, True, True])
    counted = index.counted([(labels, coverages, truth)])
    assert counted.matched.tolist() == [3, 1, 0] and counted.right.tolist() == [2, 0, 0]
    # Of 4 matches 2 were right: so it is taken of each label, until there are some.
    expected = np.log([(2 + 1) / (1 + 1), 1 / (1 + 1), 1.0])
    np.testing.assert_allclose(counted.odds(np.arange(3, dtype=np.int32)), expected, atol=1e-6)
    without = counted.odds_without(labels, coverages, truth)
    np.testing.assert_allclose(without[:2], [0, np.log((2 + 1) / 1)], atol=1e-6)
    assert without[4] == counted.odds(labels)[4]  # no match, nothing to leave out
