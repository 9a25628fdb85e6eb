"""Commands of Annif, from the environment that `make test-annif` makes."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv-annif"
ANNIF = ENVIRONMENT / "bin" / "annif"
N_TRAIN = 5400
# Annif would fetch its tokenizer's data from the network.
SETTINGS = {
    "ANNIF_CONFIG": "ldsm.annif.Config",
    "ANNIF_PROJECTS": "projects.cfg",
    "NLTK_DATA": str(ROOT / "build" / "nltk" / "llama_index" / "core" / "_static" / "nltk_cache"),
}


def project(
    name: str, title: str, backend: str = "ldsm", vocab: str = "archaeology", **more: str
) -> str:
    """A project of projects.cfg; its name ends with its language."""
    facts = {"name": title, "language": name[-2:], "backend": backend, "vocab": vocab, **more}
    return f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in facts.items())


class Annif:
    """Runs Annif in a folder that holds its projects and data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments, stdin="", **changes) -> str:
        """What a command prints; it must succeed."""
        done = self.run(*arguments, stdin=stdin, **changes)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *arguments, stdin="", program=ANNIF, **changes):
        """A command that may fail; `changes` are variables of its environment, None for none."""
        environment = {**os.environ, **SETTINGS, **changes}
        return subprocess.run(
            [program, *map(str, arguments)],
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            env={name: value for name, value in environment.items() if value is not None},
        )

    def error(self, *arguments, **changes) -> str:
        """What a command says that must fail."""
        done = self.run(*arguments, **changes)
        assert done.returncode != 0, done.stdout
        assert "Traceback" not in done.stderr
        return done.stderr.strip().splitlines()[-1]


def split_corpus(data: Path, folder: Path) -> None:
    """Write train.tsv and test.tsv: titles of works on archaeology with subjects of the YSO."""
    lines = (data / "annif-archaeology" / "documents.tsv").read_text("utf-8").splitlines(True)
    (folder / "train.tsv").write_text("".join(lines[:N_TRAIN]), "utf-8")
    (folder / "test.tsv").write_text("".join(lines[N_TRAIN:]), "utf-8")
