"""Run other tools on our matrices in a separate environment.

    write_data(folder, "bibtex", train.X, train.Y, test.X)
    run = run_peer("omikuji-parabel", folder, k=100)
    precision_at_k(test.Y, run.labels), run.facts["train_seconds"]

`make peers` creates the environment. `peer_run.py` runs in it and contains the peers' settings.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from peer_run import PEERS

HERE = Path(__file__).parent
PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"


@dataclass(frozen=True)
class PeerRun:
    """The best labels of every test row, -1 where the peer gave fewer, and what the run took."""

    labels: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    facts: dict[str, Any]


def write_data(folder: Path, name: str, X: Any, Y: Any, X_test: Any) -> None:
    """Write what every peer is given, rows scaled to length 1."""
    folder.mkdir(parents=True, exist_ok=True)
    matrices = {
        "X": plain_csr(normalize(X), np.float32),
        "Y": plain_csr(Y, np.int32),
        "X_test": plain_csr(normalize(X_test), np.float32),
    }
    digest = hashlib.sha256()
    for part, matrix in matrices.items():
        sp.save_npz(folder / f"{part}.npz", matrix, compressed=False)
        for array in (np.array(matrix.shape), matrix.indptr, matrix.indices, matrix.data):
            digest.update(array.tobytes())
    about = {
        "name": name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "labels": Y.shape[1],
        "test_rows": X_test.shape[0],
        "sha256": digest.hexdigest(),
    }
    (folder / "data.json").write_text(json.dumps(about) + "\n")


def run_peer(
    peer: str,
    folder: Path,
    *,
    k: int = 5,
    threads: int = 1,
    seed: int = 0,
    results: Path | None = None,
) -> PeerRun | None:
    """Train `peer` on the data in `folder` and predict its test rows.

    A peer that is not installed or fails costs one line on stderr, and None is returned. What it
    prints goes to a log beside its results. With `results`, a finished run found in that folder is
    returned instead, if it is of the same data, settings and threads and has k labels per row or
    more; without, the run is left in `folder`.
    """
    if peer not in PEERS:
        raise ValueError(f"The 'peer' argument must be one of {', '.join(PEERS)}. Got {peer!r}.")
    about = json.loads((folder / "data.json").read_text())
    output = (results or folder) / f"{about['name']}_{peer}_seed{seed}"
    wanted = {"data": about, "settings": PEERS[peer].settings, "threads": threads}
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
        found = read_run(output)
        if found and found.facts["k"] >= k and wanted.items() <= found.facts.items():
            return PeerRun(found.labels[:, :k], found.scores[:, :k], found.facts)
    if not PYTHON.exists():
        return not_run(peer, f"there is no {PYTHON}; `make peers` makes it")
    json_file(output).unlink(missing_ok=True)
    log = output.with_name(output.name + ".log")
    command = [
        PYTHON, "-I", HERE / "peer_run.py", peer, folder.resolve(), output.resolve(),
        f"--threads={threads}", f"--seed={seed}", f"--k={k}",
    ]  # fmt: skip
    # -I and these: nothing of our own environment reaches the peer's, least of all more threads.
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    with log.open("wb") as writer:
        ended = subprocess.run(
            command, stdout=writer, stderr=subprocess.STDOUT, env={**os.environ, **limits}
        )
    if ended.returncode < 0:
        return not_run(peer, f"ended by signal {-ended.returncode} (log: {log})")
    if ended.returncode:
        said = log.read_text(errors="replace").splitlines() or ["it said nothing"]
        return not_run(peer, f"{said[-1].strip()} (log: {log})")
    return read_run(output)


def read_run(output: Path) -> PeerRun | None:
    if not json_file(output).exists():
        return None
    facts = json.loads(json_file(output).read_text())
    with np.load(output.with_name(output.name + ".npz")) as arrays:
        return PeerRun(arrays["labels"], arrays["scores"], facts)


def json_file(output: Path) -> Path:
    return output.with_name(output.name + ".json")


def not_run(peer: str, reason: str) -> None:
    print(f"{PEERS[peer].title} was not run: {reason}", file=sys.stderr)


def plain_csr(matrix: Any, dtype: Any) -> sp.csr_matrix:
    """A csr_matrix with 32-bit indices, sorted, without stored zeros: the form all peers read."""
    matrix = sp.csr_matrix(matrix, dtype=dtype, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.indices, matrix.indptr = (
        matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32),
    )  # fmt: skip
    return matrix
