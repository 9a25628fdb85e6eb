"""Facts about the training: read-only, replaced as a whole."""

from __future__ import annotations

import pytest

from ldsm import LdSMClassifier, load

X, Y = [[1, 0], [0, 1]] * 10, [["a"], ["b"]] * 10


def test_facts_are_read_only():
    clf = LdSMClassifier(2).fit(X, Y)
    before = clf.model_
    with pytest.raises(TypeError, match="item assignment"):
        clf.training_["note"] = 1
    clf.training_ = {**clf.training_, "note": 1}
    assert clf.training_["note"] == 1
    assert "note" not in before.training and clf.model_ is not before
    assert clf.fingerprint_ == before.fingerprint()


def test_facts_are_saved(tmp_path):
    clf = LdSMClassifier(2).fit(X, Y)
    clf.training_ = {**clf.training_, "note": [1, "x"]}
    clf.save(tmp_path / "m.ldsm")
    assert load(tmp_path / "m.ldsm").training_ == clf.training_


@pytest.mark.parametrize("change", [{}, {"rows": 3}, {"rows": 20}])
def test_facts_that_the_model_reads_stay(change):
    clf = LdSMClassifier(2).fit(X, Y)
    with pytest.raises(ValueError, match="must keep the entry '(rows|seconds)'"):
        clf.training_ = change
    assert clf.training_["rows"] == 20
