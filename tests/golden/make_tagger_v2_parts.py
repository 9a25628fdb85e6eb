"""Make tagger_v2_parts, .ldsm and .json: run once, when format 2 had all these parts.

Words, bigrams, sub-words, names of tags, tags without documents, an index, a ranker, centroids and
masses; documents were learned after the training. It is never made again: the test is that a file
of that time still loads, with the same bits.
"""

from __future__ import annotations

import numpy as np
from make_model_v2 import FOLDER, in_hex, write

from ldsm import LdSMClassifier, TextTagger
from ldsm._ranking.training import _Training as Training

SYLLABLES = [a + b for a in "fhklmnprstv" for b in "aeiouy"]
ENDS = ["", "a", "en", "ssa", "lle", "ksi", "tta", "ö"]
N_STEMS = 40


def documents(n: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Titles of three words, whose forms end in anything; tags are named like two of them."""
    rng = np.random.default_rng(7)
    stems = ["".join(rng.choice(SYLLABLES, size=2)) for _ in range(N_STEMS)]
    rng = np.random.default_rng(seed)
    texts, tags = [], []
    for _ in range(n):
        chosen = rng.choice(len(stems), size=3, replace=False)
        phrase = " suuri meri" if chosen[0] % 4 == 0 else ""
        texts.append(" ".join(stems[i] + rng.choice(ENDS) for i in chosen) + phrase)
        tags.append([f"{stems[i]}s" for i in chosen[:2]])
    return texts, tags


def main() -> None:
    Training._gains = lambda *_: True  # noqa: SLF001 (whatever can be part of the blend is)
    texts, tags = documents(600, 1)
    known = sorted({tag for its in tags for tag in its})
    first, second, third = known[:3]
    # One tag is known by a URI; two have no document; and one is too rare to be learned.
    names = {tag: [tag, f"{tag[:-1]}kko"] for tag in known}
    names["http://example.org/1"] = names.pop(third)
    names["право"] = "🐟 oikeus"
    tags = [["http://example.org/1" if tag == third else tag for tag in its] for its in tags]
    tags = [[tag for tag in its if tag != first] for its in tags]
    tags[5].append("редкий")
    clf = LdSMClassifier(n_estimators=3, max_nodes=15, random_state=7)
    tagger = TextTagger(clf, min_tag_count=2)
    tagger.fit(texts, tags, vocabulary=names)
    tagger.tune_threshold(texts, tags, per_label=True)
    more, more_tags = documents(30, 2)
    tagger.partial_fit([f"{text} uusi" for text in more], [[*its, "uudet"] for its in more_tags])
    tagger.save(FOLDER / "tagger_v2_parts.ldsm")
    asked = [*texts[:15], f"{first}ssa", f"{second.upper()}: oikeus!", "unknown words", ""]
    golden = {
        "fingerprint": tagger.fingerprint_,
        "words": tagger.vectorizer_.get_feature_names_out().tolist(),
        "idf": [float(idf).hex() for idf in tagger.vectorizer_.idf_],
        "rare_tags": tagger.rare_tags_,
        "texts": asked,
        "tags": in_hex(tagger.predict(asked, k=4)),
        "sets": in_hex(tagger.predict_sets(asked)),
    }
    write(FOLDER / "tagger_v2_parts.json", golden)


if __name__ == "__main__":
    main()
