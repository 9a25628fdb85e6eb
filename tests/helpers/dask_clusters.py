"""Real clusters for the tests: worker processes that start fast, and can be spoilt and killed."""

import asyncio
import logging
import os
import signal
from contextlib import contextmanager
from pathlib import Path

from distributed import Client, LocalCluster, Scheduler, Worker, WorkerPlugin
from distributed.utils import get_mp_context

import dask
from ldsm import LdSMClassifier, _core, datasets
from ldsm.evaluation import Evaluation
from patience import PATIENCE

N_TREES = 5
SETTINGS = {
    # Workers are forks of a process that has imported everything: they start in a fraction of a
    # second.
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.scheduler.allowed-failures": 1,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.pause": False,
}


def make_store(folder):
    """The path of a new store: large enough for a second stage."""
    datasets.make_xmc(700, 200, 30, seed=0).save(folder / "rows")
    return str(folder / "rows")


def small(seed=0, **changes):
    """A classifier of a few trees."""
    return LdSMClassifier(**{"n_estimators": N_TREES, "random_state": seed, **changes})


def local_scores(*rows, ks, tail=0.0):
    """The ranking metrics of a model on rows, as one process computes them."""
    evaluation = Evaluation(*rows)
    propensities = evaluation.model.propensities()
    return evaluation.scores(ks, propensities=propensities, tail=tail).ranking


def trees_in(folder):
    """The finished trees of a checkpoint, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in Path(folder).glob("tree-*.ldsm")}


@contextmanager
def settings():
    """All that clusters and clients of the tests have in common."""
    for name in ("distributed", "distributed.client"):
        # Of processes that are killed they tell at length, and clients until Python ends.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with dask.config.set(SETTINGS):
        get_mp_context().set_forkserver_preload(["ldsm.dask"])
        yield


@contextmanager
def cluster(n_workers, **options):
    """A client with a scheduler in this process, and workers in their own."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            **options,
        ) as running,
        Client(running) as client,
    ):
        yield client


@contextmanager
def remote_cluster(n_workers):
    """The address of a scheduler in a process of its own, and the number of that process."""
    context = get_mp_context()
    ours, theirs = context.Pipe()
    processes = [context.Process(target=_run, args=(_schedule, theirs))]
    try:
        processes[0].start()
        assert ours.poll(PATIENCE), "the scheduler did not start"
        address = ours.recv()
        for _ in range(n_workers):
            processes.append(context.Process(target=_run, args=(_work, address)))
            processes[-1].start()
        yield address, processes[0].pid
    finally:
        for process in processes:
            process.kill()
            process.join()


def _run(function, argument):
    with settings():
        asyncio.run(function(argument))


async def _schedule(connection):
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") as scheduler:
        connection.send(scheduler.address)
        await scheduler.finished()


async def _work(address):
    async with Worker(address, nthreads=1) as worker:
        await worker.finished()


class Failing(WorkerPlugin):
    """On every worker, a function of the core fails; a worker that creates `dies_once` dies."""

    def __init__(self, name, dies_once=None):
        self.name = name
        self.dies_once = dies_once

    def setup(self, worker):
        real = getattr(_core, self.name)

        def failing(*arguments, **options):
            if self.dies_once is None:
                raise MemoryError(f"no room for {self.name}")
            try:
                os.close(os.open(self.dies_once, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return real(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(_core, self.name, failing)


class Spoilt(WorkerPlugin):
    """On every worker, also one that comes later, the trees of some numbers go wrong."""

    def __init__(self, trees, deadly=False):
        self.trees = trees
        self.deadly = deadly

    def setup(self, worker):
        grow = _core.grow_tree

        def spoilt(*arguments, tree, **options):
            if tree in self.trees:
                if self.deadly:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise MemoryError(f"no room for tree {tree}")
            return grow(*arguments, tree=tree, **options)

        _core.grow_tree = spoilt
