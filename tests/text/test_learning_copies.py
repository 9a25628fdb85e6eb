"""Copies of a document, in one batch or several: repeated evidence lowers no score."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
from cli_runs import make_documents
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.classifier import hold_model
from ldsm.text.training import vectorized_by

KNOWN_WORDS = make_documents(700, seed=0)[0][0]
NEW_WORDS = "zorbax flimwar quexel brundig"
COPIES = (1, 10, 100, 1000)


@cache
def fitted():
    texts, tags = make_documents(700, seed=0)
    return TextTagger(LdSMClassifier(5, rerank="linear", random_state=0)).fit(texts, tags)


def rarest():
    classifier = fitted().classifier_
    return fitted().classes_[np.argmin(classifier.label_counts_)]


def learned(text, tag, n):
    return copy.deepcopy(fitted()).partial_fit([text] * n, [[tag]] * n)


def score(tagger, text, tag):
    return dict(tagger.predict([text], k=len(tagger.classes_))[0]).get(tag, 0.0)


@pytest.mark.parametrize("known_tag", [True, False])
@pytest.mark.parametrize("text", [KNOWN_WORDS, NEW_WORDS])
def test_more_copies_never_lower_the_score(text, known_tag):
    tag = rarest() if known_tag else "new"
    scores = [score(learned(text, tag, n), text, tag) for n in COPIES]
    assert scores == sorted(scores)
    assert scores[-1] > score(fitted(), text, tag)


@pytest.mark.parametrize("known_tag", [True, False])
@pytest.mark.parametrize("text", [KNOWN_WORDS, NEW_WORDS])
def test_copies_in_later_batches_change_nothing(text, known_tag):
    tag = rarest() if known_tag else "new"
    tagger = learned(text, tag, 2)
    texts = [text, *make_documents(30, seed=1)[0]]
    before, fingerprint = tagger.predict(texts, k=10), tagger.fingerprint_
    for n in (1, 3, 40):
        tagger.partial_fit([text] * n, [[tag]] * n)
        assert tagger.predict(texts, k=10) == before
    assert tagger.classifier_.training_["history"][-1]["learned"] == 46
    assert tagger.fingerprint_ != fingerprint  # all rows are counted


def test_copies_of_matrix_rows_change_nothing():
    data = datasets.make_xmc(700, 60, 12, seed=0)
    X, Y = sp.csr_matrix(data.X), sp.csr_matrix(data.Y)
    classifier = LdSMClassifier(4, rerank="linear", random_state=0).fit(X[:650], Y[:650])
    classifier.partial_fit(X[650:], Y[650:])
    before = classifier.predict_proba(X).toarray()
    classifier.partial_fit(X[660:690], Y[660:690])
    assert np.array_equal(classifier.predict_proba(X).toarray(), before)
    assert classifier.second_stage_.n_copies == 30
    assert len(classifier.second_stage_.learned_rows) == 50


def test_stored_copies_change_nothing():
    texts, tags = make_documents(40, seed=3)
    tagger = copy.deepcopy(fitted())
    names = sorted({tag for own in tags for tag in own})
    Y = [[int(name in own) for name in names] for own in tags]
    rows = datasets.Dataset(None, Y, texts=texts, label_names=names)
    stored = vectorized_by(tagger.features_)(rows)
    tagger.partial_fit(stored)
    before = tagger.predict(texts, k=5)
    tagger.partial_fit(stored)
    assert tagger.predict(texts, k=5) == before


def test_changed_tags_are_learned():
    """A document whose tags are corrected, and corrected back, is learned each time."""
    tagger, stages = copy.deepcopy(fitted()), []
    for tag in ("first", "second", "first", "first"):
        tagger.partial_fit([KNOWN_WORDS] * 2, [[tag]] * 2)
        stages.append(tagger.classifier_.second_stage_)
    assert [stage.n_copies for stage in stages] == [1, 2, 3, 5]
    assert all(len(stage.learned_rows) == 1 for stage in stages)


def test_relabelled_models_learn_again():
    tagger = learned(KNOWN_WORDS, "new", 2)
    tagger.drop_labels(["new"])
    tagger.partial_fit([KNOWN_WORDS] * 2, [["new"]] * 2)
    assert score(tagger, KNOWN_WORDS, "new") > 0.5
    tagger.rename_labels({"new": "newer"})
    tagger.partial_fit([KNOWN_WORDS] * 2, [["new"]] * 2)
    assert score(tagger, KNOWN_WORDS, "new") > 0


def test_copies_leave_other_scores_alone():
    others = make_documents(60, seed=1)[0]
    few, many = (learned(NEW_WORDS, "new", n).predict(others, k=10) for n in (2, 500))
    assert few == many


def test_all_rows_are_counted():
    tagger = learned(NEW_WORDS, "new", 100)
    model = tagger.classifier_.model_
    assert model.training["rows"] == 800 and model.training["history"][-1]["learned"] == 100
    column = tagger.classes_.tolist().index("new")
    assert model.label_counts[column] == 100
    assert model.second_stage.label_counts[column] == 1 and model.second_stage.n_copies == 99


def test_texts_with_different_tags_are_not_copies():
    tagger = copy.deepcopy(fitted()).partial_fit([KNOWN_WORDS] * 2, [["new"], ["new", "other"]])
    assert tagger.classifier_.second_stage_.n_copies == 0


def test_files_and_relabelling_keep_it(tmp_path):
    tagger = learned(NEW_WORDS, "new", 100)
    path = tmp_path / "tagger.ldsm"
    tagger.save(path)
    loaded = ldsm.load(path)
    assert loaded.fingerprint_ == tagger.fingerprint_
    keys = [one.classifier_.second_stage_.learned_rows for one in (loaded, tagger)]
    assert keys[0].shape == (1, 2) and np.array_equal(*keys)
    texts = [NEW_WORDS, "", *make_documents(30, seed=2)[0]]
    assert loaded.predict(texts) == tagger.predict(texts)
    before = score(loaded, NEW_WORDS, "new")
    loaded.drop_labels([rarest()])
    assert score(loaded, NEW_WORDS, "new") == before
    loaded.partial_fit([NEW_WORDS] * 50, [["new"]] * 50)
    assert loaded.classifier_.second_stage_.n_copies == 148


def test_fingerprints_cover_copies():
    model = learned(NEW_WORDS, "new", 100).classifier_.model_
    stage = model.second_stage
    for changes in ({"n_copies": 98}, {"label_counts": model.label_counts}):
        changed = dataclasses.replace(stage, **changes)
        other = dataclasses.replace(model, second_stage=changed)
        assert other.fingerprint() != model.fingerprint()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_copies": -1}, "n_copies"),
        ({"label_counts": None}, "label counts of its second stage"),
    ],
)
def test_damaged_counts_are_refused(changes, message, tmp_path):
    model = learned(NEW_WORDS, "new", 100).classifier_.model_
    if "label_counts" in changes:
        changes = {"label_counts": model.label_counts + 1}
    changed = dataclasses.replace(model.second_stage, **changes)
    other = hold_model(LdSMClassifier(), dataclasses.replace(model, second_stage=changed))
    path = tmp_path / "model.ldsm"
    other.save(path)
    with pytest.raises(ValueError, match=message):
        ldsm.load(path)
