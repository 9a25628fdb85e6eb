"""Measure the gain from sub-words and label names: TextTagger's defaults against words alone.

    python benchmarks/names.py [--seeds 3]

Three tables, all on two threads: precision on four sets of texts; recall of labels without training
rows, found by their names (50 labels of EURLEX57K with ten rows or more are hidden from training);
and micro-F1 on Reuters, compared with one-vs-rest LinearSVC. Its C and our threshold are tuned on
held-out training rows. Writes its tables into benchmarks/README.md.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC

import data
import pages
import records
from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from ldsm.datasets import Dataset
from ldsm.text import default_vectorizer

KS = (1, 3, 5)
THREADS = 2
SETS = ("reuters", "debtags", "yso", "yso-fi")
N_HIDDEN, LEAST_ROWS, RECALL_AT = 50, 10, 20
COSTS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
Sets = list[set[str]]


def main() -> None:
    options = records.arguments(__doc__ or "", "names", seeds=3).parse_args()
    seeds = range(options.seeds)
    if options.quick:
        train, test = datasets.load_stdlib_docs().split(0.3, seed=0)
        parts = [
            precision_table({"demo": (train, test)}, seeds),
            unseen_table(train, test, seeds),
            f1_table(train, test, seeds),
        ]
    else:
        parts = [
            precision_table({name: pair_of(name) for name in SETS}, seeds),
            unseen_table(*pair_of("eurlex57k"), seeds),
            f1_table(*pair_of("reuters"), seeds),
        ]
    text = "\n\n".join(part.strip() for part in parts)
    print(text)
    if not options.quick:
        pages.publish(pages.BENCHMARKS, "names", text)


def pair_of(name: str) -> tuple[Dataset, Dataset]:
    train, test = (
        datasets.load_jsonl(data.folder() / f"{name}_{part}.jsonl.gz") for part in ("train", "test")
    )
    return train, test


def tagger(seed: int, *, words_only: bool = False) -> TextTagger:
    vectorizer = default_vectorizer() if words_only else None
    return TextTagger(LdSMClassifier(n_jobs=THREADS, random_state=seed), vectorizer)


# -- precision --------------------------------------------------------------------------------


def precision_table(sets: dict[str, tuple[Dataset, Dataset]], seeds: Sequence[int]) -> str:
    rows = []
    for name, (train, test) in sets.items():
        for words_only in (True, False):
            runs = [precision(train, test, seed, words_only=words_only) for seed in seeds]
            cells = [
                pages.mean_spread([run[i] for run in runs], 2 if i < len(KS) else 1)
                for i in range(len(runs[0]))
            ]
            rows.append([name, "words" if words_only else "defaults", *cells])
            print(rows[-1], flush=True)
    heads = ["", "features", *(f"P@{k}" for k in KS), f"fit, seconds, {THREADS} threads", "MB"]
    return f"Defaults compared with words alone:\n\n{pages.table(heads, rows)}"


def precision(train: Dataset, test: Dataset, seed: int, *, words_only: bool) -> list[float]:
    """P@k in per cent, seconds and megabytes."""
    started = time.perf_counter()
    model = tagger(seed, words_only=words_only).fit(train)
    seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ldsm"
        model.save(path)
        size = os.path.getsize(path) / 1e6
    return [*precisions(test.labels, model.predict_topk(test, k=max(KS))), seconds, size]


def precisions(true: Sequence[Sequence[str]], top: tuple[np.ndarray, np.ndarray]) -> list[float]:
    report = metrics.ranking_report(true, top, KS)
    return [100 * report[f"precision@{k}"] for k in KS]


# -- labels without a training row ------------------------------------------------------------


def unseen_table(train: Dataset, test: Dataset, seeds: Sequence[int]) -> str:
    runs = []
    for seed in seeds:
        runs.append(unseen(train, test, seed))
        print(runs[-1], flush=True)
    heads = list(runs[0])
    cells = [pages.mean_spread([run[name] for run in runs]) for name in heads]
    return (
        f"Labels without training rows, {len(runs)} random choices of hidden labels: recall of the "
        "hidden labels, and precision on all labels with and without the hidden labels' names:\n\n"
        + pages.table(heads, [cells])
    )


def unseen(train: Dataset, test: Dataset, seed: int) -> dict[str, float]:
    counts = np.bincount(train.Y.indices, minlength=train.n_labels)
    able = np.flatnonzero(counts >= LEAST_ROWS)
    drawn = np.random.default_rng(seed).choice(able, min(N_HIDDEN, len(able) // 3), replace=False)
    names = list(train.label_names or ())
    hidden = {names[i] for i in drawn.tolist()}
    texts, tags = list(train.texts or ()), without(train.labels, hidden)
    model = tagger(seed).fit(texts, tags, vocabulary=names)
    top, scores = model.predict_topk(test, k=RECALL_AT)
    pairs = [
        (tag, best)
        for true, best in zip(test.labels, top.tolist(), strict=True)
        for tag in true
        if tag in hidden
    ]
    found = np.mean([tag in best for tag, best in pairs])
    k = max(KS)
    its = precisions(test.labels, (top[:, :k], scores[:, :k]))
    plain = precisions(test.labels, tagger(seed).fit(texts, tags).predict_topk(test, k=k))
    out = {f"recall@{RECALL_AT}": 100 * float(found)}
    for at, with_names, without_names in zip(KS, its, plain, strict=True):
        out |= {f"P@{at} with": with_names, f"P@{at} without": without_names}
    return out


def without(labels: Sequence[Sequence[str]], hidden: set[str]) -> list[list[str]]:
    return [[tag for tag in tags if tag not in hidden] for tags in labels]


# -- sets of labels ---------------------------------------------------------------------------


def f1_table(train: Dataset, test: Dataset, seeds: Sequence[int]) -> str:
    part, held_out = train.split(0.15, seed=0)
    scored = [(micro_f1(svm(part, cost)(held_out), held_out), cost) for cost in COSTS]
    cost = max(scored)[1]
    linear = 100 * micro_f1(svm(train, cost)(test), test)
    ours = []
    for seed in seeds:
        threshold = tagger(seed).fit(part).tune_threshold(held_out).classifier_.threshold_
        model = tagger(seed).fit(train)
        P = model.predict_proba(test)
        bounds = zip(P.indptr[:-1].tolist(), P.indptr[1:].tolist(), strict=True)
        sets = [
            set(model.classes_[P.indices[a:b][P.data[a:b] >= threshold]].tolist())
            for a, b in bounds
        ]
        ours.append(100 * micro_f1(sets, test))
    rows = [
        ["TextTagger, threshold tuned", pages.mean_spread(ours)],
        [f"one-vs-rest LinearSVC, C = {cost:g}", f"{linear:.2f}"],
    ]
    return f"Micro-F1 on Reuters:\n\n{pages.table(['', 'micro-F1'], rows)}"


def svm(train: Dataset, cost: float) -> Callable[[Dataset], Sets]:
    vectorizer, names = default_vectorizer(), MultiLabelBinarizer()
    X, Y = vectorizer.fit_transform(train.texts), names.fit_transform(train.labels)
    model = OneVsRestClassifier(LinearSVC(C=cost)).fit(X, Y)

    def predict(rows: Dataset) -> Sets:
        found = names.inverse_transform(model.predict(vectorizer.transform(rows.texts)))
        return [set(tags) for tags in found]

    return predict


def micro_f1(sets: Sets, rows: Dataset) -> float:
    """Over all true labels, known to the model or not."""
    true = rows.labels
    right = sum(len(tags & set(own)) for tags, own in zip(sets, true, strict=True))
    return 2 * right / (sum(map(len, sets)) + sum(map(len, true)))


if __name__ == "__main__":
    main()
