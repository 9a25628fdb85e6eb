"""A problem and a classifier for it, small enough for every test."""

import numpy as np
import scipy.sparse as sp

from ldsm import LdSMClassifier
from problems import make_problem

X, Y = make_problem(0, "weights", n_rows=300, n_features=40, n_labels=12)
XS, YS = sp.csr_array(X), sp.csr_array(Y)


def small(**changes):
    return LdSMClassifier(**{"n_estimators": 4, "random_state": 3, **changes})


def lists_of(Y, names):
    return [[names[k] for k in np.flatnonzero(row)] for row in Y]
