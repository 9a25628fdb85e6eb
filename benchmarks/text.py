"""Compare TextTagger's defaults on EURLEX57K with the paper that introduced the data set.

    python benchmarks/text.py [--seeds 3]

The split is the published one: training on train, the threshold tuned on dev, figures from test.
The metrics are those of Chalkidis et al. (ACL 2019): R-Precision@5, nDCG@5 and micro-F1 over all
labels, where labels missing in training count as misses. Time is from texts to the fitted model, on
two threads. Writes its table into benchmarks/README.md.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import data
import pages
import records
from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from ldsm.datasets import Dataset

K = 5
THREADS = 2
NAMES = {"P@1": "precision@1", "P@5": "precision@5", "RP@5": "r_precision@5", "nDCG@5": "ndcg@5"}
# Chalkidis et al., "Large-Scale Multi-Label Text Classification on EU Legislation", ACL 2019: their
# best model, fine-tuned on a GPU.
PUBLISHED = {"BERT-BASE (published)": {"P@5": 68.7, "RP@5": 79.6, "nDCG@5": 82.3, "F1": 73.2}}


def main() -> None:
    options = records.arguments(__doc__ or "", "text", seeds=3).parse_args()
    train, dev, test = quick() if options.quick else eurlex57k()
    found = []
    for seed in range(options.seeds):
        found.append(measure(train, dev, test, seed))
        print(f"seed {seed}: {found[-1]}", flush=True)
    table = render(found)
    print(table)
    if not options.quick:
        text = f"EURLEX57K, defaults, {len(found)} seeds, mean ± standard deviation:\n\n{table}"
        pages.publish(pages.BENCHMARKS, "text", text)


def eurlex57k() -> tuple[Dataset, Dataset, Dataset]:
    train, dev, test = (
        datasets.load_jsonl(data.folder() / f"eurlex57k_{part}.jsonl.gz")
        for part in ("train", "dev", "test")
    )
    return train, dev, test


def quick() -> tuple[Dataset, Dataset, Dataset]:
    """A small corpus, to try the program."""
    train, rest = datasets.load_stdlib_docs().split(0.3, seed=0)
    dev, test = rest.select(slice(0, None, 2)), rest.select(slice(1, None, 2))
    return train, dev, test


def measure(train: Dataset, dev: Dataset, test: Dataset, seed: int) -> dict[str, float]:
    """Figures of one fit, in per cent; seconds and megabytes."""
    tagger = TextTagger(LdSMClassifier(n_jobs=THREADS, random_state=seed))
    started = time.perf_counter()
    tagger.fit(train)
    seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ldsm"
        tagger.save(path)
        size = os.path.getsize(path) / 1e6
    tagger.tune_threshold(dev)
    report = metrics.ranking_report(test.labels, tagger.predict_topk(test, k=K), [1, K])
    found = {name: 100 * report[key] for name, key in NAMES.items()}
    return {**found, "F1": 100 * micro_f1(tagger, test), "seconds": seconds, "MB": size}


def micro_f1(tagger: TextTagger, test: Dataset) -> float:
    """Over all true labels, known to the model or not."""
    sets = [{tag for tag, _ in tags} for tags in tagger.predict_sets(test)]
    right = sum(len(tags & set(true)) for tags, true in zip(sets, test.labels, strict=True))
    return 2 * right / (sum(map(len, sets)) + sum(map(len, test.labels)))


def render(found: Sequence[dict[str, float]]) -> str:
    shown = {
        name: pages.mean_spread([run[name] for run in found], 1 if name in ("seconds", "MB") else 2)
        for name in found[0]
    }
    heads = ["", "P@1", "P@5", "RP@5", "nDCG@5", "F1", "seconds", "MB"]
    rows = [["TextTagger", *(shown[name] for name in heads[1:])]]
    for model, values in PUBLISHED.items():
        cells = (f"{values[name]:.1f}" if name in values else "–" for name in heads[1:])
        rows.append([model, *cells])
    heads[5], heads[6] = "micro-F1", f"fit, seconds, {THREADS} threads"
    return pages.table(heads, rows)


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    main()
