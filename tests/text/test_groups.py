"""Groups of tags from a vocabulary, by which a request chooses tags."""

from functools import cache

import pytest

import ldsm
from cli_runs import within
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm._storage.container import ModelFileError, read, write
from ldsm.text.fitted import TagGroups
from text_corpus import titles

TEXTS, TAGS = titles(700)
ALL = sorted({tag for tags in TAGS for tag in tags})
FIRST, SECOND = ALL[:4], ALL[3:9]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table with a group of each of some labels, and one label in two groups."""
    path = tmp_path_factory.mktemp("vocabulary") / "names.tsv"
    rows = [(tag, "first") for tag in FIRST] + [(tag, "second") for tag in SECOND]
    rows += [(tag, "") for tag in ALL[9:]]
    lines = (f"{tag}\t{tag}\t{group}\n" for tag, group in rows)
    path.write_text("label\tname\tgroup\n" + "".join(lines))
    return path


@cache
def tagger(path):
    return TextTagger(LdSMClassifier(3)).fit(TEXTS, TAGS, vocabulary=path)


def found(model, **choice):
    return {tag for row in model.predict(TEXTS[:50], 8, **choice) for tag, _ in row}


def test_groups_stand_for_their_tags(table, tmp_path):
    model = tagger(table)
    assert model.groups_ == {"first": FIRST, "second": SECOND}
    tagger(table).save(tmp_path / "m.ldsm")
    for one in (model, ldsm.load(tmp_path / "m.ldsm")):
        assert one.predict(TEXTS, only=["first"]) == one.predict(TEXTS, only=FIRST)
        assert one.predict(TEXTS, only=["first", ALL[9]]) == one.predict(
            TEXTS, only=[*FIRST, ALL[9]]
        )
        assert one.predict(TEXTS, without=["second"]) == one.predict(TEXTS, without=SECOND)
        only = one.predict_sets(TEXTS, only=["second"], without=["first"])
        assert only == one.predict_sets(TEXTS, only=SECOND[1:])
    assert found(model, only=["first"]) == {*FIRST}
    with pytest.raises(ValueError, match=r"'only' parameter must name labels .*'third'"):
        model.predict(TEXTS, only=["third"])


def test_groups_in_the_shell(table, tmp_path, capsys):
    model, run = tagger(table), within(capsys)
    model.save(tmp_path / "m.ldsm")
    shown = run("predict", tmp_path / "m.ldsm", f"{TEXTS[0]} ", "--only", "first", "--json").json
    assert list(zip(shown["labels"], shown["scores"], strict=True)) == [
        (tag, round(score, 6)) for tag, score in model.predict(TEXTS[:1], only=FIRST)[0]
    ]
    rest = run("predict", tmp_path / "m.ldsm", TEXTS[0], "--without", "first", "-k", 999, "--json")
    assert set(rest.json["labels"]) == set(ALL) - set(FIRST)


def test_groups_follow_changed_tags(table):
    model = tagger(table)
    changed = TextTagger(LdSMClassifier(3)).fit(TEXTS, TAGS, vocabulary=table)
    changed.partial_fit([*TEXTS[:60]], [[*tags, "newer"] for tags in TAGS[:60]])
    assert changed.groups_ == model.groups_
    changed.rename_labels({FIRST[0]: "renamed"}).drop_labels([*FIRST[1:3], "newer"])
    assert sorted(changed.groups_["first"]) == sorted(["renamed", FIRST[3]])
    changed.drop_labels(["renamed", FIRST[3]])
    assert changed.groups_ == {"second": SECOND[1:]}


def test_tag_takes_precedence_over_group():
    groups = TagGroups.of({"a": ["b"], "c": ["g"]})
    assert groups.expanded(["b", "g"], {"a": 0, "b": 1, "c": 2}) == ["b", "c"]


SKOS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://example.org/> .
:places a skos:Collection ; skos:member :oslo .
:oslo a skos:Concept, :Place ; skos:inScheme :all ; skos:prefLabel "Oslo"@en .
:cod a skos:Concept ; skos:inScheme :all ; skos:prefLabel "cod"@en .
"""


def test_groups_of_skos(tmp_path):
    (tmp_path / "v.ttl").write_text(SKOS)
    cod, oslo = datasets.read_vocabulary(tmp_path / "v.ttl")
    assert cod.groups == ("http://example.org/all",)
    assert oslo.groups == tuple(f"http://example.org/{name}" for name in ("Place", "all", "places"))


def test_damaged_groups_are_refused(table, tmp_path):
    tagger(table).save(tmp_path / "m.ldsm")
    header, arrays = read(tmp_path / "m.ldsm")
    arrays = dict(arrays)
    arrays["members.group"] = arrays["members.group"] + 1
    write(tmp_path / "m.ldsm", header, arrays)
    with pytest.raises(ModelFileError, match=r"groups of tags have a group that does not exist"):
        ldsm.load(tmp_path / "m.ldsm")
