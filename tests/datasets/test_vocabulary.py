"""Label names: tables and SKOS."""

import gzip
import re
import sys

import pytest

from ldsm import datasets
from ldsm.datasets.vocabulary import Concept, label_names

SKOS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://example.org/> .
:c1 a skos:Concept ; skos:prefLabel "fishing"@en, "kalastus"@fi ;
    skos:altLabel "fishery"@en, "catch of fish"@en, "pyynti"@fi .
:c2 a skos:Concept ; skos:prefLabel "beef"@en, "naudanliha"@fi ; skos:hiddenLabel "bef"@en .
:c3 a skos:Concept ; skos:prefLabel "old"@en ; owl:deprecated true .
:c4 a skos:Collection ; skos:prefLabel "group"@en .
"""


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.tsv", "label\tname\nfish\tfishing\nfish\tfishery\nbeef\n\nmeat\t\n"),
        ("v.csv", 'fish,fishing\nfish,"fishery"\nbeef\nmeat,\n'),
        ("v.txt.gz", "fish\tfishing\tF1\nfish\tfishery\nfish\tfishing\nbeef\nmeat\n"),
    ],
)
def test_tables(tmp_path, name, text):
    concepts = datasets.read_vocabulary(written(tmp_path, name, text))
    assert [c.identifier for c in concepts] == ["fish", "beef", "meat"]
    names = label_names(concepts, ["fish", "unlisted"])
    assert names == {"fish": ["fish", "fishing", "fishery"], "beef": ["beef"], "meat": ["meat"]}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("uri,label_fi,label_en,notation\nhttp://a/1,kala,fish,7\n", ["kala", "fish"]),
        ("tag,name\na,b\n", ["a", "b"]),
        ("labels\na\n", ["a"]),
        ("name\na\n", ["a"]),  # a label that is called so
        ("id,shelf\na,b\n", ["a", "b"]),
    ],
)
def test_headers(tmp_path, text, names):
    known = label_names(written(tmp_path, "v.csv", text), ["a", "http://a/1"])
    assert known[max(known)] == names if "http" in text else known["a"] == names


def test_names_stand_for_identifiers(tmp_path):
    path = written(tmp_path, "subjects.tsv", "<http://a/1>\tfishing\n<http://a/2>\tbeef\n")
    assert label_names(path, ["http://a/2"]) == {"http://a/1": ["fishing"], "http://a/2": ["beef"]}
    assert label_names(path, ["beef"]) == {"fishing": ["fishing"], "beef": ["beef"]}


def test_skos(tmp_path):
    path = written(tmp_path, "v.ttl", SKOS)
    assert len(datasets.read_vocabulary(path)) == 2
    assert label_names(path, ["kalastus"]) == {
        "kalastus": ["kalastus", "pyynti"],
        "naudanliha": ["naudanliha"],
    }
    english = label_names(path, ["beef", "kalastus", "fishing"])
    assert english == {"fishing": ["fishing", "catch of fish", "fishery"], "beef": ["beef", "bef"]}
    by_uri = label_names(path, ["http://example.org/c1"])
    assert by_uri["http://example.org/c2"] == ["beef", "naudanliha", "bef"]


def test_real_vocabulary(benchmark_data):
    path = benchmark_data / "annif-archaeology" / "yso-archaeology.ttl"
    names = label_names(path, ["http://www.yso.fi/onto/yso/p10073"])
    assert "mykeneläinen kulttuuri" in names["http://www.yso.fi/onto/yso/p10073"]
    assert len(names) > 100


def test_given_in_python():
    names = {"a": ["a", "x"], "b": ["b", "y", "z"], "c": ["c"]}
    assert label_names({"a": "x", "b": ["y", "z", " "], "c": []}, ["a"]) == names
    assert label_names(["a", "b"], ["b"]) == {"a": ["a"], "b": ["b"]}
    assert label_names([Concept("http://a", {"en": "x"})], ["http://a"]) == {"http://a": ["x"]}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.xlsx", "", "must have one of the suffixes .csv, .tsv"),
        ("v.csv", "", "must have at least one label"),
        ("v.csv", "a,b\n,c\n", "v.csv:2: a line without a label. The line: ',c'"),
        ("v.csv", 'a,"b\n', "v.csv:1: a cell in quotes never ends"),
        ("v.ttl", "this is not turtle", "v.ttl is not SKOS as turtle"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        datasets.read_vocabulary(written(tmp_path, name, text))


def test_bad_vocabularies():
    for vocabulary, message in (
        (3, "'vocabulary' parameter must be a file, a list of labels"),
        ([3], "labels and names must be str. Got 3"),
        ({"a": 3}, "names of 'a' must be a str or a list"),
        ({"a": [None]}, "must be str. Got None"),
        (["\ud800"], "must be str"),
        (["a", " "], "must not be empty. Got ' '"),
        ({"": "a"}, "must not be empty"),
        ([], "must have labels of the data, such as 'a'. Got none of them, but 'nothing'"),
        (["b"], "must have labels of the data, such as 'a'. Got none of them, but 'b'"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            label_names(vocabulary, ["a"])


def test_missing_rdflib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(ValueError, match=r"pip install 'ldsm\[skos\]'"):
        datasets.read_vocabulary(written(tmp_path, "v.ttl", SKOS))


LONG = "word " * 4_001
XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"\n'
    ' xmlns:skos="http://www.w3.org/2004/02/skos/core#">\n'
    '<skos:Concept rdf:about="http://a/1">{}</skos:Concept>\n</rdf:RDF>\n'
)
TURTLE = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<http://a/1> a skos:Concept ;\n"
DECIMAL = "<http://www.w3.org/2001/XMLSchema#decimal>"
ENTITIES = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(9))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "v.rdf",
            f'<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY e0 "fish">{ENTITIES}]>\n'
            + XML.format("<skos:prefLabel>&e9;</skos:prefLabel>"),
            "v.rdf:2: a document type (DOCTYPE) is not read",
        ),
        (
            "v.rdf",
            XML.format(f"\n<skos:prefLabel>{LONG}</skos:prefLabel>"),
            "v.rdf:4: a literal of",
        ),
        (
            "v.rdf",
            XML.format(f"\n<skos:prefLabel>{LONG}</skos:prefLabel>".replace(" ", "\n")),
            "v.rdf:4: a literal of more than 20,000",
        ),
        (
            "v.xml",
            XML.format(f"<skos:note rdf:parseType='Literal'>{'<b>x</b>' * 2_501}</skos:note>"),
            "v.xml:3: a literal of more than 20,000",
        ),
        (
            "v.rdf",
            XML.replace('"http://a/1"', f'"http://a/1" skos:prefLabel="{LONG}"').format(""),
            "v.rdf:3: a literal of more than 20,000",
        ),
        (
            "v.rdf",
            '<?xml version="1.0" encoding="utf-7"?>' + XML.format(""),
            "v.rdf:1: the encoding must be UTF-8. Got 'utf-7'",
        ),
        ("v.rdf", XML.format("<skos:note>"), "v.rdf:3: is not XML: mismatched tag"),
        ("v.ttl", f'{TURTLE}skos:prefLabel "{LONG}" .\n', "v.ttl:3: a literal of more than"),
        ("v.ttl", f"{TURTLE}skos:prefLabel '{LONG}' .\n", "v.ttl:3: a literal of more than"),
        (
            "v.ttl",
            f'{TURTLE}skos:note """a " and """"" ; # "\n  skos:note \'\'\'{LONG}\'\'\' .\n',
            "v.ttl:4: a literal of more than",
        ),
        ("v.ttl", f'{TURTLE}skos:note "{chr(92)}"{LONG}" .\n', "v.ttl:3: a literal of more than"),
        ("v.nt", f'<http://a/1> <http://a/2> "{LONG}" .\n', "v.nt:1: a literal of more than"),
        (
            "v.ttl",
            f'{TURTLE}skos:note """ -1.5e-4000\n"""^^{DECIMAL} .\n',
            "v.ttl:3: a number whose exponent has more than 3 digits",
        ),
        (
            "v.ttl",
            f"{TURTLE}skos:note '1\\u0045+40\\U0000003000'^^{DECIMAL} .",
            "v.ttl:3: a number",
        ),
        ("v.nt", f'<http://a/1> <http://a/2> "1E4000"^^{DECIMAL} .\n', "v.nt:1: a number"),
        (
            "v.rdf",
            XML.format(
                f"\n<skos:note rdf:datatype='{DECIMAL[1:-1]}'>1&#69;<!-- -->4000</skos:note>"
            ),
            "v.rdf:4: a number",
        ),
    ],
)
def test_slow_rdf_is_refused(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        datasets.read_vocabulary(written(tmp_path, name, text))


def test_names_like_large_numbers(tmp_path):
    text = f'{TURTLE}skos:prefLabel "1E4000" ; skos:note "1E300"^^{DECIMAL} .\n'
    (concept,) = datasets.read_vocabulary(written(tmp_path, "v.ttl", text))
    assert concept.preferred == {"": "1E4000"}


def test_rdf_quotes_outside_literals(tmp_path):
    text = TURTLE.replace("http://a/1", "http://a/it's") + f"  # don't {LONG}\n"
    text += 'skos:prefLabel """a "quoted" name""""@en ; skos:altLabel "back\\\\" , \'\' .\n'
    (concept,) = datasets.read_vocabulary(written(tmp_path, "v.ttl", text))
    assert concept.preferred == {"en": 'a "quoted" name"'} and concept.others == (("", "back\\"),)
    rdf = XML.format("<skos:prefLabel>" + "fish " * 100 + "</skos:prefLabel>")
    assert len(datasets.read_vocabulary(written(tmp_path, "v.rdf", rdf))) == 1


class Counted(str):
    """A name that counts how often it is compared with another."""

    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_name_comparisons_are_bounded():
    n = 3000
    names = [Counted(f"name {i}") for i in range(n)]
    concept = Concept("a", {}, tuple(("", name) for name in (*names, *names)))
    found = label_names([concept], ["a"])
    assert found["a"] == ["a", *map(str, names)]
    assert Counted.compared < 20 * n


def test_codes_are_no_names():
    codes = {f"gnd:40049{i}-9": [f"name {i}"] for i in range(10)}
    assert label_names(codes, ["gnd:400490-9"]) == codes
    assert label_names({**codes, "covid-19": ["virus"]}, ["covid-19"])["covid-19"] == ["virus"]
    words = {"beef": ["cattle"], "A380": ["aircraft"]}
    assert label_names(words, ["beef"])["A380"] == ["A380", "aircraft"]
    assert label_names({"d12": []}, ["d12"]) == {"d12": ["d12"]}  # its only name
