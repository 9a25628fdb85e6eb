"""Labels that are dropped or renamed change no bit of any other score, whatever the blend."""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm._ranking.blend import KINDS, UNSEEN_TERMS, Blend
from ldsm._ranking.centroids import Centroids
from ldsm.classifier import hold_model
from ldsm.text.fitted import fitted_text, hold_text
from text_corpus import titles

# Few and binary features, so that many scores are equal.
TRAIN, TEST = (
    datasets.make_xmc(900, 40, 160, labels_per_row=4, seed=1, part=part)
    for part in ("train", "test")
)
ROWS = TEST.X[:40]
TEXTS, TAGS = titles(1000)
HIDDEN = sorted({tag for row in TAGS for tag in row})[::5]
SEEN = [[tag for tag in row if tag not in HIDDEN] for row in TAGS]
NEW = titles(40, seed=3)[0]
DRAWS = 20

CLASSIFIERS = [
    (rerank, scores)
    for rerank in ("auto", "linear", "tail", None)
    for scores in ("probability", "histogram")
]
# Embeddings have their own test, in tests/classifier.
WITHOUT = [kind for kind in KINDS if "meaning" not in kind]
TAGGERS = [(kind, unseen) for kind in WITHOUT for unseen in (False, True)]
CASES = [("classifier", *case) for case in CLASSIFIERS] + [("tagger", *case) for case in TAGGERS]


@cache
def classifier(rerank, leaf_scores):
    X, Y = (TRAIN.X > 0).astype(np.float32), TRAIN.Y
    return LdSMClassifier(4, rerank=rerank, leaf_scores=leaf_scores, random_state=0).fit(X, Y)


@cache
def rich_tagger():
    """With every part that a second stage can have, and with tags that no text has."""
    clf = LdSMClassifier(4, random_state=0)
    tagger = TextTagger(clf).fit(TEXTS, SEEN, vocabulary=sorted({t for row in TAGS for t in row}))
    stage = tagger.classifier_.second_stage_
    assert stage.blend.unseen
    assert None not in (stage.index, stage.sub_index, stage.names, stage.ranker)
    return tagger


def tagger(kind, unseen, draw):
    """A tagger with a blend of the given kind, whose coefficients are random."""
    tagger = copy.copy(rich_tagger())
    model = tagger.classifier_.model_
    stage, rng = model.second_stage, np.random.default_rng(draw)
    needs = KINDS[kind].needs
    known = unseen and "ranker" in needs
    blend = Blend(
        kind,
        tuple((rng.normal(size=len(KINDS[kind].terms)) * 0.3).tolist()),
        tree_share=0.7,
        gamma=2.0,
        unseen=tuple(rng.normal(size=len(UNSEEN_TERMS)).tolist()) if known else (),
        most_cosine=0.9,
    )
    centroids = Centroids(**stage.ranker.arrays())  # any vectors will do
    parts = {part: {**stage.parts, "centroids": centroids}[part] for part in blend.needs}
    telling = stage.telling_sub_words if "sub_index" in parts else None
    match_names = "names" in blend.needs and bool(rng.integers(2))
    stage = replace(stage, blend=blend, match_names=match_names, masses=None, parts=parts)
    stage = replace(stage, telling_sub_words=telling)
    own = hold_model(copy.copy(tagger.classifier_), replace(model, second_stage=stage))
    hold_text(tagger, fitted_text(tagger)._replace(classifier=with_lists(own, draw)))
    return tagger


def with_lists(clf, draw):
    """The classifier with shortlists that are too short for all labels, or not."""
    model, length = clf.model_, (30, 12, 60, 1000)[draw % 4]
    if model.second_stage is None:
        return clf
    stage = replace(model.second_stage, length=length)
    return hold_model(clf, replace(model, second_stage=stage))


def drawn(draw, sort, *options):
    """A model, and rows for it."""
    if sort == "tagger":
        return tagger(*options, draw), NEW
    return with_lists(copy.copy(classifier(*options)), draw), (ROWS > 0).astype(np.float32)


def scores_by_label(model, X, among=None):
    matrix = model.predict_proba(X, only=among).toarray()
    return dict(zip(model.classes_.tolist(), matrix.T, strict=True))


def assert_same(before, after, names=None):
    """The scores by label are bit for bit those of before, under other names."""
    names = names or {}
    for label, scores in after.items():
        assert np.array_equal(scores, before[names.get(label, label)]), label


def renamed(rng, labels):
    """Other names for some labels, which bring them into another order."""
    chosen = rng.choice(len(labels), min(len(labels), int(rng.integers(1, 40))), replace=False)
    chosen = [labels[i] for i in chosen]
    if isinstance(labels[0], str):
        return {label: f"{'az'[i % 2]}{i}{label[::-1]}" for i, label in enumerate(chosen)}
    return {label: 1000 - label for label in chosen}


def check_draw(draw, path, *chosen):
    model, X = drawn(draw, *chosen)
    rng = np.random.default_rng(draw)
    before = scores_by_label(model, X)
    assert sum(np.count_nonzero(scores) for scores in before.values()) > 300
    order = copy.copy(model).rename_labels(names := renamed(rng, model.classes_.tolist()))
    old = {new: label for label, new in names.items()}
    assert [old.get(label, label) for label in order.classes_.tolist()] == model.classes_.tolist()
    assert_same(before, scores_by_label(order, X), old)
    for each in (model, order):
        n_dropped = int(rng.integers(1, 25))
        gone = rng.choice(len(each.classes_), n_dropped, replace=False)
        gone = each.classes_[gone].tolist()
        after = copy.copy(each).drop_labels(gone[: n_dropped // 2 + 1])
        if n_dropped > 1:
            after.drop_labels(gone[n_dropped // 2 + 1 :] or [after.classes_[0]])
        known = scores_by_label(after, X)
        assert len(known) < len(before)
        assert_same(before, known, old)
        left = after.classes_.tolist()
        some = [left[i] for i in rng.choice(len(left), 20, replace=False)]
        assert_same(scores_by_label(each, X, some), scores_by_label(after, X, some))
    after.save(path)
    again = ldsm.load(path)
    assert again.fingerprint_ == after.fingerprint_ != model.fingerprint_
    assert_same(known, scores_by_label(again, X))


every_case = pytest.mark.parametrize("chosen", CASES, ids=lambda chosen: "-".join(map(str, chosen)))


@every_case
def test_other_scores_stay_bit_for_bit(chosen, tmp_path):
    check_draw(CASES.index(chosen), tmp_path / "m.ldsm", *chosen)


@pytest.mark.long
@every_case
def test_other_scores_unchanged_randomized(chosen, tmp_path):
    for draw in range(DRAWS):
        check_draw(draw, tmp_path / "m.ldsm", *chosen)
