"""Fixtures of the tests of checkpoints, whole and damaged."""

import pytest

from checkpointed_fits import XS, YS, note_trees, small


@pytest.fixture
def folder(tmp_path):
    """A checkpoint of four trees."""
    small().fit(XS, YS, checkpoint_dir=tmp_path / "trees")
    return tmp_path / "trees"


@pytest.fixture
def grown(monkeypatch):
    return note_trees(monkeypatch)
