"""All of Annif's commands on documents made here, for machines without the benchmark data."""

import re

import pytest

from annif_runs import Annif, project
from text_corpus import titles

pytestmark = pytest.mark.annif
PROJECTS = [
    project("ldsm-en", "ldsm", vocab="tags", allow_learn="true"),
    project("tfidf-en", "TF-IDF", "tfidf", "tags", analyzer="snowball(english)"),
    project("both-en", "Both", "ensemble", "tags", sources="ldsm-en:2,tfidf-en:1"),
]


def address(tag):
    return f"http://example.org/{tag.replace(' ', '-')}"


def write_corpus(path, texts, tags):
    lines = [
        f"{text}\t{' '.join(f'<{address(tag)}>' for tag in own)}\n"
        for text, own in zip(texts, tags, strict=True)
        if own
    ]
    path.write_text("".join(lines))


def test_all_commands(tmp_path):
    annif = Annif(tmp_path)
    texts, tags = titles(1000)
    known = sorted({tag for own in tags for tag in own})
    (tmp_path / "projects.cfg").write_text("".join(PROJECTS))
    (tmp_path / "tags.tsv").write_text("".join(f"<{address(tag)}>\t{tag}\n" for tag in known))
    for name, part in (("train", slice(800)), ("test", slice(800, 900)), ("new", slice(900, None))):
        write_corpus(tmp_path / f"{name}.tsv", texts[part], tags[part])

    def f1(project):
        report = annif("eval", project, "test.tsv")
        return float(re.search(r"^F1@5: +\t([\d.]+)$", report, re.M)[1])

    annif("load-vocab", "--language", "en", "tags", "tags.tsv")
    for name in ("ldsm-en", "tfidf-en"):
        annif("train", name, "train.tsv")
    assert len(annif("suggest", "ldsm-en", stdin=texts[850]).splitlines()) > 0
    assert f1("ldsm-en") > 0.9 * f1("tfidf-en") > 0
    assert f1("both-en") > 0
    annif("train", "--cached", "ldsm-en", "-b", "ldsm.n_estimators=5")
    before = annif("suggest", "ldsm-en", stdin=texts[950])
    annif("learn", "ldsm-en", "new.tsv")
    assert annif("suggest", "ldsm-en", stdin=texts[950]) != before
    annif("hyperopt", "ldsm-en", "test.tsv", "--trials", 2, "--results-file", "trials.tsv")
    assert len((tmp_path / "trials.tsv").read_text().splitlines()) == 3
