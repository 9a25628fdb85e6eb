"""Row weights: refused with the reason, on every way to `fit`, and never half-way."""

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.validation import has_fit_parameter

from ldsm import LdSMClassifier, TextTagger

X = np.random.default_rng(0).random((60, 4))
Y = (X > 0.5).astype(int)
WEIGHTS = np.ones(60)
TEXTS, TAGS = ["cod quota", "beef import"] * 10, [["fish"], ["meat"]] * 10
REFUSED = r"does not support sample_weight: .*tail=1.* 'Imbalance, weights, rare labels'"


def small():
    return LdSMClassifier(2, random_state=0)


def test_fit_refuses_weights():
    clf = small()
    with pytest.raises(ValueError, match=f"LdSMClassifier.fit {REFUSED}"):
        clf.fit(X, Y, sample_weight=WEIGHTS)
    assert not hasattr(clf, "model_")
    with pytest.raises(ValueError, match=f"LdSMClassifier.partial_fit {REFUSED}"):
        clf.partial_fit(X, Y, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match=f"LdSMClassifier.score {REFUSED}"):
        clf.fit(X, Y).score(X, Y, sample_weight=WEIGHTS)
    tagger = TextTagger(small())
    with pytest.raises(ValueError, match=f"TextTagger.fit {REFUSED}"):
        tagger.fit(TEXTS, TAGS, sample_weight=np.ones(20))
    with pytest.raises(ValueError, match=f"TextTagger.partial_fit {REFUSED}"):
        tagger.partial_fit(TEXTS, TAGS, sample_weight=np.ones(20))


def test_no_weights_are_accepted():
    """Wrappers may pass None."""
    expected = small().fit(X, Y).fingerprint_
    assert small().fit(X, Y, sample_weight=None).fingerprint_ == expected
    assert small().partial_fit(X, Y, sample_weight=None).fingerprint_ == expected


def test_pipelines_and_searches_refuse_weights():
    pipeline = make_pipeline(MaxAbsScaler(), small())
    with pytest.raises(ValueError, match=REFUSED):
        pipeline.fit(X, Y, ldsmclassifier__sample_weight=WEIGHTS)
    search = GridSearchCV(small(), {"arity": [2, 4]}, cv=KFold(3))
    with pytest.raises(ValueError, match=f"(?s)All the 6 fits failed.*{REFUSED}"):
        search.fit(X, Y, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="Invalid parameter 'class_weight'"):
        small().set_params(class_weight="balanced")


def test_ensembles_draw_rows_instead():
    """scikit-learn asks the signature whether an estimator supports weights."""
    assert not has_fit_parameter(small(), "sample_weight")
    bagging = BaggingClassifier(small(), n_estimators=2, random_state=0).fit(X, Y[:, 0])
    assert bagging.score(X, Y[:, 0]) > 0.9


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_other_arguments_stay_errors(method):
    for estimator, *rows in ((small(), X, Y), (TextTagger(small()), TEXTS, TAGS)):
        with pytest.raises(TypeError, match=rf"{method}\(\) got an unexpected .* 'weights'"):
            getattr(estimator, method)(*rows, weights=WEIGHTS)
