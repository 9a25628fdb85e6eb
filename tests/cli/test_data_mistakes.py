"""The same mistakes through the command, TextTagger and LdSMClassifier, with the same remedies.

Each mistake is a file that somebody might train on. Every surface refuses it, or warns, in the same
words, and names the remedy as its user would give it: an argument in Python, an option in a shell.
"""

import gzip
import json
import random
import re
import warnings
from dataclasses import dataclass, field

import pytest

from cli_runs import within
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.text import default_vectorizer

WORDS = {"grain": "wheat corn", "oil": "crude barrel", "trade": "export tariff", "law": "court act"}
DRAW = random.Random(0)
TAGS = [DRAW.sample(list(WORDS), DRAW.choice([1, 2, 2, 3])) for _ in range(60)]
TEXTS = [" ".join(WORDS[tag] for tag in tags) + f" café {i}" for i, tags in enumerate(TAGS)]


def table(tags=TAGS, *, delimiter=",", separator=";", head=("text", "labels")):
    rows = (f"{t}{delimiter}{separator.join(n)}" for t, n in zip(TEXTS, tags, strict=True))
    return "\n".join([delimiter.join(head), *rows, ""])


def lines(tags=TAGS, texts=TEXTS, *, text="text", labels="labels"):
    rows = ({text: t, labels: n} for t, n in zip(texts, tags, strict=True))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@dataclass
class Mistake:
    file: str  # its name
    content: str | bytes
    problem: str  # pattern of the message
    remedy: str = ""  # pattern, as Python says it
    option: str = ""  # pattern, as the command says it; by default the same
    warns: bool = False  # a warning is printed, and training continues
    options: dict[str, str] = field(default_factory=dict)  # that the user gave


MISTAKES = {
    "an empty table": Mistake("d.csv", "", "d.csv:1: is empty", "a header line"),
    "a table of blank lines": Mistake("d.csv", "\n\n", "d.csv:1: is empty", "a header line"),
    "a header and nothing else": Mistake("d.csv", "text,labels\n", "no rows to train on"),
    "an empty file of lines": Mistake("d.jsonl", "", "no rows to train on"),
    "an empty array": Mistake("d.json", "[]", "no rows to train on"),
    "a broken Parquet file": Mistake(
        "d.parquet", b"PAR1", "cannot be read as Parquet", "d.parquet"
    ),
    "a spreadsheet": Mistake("d.xlsx", b"PK", "is a spreadsheet", "save it as CSV"),
    "an unknown suffix": Mistake(
        "d.dat",
        table(),
        "suffix of .*d.dat is none of",
        "use format= to name",
        "use --format to name",
    ),
    "texts without labels": Mistake(
        "d.txt", "\n".join(TEXTS), "d.txt:1: expected the header", "use a CSV file or JSON Lines"
    ),
    "features without a header": Mistake(
        "d.txt", "0 1:1\n", "d.txt:1: expected the header", "format='svmlight'", "--format svmlight"
    ),
    "one large JSON object": Mistake(
        "d.json", '{\n"rows": []}', "d.json:1: is not JSON", "one object per line or an array"
    ),
    "a list that is not of objects": Mistake("d.json", "[1]", ":1: expected a JSON object"),
    "a cut archive": Mistake(
        "d.jsonl.gz", gzip.compress(lines().encode())[:-9], "the compressed data is damaged"
    ),
    "quotes that never end": Mistake(
        "d.csv", 'text,labels\n"wheat,a\nb,c\n', ":2: .*a cell in quotes never ends"
    ),
    "a comma in a text": Mistake(
        "d.csv", "text,labels\nwheat, corn,grain\n", ":2: expected 2 cells, got 3", "in quotes"
    ),
    "a row that is too short": Mistake("d.csv", "text,labels\nwheat\n", ":2: expected 2 cells"),
    "another name for the text": Mistake(
        "d.csv",
        table(head=("body", "labels")),
        ":1: has no column 'text', only 'body', 'labels'",
        "use text= to name another",
        "use --text-field to name another",
        options={"separator": ";"},
    ),
    "another name for the labels": Mistake(
        "d.csv",
        table(head=("text", "tags")),
        ":1: has no column 'labels', only 'text', 'tags'",
        "use labels= to name another",
        "use --label-field to name another",
    ),
    "another field for the text": Mistake(
        "d.jsonl",
        lines(text="body"),
        ":1: has no field 'text', only 'body', 'labels'",
        "use text= to name another",
        "use --text-field to name another",
    ),
    "another field for the labels": Mistake(
        "d.jsonl",
        lines(labels="tags"),
        ":1: has no field 'labels', only 'text', 'tags'",
        "use labels= to name another",
        "use --label-field to name another",
    ),
    "two columns of one name": Mistake(
        "d.csv",
        "text,text,labels\na,b,c\n",
        ":1: has 2 columns 'text'",
        "use text= to name another",
        "use --text-field to name another",
    ),
    "a text that is missing": Mistake(
        "d.jsonl", lines(texts=[None] * 60), ":1: field 'text' must be a string"
    ),
    "a text that is a number": Mistake(
        "d.jsonl", lines(texts=[7] * 60), ":1: field 'text' must be a string"
    ),
    "labels that are an object": Mistake(
        "d.jsonl", lines([{"grain": 1}] * 60), ":1: .*must be a list of strings or whole numbers"
    ),
    "labels that are fractions": Mistake(
        "d.jsonl", lines([[0.5]] * 60), ":1: .*must be a list of strings or whole numbers"
    ),
    "a label that is missing": Mistake(
        "d.jsonl", lines([["grain", None]] * 60), ":1: .*must be a list of strings or whole numbers"
    ),
    "a label that is half a character": Mistake(
        "d.jsonl", '{"text": "a", "labels": ["\\ud800"]}\n', ":1: .*a lone surrogate"
    ),
    "cells separated by semicolons": Mistake(
        "d.csv",
        table(delimiter=";", separator="|"),
        ":1: .*seem to be separated by ';'",
        "try delimiter=';'",
        "try --delimiter ';'",
    ),
    "cells separated by tabs": Mistake(
        "d.csv",
        table(delimiter="\t"),
        r":1: .*seem to be separated by '\\t'",
        r"try delimiter='\\t'",
        r"try --delimiter '\\t'",
    ),
    "labels separated by bars": Mistake(
        "d.csv",
        table(separator="|"),
        r"are split at '\|', because in the first 60 rows .* such as 'grain.* and 'grain",
        r"Pass separator='\|' to confirm",
        r"Pass --separator '\|' to confirm",
        warns=True,
    ),
    "labels joined in a string": Mistake(
        "d.jsonl",
        lines([", ".join(tags) for tags in TAGS]),
        "labels contain ',', such as 'grain.* and 'grain.*several labels in one",
        "split them before training",
        warns=True,
    ),
    "labels joined in a list": Mistake(
        "d.jsonl",
        lines([["|".join(tags)] for tags in TAGS]),
        r"labels contain '\|', such as 'grain.* and 'grain.*several labels in one",
        "split them before training",
        warns=True,
    ),
    "few labels, all of them joined": Mistake(
        "d.jsonl",
        lines([["oil;law"], ["grain;trade"]] * 30),
        "2 of 2 labels contain ';', such as 'grain;trade' and 'oil;law'",
        "split them before training",
        warns=True,
    ),
    "a separator too many": Mistake(
        "d.csv",
        table([["grain", "", "oil"]] * 60),
        ":2: empty label in column 'labels', split at ';'",
        options={"separator": ";"},
    ),
    "Latin-1 in a table": Mistake(
        "d.csv",
        table().encode("latin-1"),
        ":2: is not UTF-8",
        "try encoding='latin-1'",
        "try --encoding latin-1",
    ),
    "Latin-1 in JSON Lines": Mistake(
        "d.jsonl",
        lines().encode("latin-1"),
        ":1: is not UTF-8",
        "try encoding='latin-1'",
        "try --encoding latin-1",
    ),
    "UTF-16 in a table": Mistake(
        "d.csv",
        table().encode("utf-16"),
        ":1: is not UTF-8",
        "try encoding='utf-16'",
        "try --encoding utf-16",
    ),
    "an encoding that does not exist": Mistake(
        "d.csv",
        table(),
        "encoding must be one that Python knows",
        "such as utf-8, utf-16 or latin-1. Got 'latin-99'",
        options={"encoding": "latin-99"},
    ),
    "no labels at all": Mistake("d.csv", table([[]] * 60), "at least one.* no row has a label"),
    "words that occur once": Mistake(
        "d.jsonl",
        lines([["a"], ["b"]], ["wheat", "court"]),
        "The 2 documents have no features: no word occurs in 2",
        "min_df=1 to keep",
        "--min-df 1 to keep",
    ),
    "texts without words": Mistake(
        "d.jsonl",
        lines([["a"], ["b"]], ["!", ""]),
        "The 2 documents have no features: they have no words",
    ),
}


def in_the_shell(path, mistake, run):
    options = [word for name, value in mistake.options.items() for word in (f"--{name}", value)]
    model = path.parent / "m.ldsm"
    done = run("train", path, "-o", model, "--n-estimators", 1, *options)
    assert (done.code == 0) == model.exists() == mistake.warns, done
    said = [line for line in done.err.splitlines() if line.startswith(("error:", "warning:"))]
    assert len(said) == 1 and "Traceback" not in done.err and done.out == "", done
    return said[0]


def with_texts(path, mistake, run):
    def fit():
        TextTagger(LdSMClassifier(1)).fit(datasets.load_dataset(path, **mistake.options))

    return messages(fit, mistake.warns)


def with_features(path, mistake, run):
    def fit():
        data = datasets.load_dataset(path, **mistake.options)
        LdSMClassifier(1).fit(data.vectorize(default_vectorizer()))

    return messages(fit, mistake.warns)


def messages(fit, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if warns:
            fit()
            assert len(caught) == 1
            return str(caught[0].message)
        with pytest.raises(ValueError) as error:
            fit()
        assert caught == []
    return str(error.value)


def test_at_least_thirty_mistakes():
    assert len(MISTAKES) >= 30


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("surface", [in_the_shell, with_texts, with_features])
@pytest.mark.filterwarnings("default")
def test_mistakes_name_their_remedy(name, surface, tmp_path, capsys):
    mistake = MISTAKES[name]
    path = tmp_path / mistake.file
    content = mistake.content if isinstance(mistake.content, bytes) else mistake.content.encode()
    path.write_bytes(content)
    message = surface(path, mistake, within(capsys))
    assert re.search(mistake.problem, message), message
    remedy = mistake.remedy
    if surface is in_the_shell:
        remedy = mistake.option or remedy
        # Neither functions nor arguments of Python.
        assert not re.search(r"\w\(\)|\b(load|iter|open|fit)_\w*\(|\w=[\w']", message), message
    else:
        assert "--" not in message, message
    assert re.search(remedy, message), message
    assert "\n" not in message and len(message) < 500
    assert path.read_bytes() == content
