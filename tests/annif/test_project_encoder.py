"""The parameter `encoder` of a project: used by all commands, and missed by none in silence."""

import re

import pytest

import ldsm
from annif_runs import Annif, project
from tiny_encoders import N_MEANINGS, texts_and_tags, write_meanings

pytestmark = pytest.mark.annif
FILE = "data/projects/tiny-fi/ldsm-model.ldsm"


@pytest.fixture(scope="module")
def annif(tmp_path_factory):
    """A folder with documents whose words only the encoder understands, and a trained project."""
    annif = Annif(tmp_path_factory.mktemp("encoder"))
    configure(annif, "encoder=tiny")
    uris = [f"http://example.org/{i}" for i in range(N_MEANINGS)]
    subjects = "".join(f"{uri},aihe {i}\n" for i, uri in enumerate(uris))
    (annif.folder / "subjects.csv").write_text(f"uri,label_fi\n{subjects}")
    annif("load-vocab", "archaeology", "subjects.csv")
    for name, n in (("train.tsv", 1200), ("more.tsv", 20)):
        lines = [
            f"{text}\t{' '.join(f'<{uris[int(tag[1:])]}>' for tag in tags)}\n"
            for text, tags in zip(*texts_and_tags(n, seed=n), strict=True)
        ]
        (annif.folder / name).write_text("".join(lines), "utf-8")
    write_meanings(annif.folder / "tiny")
    annif("train", "tiny-fi", "train.tsv")
    return annif


def configure(annif, line=""):
    facts = project("tiny-fi", "Tiny", allow_learn="true")
    (annif.folder / "projects.cfg").write_text(facts + line + "\n")


def test_commands_use_the_encoder(annif):
    path, encoder = annif.folder / FILE, annif.folder / "tiny"
    before = ldsm.load(path, encoder=encoder)
    assert "meaning" in before.classifier_.second_stage_.blend.kind
    text = texts_and_tags(1, seed=5)[0][0]
    best = before.predict([text], 1)[0][0][0]
    assert f"<{best}>" in annif("suggest", "tiny-fi", stdin=text)
    alone, shared = (annif("eval", "tiny-fi", "more.tsv", "-j", jobs) for jobs in (1, 2))
    assert re.findall(r"NDCG:.*", alone) == re.findall(r"NDCG:.*", shared) != []
    annif("learn", "tiny-fi", "more.tsv")
    assert ldsm.load(path).classifier_.training_["history"][0]["learned"] == 20
    annif("train", "--cached", "tiny-fi")
    assert ldsm.load(path).fingerprint_ == before.fingerprint_
    assert "Got best" in annif("hyperopt", "tiny-fi", "more.tsv", "-T", 1)


def test_missing_encoder(annif):
    configure(annif)
    said = annif.error("suggest", "tiny-fi", stdin="w7")
    assert "Operation failed backend 'ldsm': The model needs its encoder, 'tiny' with 16" in said
    assert said.endswith("Set the project's parameter encoder.")
    configure(annif, "encoder=nowhere")
    for command in (("suggest", "tiny-fi"), ("train", "--cached", "tiny-fi")):
        assert annif.error(*command, stdin="w7").endswith("The encoder nowhere does not exist.")
