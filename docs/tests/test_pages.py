"""All code on the pages is run: Python blocks, shell lines, examples."""

from __future__ import annotations

import csv
import inspect
import json
import random
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import ldsm
from cli_runs import within
from ldsm import datasets
from ldsm.cli.serve import serve
from ldsm.serve import create_app
from services import running, service
from text_corpus import titles

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
TESTS = [path for place in ("tests", "*/tests") for path in ROOT.glob(f"{place}/**/test_*.py")]
SCALING = (ROOT / "docs" / "scaling.md").read_text()
FIGURES = (ROOT / "docs" / "figures.md").read_text()


def blocks(language, page=README):
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_readme_python(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    for call, shown in readme_answers(code):
        answer = eval(call, names)
        if isinstance(shown, float):
            assert answer == pytest.approx(shown, abs=0.05), call
        else:
            assert [[tag for tag, _ in best] for best in answer] == [
                [tag for tag, _ in best] for best in shown
            ], call
            scores = [score for best in shown for _, score in best]
            assert [score for best in answer for _, score in best] == pytest.approx(
                scores, abs=0.3
            ), call


def readme_answers(code):
    """Calls and the answers shown beside them; scores vary with Python's own docstrings."""
    shown = re.findall(r"^(tagger\.\w+\(.*\))\s+# ([\[\d].*)$", code, flags=re.M)
    return [(call, eval(answer)) for call, answer in shown]


def test_readme_shows_answers():
    assert len(readme_answers(blocks("python")[0])) == 2


def test_promises_name_existing_tests():
    page = (ROOT / "docs" / "reliability.md").read_text()
    tests = {
        path.stem: set(re.findall(r"^def (test_\w+)", path.read_text(), re.M)) for path in TESTS
    }
    named = re.findall(r"`(test_\w+)`: ((?:`test_\w+[^`]*`(?:, )?)+)", page)
    for file, functions in named:
        assert set(re.findall(r"`(test_\w+)", functions)) <= tests[file], file
    assert len(named) >= 15
    everywhere = set().union(tests, *tests.values())
    assert set(re.findall(r"`(test_\w+)", page)) <= everywhere


def test_figures_python(tmp_path, monkeypatch):
    """The blocks of the page build on each other."""
    monkeypatch.chdir(tmp_path)
    code = "".join(blocks("python", FIGURES))
    exec(compile(code, "docs/figures.md", "exec"), {})
    saved = re.findall(r'"([\w.]+\.(?:png|html))"', code)
    assert len(saved) >= 3 and all((tmp_path / name).stat().st_size > 0 for name in saved)


PAGES = ("index.md", "first_steps.md", "matrices.md", "scikit_learn.md", "metrics.md")


def write_tickets(folder):
    """The table of the beginner's page, and one like it without tags to predict."""
    draw = random.Random(0)
    words = {
        "billing": "invoice charged amount card",
        "refund": "refund money back return",
        "account": "password login account email",
        "delivery": "parcel arrived late courier",
    }
    for name, n_rows in (("tickets.csv", 900), ("new.csv", 40)):
        rows = [["id", "title", "body", "tags"]]
        for number in range(n_rows):
            tags = draw.sample(list(words), draw.choice([1, 1, 2]))
            text = [draw.choice(words[tag].split()) for tag in tags for _ in range(4)]
            rows.append([number, " ".join(text[:2]), " ".join(text), ";".join(tags)])
        with open(folder / name, "w", newline="") as file:
            csv.writer(file).writerows(rows)


def write_matrices(folder):
    """The files of the researchers' page."""
    for part in ("train", "test"):
        data = datasets.make_xmc(600, 100, 30, seed=0, part=part)
        datasets.save_xmlrepo(data, folder / f"{part}.txt")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.filterwarnings("default")
def test_pages_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_tickets(tmp_path)
    write_matrices(tmp_path)
    text = (ROOT / "docs" / page).read_text()
    ldsm = within(capsys)
    lines = re.findall(r"^\$ ldsm (.*?)(?:\s{2,}#.*)?$", "\n".join(blocks("console", text)), re.M)
    for line in lines:
        assert (done := ldsm(*shlex.split(line))).code == 0, (line, done.err)
    code = "".join(blocks("python", text))
    assert len(lines) + len(code.splitlines()) > 5
    exec(compile(code, page, "exec"), {})


def test_long_fits(tmp_path, monkeypatch):
    """The fit of the page on scaling, twice: the second takes its trees from the checkpoint."""
    monkeypatch.chdir(tmp_path)
    (code,) = (b for b in blocks("python", SCALING) if 'checkpoint_dir="finished"' in b)
    fits = [{}, {}]
    for names in fits:
        exec(compile(code, "docs/scaling.md", "exec"), names)
    first, again = (names["clf"] for names in fits)
    assert [clf.training_["trees_from_checkpoint"] for clf in (first, again)] == [0, 10]
    assert first.fingerprint_ == again.fingerprint_


def test_readme_shell(tmp_path, monkeypatch, capsys):
    """The lines that call ldsm, in order, on files of the names they use."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    ldsm = within(capsys)
    texts = ["the invoice was charged twice", "cannot log in", "refund for a double charge"] * 10
    tags = [["billing"], ["account"], ["billing", "refund"]] * 10
    for name in ("tickets.jsonl", "held_out.jsonl"):
        datasets.save_jsonl(datasets.Dataset.from_texts(texts, tags), tmp_path / name)
    train = datasets.make_xmc(300, 60, 20, labels_per_row=2, nonzeros_per_row=8)
    test = datasets.make_xmc(80, 60, 20, labels_per_row=2, nonzeros_per_row=8, part="test")
    datasets.save_xmlrepo(train, tmp_path / "train.txt.bz2")
    datasets.save_xmlrepo(test, tmp_path / "test.txt")
    lines = re.findall(
        r"^\$ ((?:ldsm|echo) .*?)(?:\s{2,}#.*)?$", "\n".join(blocks("console")), re.M
    )
    assert len(lines) >= 8
    for line in lines:
        if line in ("ldsm serve tags.ldsm", "ldsm demo"):
            continue  # as in `test_serving_page`, and in `test_demo` of the command
        if "|" not in line:  # in this process, which is much faster
            options = ["--trials", "2"] if " tune " in line else []
            assert (done := ldsm(*shlex.split(line)[1:], *options)).code == 0, (line, done.err)
        else:
            _run_in_shell(line)


def _run_in_shell(line):
    command = re.sub(r"(?<!\S)ldsm (?=[a-z])", f"'{sys.executable}' -m ldsm ", line)
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert run.returncode == 0, (line, run.stderr)


def test_serving_page(tmp_path, monkeypatch):
    """Each request of the page is answered, and each option that it names exists."""
    monkeypatch.chdir(tmp_path)
    texts, tags = (
        ["a quota for cod", "import of beef", "herring fishing"] * 5,
        [["fish"], ["meat"], ["fish"]] * 5,
    )
    ldsm.TextTagger().fit(texts, tags).save("tags.ldsm")
    page = (ROOT / "docs" / "serving.md").read_text()
    requests = re.findall(r"^\$ (curl .*)$", "\n".join(blocks("console", page)), re.M)
    assert len(requests) >= 9
    with service("tags.ldsm", "--port", 0) as served:
        for line in requests:
            _, url, *rest = shlex.split(line)
            path = url.removeprefix("http://localhost:8000")
            if rest[:1] == ["--json"]:
                answer = served.post(path, json.loads(rest[1]))
            elif rest:
                fields = dict(pair.split("=", 1) for pair in rest if pair != "-d")
                answer = served.form(path, **fields)
            else:
                answer = served.get(path)
            assert answer.status in (200, 204), (line, answer.text)
    options = set(re.findall(r"`(--[a-z-]+)", page)) | set(
        re.findall(r"ldsm serve .*?(--[a-z-]+)", page)
    )
    signature = inspect.signature(serve)
    assert {option.strip("-").replace("-", "_") for option in options} <= {
        *signature.parameters,
        "in_place",
        "serve",
    }
    names = set(re.findall(r"`(ldsm_\w+)`", page))
    with running(create_app(["tags.ldsm"])) as client:
        client.form("/v1/projects/tags/suggest", text="cod")
        offered = client.get("/metrics").text
    assert names and all(
        f" {name} " in offered or f" {name.removesuffix('_total')} " in offered for name in names
    )


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_number_of_examples():
    assert len(EXAMPLES) == 8


@pytest.mark.long  # `make docs` runs them, too
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples(path, tmp_path, monkeypatch, capsys):
    """Each prints something, draws one figure and leaves no files behind.

    In this process: the corpus that most of them read is then made only once.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    plt.switch_backend("agg")
    try:
        runpy.run_path(str(path), run_name="__main__")
        (number,) = plt.get_fignums()
        assert all(ax.has_data() for ax in plt.figure(number).axes)
    finally:
        plt.close("all")
    assert capsys.readouterr().out
    assert not list(tmp_path.glob("tmp*"))


def write_papers(name, rows, words, tag):
    """Titles with tags, some of them with other words and another tag, too."""
    with open(name, "w") as file:
        for i, (text, tags) in enumerate(zip(*titles(rows), strict=True)):
            if i % 20 == 0:
                text, tags = f"{text} {words}", [*tags, tag]
            print(json.dumps({"text": text, "labels": tags}), file=file)


def test_incremental_learning_page(tmp_path, monkeypatch, capsys):
    """Its Python continues from block to block; its commands learn."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "incremental_learning.md").read_text()
    write_papers("papers.jsonl", 700, "fishing fleet", "fisheries")
    write_papers("new.jsonl", 100, "fish farming", "aquaculture")
    names = {}
    code = "".join(blocks("python", page))
    exec(compile(code, "docs/incremental_learning.md", "exec"), names)
    leeks, _, soup, dropped = capsys.readouterr().out.splitlines()
    assert [leeks, soup, dropped] == ["True", "True", "False"]
    names["tagger"].save("tags.ldsm")
    learn, labels = (block.splitlines() for block in blocks("console", page))

    def run(commands):
        for command in commands:
            assert within(capsys)(*shlex.split(command.removeprefix("$ ldsm"))).code == 0

    run(learn)
    better, same = (ldsm.load(name) for name in ("better.ldsm", "tags.ldsm"))
    assert better.fingerprint_ == same.fingerprint_ and "aquaculture" in same.classes_
    run(labels)
    changed = set(ldsm.load("tags.ldsm").classes_)
    assert changed == {*same.classes_, "soups"} - {"soup", "aquaculture"}


VOCABULARY = (ROOT / "docs" / "vocabulary.md").read_text()


def test_vocabulary_page(tmp_path, monkeypatch, capsys):
    """Its table, its command and its Python build on each other."""
    monkeypatch.chdir(tmp_path)
    (table, _), commands, code = (blocks(kind, VOCABULARY) for kind in ("tsv", "console", "python"))
    Path("names.tsv").write_text(table)
    Path("excluded.txt").write_text("fisheries\n")
    write_papers("papers.jsonl", 1500, "fishing fleet", "fisheries")
    for command in "".join(commands).splitlines():
        assert within(capsys)(*shlex.split(command.removeprefix("$ ldsm"))).code == 0
    assert "aquaculture" in ldsm.load("tags.ldsm").classes_
    names = {}
    exec(compile("".join(code), "docs/vocabulary.md", "exec"), names)
    assert "aquaculture" in names["tagger"].classes_


def test_commands_of_the_reproduction(tmp_path, monkeypatch, capsys):
    """What the page tells a reader to type, on tiny files of the names it uses."""
    page = (ROOT / "docs" / "reproduction.md").read_text()
    monkeypatch.chdir(tmp_path)
    shape = {"labels_per_row": 2, "nonzeros_per_row": 8}
    rows = datasets.make_xmc(300, 60, 20, **shape)
    for name in ("Bibtex_data.txt", "eurlex_train.txt", "eurlex_test.txt"):
        datasets.save_xmlrepo(rows, name)
    for name, numbers in (("tr", range(1, 201)), ("tst", range(201, 301))):
        Path(f"bibtex_{name}Split.txt").write_text("".join(f"{i} {i}\n" for i in numbers))
    ldsm = within(capsys)
    commands = [shlex.split(line) for line in re.findall(r"^\$ ldsm (.*)$", page, flags=re.M)]
    assert len(commands) == 8
    for command in commands:
        assert (ran := ldsm(*command)).code == 0, (command, ran.err)

    options = re.findall(r"^\| .* \| `(--.*)` \| `(--.*)` \|$", page, flags=re.M)
    assert len(options) == 6
    for to_train, to_evaluate in options:
        train = ["train", "eurlex_train", "-o", "x.ldsm", "--n-estimators", "5", *to_train.split()]
        evaluate = ["evaluate", "x.ldsm", "eurlex_test", *to_evaluate.split()]
        for command in (train, evaluate):
            assert (ran := ldsm(*command)).code == 0, (command, ran.err)
        shutil.rmtree("trees", ignore_errors=True)
