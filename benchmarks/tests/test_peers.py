"""How the benchmarks run other programs, as far as no program need be installed."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1]


@pytest.fixture
def peers_env(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("peers_env")


@pytest.fixture
def folder(peers_env, tmp_path):
    """Forty rows with the label their feature names; label 3 is on no training row."""
    ids = np.arange(40) % 3
    X, Y = 5 * np.eye(4)[ids], np.eye(4, dtype=int)[ids]
    peers_env.write_data(tmp_path / "data", "tiny", X, Y, X[:6])
    return tmp_path / "data"


def test_missing_peers_environment(peers_env, folder, monkeypatch, capsys):
    monkeypatch.setattr(peers_env, "PYTHON", folder / "no" / "python")
    assert peers_env.run_peer("omikuji-parabel", folder) is None
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert message.startswith("omikuji Parabel was not run: there is no ")
    assert "`make peers` makes it" in message


def test_failing_peer(peers_env, folder, monkeypatch, capsys):
    monkeypatch.setattr(peers_env, "PYTHON", Path(sys.executable))
    (folder / "X.npz").unlink()
    assert peers_env.run_peer("sklearn-ovr", folder) is None
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "No such file or directory" in message
    with pytest.raises(ValueError, match="must be one of omikuji-parabel, .* Got 'omikuji'"):
        peers_env.run_peer("omikuji", folder)


@pytest.mark.filterwarnings("ignore:Label not 3 is present in all training examples")
def test_run_and_reuse(peers_env, folder, tmp_path, monkeypatch):
    """The runner itself, in this process: scikit-learn is the one peer that is here."""
    results = tmp_path / "results"
    results.mkdir()
    output = str(results / "tiny_sklearn-ovr_seed0")
    monkeypatch.setattr(sys, "argv", ["", "sklearn-ovr", str(folder), output, "--k=9"])
    importlib.import_module("peer_run").main()

    monkeypatch.setattr(peers_env, "PYTHON", folder / "no" / "python")
    run = peers_env.run_peer("sklearn-ovr", folder, k=9, results=results)
    assert run.labels[:, 0].tolist() == [0, 1, 2, 0, 1, 2]
    assert (run.labels[:, 3] == -1).all()  # nothing was learned about label 3
    assert (np.diff(run.scores[:, :3]) <= 0).all()
    assert run.facts["train_seconds"] > 0 < run.facts["predict_ms_per_row"]
    assert run.facts["model_bytes"] > 0

    again = peers_env.run_peer("sklearn-ovr", folder, k=2, results=results)
    assert again.labels.tolist() == run.labels[:, :2].tolist()
    for changed in ({"k": 10}, {"threads": 2}, {"seed": 1}):
        assert (
            peers_env.run_peer("sklearn-ovr", folder, **{"k": 9} | changed, results=results) is None
        )
    about = json.loads((folder / "data.json").read_text())
    (folder / "data.json").write_text(json.dumps(about | {"sha256": "other data"}))
    assert peers_env.run_peer("sklearn-ovr", folder, k=9, results=results) is None
