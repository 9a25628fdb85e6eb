"""TextTagger with a second stage: scores, explanations in words, rare tags, files."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

import ldsm
from cli_runs import make_documents
from ldsm import LdSMClassifier, TextTagger

RARE = "import"
TEXTS, TAGS = make_documents(700, seed=0)
NEW, NEW_TAGS = make_documents(200, seed=1)


@pytest.fixture(scope="module")
def tagger():
    return TextTagger(LdSMClassifier(5, rerank="linear", random_state=0)).fit(TEXTS, TAGS)


def test_large_corpus_gets_second_stage(tagger):
    plain = TextTagger(LdSMClassifier(5, random_state=0)).fit(TEXTS, TAGS)
    assert plain.classifier_.second_stage_ is not None
    trees = TextTagger(LdSMClassifier(5, rerank=None, random_state=0)).fit(TEXTS, TAGS)
    assert trees.classifier_.second_stage_ is None
    assert plain.score(NEW, NEW_TAGS) > 0.9 < tagger.score(NEW, NEW_TAGS)
    few = TextTagger(LdSMClassifier(5, random_state=0)).fit(TEXTS[:400], TAGS[:400])
    assert few.classifier_.second_stage_ is None


def test_explanation_words(tagger):
    text = "court of cod, the import and a trawler"
    explained = tagger.explain(text, max_tags=3)
    assert explained.tags == tagger.predict([text], k=3)[0]
    assert [(score.tag, score.score) for score in explained.scores] == explained.tags
    by_tag = {s.tag: s for s in tagger.explain(text, max_tags=5, max_words=99).scores}
    fish = dict(by_tag["fish"].words)
    words = text.replace(",", "").split()
    bigrams = {f"{a} {b}" for a, b in pairwise(words)}
    assert fish["cod"] > 0 < fish["trawler"] and fish.keys() <= {*words, *bigrams}
    assert max(fish, key=fish.get) in ("cod", "trawler") and min(fish.values()) < 0
    assert fish["cod"] > dict(by_tag["meat"].words).get("cod", 0)
    assert by_tag["fish"].index_score > by_tag["meat"].index_score > 0
    for score in by_tag.values():
        total = 1 / (1 + np.exp(-sum(score.shares.values())))
        assert total == pytest.approx(score.score, abs=1e-6)
        margin = score.bias + sum(part for _, part in score.words)
        assert margin == pytest.approx(score.margin, abs=1e-5)


def test_explanation_text(tagger):
    lines = str(tagger.explain("cod of the court", max_words=2, max_tags=2)).splitlines()
    assert lines[0].startswith("tags: ") and lines[3].startswith("words: ")
    for line, (tag, _) in zip(
        lines[1:3], tagger.predict(["cod of the court"], k=2)[0], strict=True
    ):
        assert line.startswith(f"  {tag}: base ")
        for part in ("trees", "linear", "features", "frequency"):
            assert f", {part} " in line
        assert "; words: " in line
    # The trees alone have no parts to show.
    trees = TextTagger(LdSMClassifier(2, random_state=0)).fit(TEXTS[:50], TAGS[:50])
    explained = trees.explain("cod of the court", max_tags=2)
    assert str(explained).splitlines()[1].startswith("words: ")
    assert all(score.shares.keys() == {"trees"} for score in explained.scores)
    assert explained.tags == trees.predict(["cod of the court"], k=2)[0]


def test_centroid_share(tagger):
    tail = TextTagger(LdSMClassifier(5, rerank="tail", random_state=0)).fit(TEXTS, TAGS)
    score = tail.explain(NEW[0], max_tags=1).scores[0]
    assert score.shares.keys() == {"base", "trees", "tail"} and score.distance > 0
    assert (
        score.margin is score.index_score is None
        and score.words == []
        and "words" not in str(score)
    )


def test_rare_tags_can_be_favoured(tagger):
    def place(tail):
        return [[tag for tag, _ in row].index(RARE) for row in tagger.predict(missed, tail=tail)]

    missed = [text for text in NEW if RARE in text and tagger.predict([text])[0][0][0] != RARE]
    missed = [text for text in missed if RARE in dict(tagger.predict([text])[0])]
    assert len(missed) > 10
    plain, favoured = np.array(place(0.0)), np.array(place(1.0))
    assert np.all(favoured <= plain) and np.any(favoured < plain)
    # The order is another, the scores are the same.
    assert dict(tagger.predict(missed, tail=1.0)[0]) == dict(tagger.predict(missed)[0])
    names, scores = tagger.predict_topk(NEW, k=3, tail=1.0)
    rows = list(tagger.iter_predict(NEW, k=3, tail=1.0))
    assert rows == tagger.predict(NEW, k=3, tail=1.0)
    assert [[tag for tag, _ in row] for row in rows] == [
        row[values > 0].tolist() for row, values in zip(names, scores, strict=True)
    ]


@pytest.mark.parametrize("tail", [-1, "much", np.nan, np.inf, True])
def test_invalid_tail(tagger, tail):
    for method in (tagger.predict, tagger.iter_predict, tagger.predict_topk):
        with pytest.raises(
            ValueError, match=f"'tail' parameter must be a float >= 0. Got {tail!r}"
        ):
            method(NEW, tail=tail)


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("rerank", ["linear", "tail", "auto"])
def test_second_stage_round_trip(rerank, compress, tmp_path):
    trees = LdSMClassifier(3, rerank=rerank, compress=compress, random_state=0)
    tagger = TextTagger(trees).fit(TEXTS, TAGS)
    assert tagger.classifier_.forest_.is_compressed == compress
    tagger.save(tmp_path / "tags.ldsm")
    for again in (
        ldsm.load(tmp_path / "tags.ldsm"),
        ldsm.load(tmp_path / "tags.ldsm", verify=False),
        pickle.loads(pickle.dumps(tagger)),
    ):
        assert again.fingerprint_ == tagger.fingerprint_
        assert again.predict(NEW) == tagger.predict(NEW)
        assert again.predict(NEW, tail=0.5) == tagger.predict(NEW, tail=0.5)
        assert again.explain(NEW[0]).scores == tagger.explain(NEW[0]).scores
        assert again.get_params()["classifier__rerank"] == rerank
