"""The backend `ldsm` under Annif's own commands. `make test-annif` installs Annif.

The documents are titles of works on archaeology with subjects of the YSO, from the tutorial of
Annif.
"""

import re
import shutil

import pytest

import ldsm
from annif_runs import Annif

pytestmark = pytest.mark.annif
TEXT = "Keskiajan hautoja"


@pytest.fixture
def annif(trained, tmp_path):
    """Commands in a copy of the folder, where projects may change."""
    shutil.copytree(trained.folder, tmp_path / "annif")
    return Annif(tmp_path / "annif")


def model(annif, project="ldsm-fi"):
    return ldsm.load(annif.folder / "data" / "projects" / project / "ldsm-model.ldsm")


def found(output):
    """URIs, names and scores of suggestions."""
    return [
        (uri, name, float(score))
        for uri, name, score in re.findall(r"^<(.*?)>\t(.*)\t([\d.]+)$", output, re.M)
    ]


def values(report):
    return {
        name: float(value) for name, value in re.findall(r"^(\S.*?): +\t([\d.]+)$", report, re.M)
    }


# -- the usual way ----------------------------------------------------------------------------


def test_project_is_trained(trained):
    shown = trained("show-project", "ldsm-fi")
    assert re.search(r"Backend: +ldsm", shown) and re.search(r"Trained: +True", shown)
    listed = trained("list-projects")
    assert re.search(r"^ldsm-fi .* True ", listed, re.M)
    assert re.search(r"^new-fi .* False ", listed, re.M)


def test_project_files(trained):
    """One model file, and the documents for --cached in a folder that Annif never uploads."""
    folder = trained.folder / "data" / "projects" / "ldsm-fi"
    assert sorted(path.name for path in folder.iterdir()) == ["ldsm-model.ldsm", "ldsm-train"]
    assert len(ldsm.datasets.open_store(folder / "ldsm-train")) == 5400


def test_suggest_matches_model(trained, benchmark_data):
    ours = found(trained("suggest", "ldsm-fi", stdin=TEXT))
    expected = model(trained).predict([TEXT], 10)[0]
    assert [uri for uri, *_ in ours] == [uri for uri, _ in expected]
    assert [score for *_, score in ours] == pytest.approx([s for _, s in expected], abs=1e-4)
    names = dict(
        line.strip("<").split(">\t")
        for line in (benchmark_data / "annif-archaeology" / "subjects.tsv")
        .read_text("utf-8")
        .splitlines()
    )
    assert [name for _, name, _ in ours] == [names[uri] for uri, *_ in ours]


def test_limit_and_threshold(trained):
    everything = found(trained("suggest", "ldsm-fi", "--limit", 50, stdin=TEXT))
    assert len(found(trained("suggest", "ldsm-fi", "--limit", 3, stdin=TEXT))) == 3
    least = everything[4][2]
    some = found(trained("suggest", "ldsm-fi", "--threshold", least - 1e-4, stdin=TEXT))
    assert some == everything[:5]
    few = trained("suggest", "ldsm-fi", "-b", "ldsm.limit=2", stdin=TEXT)
    assert found(few) == everything[:2]


def test_excluded_subjects_leave_their_places(annif):
    """Excluded subjects are left out before the limit, not after it."""
    every = [uri for uri, *_ in found(annif("suggest", "ldsm-fi", "--limit", 6, stdin=TEXT))]
    projects = annif.folder / "projects.cfg"
    excluded = f"vocab=archaeology(exclude={'|'.join(every[:3])})"
    first, rest = projects.read_text().split("[ldsm-fi]", 1)
    projects.write_text(f"{first}[ldsm-fi]{rest.replace('vocab=archaeology', excluded, 1)}")
    left = annif("suggest", "ldsm-fi", "-b", "ldsm.limit=3", "--limit", 3, stdin=TEXT)
    assert [uri for uri, *_ in found(left)] == every[3:]


def test_files_match_single_texts(trained, tmp_path):
    texts = {"a.txt": TEXT, "b.txt": "Kalliomaalaukset Suomessa", "empty.txt": ""}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    output = trained("suggest", "ldsm-fi", *(tmp_path / name for name in texts))
    parts = re.split(r"Suggestions for .*\n", output)[1:]
    for part, text in zip(parts, texts.values(), strict=True):
        assert found(part) == found(trained("suggest", "ldsm-fi", stdin=text))
    assert found(parts[2]) == []


def test_index(trained, tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(TEXT)
    trained("index", "ldsm-fi", tmp_path)
    written = [(tmp_path / f"{number}.annif").read_text() for number in range(3)]
    assert found(written[0]) == found(trained("suggest", "ldsm-fi", stdin=TEXT))
    assert written[0] == written[1] == written[2]


def test_eval_in_one_process_or_two(trained):
    one = values(trained("eval", "ldsm-fi", "test.tsv"))
    assert one["Documents evaluated"] == 1004
    assert one["NDCG"] > 0.59 and one["Precision@1"] > 0.46 and one["F1@5"] > 0.26
    assert values(trained("eval", "--jobs", 2, "ldsm-fi", "test.tsv")) == pytest.approx(one)


def test_ensemble(trained):
    """Scores are probabilities: they go together with those of others."""
    alone = values(trained("eval", "ldsm-fi", "test.tsv"))["NDCG"]
    weak = values(trained("eval", "tfidf-fi", "test.tsv"))["NDCG"]
    assert values(trained("eval", "both-fi", "test.tsv"))["NDCG"] > max(alone - 0.02, weak)


# -- training again ---------------------------------------------------------------------------


def test_cached_training(annif):
    before = model(annif)
    (annif.folder / "train.tsv").unlink()
    annif("train", "--cached", "ldsm-fi", "--jobs", 1)
    assert model(annif).fingerprint_ == before.fingerprint_
    annif("train", "--cached", "ldsm-fi", "-b", "ldsm.n_estimators=3")
    after = model(annif)
    assert after.classifier_.forest_.n_trees == 3 and after.fingerprint_ != before.fingerprint_


def test_analyzer(annif):
    annif("train", "stems-fi", "train.tsv")
    texts = ldsm.datasets.open_store(annif.folder / "data/projects/stems-fi/ldsm-train").texts
    assert texts[0] == "läntin kristillistymisproses vuode jälk"
    assert values(annif("eval", "stems-fi", "test.tsv"))["NDCG"] > 0.58
    projects = annif.folder / "projects.cfg"
    projects.write_text(projects.read_text().replace("snowball(finnish)", "simple"))
    said = annif.run("suggest", "stems-fi", stdin=TEXT).stderr
    assert "trained on analyzer snowball(finnish); the project now has analyzer simple" in said
    said = annif.error("train", "--cached", "stems-fi")
    assert "holds analyzer snowball(finnish), but the project now has analyzer simple" in said


def test_learn(annif):
    before = model(annif)
    (annif.folder / "more.tsv").write_text(
        "".join(
            f"Marsilaiset haudat {page}\t<http://www.yso.fi/onto/yso/p5714>\n" for page in range(20)
        ),
        "utf-8",
    )
    annif("learn", "ldsm-fi", "more.tsv")
    after = model(annif)
    (learned,) = after.classifier_.training_["history"]
    assert learned["learned"] == 20
    rank, rank_before = (
        [uri for uri, _ in tagger.predict(["Marsilaiset haudat"], 300)[0]].index(
            "http://www.yso.fi/onto/yso/p5714"
        )
        for tagger in (after, before)
    )
    assert rank == 0 < rank_before
    assert "Learning not enabled" in annif.error("learn", "fewer-fi", "more.tsv")


def test_hyperopt(annif):
    results = annif.folder / "trials.tsv"
    output = annif("hyperopt", "ldsm-fi", "test.tsv", "-T", 2, "-d", 200, "-r", results)
    score = float(re.search(r"Got best NDCG score ([\d.]+)", output)[1])
    head, *rows = [line.split("\t") for line in results.read_text().splitlines()]
    names = ["n_estimators", "arity", "min_split_labels", "integrity_weight"]
    assert head == ["trial", "value", *names] and len(rows) == 2
    assert score == pytest.approx(max(float(row[1]) for row in rows), abs=1e-4) and score > 0.4
    chosen = re.findall(r"^(\w+)=([\d.]+)$", output, re.M)
    assert [name for name, _ in chosen] == names
    # What it recommends is what a project may set.
    options = [part for name, value in chosen for part in ("-b", f"ldsm.{name}={value}")]
    annif("train", "--cached", "ldsm-fi", *options)
    reached = values(annif("eval", "ldsm-fi", "test.tsv", "-d", 200, "-l", 100))["NDCG"]
    assert reached == pytest.approx(score, abs=1e-4)


def test_hyperopt_unknown_metric(annif):
    said = annif.error("hyperopt", "ldsm-fi", "test.tsv", "-T", 1, "-d", 9, "-m", "Beauty")
    assert said.startswith("Error: Not supported project 'ldsm-fi': The metric must be one of ")
    assert ", NDCG, " in said and said.endswith("Got 'Beauty'.")


# -- vocabularies that change -----------------------------------------------------------------


def test_excluded_subjects(annif):
    annif("train", "fewer-fi", "train.tsv")
    excavations = "http://www.yso.fi/onto/yso/p14173"
    text = "Kaivaukset Turussa"
    assert excavations in [uri for uri, *_ in found(annif("suggest", "ldsm-fi", stdin=text))]
    ours = [uri for uri, *_ in found(annif("suggest", "fewer-fi", stdin=text))]
    assert len(ours) == 10 and excavations not in ours


def test_grown_vocabulary(annif):
    """Nothing moves for the old subjects; new ones are learned as soon as they have documents."""
    before = found(annif("suggest", "ldsm-fi", stdin=TEXT))
    table = (annif.folder / "data" / "vocabs" / "archaeology" / "subjects.csv").read_text("utf-8")
    columns = table.splitlines()[0].split(",")
    new = {"uri": "http://example.org/satellite", "label_fi": "satelliittikuvaus"}
    line = ",".join(new.get(column, "") for column in columns)
    (annif.folder / "grown.csv").write_text(f"{table}{line}\n", "utf-8")
    annif("load-vocab", "archaeology", "grown.csv")
    assert found(annif("suggest", "ldsm-fi", stdin=TEXT)) == before
    text = "Satelliittikuvauksen menetelmiä"
    (annif.folder / "more.tsv").write_text(f"{text}\t<http://example.org/satellite>\n" * 9, "utf-8")
    annif("learn", "ldsm-fi", "more.tsv")
    assert found(annif("suggest", "ldsm-fi", stdin=text))[0][1] == "satelliittikuvaus"
    annif("train", "--cached", "ldsm-fi")  # its documents do not have the subject, but its name
    assert "http://example.org/satellite" in model(annif).classes_


# -- errors -----------------------------------------------------------------------------------


def test_untrained_project(trained):
    assert trained.error("suggest", "new-fi", stdin=TEXT) == (
        "Error: Couldn't initialize: Project is not trained."
    )
    for command in (("train", "--cached", "new-fi"), ("hyperopt", "new-fi", "test.tsv")):
        said = trained.error(*command)
        assert said.startswith("Error: Couldn't initialize backend 'ldsm': train data ")
        assert said.endswith("not found")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("n_estimators=many", "n_estimators must be 'auto' or an int in [1, 1000000], "),
        ("arity=9", "arity must be an int in [2, 8], got '9'"),
        ("min_split_labels=0", "min_split_labels must be 'auto' or an int in [1, "),
        ("random_state=-1", "random_state must be an int in [0, 4294967295], got '-1'"),
    ],
)
def test_parameters_out_of_range(trained, option, said):
    said = f"Error: Misconfigured project 'new-fi': the parameter {said}"
    assert trained.error("train", "new-fi", "train.tsv", "-b", f"ldsm.{option}").startswith(said)


def test_limit_out_of_range(trained):
    said = trained.error("suggest", "ldsm-fi", "-b", "ldsm.limit=0", stdin=TEXT)
    assert said.endswith("the parameter limit must be an int >= 1, got '0'")


def test_corpora_without_documents(annif):
    (annif.folder / "none.tsv").write_text("")
    (annif.folder / "unknown.tsv").write_text("A title\t<http://example.org/unknown>\n")
    before = model(annif).fingerprint_
    for corpus in ("none.tsv", "unknown.tsv"):
        for command in ("train", "learn"):
            said = annif.error(command, "ldsm-fi", corpus)
            assert said.startswith("Error: Not supported project 'ldsm-fi': Cannot ")
            assert said.endswith(": no document has a text and subjects of the vocabulary")
    assert model(annif).fingerprint_ == before
    annif("train", "--cached", "ldsm-fi")  # the documents are still there, too
    assert model(annif).fingerprint_ == before


def test_few_documents(annif):
    """Below 500 there are trees alone, and no names."""
    annif("train", "new-fi", "train.tsv", "-d", 50)
    assert model(annif, "new-fi").classifier_.second_stage_ is None
    assert found(annif("suggest", "new-fi", stdin=TEXT))


def test_damaged_files(annif):
    folder = annif.folder / "data" / "projects" / "ldsm-fi"
    file = folder / "ldsm-model.ldsm"
    file.write_bytes(file.read_bytes()[:-100])
    said = annif.error("suggest", "ldsm-fi", stdin=TEXT)
    assert said.startswith("Error: Operation failed backend 'ldsm': The model file ")
    (folder / "ldsm-train" / "meta.json").write_text("{}")
    said = annif.error("train", "--cached", "ldsm-fi")
    assert said.startswith("Error: Operation failed backend 'ldsm': The store ")


def test_wrong_model_kind(annif):
    ldsm.LdSMClassifier(1).fit([[1], [2]], [["a"], ["b"]]).save(
        annif.folder / "data" / "projects" / "ldsm-fi" / "ldsm-model.ldsm"
    )
    said = annif.error("suggest", "ldsm-fi", stdin=TEXT)
    assert said.endswith("must hold a TextTagger. Got a LdSMClassifier.")
