"""Planted files at the paths of temporary files."""

import os

import numpy as np
import pytest

from ldsm import LdSMClassifier, datasets
from ldsm.datasets import Dataset

DATA = Dataset([[0.0, 2.0], [1.0, 0.0]], [[1, 0], [0, 1]])


def texts() -> Dataset:
    return Dataset.from_texts(["to be"], [["a"]])


def save_model(path) -> None:
    LdSMClassifier(n_estimators=1).fit(np.eye(4, dtype=np.float32), [0, 1, 0, 1]).save(path)


WRITERS = {
    "m.ldsm": save_model,
    "d.jsonl": lambda path: datasets.save_jsonl(texts(), path),
    "d.csv": lambda path: datasets.save_table(texts(), path),
    "d.txt": lambda path: datasets.save_xmlrepo(DATA, path),
}


@pytest.mark.parametrize("suffix", [".tmp", "~", ".part", ".new"])
def test_planted_link_is_not_followed(tmp_path, suffix):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    store = tmp_path / "store"
    datasets.save_store(DATA, store)
    for name, write in WRITERS.items():
        os.symlink(victim, tmp_path / f"{name}{suffix}")
        os.symlink(victim, tmp_path / f".{name}{suffix}")
        write(tmp_path / name)
    os.symlink(victim, store / f"meta.json{suffix}")
    with pytest.raises(FileExistsError, match="which is not part of a store"):
        datasets.save_store(DATA, store, overwrite=True)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", WRITERS)
def test_long_file_name(tmp_path, name):
    suffix = name.split(".")[1]
    long = "é" * ((255 - len(suffix) - 1) // 2)
    path = tmp_path / f"{long}.{suffix}"
    WRITERS[name](path)
    WRITERS[name](path)  # and again, over the first
    assert sorted(os.listdir(tmp_path)) == [path.name]


@pytest.mark.parametrize("name", WRITERS)
def test_file_mode_is_kept(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    assert path.stat().st_mode & 0o777 == 0o666 & ~os.umask(os.umask(0o022))
    path.chmod(0o640)
    WRITERS[name](path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_store_mode_is_kept(tmp_path):
    datasets.save_store(DATA, tmp_path / "store")
    (tmp_path / "store" / "meta.json").chmod(0o640)
    datasets.save_store(DATA, tmp_path / "store", overwrite=True)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "store").iterdir()}
    assert set(modes.values()) == {0o640}, modes
