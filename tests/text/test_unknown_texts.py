"""Texts without known words, or with a meaningless one: no tag gets a high score."""

import dataclasses
from functools import partial

import numpy as np
import pytest

import ldsm
from cli_runs import make_documents
from ldsm import LdSMClassifier, TextTagger
from ldsm._ranking.saved_form import stage_from_state
from saved_states import stage_state
from text_corpus import titles

EMPTY = ["", "  \n", "!?", "7"]
UNKNOWN = ["xyzzy qwrtz", "Zxcvbnm", "wxwxwx wxwx"]


@pytest.fixture(scope="module")
def spelled():
    """Knows words by their parts."""
    tagger = TextTagger(LdSMClassifier(6, random_state=0)).fit(*titles(1500))
    assert "subwords" in tagger.classifier_.second_stage_.blend.kind
    return tagger


@pytest.fixture(scope="module")
def worded():
    texts, tags = make_documents(700, seed=0)
    tagger = TextTagger(LdSMClassifier(5, rerank="linear", random_state=0))
    return tagger.fit([f"the {text}" for text in texts], tags)


@pytest.fixture(params=["spelled", "worded"])
def tagger(request):
    return request.getfixturevalue(request.param)


def base_rates(tagger):
    counts = tagger.classifier_.label_counts_
    rates = (counts / tagger.classifier_.training_["rows"]).astype(np.float32)
    order = np.argsort(-counts, kind="stable")
    return [(tagger.classes_[i], rates[i]) for i in order.tolist()]


@pytest.mark.parametrize("text", EMPTY + UNKNOWN)
def test_unknown_text_gets_base_rates(tagger, text):
    assert tagger.predict([text], k=3)[0] == base_rates(tagger)[:3]
    threshold = tagger.classifier_.threshold_
    frequent = [tag for tag in base_rates(tagger) if tag[1] >= threshold]
    assert tagger.predict_sets([text])[0] == frequent
    third = base_rates(tagger)[2]
    assert tagger.predict([text], k=1, only=[third[0]])[0] == [third]


def test_unknown_text_explanation(tagger):
    explained = tagger.explain("xyzzy qwrtz", max_tags=3)
    assert explained.tags == base_rates(tagger)[:3]
    assert all(score.certainty == 0 for score in explained.scores)
    assert "no known word" in str(explained).splitlines()[1]
    assert explained.caution == str(explained).splitlines()[1]
    known = tagger.explain(titles(1, seed=5)[0][0] + " the court of cod and a trawler")
    assert known.caution is None and "no known word" not in str(known)


def test_stop_word_near_base_rates(worded):
    (score, *_) = worded.explain("the").scores
    assert 0 < score.certainty < 1
    assert "little to go by" in str(worded.explain("the"))
    (best,) = worded.predict(["the"], k=1)[0]
    assert best[1] <= 2 * base_rates(worded)[0][1]


def test_unknown_word_form_counts(spelled):
    texts, tags = titles(40, seed=9)
    forms = [text.split()[0] + "nsto" for text in texts]
    assert not set(forms) & spelled.vectorizer_.vocabulary_.keys()
    most = base_rates(spelled)[0][1]
    best = [spelled.explain(form).scores[0] for form in forms]
    # Usual titles have three words: one tells less, but far from nothing.
    assert all(score.certainty > 0.2 for score in best)
    right = [score.tag == own[0] for score, own in zip(best, tags, strict=True)]
    assert np.mean(right) > 0.8
    assert np.median([score.score for score in best]) > 3 * most


def test_name_counts_as_evidence():
    texts, tags = titles(1000)
    hidden = min(tag for own in tags for tag in own)
    known = [[tag for tag in own if tag != hidden] for own in tags]
    tagger = TextTagger(LdSMClassifier(5, random_state=0))
    tagger.fit(texts, known, vocabulary=sorted({tag for own in tags for tag in own}))
    assert tagger.classifier_.second_stage_.blend.unseen
    (score, *_) = tagger.explain(hidden[:-1]).scores
    assert score.tag == hidden and score.certainty == 1 and score.score > 0.5


def test_files_keep_it(spelled, tmp_path):
    path = tmp_path / "tagger.ldsm"
    spelled.save(path)
    loaded = ldsm.load(path)
    stage, its = spelled.classifier_.second_stage_, loaded.classifier_.second_stage_
    assert its.evidence == stage.evidence
    assert np.array_equal(its.telling_sub_words, stage.telling_sub_words)
    texts = [*EMPTY, *UNKNOWN, *titles(30, seed=3)[0]]
    assert loaded.predict(texts) == spelled.predict(texts)
    assert loaded.fingerprint_ == spelled.fingerprint_
    changed = dataclasses.replace(stage, telling_sub_words=1 - stage.telling_sub_words)
    model = dataclasses.replace(spelled.classifier_.model_, second_stage=changed)
    assert model.fingerprint() != spelled.classifier_.model_.fingerprint()


TELLING = "second_stage.telling_sub_words"


@pytest.mark.parametrize("damage", ["length", "type", "missing"])
def test_damaged_telling_sub_words(spelled, damage):
    stage = spelled.classifier_.second_stage_
    header, arrays = stage_state(stage)
    layout = spelled.classifier_.model_.layout
    read = partial(stage_from_state, header, layout=layout, n_dropped=0, verify=True)
    assert read(arrays=dict(arrays), label_counts=stage.label_counts) is not None
    telling = arrays.pop(TELLING)
    if damage != "missing":
        arrays[TELLING] = telling[1:] if damage == "length" else telling.astype(np.int32)
    with pytest.raises(ValueError, match="telling"):
        read(arrays=dict(arrays), label_counts=stage.label_counts)
