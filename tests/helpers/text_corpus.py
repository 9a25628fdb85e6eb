"""Documents about a few subjects, and a tagger for them."""

from __future__ import annotations

import numpy as np

from ldsm import LdSMClassifier, TextTagger

SUBJECTS = {
    "fish": "cod herring trawler net harbour",
    "meat": "beef cattle slaughter pork farm",
    "trade": "import export tariff customs licence",
    "law": "regulation article directive court clause",
    "money": "bank euro credit interest budget",
}


def make_corpus(n, seed=0):
    """Documents of one or two subjects: words of these, and words that say nothing."""
    rng = np.random.default_rng(seed)
    noise = [f"filler{i}" for i in range(60)]
    texts, tags = [], []
    for _ in range(n):
        chosen = rng.choice(list(SUBJECTS), rng.integers(1, 3), replace=False)
        words = [w for s in chosen for w in rng.choice(SUBJECTS[s].split(), 3)]
        words += rng.choice(noise, 6).tolist()
        rng.shuffle(words)
        texts.append(" ".join(words).capitalize() + ".")
        tags.append(sorted(chosen.tolist()))
    return texts, tags


TEXTS, TAGS = make_corpus(200)
NEW, NEW_TAGS = make_corpus(60, seed=1)


def small(**changes):
    trees = LdSMClassifier(n_estimators=5, random_state=0)
    return TextTagger(**{"classifier": trees, **changes})
