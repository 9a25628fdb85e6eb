"""Annif's own `http` backend queries `ldsm serve`. `make test-annif` installs Annif.

The documents are titles of works on archaeology with subjects of the YSO, from the tutorial of
Annif.
"""

import re

import pytest

from annif_runs import Annif, split_corpus
from ldsm import LdSMClassifier, TextTagger, datasets
from services import service

pytestmark = pytest.mark.annif


@pytest.fixture(scope="module")
def annif(benchmark_data, tmp_path_factory):
    """Commands of Annif, whose project queries `ldsm serve`."""
    folder = tmp_path_factory.mktemp("annif")
    split_corpus(benchmark_data, folder)
    subjects = benchmark_data / "annif-archaeology" / "yso-archaeology.ttl"
    known = {uri for uri, *_ in datasets.read_vocabulary(subjects)}
    lines = (folder / "train.tsv").read_text("utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    tags = [[uri for uri in re.findall("<(.*?)>", own) if uri in known] for _, own in pairs]
    tagger = TextTagger(LdSMClassifier(random_state=0, n_jobs=-1))
    tagger.fit([text for text, _ in pairs], tags, vocabulary=subjects)
    tagger.save(folder / "archaeology.ldsm")
    with service(folder / "archaeology.ldsm", "--port", 0) as served:
        (folder / "projects.cfg").write_text(
            "[tags-fi]\nname=Tags\nlanguage=fi\nbackend=http\nvocab=archaeology\n"
            f"endpoint={served.address}v1/projects/archaeology/suggest\n"
        )
        run = Annif(folder)
        run("load-vocab", "archaeology", subjects)
        run.tagger = tagger
        yield run


def test_project_is_trained(annif):
    assert re.search(r"Trained: +True", annif("show-project", "tags-fi"))


def test_suggest(annif):
    text = "Keskiajan hautoja"
    found = re.findall(r"<(.*?)>\t.*\t([\d.]+)", annif("suggest", "tags-fi", stdin=text))
    expected = annif.tagger.predict([text], 10)[0]
    assert [uri for uri, _ in found] == [uri for uri, _ in expected]
    assert [float(score) for _, score in found] == pytest.approx(
        [score for _, score in expected], abs=1e-4
    )


def test_eval(annif):
    report = annif("eval", "tags-fi", "test.tsv")
    values = dict(re.findall(r"^(\S.*?): +\t([\d.]+)$", report, re.M))
    assert int(values["Documents evaluated"]) == 1004
    assert float(values["NDCG"]) > 0.5 and float(values["Precision@1"]) > 0.4
