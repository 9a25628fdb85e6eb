"""Texts that say nothing: empty ones, function words alone, and words that nobody knows.

    python benchmarks/unknown_texts.py [--sets reuters,debtags,eurlex57k,yso,yso-fi,stdlib]

The scores of such texts should stay close to the base rates. For each set, a model with default
settings is asked for its best tag; the table compares the scores with the largest base rate.

Writes its table into benchmarks/README.md.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np

import data
import pages
import records
from ldsm import LdSMClassifier, TextTagger, datasets

SETS = ("reuters", "debtags", "eurlex57k", "yso", "yso-fi", "stdlib")
ENGLISH = (
    "a about above after again against all am an and any are as at be because been before "
    "being below between both but by can did do does doing down during each few for from "
    "further had has have having he her here hers him his how i if in into is it its me more "
    "most my no nor not now of off on once only or other our ours out over own same she "
    "should so some such than that the their theirs them then there these they this those "
    "through to too under until up very was we were what when where which while who whom why "
    "will with you your yours"
)
FINNISH = (
    "ei eivät emme en et että hän he hänen ja jo joka jos kanssa kuin kun me mikä mitä mutta "
    "myös ne niin nyt oli olla on ovat se sekä sen siinä sitä tai tämä te vai vain"
)
LENGTHS, N_RANDOM = (6, 8, 10, 14), 100  # letters of a random string; strings of each length
MOST = 2  # times the largest base rate
Facts = dict[str, Any]


def documents(name: str) -> datasets.Dataset:
    if name == "quick":
        return datasets.load_stdlib_docs(min_count=50)
    if name == "stdlib":
        return datasets.load_stdlib_docs(min_count=5)
    return datasets.load_jsonl(data.folder() / f"{name}_train.jsonl.gz")


def texts(name: str) -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    letters = np.array(list(string.ascii_lowercase))
    random = ["".join(rng.choice(letters, n)) for n in LENGTHS for _ in range(N_RANDOM)]
    return {
        "empty": ["", " \n", "!?", "0123456789"],
        "function word": (FINNISH if name == "yso-fi" else ENGLISH).split(),
        "random letters": random,
    }


def facts(name: str) -> Facts:
    tagger = TextTagger(LdSMClassifier(n_jobs=2)).fit(documents(name))
    classifier = tagger.classifier_
    rate = float(classifier.label_counts_.max() / classifier.training_["rows"])
    found: Facts = {"rate": rate}
    for kind, asked in texts(name).items():
        best = np.array([tags[0][1] for tags in tagger.predict(asked, k=1)])
        n_over = int((best > np.float32(MOST * rate)).sum())
        found[kind] = {"texts": len(asked), "most": float(best.max()), "over": n_over}
    return found


def table(results: dict[str, Facts]) -> str:
    kinds = [kind for kind in next(iter(results.values())) if kind != "rate"]
    rows = [
        [name, f"{its['rate']:.4f}"]
        + [
            f"{its[kind]['most']:.4f}; {its[kind]['over']} of {its[kind]['texts']}"
            for kind in kinds
        ]
        for name, its in results.items()
    ]
    return pages.table(("", "largest base rate", *kinds), rows)


def main() -> None:
    parser = records.arguments(__doc__ or "", "unknown_texts")
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    sets = ["quick"] if options.quick else options.sets.split(",")
    results = {
        name: records.kept(options.output, name, {}, lambda path, n=name: facts(n)) for name in sets
    }
    records.write_json(options.output / "results.json", results)
    text = f"{records.machine_sentence()}\n\n{table(results)}"
    print(text)
    if not options.quick:
        pages.publish(pages.BENCHMARKS, "unknown_texts", text)


if __name__ == "__main__":
    main()
