"""Thousands of damaged files of documents: what is in them is read, or a line is refused.

The readers of sparse rows have theirs in `test_text_format.py`.
"""

import csv
import io
import json
import random
import re
from types import SimpleNamespace

import pytest

from ldsm.datasets import iter_jsonl, iter_table

WORDS = ["cod", "", "höhe", "a b", 'say "so"', "x,y", "line\nbreak", "tab\there", "\u2028", "語"]
FRAGMENTS = [b'"', b",", b"\n", b"\r\n", b"\r", b"\0", b"\\", b"{", b"}", b"[", b"]", b":", b"\t"]
FRAGMENTS += [b"\xff", b"\xc3", b"\xef\xbb\xbf", b"null", b"NaN", b"1e999", b"9" * 5000, b"\\ud800"]
FRAGMENTS += [b'""', b"\n\n", b" ", b'{"text": "x", "labels": []}', b"true", b'"text"', b"\x0b"]


def random_jsonl(rng):
    lines = []
    for _ in range(rng.randrange(5)):
        record = {"text": rng.choice(WORDS), "labels": rng.sample(WORDS, rng.randrange(3))}
        if rng.random() < 0.3:
            record["labels"] = rng.choice([7, [3, "x"], "one", [1.5], None])
        lines.append(json.dumps(record, ensure_ascii=rng.random() < 0.5))
    return "\n".join([*lines, ""]).encode()


def random_table(rng):
    """Every cell has a word of its own, so that none can go missing unnoticed."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator=rng.choice(["\n", "\r\n"]))
    writer.writerow(["text", "labels"])
    for i in range(rng.randrange(6)):
        writer.writerow([f"{rng.choice(WORDS)} t{i}t", rng.choice([f"l{i}l", f"l{i}l;m{i}m"])])
    return file.getvalue().encode()


def mutate(rng, text):
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.randrange(8))
        text = text[:at] + rng.choice([b"", rng.choice(FRAGMENTS), text[at:end] * 2]) + text[end:]
    return text


class Malformed(Exception):
    """A line that a twin refuses; its argument is the line's number."""


def decoded(text):
    """Numbered lines with their ends; a byte-order mark may begin the first."""
    lines = re.findall(rb"[^\n]*\n|[^\n]+", text.removeprefix(b"\xef\xbb\xbf"))
    for number, line in enumerate(lines, start=1):
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError:
            raise Malformed(number) from None


def slow_array(text):
    """The documents of a JSON array, or None if it is not one: then any line may be named."""
    try:
        records = json.loads(text.removeprefix(b"\xef\xbb\xbf").decode("utf-8"))
        return [document_of(record) for record in records]
    except (ValueError, KeyError, TypeError):
        return None


def document_of(record):
    labels = [record["labels"]] if isinstance(record["labels"], str) else record["labels"]
    if not isinstance(record["text"], str) or not isinstance(labels, list):
        raise TypeError
    if not all(type(label) in (str, int) for label in labels):
        raise TypeError
    return record["text"], [str(label) for label in labels]


def slow_jsonl(text):
    documents, blank = [], None
    for number, line in decoded(text):
        if not line.strip():
            blank = blank or number
            continue
        if blank:
            raise Malformed(blank)
        try:
            record = json.loads(line.removesuffix("\n").removesuffix("\r"))
            documents.append(document_of(record))
        except (ValueError, KeyError, TypeError):
            raise Malformed(number) from None
    return documents


def refused_line(caught, path, text):
    """The line that a message names, which must be one of the file, or the one it ends before."""
    message = str(caught.value)
    match = re.match(re.escape(f"{path}:") + r"(\d+): ", message)
    assert match, message
    assert "\n" not in message and len(message) < 1000
    assert 1 <= int(match[1]) <= text.count(b"\n") + 1
    return int(match[1])


def check_jsonl(path, text):
    """As the twin reads it, or refused at the same line; returns whether it was refused."""
    path.write_bytes(text)
    if text.removeprefix(b"\xef\xbb\xbf").strip().startswith(b"["):
        return check_array(path, text)
    try:
        expected = slow_jsonl(text)
    except Malformed as error:
        with pytest.raises(ValueError) as caught:
            list(iter_jsonl(path))
        assert refused_line(caught, path, text) == error.args[0]
        return True
    assert list(iter_jsonl(path)) == expected
    return False


def check_array(path, text):
    expected = slow_array(text)
    if expected is None:
        with pytest.raises(ValueError) as caught:
            list(iter_jsonl(path))
        refused_line(caught, path, text)
        return True
    assert list(iter_jsonl(path)) == expected
    return False


def check_table(path, text):
    """Every whole word of the file is in a document or a label, or a line is refused."""
    path.write_bytes(text)
    try:
        documents = list(iter_table(path, separator=";"))
    except ValueError as error:
        refused_line(SimpleNamespace(value=error), path, text)
        return True
    if text.splitlines()[0].removeprefix(b"\xef\xbb\xbf") != b"text,labels":
        return False  # columns of other names are not read
    read = "\n".join(part for document, labels in documents for part in (document, *labels))
    for word in re.findall(rb"[tlm]\d[tlm]", text):
        assert read.count(word.decode()) >= 1, word
    return False


def run(check, make, path, count, seed):
    rng = random.Random(seed)
    refused = sum(check(path, mutate(rng, make(rng))) for _ in range(count))
    assert 0.2 * count < refused < 0.9 * count, refused  # both outcomes are well covered


def random_array(rng):
    blank = rng.choice([b"", b" ", b"\n", b"\n  "])
    items = (b"," + blank).join(random_jsonl(rng).splitlines())
    return b"[" + blank + items + blank + b"]" + blank


READERS = {
    "jsonl": (check_jsonl, random_jsonl),
    "json": (check_jsonl, random_array),
    "csv": (check_table, random_table),
}


@pytest.mark.parametrize("form", READERS)
def test_damaged_documents_are_read_or_refused(tmp_path, form):
    run(*READERS[form], tmp_path / f"fuzz.{form}", 1000, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("form", READERS)
def test_10_000_damaged_files_of_documents(tmp_path, form):
    run(*READERS[form], tmp_path / f"fuzz.{form}", 10_000, seed=1)
