"""Inputs that change while the core reads them."""

import numpy as np
import scipy.sparse as sp

from ldsm import LdSMClassifier, datasets


def data():
    """In the form that the core reads as it is, so that nothing need be converted."""
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 500), density=0.02, random_state=rng, dtype=np.float32, format="csr")
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int64)
    Y = sp.csr_array(sp.random_array((3000, 40), density=0.05, random_state=rng) > 0).astype(
        np.int8
    )
    return X, Y


def test_callback_may_change_inputs():
    X, Y = data()
    expected = LdSMClassifier(n_estimators=3, random_state=0).fit(X, Y).fingerprint_
    called = []

    def spoil(done: int, total: int) -> None:
        called.append(done)
        X.indices[:] = 2**31 - 1
        X.indptr[1:] = 2**40
        Y.indices[:] = 2**31 - 1
        Y.indptr[1:] = 2**31 - 1

    model = LdSMClassifier(n_estimators=3, random_state=0).fit(X, Y, callback=spoil)
    assert called and X.indices[0] == 2**31 - 1
    assert model.fingerprint_ == expected


def test_immutable_inputs_are_not_copied(tmp_path):
    from ldsm._arrays.features import feature_arrays

    X, Y = data()
    datasets.save_store(datasets.Dataset(X, Y), tmp_path / "store")
    stored = datasets.open_store(tmp_path / "store").X
    arrays = feature_arrays(stored)
    assert arrays.apart_from(stored) is arrays
    own = feature_arrays(X)
    apart = own.apart_from(X)
    assert np.shares_memory(own.indices, X.indices)
    assert not np.shares_memory(apart.indices, X.indices)
    assert np.shares_memory(apart.values, X.data)  # a changed value does no harm
    assert np.array_equal(apart.indices, own.indices)
