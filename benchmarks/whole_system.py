"""Measure the whole default system on texts: time by stage, and memory, as the rows grow.

    python benchmarks/whole_system.py [--times 1 3 10] [--rows 100000 300000 1000000]

First, EURLEX57K's training texts (from the folder LDSM_DATA) once and several times over, each
repetition with noise words: fits in memory and with a memory_limit of 1 GB. Then short synthetic
texts with a memory_limit of 4 GB. Every fit runs in a process of its own, on two threads, and reads
its texts from a file. Private memory is what the system cannot take back without swap (RssAnon), at
its peak, the libraries included. Seconds are of the processor, so that other programs matter less.
Finished fits are kept under build/whole_system. The tables are printed; results.json has the same.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import pages
import records
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm._execution.executor import Executor
from out_of_core import watched_memory
from scaling import exponent, exponent_text

EURLEX = Path(os.environ.get("LDSM_DATA", "../shared/data")) / "eurlex57k_train.jsonl.gz"
LIMIT, MORE = 1 << 30, 4 << 30
NOISE_SHARE = 0.05  # of the words of a repetition, replaced by random ones
NOISE_WORDS = 20_000
QUICK_ROWS = 300


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1] == "--child":
        child(json.loads(sys.argv[2]))
        return
    parser = records.arguments(__doc__ or "", "whole_system")
    parser.add_argument("--times", type=int, nargs="*", default=[1, 3, 10])
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--ways", nargs="*", default=["in memory", "limited"])
    options = parser.parse_args()
    output = options.output
    output.mkdir(parents=True, exist_ok=True)
    times, rows = ([], [QUICK_ROWS, 2 * QUICK_ROWS]) if options.quick else (
        options.times, options.rows
    )  # fmt: skip
    repeated, short = {}, {}
    for n in times:
        file = made(output / f"eurlex_{n}.jsonl", lambda n=n: repetitions(n))
        for way, limit in (("in memory", None), ("limited", LIMIT)):
            if way in options.ways:
                repeated[f"{n} ×, {way}"] = fit(output, file, limit)
    for n in rows:
        file = made(output / f"short_{n}.jsonl", lambda n=n: short_texts(n))
        short[n] = fit(output, file, MORE)
    facts = {"machine": records.machine(), "repeated": repeated, "short": short}
    records.write_json(output / "results.json", facts)
    print(report(repeated))
    print(report({f"{n:,}": found for n, found in short.items()}))
    costs = [found["cpu_seconds"] for found in short.values()]
    print("exponent of processor time:", exponent_text(exponent(list(short), costs)))


# -- texts ---------------------------------------------------------------------------------------


def made(path: Path, documents: Any) -> Path:
    """The file of some documents."""
    if not path.exists():
        part = path.with_suffix(".part")
        with part.open("w") as file:
            for text, labels in documents():
                file.write(json.dumps({"text": text, "labels": labels}) + "\n")
        part.replace(path)
    return path


def repetitions(times: int) -> Iterator[tuple[str, list[str]]]:
    """EURLEX57K, the first time as it is."""
    rng = np.random.default_rng(0)
    with gzip.open(EURLEX, "rt") as file:
        lines = file.readlines()
    for time_ in range(times):
        for line in lines:
            document = json.loads(line)
            words = document["text"].split()
            if time_:
                for i in np.flatnonzero(rng.random(len(words)) < NOISE_SHARE).tolist():
                    words[i] = f"noise{rng.integers(NOISE_WORDS)}"
            yield " ".join(words), document["labels"]


def short_texts(n_rows: int, n_labels: int = 2_000) -> Iterator[tuple[str, list[str]]]:
    """Texts of 20 words: half of them common ones, by Zipf's law, half typical of their labels."""
    rng = np.random.default_rng(1)
    popular = 1 / np.arange(1, n_labels + 1) ** 0.7
    popular = np.cumsum(popular / popular.sum())
    usual = 1 / np.arange(1, 30_001)
    usual = np.cumsum(usual / usual.sum())
    # Twelve words of each label, which a few others share.
    typical = rng.integers(0, 6_000, (n_labels, 12))
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]

    def spelled(number: int) -> str:
        word = ""
        for _ in range(4):
            number, rest = divmod(number, len(syllables))
            word += syllables[rest]
        return word

    common = [spelled(7 * i + 1) for i in range(30_000)]
    special = [spelled(11 * i + 5_000_000) for i in range(6_000)]
    while n_rows > 0:
        n, n_rows = min(n_rows, 50_000), n_rows - 50_000
        labels = np.searchsorted(popular, rng.random((n, 3)))
        counts = rng.integers(1, 4, n)
        which = rng.integers(0, 3, (n, 10)) % counts[:, None]
        own = typical[np.take_along_axis(labels, which, 1), rng.integers(0, 12, (n, 10))]
        other = np.searchsorted(usual, rng.random((n, 10)))
        for row in range(n):
            words = [special[i] for i in own[row]] + [common[i] for i in other[row]]
            yield " ".join(words), sorted({f"label {i}" for i in labels[row, : counts[row]]})


# -- fits ----------------------------------------------------------------------------------------


def fit(output: Path, file: Path, limit: int | None) -> dict[str, Any]:
    """A fit in a process of its own, or what is kept of it."""
    spec = {"file": str(file), "limit": limit}

    def work(_: Path) -> dict[str, Any]:
        command = [sys.executable, __file__, "--child", json.dumps(spec)]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    return records.kept(output, f"{file.stem}_{limit or 'memory'}", spec, work)


def child(spec: dict[str, Any]) -> None:
    """Fit, and print what it took."""
    stages = Counter[str]()
    watch_stages(stages)
    tagger = TextTagger(
        LdSMClassifier(random_state=0, n_jobs=2, memory_limit=spec["limit"] or "auto"),
    )
    with watched_memory() as peak:
        started, before = time.perf_counter(), time.process_time()
        tagger.fit(datasets.iter_jsonl(spec["file"]))
        seconds, cpu = time.perf_counter() - started, time.process_time() - before
    found = {
        "rows": tagger.classifier_.model_.n_training_rows,
        "trees": tagger.classifier_.forest_.n_trees,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "private_bytes": peak[0],
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "stages": {**stages, "rest": cpu - sum(stages.values())},
        "fingerprint": tagger.fingerprint_,
    }
    print(json.dumps(found))


def watch_stages(stages: Counter[str]) -> None:
    """Add up the processor time of each kind of part."""
    inner, depth = Executor.map, [0]

    def timed(self: Executor, task: Any, parts: Any, **options: Any) -> list[Any]:
        depth[0] += 1
        before = time.process_time()
        try:
            return inner(self, task, parts, **options)
        finally:
            depth[0] -= 1
            if depth[0] == 0:
                name = options.get("name") or getattr(task, "__name__", type(task).__name__)
                stages[name] += time.process_time() - before

    Executor.map = timed  # type: ignore[method-assign]


def report(fits: dict[str, dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for found in fits.values() for name in found["stages"]))
    rows = [
        [
            what,
            f"{found['rows']:,}",
            f"{found['trees']}",
            f"{found['seconds']:.0f}",
            f"{found['cpu_seconds']:.0f}",
            f"{found['private_bytes'] / 1e6:,.0f}",
            *(f"{1e3 * found['stages'].get(name, 0) / found['rows']:.3f}" for name in names),
        ]
        for what, found in islice(fits.items(), None)
    ]
    header = ["fit", "rows", "trees", "s", "processor s", "private MB"]
    return pages.table([*header, *(f"{name}, ms/row" for name in names)], rows)


if __name__ == "__main__":
    main()
