"""The terms and scores of a blend against their formulas in NumPy."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ldsm import _core
from ldsm._ranking.blend import Pairs

N_PAIRS = 300
TERMS = (
    ("", "t", "m", "z", "w", "n", "q", "c", "tm", "zc", "wz", "nm", "qc", "ttm")
    + ("s", "ss", "o", "k", "d", "r", "rooo", "ks")
)  # fmt: skip


def pair_arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    tree_scores = rng.random(N_PAIRS) * (rng.random(N_PAIRS) < 0.8)
    tree_scores[0] = 1
    index_scores = rng.random(N_PAIRS) * (rng.random(N_PAIRS) < 0.8)
    return {
        "tree_scores": tree_scores.astype(np.float32),
        "label_counts": rng.integers(0, 10**6, N_PAIRS),
        "margins": (3 * rng.normal(size=N_PAIRS)).astype(np.float32),
        "distances": 4 * rng.random(N_PAIRS),
        "index_scores": index_scores.astype(np.float32),
        "sub_scores": rng.random(N_PAIRS).astype(np.float32),
        "more_letters": "okdr",
        "more": rng.normal(size=(4, N_PAIRS)),
    }


def naive_terms(
    terms: Any, a: dict[str, Any], tree_share: float | None, gamma: float
) -> NDArray[np.float64]:
    trees = a["tree_scores"].astype(np.float64)
    score = trees
    if tree_share is not None:
        near = 1 / (1 + np.exp(gamma * a["distances"] / 2))
        # The first product is rounded to float32.
        score = np.clip(np.float32(tree_share) * a["tree_scores"] + (1 - tree_share) * near, 0, 1)
    margins = a["margins"].astype(np.float64)
    signals = {
        "t": np.log((score + 1e-4) / (1 - score + 1e-4)),
        "m": margins,
        "z": np.log(1 / (1 + np.exp(-2 * margins))),
        "w": np.log(a["index_scores"].astype(np.float64) + 1e-3),
        "n": trees == 0,
        "q": a["distances"],
        "c": np.log(a["label_counts"] + 1),
        "s": np.log(a["sub_scores"].astype(np.float64) + 1e-3),
        **dict(zip(a["more_letters"], a["more"], strict=True)),
    }
    return np.stack(
        [np.prod([signals[s] for s in term] or [np.ones(N_PAIRS)], axis=0) for term in terms],
        axis=1,
    )


@pytest.mark.parametrize(
    ("tree_share", "gamma"), [(None, 0.0), (0.7, 2.0), (0.0, 30.0), (1.0, 1.0)]
)
def test_terms_match_formulas(tree_share: float | None, gamma: float) -> None:
    arrays = pair_arrays()
    got = _core.blend_terms(Pairs(**arrays), terms=TERMS, tree_share=tree_share, gamma=gamma)
    expected = naive_terms(TERMS, arrays, tree_share, gamma)
    assert got.shape == (N_PAIRS, len(TERMS)) and got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    coefficients = np.random.default_rng(1).normal(size=len(TERMS)) / 20
    probabilities = _core.blend_probabilities(
        Pairs(**arrays),
        terms=TERMS,
        tree_share=tree_share,
        gamma=gamma,
        coefficients=coefficients.tolist(),
    )
    assert probabilities.dtype == np.float32
    expected = 1 / (1 + np.exp(-expected @ coefficients))
    assert expected.std() > 0.05
    np.testing.assert_allclose(probabilities, expected, rtol=1e-6)
    for part in (slice(0, 1), slice(7, 120)):
        again = _core.blend_probabilities(
            Pairs(**arrays)[np.arange(N_PAIRS)[part]],
            terms=TERMS,
            tree_share=tree_share,
            gamma=gamma,
            coefficients=coefficients.tolist(),
        )
        assert np.array_equal(again, probabilities[part])


def test_uncertain_scores_are_interpolated() -> None:
    arrays, rng = pair_arrays(), np.random.default_rng(3)
    coefficients = [0.1, 1.2, 0.4]
    call = {"terms": ("", "t", "m"), "tree_share": None, "gamma": 0.0}
    sure = _core.blend_probabilities(Pairs(**arrays), **call, coefficients=coefficients)
    certainty = rng.random(N_PAIRS).astype(np.float32)
    certainty[:40], certainty[40:80] = 0, 1
    rates = rng.random(N_PAIRS)
    rates[80:84] = 0, 1, 0, 1
    shrunk = {"certainty": certainty, "base_rates": rates}
    got = _core.blend_probabilities(Pairs(**arrays, **shrunk), **call, coefficients=coefficients)
    assert np.array_equal(got[:40], rates[:40].astype(np.float32))
    assert np.array_equal(got[40:80], sure[40:80])
    odds = naive_terms(("", "t", "m"), arrays, None, 0) @ coefficients
    assert odds.max() > np.log(1e4)  # these are cut
    limited = np.clip(rates, 1e-9, 1 - 1e-9)
    base = np.log(limited / (1 - limited))
    expected = 1 / (1 + np.exp(-(base + certainty * (np.minimum(odds, np.log(1e4)) - base))))
    np.testing.assert_allclose(got[80:], expected[80:], rtol=1e-6)
    for name in shrunk:
        with pytest.raises(ValueError, match="both certainty and base rates, or neither"):
            _core.blend_terms(Pairs(**arrays, **{name: shrunk[name]}), terms=("t",))


def test_missing_signals() -> None:
    arrays = pair_arrays()
    few = {name: arrays[name] for name in ("tree_scores", "label_counts")}
    got = _core.blend_terms(Pairs(**few), terms=("", "t", "n", "tc"))
    np.testing.assert_allclose(got, naive_terms(("", "t", "n", "tc"), arrays, None, 0), rtol=1e-9)
    for name, term in (
        ("margins", "tm"),
        ("margins", "z"),
        ("distances", "q"),
        ("index_scores", "w"),
        ("sub_scores", "ss"),
        ("more_letters", "ok"),
    ):
        without = arrays | {name: "" if name == "more_letters" else None}
        with pytest.raises(ValueError, match=f"The term '{term}' needs a signal"):
            _core.blend_terms(Pairs(**without), terms=("", term))
        with pytest.raises(ValueError, match=f"The term '{term}' needs a signal"):
            _core.blend_probabilities(
                Pairs(**without),
                terms=("", term),
                tree_share=None,
                gamma=0.0,
                coefficients=[1.0, 1.0],
            )
    with pytest.raises(ValueError, match="paper's formula needs distances"):
        _core.blend_terms(Pairs(**few), terms=("t",), tree_share=0.5, gamma=1.0)


def test_arguments_of_a_blend_are_checked() -> None:
    arrays = pair_arrays()
    for name in arrays.keys() - {"tree_scores", "more_letters"}:
        with pytest.raises(ValueError, match="must have the same length"):
            short = np.ascontiguousarray(arrays[name][..., :-1])
            _core.blend_terms(Pairs(**(arrays | {name: short})), terms=("t",))
    for changes in ({"more": arrays["more"][:-1]}, {"more_letters": "okdrx"}):
        with pytest.raises(ValueError, match="must have the same length"):
            _core.blend_terms(Pairs(**arrays | changes), terms=("t",))
    with pytest.raises(ValueError, match="more must be a contiguous"):
        _core.blend_terms(Pairs(**arrays | {"more": None}), terms=("t",))
    with pytest.raises(ValueError, match="terms must not be empty"):
        _core.blend_terms(Pairs(**arrays), terms=())
    for term in ("x", "t x", "T", "é"):
        with pytest.raises(ValueError, match="needs a signal"):
            _core.blend_terms(Pairs(**arrays), terms=(term,))
    with pytest.raises(ValueError, match="a coefficient for each term"):
        _core.blend_probabilities(
            Pairs(**arrays), terms=("t",), tree_share=None, gamma=0.0, coefficients=[1.0, 2.0]
        )


def test_damaged_scores_are_clipped() -> None:
    arrays = pair_arrays()
    arrays["tree_scores"][:4] = [-3, 7, np.inf, -np.inf]
    got = _core.blend_terms(Pairs(**arrays), terms=("t",))[:4, 0]
    most = np.log(1.0001 / 0.0001)
    np.testing.assert_allclose(got, [-most, most, most, -most], rtol=1e-9)


def test_logistic_sums_match_derivatives() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(400, 4)), rng.normal(size=4) * 3
    x[0] *= 500  # odds whose exponential is out of range
    truth, weights = (rng.random(400) < 0.3).astype(np.uint8), rng.random(400) * 9
    loss, slope, lower = _core.logistic_sums(x, truth, weights, w)
    odds = x @ w
    p = np.exp(-np.logaddexp(0, -odds))
    assert np.isclose(loss, np.sum(weights * (np.logaddexp(0, odds) - truth * odds)))
    np.testing.assert_allclose(slope, x.T @ (weights * (p - truth)))
    curvature = x.T @ (x * (weights * p * (1 - p))[:, None])
    np.testing.assert_allclose(lower, np.tril(curvature), atol=1e-12)
    for arrays in ((x[:-1], truth, weights, w), (x, truth, weights, w[:-1])):
        with pytest.raises(ValueError, match="There must be a"):
            _core.logistic_sums(*arrays)
