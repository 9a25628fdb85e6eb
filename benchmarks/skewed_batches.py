"""Skewed batches: how examples of one new label affect predictions of everything else.

    python benchmarks/skewed_batches.py [--sets reuters,debtags,eurlex57k,yso]

Three frequent labels are hidden: their rows are left out of training. For each label, the model
then learns 20, 100 or 400 of its rows, with all labels ("complete") or with only the new one
("reduced"), or 400 of its rows with 600 ordinary ones ("mixed"). It is compared with a model
trained on all these rows. Figures are for the test rows.

Ten labels are then learned one after the other, 50 rows with only the label each ("rounds").

Writes its tables into benchmarks/README.md.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

import incremental_learning
import pages
import records
from ldsm import LdSMClassifier, TextTagger
from ldsm.metrics.calibration import reliability
from ldsm.text import default_vectorizer

SETS = ("reuters", "debtags", "eurlex57k", "yso")
KINDS = ("tagger", "classifier")
SIZES, ORDINARY = (20, 100, 400), 600
N_LABELS, LEAST_ROWS, MOST_ROWS, LEAST_TESTED = 3, 400, 1500, 10
N_ROUNDS, ROUND_ROWS = 10, 50
Facts = dict[str, Any]


class Trials:
    """One data set and one kind of model, trained without the rows of some labels."""

    def __init__(
        self, name: str, kind: str, n_labels: int = N_LABELS, least_rows: int = LEAST_ROWS
    ) -> None:
        train, self.test = incremental_learning.load(name)
        self.train, self.kind = train, kind
        counts, tested = (
            np.bincount(rows.Y.indices, minlength=train.Y.shape[1]) for rows in (train, self.test)
        )
        rng = np.random.default_rng(0)
        usual = (counts >= least_rows) & (counts <= MOST_ROWS) & (tested >= LEAST_TESTED)
        able = np.flatnonzero(usual)
        if len(able) < n_labels:
            able = np.argsort(-counts)[: 4 * n_labels]
        self.labels = rng.choice(able, n_labels, replace=False).tolist()
        has = np.asarray(train.Y[:, self.labels].sum(axis=1)).ravel() > 0
        rest = rng.permutation(np.flatnonzero(~has))
        n = min(ORDINARY, len(rest) // 4)
        self.ordinary, self.seen = rest[:n], np.sort(rest[n:])
        self.rows = {
            label: rng.permutation(np.flatnonzero(train.Y[:, [label]].toarray()))
            for label in self.labels
        }
        self.vectorizer = None
        if kind == "classifier" and isinstance(train.X, list):
            self.vectorizer = default_vectorizer().fit([train.X[i] for i in self.seen])
        self.base = self.fit(train.take(self.seen))
        self.before = self.measured(self.base)

    def features(self, X: Any) -> Any:
        return X if self.vectorizer is None else self.vectorizer.transform(X)

    def fit(self, rows: incremental_learning.Rows) -> Any:
        classifier = LdSMClassifier(n_jobs=incremental_learning.THREADS)
        model = TextTagger(classifier) if self.kind == "tagger" else classifier
        return model.fit(self.features(rows.X), rows.labels)

    def batch(self, label: int, size: int, *, reduced: bool) -> incremental_learning.Rows:
        rows = self.train.take(self.rows[label][:size])
        return rows.without([label], only=True) if reduced else rows

    def measured(self, model: Any) -> Facts:
        """P@1 without and recall@5 with each label, calibration error and F1 at the threshold."""
        k = min(5, len(model.classes_))
        names, scores = model.predict_topk(self.features(self.test.X), k)
        number = {name: i for i, name in enumerate(self.train.names)}
        top = np.array([[number[name] for name in row] for row in names.tolist()])
        truth = sp.csr_array(self.test.Y)
        hits = np.stack([truth[np.arange(len(top)), top[:, i]] > 0 for i in range(k)], axis=1)
        others, recall = {}, {}
        for label in self.labels:
            has = truth[:, [label]].toarray().ravel() > 0
            others[label] = float(100 * hits[~has, 0].mean())
            recall[label] = float(100 * (top[has] == label).any(axis=1).mean())
        chosen = scores >= getattr(model, "classifier_", model).threshold_
        f1 = 200 * (hits & chosen).sum() / max(1, chosen.sum() + truth.nnz)
        error = 100 * reliability(self.test.Y, top, np.clip(scores, 0, 1)).error
        has = np.asarray(truth[:, self.labels].sum(axis=1)).ravel() > 0
        return {
            "others": others,
            "without": float(100 * hits[~has, 0].mean()),  # P@1 of rows without any of the labels
            "recall": recall,
            "error": float(error),
            "f1": float(f1),
        }

    def learned(self, label: int, rows: incremental_learning.Rows) -> Facts:
        model = copy.deepcopy(self.base)
        model.partial_fit(self.features(rows.X), rows.labels)
        return self.shown(label, self.measured(model))

    def shown(self, label: int, facts: Facts) -> Facts:
        """What is shown of a model that has learned the label."""
        return {
            "others": facts["others"][label] - self.before["others"][label],
            "recall": facts["recall"][label],
            "error": facts["error"],
            "f1": facts["f1"],
        }

    def run(self) -> Facts:
        facts: Facts = {"before": {name: self.before[name] for name in ("error", "f1")}}
        for size in SIZES:
            for reduced in (False, True):
                batches = [self.batch(label, size, reduced=reduced) for label in self.labels]
                rows = self.train.take(self.seen)
                for batch in batches:
                    rows = incremental_learning.joined(rows, batch)
                again = self.measured(self.fit(rows))
                name = f"{size} {'reduced' if reduced else 'complete'}"
                facts[name] = [
                    {**self.learned(label, batch), "again": self.shown(label, again)}
                    for label, batch in zip(self.labels, batches, strict=True)
                ]
        ordinary = self.train.take(self.ordinary)
        facts["mixed"] = [
            self.learned(
                label, incremental_learning.joined(self.batch(label, 400, reduced=False), ordinary)
            )
            for label in self.labels
        ]
        return facts

    def rounds(self) -> Facts:
        """Learn each label in a batch of its own, and compare with a fit to all rows."""
        model, rows = copy.deepcopy(self.base), self.train.take(self.seen)
        facts: Facts = {"before": self.summary(self.before), "rounds": []}
        for label in self.labels:
            batch = self.batch(label, ROUND_ROWS, reduced=True)
            rows = incremental_learning.joined(rows, batch)
            model.partial_fit(self.features(batch.X), batch.labels)
            facts["rounds"].append(self.summary(self.measured(model)))
        return facts | {"again": self.summary(self.measured(self.fit(rows)))}

    @staticmethod
    def summary(facts: Facts) -> Facts:
        recall = float(np.mean(list(facts["recall"].values())))
        return {**facts, "others": facts["without"], "recall": recall}


HEADER = (
    "",
    "batch",
    "P@1 of other rows, change",
    "recall@5 of the label: updated / retrained",
    "calibration error: before / updated / retrained",
    "micro-F1 at the threshold: before / updated / retrained",
)
FORMS = {"others": "+.2f", "recall": ".0f", "error": ".2f", "f1": ".1f"}


def table(results: dict[str, Facts]) -> str:
    """A row for each kind of batch; three labels in each cell."""
    rows = []
    for name, facts in results.items():
        before = facts["before"]
        for batch, runs in facts.items():
            if batch == "before":
                continue
            again = [run["again"] for run in runs if "again" in run]
            updated, retrained = cells(runs), cells(again) if again else dict.fromkeys(FORMS, "–")
            rows.append(
                (
                    name,
                    batch,
                    updated["others"],
                    f"{updated['recall']} / {retrained['recall']}",
                    f"{before['error']:.2f} / {updated['error']} / {retrained['error']}",
                    f"{before['f1']:.1f} / {updated['f1']} / {retrained['f1']}",
                )
            )
    return pages.table(HEADER, rows)


ROUNDS_HEADER = (
    "ten labels in turn",
    "P@1 of rows without them: before / after 1, 4, 7 and 10 batches / retrained",
    "recall@5 of the ten: updated / retrained",
    "calibration error: before / updated / retrained",
    "micro-F1 at the threshold: before / updated / retrained",
)


def rounds_table(results: dict[str, Facts]) -> str:
    rows = []
    for name, facts in results.items():
        shown = [facts["before"], *facts["rounds"][::3], facts["again"]]
        ends = [facts["before"], facts["rounds"][-1], facts["again"]]
        rows.append(
            [name, " / ".join(f"{each['others']:.2f}" for each in shown)]
            + [" / ".join(f"{each['recall']:.0f}" for each in ends[1:])]
            + [
                " / ".join(format(each[key], FORMS[key]) for each in ends)
                for key in ("error", "f1")
            ]
        )
    return pages.table(ROUNDS_HEADER, rows)


def cells(runs: list[Facts]) -> dict[str, str]:
    """The values of each label; one, if all are equal."""
    values = {key: [format(run[key], form) for run in runs] for key, form in FORMS.items()}
    return {key: its[0] if len(set(its)) == 1 else ", ".join(its) for key, its in values.items()}


def main() -> None:
    parser = records.arguments(__doc__ or "", "skewed_batches")
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    sets = ["quick"] if options.quick else options.sets.split(",")
    kinds = ("classifier",) if options.quick else KINDS
    results = {
        f"{name}, {kind}": records.kept(
            options.output, f"{name}_{kind}", {}, lambda path, n=name, k=kind: Trials(n, k).run()
        )
        for name in sets
        for kind in kinds
    }
    rounds = {
        f"{name}, {kind}": records.kept(
            options.output,
            f"{name}_{kind}_rounds",
            {},
            lambda path, n=name, k=kind: Trials(n, k, N_ROUNDS, ROUND_ROWS).rounds(),
        )
        for name in sets
        for kind in kinds
    }
    records.write_json(options.output / "results.json", {"batches": results, "rounds": rounds})
    text = f"{records.machine_sentence()}\n\n{table(results)}\n{rounds_table(rounds)}"
    print(text)
    if not options.quick:
        pages.publish(pages.BENCHMARKS, "skewed", text)


if __name__ == "__main__":
    main()
