"""Compare the Annif backends `ldsm` and `omikuji` on titles of works on archaeology.

    python benchmarks/annif_backends.py [--runs 3] [--held-out]

The data are 5,400 training and 1,004 test documents from Annif's tutorial. Each project runs in one
thread, in a process of Annif's environment (`make bench-annif` creates it). ldsm has its defaults
and runs with different seeds; omikuji has no seed, so its runs differ anyway. Writes its table into
benchmarks/README.md and docs/annif.md. With --held-out, 1,000 of the training documents replace the
test documents, and the table in docs/annif.md shows the effect of analyzers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import data
import judge
import pages
import records

HERE = Path(__file__).parent
GUIDE = pages.ROOT / "docs" / "annif.md"
ENVIRONMENT = pages.ROOT / ".venv-annif"
NLTK_DATA = pages.ROOT / "build" / "nltk" / "llama_index" / "core" / "_static" / "nltk_cache"
N_TRAIN, N_HELD_OUT = 5400, 1000
STEMS, LEMMAS = "snowball(finnish)", "simplemma(fi)"
BONSAI = {"cluster_balanced": "False", "cluster_k": "100", "max_depth": "3"}


@dataclass(frozen=True)
class Project:
    """A backend with settings; `analyzer` is Annif's, None for texts as they are."""

    title: str
    backend: str
    analyzer: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


OURS = Project("ldsm", "ldsm")
PROJECTS = (
    OURS,
    Project("omikuji, stems", "omikuji", STEMS),
    Project("omikuji, lemmas", "omikuji", LEMMAS),
    Project("omikuji as Bonsai, stems", "omikuji", STEMS, BONSAI),
    Project("omikuji as Bonsai, lemmas", "omikuji", LEMMAS, BONSAI),
)
ANALYZED = (
    Project("texts as they are", "ldsm"),
    *(Project(f"`analyzer={analyzer}`", "ldsm", analyzer) for analyzer in (STEMS, LEMMAS)),
)
METRICS = {"nDCG": "NDCG", "P@1": "Precision@1", "F1@5": "F1@5"}
Runs = list[dict[str, Any]]  # of one project


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        projects = ANALYZED if options.held_out else PROJECTS
        bench = Bench(Path(folder), projects)
        runs: dict[str, Runs] = {project.title: [] for project in projects}
        for number in range(options.runs):
            bench.split(number if options.held_out else None)
            for project in projects:  # side by side: the machine may be slower at times
                runs[project.title].append(bench.run(project, number))
    if options.held_out:
        print(text := table(runs, quality))
        pages.publish(GUIDE, "annif-analyzers", text)
    else:
        print(text := f"{table(runs, quality, costs)}\n{differences(runs)}\n")
        machine = records.machine_sentence().partition(";")[0]
        made = f"Means of {options.runs} runs; processor time. {machine}.\n\n{text}"
        pages.publish(pages.BENCHMARKS, "annif", made)
        pages.publish(GUIDE, "annif", text)


class Bench:
    """A folder with Annif's projects, vocabulary and documents."""

    def __init__(self, folder: Path, projects: Sequence[Project]) -> None:
        self.folder = folder
        self.named = {f"project-{number}": project for number, project in enumerate(projects)}
        self.corpus = data.folder() / "annif-archaeology"
        (folder / "projects.cfg").write_text(
            "\n".join(
                f"[{name}]\nlanguage=fi\nvocab=archaeology\nbackend={project.backend}\n"
                + (f"analyzer={project.analyzer}\n" if project.analyzer else "")
                for name, project in self.named.items()
            )
        )
        self.call("annif", "load-vocab", "archaeology", self.corpus / "yso-archaeology.ttl")

    def split(self, held_out_seed: int | None) -> None:
        """Write the documents; with a seed, test ones are drawn from the training ones."""
        lines = (self.corpus / "documents.tsv").read_text("utf-8").splitlines(keepends=True)
        train, test = lines[:N_TRAIN], lines[N_TRAIN:]
        if held_out_seed is not None:
            random.Random(held_out_seed).shuffle(train)
            train, test = train[N_HELD_OUT:], train[:N_HELD_OUT]
        for name, some in (("train.tsv", train), ("test.tsv", test)):
            (self.folder / name).write_text("".join(some), "utf-8")

    def run(self, project: Project, seed: int) -> dict[str, Any]:
        (name,) = (name for name, known in self.named.items() if known is project)
        changes = dict(project.settings)
        if project.backend == "ldsm":
            changes["random_state"] = str(seed)
        given = [f"--set={key}={value}" for key, value in changes.items()]
        files = ("train.tsv", "test.tsv", "facts.json")
        self.call("python", HERE / "annif_run.py", name, *files, *given)
        facts = json.loads((self.folder / "facts.json").read_text())
        print(project.title, seed, facts["metrics"], flush=True)
        return facts

    def call(self, program: str, *arguments: object) -> None:
        own = {
            "ANNIF_CONFIG": "ldsm.annif.Config",
            "ANNIF_PROJECTS": "projects.cfg",
            "FLASK_RUN_FROM_CLI": "true",  # no project is loaded at the start
            "NLTK_DATA": str(NLTK_DATA),
        }
        subprocess.run(
            [ENVIRONMENT / "bin" / program, *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, **own},
            check=True,
        )


def quality(runs: Runs) -> dict[str, str]:
    return {
        name: pages.mean_spread([run["metrics"][metric] for run in runs], 4)
        for name, metric in METRICS.items()
    }


def costs(runs: Runs) -> dict[str, str]:
    def size(part: str) -> str:
        return f"{np.mean([run['bytes'][part] for run in runs]) / 1e6:.1f}"

    return {
        "training s": f"{np.mean([run['train_seconds'] for run in runs]):.2f}",
        "ms/document": f"{np.mean([run['suggest_ms'] for run in runs]):.2f}",
        "model MB": size("model"),
        "training data MB": size("training data"),
    }


def table(runs: dict[str, Runs], *kinds: Callable[[Runs], dict[str, str]]) -> str:
    """A row for each project, the columns of all kinds side by side."""
    figures = {
        title: {name: text for kind in kinds for name, text in kind(some).items()}
        for title, some in runs.items()
    }
    heads = ["", *next(iter(figures.values()))]
    return pages.table(heads, [[title, *row.values()] for title, row in figures.items()])


def differences(runs: dict[str, Runs]) -> str:
    """ldsm against the best omikuji for each metric, document by document."""
    lines = []
    for name, metric in METRICS.items():
        means = {title: per_document(some, metric) for title, some in runs.items()}
        others = [title for title in means if title.startswith("omikuji")]
        best = max(others, key=lambda title: means[title].mean())
        gap, low, high = judge.difference(means[OURS.title], means[best])
        lines.append(f"- {name} against {best}: {gap:+.4f} [{low:+.4f}, {high:+.4f}]")
    return "\n".join(lines)


def per_document(runs: Runs, metric: str) -> Any:
    """A metric of each document, the mean of the runs."""
    return np.mean([of_documents(run, metric) for run in runs], axis=0)


def of_documents(run: dict[str, Any], metric: str) -> Any:
    """A metric of each document; their mean is Annif's, but for subjects of the same score."""
    pairs = zip(run["suggested"], map(set, run["gold"]), strict=True)
    values = np.array([SCORES[metric]([one in gold for one in row], gold) for row, gold in pairs])
    assert abs(values.mean() - run["metrics"][metric]) < 1e-3, metric
    return values


def ndcg(hits: list[bool], gold: set[int]) -> float:
    best = DISCOUNT[: len(gold)].sum()
    return float(DISCOUNT[: len(hits)] @ hits / best) if gold else 1.0


def f1(hits: list[bool], gold: set[int]) -> float:
    return 2 * sum(hits[:5]) / max(1, len(hits[:5]) + len(gold))


DISCOUNT = 1 / np.log2(np.arange(1000) + 2)
SCORES: dict[str, Callable[[list[bool], set[int]], float]] = {
    "NDCG": ndcg,
    "Precision@1": lambda hits, gold: float(any(hits[:1])),
    "F1@5": f1,
}


if __name__ == "__main__":
    main()
