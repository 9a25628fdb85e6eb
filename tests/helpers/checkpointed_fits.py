"""A fit for checkpoints, and how to watch it."""

from pathlib import Path

import scipy.sparse as sp

from ldsm import LdSMClassifier, _core
from problems import make_problem

X, Y = make_problem(0, "weights", n_rows=200, n_features=30, n_labels=8)
XS, YS = sp.csr_array(X), sp.csr_array(Y)


def small(**changes):
    return LdSMClassifier(**{"n_estimators": 4, "random_state": 3, **changes})


UNDISTURBED = small().fit(XS, YS).fingerprint_


def note_trees(monkeypatch):
    """From here on, the numbers of the trees that the core grows."""
    numbers = []
    grow = _core.grow_tree

    def noted(*arguments, tree, **options):
        numbers.append(tree)
        return grow(*arguments, tree=tree, **options)

    monkeypatch.setattr(_core, "grow_tree", noted)
    return numbers


def trees_in(folder):
    return sorted(path.name for path in Path(folder).glob("tree-*.ldsm"))
