"""Compare candidates for "auto" on held-out training rows, never on test rows.

    LDSM_DATA=... python benchmarks/defaults.py [bibtex delicious mediamill-sample eurlex57k]

One line per setting: precision at 1, 3 and 5 on the held-out rows, seconds of the fit.
"""

from __future__ import annotations

import sys
import time

import data
from ldsm import LdSMClassifier, metrics

GRID = {
    "nag": [{"n_epochs": e, "learning_rate": r} for e in (5, 10, 20) for r in (0.05, 0.1, 0.3)],
    "sgd": [{"n_epochs": e, "learning_rate": r} for e in (3, 5, 10) for r in (0.05, 0.1, 0.3)],
    "asgd": [{"n_epochs": e, "learning_rate": r} for e in (2, 3, 5) for r in (0.2, 0.5, 1.0)],
}


def held_out(name):
    """Rows to fit and rows to judge by."""
    if name == "eurlex57k":  # it comes with a development part
        return data.texts("eurlex57k", "dev")
    train, _ = data.load(name)
    return train.split(0.15, seed=0)


def main(names):
    for name in names:
        train, judge = held_out(name)
        trees = 3 if name == "eurlex57k" else 10
        for optimizer, settings in GRID.items():
            for setting in settings:
                clf = LdSMClassifier(
                    trees, optimizer=optimizer, random_state=0, n_jobs=2, **setting
                )
                start = time.perf_counter()
                clf.fit(train.X, train.Y)
                seconds = time.perf_counter() - start
                best = clf.predict_topk(judge.X, k=5)
                scores = [100 * metrics.precision_at_k(judge.Y, best, k) for k in (1, 3, 5)]
                print(
                    f"{name:16} {optimizer:5} epochs {setting['n_epochs']:2} "
                    f"rate {setting['learning_rate']:4} "
                    f"P@1/3/5 {scores[0]:5.1f} {scores[1]:5.1f} {scores[2]:5.1f}  {seconds:5.1f} s",
                    flush=True,
                )


main(sys.argv[1:] or ["bibtex", "delicious", "mediamill-sample", "eurlex57k"])
