"""Cross-validation in every form of X and y, against a loop; scikit-learn's own where it goes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from ldsm.evaluation import cross_validate

DATA = datasets.make_xmc(200, 40, 12, seed=0)
NAMES = [[f"l{label:02}" for label in row] for row in DATA.labels]
SMALL = LdSMClassifier(2)
TEXTS = [" ".join(f"word{j}" for j in DATA.X[[i]].indices) for i in range(len(DATA))]


def by_hand(folds):
    scores = []
    for train, test in folds.split(TEXTS):
        clf = LdSMClassifier(2).fit(DATA.X[train], DATA.Y[train])
        scores.append(metrics.precision_at_k(DATA.Y[test], clf.predict_topk(DATA.X[test], 3)[0], 3))
    return scores


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (DATA.X, DATA.Y),
        (DATA.X.toarray(), DATA.Y.toarray()),
        (sp.coo_array(DATA.X), NAMES),
        (DATA, None),
    ],
)
def test_forms_match_loop(X, y):
    folds = KFold(3)
    found = cross_validate(SMALL, X, y, cv=folds)
    values = [fold.ranking["precision@3"] for fold in found.folds]
    assert values == pytest.approx(by_hand(folds), abs=0.02)  # names may order ties differently
    assert found.mean["precision@3"] == pytest.approx(np.mean(values))
    assert found.std["precision@3"] == pytest.approx(np.std(values, ddof=1))
    assert not hasattr(SMALL, "model_")  # only clones were fitted


def test_texts_and_one_label_per_row():
    found = cross_validate(TextTagger(SMALL), TEXTS, NAMES, cv=2)
    assert len(found.folds) == 2 and found.mean["precision@1"] > 0.2
    one = [row[0] if row else "none" for row in NAMES]
    assert cross_validate(SMALL, DATA.X, one, cv=2).mean["precision@1"] > 0.2


def test_held_out_labels_are_misses():
    y = [["a"]] * 10 + [["b"]] * 10
    found = cross_validate(LdSMClassifier(1), np.eye(20), y, cv=KFold(2), ks=(1,))
    assert found.mean["precision@1"] == 0
    assert all(fold.ranking["recall@1"] == 0 for fold in found.folds)


def test_printed_means_and_deviations():
    text = str(cross_validate(SMALL, DATA, cv=2))
    lines = text.splitlines()
    assert lines[0].split() == ["%", "@1", "@3", "@5"]
    assert lines[1].startswith("P ") and lines[1].count("±") == 3
    assert any(line.startswith("F1, micro: ") for line in lines)
    same = [str(cross_validate(SMALL, DATA, cv=2, random_state=seed)) for seed in (0, 1)]
    assert same[0] == text != same[1]


@pytest.mark.parametrize("cv", [1, 0, 2.5, True, 201, "5", None])
def test_invalid_folds(cv):
    with pytest.raises(ValueError, match=r"'cv' must be an int in \[2, 200\]"):
        cross_validate(SMALL, DATA, cv=cv)


def test_wrong_use():
    with pytest.raises(ValueError, match="includes its labels"):
        cross_validate(SMALL, DATA, DATA.Y)
    with pytest.raises(ValueError, match="must be an LdSMClassifier or TextTagger. Got KFold"):
        cross_validate(KFold(), DATA)


def test_scikit_learn_cross_validation():
    scorer = metrics.topk_scorer("precision", 3)
    expected = by_hand(KFold(3))
    dense = cross_val_score(SMALL, DATA.X, DATA.Y.toarray(), cv=3, scoring=scorer)
    assert dense.tolist() == pytest.approx(expected)
    lists = cross_val_score(SMALL, DATA.X, NAMES, cv=KFold(3), scoring=scorer)
    assert lists.tolist() == pytest.approx(expected, abs=0.02)
    texts = cross_val_score(TextTagger(SMALL), TEXTS, NAMES, cv=3, scoring=scorer)
    assert (texts > 0.2).all()
    search = GridSearchCV(SMALL, {"n_estimators": [1, 2]}, cv=KFold(2), scoring=scorer)
    assert search.fit(DATA.X, DATA.Y).best_score_ > 0.2  # sparse y
