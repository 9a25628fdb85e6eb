"""Damaged checkpoints, and folders and disks that cannot be used."""

import errno
import json
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
import pytest

from checkpointed_fits import UNDISTURBED, XS, YS, small, trees_in
from cli_runs import leftovers
from full_disk import no_file_beyond
from ldsm._execution.scratch import lock_scratch
from ldsm._storage import container as model_file
from ldsm._storage.atomic import STALE_SECONDS
from ldsm._storage.container import FormatVersionError
from ldsm._storage.container_header import FORMAT_VERSION
from ldsm._storage.manifest import identity
from model_bytes import seal

# -- damage --------------------------------------------------------------------------------------


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def changed_tree(folder, tree, change):
    """Another file for a tree, with a proper checksum."""
    path = folder / f"tree-{tree:05}.ldsm"
    header, arrays = model_file.read(path)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    model_file.write(path, header, arrays)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: b"", "it has 0 bytes"),
        (lambda data: data[:500], "cut off"),
        (lambda data: data[:-1], "cut off"),
        (lambda data: flipped(data, len(data) // 2), "its checksum does not match"),
        (lambda data: b"\0" * len(data), "not a model file"),
        (lambda data: data + b"x", "more than its header says"),
    ],
)
def test_damaged_tree_is_regrown(folder, grown, damage, reason):
    path = folder / "tree-00002.ldsm"
    good = path.read_bytes()
    path.write_bytes(damage(good))
    warning = rf"{path}' cannot be loaded: .*{reason}.*\. Tree 2 will be grown again\."
    with pytest.warns(UserWarning, match=warning) as caught:
        clf = small().fit(XS, YS, checkpoint_dir=folder)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert grown == [2] and path.read_bytes() == good
    assert clf.fingerprint_ == UNDISTURBED and clf.training_["trees_from_checkpoint"] == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda h, a: h.update(tree=3), "it does not hold tree 2"),
        (lambda h, a: h.update(kind="LdSMClassifier"), "it does not hold tree 2"),
        (lambda h, a: h.pop("tree"), "it does not hold tree 2"),
        (lambda h, a: h.update(identity="0" * 64), "belongs to another fit"),
        (lambda h, a: a.pop("weights"), "'weights'"),
        (lambda h, a: a.update(more=np.zeros(3)), "'more'"),
        (lambda h, a: a.update(tree_offsets=np.zeros(2, np.int64)), "'tree_offsets'"),
        (lambda h, a: a["first_child"].__setitem__(0, 2**30), "node 0 of tree 0: a child lies"),
        (lambda h, a: a["weights"].__setitem__((0, 0), np.nan), "weights are not finite"),
        (lambda h, a: a["histogram_labels"].__setitem__(-1, 8), r"must lie in \[0, 8\)"),
        (lambda h, a: a["weight_features"].__setitem__(-1, 99), r"must lie in \[0, 31\)"),
        (lambda h, a: a.update(weights=a["weights"].astype(np.float16)), "of type float32"),
        (
            lambda h, a: a.update(epoch_objective=a["epoch_objective"][:, :2]),
            "epoch_objective must have 3 columns",
        ),
        (
            lambda h, a: a.update(
                weight_means=np.zeros_like(a["weight_features"], dtype=np.float32),
                weight_scales=np.ones_like(a["weight_features"], dtype=np.float32),
            ),
            "weight_means must have 0 entries",
        ),
    ],
)
def test_foreign_tree_is_regrown(folder, change, reason):
    changed_tree(folder, 2, change)
    with pytest.warns(UserWarning, match=rf"tree-00002.ldsm.*{reason}.*Tree 2 will be grown again"):
        clf = small().fit(XS, YS, checkpoint_dir=folder)
    assert clf.fingerprint_ == UNDISTURBED
    assert small().fit(XS, YS, checkpoint_dir=folder).fingerprint_ == UNDISTURBED


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a: a["weight_units"].__setitem__(0, np.nan), "weight_units are damaged"),
        (lambda a: a.update(weight_units=a["weight_units"][1:]), "weight_units must have"),
        (lambda a: a["weight_features"].__setitem__(slice(3), 255), r"must lie in \[0, 31\)"),
        (lambda a: a["weight_features"].__setitem__(1, 0), "weight_features do not rise"),
        (
            lambda a: a.update(weights=a["weights"].astype(np.float32)),
            "must both be compressed, or neither",
        ),
        (
            lambda a: a.update(
                weights=a["weights"].astype(np.float32),
                weight_features=small(n_estimators=1).fit(XS, YS).forest_.weight_features,
                weight_units=a["weight_units"][:0],
            ),
            "must have the shape|must be compressed",
        ),
    ],
)
def test_damaged_compressed_tree_is_regrown(tmp_path, change, reason):
    compressed = small(compress=True)
    known = compressed.fit(XS, YS, checkpoint_dir=tmp_path / "trees").fingerprint_
    changed_tree(tmp_path / "trees", 2, lambda header, arrays: change(arrays))
    with pytest.warns(UserWarning, match=rf"tree-00002.ldsm.*{reason}.*Tree 2 will be grown again"):
        clf = compressed.fit(XS, YS, checkpoint_dir=tmp_path / "trees")
    assert clf.fingerprint_ == known and clf.forest_.is_compressed


def test_other_form_is_regrown(tmp_path, folder):
    """A tree of exact weights in the checkpoint of a compressed fit."""
    trees = tmp_path / "compressed"
    known = small(compress=True).fit(XS, YS, checkpoint_dir=trees).fingerprint_
    header, _ = model_file.read(trees / "tree-00002.ldsm")
    _, arrays = model_file.read(folder / "tree-00002.ldsm")
    model_file.write(trees / "tree-00002.ldsm", header, arrays)
    with pytest.warns(UserWarning, match="its weights must be compressed if those of the fit are"):
        clf = small(compress=True).fit(XS, YS, checkpoint_dir=trees)
    assert clf.fingerprint_ == known


def test_unknown_tree_format(folder, grown):
    path = folder / "tree-00002.ldsm"
    own, newer = (f'"format_version":"{FORMAT_VERSION + i}"'.encode() for i in (0, 1))
    path.write_bytes(seal(path.read_bytes().replace(own, newer)))
    message = rf"tree-00002.ldsm.* in format {FORMAT_VERSION + 1}, .*upgrade ldsm"
    with pytest.raises(FormatVersionError, match=message):
        small().fit(XS, YS, checkpoint_dir=folder)
    assert not grown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is damaged: it is not JSON"),
        ('{"format": "ldsm-check', "is damaged: it is not JSON"),
        ("[" * 60_000, "is damaged: it is not JSON"),
        ("\udcff", "is damaged: it is not JSON"),
        ('{"format": 1' + " " * 70_000 + "}", "is damaged: it is not JSON"),
        ("[]", "does not say that it is an ldsm-checkpoint"),
        ('{"format": "ldsm-store"}', "does not say that it is an ldsm-checkpoint"),
        ('{"format": "ldsm-checkpoint", "version": 1}', "its checksum does not match"),
        ('{"format": "ldsm-checkpoint"}', "its checksum does not match"),
        ('{"format": "ldsm-checkpoint", "version": 2}', "has format version 2, but this ldsm read"),
    ],
)
def test_damaged_manifest(folder, text, message):
    manifest = folder / "checkpoint.json"
    manifest.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=message) as caught:
        small().fit(XS, YS, checkpoint_dir=folder)
    assert str(folder) in str(caught.value)
    assert len(trees_in(folder)) == 4


def test_altered_manifest_bytes(folder):
    manifest = folder / "checkpoint.json"
    good = manifest.read_bytes()
    for at in range(0, len(good), 7):
        manifest.write_bytes(flipped(good, at))
        if json.loads(good) == _json_or_none(manifest.read_bytes()):
            continue  # a space became another
        with pytest.raises(ValueError, match="checkpoint"):
            small(random_state=None).fit(XS, YS, checkpoint_dir=folder)


def _json_or_none(data):
    try:
        return json.loads(data)
    except ValueError:
        return None


def sealed_manifest(folder, change):
    """Another manifest with a proper checksum."""
    manifest = json.loads((folder / "checkpoint.json").read_text())
    del manifest["identity"]
    change(manifest)
    manifest["identity"] = identity(manifest)
    (folder / "checkpoint.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("seed"), "an entry is missing or of the wrong kind"),
        (lambda m: m.update(seed="3"), "an entry is missing or of the wrong kind"),
        (lambda m: m.update(seed=-1), "an entry is missing or of the wrong kind"),
        (lambda m: m.update(seed=2**70), "an entry is missing or of the wrong kind"),
        (lambda m: m.update(tree_params=[1]), "an entry is missing or of the wrong kind"),
        (lambda m: m.pop("rows"), "the number of rows is 200 now but was None"),
        (lambda m: m.update(rows=[[[]]]), r"the number of rows is 200 now but was \[\[\[\]\]\]"),
        (lambda m: m["tree_params"].pop("arity"), "arity is 2 now but was None"),
    ],
)
def test_forged_manifest(folder, change, message):
    sealed_manifest(folder, change)
    with pytest.raises(ValueError, match=message):
        small(random_state=None).fit(XS, YS, checkpoint_dir=folder)


# -- the folder ----------------------------------------------------------------------------------


def test_invalid_folders(tmp_path, grown):
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    small().fit(XS, YS, checkpoint_dir=tmp_path / "headless")
    os.unlink(tmp_path / "headless" / "checkpoint.json")
    grown.clear()
    for path, message in [
        (tmp_path / "file", "'checkpoint_dir' parameter must name a folder. '.*file' is a file"),
        (tmp_path / "full", "full' holds 'notes.txt' and no checkpoint.json"),
        (tmp_path / "headless", "headless' holds 'tree-00000.ldsm' and no checkpoint.json"),
        ("", "'checkpoint_dir' parameter must be a path. Got '' instead"),
        (7, "'checkpoint_dir' parameter must be a path. Got 7 instead"),
    ]:
        with pytest.raises(ValueError, match=message):
            small().fit(XS, YS, checkpoint_dir=path)
    with pytest.raises(OSError, match="file/below"):
        small().fit(XS, YS, checkpoint_dir=tmp_path / "file" / "below")
    assert not grown


def test_leftovers_of_killed_processes(tmp_path):
    folder = tmp_path / "trees"
    folder.mkdir()
    young, old = folder / ".ldsm-0123.tmp", folder / ".ldsm-4567.tmp"
    for path in (young, old):
        path.write_bytes(b"half a tree")
    long_ago = time.time() - STALE_SECONDS - 60
    os.utime(old, (long_ago, long_ago))
    assert small().fit(XS, YS, checkpoint_dir=folder).fingerprint_ == UNDISTURBED
    assert young.exists() and not old.exists()
    # What a process locks is still in use; its leftovers are known at once.
    used, left = folder / ".ldsm-scratch-0123.tmp", folder / ".ldsm-scratch-4567.tmp"
    for path, age in ((used, STALE_SECONDS + 60), (left, 90)):
        path.write_bytes(b"features")
        os.utime(path, (time.time() - age,) * 2)
    with used.open("rb") as file:
        lock_scratch(file.fileno())
        assert small().fit(XS, YS, checkpoint_dir=folder).fingerprint_ == UNDISTURBED
        assert used.exists() and not left.exists()
    # Beside a manifest, other people's files do no harm.
    (folder / "notes.txt").touch()
    (folder / "tree-00001.ldsm.bak").touch()
    assert small().fit(XS, YS, checkpoint_dir=folder).fingerprint_ == UNDISTURBED


def test_relative_checkpoint_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        small().fit(XS, YS, checkpoint_dir="trees")
    assert len(trees_in(tmp_path / "trees")) == 4


@contextmanager
def without_privileges():
    """The superuser may write anywhere; nobody may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_unwritable_folder(grown):
    parent = Path(tempfile.mkdtemp())  # where nobody may look; not so pytest's own
    try:
        small(n_estimators=2).fit(XS, YS, checkpoint_dir=parent / "begun")
        (parent / "empty").mkdir()
        for path in (parent, parent / "begun", parent / "empty"):
            path.chmod(0o555)
        grown.clear()
        with without_privileges():
            for name in ("begun", "empty", "new"):
                with pytest.raises(PermissionError, match=f"{parent / name}'"):
                    small().fit(XS, YS, checkpoint_dir=parent / name)
            # What is there can be read.
            assert not grown
            clf = small(n_estimators=2).fit(XS, YS, checkpoint_dir=parent / "begun")
        assert clf.training_["trees_from_checkpoint"] == 2
    finally:
        for path in (parent, parent / "begun", parent / "empty"):
            path.chmod(0o755)
        shutil.rmtree(parent)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_full_disk(folder, n_jobs):
    clf = small(n_estimators=8, n_jobs=n_jobs)
    for n_bytes in (100, 5000):
        with no_file_beyond(n_bytes), pytest.raises(OSError) as caught:
            clf.fit(XS, YS, checkpoint_dir=folder)
        assert caught.value.errno == errno.EFBIG
        assert str(folder / "tree-0000") in str(caught.value)
        assert len(os.listdir(folder)) == 5 and not hasattr(clf, "forest_")
    with no_file_beyond(100), pytest.raises(OSError, match="checkpoint.json"):
        clf.fit(XS, YS, checkpoint_dir=folder / "new")
    assert os.listdir(folder / "new") == []
    (folder / "new").rmdir()
    clf.fit(XS, YS, checkpoint_dir=folder)
    assert clf.training_["trees_from_checkpoint"] == 4
    assert clf.fingerprint_ == small(n_estimators=8).fit(XS, YS).fingerprint_


def test_no_hard_links(tmp_path, monkeypatch):
    def fail(*arguments):
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", fail)
    for _ in range(2):
        clf = small().fit(XS, YS, checkpoint_dir=tmp_path / "trees")
    assert clf.fingerprint_ == UNDISTURBED and not leftovers(tmp_path / "trees")
