"""How the tests run `ldsm`: as a process of its own, or within this one, which is much faster."""

import json
import os
import sys
from dataclasses import dataclass

import numpy as np

import patience
from ldsm import datasets
from ldsm.cli.main import _run

WORDS = {
    "fish": ["cod", "herring", "trawler", "catch"],
    "meat": ["beef", "pork", "slaughter", "veal"],
    "law": ["court", "statute", "appeal", "judge"],
    "trade": ["import", "export", "tariff", "customs"],
}


@dataclass
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def lines(self):
        return self.out.splitlines()


def process(*arguments, stdin="", **options):
    """Run `python -m ldsm`."""
    command = [sys.executable, "-m", "ldsm", *map(str, arguments)]
    run = patience.run(command, input=stdin, **options)
    return Run(run.returncode, run.stdout, run.stderr)


def within(capsys):
    """A function that runs a command in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = _run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run


def write_data(folder):
    """Small data in every format: texts whose words tell their tags, and a synthetic matrix."""
    random = np.random.default_rng(0)
    texts, tags = [], []
    for _ in range(150):
        chosen = sorted(random.choice(list(WORDS), size=random.integers(1, 3), replace=False))
        words = [w for tag in chosen for w in random.choice(WORDS[tag], size=3)]
        texts.append(" ".join([*words, "the", "of"]))
        tags.append(chosen)
    notes = datasets.Dataset.from_texts(texts, tags)
    datasets.save_jsonl(notes, folder / "notes.jsonl")
    datasets.save_table(notes, folder / "notes.csv", separator=";", text="body", labels="tags")
    for part, n_rows in (("train", 300), ("test", 100)):
        data = datasets.make_xmc(n_rows, 120, 25, seed=0, part=part)
        datasets.save_xmlrepo(data, folder / f"{part}.txt")
        datasets.save_svmlight(data, folder / f"{part}.svm")


def make_documents(n, seed):
    """Texts and tags with words that mislead, and "import" as a tag of its own now and then."""
    random = np.random.default_rng(seed)
    everything = sorted(word for words in WORDS.values() for word in words)
    texts, tags = [], []
    for _ in range(n):
        chosen = random.choice(list(WORDS), size=random.integers(1, 3), replace=False).tolist()
        words = [word for tag in chosen for word in random.choice(WORDS[tag], size=2)]
        words += [*random.choice(everything, size=2), "the", "of"]
        if "import" in words and random.random() < 0.2:
            chosen.append("import")
        random.shuffle(words)
        texts.append(" ".join(words))
        tags.append(sorted(chosen))
    return texts, tags


def leftovers(folder):
    """Files that an interrupted writer might leave."""
    return [name for name in os.listdir(folder) if name.startswith(".") or name.endswith(".tmp")]
