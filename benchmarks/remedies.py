"""What data, fields and threshold are worth: TextTagger's defaults, with one thing changed.

    python benchmarks/remedies.py [--seeds 2]

All figures are of held-out training rows: a fifth of the rows of each set. Three tables: less or
worse training data, and another threshold; which field is read, and which first; and what helps
rare labels. Writes its tables into benchmarks/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import data
import pages
import records
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.datasets import Dataset
from ldsm.evaluation import Evaluation

SETS = ("reuters", "debtags", "eurlex57k", "germeval")
MOST_ROWS = 20_000
FIELDS = (["title"], ["abstract"], ["abstract", "title"], ["title", "abstract"])
RARE = 10  # training rows of a label, at most
Figures = dict[str, float]


def main() -> None:
    options = records.arguments(__doc__ or "", "remedies", seeds=2).parse_args()
    names = ["quick"] if options.quick else SETS
    seeds = range(options.seeds)

    def measured(name: str, work: Callable[..., dict[str, Any]], *values: Any) -> dict[str, Any]:
        about = {"seeds": options.seeds}
        return records.kept(options.output, name, about, lambda path: mean(work, seeds, *values))

    results = {
        "data": {name: measured(f"data_{name}", changed_data, load(name)) for name in names},
        "rare": {name: measured(f"rare_{name}", rare_labels, load(name)) for name in names},
        "fields": {} if options.quick else measured("fields_germeval", fields),
    }
    records.write_json(options.output / "results.json", results)
    text = render(results)
    print(text)
    if not options.quick:
        pages.publish(pages.BENCHMARKS, "remedies", text)


def load(name: str, text: Sequence[str] = ()) -> Dataset:
    """Training rows, at most `MOST_ROWS` of them."""
    if name == "quick":
        return datasets.load_stdlib_docs()
    fields = text or (["title", "abstract"] if name == "germeval" else ["text"])
    rows = datasets.load_jsonl(data.folder() / f"{name}_train.jsonl.gz", text=fields)
    chosen = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
    return rows.select(np.sort(chosen))


def mean(
    work: Callable[..., Iterator[tuple[str, Figures]]], seeds: Sequence[int], *values: Any
) -> dict[str, Figures]:
    """Figures by variant, averaged over splits and seeds."""
    runs = [dict(work(seed, *values)) for seed in seeds]
    return {
        name: {key: float(np.mean([run[name][key] for run in runs])) for key in figures}
        for name, figures in runs[0].items()
    }


def fitted(train: Dataset, seed: int) -> TextTagger:
    return TextTagger(LdSMClassifier(random_state=seed)).fit(train)


# -- less data, worse data, another threshold ------------------------------------------------


def changed_data(seed: int, rows: Dataset) -> Iterator[tuple[str, Figures]]:
    train, held_out = rows.split(0.2, seed=seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(train))
    variants = {
        "defaults": train,
        "half of the rows": train.select(np.sort(order[: len(train) // 2])),
        "a quarter of the rows": train.select(np.sort(order[: len(train) // 4])),
        "a fifth of the labels missing": with_missing_labels(train, rng),
        "a fifth of the rows with labels of other rows": with_mixed_labels(train, rng),
    }
    for name, part in variants.items():
        scores = Evaluation(fitted(part, seed), held_out).scores()
        yield name, quality(scores, "model")
        if name == "defaults":
            yield "threshold 0.5", quality(scores, "0.5")


def quality(scores: Any, threshold: str) -> Figures:
    sets = scores.sets[threshold]
    return {"P@1": 100 * scores.ranking["precision@1"], "F1": 100 * sets.f1["samples"]}


def with_missing_labels(train: Dataset, rng: np.random.Generator) -> Dataset:
    """Without a fifth of all pairs, and without the rows that have no label then."""
    left = np.sort(rng.permutation(train.Y.nnz)[train.Y.nnz // 5 :])
    pairs = sp.coo_array(train.Y)
    Y = sp.csr_array((pairs.data[left], (pairs.row[left], pairs.col[left])), shape=pairs.shape)
    kept = np.flatnonzero((np.diff(Y.indptr) > 0) | (np.diff(train.Y.indptr) == 0))
    return with_labels(train, Y).select(kept)


def with_mixed_labels(train: Dataset, rng: np.random.Generator) -> Dataset:
    rows = np.arange(len(train))
    chosen = rng.permutation(len(train))[: len(train) // 5]
    rows[chosen] = np.roll(chosen, 1)
    return with_labels(train, train.Y[rows])


def with_labels(train: Dataset, Y: Any) -> Dataset:
    return Dataset(None, Y, texts=train.texts, label_names=train.label_names)


# -- fields -----------------------------------------------------------------------------------


def fields(seed: int) -> Iterator[tuple[str, Figures]]:
    for text in FIELDS:
        train, held_out = load("germeval", text).split(0.2, seed=seed)
        scores = Evaluation(fitted(train, seed), held_out).scores()
        yield ", then ".join(text), quality(scores, "model")


# -- rare labels ------------------------------------------------------------------------------


def rare_labels(seed: int, rows: Dataset) -> Iterator[tuple[str, Figures]]:
    train, held_out = rows.split(0.2, seed=seed)
    model = fitted(train, seed)
    counts = np.bincount(train.Y.indices, minlength=train.n_labels)
    names = np.asarray(train.label_names)
    rare = set(names[counts < RARE].tolist())
    yield "defaults", {**found(model, held_out, rare), **set_f1(model, held_out)}
    for tail in (0.5, 1.0):
        yield f"`tail={tail:g}`", found(model, held_out, rare, tail)
    part, tuning = train.split(0.1, seed=seed)
    tuned = fitted(part, seed).tune_threshold(tuning, average="macro")
    yield (
        '`tune_threshold(average="macro")`',
        {
            **found(tuned, held_out, rare),
            **set_f1(tuned, held_out),
        },
    )
    has_rare = np.asarray(train.Y[:, counts < RARE].sum(axis=1)).ravel() > 0
    repeated = np.repeat(np.arange(len(train)), np.where(has_rare, 3, 1))
    again = fitted(train.select(repeated), seed)
    name = "rows of rare labels three times"
    yield name, {**found(again, held_out, rare), **set_f1(again, held_out)}


def found(model: TextTagger, held_out: Dataset, rare: set[str], tail: float = 0) -> Figures:
    """P@1 and recall of rare and of other labels among the best five."""
    top = model.predict_topk(held_out, k=5, tail=tail)[0].tolist()
    pairs = [
        (label in rare, label in best)
        for best, true in zip(top, held_out.labels, strict=True)
        for label in true
    ]
    is_rare, hit = np.array(pairs).T
    first = [best[0] in true for best, true in zip(top, held_out.labels, strict=True)]
    return {
        "P@1": 100 * float(np.mean(first)),
        "rare labels found": 100 * float(hit[is_rare].mean()) if is_rare.any() else float("nan"),
        "other labels found": 100 * float(hit[~is_rare].mean()),
    }


def set_f1(model: TextTagger, held_out: Dataset) -> Figures:
    sets = Evaluation(model, held_out).scores().sets["model"]
    return {"macro F1": 100 * sets.f1["macro"], "samples F1": 100 * sets.f1["samples"]}


# -- tables -----------------------------------------------------------------------------------


def render(results: dict[str, Any]) -> str:
    names = list(results["data"])
    first = results["data"][names[0]]
    rows = [
        [variant, *(compared(results["data"][name], variant) for name in names)]
        for variant in first
    ]
    parts = [
        "P@1 and samples F1 in per cent, and the difference in points if one thing changes:\n\n"
        + pages.table(["", *names], rows)
    ]
    if results["fields"]:
        cells = [[name, pages.slashed(its.values(), 1)] for name, its in results["fields"].items()]
        parts.append("GermEval, by the fields that are read:\n\n"
                     + pages.table(["fields", "P@1 / samples F1"], cells))  # fmt: skip
    heads = ["P@1", "rare labels found", "other labels found", "macro F1", "samples F1"]
    rows = [
        [name, variant, *(f"{its[head]:.1f}" if head in its else "" for head in heads)]
        for name, variants in results["rare"].items()
        for variant, its in variants.items()
    ]
    parts.append(
        f"Rare labels, those with fewer than {RARE} training rows. Found: the share among the five "
        "best labels.\n\n" + pages.table(["", "", *heads], rows)
    )
    return "\n\n".join(part.strip() for part in parts)


def compared(variants: dict[str, Figures], variant: str) -> str:
    figures, base = variants[variant], variants["defaults"]
    if variant == "defaults":
        return pages.slashed(figures.values(), 1)
    return " / ".join(f"{value - base[key]:+.1f}" for key, value in figures.items())


if __name__ == "__main__":
    main()
