"""Documents about a few subjects, and a tagger for them."""

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
    """Documents of one or two subjects: words of these, and words without meaning."""
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


def titles(n: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Titles of three words, whose forms end in anything; tags are named like two of them."""
    rng = np.random.default_rng(7)
    syllables = [a + b for a in "bdfghjklmnprstv" for b in "aeiouy"]
    stems = ["".join(rng.choice(syllables, size=3)) for _ in range(120)]
    rng = np.random.default_rng(seed)
    ends = ["", "a", "en", "ssa", "lle", "ksi"]
    texts, tags = [], []
    for _ in range(n):
        chosen = rng.choice(len(stems), size=3, replace=False)
        texts.append(" ".join(stems[i] + rng.choice(ends) for i in chosen))
        tags.append([f"{stems[i]}s" for i in chosen[:2]])
    return texts, tags
