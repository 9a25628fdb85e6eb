"""Annif with our backend: a folder with trained projects."""

import pytest

from annif_runs import Annif, project, split_corpus

PROJECTS = [
    project("ldsm-fi", "Archaeology by ldsm", allow_learn="true"),
    project("tfidf-fi", "Archaeology by TF-IDF", "tfidf", analyzer="snowball(finnish)"),
    project("both-fi", "Both of them", "ensemble", sources="ldsm-fi:2,tfidf-fi:1"),
    project(
        "fewer-fi",
        "Archaeology without excavations",
        vocab="archaeology(exclude=http://www.yso.fi/onto/yso/p14173)",
    ),
    project("stems-fi", "By stems", analyzer="snowball(finnish)", n_estimators="3"),
    project("new-fi", "Not trained yet"),
]


@pytest.fixture(scope="session")
def trained(benchmark_data, tmp_path_factory):
    """Commands of Annif in a folder whose vocabulary is loaded, and its first two projects trained.

    Tests leave these two as they are.
    """
    annif = Annif(tmp_path_factory.mktemp("annif"))
    split_corpus(benchmark_data, annif.folder)
    (annif.folder / "projects.cfg").write_text("".join(PROJECTS))
    vocabulary = benchmark_data / "annif-archaeology" / "yso-archaeology.ttl"
    annif("load-vocab", "archaeology", vocabulary)
    annif("train", "ldsm-fi", "train.tsv")
    annif("train", "tfidf-fi", "train.tsv")
    return annif
