"""The second stage in files: it resumes after an interruption, and memory need not hold it."""

import os
from pathlib import Path

import pytest

from ldsm import LdSMClassifier, _core, datasets

DATA = datasets.make_xmc(1500, 200, 40, seed=0)
STAGES = {"shortlist-chunk": "shortlists", "label-range": "train_ranker"}


@pytest.fixture(autouse=True)
def _many_ranges(monkeypatch):
    monkeypatch.setattr("ldsm._ranking.label_pairs.RANGE_PAIRS", 8000)


@pytest.fixture(scope="module")
def expected():
    return small().fit(DATA).fingerprint_


def small(**changes):
    return LdSMClassifier(**{"n_estimators": 3, "random_state": 0, **changes})


def parts_in(folder):
    return sorted(
        path.name for path in Path(folder).iterdir() if path.name.split("-0")[0] in STAGES
    )


def noted(monkeypatch, stop_at=None):
    """From here on, the stage of each call of the core; the call of this number is interrupted."""
    calls = []
    for name, function in STAGES.items():
        real = getattr(_core, function)

        def call(*arguments, name=name, real=real, **options):
            calls.append(name)
            if len(calls) == stop_at:
                raise KeyboardInterrupt
            return real(*arguments, **options)

        monkeypatch.setattr(_core, function, call)
    return calls


def test_interrupted_second_stage_resumes(monkeypatch, tmp_path, expected):
    with monkeypatch.context() as patch:
        calls = noted(patch)
        assert small().fit(DATA, checkpoint_dir=tmp_path / "whole").fingerprint_ == expected
    parts = parts_in(tmp_path / "whole")
    n_ranges = calls.count("label-range")
    assert n_ranges > 3 and len(parts) == 3 + n_ranges
    for stop_at in range(1, len(calls) + 1, 2):
        folder = tmp_path / str(stop_at)
        with monkeypatch.context() as patch:
            noted(patch, stop_at)
            with pytest.raises(KeyboardInterrupt):
                small().fit(DATA, checkpoint_dir=folder)
        before = {name: os.stat(folder / name).st_mtime_ns for name in parts_in(folder)}
        with monkeypatch.context() as patch:
            again = noted(patch)
            assert small(n_jobs=2).fit(DATA, checkpoint_dir=folder).fingerprint_ == expected
        assert again.count("label-range") == n_ranges - sum("range" in name for name in before)
        assert parts_in(folder) == parts
        assert all(os.stat(folder / name).st_mtime_ns == time for name, time in before.items())


def test_results_of_other_fits_are_replaced(monkeypatch, tmp_path, expected):
    small().fit(DATA, checkpoint_dir=tmp_path)
    more = small(n_estimators=4).fit(DATA, checkpoint_dir=tmp_path)
    assert more.fingerprint_ == small(n_estimators=4).fit(DATA).fingerprint_
    assert small().fit(DATA, checkpoint_dir=tmp_path).fingerprint_ == expected
    calls = noted(monkeypatch)
    small().fit(DATA, checkpoint_dir=tmp_path)
    assert "label-range" not in calls


def test_damaged_results_are_made_again(tmp_path, expected):
    small().fit(DATA, checkpoint_dir=tmp_path)
    for name in ("shortlist-chunk-00001.ldsm", "label-range-00002.ldsm"):
        good = (tmp_path / name).read_bytes()
        for bad in (b"", good[:-40], good[:-60] + b"x" + good[-59:]):
            (tmp_path / name).write_bytes(bad)
            with pytest.warns(UserWarning, match=f"{name}.* will be written again"):
                fitted = small().fit(DATA, checkpoint_dir=tmp_path)
            assert fitted.fingerprint_ == expected
            assert (tmp_path / name).read_bytes() == good


def test_memory_limit_keeps_the_second_stage_in_files(monkeypatch, tmp_path, expected):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = []
    real = _core.train_ranker

    def train(*arguments, **options):
        kept.append(len(list(tmp_path.glob(".ldsm-parts-*/shortlist-chunk-*.ldsm"))))
        return real(*arguments, **options)

    monkeypatch.setattr(_core, "train_ranker", train)
    assert small(memory_limit=1 << 20).fit(DATA).fingerprint_ == expected
    assert set(kept) == {3}
    assert not list(tmp_path.iterdir())
