"""Readers, writers and the Dataset they share."""

import bz2
import gzip
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer

from dataset_strategies import assert_same, documents, matrix_datasets, text_dataset
from ldsm import datasets
from ldsm.datasets import Dataset

PROPERTY = settings(derandomize=True, deadline=None, max_examples=60)
DATA = os.environ.get("LDSM_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="LDSM_DATA does not name the benchmark data")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


suffixes = st.sampled_from(["", ".gz", ".bz2"])


@given(matrix_datasets(), suffixes)
@PROPERTY
def test_xmlrepo_round_trip(folder, data, suffix):
    path = folder / f"data.txt{suffix}"
    datasets.save_xmlrepo(data, path)
    assert_same(datasets.load_xmlrepo(path), data)


@given(matrix_datasets(), suffixes, st.booleans())
@PROPERTY
def test_svmlight_round_trip(folder, data, suffix, zero_based):
    path = folder / f"data.svm{suffix}"
    datasets.save_svmlight(data, path, zero_based=zero_based)
    again = datasets.load_svmlight(
        path, zero_based=zero_based, n_features=data.n_features, n_labels=data.n_labels
    )
    assert_same(again, data)


@given(documents, suffixes)
@PROPERTY
def test_jsonl_round_trip(folder, pairs, suffix):
    path = folder / f"data.jsonl{suffix}"
    data = text_dataset(pairs)
    datasets.save_jsonl(data, path, text="body", labels="tags")
    assert_same(datasets.load_jsonl(path, text="body", labels="tags"), data)


@given(documents, suffixes, st.sampled_from([".csv", ".tsv"]), st.sampled_from([",", ";", "||"]))
@PROPERTY
def test_table_round_trip(folder, pairs, suffix, kind, separator):
    pairs = [
        (text, [name.strip() for name in names if name.strip() and separator not in name])
        for text, names in pairs
    ]
    path = folder / f"data{kind}{suffix}"
    data = text_dataset(pairs)
    datasets.save_table(data, path, separator=separator)
    assert_same(datasets.load_table(path, separator=separator), data)


@given(matrix_datasets())
@PROPERTY
def test_svmlight_matches_scikit_learn(folder, data):
    path = folder / "sklearn.svm"
    datasets.save_svmlight(data, path)
    lines = path.read_bytes().splitlines(keepends=True)
    # scikit-learn skips rows that have neither labels nor features, so none is given to it.
    filled = np.flatnonzero([line.strip() != b"" for line in lines])
    if filled.size == 0 or data.n_features == 0:
        return
    data = data.select(filled)
    path.write_bytes(b"".join(lines[i] for i in filled))
    X, y = load_svmlight_file(
        str(path), n_features=data.n_features, dtype=np.float32, multilabel=True, zero_based=False
    )
    assert (abs(X - data.X) > 1e-6 * abs(data.X)).nnz == 0
    assert [sorted(map(int, row)) for row in y] == data.labels
    if data.n_labels:
        dump_svmlight_file(data.X, data.Y, str(path), multilabel=True, zero_based=True)
        again = datasets.load_svmlight(
            path, zero_based=True, n_features=data.n_features, n_labels=data.n_labels
        )
        assert (again.Y != data.Y).nnz == 0
        assert (abs(again.X - data.X) > 1e-6 * abs(data.X)).nnz == 0


def test_writing_is_all_or_nothing(tmp_path):
    path = tmp_path / "data.jsonl"
    datasets.save_jsonl(Dataset.from_texts(["old"], [[]]), path)
    broken = Dataset.from_texts(["fine", "lone surrogate \ud800"], [[], []])
    with pytest.raises(ValueError, match="surrogates"):
        datasets.save_jsonl(broken, path)
    assert os.listdir(tmp_path) == ["data.jsonl"]
    assert datasets.load_jsonl(path).texts == ["old"]
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    datasets.save_jsonl(Dataset.from_texts(["new"], [[]]), link)
    assert link.is_symlink()
    assert datasets.load_jsonl(path).texts == ["new"]


def test_compressed_files_are_deterministic(tmp_path):
    data = Dataset([[1]], [[1]])
    for name in ("a.txt.gz", "b.txt.gz"):
        datasets.save_xmlrepo(data, tmp_path / name)
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


@pytest.mark.parametrize("suffix", [".gz", ".bz2"])
def test_damaged_compression_is_a_value_error(tmp_path, suffix):
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
    whole = compress(b"100 5 5\n" + b"".join(b"%d 1:%d\n" % (i % 5, i * i) for i in range(100)))
    path = tmp_path / f"data.txt{suffix}"
    for damaged in (whole[:-9], whole[:20], whole[:30] + b"\0\0\0\0" + whole[34:], b"not at all"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"data.txt{suffix}"):
            datasets.load_xmlrepo(path)
    with pytest.raises(FileNotFoundError):
        datasets.load_xmlrepo(tmp_path / f"missing.txt{suffix}")


def test_split_files_of_the_repository(tmp_path):
    data, rows = tmp_path / "data.txt", tmp_path / "trSplit.txt"
    data.write_text("4 9 9\n0 0:1\n1 1:1\n2 2:1\n3 3:1\n")
    rows.write_text("4 1\n2 3\n")
    assert datasets.load_xmlrepo(data, split_file=rows).labels == [[3], [1]]
    assert datasets.load_xmlrepo(data, split_file=rows, split=1).labels == [[0], [2]]
    with pytest.raises(ValueError, match=r"split must lie in \[0, 2\)"):
        datasets.load_xmlrepo(data, split_file=rows, split=2)
    for text, reason in [
        ("4 1\n0 3\n", r"trSplit.txt:2: row numbers must lie in \[1, 4\]"),
        ("4 1\n2 5\n", r"trSplit.txt:2: row numbers must lie in \[1, 4\]"),
        ("4 1\n2\n", "trSplit.txt:2: expected 2 numbers"),
        ("4 1\n2 x\n", "trSplit.txt:2: expected row numbers. The line: '2 x'"),
        ("4 1\n\n2 1\n", "trSplit.txt:2: expected row numbers, got an empty line"),
        ("", "empty file"),
    ]:
        rows.write_text(text)
        with pytest.raises(ValueError, match=reason):
            datasets.load_xmlrepo(data, split_file=rows)


def test_label_names_from_file_or_list(tmp_path):
    data, names = tmp_path / "data.txt", tmp_path / "Y.txt"
    data.write_text("2 3 2\n0,1 0:1\n1 2:1\n")
    names.write_bytes("höhe\r\nb c\n".encode())
    loaded = datasets.load_xmlrepo(data, label_names=names, feature_names=["x", "y", "z"])
    assert loaded.labels == [["höhe", "b c"], ["b c"]]
    assert loaded.feature_names == ["x", "y", "z"]
    with pytest.raises(ValueError, match=r"label_names must have 2 entries\. Got 3"):
        datasets.load_xmlrepo(data, label_names=list("abc"))
    names.write_bytes(b"fine\n\xff\n")
    with pytest.raises(ValueError, match=r"Y.txt:2: is not UTF-8"):
        datasets.load_xmlrepo(data, label_names=names)


def test_jsonl_forms_and_errors(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"text": "a", "labels": "one"}\r\n'
        b'{"labels": [3, "x", "x"], "text": "b", "id": null}\n{"text": "", "labels": []}\n\n \n'
    )
    data = datasets.load_jsonl(path)
    assert data.texts == ["a", "b", ""]
    assert data.labels == [["one"], ["3", "x"], []]
    assert data.label_names == ["3", "one", "x"]
    for line, reason in [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "expected a JSON object"),
        (b'{"text": "a"}', "has no field 'labels'"),
        (b'{"labels": []}', "has no field 'text'"),
        (b'{"text": 1, "labels": []}', "field 'text' must be a string"),
        (b'{"text": "a", "labels": null}', "field 'labels' must be a list"),
        (b'{"text": "a", "labels": [true]}', "field 'labels' must be a list"),
        (b'{"text": "a", "labels": [["b"]]}', "field 'labels' must be a list"),
        (b'{"text": "\xff", "labels": []}', "is not UTF-8"),
        (b"", "got an empty line"),
    ]:
        path.write_bytes(b'{"text": "", "labels": []}\n' * 2 + line + b"\n{}\n")
        with pytest.raises(ValueError, match=f"data.jsonl:3: .*{reason}"):
            datasets.load_jsonl(path)


def test_iterators_stream(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"text": "good", "labels": []}\nbad\n')
    stream = datasets.iter_jsonl(path)
    assert next(stream) == ("good", [])
    with pytest.raises(ValueError, match=r"data\.jsonl:2"):
        next(stream)


def test_table_forms_and_errors(tmp_path):
    path = tmp_path / "data.csv"
    long = "word " * 50_000
    path.write_bytes(
        b'\xef\xbb\xbfid,labels,text\r\n1," a ;b","line\r\nbreak ""quoted"""\r\n2,,'
        + long.encode()
        + b"\r\n\r\n"
    )
    data = datasets.load_table(path, separator=";")
    assert data.texts == ['line\r\nbreak "quoted"', long]
    assert data.labels == [["a", "b"], []]
    for text, reason in [
        ("text,labels\na,b\nc\n", "data.csv:3: expected 2 cells, got 1"),
        ("text,labels\na,b\nc,d,e\n", "data.csv:3: expected 2 cells, got 3"),
        ("text,labels\n\na,b\n", "data.csv:2: expected a row, got an empty line"),
        ('text,labels\n"a\nb",c\n"d,e\n', "data.csv:4: is not a row of a table.*The line: '\"d,e"),
        ('text,labels\n"a"b,c\n', 'data.csv:2: is not a row of a table.*The line: \'"a"b,c'),
        ('text,labels\na,"b;;c"\n', "data.csv:2: empty label"),
        (
            "text,tags\na,b\n",
            "data.csv:1: has no column 'labels', only 'text', 'tags'; use labels= to name another",
        ),
        ("text,labels,text\na,b,c\n", "data.csv:1: has 2 columns 'text'"),
        ("", "data.csv:1: is empty: expected a header line"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=reason):
            datasets.load_table(path, separator=";")
    path.write_bytes(b"text,labels\na,b\n\xff,c\n")
    with pytest.raises(ValueError, match=r"data.csv:3: is not UTF-8"):
        datasets.load_table(path)
    with pytest.raises(ValueError, match="delimiter must be one character"):
        datasets.load_table(tmp_path / "data.xyz")
    with pytest.raises(ValueError, match="cannot be written"):
        datasets.save_table(Dataset.from_texts(["a"], [["b,c"]]), path)


def test_format_by_suffix(tmp_path):
    matrix, texts = Dataset([[0, 1]], [[1]]), Dataset.from_texts(["a"], [["b"]])
    datasets.save_xmlrepo(matrix, tmp_path / "a.txt.gz")
    datasets.save_svmlight(matrix, tmp_path / "a.svm")
    datasets.save_store(matrix, tmp_path / "a")
    datasets.save_jsonl(texts, tmp_path / "a.jsonl.bz2")
    datasets.save_table(texts, tmp_path / "a.TSV")
    for name in ("a.txt.gz", "a.svm", "a"):
        assert_same(datasets.load_dataset(tmp_path / name), matrix)
    for name in ("a.jsonl.bz2", "a.TSV"):
        assert_same(datasets.load_dataset(tmp_path / name), texts)
    assert_same(datasets.load_dataset(tmp_path / "a.txt.gz", format="xmlrepo"), matrix)
    with pytest.raises(ValueError, match="format= to name its format"):
        datasets.load_dataset(tmp_path / "a.bin")
    with pytest.raises(ValueError, match="format must be one of"):
        datasets.load_dataset(tmp_path / "a.svm", format="arff")


def test_dataset_accepts_any_matrix():
    dense = np.array([[0, 1.5, 0], [2, 0, 0]])
    unsorted = sparse.csr_array(([1.0, 0.5, 2], [1, 1, 0], [0, 2, 3]), shape=(2, 3))
    before = [array.copy() for array in (unsorted.data, unsorted.indices, unsorted.indptr)]
    for array in (unsorted.data, unsorted.indices, unsorted.indptr):
        array.flags.writeable = False
    wide = sparse.csr_array(dense)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    Y = [[1, 0], [0, 1]]
    for X in (
        dense,
        dense.tolist(),
        sparse.csc_array(dense),
        sparse.coo_matrix(dense),
        unsorted,
        wide,
    ):
        data = Dataset(X, sparse.csc_matrix(Y, dtype=bool))
        assert isinstance(data.X, sparse.csr_array)
        assert (data.X.dtype, data.X.indices.dtype) == (np.float32, np.int32)
        np.testing.assert_array_equal(data.X.toarray(), dense)
        np.testing.assert_array_equal(data.Y.toarray(), Y)
    for array, kept in zip((unsorted.data, unsorted.indices, unsorted.indptr), before, strict=True):
        np.testing.assert_array_equal(array, kept)
    assert Dataset(data.X, data.Y).X is data.X


def test_dataset_refuses_what_does_not_fit():
    for X in ([[np.nan]], [[np.inf]], [[1e39]]):
        with pytest.raises(ValueError, match="finite"):
            Dataset(X, [[1]])
    with pytest.raises(ValueError, match=r"'Y' argument must be a matrix of 0 and 1\. Got 2"):
        Dataset([[1]], [[2]])
    with pytest.raises(ValueError, match=r"same number of rows\. Got 1 and 2"):
        Dataset([[1]], [[1], [0]])
    with pytest.raises(ValueError, match="either X or texts"):
        Dataset(None, [[1]])
    with pytest.raises(ValueError, match="matrix of rows and columns"):
        Dataset([1, 2], [[1], [0]])
    with pytest.raises(ValueError, match="vectorize"):
        datasets.save_xmlrepo(Dataset.from_texts(["a"], [[]]), "never.txt")
    with pytest.raises(ValueError, match="holds texts"):
        datasets.save_jsonl(Dataset([[1]], [[1]]), "never.jsonl")


@given(matrix_datasets(), st.data())
@PROPERTY
def test_select_is_numpy_indexing(data, choice):
    n = len(data)
    rows = choice.draw(
        st.one_of(
            st.lists(st.integers(-n, n - 1), max_size=8) if n else st.just([]),
            st.lists(st.booleans(), min_size=n, max_size=n).map(lambda m: np.array(m, dtype=bool)),
            st.slices(n),
        )
    )
    chosen = data.select(rows)
    dense, Y = data.X.toarray(), data.Y.toarray()
    if isinstance(rows, list):
        rows = np.array(rows, dtype=np.int64)
    np.testing.assert_array_equal(chosen.X.toarray(), dense[rows])
    np.testing.assert_array_equal(chosen.Y.toarray(), Y[rows])


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 30))
@PROPERTY
def test_split_keeps_every_label_in_training(seed, n_rows, n_labels):
    rng = np.random.default_rng(seed)
    Y = rng.random((n_rows, n_labels)) < rng.random(n_labels) ** 3
    Y[: n_rows // 2] = 0  # enough rows that anyone may take
    data = Dataset(np.arange(1, n_rows + 1)[:, None], Y)
    wanted = max(1, n_rows // 4)
    train, validation = data.split(wanted, seed=seed)
    assert (len(train), len(validation)) == (n_rows - wanted, wanted)
    assert ((train.Y.sum(axis=0) > 0) == (Y.sum(axis=0) > 0)).all()
    numbers = np.concatenate([train.X.data, validation.X.data])
    assert sorted(numbers) == list(range(1, n_rows + 1))
    again = data.split(wanted, seed=seed)
    assert_same(again[0], train)
    assert_same(again[1], validation)


def test_split_with_rare_labels():
    # Four rows have labels of their own, two share one: only one of these two can go.
    data = Dataset(np.eye(6), np.eye(5)[[0, 1, 2, 3, 4, 4]])
    with pytest.warns(UserWarning, match="1 rows for validation instead of 3"):
        train, validation = data.split(3)
    assert (len(train), len(validation)) == (5, 1)
    for bad in (0.0, 1.0, 0, 6, -1):
        with pytest.raises(ValueError, match="validation must be a share"):
            data.split(bad)


def test_align_by_name():
    train = Dataset(
        [[1, 2, 3]], [[1, 0, 1]], feature_names=["a", "b", "c"], label_names=["x", "idle", "z"]
    )
    test = Dataset(
        [[10, 20, 30], [0, 5, 6]],
        [[1, 1, 1, 0], [0, 1, 0, 1]],
        feature_names=["c", "new", "a"],
        label_names=["z", "late", "x", "idle"],
    )
    aligned, unseen = test.align(train)
    np.testing.assert_array_equal(aligned.X.toarray(), [[30, 0, 10], [6, 0, 0]])
    np.testing.assert_array_equal(aligned.Y.toarray(), [[1, 0, 1], [0, 1, 0]])
    assert aligned.label_names == ["x", "idle", "z"]
    assert unseen.labels == {"late": 2, "idle": 1}
    assert unseen.features == {"new": 2}
    assert unseen.dropped_per_row.tolist() == [1, 1]
    assert str(unseen) == (
        "2 labels without a training row (3 occurrences), 1 feature without a column"
    )
    with pytest.raises(ValueError, match="Both data sets or neither must have label_names"):
        Dataset(test.X, test.Y).align(train)
    twice = Dataset([[1]], [[1, 0]], feature_names=["a"], label_names=["x", "x"])
    with pytest.raises(ValueError, match="label_names must be unique"):
        twice.align(train)


def test_align_by_number():
    train = Dataset([[1, 2]], [[1, 0]])
    same = Dataset([[0, 4]], [[0, 1]])
    aligned, unseen = same.align(train)
    assert aligned.X is same.X  # nothing to move, nothing copied
    assert unseen.labels == {1: 1}
    narrow, _ = Dataset([[7]], [[1]]).align(train)
    assert narrow.X.shape == (1, 2)
    assert narrow.X.toarray().tolist() == [[7, 0]]
    assert narrow.Y.toarray().tolist() == [[1, 0]]
    wide, unseen = Dataset([[7, 0, 9]], [[1, 0, 1]]).align(train)
    assert wide.X.toarray().tolist() == [[7, 0]]
    assert (unseen.labels, unseen.features) == ({2: 1}, {2: 1})
    with pytest.raises(ValueError, match="vectorize"):
        Dataset.from_texts(["a"], [["b"]]).align(train)


def test_vectorize_and_align_a_test_set():
    train = Dataset.from_texts(["cod quota law", "beef law"], [["fish"], ["meat"]])
    test = Dataset.from_texts(["cod tax"], [["fish", "tax"]])
    vectorizer = TfidfVectorizer(dtype=np.float32)
    train_rows = train.vectorize(vectorizer)
    test_rows, unseen = test.vectorize(vectorizer, fit=False).align(train_rows)
    assert train_rows.feature_names == ["beef", "cod", "law", "quota"]
    assert test_rows.X.toarray().tolist() == [[0, 1, 0, 0]]
    assert unseen.labels == {"tax": 1}
    with pytest.raises(ValueError, match="already has features"):
        train_rows.vectorize(vectorizer)


@needs_data
@pytest.mark.parametrize(
    ("name", "rows", "test_rows", "features", "labels", "non_zeros"),
    [
        ("bibtex", 4880, 2515, 1836, 159, 68),
        ("delicious", 12908, 3183, 500, 983, 18),
        ("mediamill-sample", 1500, 500, 120, 101, 120),
    ],
)
def test_benchmark_data(tmp_path, name, rows, test_rows, features, labels, non_zeros):
    train = datasets.load_xmlrepo(f"{DATA}/{name}_train.txt")
    test = datasets.load_xmlrepo(f"{DATA}/{name}_test.txt")
    assert train.X.shape == (rows, features)
    assert (test.X.shape, train.n_labels) == ((test_rows, features), labels)
    assert train.X.nnz / rows == pytest.approx(non_zeros, abs=1)
    test.align(train)
    datasets.save_xmlrepo(train, tmp_path / "again.txt")
    assert_same(datasets.load_xmlrepo(tmp_path / "again.txt"), train)


@needs_data
def test_eurlex57k():
    test = datasets.load_jsonl(f"{DATA}/eurlex57k_test.jsonl.gz")
    assert len(test) == 6000
    seen = set()
    for _, labels in datasets.iter_jsonl(f"{DATA}/eurlex57k_train.jsonl.gz"):
        seen.update(labels)
    assert len(seen) == 4108
    train = Dataset.from_texts([""], [sorted(seen)])
    _, unseen = test.align(train)
    assert len(unseen.labels) == 85
    assert unseen.dropped_per_row.sum() == sum(unseen.labels.values())
    with gzip.open(f"{DATA}/eurlex57k_test.jsonl.gz", "rt", encoding="utf-8") as file:
        assert json.loads(next(file))["text"] == test.texts[0]
