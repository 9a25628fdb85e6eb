"""Fits that are killed and resumed: a process of its own, which forks those that are to die.

    python killed_fits.py FOLDER THREADED LOKY SEED

kills this many fits of each backend at random moments, and some at chosen ones. It asserts that
they resume as promised, and prints how many died amid their work, by backend.
"""

import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import joblib
import numpy as np

from ldsm import LdSMClassifier, _core, datasets
from ldsm._trees.checkpoint import Checkpoint

N_JOBS = 2


def trees_in(folder):
    return {int(path.stem[5:]) for path in folder.glob("tree-*.ldsm")}


def in_fork(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


# -- at random moments -------------------------------------------------------------------------


def note_trees(log):
    """From here on, this process notes which trees it begins and which it has put into a folder."""
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    grow, put = _core.grow_tree, Checkpoint.put

    def noted_grow(*arguments, tree, **options):
        os.write(file, b"begun %d\n" % tree)
        return grow(*arguments, tree=tree, **options)

    def noted_put(self, tree, arrays):
        receipt = put(self, tree, arrays)
        os.write(file, b"finished %d\n" % tree)
        return receipt

    _core.grow_tree, Checkpoint.put = noted_grow, noted_put


def noted(log, what):
    lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return {int(tree) for word, tree in lines if word == what}


def kill(process):
    """Kill -9, workers included, except the one that cleans up after them."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    os.kill(process, signal.SIGKILL)
    for child in children:
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)
    return os.waitpid(process, 0)[1] == signal.SIGKILL


def killed_at_random(folder, backend, kills):
    data = datasets.make_xmc(800, 200, 40, seed=0)
    log = folder.with_suffix(".log")

    def fit(**options):
        return LdSMClassifier(12 * kills + 8, random_state=1).fit(data, **options)

    def doomed():
        note_trees(log)
        with joblib.parallel_config(backend=backend, n_jobs=N_JOBS):
            fit(checkpoint_dir=folder)

    amid = 0
    for _ in range(kills):
        before = trees_in(folder)
        process = in_fork(doomed)
        while backend == "loky" and len(trees_in(folder)) < len(before) + 3:
            time.sleep(0.01)  # workers take seconds to start
        time.sleep(random.uniform(0, 0.3 if backend == "threading" else 0.1))
        seen = trees_in(folder)
        amid += kill(process)
        after = trees_in(folder)
        assert before | seen | noted(log, "finished") <= after
        # Lost are the trees in flight, no others.
        assert len(noted(log, "begun") - after) <= N_JOBS
    n_taken = len(trees_in(folder))
    clf = fit(checkpoint_dir=folder)
    assert clf.training_["trees_from_checkpoint"] == n_taken
    assert clf.fingerprint_ == fit().fingerprint_
    return amid


# -- at chosen moments -------------------------------------------------------------------------


def die_at(name, call, after):
    """This process dies before or after its call number `call` of a function of the system."""
    real, calls = getattr(os, name), 0

    def deadly(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == call and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if calls == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(os, name, deadly)


def killed_at_every_step(folder):
    rng = np.random.default_rng(0)
    X, Y = rng.random((60, 6)), rng.integers(0, 2, (60, 5))

    def fit(**options):
        return LdSMClassifier(3, random_state=0).fit(X, Y, **options).fingerprint_

    expected = fit()
    calls = {"makedirs": 1, "link": 1, "unlink": 2, "pwrite": 2, "fsync": 3, "replace": 2}
    for name, n_calls in calls.items():
        for call in range(1, n_calls + 1):
            for after in (False, True):
                path = folder / f"{name} {call} {after}"

                def doomed(name=name, call=call, after=after, path=path):
                    die_at(name, call, after)
                    fit(checkpoint_dir=path)

                assert os.waitpid(in_fork(doomed), 0)[1] == signal.SIGKILL, path
                assert fit(checkpoint_dir=path) == expected, path


if __name__ == "__main__":
    folder, threaded, loky, seed = Path(sys.argv[1]), *map(int, sys.argv[2:])
    random.seed(seed)
    killed_at_every_step(folder)
    print(killed_at_random(folder / "threaded", "threading", threaded))
    print(killed_at_random(folder / "loky", "loky", loky))
