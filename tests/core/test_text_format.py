"""The native parser of sparse rows against a slow, obvious twin."""

import random
import re
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldsm import _core
from ldsm.datasets import Dataset, iter_svmlight, iter_xmlrepo, load_svmlight, load_xmlrepo
from ldsm.datasets.lines import join_chunks

VALUE = re.compile(rb"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
LARGEST = float(np.finfo(np.float32).max)
BEYOND = Fraction(2) ** 128  # the float32 after the largest, were there one
MAX_COLUMNS = 2**31 - 9


class Malformed(Exception):
    """A line the twin refuses; its argument is the line's number."""


def exact_float32(token):
    """The float32 nearest to a decimal number, ties to even, or None if it is none or too large."""
    match = VALUE.fullmatch(token)
    if match is None or not (match[2] or match[3]):
        return None
    digits = match[2] + (match[3] or b"")
    exponent = int(match[4] or 0) - len(match[3] or b"")
    if int(digits) == 0:
        return np.float32(0)
    size = len(digits.lstrip(b"0")) + exponent
    if size > 50:
        return None
    if size < -60:
        return np.float32(0)
    exact = int(digits) * Fraction(10) ** exponent
    # All non-negative floats in order are the integers of their bits: walk to the nearest one.
    bits = struct.unpack("<I", np.float32(min(float(exact), LARGEST)).tobytes())[0]

    def value(b):
        if b == 0x7F800000:
            return BEYOND
        return Fraction(struct.unpack("<f", struct.pack("<I", b))[0])

    while value(bits) > exact:
        bits -= 1
    while bits < 0x7F800000 and value(bits + 1) <= exact:
        bits += 1
    if bits < 0x7F800000:
        below, above = exact - value(bits), value(bits + 1) - exact
        if above < below or (above == below and bits % 2):
            bits += 1
    if bits >= 0x7F800000:
        return None
    result = struct.unpack("<f", struct.pack("<I", bits))[0]
    return np.float32(-result if match[1] == b"-" else result)


def slow_parse(text, *, header=True, zero_based=True, comments=False, duplicates="error"):
    """Rows as (labels, {feature: value}), line by line, word by word."""
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    first_line, n_rows, n_features, n_labels = 1, None, MAX_COLUMNS, MAX_COLUMNS
    if header:
        pattern = rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*\r?"
        match = re.fullmatch(pattern, lines[0]) if lines else None
        if match is None:
            raise Malformed(1)
        n_rows, n_features, n_labels = map(int, match.groups())
        if max(n_features, n_labels) > MAX_COLUMNS:
            raise Malformed(1)
        lines, first_line = lines[1:], 2
    rows = []
    for number, line in enumerate(lines, start=first_line):
        line = line.removesuffix(b"\r")
        if comments:
            if line.lstrip(b" \t").startswith(b"#"):
                continue
            line = line.partition(b"#")[0]
        words = [word for word in re.split(rb"[ \t]+", line) if word]
        if len(rows) == n_rows:
            if words:
                raise Malformed(number)
            continue
        labels, features, zeros = set(), {}, set()
        if words and line[:1] not in (b" ", b"\t") and not re.match(rb"[0-9]+:", words[0]):
            if not re.fullmatch(rb"[0-9]+(,[0-9]+)*", words[0]):
                raise Malformed(number)
            labels = {int(label) for label in words.pop(0).split(b",")}
            if max(labels) >= n_labels:
                raise Malformed(number)
        for word in words:
            match = re.fullmatch(rb"([0-9]+):(.*)", word, re.DOTALL)
            value = exact_float32(match[2]) if match else None
            feature = int(match[1]) - (not zero_based) if match else -1
            if value is None or not 0 <= feature < n_features:
                raise Malformed(number)
            if feature in features and duplicates == "error":
                raise Malformed(number)
            features[feature] = features.get(feature, 0.0) + float(value)
        for feature, value in features.items():
            if abs(value) > LARGEST:  # sums of a few float32 in these tests are exact in double
                raise Malformed(number)
            features[feature] = np.float32(value)
            if value == 0:
                zeros.add(feature)
        rows.append((sorted(labels), {f: features[f] for f in sorted(features) if f not in zeros}))
    if n_rows is not None and len(rows) != n_rows:
        raise Malformed(1)
    return rows


def rows_of(data):
    """A Dataset in the twin's form."""
    X = data.X
    return [
        (labels, dict(zip(X.indices[a:b].tolist(), X.data[a:b], strict=True)))
        for labels, a, b in zip(data.labels, X.indptr[:-1], X.indptr[1:], strict=True)
    ]


def check_against_twin(path, text, block_bytes, *, header=True, **options):
    """The parser equals the twin or refuses the same line; returns whether it refused."""
    path.write_bytes(text)
    try:
        expected = slow_parse(text, header=header, comments=not header, **options)
    except Malformed as error:
        line = error.args[0]
        expected = None
    read = iter_xmlrepo if header else iter_svmlight
    blocks = read(path, block_bytes=block_bytes, **options)
    if expected is None:
        with pytest.raises(ValueError, match=re.escape(f"{path}:{line}: ")) as caught:
            join_chunks(blocks, path)
        assert str(caught.value).isprintable()
        return True
    data = join_chunks(blocks, path)
    assert rows_of(data) == expected
    assert data.X.has_sorted_indices
    return False


def random_text(rng, header, zero_based):
    n_rows, n_features, n_labels = rng.randrange(6), rng.randrange(1, 12), rng.randrange(1, 9)
    lines = [f"{n_rows} {n_features} {n_labels}"] if header else []
    for _ in range(n_rows):
        labels = rng.sample(range(n_labels), rng.randrange(min(n_labels, 4)))
        features = rng.sample(range(n_features), rng.randrange(min(n_features, 6)))
        words = [",".join(map(str, labels))]
        words += [f"{f + (not zero_based)}:{random_value(rng)}" for f in features]
        lines.append(rng.choice([" ", " ", "\t", "  "]).join(words))
    return rng.choice(["\n", "\n", "\r\n"]).join([*lines, ""]).encode()


def random_value(rng):
    return rng.choice(
        [
            "1",
            "0",
            "-2.5",
            "1e3",
            f"{rng.random():.{rng.randrange(1, 20)}f}",
            repr(rng.gauss(0, 1)),
            f"{rng.randrange(10**9)}e{rng.randrange(-60, 30)}",
        ]
    )


FRAGMENTS = [b":", b",", b" ", b"\t", b"\n", b"\r\n", b"\r", b"\0", b"-", b"+", b".", b"e", b"#"]
FRAGMENTS += [b"nan", b"inf", b"1e39", b"1e-60", b"0x1", b"9" * 25, b"0" * 30, b"\xff", b"\xc3\xa9"]
FRAGMENTS += [b"7", b"1:1", b"qid:1", b"\n\n", b"1_0", b"\xef\xbb\xbf", b"3:4e38", b"\v", b"\xa0"]


def mutate(rng, text):
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.randrange(6))
        kind = rng.randrange(6)
        if kind == 0:
            text = text[:at] + rng.choice(FRAGMENTS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[end:]
        elif kind == 2:
            text = text[:at] + rng.choice(FRAGMENTS) + text[end:]
        elif kind == 3:
            text = text[:end] + text[at:end] + text[end:]
        elif kind == 4 and at < len(text):
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
        else:
            text = text[:at] if rng.random() < 0.3 else text.rstrip(b"\r\n")
    return text


@pytest.mark.parametrize("header", [True, False])
def test_3000_fuzzed_files_match_the_twin(tmp_path, header):
    rng = random.Random(20200528 + header)
    refused = 0
    for _ in range(3000):
        zero_based = header or rng.random() < 0.5
        text = mutate(rng, random_text(rng, header, zero_based))
        options = {"duplicates": rng.choice(["error", "sum"])}
        if not header:
            options["zero_based"] = zero_based
        block_bytes = rng.choice([4, 9, 40, 1 << 20])
        refused += check_against_twin(
            tmp_path / "fuzz.txt", text, block_bytes, header=header, **options
        )
    assert 500 < refused < 2500  # both outcomes are well covered


@given(st.binary(max_size=60), st.sampled_from([4, 11, 1 << 20]))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_any_bytes(tmp_path_factory, text, block_bytes):
    path = tmp_path_factory.getbasetemp() / "bytes.txt"
    check_against_twin(path, b"2 5 5\n" + text, block_bytes)
    check_against_twin(path, text, block_bytes, header=False, zero_based=False)


def parse_values(tokens):
    text = "".join(f"0:{token}\n" for token in tokens).encode()
    indptr, _, values, *_ = _core.parse_text(text, name="values")
    filled = np.zeros(len(tokens), dtype=np.float32)  # explicit zeros are dropped
    filled[np.diff(indptr) == 1] = values
    return filled


def test_values_are_correctly_rounded():
    rng = random.Random(7)
    tokens = ["0", "-0", "0.0", "1", "+1", ".5", "5.", "1e0", "1E+2", "1e-2", "00012.500", "1e-46"]
    tokens += ["3.4028235677973366e38", "3.4028234663852886e38", "1.401298464324817e-45"]
    tokens += ["7.006492321624085e-46", "7.006492321624086e-46", "0e999999999999", "16777217"]
    tokens += ["0." + "0" * 300 + "1", "1" + "0" * 30, "1" + "0" * 20 + "e-300", "0.1e-999999999"]
    tokens += ["9007199254740993", "33554435.0000000000000000000001", "1e-400000000000000000000"]
    for _ in range(3000):
        # A point half way between two floats, and numbers a hair's breadth to either side.
        bits = rng.randrange(0x00000001, 0x7F7FFFFF)
        low, high = struct.unpack("<2f", struct.pack("<2I", bits, bits + 1))
        middle = (Fraction(low) + Fraction(high)) / 2
        tokens.append(repr(float(middle)))
        scale = rng.randrange(30)
        shifted = int(middle * 10 ** (scale + 20))
        for nudge in (-1, 0, 1):
            tokens.append(f"{shifted + nudge}e-{scale + 20}")
        tokens.append(repr(low))
        tokens.append(f"{rng.random() * 10 ** rng.randrange(-6, 6):.{rng.randrange(1, 18)}f}")
    expected = np.array([exact_float32(token.encode()) for token in tokens])
    np.testing.assert_array_equal(parse_values(tokens), expected)


CASES = [
    (b"", 1, "header"),
    (b"2 3\n", 1, "header"),
    (b"1 3 x\n0 1:1\n", 1, "header"),
    (b"1 99999999999 3\n", 1, "at most 2147483639"),
    (b"\x1f\x8b\x08 not really text", 1, "header"),
    (b"2 3 4\n0 1:1\n", 1, r"declares 2 rows\. Got 1"),
    (b"1 3 4\n0 1:1\n1 2:1\n", 3, "more rows than the header declares"),
    (b"1 3 4\n0 3:1\n", 2, "feature '3' is out of range: allowed are 0 to 2"),
    (b"1 0 4\n0 3:1\n", 2, "none is declared"),
    (b"1 3 4\n4 1:1\n", 2, "label '4' is out of range: allowed are 0 to 3"),
    (b"1 3 4\n99999999999999999999 1:1\n", 2, "label '99999999999999999999' is out of range"),
    (b"1 3 4\n-1 1:1\n", 2, "label numbers joined by commas"),
    (b"1 3 4\n1;2 1:1\n", 2, "not '1;2'"),
    (b"1 3 4\n1,,2 1:1\n", 2, "not '1,,2'"),
    (b"1 3 4\n1, 1:1\n", 2, "not '1,'"),
    (b"1 3 4\n 1,2 1:1\n", 2, "expected feature:value, not '1,2'"),
    (b"1 3 4\n1 2\n", 2, "expected feature:value, not '2'"),
    (b"1 3 4\n1 2:\n", 2, "the value in '2:' is not a finite decimal number"),
    (b"1 3 4\n1 2:abc\n", 2, "not a finite decimal number"),
    (b"1 3 4\n1 2:1:1\n", 2, "not a finite decimal number"),
    (b"1 3 4\n1 2:nan\n", 2, "not a finite decimal number"),
    (b"1 3 4\n1 2:-inf\n", 2, "not a finite decimal number"),
    (b"1 3 4\n1 2:1e39\n", 2, "'2:1e39' is too large for float32"),
    (b"1 3 4\n1 2:1e99999999999999999999\n", 2, "too large for float32"),
    (b"1 3 4\n1 2:1 1:1 2:3\n", 2, "feature 2 occurs twice"),
    (b"1 3 4\n1 2:1\0\n", 2, "'2:1\\\\x00'"),
    (b"1 3 4\n1 2:1\r1 1:1\n", 2, "'2:1\\\\r1'"),
    (b"1 3 4\n1 2:1 # no comments here\n", 2, "'#'"),
]


@pytest.mark.parametrize(("text", "line", "reason"), CASES)
def test_errors_name_file_line_and_reason(tmp_path, text, line, reason):
    path = tmp_path / "bad.txt"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=reason) as caught:
        load_xmlrepo(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    if line > 1:  # the header's messages show it in words of their own
        shown = text.split(b"\n")[line - 1].decode("latin-1")
        assert "The line: " + ascii(shown) in str(caught.value)
    with pytest.raises(Malformed) as twin:
        slow_parse(text)
    assert twin.value.args == (line,)


def test_long_lines_are_shortened_in_messages(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"1 9 9\n" + b" ".join(b"1:1" for _ in range(10_000)) + b"x" * 1000)
    with pytest.raises(ValueError, match="shortened") as caught:
        load_xmlrepo(path)
    assert len(str(caught.value)) < 500


def test_line_numbers_across_blocks(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"1000 9 9\n" + b"1 1:1\n" * 700 + b"1 1:x\n" + b"1 1:1\n" * 299)
    with pytest.raises(ValueError, match=re.escape(f"{path}:702: ")):
        join_chunks(iter_xmlrepo(path, block_bytes=64), path)


def test_empty_rows_are_kept(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"7 4 5\r\n1,0 0:1\r\n 1:2\r\n2:3\r\n4\r\n\r\n  \r\n\t3:0.5\r\n\r\n \r\n")
    data = load_xmlrepo(path)
    expected = [([0, 1], {0: 1}), ([], {1: 2}), ([], {2: 3}), ([4], {}), ([], {}), ([], {})]
    assert rows_of(data) == [*expected, ([], {3: 0.5})]
    assert data.X.shape == (7, 4)
    assert data.Y.shape == (7, 5)
    assert data.X.dtype == np.float32
    assert (data.X.indices.dtype, data.Y.indices.dtype) == (np.int32, np.int32)


def test_svmlight_is_one_based(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_bytes(b"# generated\n3 1:1 # first\n\n0 0:2\n")
    with pytest.raises(ValueError, match=r"svm:4: feature '0' .* \(zero_based=True starts at 0\)"):
        load_svmlight(path)
    data = load_svmlight(path, zero_based=True)
    assert rows_of(data) == [([3], {1: 1}), ([], {}), ([0], {0: 2})]
    assert load_svmlight(path, zero_based=True, n_features=10, n_labels=20).X.shape == (3, 10)
    with pytest.raises(ValueError, match="label '3' is out of range"):
        load_svmlight(path, zero_based=True, n_labels=3)


def test_duplicates_add_up_on_request(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"2 3 4\n2,1,2 2:1 0:1 2:0.5\n1:3 1:-3\n")
    assert rows_of(load_xmlrepo(path, duplicates="sum")) == [([1, 2], {0: 1, 2: 1.5}), ([], {})]
    path.write_bytes(b"1 3 4\n1 1:3e38 1:3e38\n")
    with pytest.raises(ValueError, match="add up to a number too large"):
        load_xmlrepo(path, duplicates="sum")
    with pytest.raises(ValueError, match="duplicates must be 'error' or 'sum'"):
        load_xmlrepo(path, duplicates="last")


def test_parser_takes_any_buffer():
    text = b"1 0:1\n2 1:1"
    for buffer in (text, bytearray(text), memoryview(text), np.frombuffer(text, np.uint8)):
        assert _core.parse_text(buffer, name="x")[5] == 2
    assert _core.parse_text(b"", name="x")[0].tolist() == [0]
    with pytest.raises(TypeError):
        _core.parse_text("1 0:1\n", name="x")


def test_writer_refuses_broken_offsets():
    x = np.array([0, 1]), np.array([0], np.int32), np.array([1], np.float32)
    y = np.array([0, 1]), np.array([0], np.int32)
    assert _core.format_text(*x, *y) == b"0 0:1\n"
    for bad in ([0, 2], [1, 0], [-1, 1], []):
        with pytest.raises(ValueError, match="row offsets of X"):
            _core.format_text(np.array(bad, np.int64), *x[1:], *y)
    with pytest.raises(ValueError, match="same number of rows"):
        _core.format_text(*x, np.array([0]), y[1])


def test_reading_memory_bounded_by_file(tmp_path):
    path = tmp_path / "liar.txt"
    path.write_bytes(b"999999999999999 2147483639 2147483639\n1 1:1\n")
    with pytest.raises(ValueError, match=r"declares 999999999999999 rows\. Got 1"):
        load_xmlrepo(path)


def test_dataset_of_nothing(tmp_path):
    path = tmp_path / "empty.txt"
    path.write_bytes(b"0 3 2")
    data = load_xmlrepo(path)
    assert (len(data), data.X.shape, data.Y.shape) == (0, (0, 3), (0, 2))
    path.write_bytes(b"")
    assert isinstance(load_svmlight(path), Dataset)
