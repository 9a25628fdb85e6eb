"""The commands of `docs/annif.md` are run, with the projects that it shows."""

import re
import shutil

import pytest

from annif_runs import ROOT, Annif, split_corpus

pytestmark = pytest.mark.annif
PAGE = (ROOT / "docs" / "annif.md").read_text()


def test_page(benchmark_data, tmp_path):
    annif = Annif(tmp_path)
    split_corpus(benchmark_data, tmp_path)
    shutil.copy(benchmark_data / "annif-archaeology" / "yso-archaeology.ttl", tmp_path)
    titles = (tmp_path / "test.tsv").read_text("utf-8").splitlines(keepends=True)
    for name, lines in (("validation.tsv", titles[:100]), ("new.tsv", titles[100:120])):
        (tmp_path / name).write_text("".join(lines), "utf-8")
    (tmp_path / "folder").mkdir()
    for name in ("one.txt", "two.txt", "folder/three.txt"):
        (tmp_path / name).write_text("Keskiajan hautoja")
    projects = re.findall(r"```ini\n(.*?)```", PAGE, re.S)
    assert len(projects) == 3
    mllm = "[archaeology-mllm-fi]\nlanguage=fi\nbackend=mllm\nvocab=archaeology\nanalyzer=simple\n"
    first = projects[0] + "allow_learn=true\n"
    (tmp_path / "projects.cfg").write_text("\n".join([first, *projects[1:], mllm]))
    commands = re.findall(r"^\$ (.*annif .*)$", PAGE, re.M)
    assert len(commands) == 9
    for command in commands:
        piped = re.fullmatch(r'echo "(.*)" \| annif (.*)', command)
        words = (piped[2] if piped else command.removeprefix("annif ")).split()
        if words[0] == "hyperopt":
            words[words.index("--trials") + 1] = "1"
        output = annif(*words, stdin=piped[1] if piped else "")
        assert "<http://www.yso.fi/" in output or words[0] != "suggest"
    assert (tmp_path / "trials.tsv").read_text().count("\n") == 2
    assert (tmp_path / "folder" / "three.annif").read_text().count("\n") == 10
    annif("train", "archaeology-mllm-fi", "train.tsv", "-d", 300)
    assert "<http://www.yso.fi/" in annif("suggest", "archaeology-ensemble-fi", stdin="Hautoja")


def test_documented_parameters():
    """The table has every parameter of the backend with its default."""
    listed = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", PAGE, re.M))
    code = "from ldsm.annif.backend import LdSMBackend as b; print(b.DEFAULT_PARAMETERS)"
    done = Annif(ROOT).run("-c", code, program=ROOT / ".venv-annif" / "bin" / "python")
    known = eval(done.stdout)
    assert {name: str(value) for name, value in known.items()}.items() <= listed.items()
    assert listed.keys() - known.keys() == {"analyzer", "allow_learn", "encoder"}
