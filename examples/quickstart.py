"""Train on the docstrings of Python's standard library, then tag questions in plain English."""

from __future__ import annotations

import time

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from ldsm import LdSMClassifier, metrics
from ldsm.datasets import load_stdlib_docs

corpus = load_stdlib_docs(min_count=5)
train, test = corpus.split(0.2, seed=0)
vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english", dtype=np.float32)
train = train.vectorize(vectorizer)
test = test.vectorize(vectorizer, fit=False)
print(f"{len(train)} documents to learn from, {train.n_labels} tags, {len(test)} held out")

start = time.perf_counter()
clf = LdSMClassifier(n_estimators=20, n_jobs=2, random_state=0).fit(train)
print(f"20 trees and a second stage in {time.perf_counter() - start:.1f} s")

test, _ = test.align(train)
for k in (1, 3, 5):
    score = metrics.precision_at_k(test.Y, clf.predict_proba(test.X), k)
    print(f"precision at {k}: {100 * score:.1f} %")

for question in ("compress a stream of bytes", "parse a date and time", "open a network socket"):
    labels, scores = clf.predict_topk(vectorizer.transform([question]), k=5)
    tags = ", ".join(f"{tag} {score:.2f}" for tag, score in zip(labels[0], scores[0], strict=True))
    print(f"{question!r}: {tags}")
