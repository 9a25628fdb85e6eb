"""Malformed matrices: scipy does not check replaced arrays and would read outside of others."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldsm import LdSMClassifier, metrics
from ldsm.datasets import Dataset


def small(**changes):
    return LdSMClassifier(**{"n_estimators": 2, "random_state": 3, **changes})


MALFORMED = {
    "offset far outside": ("csr", [0, 10**9, 2, 3], [0, 1, 2]),
    "offsets fall": ("csr", [0, 2, 1, 3], [0, 1, 2]),
    "offsets do not start at 0": ("csr", [1, 1, 2, 3], [0, 1, 2]),
    "offsets end too early": ("csr", [0, 1, 2, 2], [0, 1, 2]),
    "too few offsets": ("csr", [0, 3], [0, 1, 2]),
    "index far outside": ("csr", [0, 1, 2, 3], [0, 1, 10**8]),
    "index just outside": ("csr", [0, 1, 2, 3], [0, 1, 3]),
    "index negative": ("csr", [0, 1, 2, 3], [0, -1, 2]),
    "too many indices": ("csr", [0, 1, 2, 3], [0, 1, 2, 0]),
    "column offset far outside": ("csc", [0, 10**9, 2, 3], [0, 1, 2]),
    "row index far outside": ("csc", [0, 1, 2, 3], [0, 1, 10**8]),
    "row index negative": ("csc", [0, 1, 2, 3], [0, -(10**8), 2]),
}
GOOD = sp.csr_matrix(np.eye(3, dtype=np.float32))
FITTED = small().fit(GOOD, GOOD)
USES = {
    "fit X": lambda m: small().fit(m, GOOD),
    "fit Y": lambda m: small().fit(GOOD, m),
    "topk": lambda m: FITTED.predict_topk(m, k=1),
    "proba": lambda m: FITTED.predict_proba(m),
    "predict": lambda m: FITTED.predict(m),
    "path": lambda m: FITTED.decision_path(m),
    "score X": lambda m: FITTED.score(m, GOOD),
    "score Y": lambda m: FITTED.score(GOOD, m),
    "tune": lambda m: small().fit(GOOD, GOOD).tune_threshold(GOOD, m),
    "Dataset X": lambda m: Dataset(m, GOOD),
    "Dataset Y": lambda m: Dataset(GOOD, m),
    "truth": lambda m: metrics.precision_at_k(m, np.zeros((3, 1), dtype=int), k=1),
    "scores": lambda m: metrics.precision_at_k(GOOD, m, k=1),
}

numbers = st.one_of(st.integers(-1, 5), st.sampled_from([10**8, 2**31 - 1, -(2**31), 2**40]))
index_types = st.sampled_from(
    [np.int32] * 4 + [np.int64, np.uint8, np.uint32, np.uint64, np.float64]
)
value_types = st.sampled_from([np.float32, np.float64, np.int32, bool])


@st.composite
def index_arrays(draw, size):
    """Mostly the numbers that a 3 x 3 identity has, with some of them replaced."""
    array = draw(st.sampled_from([np.arange(size), np.sort(np.arange(size) % 4)])).copy()
    for _ in range(draw(st.integers(0, 2))):
        if size:
            array[draw(st.integers(0, size - 1))] = draw(numbers)
    with np.errstate(all="ignore"):
        return array.astype(draw(index_types))


@st.composite
def sparse_matrices(draw):
    """3 x 3 matrices whose arrays were replaced by others, as scipy allows."""
    form = draw(st.sampled_from(["csr", "csr", "csc", "coo", "bsr"]))
    kind = draw(st.sampled_from(["matrix", "array"]))
    matrix = getattr(sp, f"{form}_{kind}")(np.eye(3, dtype=draw(value_types)))
    n_values = draw(st.sampled_from([3, 3, 3, 0, 1, 4]))
    values = np.ones(n_values, dtype=matrix.dtype)
    n_indices = draw(st.sampled_from([n_values, n_values, n_values, 2, 5]))
    if form == "coo":
        matrix.data = values
        matrix.coords = (draw(index_arrays(n_indices)), draw(index_arrays(n_values)))
    else:
        if form == "bsr":
            values = values.reshape(n_values, 1, 1)
        if draw(st.integers(0, 9)) == 0:
            values = values.reshape(1, *values.shape)
        matrix.data = values
        matrix.indices = draw(index_arrays(n_indices))
        matrix.indptr = draw(index_arrays(draw(st.sampled_from([4, 4, 4, 4, 0, 1, 3, 5]))))
    return matrix


def is_well_formed(matrix):
    """The definition, number by number."""
    if matrix.format == "coo":
        return len(matrix.data) == len(matrix.coords[0]) == len(matrix.coords[1]) and all(
            indices.dtype.kind == "i" and all(0 <= int(i) < 3 for i in indices)
            for indices in matrix.coords
        )
    indptr, indices, values = matrix.indptr, matrix.indices, matrix.data
    if indptr.dtype.kind != "i" or indices.dtype.kind != "i":
        return False
    offsets = [int(i) for i in indptr]
    return (
        values.ndim == (3 if matrix.format == "bsr" else 1)
        and len(offsets) == 4
        and offsets[0] == 0
        and offsets == sorted(offsets)
        and offsets[-1] == len(values) == len(indices)
        and all(0 <= int(i) < 3 for i in indices)
    )


seen = {"malformed": 0, "well formed": 0}


def check_malformed(matrix):
    fine = is_well_formed(matrix)
    seen["well formed" if fine else "malformed"] += 1
    for name, use in USES.items():
        try:
            use(matrix)
        except ValueError:  # of the well-formed ones too: a Y with a 2, say, or without any label
            continue
        assert fine, f"{name} took {matrix!r}"


@pytest.mark.parametrize("case", MALFORMED)
def test_twelve_malformed_matrices_give_value_errors(case):
    form, indptr, indices = MALFORMED[case]
    for kind, dtype in product(("matrix", "array"), (np.int32, np.int64)):
        matrix = getattr(sp, f"{form}_{kind}")((3, 3), dtype=np.float32)
        matrix.data = np.ones(3, dtype=np.float32)
        matrix.indptr, matrix.indices = np.array(indptr, dtype), np.array(indices, dtype)
        assert not is_well_formed(matrix)
        check_malformed(matrix)
        for name in "Xy":
            with pytest.raises(ValueError, match=f"sparse {name}"):
                USES[f"fit {name.upper()}"](matrix)


def replaced(form, **arrays):
    matrix = getattr(sp, f"{form}_array")(np.eye(4, dtype=np.float32))
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


OTHER_FORMS = {
    "fewer offsets than diagonals": replaced("dia", data=np.ones((3, 4), np.float32)),
    "more offsets than diagonals": replaced("dia", offsets=np.arange(3, dtype=np.int32)),
    "diagonals at no whole places": replaced("dia", offsets=np.array([0.5])),
    "rows of lists missing": replaced("lil", rows=np.array([[0], [1]], dtype=object)),
    "a list too short": replaced("lil", data=np.array([[1], [1], [1], []], dtype=object)),
    "a list with a far column": replaced(
        "lil", rows=np.array([[0], [1], [2], [10**8]] + [None], dtype=object)[:4]
    ),
    "blocks that do not divide": replaced("bsr", data=np.ones((4, 3, 3), np.float32)),
    "blocks of no size": replaced("bsr", data=np.ones((4, 0, 0), np.float32)),
}


@pytest.mark.parametrize("case", OTHER_FORMS)
def test_other_malformed_forms_give_value_errors(case):
    good = sp.csr_array(np.eye(4, dtype=np.float32))
    fitted = small().fit(good, good)
    for use in (
        lambda matrix: small().fit(matrix, good),
        lambda matrix: small().fit(good, matrix),
        fitted.predict_proba,
        lambda matrix: Dataset(matrix, good),
        lambda matrix: metrics.precision_at_k(good, matrix, k=1),
    ):
        with pytest.raises(ValueError):
            use(OTHER_FORMS[case])


malformed_cases = {
    "derandomize": True,
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow],
}


@given(sparse_matrices())
@settings(max_examples=200, **malformed_cases)
def test_malformed_sparse_matrices_give_value_errors(matrix):
    check_malformed(matrix)


@pytest.mark.long
def test_2000_malformed_sparse_matrices():
    @given(sparse_matrices())
    @settings(max_examples=8000, **malformed_cases)
    def check(matrix):
        check_malformed(matrix)

    seen["malformed"] = seen["well formed"] = 0
    check()
    assert seen["malformed"] >= 2000 and seen["well formed"] >= 200, seen


def test_well_formed_matrices_are_taken():
    for name, use in USES.items():
        for form, kind in product(("csr", "csc", "coo", "bsr"), ("matrix", "array")):
            good = getattr(sp, f"{form}_{kind}")(GOOD)
            assert is_well_formed(good)
            use(good), name
