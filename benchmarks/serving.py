"""Measure the throughput of a service: single texts of EURLEX57K, 64 clients on one machine.

    python benchmarks/serving.py [--model FILE] [--seconds 20] [--workers 1,2]

Without --model, a tagger is trained on EURLEX57K first. The clients share the processors with the
service. For each number of processes, the benchmark measures the requests per second of 64 clients
that each wait for their answer; the latency of requests at half that rate, sent without waiting;
and the service's processor time by step. Writes its table into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import data
import pages
import records
from http_load import Served, hammer, serving, steady, suggest_request
from ldsm import LdSMClassifier, TextTagger, datasets

CLIENTS = 64
N_TEXTS = 2000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--workers", default="1,2")
    options = parser.parse_args()
    texts = [text for text, _ in datasets.iter_jsonl(data.folder() / "eurlex57k_test.jsonl.gz")]
    texts = texts[:N_TEXTS]
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or trained(Path(folder, "eurlex57k.ldsm"))
        requests = [suggest_request(model.stem, text) for text in texts]
        rows = [
            measured(model, requests, int(workers), options.seconds)
            for workers in options.workers.split(",")
        ]
    words = np.mean([len(text.split()) for text in texts])
    note = f"Texts of EURLEX57K's test rows, {words:.0f} words each on average."
    table = pages.table([*rows[0]], [[str(cell) for cell in row.values()] for row in rows])
    text = f"{note}\n\n{table}\n{records.machine_sentence()}"
    print(text)
    pages.publish(pages.BENCHMARKS, "serving", text)
    pages.publish(pages.ROOT / "docs" / "serving.md", "serving", f"{note}\n\n{table}")


def trained(path: Path) -> Path:
    corpus = datasets.iter_jsonl(data.folder() / "eurlex57k_train.jsonl.gz")
    TextTagger(LdSMClassifier(n_jobs=-1, random_state=0)).fit(corpus).save(path)
    return path


def measured(model: Path, requests: list[bytes], workers: int, seconds: float) -> dict[str, Any]:
    failed, times = 0, []

    def seen(number: int, status: int, body: bytes, taken: float) -> None:
        nonlocal failed
        failed += status != 200
        times.append(taken)

    with serving([model], "--workers", str(workers)) as served:
        run(hammer(served.port, requests, CLIENTS, 3, seen))  # warm
        times.clear()
        before = spent(served)
        rate = run(hammer(served.port, requests, CLIENTS, seconds, seen))
        after = spent(served)
        at_full = np.percentile(times, [50, 99]) * 1000
        times.clear()
        run(steady(served.port, requests, rate / 2, seconds, seen))
        at_half = np.percentile(times, [50, 99]) * 1000
    cpu, features, answers = (b - a for a, b in zip(before, after, strict=True))
    row = {
        "processes": workers,
        "requests/s": f"{rate:.0f}",
        "p50, p99 ms": f"{at_full[0]:.0f}, {at_full[1]:.0f}",
        "at half: p50, p99 ms": f"{at_half[0]:.1f}, {at_half[1]:.1f}",
        "HTTP %": f"{100 * (cpu - features - answers) / cpu:.0f}",
        "words to features %": f"{100 * features / cpu:.0f}",
        "model %": f"{100 * answers / cpu:.0f}",
        "not 200": failed,
    }
    print(row)
    return row


def run(work: Any) -> Any:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def spent(served: Served) -> tuple[float, float, float]:
    """Processor seconds of the service: all, for features of texts, and for the model."""
    text = served.get("/metrics").decode()
    steps = {}
    for step in ("features", "model"):
        pattern = rf'^ldsm_processor_seconds_total{{.*step="{step}".*}} (\S+)$'
        steps[step] = float(re.search(pattern, text, re.M)[1])
    return served.cpu_seconds(), steps["features"], steps["model"]


if __name__ == "__main__":
    main()
