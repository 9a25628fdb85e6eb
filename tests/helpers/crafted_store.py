"""Open stores with valid checksums and one field at its extremes: run as a program.

Usage: python crafted_store.py EVERY

Prints one JSON line, like crafted_model.py. Any exception but a ValueError or a MemoryError ends
the program.
"""

import json
import shutil
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from crafted_model import FLOATS, MISSING, NUMBERS, OTHERS, paths_of, with_change
from ldsm import LdSMClassifier
from ldsm._storage.manifest import write_manifest
from ldsm.datasets import Dataset, open_store, save_store
from process_memory import now_bytes, peak_bytes

Change = Callable[[Path, dict], None]  # of a store's folder and manifest


def crafted(folder: Path, meta: dict) -> Iterator[tuple[str, Change]]:
    for path in paths_of(meta):
        for value in (*NUMBERS, *FLOATS, *OTHERS, MISSING):
            if not path and value is MISSING:
                continue

            def replace(_: Path, meta: dict, path: tuple = path, value: Any = value) -> None:
                changed = with_change(meta, path, value)
                meta.clear()
                meta.update(changed if isinstance(changed, dict) else {"format": changed})

            yield f"meta{list(path)} = {value!r:.40}", replace
    for name, described in meta["arrays"].items():
        array = np.load(folder / described["file"])
        kind = np.finfo(array.dtype) if array.dtype.kind == "f" else np.iinfo(array.dtype)
        extremes = [
            kind.min,
            kind.max,
            0,
            1,
            *((np.nan, np.inf) if array.dtype.kind == "f" else ()),
        ]
        for place in {0, len(array) // 2, len(array) - 1}:
            for value in extremes:
                other = array.copy()
                other[place] = value
                yield f"{name}[{place}] = {value}", _rewritten(name, other)
        for what, other in (
            ("empty", array[:0]),
            ("shorter", array[:-1]),
            ("longer", np.resize(array, len(array) + 1)),
            ("reversed", array[::-1]),
            ("of zeros", array * 0),
        ):
            yield f"{name} {what}", _rewritten(name, other)


def _rewritten(name: str, array: np.ndarray) -> Change:
    def rewrite(folder: Path, meta: dict) -> None:
        described = meta["arrays"][name]
        path = folder / described["file"]
        header = path.read_bytes()[:128]
        data = np.ascontiguousarray(array).tobytes()
        old, new = (f"({n},)" for n in (described["length"], len(array)))
        body = header[10:].decode("ascii").replace(old, new).rstrip()
        header = header[:10] + body.ljust(117).encode("ascii") + b"\n"
        path.write_bytes(header + data)
        ends = zlib.crc32(data[-(1 << 16) :], zlib.crc32(data[: 1 << 16]))
        described.update(length=len(array), crc32=zlib.crc32(data), crc32_ends=ends)

    return rewrite


def main(every: int) -> dict:
    rng = np.random.default_rng(0)
    outcomes: Counter[str] = Counter()
    slowest, made = (0.0, ""), 0
    with tempfile.TemporaryDirectory() as base:
        good = Path(base) / "good"
        X = sp.random_array((40, 12), density=0.4, random_state=rng, dtype=np.float32, format="csr")
        Y = sp.csr_array((rng.random((40, 4)) < 0.4).astype(np.int8))
        names = {"feature_names": [f"f{i}" for i in range(12)], "label_names": list("abcd")}
        vectors = {
            "embeddings": rng.normal(size=(40, 3)),
            "label_embeddings": {name: rng.normal(size=3) for name in "ac"},
        }
        save_store(Dataset(X, Y, **names, **vectors), good)
        meta = json.loads((good / "meta.json").read_text())
        meta.pop("identity")
        ask(good, True)
        before = now_bytes()
        for number, (name, change) in enumerate(crafted(good, meta)):
            if number % every:
                continue
            made += 1
            folder = Path(base) / "bad"
            shutil.copytree(good, folder)
            copy = json.loads(json.dumps(meta))
            change(folder, copy)
            (folder / "meta.json").unlink()
            write_manifest(str(folder / "meta.json"), copy, replace=True)
            for verify in (True, False):
                started = time.process_time()
                try:
                    ask(folder, verify)
                    outcomes["answered"] += 1
                except (ValueError, MemoryError):
                    outcomes["refused"] += 1
                except Exception:
                    print(f"{name}, verify={verify}", file=sys.stderr)
                    raise
                slowest = max(slowest, (time.process_time() - started, name))
            shutil.rmtree(folder)
    memory = peak_bytes() - before
    return {"made": made, "slowest": slowest, "memory": memory, "outcomes": dict(outcomes)}


def ask(folder: Path, verify: bool) -> None:
    data = open_store(folder, verify=verify)
    repr(data), data.select([0, len(data) - 1]), data.labels[:3]
    LdSMClassifier(n_estimators=1, max_nodes=7, random_state=0).fit(data).predict_topk(data.X, k=1)


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
