"""The file of `ldsm tune --storage`: odd names, foreign and damaged databases, a full disk."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from cli_runs import within
from full_disk import no_file_beyond
from ldsm import datasets

pytest.importorskip("optuna")


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    X = (rng.random((60, 8)) < 0.4).astype(np.float32)
    path = tmp_path_factory.mktemp("tune") / "rows.svm"
    datasets.save_svmlight(datasets.Dataset(X, X[:, :4] > 0), path)
    return path


@pytest.fixture
def tune(data, capsys):
    run = within(capsys)
    return lambda storage: run("tune", data, "--trials", 1, "--storage", storage)


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory) -> Path:
    """A database with a trial."""
    from ldsm.cli.main import _run

    path = tmp_path_factory.mktemp("tune") / "trials.db"
    assert _run(["tune", str(data), "--trials", "1", "--storage", str(path)]) == 0
    return path


def change(path: Path, *commands: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        for command in commands:
            database.execute(command)
        database.commit()


@pytest.mark.parametrize(
    "name", ["x.db?mode=memory&uri=true", "file:x.db?mode=ro&uri=true", "a#b %41 {0}.db"]
)
def test_any_file_name(tune, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert tune(name).code == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]
    again = tune(name)
    assert again.code == 0 and "1 trial from earlier runs" in again.err


@pytest.mark.parametrize(
    "command",
    [
        "DROP TABLE studies",
        "DROP TABLE trial_user_attributes",
        "DELETE FROM studies",
        "DELETE FROM trial_values",
        "DELETE FROM trial_params",
        "UPDATE trials SET state = 'ODD'",
        "UPDATE trial_params SET distribution_json = '{'",
        "UPDATE trial_params SET param_value = 99",
        "UPDATE trial_values SET value = NULL",
        "UPDATE study_directions SET direction = 'MINIMIZE'",
        "UPDATE alembic_version SET version_num = 'x'",
        "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT 1",
    ],
)
def test_damaged_databases(tune, finished, tmp_path, command):
    path = tmp_path / "trials.db"
    shutil.copy(finished, path)
    change(path, command)
    answer = tune(path)
    assert answer.code == 1 and answer.out == "" and answer.err.count("\n") == 1
    assert answer.err.startswith(f"error: {path} cannot be used for --storage: ")


def test_truncated_databases(tune, finished, tmp_path):
    path, whole = tmp_path / "trials.db", finished.read_bytes()
    for n_bytes in (4096, 20_000, len(whole) // 2):
        path.write_bytes(whole[:n_bytes])
        answer = tune(path)
        assert answer.code == 1 and f"{path} cannot be used for --storage: " in answer.err
        assert path.read_bytes() == whole[:n_bytes]


def test_foreign_database_is_kept(tune, tmp_path):
    path = tmp_path / "music.db"
    change(path, "CREATE TABLE songs (name TEXT)")
    before = path.read_bytes()
    answer = tune(path)
    assert answer.code == 1 and "it is a database of another program" in answer.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("n_bytes", [10_000, 100_000])
def test_full_disk_leaves_no_database(tune, tmp_path, n_bytes):
    path = tmp_path / "trials.db"
    with no_file_beyond(n_bytes):
        answer = tune(path)
    assert answer.code == 1 and f"{path} cannot be used for --storage: " in answer.err
    assert list(tmp_path.iterdir()) == []
    assert tune(path).code == 0


def test_missing_folder(tune, tmp_path):
    answer = tune(tmp_path / "no" / "trials.db")
    assert (
        answer.code == 1 and "trials.db cannot be used for --storage: unable to open" in answer.err
    )
