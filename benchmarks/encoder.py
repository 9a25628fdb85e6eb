"""Measure what an encoder adds to words: precision, unseen labels, updates, time and size.

    make build/minilm/model.onnx
    python benchmarks/encoder.py --encoder build/minilm [--sets yso,debtags] [--seeds 3]

The vectors of texts and labels are computed once and kept in the output folder, so all times are
without the encoder's own, which is reported apart. Finished fits are kept there, too. Of EURLEX57K
every ninth training row and every fourth test row are used. Writes its tables into
docs/encoder.md.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pages
import records
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.datasets import Dataset
from ldsm.text.encoders.onnx import OnnxEncoder
from names import KS, THREADS, pair_of, precisions, without

SETS = ("yso", "debtags", "reuters", "eurlex57k")
# Every how many rows of a set of long texts is used, for training and for the test.
SHARES = {"eurlex57k": (9, 4)}
UNSEEN_SET = "yso"  # also for updates
N_HIDDEN, LEAST_ROWS, RECALL_AT = 200, 10, 20
NEW_SHARE = 0.1  # of the rows, for an update
CHUNK = 4096  # texts encoded and written together
Keep = Callable[[str, "Kept | None", int, Callable[[], list[float]]], list[float]]


class Kept:
    """An encoder that keeps the vectors of known texts on disk."""

    def __init__(self, encode: Callable[[list[str]], Any], folder: Path) -> None:
        self.inner, self.folder, self.name = encode, folder, "all-MiniLM-L6-v2"
        self.vectors: dict[str, Any] = {}
        self.ms_per_text = 0.0  # of the texts encoded last; 0: all were known

    def learn(self, name: str, texts: Sequence[str]) -> None:
        """Encode the texts of one kind of a set, unless that is done; chunk by chunk."""
        self.folder.mkdir(parents=True, exist_ok=True)
        seconds = n_encoded = 0.0
        for start in range(0, len(texts), CHUNK):
            part, file = list(texts[start : start + CHUNK]), self.folder / f"{name}-{start}.npy"
            if not file.exists():
                started = time.perf_counter()
                vectors = np.asarray(self.inner(part), dtype=np.float32)
                seconds, n_encoded = seconds + time.perf_counter() - started, n_encoded + len(part)
                unfinished = file.with_suffix(".part.npy")
                np.save(unfinished, vectors)
                unfinished.rename(file)
            self.vectors |= zip(part, np.load(file), strict=True)
        self.ms_per_text = 1000 * seconds / max(1, n_encoded)

    def __call__(self, texts: list[str]) -> Any:
        if all(text in self.vectors for text in texts):
            return np.stack([self.vectors[text] for text in texts])
        return self.inner(texts)


def main() -> None:
    parser = records.arguments(__doc__ or "", "encoder", seeds=3)
    parser.add_argument("--encoder", type=Path, help="folder of the encoder")
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    if options.quick:
        sets = {"demo": datasets.load_stdlib_docs().split(0.3, seed=0)}
        encode: Callable[[list[str]], Any] = _first_letters
    else:
        sets = {name: some_rows(name) for name in options.sets.split(",")}
        encode = OnnxEncoder(options.encoder, n_jobs=1)
    encoder = Kept(encode, options.output / "vectors")
    seeds, speeds = range(options.seeds), []
    keep = partial(kept_part, options.output)
    for name, (train, test) in sets.items():
        labels = sorted({*(train.label_names or ()), *(test.label_names or ())})
        for kind, texts in (("train", train.texts), ("test", test.texts), ("labels", labels)):
            encoder.learn(f"{name}-{kind}", list(texts or ()))
            if encoder.ms_per_text >= 0.1:
                speeds.append(f"{name} {kind} {encoder.ms_per_text:.1f}")
    parts = [precision_table(sets, encoder, seeds, keep)]
    first = next(iter(sets))
    if UNSEEN_SET in sets or options.quick:
        data = sets.get(UNSEEN_SET, sets[first])
        parts += [table(*data, encoder, seeds, keep) for table in (unseen_table, update_table)]
    if speeds:
        parts.append(f"The encoder's own time on one thread, ms per text: {', '.join(speeds)}.")
    text = "\n\n".join(part.strip() for part in parts)
    print(text)
    if not options.quick:
        pages.publish(pages.ENCODER, "encoder", text)


def some_rows(name: str) -> tuple[Dataset, Dataset]:
    train, test = (
        Dataset.from_texts((data.texts or ())[::step], data.labels[::step])
        for data, step in zip(pair_of(name), SHARES.get(name, (1, 1)), strict=True)
    )
    return train, test


def _first_letters(texts: list[str]) -> Any:
    """A stand-in for an encoder: how often texts have each letter."""
    counts = [[text.lower().count(letter) for letter in "abcdefghijklmnop"] for text in texts]
    return np.array(counts, dtype=np.float32) + 0.1


def kept_part(
    folder: Path, name: str, own: Kept | None, seed: int, work: Callable[[], list[float]]
) -> list[float]:
    """The figures of one fit or several, measured now or earlier."""
    part = f"{name}_{'words' if own is None else 'encoder'}_seed{seed}"
    about = {"shares": SHARES, "threads": THREADS}
    return list(records.kept(folder, part, about, lambda _: {"figures": work()})["figures"])


def tagger(seed: int, encoder: Kept | None) -> TextTagger:
    return TextTagger(LdSMClassifier(n_jobs=THREADS, random_state=seed), encoder=encoder)


def precision_table(
    sets: dict[str, tuple[Dataset, Dataset]], encoder: Kept, seeds: Sequence[int], keep: Keep
) -> str:
    rows = []
    for name, (train, test) in sets.items():
        for own in (None, encoder):
            runs = [
                keep(name, own, seed, partial(precision, train, test, tagger(seed, own)))
                for seed in seeds
            ]
            digits = [*[2] * len(KS), 1, 2, 1]
            cells = [pages.mean_spread([run[i] for run in runs], n) for i, n in enumerate(digits)]
            rows.append([name, "words" if own is None else "words and encoder", *cells])
            print(rows[-1], flush=True)
    heads = ["", "features", *(f"P@{k}" for k in KS)]
    heads += [f"fit, seconds, {THREADS} threads", "one text, ms", "MB"]
    return f"With and without the encoder:\n\n{pages.table(heads, rows)}"


def precision(train: Dataset, test: Dataset, model: TextTagger) -> list[float]:
    """P@k in per cent, seconds of the fit, milliseconds of a text alone, and megabytes."""
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    texts = list(test.texts or ())[:300]
    model.predict(texts[:1])  # fills the caches
    started = time.perf_counter()
    for text in texts:
        model.predict([text])
    alone = (time.perf_counter() - started) / len(texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ldsm"
        model.save(path)
        size = path.stat().st_size / 1e6
    found = precisions(test.labels, model.predict_topk(test, k=max(KS)))
    return [*found, seconds, 1000 * alone, size]


def unseen_table(
    train: Dataset, test: Dataset, encoder: Kept, seeds: Sequence[int], keep: Keep
) -> str:
    counts = Counter(tag for tags in train.labels for tag in tags)
    able = sorted(tag for tag, count in counts.items() if count >= LEAST_ROWS)
    n_hidden, rows = min(N_HIDDEN, len(able) // 3), []
    for own in (None, encoder):
        runs = []
        for seed in seeds:
            drawn = np.random.default_rng(seed).choice(able, n_hidden, replace=False)
            hidden, model = set(drawn.tolist()), tagger(seed, own)
            runs.append(keep("unseen", own, seed, partial(recall, train, test, hidden, model))[0])
        names = "spelling" if own is None else "spelling and meaning"
        rows.append([names, pages.mean_spread(runs)])
        print(rows[-1], flush=True)
    return (
        f"Recall of {n_hidden} labels hidden from training, found by their names:\n\n"
        + pages.table(["by", f"recall@{RECALL_AT}"], rows)
    )


def recall(train: Dataset, test: Dataset, hidden: set[str], model: TextTagger) -> list[float]:
    texts, names = list(train.texts or ()), list(train.label_names or ())
    model.fit(texts, without(train.labels, hidden), vocabulary=names)
    pairs = [(i, tag) for i, tags in enumerate(test.labels) for tag in tags if tag in hidden]
    asked = sorted({i for i, _ in pairs})
    best, _ = model.predict_topk([(test.texts or ())[i] for i in asked], k=RECALL_AT)
    found = dict(zip(asked, map(set, best.tolist()), strict=True))
    return [100 * float(np.mean([tag in found[i] for i, tag in pairs]))]


def update_table(
    train: Dataset, test: Dataset, encoder: Kept, seeds: Sequence[int], keep: Keep
) -> str:
    rows = []
    for own in (None, encoder):
        runs = [
            keep("update", own, seed, partial(updated, train, test, own, seed)) for seed in seeds
        ]
        cells = [pages.mean_spread([run[i] for run in runs]) for i in range(len(KS))]
        rows.append(["words" if own is None else "words and encoder", *cells])
        print(rows[-1], flush=True)
    heads = ["features", *(f"P@{k}" for k in KS)]
    return f"After 90 % of the rows, and an update with the others:\n\n{pages.table(heads, rows)}"


def updated(train: Dataset, test: Dataset, own: Kept | None, seed: int) -> list[float]:
    order = np.random.default_rng(seed).permutation(len(train))
    n_new = int(NEW_SHARE * len(train))
    model = tagger(seed, own).fit(train.select(np.sort(order[n_new:])))
    model.partial_fit(train.select(np.sort(order[:n_new])))
    return [*precisions(test.labels, model.predict_topk(test, k=max(KS)))]


if __name__ == "__main__":
    main()
