"""Train small models of every kind and print their fingerprints and answers, as JSON.

``python tests/reference_models.py > tests/golden/answers.json`` writes the file that
`tests/behaviour/test_reference_answers.py` compares with. Regenerate it only in a commit that
changes predictions on purpose. Two machines that print the same train the same models, bit for bit.
"""

import json
import platform
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import numpy as np

from ldsm import LdSMClassifier, TextTagger, datasets

WORDS = "cod herring pêche filet закон суд статья euro crédit größe naïve import export tariff"
NAMES = ["économie", "pêche", "право", "法律", "tag five", "🐟", "seven", "acht"]
SYLLABLES = [a + b for a in "fhklmnprstv" for b in "aeiouy"]
ENDS = ["", "a", "en", "ssa", "lle", "ksi", "tta", "ö"]
Result = tuple[str, str]  # fingerprint and hash of the answers


def trees() -> Iterator[tuple[str, LdSMClassifier]]:
    """Classifiers without a second stage, one of each kind of training."""
    for arity in (2, 3, 4, 8):
        yield f"arity {arity}", LdSMClassifier(n_estimators=3, arity=arity, rerank=None)
    for optimizer in ("nag", "sgd", "asgd"):
        yield optimizer, LdSMClassifier(n_estimators=3, optimizer=optimizer, rerank=None)
    yield "standardized", LdSMClassifier(n_estimators=3, standardize=True, rerank=None)
    yield "uncompressed", LdSMClassifier(n_estimators=3, compress=False, rerank=None)
    yield (
        "histogram leaves",
        LdSMClassifier(n_estimators=3, leaf_scores="histogram", rerank=None),
    )


def second_stages() -> Iterator[tuple[str, LdSMClassifier]]:
    for rerank in ("auto", "linear", "tail"):
        yield f"rerank {rerank}", LdSMClassifier(n_estimators=5, rerank=rerank)
    yield "rerank linear, uncompressed", LdSMClassifier(5, rerank="linear", compress=False)


def matrices() -> Iterator[tuple[str, Result]]:
    """Classifiers of sparse and dense matrices, before and after their labels change."""
    train = datasets.make_xmc("bibtex", scale=0.2, seed=0)
    test = datasets.make_xmc("bibtex", scale=0.2, seed=0, part="test")
    for name, classifier in (*trees(), *second_stages()):
        yield name, answers_of(classifier.fit(train), test.X)
        if name.startswith("rerank") and classifier.compress:
            yield f"{name}, relabelled", answers_of(relabelled(classifier), test.X)
    n = train.X.shape[0] * 3 // 4
    for rerank in ("auto", "tail", None):
        part = LdSMClassifier(n_estimators=4, rerank=rerank).fit(train.X[:n], train.Y[:n])
        part.partial_fit(train.X[n:], train.Y[n:])
        yield f"rerank {rerank}, updated", answers_of(part, test.X)
    warm = LdSMClassifier(n_estimators=2, warm_start=True).fit(train)
    yield "warm start", answers_of(warm.set_params(n_estimators=4).fit(train), test.X)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 30)).astype(np.float32)
    Y = (X @ rng.normal(size=(30, 12)) > 4).astype(np.int8)
    for rerank in ("auto", None):
        dense = LdSMClassifier(n_estimators=4, rerank=rerank).fit(X[:400], Y[:400])
        yield f"dense, rerank {rerank}", answers_of(dense, X[400:])
    single = LdSMClassifier(n_estimators=4).fit(X[:400], np.argmax(X[:400, :5], axis=1))
    yield "single label", answers_of(single, X[400:])


def relabelled(classifier: LdSMClassifier) -> LdSMClassifier:
    names = classifier.classes_.tolist()
    classifier.drop_labels(names[3:30:4])
    return classifier.rename_labels({names[0]: max(names) + 1})


def taggers() -> Iterator[tuple[str, Result]]:
    """Models of texts, as they are trained, after updates, and after their tags change."""
    rng = np.random.default_rng(2027)
    words = np.array(WORDS.split())
    used = rng.random((900, len(words))) < 0.35
    texts = [" ".join(rng.permutation(np.repeat(words[row], 2)[::3])) for row in used]
    weights = rng.integers(-9, 10, size=(len(words), len(NAMES)))
    tags = [[NAMES[k] for k in np.flatnonzero(row)] for row in used @ weights > 15]
    asked = ["pêche: CRÉDIT, euro", "закон суд", "unknown", "", *texts[:40]]
    tagger = TextTagger(LdSMClassifier(n_estimators=4)).fit(texts[:600], tags[:600])
    yield "texts", tags_of(tagger, asked)
    yield "texts, updated", tags_of(tagger.partial_fit(texts[600:], tags[600:]), asked)

    texts, tags = titles(900, 1)
    known = sorted({tag for its in tags for tag in its})
    names = {tag: [tag, f"{tag[:-1]}kko"] for tag in known} | {"право": ["oikeus"]}
    asked = [*texts[:40], "oikeus", f"{known[3].upper()}ssa", "unknown words", ""]
    changes: dict[str, Callable[[TextTagger], TextTagger]] = {
        "": lambda tagger: tagger,
        ", updated": updated,
        ", dropped and renamed": lambda tagger: tagger.drop_labels(known[2:20:5]).rename_labels(
            {known[0]: "zzz"}
        ),
    }
    for kind, vocabulary in (("sub-words", None), ("vocabulary", names)):
        tagger = TextTagger(LdSMClassifier(n_estimators=4)).fit(texts, tags, vocabulary=vocabulary)
        for change, apply in changes.items():
            yield f"{kind}{change}", tags_of(apply(tagger), asked)


def titles(n: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Titles of three words with all kinds of endings; tags are named like two of them."""
    rng = np.random.default_rng(7)
    stems = ["".join(rng.choice(SYLLABLES, size=3)) for _ in range(400)]
    rng = np.random.default_rng(seed)
    texts, tags = [], []
    for _ in range(n):
        chosen = rng.choice(len(stems), size=3, replace=False)
        phrase = " suuri meri" if chosen[0] % 4 == 0 else ""
        texts.append(" ".join(stems[i] + rng.choice(ENDS) for i in chosen) + phrase)
        tags.append([f"{stems[i]}s" for i in chosen[:2]])
    return texts, tags


def updated(tagger: TextTagger) -> TextTagger:
    """With rows of new words and a new tag."""
    texts, tags = titles(60, 2)
    return tagger.partial_fit([f"{text} uusi" for text in texts], [[*its, "uudet"] for its in tags])


def answers_of(classifier: LdSMClassifier, X: Any) -> Result:
    labels, scores = classifier.predict_topk(X, k=5)
    answers = sha256(labels.tobytes() + scores.tobytes()).hexdigest()
    return classifier.fingerprint_, answers


def tags_of(tagger: TextTagger, texts: list[str]) -> Result:
    answers = repr([tagger.predict(texts, k=4), tagger.predict_sets(texts)])
    return tagger.fingerprint_, sha256(answers.encode()).hexdigest()


def main() -> None:
    models = dict([*matrices(), *taggers()])
    print(json.dumps(models, indent=1, ensure_ascii=False))
    print(f"{len(models)} models on {platform.machine()}", file=sys.stderr)


if __name__ == "__main__":
    main()
