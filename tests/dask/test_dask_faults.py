"""Workers, schedulers and tasks that die: the same model, or a clear error in time."""

import errno
import os
import random
import signal
import threading
import time
from contextlib import contextmanager

import pytest
from distributed import Client, WorkerPlugin

import ldsm.dask
from dask_clusters import N_TREES, Failing, Spoilt, cluster, remote_cluster, small, trees_in
from ldsm import TextTagger, _core, datasets
from ldsm._execution import scratch
from ldsm._storage.tasks import kept_results, sharing
from ldsm.dask import ClusterError, executor, running, tasks, workers
from ldsm.text.counts import learned_words
from patience import PATIENCE
from text_corpus import make_corpus

pytestmark = pytest.mark.not_under("address", "thread", reason="works against a clock")

N_LONG = 16  # trees of a fit that takes a while


# -- workers that die --------------------------------------------------------------------------


@contextmanager
def once(grown, folder, act):
    """Act in the middle of the fit: when this many trees are in the folder."""
    ended = threading.Event()

    def watch():
        while len(trees_in(folder)) < grown:
            if ended.wait(0.01):  # it has failed: nobody needs the act any more
                return
        act()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def kill_during_fit(client, store, folder, rng, seconds, expected):
    """Kill one worker at a random moment of a fit; whether it died while there was work."""
    pids = list(client.run(os.getpid).values())
    before = {}

    def kill():
        time.sleep(rng.uniform(0, 1) * seconds / N_LONG)
        before.update(trees_in(folder))
        os.kill(rng.choice(pids), signal.SIGKILL)

    with once(rng.randrange(N_LONG - 2), folder, kill):
        fitted = ldsm.dask.fit(client, store, None, long_fit(), folder)
    assert fitted.fingerprint_ == expected
    # What was finished was not grown again.
    assert before.items() <= trees_in(folder).items()
    return len(before) < N_LONG


def long_fit():
    return small(n_estimators=N_LONG, n_epochs=30, rerank=None)


def check_kills(kills, store, tmp_path, seed):
    rng = random.Random(seed)
    amid = 0
    with cluster(2) as client:
        for attempt in ("cold", "warm"):  # the first fit of a cluster takes longer than others
            started = time.monotonic()
            fitted = ldsm.dask.fit(client, store, None, long_fit(), tmp_path / attempt)
            expected = fitted.fingerprint_
            seconds = time.monotonic() - started
        for i in range(kills):
            client.wait_for_workers(2, timeout=PATIENCE)
            amid += kill_during_fit(client, store, tmp_path / str(i), rng, seconds, expected)
    assert expected == long_fit().fit(datasets.open_store(store)).fingerprint_
    return amid


def test_killed_workers_same_model(store, tmp_path):
    assert check_kills(2, store, tmp_path, seed=0) >= 1


@pytest.mark.long
def test_ten_killed_workers_same_model(store, tmp_path):
    assert check_kills(10, store, tmp_path, seed=1) >= 7


def signalled_during_fit(client, store, folder, pid, number, message):
    """A fit whose scheduler gets a signal after some trees: it ends, with this message."""
    with (
        once(len(trees_in(folder)) + 2, folder, lambda: os.kill(pid, number)),
        pytest.raises(
            ClusterError, match=message + r" with \d+ of \d+ trees unfinished.*kept in '.*trees'"
        ),
    ):
        ldsm.dask.fit(client, store, None, small(n_estimators=500), folder)


def test_lost_scheduler_leaves_checkpoint(store, tmp_path, monkeypatch):
    folder = tmp_path / "lost trees"
    with remote_cluster(2) as (address, pid), Client(address, timeout=PATIENCE) as client:
        with monkeypatch.context() as impatient:
            impatient.setattr(tasks, "ANSWER_SECONDS", 0.5)
            fit = (client, store, tmp_path / "first trees", pid)
            signalled_during_fit(*fit, signal.SIGSTOP, "tcp.* does not answer")
        os.kill(pid, signal.SIGCONT)
        signalled_during_fit(client, store, folder, pid, signal.SIGKILL, "tcp.* was lost")
    n_kept = len(trees_in(folder))
    resumed = small(n_estimators=n_kept + 2)
    resumed.fit(datasets.open_store(store), checkpoint_dir=folder)
    assert resumed.training_["trees_from_checkpoint"] == n_kept >= 2
    whole = small(n_estimators=n_kept + 2).fit(datasets.open_store(store))
    assert resumed.fingerprint_ == whole.fingerprint_


# -- tasks that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "deadly, message",
    [
        (False, r"Tree 2 failed on worker tcp://.*: MemoryError: no room for tree 2\. "),
        (True, r"Tree 2 failed on 2 workers, which all died .* most recently tcp://.*memory"),
    ],
)
def test_failing_tree_is_named(deadly, message, store, tmp_path):
    folder = tmp_path / "trees"
    with cluster(1) as client:
        client.register_plugin(Spoilt([2], deadly))
        with pytest.raises(ClusterError, match=message + ".*Finished trees and parts are kept in"):
            ldsm.dask.fit(client, store, None, small(), folder)
    kept = trees_in(folder)
    assert "tree-00002.ldsm" not in kept and len(kept) >= 2
    resumed = small().fit(datasets.open_store(store), checkpoint_dir=folder)
    assert resumed.training_["trees_from_checkpoint"] == len(kept)
    assert resumed.fingerprint_ == small().fit(datasets.open_store(store)).fingerprint_


@pytest.mark.parametrize(
    "function, part",
    [("shortlists", "Shortlist chunk"), ("train_ranker", "Label range")],
)
def test_second_stage_on_workers(function, part, store, tmp_path):
    """It runs there: its failure is named, and another worker takes over from one that dies."""
    expected = small().fit(datasets.open_store(store)).fingerprint_
    with cluster(2) as client:
        client.register_plugin(Failing(function), name="failing")
        message = rf"{part} \d+ failed on worker tcp.*no room for {function}.*parts are kept in"
        with pytest.raises(ClusterError, match=message):
            ldsm.dask.fit(client, store, None, small(), tmp_path / "trees")
        client.unregister_worker_plugin("failing")
        client.restart()
        client.register_plugin(Failing(function, tmp_path / "died"))
        fitted = ldsm.dask.fit(client, store, None, small(), tmp_path / "trees")
    assert (tmp_path / "died").exists()
    assert fitted.training_["trees_from_checkpoint"] == fitted.forest_.n_trees
    assert fitted.fingerprint_ == expected
    assert all(name.name[0] != "." for name in (tmp_path / "trees").iterdir())


@pytest.mark.parametrize(
    "function, part", [("count_words", "Word chunk"), ("count_bigrams", "Text chunk")]
)
def test_words_on_workers(function, part, tmp_path, monkeypatch):
    """Chunks of texts are counted there, and none is counted again."""
    monkeypatch.setattr(learned_words, "_CHUNK_BYTES", 1000)
    texts, tags = make_corpus(600)
    folder = tmp_path / "trees"
    expected = TextTagger(small()).fit(texts, tags).fingerprint_
    with cluster(2) as client:
        client.register_plugin(Failing(function), name="failing")
        message = rf"{part} \d+ failed on worker tcp.*no room for {function}.*parts are kept in"
        with pytest.raises(ClusterError, match=message):
            ldsm.dask.fit(client, texts, tags, small(), folder)
        client.unregister_worker_plugin("failing")
        client.restart()
        client.register_plugin(Failing(function, tmp_path / "died"))
        fitted = ldsm.dask.fit(client, texts, tags, small(), folder)
    assert (tmp_path / "died").exists()
    assert fitted.fingerprint_ == expected
    n_chunks = len(list((folder / "words").glob("word-chunk-*.ldsm")))
    assert n_chunks > 16  # more than are in memory at once
    assert not list(folder.rglob(".*"))
    # Threads take over what workers have counted.
    with monkeypatch.context() as broken:
        broken.setattr(_core, "count_bigrams", None)
        again = TextTagger(small()).fit(texts, tags, checkpoint_dir=folder)
    assert again.fingerprint_ == expected


class Late(WorkerPlugin):
    """A worker that joins later, with another version."""

    def setup(self, worker):
        executor.__version__ = "0.0.7"


def test_worker_of_another_version_that_joins_later(store, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "check_workers", lambda client, checks: None)
    with cluster(1) as client:
        client.register_plugin(Late(), name="late")
        message = r"Tree \d failed on worker tcp.*it has ldsm 0.0.7, but the driver has .*parts are"
        with pytest.raises(ClusterError, match=message):
            ldsm.dask.fit(client, store, None, small(), tmp_path / "trees")


def test_full_disk_of_the_driver(tmp_path, monkeypatch):
    def full(descriptor, data, at):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sharing, "write_all", full)
    X = datasets.make_xmc(700, 200, 30, seed=0)
    with cluster(1) as client:
        message = r"data of trees cannot be written for .*No space left on .*trees'.*parts are kept"
        with pytest.raises(ClusterError, match=message):
            ldsm.dask.fit(client, X.X, X.Y, small(), tmp_path / "trees")
    assert not list((tmp_path / "trees").glob(".*"))


def test_full_disk_while_words_are_joined(tmp_path, monkeypatch):
    def full(descriptor, data, at):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(scratch, "write_all", full)
    with cluster(1) as client:
        message = (
            r"driver could not write: .*No space left on .*words'.*parts are kept in '.*trees'"
        )
        with pytest.raises(ClusterError, match=message):
            ldsm.dask.fit(client, *make_corpus(600), small(), tmp_path / "trees")
    assert [path.name for path in (tmp_path / "trees").iterdir()] == ["words"]


class FullDisk(WorkerPlugin):
    """On every worker, results of the second stage do not fit on the disk."""

    def setup(self, worker):
        self.real = kept_results.write

        def full(path, *arguments):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

        kept_results.write = full

    def teardown(self, worker):
        kept_results.write = self.real


def test_full_disk_is_named(store, tmp_path):
    with cluster(1) as client:
        client.register_plugin(FullDisk(), name="full")
        message = r"Index range 0 failed on worker tcp.*No space left on device.*parts are kept in"
        with pytest.raises(ClusterError, match=message):
            ldsm.dask.fit(client, store, None, small(), tmp_path / "trees")
        client.unregister_worker_plugin("full")
        fitted = ldsm.dask.fit(client, store, None, small(), tmp_path / "trees")
    assert fitted.training_["trees_from_checkpoint"] == N_TREES
    assert fitted.fingerprint_ == small().fit(datasets.open_store(store)).fingerprint_


def test_cluster_without_workers(store, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "NO_WORKER_SECONDS", 0.5)
    monkeypatch.setattr(tasks, "ANSWER_SECONDS", 5)  # for a result that went with its worker
    with cluster(1) as client:
        stopped = threading.Event()

        def stop(done, total):
            if done > 0 and not stopped.is_set():
                stopped.set()
                client.cluster.scale(0)

        with pytest.raises(
            ClusterError, match="no worker for 0 s with .* trees unf.*parts are kept"
        ):
            ldsm.dask.fit(client, store, None, small(n_estimators=500), tmp_path, callback=stop)
        assert stopped.is_set()
        monkeypatch.setattr(workers, "ANSWER_SECONDS", 0.5)
        with pytest.raises(ClusterError, match="has had no worker for 0 s"):
            ldsm.dask.fit(client, store, None, small(), tmp_path)
