"""scikit-learn's own checks of the estimator contract."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ldsm import LdSMClassifier

# Checks that cannot hold, each with its reason.
EXPECTED_FAILURES = {
    "check_classifiers_multilabel_output_format_predict_proba": (
        "wants every probability strictly between 0 and 1; a leaf where no row, or every row, "
        "has a label gives exactly 0 or 1"
    ),
}


@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
@parametrize_with_checks(
    [LdSMClassifier(n_estimators=5, random_state=0), LdSMClassifier(n_estimators=3, arity=3)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
