"""Batches of one label: the model learns the label, and its answers to other rows stay."""

import copy
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.metrics.calibration import reliability

TRAIN, TEST = (datasets.make_xmc(3000, 300, 30, seed=1, part=part) for part in ("train", "test"))
NAMES, TEST_NAMES = (
    [[f"l{i:02}" for i in row.indices] for row in sp.csr_matrix(part.Y)] for part in (TRAIN, TEST)
)
NEW = "l24"
HAS, TEST_HAS = (np.array([NEW in row for row in names]) for names in (NAMES, TEST_NAMES))
EXAMPLES = np.flatnonzero(HAS)
ORDINARY, SEEN = np.split(np.flatnonzero(~HAS), [300])


TEXTS, TEST_TEXTS = (
    [" ".join(f"word{f}" for f in row.indices) for row in sp.csr_matrix(part.X)]
    for part in (TRAIN, TEST)
)


@cache
def fitted(kind="classifier"):
    """A model that has seen no row of the new label."""
    names = [NAMES[i] for i in SEEN]
    if kind == "classifier":
        return LdSMClassifier(5).fit(TRAIN.X[SEEN], names)
    return TextTagger(LdSMClassifier(5)).fit([TEXTS[i] for i in SEEN], names)


def learned(rows, kind="classifier", *, alone=True, **options):
    """The model with some rows learned, which have the new label alone, or all their labels."""
    model = copy.deepcopy(fitted(kind))
    names = [[NEW] if alone and HAS[i] else NAMES[i] for i in rows]
    X = TRAIN.X[rows] if kind == "classifier" else [TEXTS[i] for i in rows]
    return model.partial_fit(X, names, **options)


def top(model, k):
    X = TEST.X if isinstance(model, LdSMClassifier) else TEST_TEXTS
    return model.predict_topk(X, k)


def precision_of_others(model):
    best = top(model, 1)[0][~TEST_HAS, 0].tolist()
    truth = [row for row, has in zip(TEST_NAMES, TEST_HAS, strict=True) if not has]
    return np.mean([label in row for label, row in zip(best, truth, strict=True)])


def recall(model):
    return np.mean([NEW in row for row in top(model, 5)[0][TEST_HAS].tolist()])


def micro_f1(model):
    labels, scores = top(model, 10)
    chosen = [set(row[s >= 0.5]) for row, s in zip(labels, scores, strict=True)]
    hits = sum(len(a & set(b)) for a, b in zip(chosen, TEST_NAMES, strict=True))
    return 2 * hits / (sum(map(len, chosen)) + sum(map(len, TEST_NAMES)))


def calibration_error(model):
    labels, scores = top(model, 5)
    columns = [[int(label[1:]) for label in row] for row in labels.tolist()]
    return reliability(TEST.Y, columns, scores).error


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("n_rows", [20, 100])
@pytest.mark.parametrize("kind", ["classifier", "tagger"])
def test_single_label_batch_keeps_other_answers(kind, n_rows, alone):
    model = learned(EXAMPLES[:n_rows], kind, alone=alone)
    assert precision_of_others(model) >= precision_of_others(fitted(kind)) - 0.01
    # The model knows nothing yet of how frequent the new label is.
    assert calibration_error(model) <= calibration_error(fitted(kind)) + 0.02


def test_one_label_is_learned():
    assert recall(learned(EXAMPLES[:100])) > 0.6


def test_skewed_batch_keeps_f1_and_calibration():
    before, after = fitted(), learned(np.concatenate([EXAMPLES, ORDINARY]), alone=False)
    assert micro_f1(after) >= 0.99 * micro_f1(before)
    assert calibration_error(after) <= calibration_error(before) + 0.02


def test_skewed_batch_keeps_blend():
    rows = [i for i, row in enumerate(NAMES) if "l17" in row and NEW not in row]  # most frequent
    models = [learned(rows, prior=prior) for prior in ("auto", "batch")]
    before, kept, refitted = (
        model.second_stage_.blend.coefficients for model in (fitted(), *models)
    )
    assert kept == before != refitted
    for model in models:
        assert model.training_["history"][-1]["skewed"] == len(rows)


def test_new_labels_keep_blend():
    after = learned(EXAMPLES, alone=False)
    assert after.second_stage_.blend.coefficients == fitted().second_stage_.blend.coefficients


def test_examples_leave_other_rankers_unchanged():
    """The classifiers of labels that the rows were not looked at for stay as they are."""
    before, after = fitted().second_stage_, learned(EXAMPLES[:50]).second_stage_
    old, new = (stage.ranker.matrix(300) for stage in (before, after))
    kept = [i for i in range(30) if i != int(NEW[1:])]
    assert (old != new[kept]).nnz == 0
    changed = learned(EXAMPLES[:50], absent="negative").second_stage_.ranker.matrix(300)
    assert (old != changed[kept]).nnz > 0


@pytest.mark.parametrize("seed", [0, 5])
def test_successive_single_label_batches(seed):
    """Ten batches, each of another new label: no drift."""
    hidden = [f"l{i:02}" for i in (3, 5, 6, 9, 11, 12, 13, 15, 19, 20)]
    names = [[label for label in row if label not in hidden] for row in NAMES]
    seen = np.array([not set(row) & set(hidden) for row in NAMES])
    rows = np.flatnonzero(seen)
    model = LdSMClassifier(5, random_state=seed).fit(TRAIN.X[rows], [names[i] for i in rows])
    others = np.array([not set(row) & set(hidden) for row in TEST_NAMES])
    truth = [row for row, other in zip(TEST_NAMES, others, strict=True) if other]

    def precision():
        best = model.predict_topk(TEST.X[others], 1)[0][:, 0].tolist()
        return np.mean([label in row for label, row in zip(best, truth, strict=True)])

    before = precision()
    for label in hidden:
        examples = [i for i, row in enumerate(NAMES) if label in row][:50]
        model.partial_fit(TRAIN.X[examples], [[label]] * len(examples))
    assert precision() >= before - 0.01


@pytest.mark.parametrize("option", ["absent", "prior"])
@pytest.mark.parametrize("kind", ["classifier", "tagger"])
def test_unknown_options_are_refused(kind, option):
    model = copy.deepcopy(fitted(kind))
    message = rf"The '{option}' parameter of \w+ must be 'auto' or .*\. Got 'never' instead\."
    with pytest.raises(ValueError, match=message):
        model.partial_fit([], [], **{option: "never"})
