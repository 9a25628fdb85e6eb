"""Make model_v2 and tagger_v2, each .ldsm and .json: run once, when format 2 was settled.

Compressed, with an index and a ranker. They are never made again: the test is that files of that
time still load, with the same bits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ldsm import LdSMClassifier, TextTagger

FOLDER = Path(__file__).parent
NAMES = ["économie", "pêche", "право", "法律", "tag five", "🐟", "seven", "acht"]
WORDS = "cod herring pêche filet закон суд статья euro crédit größe naïve import export tariff"


def make_classifier() -> None:
    rng = np.random.default_rng(2026)
    X = np.round(rng.random((600, 24)) * (rng.random((600, 24)) < 0.3), 3).astype(np.float32)
    weights = rng.normal(size=(24, 8))
    tags = [[NAMES[k] for k in np.flatnonzero(row)] for row in X @ weights > 0.9]
    clf = LdSMClassifier(
        n_estimators=4, arity=3, min_split_labels=64, rerank="linear", random_state=7
    )
    clf.fit(X, tags)
    clf.tune_threshold(X, tags, per_label=True)
    clf.save(FOLDER / "model_v2.ldsm")
    labels, scores = clf.predict_topk(X[:20], k=4)
    golden = {
        "fingerprint": clf.fingerprint_,
        "X": X[:20].tolist(),
        "labels": labels.tolist(),
        "scores": [[float(score).hex() for score in row] for row in scores],
        "sets": clf.predict(X[:20]).toarray().tolist(),
    }
    write(FOLDER / "model_v2.json", golden)


def make_tagger() -> None:
    rng = np.random.default_rng(2027)
    words = np.array(WORDS.split())
    used = rng.random((600, len(words))) < 0.35
    texts = [" ".join(rng.permutation(np.repeat(words[row], 2)[::3])) for row in used]
    weights = rng.normal(size=(len(words), 8))
    tags = [[NAMES[k] for k in np.flatnonzero(row)] for row in used @ weights > 1.5]
    tags[5].append("редкий")  # too rare to be learned
    clf = LdSMClassifier(n_estimators=4, min_split_labels=64, rerank="linear", random_state=7)
    tagger = TextTagger(clf, min_tag_count=2)
    tagger.fit(texts, tags).tune_threshold(texts, tags)
    tagger.save(FOLDER / "tagger_v2.ldsm")
    asked = [*texts[:15], "Größe: CRÉDIT", "unknown words", ""]
    golden = {
        "fingerprint": tagger.fingerprint_,
        "words": tagger.vectorizer_.get_feature_names_out().tolist(),
        "idf": [float(idf).hex() for idf in tagger.vectorizer_.idf_],
        "rare_tags": tagger.rare_tags_,
        "texts": asked,
        "tags": in_hex(tagger.predict(asked, k=4)),
        "sets": in_hex(tagger.predict_sets(asked)),
    }
    write(FOLDER / "tagger_v2.json", golden)


def in_hex(answers: list[list[tuple[str, float]]]) -> list[list[list[str]]]:
    return [[[tag, score.hex()] for tag, score in answer] for answer in answers]


def write(path: Path, golden: dict[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, indent=0)


if __name__ == "__main__":
    make_classifier()
    make_tagger()
