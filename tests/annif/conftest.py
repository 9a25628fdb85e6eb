"""Annif with our backend: a folder with trained projects."""

from __future__ import annotations

import pytest

from annif_runs import Annif, split_corpus

PROJECTS = """
[ldsm-fi]
name=Archaeology by ldsm
language=fi
backend=ldsm
vocab=archaeology
allow_learn=true

[tfidf-fi]
name=Archaeology by TF-IDF
language=fi
backend=tfidf
vocab=archaeology
analyzer=snowball(finnish)

[both-fi]
name=Both of them
language=fi
backend=ensemble
vocab=archaeology
sources=ldsm-fi:2,tfidf-fi:1

[fewer-fi]
name=Archaeology without excavations
language=fi
backend=ldsm
vocab=archaeology(exclude=http://www.yso.fi/onto/yso/p14173)

[stems-fi]
name=Archaeology by stems
language=fi
backend=ldsm
vocab=archaeology
analyzer=snowball(finnish)
n_estimators=3

[new-fi]
name=Not trained yet
language=fi
backend=ldsm
vocab=archaeology
"""


@pytest.fixture(scope="session")
def trained(benchmark_data, tmp_path_factory):
    """Commands of Annif in a folder whose vocabulary is loaded, and its first two projects trained.

    Tests leave these two as they are.
    """
    annif = Annif(tmp_path_factory.mktemp("annif"))
    split_corpus(benchmark_data, annif.folder)
    (annif.folder / "projects.cfg").write_text(PROJECTS)
    vocabulary = benchmark_data / "annif-archaeology" / "yso-archaeology.ttl"
    annif("load-vocab", "archaeology", vocabulary)
    annif("train", "ldsm-fi", "train.tsv")
    annif("train", "tfidf-fi", "train.tsv")
    return annif
