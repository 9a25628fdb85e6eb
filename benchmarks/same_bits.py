"""Fit the same models everywhere, with and without failures, and compare their fingerprints.

    python benchmarks/same_bits.py [--rows 1500] [--kills 20] [--quick]

The whole default system on samples of Reuters (texts), EURLEX57K (texts), Debtags (texts with a
vocabulary, also with an encoder) and Mediamill (dense, also as embeddings in a store), from the
folder LDSM_DATA: with 1 and 2 threads, joblib's
processes, 1 to 3 Dask workers and a memory_limit. Then, on the first set: fits that are killed and
resumed, and Dask fits that lose a worker, the driver or the scheduler and are called again. Each
happens once a random number of files is in the checkpoint, so at a random stage. All fingerprints
of a set must be equal, and no unfinished file may be left. Results are stored in build/same_bits;
the tables are printed.
"""

from __future__ import annotations

import atexit
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from distributed import Client
from distributed.utils import get_mp_context

import dask
import ldsm.dask
import pages
import records
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.dask.connection import connected

FOLDER = Path(os.environ.get("LDSM_DATA", "../shared/data"))
TEXTS = {name: f"{name}_train.jsonl.gz" for name in ("reuters", "eurlex57k", "debtags")}
ENCODED, EMBEDDED = "debtags, encoder", "mediamill, embeddings"
SETS = (*TEXTS, "mediamill", ENCODED, EMBEDDED)
QUICK = ("quick", "quick, embeddings")
LIMIT = 256 << 20
LONGEST_SECONDS = 600  # of one fit
LONGEST_PART_SECONDS = 0.5
FAST_START = {"distributed.worker.multiprocessing-method": "forkserver"}
FAULTS = {"interrupted": 1, "killed worker": 1, "killed driver": 0.5, "killed scheduler": 0.25}


class Rows(NamedTuple):
    """What one model is trained on."""

    data: Any
    labels: Any
    options: dict[str, Any]
    of_texts: bool
    encoder: Any = None

    @classmethod
    def of(cls, name: str, n_rows: int) -> Rows:
        if name == ENCODED:
            return cls.of("debtags", n_rows)._replace(encoder=letters)
        if name.endswith(", embeddings"):
            plain = cls.of(name.partition(",")[0], n_rows)
            return cls(stored(plain.data, plain.labels), None, {}, False)
        if name in TEXTS:
            documents = islice(datasets.iter_jsonl(FOLDER / TEXTS[name]), n_rows)
            texts, tags = map(list, zip(*documents, strict=True))
            names = {tag: [tag.replace("::", " ")] for its in tags for tag in its}
            options = {"vocabulary": names} if name == "debtags" else {}
            return cls(texts, tags, options, True)
        if name == "mediamill":
            data = datasets.load_xmlrepo(FOLDER / "mediamill-sample_train.txt")
        else:
            data = datasets.make_xmc(n_rows, 60, 12, seed=0)
        some = data.select(range(min(n_rows, len(data))))
        return cls(some.X, some.Y, {}, False)

    def model(self, **changes: Any) -> LdSMClassifier | TextTagger:
        classifier = LdSMClassifier(random_state=0, **changes)
        return TextTagger(classifier, encoder=self.encoder) if self.of_texts else classifier

    def fit(self, folder: str | None = None, **changes: Any) -> str:
        model = self.model(**changes)
        model.fit(self.data, self.labels, checkpoint_dir=folder, **self.options)
        return str(model.fingerprint_)

    def fit_on(self, client: Client, folder: str) -> str:
        fitted = ldsm.dask.fit(client, self.data, self.labels, self.model(), folder, **self.options)
        return str(fitted.fingerprint_)


def letters(texts: list[str]) -> Any:
    """A stand-in for an encoder: how often texts have each letter."""
    return np.array([[text.count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts]) + 0.1


def stored(X: Any, Y: Any) -> datasets.Dataset:
    """Rows with their features as embeddings, opened from a store that ends with the program."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    path = os.path.join(folder.name, "rows")
    datasets.Dataset(X, Y, embeddings=X.toarray()).save(path)
    return datasets.open_store(path)


def main() -> None:
    if len(sys.argv) == 7 and sys.argv[1] == "--child":
        child(*sys.argv[2:])
        return
    parser = records.arguments(__doc__ or "", "same_bits")
    parser.add_argument("--rows", type=int, default=1500, help="rows of each set")
    parser.add_argument("--kills", type=int, help="interrupted fits; of others a part")
    options = parser.parse_args()
    n_rows, kills = (600, 1) if options.quick else (options.rows, 20)
    kills = options.kills or kills
    sets = QUICK if options.quick else SETS
    rows = []
    for name in sets:
        work = partial(fingerprints, name, n_rows)
        found = records.kept(options.output, f"{name}_{n_rows}", {"rows": n_rows}, work)
        rows.append([name, *(found[way][:8] for way in found)])
        assert len(set(found.values())) == 1, found
    print(pages.table(["set", *found], rows))
    lines = []
    for fault, share in FAULTS.items():
        times = max(1, round(share * kills))
        settings = {"rows": n_rows, "times": times}
        work = partial(trials, sets[0], n_rows, fault, times)
        got = records.kept(options.output, f"{fault.replace(' ', '_')}_{times}", settings, work)
        lines.append([fault, *(str(got[key]) for key in ("same", "stopped", "left"))])
    facts = {"fingerprints": rows, "failures": lines}
    records.write_json(options.output / "results.json", facts)
    print(pages.table(["failure", "same model", "stopped the fit", "unfinished files"], lines))


def fingerprints(name: str, n_rows: int, _: Path) -> dict[str, Any]:
    """The fingerprint of each way to fit a set."""
    rows = Rows.of(name, n_rows)
    ways: dict[str, Callable[[str], str]] = {
        "1 thread": lambda _: rows.fit(n_jobs=1),
        "2 threads": lambda _: rows.fit(n_jobs=2),
        "loky": lambda _: by_processes(rows),
        "256 MB": lambda _: rows.fit(n_jobs=2, memory_limit=LIMIT),
        **{f"Dask {n}": partial(on_workers, rows, n) for n in (1, 2, 3)},
    }
    found = {}
    for way, fit in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            found[way] = fit(folder)
        print(name, way, found[way][:8], file=sys.stderr, flush=True)
    return found


def by_processes(rows: Rows) -> str:
    with joblib.parallel_config(backend="loky", n_jobs=2):
        return rows.fit()


def on_workers(rows: Rows, n: int, folder: str) -> str:
    with connected(f"local:{n}") as client:
        return rows.fit_on(client, folder)


# -- failures ----------------------------------------------------------------------------------


def trials(name: str, n_rows: int, fault: str, times: int, _: Path) -> dict[str, Any]:
    """How many failures stopped a fit, and after how many the model was the same in the end."""
    expected, rng = Rows.of(name, n_rows).fit(n_jobs=2), random.Random(fault)
    stopped = left = n_files = 0
    for trial in range(times + 1):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--child", name, str(n_rows), fault, folder]
            # The first fit is left alone, and shows how many files one writes.
            printed = output(command, rng.uniform(0, n_files) if trial else None)
            stopped += not printed
            printed = printed or output(command)
            assert printed == expected, (fault, trial, printed, expected)
            names = files_in(folder)
            n_files = n_files or len(names)
            left += left_for_good(command, folder)
        print(fault, trial, "stopped:", stopped, file=sys.stderr, flush=True)
    return {"stopped": stopped, "same": times, "left": left}


def files_in(folder: str) -> list[str]:
    return [name for *_, names in os.walk(folder) for name in names]


def left_for_good(command: list[str], folder: str) -> int:
    """Unfinished files that even a fit two hours later does not remove."""
    then = time.time() - 7200
    for parent, _, names in os.walk(folder):
        for name in names:
            os.utime(os.path.join(parent, name), (then, then))
    if any(name.endswith(".tmp") for name in files_in(folder)):
        output(command)
    return sum(name.endswith(".tmp") for name in files_in(folder))


def output(command: list[str], after: float | None = None) -> str:
    """What a fit prints, nothing if it fails; it fails once it has written some files.

    A fraction of a file is a moment after the last of them.
    """
    process = subprocess.Popen(
        [*command, "" if after is None else str(after)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        process.wait(LONGEST_SECONDS)
    finally:
        with suppress(ProcessLookupError):  # workers outlive a killed driver
            os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0].strip()


def child(name: str, n_rows: str, fault: str, folder: str, after: str) -> None:
    """A fit in which something fails, as `output` says."""
    rows = Rows.of(name, int(n_rows))

    def once_written(fail: Callable[[], Any]) -> None:
        def watch() -> None:
            n_files, moment = divmod(float(after), 1)
            while len(files_in(folder)) < n_files:
                time.sleep(0.002)
            time.sleep(moment * LONGEST_PART_SECONDS)
            fail()

        if after:
            threading.Thread(target=watch, daemon=True).start()

    if fault == "interrupted":
        once_written(partial(os.kill, os.getpid(), signal.SIGKILL))
        print(rows.fit(folder, n_jobs=2), flush=True)
        return
    get_mp_context().set_forkserver_preload(["ldsm.dask"])
    with dask.config.set(FAST_START), connected("local:2") as client:
        if fault == "killed driver":
            once_written(partial(os.kill, os.getpid(), signal.SIGKILL))
        elif fault == "killed worker":
            pids = list(client.run(os.getpid).values())
            once_written(partial(os.kill, pids[0], signal.SIGKILL))
        else:
            scheduler = client.cluster.scheduler
            once_written(partial(client.loop.add_callback, scheduler.close))
        print(rows.fit_on(client, folder), flush=True)


if __name__ == "__main__":
    main()
