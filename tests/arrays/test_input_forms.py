"""X and Y in every form: never changed, and all forms alike."""

from itertools import product

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from ldsm import LdSMClassifier, metrics
from ldsm.datasets import Dataset
from problems import make_problem

X, Y = make_problem(0, "weights", n_rows=80, n_features=12, n_labels=6)
X[X != 0] = np.round(X[X != 0] * 64) / 64 + 1 / 64  # halves and sums are exact in float32


def small(**changes):
    return LdSMClassifier(**{"n_estimators": 2, "random_state": 3, **changes})


def arrays_of(matrix):
    """The arrays that a sparse matrix, an array or a frame consists of."""
    if isinstance(matrix, np.ndarray):
        return [matrix]
    if matrix.format == "coo":
        return [matrix.data, *matrix.coords]
    return [matrix.data, matrix.indices, matrix.indptr]


def frozen(matrix):
    for array in arrays_of(matrix):
        array.flags.writeable = False
    return matrix


def untidy(matrix, pieces=2):
    """CSR with the entries of each row backwards, every second one in pieces, and zeros."""
    csr = sp.csr_matrix(matrix)
    rows = []
    for i in range(csr.shape[0]):
        part = slice(*csr.indptr[i : i + 2])
        columns, values = csr.indices[part][::-1], csr.data[part][::-1]
        parts = np.where(np.arange(len(columns)) % 2, pieces, 1)
        empty = np.setdiff1d(np.arange(csr.shape[1]), columns)[:1]
        rows.append(
            (
                np.concatenate([np.repeat(columns, parts), empty]),
                np.concatenate([np.repeat(values / parts, parts), np.zeros(len(empty))]),
            )
        )
    indptr = np.cumsum([0] + [len(columns) for columns, _ in rows])
    columns, values = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    out = sp.csr_matrix(csr.shape, dtype=csr.dtype)
    out.data, out.indices = values.astype(csr.dtype), columns.astype(np.int32)
    out.indptr = indptr.astype(np.int32)
    assert not out.has_sorted_indices and (out.toarray() == csr.toarray()).all()
    return out


# -- never changed -----------------------------------------------------------------------------


def frozen_inputs():
    yield frozen(untidy(X)), frozen(untidy(Y, pieces=1))
    yield frozen(sp.csr_array(X)), frozen(sp.csr_array(Y))
    yield frozen(sp.csc_array(X)), frozen(sp.csc_array(Y))
    yield frozen(sp.coo_array(X)), frozen(sp.coo_array(Y))
    yield frozen(np.asfortranarray(X)), frozen(Y.copy())
    yield frozen(X.astype(np.float64)), frozen(Y.astype(bool))


def used_in_every_way(X, Y):
    """Every call that takes rows or labels."""
    clf = small(subsample=0.7).fit(X, Y)
    clf.set_params(warm_start=True, n_estimators=3).fit(X, Y)
    clf.tune_threshold(X, Y)
    clf.tune_threshold(X, Y, average="macro", per_label=True)
    clf.predict(X), clf.predict(X, only=[0, 2])
    clf.predict_proba(X), clf.predict_topk(X, k=3), clf.decision_path(X), clf.score(X, Y)
    # One row of the same arrays, as far as the form has rows.
    row = X[:1] if not sp.issparse(X) or X.format != "coo" else X.tocsr()[:1]
    clf.explain(row)
    metrics.precision_at_k(Y, clf.predict_proba(X), k=2)
    metrics.precision_at_k(Y, np.zeros((80, 1), dtype=int), k=1)
    data = Dataset(X, Y)
    small().fit(data)
    data.split(0.3, seed=0)
    data.select([3, 1]), data.labels


def test_input_is_never_changed():
    count = 0
    for matrix, labels in frozen_inputs():
        before = joblib.hash(arrays_of(matrix) + arrays_of(labels))
        used_in_every_way(matrix, labels)
        assert joblib.hash(arrays_of(matrix) + arrays_of(labels)) == before
        count += 1
    assert count == 6


def test_writable_input_is_never_changed():
    """Nothing is written in place, even where that would go unnoticed."""
    matrix, labels = untidy(X), untidy(Y, pieces=1)
    before = joblib.hash(arrays_of(matrix) + arrays_of(labels))
    used_in_every_way(matrix, labels)
    assert joblib.hash(arrays_of(matrix) + arrays_of(labels)) == before


def test_lists_and_frames_are_never_changed():
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    lists = [[f"t{k}" for k in np.flatnonzero(row)] * 2 for row in Y]
    before = joblib.hash((frame, lists))
    clf = small().fit(frame, lists)
    clf.tune_threshold(frame, lists)
    (
        clf.predict(frame),
        clf.predict_topk(frame, k=2),
        clf.explain(frame[:1]),
        clf.score(frame, lists),
    )
    assert joblib.hash((frame, lists)) == before


# -- all forms alike ---------------------------------------------------------------------------


def with_indices(matrix, dtype):
    """The same matrix with indices, and offsets, of another width; scipy itself likes int32."""
    matrix = matrix.copy()
    if matrix.format == "coo":
        matrix.coords = tuple(indices.astype(dtype) for indices in matrix.coords)
    else:
        matrix.indices, matrix.indptr = matrix.indices.astype(dtype), matrix.indptr.astype(dtype)
    return matrix


def backwards(matrix):
    if matrix.format == "coo":
        order = np.arange(matrix.nnz)[::-1]
        coords = tuple(indices[order] for indices in matrix.coords)
        return type(matrix)((matrix.data[order], coords), shape=matrix.shape)
    matrix = matrix.copy()
    for i in range(len(matrix.indptr) - 1):
        part = slice(*matrix.indptr[i : i + 2])
        for array in (matrix.indices, matrix.data):
            array[part] = array[part][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def in_halves(matrix):
    if matrix.format == "coo":
        coords = tuple(np.repeat(indices, 2) for indices in matrix.coords)
        return type(matrix)((np.repeat(matrix.data / 2, 2), coords), shape=matrix.shape)
    arrays = (np.repeat(matrix.data / 2, 2), np.repeat(matrix.indices, 2), matrix.indptr * 2)
    return type(matrix)(arrays, shape=matrix.shape)


def with_zeros(matrix):
    full = type(matrix)(np.where(X == 0, 7, X).astype(matrix.dtype))
    full.data[full.data == 7] = 0
    return full


TIDINESS = {
    "sorted": lambda m: m,
    "backwards": backwards,
    "halves": in_halves,
    "zeros": with_zeros,
}


def misaligned(array):
    moved = np.ndarray(array.shape, array.dtype, np.empty(array.nbytes + 1, np.uint8), offset=1)
    moved[...] = array
    return moved


def misaligned_csr():
    matrix = sp.csr_array(X)
    matrix.data, matrix.indices = misaligned(matrix.data), misaligned(matrix.indices)
    return matrix


def swapped_csr():
    matrix = sp.csr_array(X)
    matrix.data = matrix.data.astype(matrix.dtype.newbyteorder())
    return matrix


def sparse_forms():
    kinds = product(("csr", "csc", "coo"), ("matrix", "array"), (np.int32, np.int64))
    for (form, kind, width), dtype in product(list(kinds), (np.float32, np.float64)):
        for name, change in TIDINESS.items():
            plain = getattr(sp, f"{form}_{kind}")(X.astype(dtype))
            yield (
                f"{form} {kind} {width.__name__} {dtype.__name__} {name}",
                with_indices(change(plain), width),
            )


def other_forms():
    for dtype in (np.float32, np.float64, np.longdouble):
        yield f"dense {dtype.__name__}", X.astype(dtype)
    yield "columns first", np.asfortranarray(X)
    yield "every second row", np.repeat(X, 2, axis=0)[::2]
    yield "other byte order", X.astype(X.dtype.newbyteorder())
    yield "misaligned", misaligned(X)
    yield "misaligned csr", misaligned_csr()
    yield "csr of other byte order", swapped_csr()
    yield "lists", X.tolist()
    yield "frame", pd.DataFrame(X)
    for form in ("lil", "dok", "dia", "bsr"):
        yield form, sp.csr_matrix(X).asformat(form)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.filterwarnings("ignore:.*(dok|dia|lil).*")
def test_feature_forms_same_bits(standardize):
    clf = small(standardize=standardize).fit(sp.csr_array(X), Y)
    expected = clf.fingerprint_
    proba = clf.predict_proba(sp.csr_array(X)).tobytes()
    labels, scores = clf.predict_topk(sp.csr_array(X), k=3)
    count = 0
    for name, form in [*sparse_forms(), *other_forms()]:
        assert small(standardize=standardize).fit(form, Y).fingerprint_ == expected, name
        assert clf.predict_proba(form).tobytes() == proba, name
        assert [a.tobytes() for a in clf.predict_topk(form, k=3)] == [
            labels.tobytes(),
            scores.tobytes(),
        ], name
        count += 1
    assert count == 96 + 15


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16])
def test_integer_types_same_bits(dtype):
    ones = (X > 0).astype(dtype)
    expected = small().fit((X > 0).astype(np.float32), Y).fingerprint_
    assert small().fit(ones, Y).fingerprint_ == expected
    if dtype == np.float16:  # scipy has no such matrices
        return
    for form in (sp.csr_matrix, sp.csc_array, sp.coo_array):
        assert small().fit(form(ones), Y).fingerprint_ == expected


def test_label_forms_same_bits():
    expected = small().fit(X, sp.csr_array(Y)).fingerprint_
    for form, kind in product(("csr", "csc", "coo", "lil", "dok", "bsr"), ("matrix", "array")):
        for dtype in (bool, np.int8, np.float32, np.float64):
            labels = getattr(sp, f"{form}_{kind}")(Y.astype(dtype))
            assert small().fit(X, labels).fingerprint_ == expected
    assert small().fit(X, untidy(Y.astype(np.float64))).fingerprint_ == expected
