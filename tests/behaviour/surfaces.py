"""Every way to ask a model, behind the same methods. A new one is a class and a line in SURFACES.

A surface answers (`answers`), predicts sets (`sets`) and explains (`explain`). It raises a
ValueError for whatever it refuses, with the message that its users see. What it cannot be asked is
missing from its `options`.
"""

import io
import json
import re
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import scipy.sparse as sp

from ldsm import LdSMClassifier, TextTagger, datasets, load

Answers = list[list[tuple[str, float]]]
WORDS = 10  # of an explanation


@dataclass(frozen=True)
class Case:
    """A model, its file, and what it is asked: texts or rows of features."""

    model: TextTagger | LdSMClassifier
    file: Path
    base: Path  # the model before it was updated
    more: tuple[Any, Any]  # what it was updated with
    asked: Any

    @property
    def reads_texts(self) -> bool:
        return isinstance(self.model, TextTagger)

    @property
    def labels(self) -> list[str]:
        return self.model.classes_.tolist()


class Explained(NamedTuple):
    """Why a label has its score."""

    label: str
    score: float
    shares: dict[str, float]
    reasons: list[tuple[str, float]]


class Surface:
    """What all surfaces have in common."""

    options: frozenset[str] = frozenset()
    called: dict[str, str] = {}  # noqa: RUF012  # what the surface calls an option
    least = 0.0  # smaller scores are shown as 0; above 0, scores are rounded
    needs_k_labels = False  # answers are arrays: k cannot be above the number of labels
    answers_nothing = True  # no rows are answered with no answers
    skips_empty = False  # a text without a word has no answers
    checks_threshold = True  # a threshold that no score can reach is refused

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder, self.stack = case, folder, ExitStack()
        self.open()

    def open(self) -> None:
        pass

    def name_of(self, option: str) -> str:
        return self.called.get(option, option)


def pairs(labels: Any, scores: Any) -> Answers:
    """Labels with their scores, less those that only fill up a row."""
    rows = zip(labels.tolist(), scores.tolist(), strict=True)
    return [[pair for pair in zip(*row, strict=True) if pair[1] > 0] for row in rows]


# -- in this process ---------------------------------------------------------------------------


class Texts(Surface):
    """A tagger, as `fit` and `partial_fit` left it."""

    options = frozenset({"tail", "only", "sets", "explain", "documents"})

    def open(self) -> None:
        self.model: Any = self.case.model

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        return self.model.predict(asked, k, **options)

    def sets(self, asked: Any) -> list[list[str]]:
        return [[tag for tag, _ in row] for row in self.model.predict_sets(asked)]

    def explain(self, one: Any, k: int = 3) -> list[Explained]:
        found = self.model.explain(one[0], max_words=WORDS, max_tags=k).scores
        return [Explained(score.tag, score.score, score.shares, score.words) for score in found]


class Rows(Surface):
    """A classifier, as `fit` and `partial_fit` left it."""

    options = frozenset({"tail", "only", "sets", "explain", "explain label", "features"})
    needs_k_labels = True
    answers_nothing = False  # as scikit-learn's estimators

    def open(self) -> None:
        self.model: Any = self.case.model

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        return pairs(*self.model.predict_topk(asked, k, **options))

    def sets(self, asked: Any) -> list[list[str]]:
        return self.model.predict(asked)

    def explain(self, one: Any, k: int = 3, label: str | None = None) -> list[Explained]:
        labels = None if label is None else [label]
        found = self.model.explain_scores(one, k, WORDS, labels=labels)
        return [
            Explained(score.label, score.score, score.shares, self.named(score.reasons))
            for score in found
        ]

    def named(self, reasons: list[tuple[int, float]]) -> list[tuple[str, float]]:
        return [(str(feature), part) for feature, part in reasons]


class RowsOfTexts(Rows):
    """The classifier of a tagger, asked with the features of the texts."""

    def open(self) -> None:
        self.tagger, self.model = self.case.model, self.case.model.classifier_

    options = Rows.options - {"features"}

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        return super().answers(self.tagger.vectorize(asked), k, **options)

    def sets(self, asked: Any) -> list[list[str]]:
        decided = self.model.predict(self.tagger.vectorize(asked)).toarray()  # a matrix, as its Y
        found = [{*self.model.classes_[row.astype(bool)].tolist()} for row in decided]
        best = self.answers(asked, decided.shape[1])
        return [[tag for tag, _ in row if tag in own] for row, own in zip(best, found, strict=True)]

    def explain(self, one: Any, k: int = 3, label: str | None = None) -> list[Explained]:
        return super().explain(self.tagger.vectorize(one), k, label)

    def named(self, reasons: list[tuple[int, float]]) -> list[tuple[str, float]]:
        return [(self.tagger.features_.names[feature], part) for feature, part in reasons]


def loaded(surface: type[Surface]) -> type[Surface]:
    class Loaded(surface):
        def open(self) -> None:
            self.model = load(self.case.file)

    return Loaded


def mapped(surface: type[Surface]) -> type[Surface]:
    class Mapped(surface):
        def open(self) -> None:
            self.model = load(self.case.file, verify=False)

    return Mapped


def updated(surface: type[Surface]) -> type[Surface]:
    class Updated(surface):
        def open(self) -> None:
            self.model = load(self.case.base).partial_fit(*self.case.more)

    return Updated


# -- elsewhere ---------------------------------------------------------------------------------


class Command(Surface):
    """`ldsm predict` and `ldsm explain`."""

    options = frozenset(
        {"tail", "only", "sets", "explain", "explain label", "threshold", "documents"}
    )
    least = 0.5e-6

    def run(self, command: str, *arguments: Any) -> str:
        from ldsm.cli.main import _run

        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = _run([command, str(self.case.file), *map(str, arguments), "--json"])
        if code:
            raise ValueError(err.getvalue())
        return out.getvalue()

    def rows(self, asked: Any) -> Path:
        """A file of what is asked."""
        if not self.case.reads_texts:
            path = self.folder / "asked.txt"
            datasets.save_xmlrepo(datasets.Dataset(asked, sp.csr_array((asked.shape[0], 1))), path)
            return path
        path = self.folder / "asked.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in asked))
        return path

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        if "threshold" in options:  # predicts sets, of any size
            return [row[:k] for row in self.predict(asked, **options)]
        return self.predict(asked, "-k", k, **options)

    def predict(self, asked: Any, *how: Any, **options: Any) -> Answers:
        several = {name: v if isinstance(v, list) else [v] for name, v in options.items()}
        given = [part for name, v in several.items() for one in v for part in (f"--{name}", one)]
        lines = self.run("predict", self.rows(asked), *how, *given).splitlines()
        found = [json.loads(line) for line in lines]
        rows = (zip(row["labels"], row["scores"], strict=True) for row in found)
        return [[pair for pair in row if pair[1] > 0] for row in rows]

    def sets(self, asked: Any) -> list[list[str]]:
        return [[label for label, _ in row] for row in self.predict(asked, "--sets")]

    def explain(self, one: Any, k: int = 3, label: str | None = None) -> list[Explained]:
        how = ["-k", k] if label is None else ["--label", label]
        found = json.loads(self.run("explain", self.rows(one), *how))["scores"]
        return [
            Explained(one["tag"], one["score"], one["shares"], [(w, p) for w, p in one["words"]])
            for one in found
        ]


class Cluster(Surface):
    """`ldsm.dask.predict` by two processes."""

    options = frozenset({"tail", "features"})
    needs_k_labels = True
    answers_nothing = False  # there is no work to hand out

    def open(self) -> None:
        from dask_clusters import cluster, settings

        self.stack.enter_context(settings())
        self.client = self.stack.enter_context(cluster(2))

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        import ldsm.dask

        store = self.folder / f"store {len(list(self.folder.iterdir()))}"
        if self.case.reads_texts:
            data = datasets.Dataset.from_texts(asked, [[self.case.labels[0]]] * len(asked))
        else:
            data = datasets.Dataset(asked, sp.csr_array((asked.shape[0], 1)))
        data.save(store)
        found = ldsm.dask.predict(self.client, self.case.file, store, k, rows_per_task=7, **options)
        return pairs(*found)


class Service(Surface):
    """`ldsm serve`, asked as Annif is."""

    options = frozenset(
        {"tail", "threshold", "only", "explain", "explain label", "sets", "documents"}
    )
    called = {"k": "limit"}  # noqa: RUF012

    def open(self) -> None:
        from ldsm.serve import create_app
        from services import running

        self.client = self.stack.enter_context(running(create_app([self.case.file])))
        self.path = f"/v1/projects/{self.case.file.stem}"

    def checked(self, answer: Any) -> Any:
        if answer.status >= 400:
            raise ValueError(answer.json.get("title") or answer.json["error"])
        return answer.json

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        chosen = {name: options.pop(name) for name in ("only", "without") if name in options}
        query = "&".join(f"{name}={value}" for name, value in {"limit": k, **options}.items())
        body = {"documents": [{"text": text} for text in asked], **chosen}
        rows = self.checked(self.client.post(f"{self.path}/suggest-batch?{query}", body))
        return [[(one["uri"], one["score"]) for one in row["results"]] for row in rows]

    def sets(self, asked: Any) -> list[list[str]]:
        k, threshold = len(self.case.labels), self.case.model.classifier_.threshold_
        return [[tag for tag, _ in row] for row in self.answers(asked, k, threshold=threshold)]

    def explain(self, one: Any, k: int = 3, label: str | None = None) -> list[Explained]:
        labels = [label for label, _ in self.answers(one, k)[0]] if label is None else [label]
        found = []
        for label in labels:
            fields = {"text": one[0], "label": label, "max_words": WORDS}
            facts = self.checked(self.client.form(f"{self.path}/explain", **fields))
            reasons = [(one["word"], one["weight"]) for one in facts["words"]]
            if facts["listed"]:
                found.append(Explained(facts["uri"], facts["score"], facts["shares"], reasons))
        return found


class Inference(Service):
    """`ldsm serve`, asked by the Open Inference Protocol."""

    options = frozenset({"tail", "threshold", "only", "sets", "documents"})
    called = {"threshold": "min_score"}  # noqa: RUF012

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        options = {self.called.get(name, name): value for name, value in options.items()}
        tensor = {"name": "text", "datatype": "BYTES", "shape": [len(asked)], "data": [*asked]}
        body = {"inputs": [tensor], "parameters": {"k": k, **options}}
        path = f"/v2/models/{self.case.file.stem}/infer"
        labels, scores = self.checked(self.client.post(path, body))["outputs"]
        width = labels["shape"][1]
        both = list(zip(labels["data"], scores["data"], strict=True))
        rows = (both[i * width : (i + 1) * width] for i in range(len(asked)))
        return [[pair for pair in row if pair[0]] for row in rows]


class Pyfunc(Surface):
    """`ldsm.mlflow.PyfuncModel`, which MLflow calls."""

    options = frozenset({"tail", "threshold", "features", "documents"})
    called = {"threshold": "min_score"}  # noqa: RUF012

    def open(self) -> None:
        from ldsm.mlflow import PyfuncModel

        self.model: Any = PyfuncModel(load(self.case.file))
        self.answers_nothing = self.case.reads_texts

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        options = {self.called.get(name, name): value for name, value in options.items()}
        found = self.model.predict(asked, params={"k": k, **options})
        return [list(zip(*row, strict=True)) for row in found[["labels", "scores"]].to_numpy()]


class MLflow(Pyfunc):
    """The same, saved and loaded by MLflow."""

    def open(self) -> None:
        import mlflow.pyfunc

        import ldsm.mlflow

        ldsm.mlflow.save_model(self.case.file, self.folder / "model")
        self.model = mlflow.pyfunc.load_model(str(self.folder / "model"))
        self.answers_nothing = self.case.reads_texts

    def answers(self, asked: Any, k: Any = 5, **options: Any) -> Answers:
        import mlflow

        try:
            return super().answers(asked, k, **options)
        except mlflow.MlflowException as error:
            raise ValueError(str(error)) from error


class Annif(Surface):
    """The backend `ldsm`, by Annif's own command."""

    options = frozenset({"threshold"})
    skips_empty = True
    checks_threshold = False  # Annif compares the scores itself, with any number
    called = {"k": "limit"}  # noqa: RUF012
    least = 0.5e-4

    def open(self) -> None:
        from annif_runs import Annif as Program
        from annif_runs import project

        self.annif = Program(self.folder)
        (self.folder / "projects.cfg").write_text(project("p-en", "p", vocab="v"))
        lines = (f"<{uri}>\t{uri.rpartition('/')[2]}\n" for uri in self.case.labels)
        (self.folder / "v.tsv").write_text("".join(lines))
        self.annif("load-vocab", "--language", "en", "v", "v.tsv")
        trained = self.folder / "data" / "projects" / "p-en"
        trained.mkdir(parents=True)
        shutil.copy(self.case.file, trained / "ldsm-model.ldsm")

    def answers(self, asked: Any, k: Any = 5, threshold: Any = 0.0) -> Answers:
        names = [f"{number}.txt" for number in range(len(asked))]
        for name, text in zip(names, asked, strict=True):
            (self.folder / name).write_text(text)
        options = ["--limit", k, "--threshold", threshold, "-b", f"ldsm.limit={k}"]
        done = self.annif.run("suggest", "p-en", *options, *names)
        if done.returncode:
            raise ValueError(done.stderr.strip().splitlines()[-1])
        parts = re.split(r"Suggestions for .*\n", done.stdout)[1:]
        found = [re.findall(r"^<(.*?)>\t.*\t([\d.]+)$", part, re.M) for part in parts]
        return [[(uri, float(score)) for uri, score in rows if float(score)] for rows in found]


SURFACES: dict[str, dict[str, type[Surface]]] = {
    "texts": {
        "tagger": Texts,
        "classifier": RowsOfTexts,
        "loaded": loaded(Texts),
        "mapped": mapped(Texts),
        "updated": updated(Texts),
        "command": Command,
        "cluster": Cluster,
        "service": Service,
        "inference": Inference,
        "pyfunc": Pyfunc,
        "mlflow": MLflow,
        "annif": Annif,
    },
    "rows": {
        "classifier": Rows,
        "loaded": loaded(Rows),
        "mapped": mapped(Rows),
        "updated": updated(Rows),
        "command": Command,
        "cluster": Cluster,
        "pyfunc": Pyfunc,
        "mlflow": MLflow,
    },
}


def nothing(case: Case) -> Sequence[str] | sp.csr_array:
    """No rows at all."""
    return [] if case.reads_texts else case.asked[:0]
