"""Train one Annif project, suggest subjects, and record time and metrics.

    .venv-annif/bin/python annif_run.py PROJECT TRAIN TEST OUTPUT [--set NAME=VALUE ...]

Runs in Annif's environment, in a folder with ``projects.cfg`` and a loaded vocabulary, which
`annif_backends.py` creates. Training is timed from the file of documents to the saved model, and
suggestions for all test documents in Annif's own batches. Times are processor time in one thread,
without Annif's startup, so other programs hardly affect them. The metrics are those of
`annif eval`, with its limit of ten suggestions.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from itertools import islice
from pathlib import Path

import annif.registry
from annif.cli_util import open_documents
from annif.eval import EvaluationBatch
from annif.suggestion import SuggestionBatch

METRICS = ("NDCG", "Precision@1", "F1@5")
LIMIT = 10  # as `annif eval` has it


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("project")
    for name in ("train", "test", "output"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    with annif.create_flask_app().app_context():
        project = annif.registry.get_project(options.project)
        facts = measured(project, options)
    options.output.write_text(json.dumps(facts) + "\n")


def measured(project, options) -> dict:
    changes = dict(pair.split("=", 1) for pair in options.set)
    shutil.rmtree(project.datadir)  # of an earlier run
    project.initialize()  # the vocabulary, and the data of the analyzer
    started = time.process_time()
    project.train(documents(project, options.train), {project.backend.backend_id: changes}, 1)
    trained = time.process_time()
    corpus = documents(project, options.test)
    project.suggest(next(corpus.doc_batches))  # what is loaded or put together once
    begun = time.process_time()
    batches = list(project.suggest_corpus(corpus).batches)
    ended = time.process_time()
    gold = [document.subject_set for document in documents(project, options.test).documents]
    best = [batch.filter(LIMIT) for batch in batches]
    return {
        "train_seconds": trained - started,
        "suggest_ms": 1000 * (ended - begun) / len(gold),
        "bytes": size_of(project.datadir),
        "metrics": results(project, best, gold),
        "suggested": [[int(one.subject_id) for one in row] for batch in best for row in batch],
        "gold": [[int(number) for number in subjects] for subjects in gold],
    }


def documents(project, path: Path):
    return open_documents((str(path),), project.subjects, project.vocab_lang, None)


def results(project, best: list[SuggestionBatch], gold: list) -> dict[str, float]:
    evaluation, rest = EvaluationBatch(project.subjects), iter(gold)
    for batch in best:
        evaluation.evaluate_many(batch, list(islice(rest, len(batch))))
    found = evaluation.results(metrics=METRICS)
    return {name: float(found[name]) for name in METRICS}


def size_of(folder: str) -> dict[str, int]:
    """Bytes that suggesting needs, and those of the training data that are kept for --cached."""
    sizes = {"model": 0, "training data": 0}
    for path in Path(folder).rglob("*"):
        if path.is_file():
            kept = "-train" in os.fspath(path.relative_to(folder))
            sizes["training data" if kept else "model"] += path.stat().st_size
    return sizes


if __name__ == "__main__":
    main()
