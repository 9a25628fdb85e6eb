"""Train small models and print their fingerprints and answers, as JSON: fits.py

Two machines that print the same train the same models, bit for bit.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from hashlib import sha256

import numpy as np

from ldsm import LdSMClassifier, TextTagger, datasets

WORDS = "cod herring pêche filet закон суд статья euro crédit größe naïve import export tariff"
NAMES = ["économie", "pêche", "право", "法律", "tag five", "🐟", "seven", "acht"]


def classifiers() -> Iterator[tuple[str, LdSMClassifier]]:
    """One of each kind of training."""
    for arity in (2, 3, 8):
        yield f"arity {arity}", LdSMClassifier(n_estimators=3, arity=arity, rerank=None)
    for optimizer in ("sgd", "asgd"):
        yield optimizer, LdSMClassifier(n_estimators=3, optimizer=optimizer, rerank=None)
    yield "standardized", LdSMClassifier(n_estimators=3, standardize=True, rerank=None)
    for rerank in ("auto", "linear", "tail"):
        yield f"rerank {rerank}", LdSMClassifier(n_estimators=5, rerank=rerank)


def taggers() -> Iterator[tuple[str, TextTagger]]:
    """Models of texts, as they are trained and after they have learned on."""
    rng = np.random.default_rng(2027)
    words = np.array(WORDS.split())
    used = rng.random((900, len(words))) < 0.35
    texts = [" ".join(rng.permutation(np.repeat(words[row], 2)[::3])) for row in used]
    weights = rng.integers(-9, 10, size=(len(words), len(NAMES)))
    tags = [[NAMES[k] for k in np.flatnonzero(row)] for row in used @ weights > 15]
    tagger = TextTagger(LdSMClassifier(n_estimators=4)).fit(texts[:600], tags[:600])
    yield "texts", tagger
    yield "texts, learned on", tagger.partial_fit(texts[600:], tags[600:])


def main() -> None:
    train = datasets.make_xmc("bibtex", scale=0.2, seed=0)
    test = datasets.make_xmc("bibtex", scale=0.2, seed=0, part="test")
    fits = {}
    for name, classifier in classifiers():
        labels, scores = classifier.fit(train).predict_topk(test.X, k=5)
        answers = sha256(labels.tobytes() + scores.tobytes()).hexdigest()
        fits[name] = [classifier.fingerprint_, answers]
    for name, tagger in taggers():
        fits[name] = [tagger.fingerprint_, str(tagger.predict(["pêche: CRÉDIT, euro"], k=3))]
    print(json.dumps(fits, indent=1, ensure_ascii=False))
    print(f"{len(fits)} models on {platform.machine()}", file=sys.stderr)


if __name__ == "__main__":
    main()
