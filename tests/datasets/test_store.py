"""The memory-mapped store: what is written comes back, what is damaged is refused."""

import json
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from dataset_strategies import assert_same, documents, matrix_datasets, text_dataset
from full_disk import no_file_beyond
from ldsm import datasets
from ldsm._storage.manifest import identity
from ldsm.datasets import Dataset, Strings, open_store, save_store
from patience import started
from process_memory import mapped_bytes

PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)


def example():
    return Dataset(
        [[0, 1.5, 0], [2, 0, 3], [0, 0, 0]],
        [[1, 0], [0, 0], [1, 1]],
        feature_names=["a", "b", "ü"],
        label_names=["x", ""],
        source="here",
    )


@pytest.fixture
def store(tmp_path):
    example().save(tmp_path / "store")
    return tmp_path / "store"


@given(matrix_datasets())
@PROPERTY
def test_round_trip(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "round_trip"
    save_store(data, folder, overwrite=True)
    for verify in (False, True):
        assert_same(open_store(folder, verify=verify), data)


@given(documents)
@PROPERTY
def test_round_trip_of_texts(tmp_path_factory, pairs):
    folder = tmp_path_factory.getbasetemp() / "round_trip_texts"
    data = text_dataset(pairs)
    save_store(data, folder, overwrite=True)
    again = open_store(folder, verify=True)
    assert_same(again, data)
    assert again.labels == data.labels


def test_full_disk_leaves_no_store(tmp_path):
    data = Dataset.from_texts(["cod " * 1000] * 100, [["fish"]] * 100)
    for n_bytes in (0, 100, 100_000):
        with no_file_beyond(n_bytes), pytest.raises(OSError) as caught:
            save_store(data, tmp_path / "store")
        assert caught.value.filename.startswith(str(tmp_path / "store"))
        assert os.listdir(tmp_path) == []


def test_arrays_are_plain_and_mapped(store):
    assert sorted(os.listdir(store)) == sorted(
        ["meta.json"]
        + [f"{part}.npy" for part in ("x_indptr", "x_indices", "x_values", "y_indptr", "y_indices")]
        + [
            f"{part}.npy"
            for kind in ("feature", "label")
            for part in (f"{kind}_names", f"{kind}_name_offsets")
        ]
    )
    np.testing.assert_array_equal(np.load(store / "x_values.npy"), np.float32([1.5, 2, 3]))
    assert np.load(store / "x_indptr.npy").dtype == np.int64
    data = open_store(store)
    assert isinstance(data.X, sparse.csr_array)
    assert (data.X.dtype, data.X.indices.dtype) == (np.float32, np.int32)
    for array in (data.X.data, data.X.indices):
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert type(array) is np.ndarray
    assert data.source == "here"
    assert data.label_names == ["x", ""]
    assert list(data.feature_names) == ["a", "b", "ü"]


@pytest.mark.linux
def test_opening_reads_little(tmp_path):
    n, per_row = 200_000, 40
    X = sparse.csr_array(
        (
            np.ones(n * per_row, dtype=np.float32),
            np.tile(np.arange(per_row, dtype=np.int32), n),
            np.arange(0, n * per_row + 1, per_row, dtype=np.int32),
        ),
        shape=(n, 1000),
    )
    Y = sparse.csr_array((np.ones(n), np.arange(n), np.arange(n + 1)), shape=(n, n))
    Dataset(X, Y, label_names=[str(i) for i in range(n)]).save(tmp_path / "big")
    data = open_store(tmp_path / "big")
    for name in ("x_indices", "x_values"):
        path = tmp_path / "big" / f"{name}.npy"
        assert path.stat().st_size > 30 << 20
        assert 0 < mapped_bytes(path) < 2 << 20  # some pages at its ends
    assert data.label_names[n - 1] == str(n - 1)
    rows = [n - 1, 5]
    assert_same(data.select(rows), Dataset(X, Y, label_names=data.label_names).select(rows))


def test_blocks_are_joined(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random_array(
        (100, 30), density=0.2, format="csr", dtype=np.float32, random_state=rng
    )
    data = Dataset(X, rng.random((100, 7)) < 0.3)
    datasets.save_xmlrepo(data, tmp_path / "data.txt")
    save_store(datasets.iter_xmlrepo(tmp_path / "data.txt", block_bytes=500), tmp_path / "store")
    assert_same(open_store(tmp_path / "store", verify=True), data)
    datasets.save_svmlight(data, tmp_path / "data.svm")
    blocks = list(datasets.iter_svmlight(tmp_path / "data.svm", block_bytes=500))
    assert len(blocks) > 5
    save_store(blocks, tmp_path / "store", overwrite=True)
    assert_same(open_store(tmp_path / "store"), datasets.load_svmlight(tmp_path / "data.svm"))
    texts = [Dataset.from_texts([word], [["tag"]]) for word in ("one", "two", "")]
    save_store(texts, tmp_path / "texts")
    assert list(open_store(tmp_path / "texts").texts) == ["one", "two", ""]
    with pytest.raises(ValueError, match="same names"):
        save_store([texts[0], data], tmp_path / "mixed")
    with pytest.raises(ValueError, match="at least one chunk"):
        save_store([], tmp_path / "mixed")
    nan = Dataset([[1]], [[1]])
    nan.X.data[0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        save_store(nan, tmp_path / "mixed")
    assert not (tmp_path / "mixed").exists()


def rewrite_meta(store, change, *, checksum=True):
    meta = json.loads((store / "meta.json").read_text())
    change(meta)
    if checksum:
        meta.pop("identity", None)
        meta["identity"] = identity(meta)
    (store / "meta.json").write_text(json.dumps(meta))


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def swap_dtype(store):
    path = store / "x_values.npy"
    path.write_bytes(path.read_bytes().replace(b"<f4", b"<i4"))


DAMAGES = {
    "is missing": lambda s: (s / "x_values.npy").unlink(),
    "has 139 bytes instead of 140": lambda s: os.truncate(s / "x_values.npy", 139),
    "has 0 bytes instead of 140": lambda s: os.truncate(s / "x_indices.npy", 0),
    "has no meta.json.*is incomplete": lambda s: (s / "meta.json").unlink(),
    "is not JSON": lambda s: os.truncate(s / "meta.json", 50),
    "does not match its checksum": lambda s: flip(s / "x_indices.npy", 128),
    "content of label_names.npy": lambda s: flip(s / "label_names.npy", 128),
    "not an array of 3 float32": swap_dtype,
    "does not say that it is an ldsm-store": lambda s: (s / "meta.json").write_text("{}"),
    "version 3, but this ldsm reads version 2: upgrade": lambda s: rewrite_meta(
        s, lambda m: m.update(version=3)
    ),
    "version 1, but this ldsm reads version 2: convert": lambda s: rewrite_meta(
        s, lambda m: m.update(version=1)
    ),
    "checksum does not match": lambda s: rewrite_meta(
        s, lambda m: m.update(rows=4), checksum=False
    ),
    "x_indptr must go from 0 to 3 in 4": lambda s: rewrite_meta(s, lambda m: m.update(rows=4)),
    "names must go|offsets must go": lambda s: rewrite_meta(s, lambda m: m.update(labels=9)),
    "a missing or invalid entry": lambda s: rewrite_meta(s, lambda m: m.pop("source")),
    "missing or invalid entry": lambda s: rewrite_meta(
        s, lambda m: m["arrays"]["x_values"].update(length=-1)
    ),
    "has a missing or invalid entry": lambda s: rewrite_meta(
        s, lambda m: m["arrays"]["x_values"].update(file="../x_values.npy")
    ),
    "does not name the array y_indptr": lambda s: rewrite_meta(
        s, lambda m: m["arrays"].pop("y_indptr")
    ),
}


@pytest.mark.parametrize("reason", DAMAGES)
def test_damage_is_refused_with_its_reason(store, reason):
    DAMAGES[reason](store)
    with pytest.raises(ValueError, match=reason) as caught:
        open_store(store)
    assert str(store) in str(caught.value)


def test_flipped_bytes_of_small_store(store):
    flipped = 0
    for path in sorted(store.iterdir()):
        whole = path.read_bytes()
        for at in range(len(whole)):
            if path.name == "meta.json" and whole[at : at + 1].isspace():
                continue  # layout, not content
            flip(path, at)
            with pytest.raises(ValueError, match=str(store)):
                open_store(store)
            flipped += 1
        path.write_bytes(whole)
    assert flipped > 1500
    open_store(store)


def test_large_arrays_checked_at_ends(tmp_path):
    values = np.arange(1, 600_001, dtype=np.float32)
    X = sparse.csr_array((values, np.zeros(600_000, np.int32), np.arange(600_001, dtype=np.int32)))
    Dataset(X, np.zeros((600_000, 1))).save(tmp_path / "big")
    path = tmp_path / "big" / "x_values.npy"
    for at, verify in ((128, False), (-1, False), (1_000_000, True)):
        flip(path, at)
        with pytest.raises(ValueError, match="does not match its checksum"):
            open_store(tmp_path / "big", verify=verify)
        flip(path, at)
    open_store(tmp_path / "big", verify=True)


def test_verify_finds_invalid_numbers(store):
    rewrite_meta(store, lambda m: (m.update(features=2), m["arrays"].pop("feature_names")))
    with pytest.raises(ValueError, match=r"x_indices holds numbers outside \[0, 2\)"):
        open_store(store, verify=True)


def test_existing_folders_are_safe(tmp_path, store):
    with pytest.raises(FileExistsError, match="use overwrite=True to replace it"):
        save_store(example(), store)
    other = Dataset([[7]], [[1]])
    mapped = open_store(store)
    save_store(other, store, overwrite=True)
    assert_same(open_store(store), other)
    assert_same(mapped, example())  # who had it open keeps what was opened
    assert len(os.listdir(store)) == 6
    (store / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"notes\.txt"):
        save_store(example(), store, overwrite=True)
    assert_same(open_store(store), other)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        save_store(other, tmp_path / "file", overwrite=True)
    with pytest.raises(FileNotFoundError, match="no store"):
        open_store(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    save_store(other, tmp_path / "empty")
    assert_same(open_store(tmp_path / "empty"), other)


class Interrupt(BaseException):
    """Stands for Ctrl-C, which is no Exception either."""


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("call", ["fsync", "replace", "unlink", "open", "listdir"])
@pytest.mark.parametrize("before", [True, False])
def test_interrupted_writer_leaves_whole_store(tmp_path, monkeypatch, overwrite, call, before):
    original = getattr(os, call)
    former = Dataset([[7]], [[1]])
    interrupted = 0
    for fatal in range(14):
        folder = tmp_path / str(fatal)
        if overwrite:
            save_store(former, folder)
        calls = iter(range(100))

        def failing(*args, calls=calls, fatal=fatal):
            number = next(calls)
            if number == fatal and before:
                raise Interrupt
            result = original(*args)
            if number == fatal:
                if call == "open":
                    os.close(result)
                raise Interrupt
            return result

        with monkeypatch.context() as patch:
            patch.setattr(os, call, failing)
            try:
                save_store(example(), folder, overwrite=overwrite)
            except Interrupt:
                interrupted += 1
        if not overwrite and not folder.exists():
            continue
        data = open_store(folder, verify=True)
        assert_same(data, former if overwrite and data.n_features == 1 else example())
        save_store(former, folder, overwrite=True)
        assert len(os.listdir(folder)) == 6  # no leftovers
    assert interrupted or (call == "unlink" and not overwrite)


def test_killed_writer_leaves_whole_store(tmp_path):
    script = textwrap.dedent("""
        import sys
        import numpy as np
        from ldsm.datasets import Dataset, save_store
        sets = [Dataset(np.full((2000, 50), i), np.ones((2000, 1))) for i in (1, 2)]
        save_store(sets[0], sys.argv[1], overwrite=True)
        print("ready", flush=True)
        while True:
            for data in sets:
                save_store(data, sys.argv[1], overwrite=True)
    """)
    folder = tmp_path / "store"
    for pause in (0.003, 0.011, 0.029):
        command = [sys.executable, "-c", script, str(folder)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with started(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(pause)  # and then it is killed
        data = open_store(folder, verify=True)
        assert len(np.unique(data.X.data)) == 1
    save_store(data, folder, overwrite=True)
    assert len(os.listdir(folder)) == 6  # leftovers of the killed ones are removed


def test_single_writer(tmp_path):
    def blocks():
        yield example()
        with pytest.raises(FileExistsError, match="another process"):
            save_store(example(), tmp_path / "store", overwrite=True)

    save_store(blocks(), tmp_path / "store")
    assert_same(open_store(tmp_path / "store"), example())


def test_strings_are_a_sequence():
    strings = Strings.pack(["a", "", "ünï", "日本"])
    assert len(strings) == 4
    assert (strings[-1], strings[1:3], list(strings)) == (
        "日本",
        ["", "ünï"],
        ["a", "", "ünï", "日本"],
    )
    assert strings == ["a", "", "ünï", "日本"]
    assert strings == Strings.pack(list(strings))
    assert strings != ["a"]
    assert "ünï" in strings
    assert Strings.pack([]) == []
    with pytest.raises(IndexError):
        strings[4]
    with pytest.raises(ValueError, match="lone surrogate"):
        Strings.pack(["\ud800"])
