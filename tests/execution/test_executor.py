"""One task on many parts: in order, cancelled together, the same bits from every executor."""

from __future__ import annotations

import os
import pickle
import threading
import time
from contextlib import contextmanager

import joblib
import pytest

from ldsm import LdSMClassifier, datasets
from ldsm._arrays.features import feature_arrays
from ldsm._arrays.labels import label_arrays
from ldsm._execution.executor import JoblibExecutor, Progress, Run, ThreadExecutor, watching
from ldsm._features.blocks import Blocks
from ldsm._features.training_rows import TrainingRows
from ldsm._matching.matchers import OutOfBag
from ldsm._matching.part import Training
from ldsm._matching.shortlists import Shortlists
from ldsm._matching.training_lists import match_training_rows
from ldsm._ranking import label_pairs, ranker
from ldsm._ranking.label_pairs import ListedPairs
from patience import PATIENCE


def squared(part, control):
    control.progress[0] = part
    return part * part, os.getpid()


@contextmanager
def processes():
    with joblib.parallel_config(backend="loky", n_jobs=2):
        yield JoblibExecutor()


@pytest.mark.parametrize("executor", [ThreadExecutor(1), ThreadExecutor(3), JoblibExecutor(2)])
def test_results_in_the_order_of_the_parts(executor):
    reports = []
    progress = Progress(lambda *report: reports.append(report), 1000, before=10)
    found = executor.map(squared, range(20), progress=progress)
    assert found == [(part * part, os.getpid()) for part in range(20)]
    assert reports[-1] == (1000, 1000)
    assert all(done in range(10, 1001) and total == 1000 for done, total in reports)


def test_no_parts():
    reports = []
    progress = Progress(lambda *report: reports.append(report), 7, before=7)
    assert ThreadExecutor(2).map(squared, [], progress=progress) == []
    assert reports[-1] == (7, 7)


def test_watchers_see_finished_parts():
    """Of named parts only: others are steps within a stage."""
    seen, one_done = [], threading.Event()

    def watch(done, total, kind):
        seen.append((total, kind))
        if done == 1:
            one_done.set()

    def wait(part, control):
        assert part == 0 or one_done.wait(PATIENCE)

    with watching(watch):
        ThreadExecutor(1).map(wait, range(2), name="label range")
        ThreadExecutor(1).map(squared, range(3))
    ThreadExecutor(1).map(squared, range(4), name="tree")
    assert one_done.is_set() and set(seen) == {(2, "label range")}


def test_one_part_runs_in_the_thread_of_the_caller():
    thread = ThreadExecutor(2).map(lambda part, control: threading.get_ident(), ["only"])
    assert thread == [threading.get_ident()]


class Failing:
    """Part 0 fails once all others run; those end when they are cancelled."""

    def __init__(self, n_parts):
        self.start = threading.Barrier(n_parts)
        self.cancelled = []

    def __call__(self, part, control):
        self.start.wait(PATIENCE)
        if part == 0:
            raise LookupError("part 0")
        deadline = time.monotonic() + PATIENCE
        while not control.cancel[0] and time.monotonic() < deadline:
            time.sleep(0.001)
        self.cancelled.append(bool(control.cancel[0]))


def test_an_error_cancels_the_other_parts(monkeypatch):
    monkeypatch.setattr(ThreadExecutor, "at_once", 3)
    task = Failing(3)
    with pytest.raises(LookupError, match="part 0"):
        ThreadExecutor().map(task, range(3))
    assert task.cancelled == [True, True]


def test_callback_error_cancels_the_work():
    def callback(done, total):
        raise LookupError("seen enough")

    def wait(part, control):
        while not control.cancel[0]:
            time.sleep(0.001)
        raise KeyboardInterrupt

    with pytest.raises(LookupError, match="seen enough"):
        ThreadExecutor(2).map(wait, range(4), progress=Progress(callback, 4))


def test_another_process_gets_its_own_arrays():
    run = Run.of(3)
    run.flag[0] = run.progress[1] = 1
    sent = pickle.loads(pickle.dumps(run))
    assert not sent.cancelled and not sent.progress.any() and len(sent.inside) == 3


# -- the parts of a fit ------------------------------------------------------------------------


def arrays_of(lists: Shortlists) -> list:
    return [lists.indptr, *(values for _, values in lists.by_pair()), lists.evidence]


def bits(arrays):
    return [None if a is None else (a.dtype, a.shape, a.tobytes()) for a in arrays]


def trained(executor):
    """Out-of-bag shortlists, the ranker's vectors and its margins, as bits."""
    data = datasets.make_xmc(1300, 300, 40, seed=0)
    x, y = feature_arrays(data.X), label_arrays(data.Y)
    rows = TrainingRows(Blocks.of(x), y)
    forest = LdSMClassifier(3, rerank=None, random_state=0).fit(data).forest_
    training = Training(rows, {"effort": "balanced"}, 0, executor, compress=True)
    oob = OutOfBag(forest, rows.blocks, 0, 0.8, executor, executor, training.folds)
    matching = match_training_rows(oob, training, with_others=True, known={})
    assert "index" in matching.matchers.trained
    pairs = ListedPairs.from_lists(matching.lists, y, 0)
    assert len(pairs.ranges()) > 10 and len(matching.lists) == 3
    vectors, margins, _ = ranker.train_ranker(
        executor,
        x,
        pairs,
        n_labels=y.n_labels,
        held_out=training.held_out,
        cost=1.0,
        compress=True,
        seed=0,
    )
    found = (
        arrays_of(Shortlists.joined(matching.lists)),
        arrays_of(matching.held),
        vectors.arrays().values(),
    )
    return [*map(bits, found), bits([margins])]


def test_the_same_bits_from_threads_and_processes(monkeypatch):
    monkeypatch.setattr(label_pairs, "RANGE_PAIRS", 1000)
    expected = trained(ThreadExecutor(1))
    for workers in (2, 3):
        monkeypatch.setattr(ThreadExecutor, "at_once", workers)
        assert trained(ThreadExecutor()) == expected
    with processes() as executor:
        assert os.getpid() not in {process for _, process in executor.map(squared, range(8))}
        assert trained(executor) == expected
