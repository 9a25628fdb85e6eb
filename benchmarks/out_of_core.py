"""Compare training from disk with little memory to training in memory: cost of the same tree.

    python benchmarks/out_of_core.py

Synthetic data of AmazonCat-13K's shape in a store (`shapes.py` makes it, build/paper/shapes). Two
fits of one tree, each in a process of its own: one that has read X into memory, one on the opened
store with `memory_limit` 256 MB. Private memory is what the system cannot take back without swap
(RssAnon), at its peak, the libraries included. Bytes read from disk for one epoch of the root:
the difference between fits of the root alone with 3 and with 1 epochs, both in a control group
(Linux, version 1, needs root) too small to keep X in the system's cache; without such a group the
figure is left out. Finished pieces are kept under build/out_of_core. Writes results.json there, and
the table of docs/scaling.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pages
import records
from ldsm import LdSMClassifier, datasets
from peer_run import memory
from shapes import write_stores

LIMIT = 256 << 20
GROUP = Path("/sys/fs/cgroup/memory/ldsm-out-of-core")
GROUP_BYTES = 600 << 20  # for the process and what the system caches of its files
ROOT_ALONE = {"max_nodes": 3, "relax_integrity": False}
QUICK_SCALE = 0.005


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        child(Path(sys.argv[2]), json.loads(sys.argv[3]))
        return
    parser = records.arguments(__doc__ or "", "out_of_core")
    options = parser.parse_args()
    scale = QUICK_SCALE if options.quick else 1.0
    shapes = options.output if options.quick else Path("build/paper")
    store, _ = write_stores("amazoncat-13k", shapes / "shapes", scale)
    runs = {
        name: run(options.output, name, store, spec)
        for name, spec in {
            "in memory": {"settings": {}, "read": True},
            "from disk": {"settings": {"memory_limit": LIMIT}},
            "root, 1 epoch": {"settings": root_settings(1), "group": True},
            "root, 3 epochs": {"settings": root_settings(3), "group": True},
        }.items()
    }
    facts = summary(runs)
    records.write_json(
        options.output / "results.json",
        {"machine": records.machine(), "scale": scale, "runs": runs, "summary": facts},
    )
    text = report(runs, facts)
    print(text)
    if not options.quick:
        pages.publish(pages.ROOT / "docs" / "scaling.md", "out-of-core", text)


def root_settings(epochs: int) -> dict[str, Any]:
    return {**ROOT_ALONE, "n_epochs": epochs, "memory_limit": LIMIT}


def run(output: Path, name: str, store: Path, spec: dict[str, Any]) -> dict[str, Any]:
    """One fit in a process of its own, or what is kept of it."""

    def work(_: Path) -> dict[str, Any]:
        forget_files(store)
        ended = subprocess.run(
            [sys.executable, __file__, "--child", store, json.dumps(spec)],
            check=True,
            capture_output=True,
            text=True,
        )
        return json.loads(ended.stdout)

    about = {"store": json.loads((store / "meta.json").read_text())["identity"], **spec}
    return records.kept(output, name.replace(", ", "-").replace(" ", "-"), about, work)


def forget_files(store: Path) -> None:
    """Remove from the system's cache, so that each run reads the store from the disk."""
    for path in store.glob("*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def child(store: Path, spec: dict[str, Any]) -> None:
    """Fit, and print what it took."""
    limited = spec.get("group", False) and enter_group()
    data = datasets.open_store(store)
    X, Y = (data.X.copy(), data.Y.copy()) if spec.get("read") else (data, None)
    clf = LdSMClassifier(1, rerank=None, random_state=0, n_jobs=1, **spec["settings"])
    read = bytes_read()
    with watched_memory() as peak:
        started = time.perf_counter()
        clf.fit(X, Y)
        seconds = time.perf_counter() - started
    found = {
        "seconds": seconds,
        "private_bytes": peak[0],
        "bytes_read": bytes_read() - read if limited else None,
        "x_bytes": sum(a.nbytes for a in (data.X.data, data.X.indices)),
        "tree_bytes": clf.forest_.nbytes,
        "depth": int(clf.forest_.node_depth().max()),
        "fingerprint": clf.fingerprint_,
    }
    print(json.dumps(found))


def enter_group() -> bool:
    """Put this process into a control group with little memory, if the system allows it."""
    with suppress(OSError):
        GROUP.mkdir(exist_ok=True)
        (GROUP / "memory.limit_in_bytes").write_text(str(GROUP_BYTES))
        (GROUP / "cgroup.procs").write_text(str(os.getpid()))
        return True
    return False


def bytes_read() -> int:
    """By this process, from the disk."""
    facts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(facts["read_bytes"])


def private_bytes() -> int:
    return memory("RssAnon") or 0


@contextmanager
def watched_memory():
    """The peak of private memory while the block runs, as a list of one number."""
    peak, done = [private_bytes()], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], private_bytes())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
        peak[0] = max(peak[0], private_bytes())


def summary(runs: dict[str, Any]) -> dict[str, Any]:
    inside, outside = runs["in memory"], runs["from disk"]
    once, thrice = (runs[f"root, {n}"]["bytes_read"] for n in ("1 epoch", "3 epochs"))
    return {
        "same_model": inside["fingerprint"] == outside["fingerprint"],
        "time_ratio": outside["seconds"] / inside["seconds"],
        "private_bytes": outside["private_bytes"],
        "read_per_epoch": (
            None if once is None or thrice is None else (thrice - once) / 2 / inside["x_bytes"]
        ),
    }


def report(runs: dict[str, Any], facts: dict[str, Any]) -> str:
    inside, outside = runs["in memory"], runs["from disk"]
    share = facts["read_per_epoch"]
    same = "the same" if facts["same_model"] else "another"
    rows = [
        ["X", f"{inside['x_bytes'] / 1e6:.0f} MB", ""],
        ["training", f"{inside['seconds']:.0f} s", f"{outside['seconds']:.0f} s"],
        ["private memory", *(f"{r['private_bytes'] / 1e6:.0f} MB" for r in (inside, outside))],
        ["the tree", f"{inside['tree_bytes'] / 1e6:.0f} MB", same],
        ["depth", f"{inside['depth']}", f"{outside['depth']}"],
        ["read per epoch of the root", "", "not measured" if share is None else f"{share:.2f} × X"],
    ]  # fmt: skip
    return (
        f"`python benchmarks/out_of_core.py`: {records.machine_sentence()}\n\n"
        + pages.table(["", "in memory", f"from disk, `memory_limit` {LIMIT >> 20} MiB"], rows)
        + f"\nTime from disk over time in memory: {facts['time_ratio']:.2f}.\n"
    )


if __name__ == "__main__":
    main()
