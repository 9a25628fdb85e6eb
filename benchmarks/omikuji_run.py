"""Train and time omikuji's Parabel on one data set; runs in the peers' environment.

usage: omikuji_run.py TRAIN.txt TEST.txt     prints one line of JSON
"""

import json
import sys
import time

import omikuji


def read_rows(path):
    with open(path) as lines:
        next(lines)
        for line in lines:
            parts = line.split()
            labels = {int(k) for p in parts if ":" not in p for k in p.split(",")}
            features = [(int(f), float(v)) for f, v in (p.split(":") for p in parts if ":" in p)]
            yield labels, features


def main(train, test):
    start = time.perf_counter()
    model = omikuji.Model.train_on_data(train, omikuji.Model.default_hyper_param(), n_threads=1)
    train_seconds = time.perf_counter() - start
    rows = list(read_rows(test))
    start = time.perf_counter()
    answers = [model.predict(features, top_k=5) for _, features in rows]
    predict_seconds = time.perf_counter() - start
    hits = [
        [label in labels for label, _ in answer[:5]]
        for (labels, _), answer in zip(rows, answers, strict=True)
    ]
    precision = [100 * sum(sum(h[:k]) for h in hits) / k / len(rows) for k in (1, 3, 5)]
    result = {
        "train_seconds": train_seconds,
        "predict_ms_per_row": 1e3 * predict_seconds / len(rows),
        "precision": precision,
    }
    print(json.dumps(result))


main(*sys.argv[1:])
