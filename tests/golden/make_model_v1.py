"""Make model_v1.ldsm and model_v1.json: run once, with the first version that wrote format 1.

They are never made again: the test is that files of that time still load, with the same bits.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ldsm import LdSMClassifier

FOLDER = Path(__file__).parent


def main() -> None:
    rng = np.random.default_rng(2020)
    X = np.round(rng.random((120, 16)) * (rng.random((120, 16)) < 0.4), 3).astype(np.float32)
    weights = rng.normal(size=(16, 6))
    names = ["économie", "pêche", "право", "法律", "tag five", "🐟"]
    tags = [[names[k] for k in np.flatnonzero(row)] for row in X @ weights > 0.4]
    clf = LdSMClassifier(n_estimators=4, arity=3, subsample=0.8, random_state=7).fit(X, tags)
    clf.tune_threshold(X, tags, per_label=True)
    clf.save(FOLDER / "model_v1.ldsm")
    labels, scores = clf.predict_topk(X[:20], k=4)
    golden = {
        "fingerprint": clf.fingerprint_,
        "X": X[:20].tolist(),
        "labels": labels.tolist(),
        "scores": [[float(score).hex() for score in row] for row in scores],
        "sets": clf.predict(X[:20]).toarray().tolist(),
    }
    with open(FOLDER / "model_v1.json", "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, indent=0)


if __name__ == "__main__":
    main()
