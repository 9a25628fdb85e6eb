"""Model files under MLflow: saved, loaded, served. `make test-mlflow` installs MLflow."""

import io
import json
import os
import re
import socket
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm import LdSMClassifier, TextTagger
from patience import PATIENCE, started, wait_until
from text_corpus import NEW, TAGS, TEXTS, small
from tiny_encoders import texts_and_tags, write_meanings

pytestmark = [pytest.mark.mlflow, pytest.mark.filterwarnings("default")]
pd = pytest.importorskip("pandas")
mlflow = pytest.importorskip("mlflow", reason="`make test-mlflow` installs it")
if not hasattr(mlflow, "pyfunc"):  # a folder of these tests
    pytest.skip("`make test-mlflow` installs MLflow", allow_module_level=True)

import ldsm.mlflow  # noqa: E402


@pytest.fixture(scope="module")
def tagger():
    return small().fit(TEXTS, TAGS)


@pytest.fixture(scope="module")
def folder(tagger, tmp_path_factory):
    path = tmp_path_factory.mktemp("mlflow") / "tags"
    ldsm.mlflow.save_model(tagger, path)
    return path


@pytest.fixture(scope="module")
def loaded(folder):
    return mlflow.pyfunc.load_model(str(folder))


def pairs(frame):
    return [list(zip(*row, strict=True)) for row in frame[["labels", "scores"]].to_numpy()]


def test_saved_files(folder, tagger):
    """The model file itself, and nothing that could run code."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert "data/model.ldsm" in files
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".joblib", ".py"))]
    described = (folder / "MLmodel").read_text()
    assert "loader_module: ldsm.mlflow" in described and "pickle" not in described
    assert ldsm.load(folder / "data" / "model.ldsm").fingerprint_ == tagger.fingerprint_


@pytest.mark.parametrize(
    "form",
    [
        list,
        pd.Series,
        lambda texts: np.array(texts, dtype=object),
        lambda texts: pd.DataFrame({"text": texts}),
        lambda texts: pd.DataFrame({"number": range(len(texts)), "text": texts}),
        lambda texts: pd.DataFrame({"whatever": texts}),
        lambda texts: {"text": texts},
        lambda texts: {"number": list(range(len(texts))), "text": texts},
        lambda texts: [{"text": text} for text in texts],
    ],
    ids=[
        *("list", "series", "array", "column text", "one of two columns", "one column"),
        *("dict", "dict of two columns", "list of dicts"),
    ],
)
def test_forms_of_texts(loaded, tagger, form):
    assert pairs(loaded.predict(form(NEW))) == tagger.predict(NEW)


def parsed(body):
    """What the scoring server hands to the model of a JSON request."""
    from mlflow.pyfunc import scoring_server  # warns when it is imported

    return scoring_server.infer_and_parse_data(body)


@pytest.mark.parametrize(
    "form",
    [
        list,
        lambda texts: [[text] for text in texts],
        lambda texts: {"text": texts},
        lambda texts: {"text": [[text] for text in texts]},
        lambda texts: {"whatever": texts},
        lambda texts: {"number": list(range(len(texts))), "text": texts},
        lambda texts: {"number": [[i] for i in range(len(texts))], "text": [[t] for t in texts]},
        lambda texts: [{"text": text} for text in texts],
        lambda texts: [{"number": i, "text": text} for i, text in enumerate(texts)],
    ],
    ids=[
        *("texts", "rows", "column", "column of rows", "any column", "columns", "columns of rows"),
        *("mappings", "mappings of two columns"),
    ],
)
@pytest.mark.parametrize("key", ["inputs", "instances"])
@pytest.mark.parametrize("n_texts", [1, 3])
def test_forms_of_requests(loaded, tagger, key, form, n_texts):
    texts = NEW[:n_texts]
    assert pairs(loaded.predict(parsed({key: form(texts)}))) == tagger.predict(texts)


def test_forms_of_tables(loaded, tagger):
    from mlflow.pyfunc import scoring_server

    texts = NEW[:3]
    rows = [[text] for text in texts]
    for body in (
        {"dataframe_split": {"columns": ["text"], "data": rows}},
        {"dataframe_split": {"data": rows}},
        {"dataframe_records": [{"text": text} for text in texts]},
    ):
        assert pairs(loaded.predict(parsed(body))) == tagger.predict(texts)
    for index in (True, False):
        table = io.StringIO(pd.DataFrame({"text": texts}).to_csv(index=index))
        assert pairs(loaded.predict(scoring_server.parse_csv_input(table))) == tagger.predict(texts)


def test_requests_without_texts(loaded):
    for body in ({"inputs": []}, {"inputs": {"text": []}}, {"instances": []}):
        assert len(loaded.predict(parsed(body))) == 0


def test_param_that_is_no_number(loaded):
    with pytest.raises(mlflow.MlflowException, match="k"):
        loaded.predict(NEW, params={"k": "many"})


def test_unknown_param(tagger):
    with pytest.raises(ValueError, match="params must be among k, min_score, tail. Got 'n'"):
        ldsm.mlflow.PyfuncModel(tagger).predict(NEW, {"n": 1})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "in one column, or in a column 'text'. Got .*'a'"),
        ("a text", "put a single document into a list"),
        ([1, 2], "Document 0 must be a str. Got 1"),
        ({}, "Columns must have the same number of rows"),
        ({"a": ["x"], "b": ["y"]}, "in one column, or in a column 'text'. Got .*'a'"),
        ({"text": ["x", "y"], "b": ["y"]}, "same number of rows. Got the shapes .*'text': \\(2,"),
        ({"text": [["x", "y"]]}, r"Document 0 must be a str. Got \['x', 'y'\]"),
        ({"n": [1], "text": [["x", "y"]]}, r"one value per row. Got 'text' with .*\(1, 2\)"),
        ([{"text": "x"}, "y"], "all rows or none must be mappings of columns to values"),
        ([{"text": "x"}, {"body": "y"}], "in one column, or in a column|Document 1 must be a str"),
        (np.array("a text"), "put a single document into a list"),
    ],
)
def test_wrong_inputs(tagger, given, said):
    with pytest.raises(ValueError, match=said):
        ldsm.mlflow.PyfuncModel(tagger).predict(given)


def test_classifier(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 20), density=0.3, rng=rng, format="csr", dtype=np.float32)
    Y = (X.toarray()[:, :4] > 0.3).astype(int)
    clf = LdSMClassifier(5, random_state=0).fit(X, Y)
    clf.save(tmp_path / "rows.ldsm")
    ldsm.mlflow.save_model(tmp_path / "rows.ldsm", tmp_path / "rows")
    model = mlflow.pyfunc.load_model(str(tmp_path / "rows"))
    labels, scores = clf.predict_topk(X[:9], 2)
    numbers = X[:9].toarray().tolist()
    named = [{f"x{i}": value for i, value in enumerate(row)} for row in numbers]
    requests = [
        {"inputs": numbers},
        {"instances": numbers},
        {"inputs": {"x": numbers}},
        {"inputs": {name: [row[name] for row in named] for name in named[0]}},
        {"instances": named},
        {"inputs": named},
        {"dataframe_split": {"data": numbers}},
        {"dataframe_records": named},
    ]
    forms = [X[:9], X[:9].toarray(), pd.DataFrame(X[:9].toarray()), *map(parsed, requests)]
    for rows in forms:
        answer = model.predict(rows, params={"k": 2})
        for row, (own, its) in enumerate(zip(labels.tolist(), scores.tolist(), strict=True)):
            n = int(np.sum(scores[row] > 0))
            assert answer.labels[row] == own[:n] and answer.scores[row] == its[:n]


def test_encoder(tmp_path):
    """It is given at loading, or its path at saving; without it, loading fails."""
    write_meanings(tmp_path / "tiny")
    encoder, texts = str(tmp_path / "tiny"), texts_and_tags(20, seed=1)[0]
    tagger = TextTagger(LdSMClassifier(4), encoder=encoder).fit(*texts_and_tags(1200))
    folder, known = str(tmp_path / "tags"), str(tmp_path / "known")
    ldsm.mlflow.save_model(tagger, folder)
    assert "ldsm[encoder,mlflow]==" in (tmp_path / "tags" / "requirements.txt").read_text()
    with pytest.raises(ValueError, match="needs its encoder, 'tiny' .* model_config={'encoder': P"):
        mlflow.pyfunc.load_model(folder)
    with pytest.raises(ValueError, match="The encoder .*missing does not exist"):
        mlflow.pyfunc.load_model(folder, model_config={"encoder": str(tmp_path / "missing")})
    ldsm.mlflow.save_model(tagger, known, model_config={"encoder": encoder})
    for model in (
        mlflow.pyfunc.load_model(folder, model_config={"encoder": encoder}),
        mlflow.pyfunc.load_model(known),
    ):
        assert pairs(model.predict(texts)) == tagger.predict(texts)


def test_unsavable_models(tmp_path):
    with pytest.raises(ValueError, match="model must be a TextTagger, an LdSMClassifier or the"):
        ldsm.mlflow.save_model(3, tmp_path / "x")
    (tmp_path / "x.ldsm").write_text("not a model")
    with pytest.raises(ValueError, match="x.ldsm' cannot be loaded"):
        ldsm.mlflow.save_model(tmp_path / "x.ldsm", tmp_path / "x")
    with pytest.raises(Exception, match="not fitted"):
        ldsm.mlflow.save_model(TextTagger(), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_logged_and_registered(tagger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    with mlflow.start_run():
        info = ldsm.mlflow.log_model(tagger, "tags", registered_model_name="tags")
    for uri in (info.model_uri, "models:/tags/1"):
        assert pairs(mlflow.pyfunc.load_model(uri).predict(NEW)) == tagger.predict(NEW)


# -- serving ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ask(folder, tmp_path_factory):
    """A function that sends a request to `mlflow models serve`; its status and its answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    binaries = Path(sys.executable).parent
    log = tmp_path_factory.mktemp("log") / "log.txt"
    command = [
        *(binaries / "mlflow", "models", "serve", "--env-manager", "local"),
        *("--model-uri", str(folder), "--host", "127.0.0.1", "--port", str(port)),
    ]
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"

    def send(path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def answers():
        with suppress(OSError):
            return send("/ping")[0] == 200
        assert running.poll() is None, log.read_text()
        return False

    with (
        log.open("w") as output,
        started(command, env={**os.environ, "PATH": path}, stdout=output, stderr=output) as running,
    ):
        wait_until(answers)
        yield send


@pytest.mark.parametrize(
    "body",
    [
        {"inputs": NEW[:3]},
        {"dataframe_split": {"columns": ["text"], "data": [[text] for text in NEW[:3]]}},
        {"dataframe_records": [{"text": text} for text in NEW[:3]]},
        {"inputs": {"text": NEW[:3]}},
        {"inputs": [{"text": text} for text in NEW[:3]]},
        {"instances": [{"text": text} for text in NEW[:3]]},
    ],
    ids=["inputs", "split", "records", "columns", "rows", "instances"],
)
def test_invocations(ask, tagger, body):
    status, answer = ask("/invocations", {**body, "params": {"k": 2}})
    assert status == 200
    rows = json.loads(answer)["predictions"]
    assert [list(zip(row["labels"], row["scores"], strict=True)) for row in rows] == tagger.predict(
        NEW[:3], 2
    )


def test_wrong_requests(ask):
    status, answer = ask("/invocations", {"inputs": ["a text"], "params": {"k": 0}})
    assert status == 400 and "'k' parameter must be an int >= 1. Got 0 instead" in answer
    status, answer = ask("/invocations", {"inputs": [1.5]})
    assert status == 400 and "Document 0 must be a str. Got 1.5" in answer
    table = {"columns": ["a", "b"], "data": [["x", "y"]]}
    status, answer = ask("/invocations", {"dataframe_split": table})
    assert status == 400 and "in a column 'text'. Got the columns 'a', 'b'" in answer
    status, answer = ask("/invocations", {"texts": ["a text"]})
    assert status == 400 and "inputs" in answer


def test_page(tmp_path, monkeypatch, ask):
    """The Python of `docs/mlflow.md` runs from top to bottom, and its request is answered."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "mlflow.md").read_text()
    code = "".join(re.findall(r"```python\n(.*?)```", page, re.S))
    names = {}
    exec(compile(code, "docs/mlflow.md", "exec"), names)
    assert names["again"].predict(["a refund"], params={"k": 1}).labels[0] == ["billing"]
    (body,) = re.findall(r"--json '(.*)'", page)
    assert ask("/invocations", json.loads(body))[0] == 200
