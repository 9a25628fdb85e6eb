"""Checkpoints: a fit that is killed at any moment resumes and ends with the same model."""

import os
import pickle
import shutil
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import patience
from checkpointed_fits import UNDISTURBED, XS, YS, X, Y, small, trees_in
from cli_runs import leftovers, within, write_data
from ldsm import LdSMClassifier, TextTagger, _core, load
from ldsm._arrays.features import feature_arrays
from ldsm._arrays.labels import label_arrays
from ldsm._execution.executor import Control
from ldsm._trees.checkpoint import Receipt, open_checkpoint
from ldsm._trees.growing import TreeWork
from ldsm._trees.params import resolve
from ldsm._trees.training_data import TrainingData
from ldsm.datasets import Dataset

NAMES = list("abcdefgh")


# -- killed and resumed ------------------------------------------------------------------------


def killed_fits(folder, threaded, loky, seed=1):
    """How many fits died amid their work, by backend; the script makes sure of the rest."""
    script = Path(__file__).parents[1] / "helpers" / "killed_fits.py"
    command = [sys.executable, script, folder, *map(str, (threaded, loky, seed))]
    run = patience.run(command)
    assert run.returncode == 0, run.stderr
    return [int(line) for line in run.stdout.splitlines()]


@pytest.mark.linux
def test_killed_fits_resume(tmp_path):
    assert min(killed_fits(tmp_path, 3, 1)) > 0


@pytest.mark.linux
@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_fits_killed_ten_times_resume(tmp_path, seed):
    assert min(killed_fits(tmp_path, 10, 10, seed)) >= 8


def test_ctrl_c_keeps_the_finished_trees(tmp_path, monkeypatch):
    folder = tmp_path / "trees"
    settings = {"n_estimators": 40, "n_epochs": 30, "n_jobs": 2}
    pressed, grown = threading.Event(), TreeWork.__call__

    def interrupted(work, tree, control):
        if len(trees_in(folder)) >= 3:
            if not pressed.is_set():
                pressed.set()
                os.kill(os.getpid(), signal.SIGINT)
            patience.wait_until(lambda: control.cancel[0])
        return grown(work, tree, control)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(TreeWork, "__call__", interrupted)
        small(**settings).fit(XS, YS, checkpoint_dir=folder)
    kept = len(trees_in(folder))
    assert 3 <= kept < 40 and not leftovers(folder)
    again = small(**settings).fit(XS, YS, checkpoint_dir=folder)
    assert again.training_["trees_from_checkpoint"] == kept
    assert again.fingerprint_ == small(**settings).fit(XS, YS).fingerprint_


# -- the same fit ------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_checkpointed_fit_same_model(tmp_path, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        clf = small().fit(XS, YS, checkpoint_dir=tmp_path / "a" / "b")
    assert clf.fingerprint_ == UNDISTURBED
    assert clf.training_["trees_from_checkpoint"] == 0
    assert sorted(os.listdir(tmp_path / "a" / "b")) == [
        "checkpoint.json",
        *(f"tree-0000{i}.ldsm" for i in range(4)),
    ]


def test_repeated_fit_reuses_trees(folder, grown):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    seen = []
    # None of these decides a tree; nor does the form in which the same data comes.
    for X_form, changes in [
        (XS, {}),
        (X, {"n_jobs": 2, "verbose": 0}),
        (XS.tocsc(), {"leaf_scores": "histogram"}),
        (XS, {"n_estimators": 2, "warm_start": True}),
    ]:
        clf = small(**changes)
        clf.fit(X_form, YS, checkpoint_dir=str(folder), callback=lambda *at: seen.append(at))
        assert clf.training_["trees_from_checkpoint"] == clf.n_estimators
        assert clf.fingerprint_ == small(**changes).fit(XS, YS).fingerprint_
        assert sorted(grown) == list(
            range(clf.n_estimators)
        )  # by the second fit, which has no folder
        grown.clear()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert all(done == total for done, total in seen)


def test_more_trees_extend_checkpoint(folder, grown):
    seen = []
    clf = small(n_estimators=7).fit(
        XS, YS, checkpoint_dir=folder, callback=lambda *at: seen.append(at)
    )
    assert grown == [4, 5, 6] and len(trees_in(folder)) == 7
    assert clf.training_["trees_from_checkpoint"] == 4
    assert clf.fingerprint_ == small(n_estimators=7).fit(XS, YS).fingerprint_
    # A gap is filled, whatever lies behind it.
    grown.clear()
    os.unlink(folder / "tree-00002.ldsm")
    assert small(n_estimators=7).fit(XS, YS, checkpoint_dir=folder).fingerprint_ == clf.fingerprint_
    assert grown == [2]


def test_progress_counts_checkpointed_trees(folder):
    seen = []
    clf = small(n_estimators=5)
    slow = threading.Event()
    grow = _core.grow_tree

    def waiting(*arguments, **options):
        assert slow.wait(patience.PATIENCE)
        return grow(*arguments, **options)

    def note(done, total):
        seen.append(done / total)
        slow.set()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_core, "grow_tree", waiting)
        clf.fit(XS, YS, checkpoint_dir=folder, callback=note)
    assert seen[0] == 4 / 5 and seen[-1] == 1


def test_warm_start_with_a_checkpoint(tmp_path, grown):
    cold = small(n_estimators=6).fit(XS, YS).fingerprint_
    grown.clear()
    clf = small(n_estimators=2, warm_start=True, random_state=None).fit(XS, YS)
    small_seed = clf.model_.seed
    folder = tmp_path / "trees"
    for n_trees in (4, 6, 6):
        clf.set_params(n_estimators=n_trees).fit(XS, YS, checkpoint_dir=folder)
    assert grown == [0, 1, 2, 3, 4, 5] and len(trees_in(folder)) == 4
    again = small(n_estimators=2, warm_start=True).fit(XS, YS)
    with pytest.raises(
        ValueError, match=rf"the seed .* is {again.model_.seed} now but was {small_seed}"
    ):
        again.set_params(n_estimators=4).fit(XS, YS, checkpoint_dir=folder)
    # The two that warm starts never wrote are grown where they are missing.
    grown.clear()
    fresh = small(n_estimators=6, random_state=None).fit(XS, YS, checkpoint_dir=folder)
    assert grown == [0, 1] and fresh.fingerprint_ == clf.fingerprint_ != cold


@pytest.mark.parametrize("make", [lambda: None, lambda: np.random.RandomState(7)])
def test_random_seed_is_kept(tmp_path, make):
    folder = tmp_path / "trees"
    first = small(n_estimators=2, random_state=make()).fit(XS, YS, checkpoint_dir=folder)
    again = small(random_state=None).fit(XS, YS, checkpoint_dir=folder)
    assert again.model_.seed == first.model_.seed and again.training_["trees_from_checkpoint"] == 2
    moved_on = np.random.RandomState(99)
    third = small(random_state=moved_on).fit(XS, YS, checkpoint_dir=folder)
    assert third.fingerprint_ == again.fingerprint_
    with pytest.raises(ValueError, match="the seed .* but was .*. Choose"):
        small(random_state=np.int64(3)).fit(XS, YS, checkpoint_dir=folder)


def test_interrupted_fit_of_texts_resumes(tmp_path):
    texts = ["cod and herring quota", "import of beef", "herring import"] * 20
    tags = [["fish", "law"], ["meat", "trade"], ["fish", "trade"]] * 20

    def fit(n_trees, **options):
        tagger = TextTagger(LdSMClassifier(n_trees, random_state=0))
        return tagger.fit(texts, tags, **options)

    fit(2, checkpoint_dir=tmp_path / "trees")
    tagger = fit(5, checkpoint_dir=tmp_path / "trees")
    assert tagger.classifier_.training_["trees_from_checkpoint"] == 2
    assert tagger.fingerprint_ == fit(5).fingerprint_

    def unread():
        raise AssertionError("the corpus was read first")
        yield

    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="'checkpoint_dir' parameter must name a folder"):
        TextTagger().fit(unread(), checkpoint_dir=tmp_path / "file")


def tree_work(folder):
    """What growing a tree into a folder takes."""
    data = TrainingData(feature_arrays(XS), label_arrays(YS))
    params = resolve(small().get_params(), data.x, len(data.y.indices))
    begun = open_checkpoint(folder, data, params, seed=5, seed_given=True)
    return TreeWork(data, params, 5, begun)


def grow(work, tree):
    return work(tree, Control.unshared())


def test_work_and_receipts_are_small(tmp_path):
    """What a worker is given and gives back; the tree is in the folder."""
    work = tree_work(tmp_path)
    receipt = grow(pickle.loads(pickle.dumps(work)), 2)
    assert isinstance(receipt, Receipt) and receipt.tree == 2
    assert len(pickle.dumps(receipt)) < 200 and len(pickle.dumps(work.checkpoint)) < 1000
    kept = replace(work, checkpoint=None)
    tree, expected = work.checkpoint.get(receipt), grow(kept, 2)
    assert tree.keys() == expected.keys()
    assert all(np.array_equal(tree[name], expected[name], equal_nan=True) for name in tree)
    # A file that is not the one of the receipt is noticed.
    work.checkpoint.put(2, grow(kept, 3))
    with pytest.raises(ValueError, match="'.*tree-00002.ldsm' is not the one that this fit wrote"):
        work.checkpoint.get(receipt)


def test_existing_tree_not_grown_again(tmp_path, grown):
    work = tree_work(tmp_path)
    receipt = grow(work, 1)
    control = Control.unshared()
    assert work(1, control) == receipt and grown == [1]
    assert control.progress[0] == work.params.max_nodes
    Path(work.checkpoint.path(1)).write_bytes(b"damaged")
    assert grow(work, 1) == receipt and grown == [1, 1]


def test_late_tree_of_another_machine(tmp_path, monkeypatch):
    """A network file system may remember for a while that there was no such file."""
    work = tree_work(tmp_path)
    receipt = grow(work, 0)
    os.rename(work.checkpoint.path(0), tmp_path / "elsewhere")
    show = threading.Timer(0.5, os.rename, (tmp_path / "elsewhere", work.checkpoint.path(0)))
    show.start()
    assert work.checkpoint.get(receipt)
    show.join()
    os.unlink(work.checkpoint.path(0))
    monkeypatch.setattr("ldsm._storage.tasks.kept_results.LATE_SECONDS", 0.2)
    with pytest.raises(FileNotFoundError, match="tree-00000.ldsm"):
        work.checkpoint.get(receipt)


def fit_in(folder):
    return small(n_estimators=20, random_state=None).fit(XS, YS, checkpoint_dir=folder)


def test_processes_share_folder(tmp_path):
    """Without a seed of their own they agree on one, and both end with its model."""
    with joblib.parallel_config(backend="loky", n_jobs=2):
        for round in range(2):
            folder = tmp_path / str(round)
            one, other = joblib.Parallel()(joblib.delayed(fit_in)(folder) for _ in range(2))
            assert one.fingerprint_ == other.fingerprint_ == fit_in(folder).fingerprint_
            assert len(os.listdir(folder)) == 21


# -- another fit -------------------------------------------------------------------------------


def other_values():
    changed = XS.copy()
    changed.data[5] += 1
    return changed


def other_labels():
    changed = Y.copy()
    changed[3, 2] = 1 - changed[3, 2]
    return sp.csr_array(changed)


@pytest.mark.parametrize(
    ("X_now", "y_now", "changes", "message"),
    [
        (
            other_values(),
            YS,
            {},
            r"fit: the hash of X is [0-9a-f]{12} now but was [0-9a-f]{12}\. ",
        ),
        (XS, other_labels(), {}, r"fit: the hash of the labels is \w{12} now but was \w{12}\. "),
        (XS[:150], YS[:150], {"max_nodes": 100}, r"the number of rows is 150 now but was 200\. "),
        (XS[:, :29], YS, {}, r"fit: the number of features is 29 now but was 30\. "),
        (XS, YS[:, :7], {}, r"fit: the number of labels is 7 now but was 8\. "),
        (
            XS,
            Dataset(XS, YS, label_names=NAMES),
            {},
            r"fit: the hash of the labels is .* was .*\. ",
        ),
        (
            XS,
            YS,
            {"random_state": 4},
            r"fit: the seed \(drawn from random_state\) is \d+ now but was",
        ),
        (
            XS,
            YS,
            {"arity": 3},
            r"arity is 3 now but was 2; multiway_penalty is 2.0 now but was 1.0",
        ),
        (XS, YS, {"max_nodes": 50}, "fit: max_nodes is 50 now but was 100"),
        (XS, YS, {"n_epochs": 1}, "n_epochs is 1 now but was 3"),
        (XS, YS, {"learning_rate": 0.25}, "learning_rate is 0.25 now but was 0.5"),
        (XS, YS, {"integrity_weight": 1.0}, "integrity_weight is 1.0 now but was 2.0"),
        (XS, YS, {"multiway_penalty": 0.5}, "multiway_penalty is 0.5 now but was 1.0"),
        (XS, YS, {"relax_integrity": False}, r"\(by relax_integrity\) is 0 now but was 3"),
        (XS, YS, {"optimizer": "sgd"}, "optimizer is 'sgd' now but was 'asgd'"),
        (XS, YS, {"standardize": True}, "standardize is True now but was False"),
        (XS, YS, {"subsample": 0.5}, "subsample is 0.5 now but was 1.0"),
    ],
)
def test_different_fit_refused(folder, grown, X_now, y_now, changes, message):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    clf = small(**changes)
    with pytest.raises(ValueError, match=message) as caught:
        if isinstance(y_now, Dataset):
            clf.fit(y_now, checkpoint_dir=folder)
        else:
            clf.fit(X_now, y_now, checkpoint_dir=folder)
    assert repr(str(folder)) in str(caught.value) and "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not grown and not hasattr(clf, "forest_")


def test_different_version_refused(folder, monkeypatch):
    """It may grow other trees, which must not be mixed into one model."""
    monkeypatch.setattr("ldsm._trees.checkpoint.__version__", "99.0")
    with pytest.raises(ValueError, match="the version of ldsm is '99.0' now but was '.*'"):
        small().fit(XS, YS, checkpoint_dir=folder)


# -- the command line --------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["train.txt", "notes.jsonl"])
def test_command_resumes(tmp_path, capsys, data):
    write_data(tmp_path)
    run = within(capsys)
    trees = tmp_path / "trees"

    def train(n_trees, *more):
        file = tmp_path / "m.ldsm"
        done = run("train", tmp_path / data, "-o", file, "--n-estimators", n_trees, *more)
        return done, load(file) if done.code == 0 else None

    done, first = train(2, "--checkpoint", trees)
    assert done.code == 0 and "loaded from" not in done.err
    done, model = train(5, "--checkpoint", trees)
    assert f"2 of 5 trees loaded from {trees}" in done.err and len(trees_in(trees)) == 5
    shutil.rmtree(trees)
    # A former model is extended; the folder keeps what is new.
    first.save(tmp_path / "m.ldsm")
    for taken in (0, 3):
        first.save(tmp_path / "m.ldsm")
        done, warm = train(5, "--warm-start", "--checkpoint", trees)
        assert warm.fingerprint_ == model.fingerprint_
        assert (f"{taken} of 5 trees loaded" in done.err) == (taken > 0)
    assert trees_in(trees) == [f"tree-0000{i}.ldsm" for i in (2, 3, 4)]
    done, _ = train(5, "--checkpoint", trees, "--arity", 3)
    assert done.code == 1 and done.err.count("error: ") == 1
    assert "belongs to another fit: arity is 3 now but was 2" in done.err
