"""Trees by other processes, which may be killed: the same bits as in this one."""

import importlib
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import yaml
from distributed import Client

import dask
import ldsm.dask
from cli_runs import within
from dask_clusters import N_TREES, cluster, small, trees_in
from ldsm import TextTagger, datasets
from ldsm._execution.chosen import running_on
from ldsm._execution.executor import ThreadExecutor
from ldsm._trees.training_data import StoredTrainingData
from ldsm.dask import ClusterError, workers
from ldsm.datasets.store import locate_store, open_located

pytestmark = pytest.mark.not_under("address", "thread", reason="works against a clock")

SCALING = Path(__file__).parents[2] / "docs" / "scaling.md"
SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def client():
    """Two workers, which all tests leave intact."""
    with cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def expected(store):
    """The fingerprint for each seed, as a fit in threads gives it."""
    data = datasets.open_store(store)
    return {seed: small(seed, n_jobs=2).fit(data).fingerprint_ for seed in SEEDS}


# -- what is sent ------------------------------------------------------------------------------


def recorded_work(data):
    """What each task of a fit is handed."""
    recorded = []

    class Recording(ThreadExecutor):
        def map(self, task, parts, **options):
            recorded.append(task)
            return super().map(task, parts, **options)

    with running_on(Recording(1)):
        small(n_estimators=1).fit(data)
    return recorded[0]


def test_paths_are_sent_not_arrays(store):
    data = datasets.open_store(store)
    sent = pickle.dumps(recorded_work(data))
    assert len(sent) < 1500 and store.encode() in sent
    work = pickle.loads(sent)
    assert isinstance(work.data, StoredTrainingData)
    rows = work.data.opened()
    assert rows is pickle.loads(sent).data.opened()  # once per process
    assert isinstance(rows.x.values.base, np.memmap) or isinstance(rows.x.values, np.memmap)
    # Rows that are in no store, or no longer all rows of one, are sent as they are.
    for changed in (data.select(slice(None)), datasets.Dataset(data.X, data.Y)):
        assert changed.store is None
        assert len(pickle.dumps(recorded_work(changed))) > data.X.data.nbytes


def test_changed_store_is_refused(store, tmp_path):
    location = locate_store(store)
    assert open_located(location).store == location
    for seed, message in (
        (1, "is different on this machine: its meta.json differs"),
        (None, "no store"),
    ):
        folder = tmp_path / "rows"
        if seed is not None:
            datasets.make_xmc(700, 200, 30, seed=seed).save(folder)
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            open_located(location._replace(folder=str(folder)))
        if seed is not None:
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()


def test_non_canonical_store(client, tmp_path):
    """Zeros that a store holds explicitly: each process leaves them out for itself."""
    data = datasets.make_xmc(600, 100, 20, seed=3)
    data.X.data[::7] = 0
    data.save(tmp_path / "rows")
    clean = data.X.copy()
    clean.eliminate_zeros()
    expected = small().fit(clean, data.Y).fingerprint_
    opened = datasets.open_store(tmp_path / "rows")
    assert opened.X.nnz > clean.nnz
    fitted = ldsm.dask.fit(client, opened, None, small(), tmp_path / "trees")
    assert fitted.fingerprint_ == expected


# -- the same bits -----------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_same_fingerprint_for_joblib_backends(backend, client, store, expected):
    data = datasets.open_store(store)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        for seed in SEEDS:
            assert small(seed).fit(data).fingerprint_ == expected[seed]
        assert small().fit(data.X, data.Y).fingerprint_ == expected[0]  # arrays go as well


@pytest.mark.parametrize("n_workers", [1, pytest.param(2, marks=pytest.mark.long), 3])
def test_same_fingerprint_for_any_workers(n_workers, store, expected, tmp_path):
    reports = []
    with cluster(n_workers) as client:
        for seed in SEEDS:
            fitted = ldsm.dask.fit(
                client,
                store,
                None,
                small(seed).get_params(),
                tmp_path / f"trees {seed}",
                callback=lambda *report: reports.append(report),
            )
            assert fitted.fingerprint_ == expected[seed]
            assert fitted.training_["trees_from_checkpoint"] == 0
        total = reports[-1][1]
        assert reports[-1] == (total, total) and all(done <= total for done, _ in reports)
        tight = ldsm.dask.fit(client, store, None, small(memory_limit=1 << 20), tmp_path / "tight")
        assert tight.fingerprint_ == expected[0]
        # All is there by now, and more trees can be added to it.
        more = ldsm.dask.fit(client, store, None, small(seed, n_estimators=7), tmp_path / "trees 2")
        assert more.training_["trees_from_checkpoint"] == N_TREES
    assert not [path for path in (tmp_path / "trees 0").iterdir() if path.suffix == ".tmp"]


def test_command_fits_in_processes(capsys, store, expected, tmp_path):
    run = within(capsys)
    train = ("train", store, "-o", tmp_path / "model.ldsm", "--n-estimators", N_TREES)
    train += ("--seed", 0, "--dask", "local:1")
    done = run(*train, "--checkpoint", tmp_path / "trees", "--json")
    assert done.code == 0, done.err
    assert done.json["fingerprint"] == expected[0]
    assert "training on rows: done" in done.err
    for address in ("local:x", "nowhere", "tcp://a:b", "udp://127.0.0.1:1", "http://a:1"):
        wrong = run(*train, "--checkpoint", tmp_path / "trees", "--dask", address)
        assert wrong.code == 2 and f"Got '{address}'" in wrong.err
    for address, cause in (
        ("tcp://127.0.0.1:1", "Timed out"),
        ("tls://127.0.0.1:1", "TLS expects"),
    ):
        with dask.config.set({"distributed.comm.timeouts.connect": "500ms"}):
            wrong = run(*train, "--checkpoint", tmp_path / "trees", "--dask", address)
        assert wrong.code == 1
        assert f"Cannot connect to the scheduler '{address}': {cause}" in wrong.err


def make_certificates(folder):
    """Those of the document: an authority's own, and one each for a host and for a person."""

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    made = ("-newkey", "rsa:2048", "-nodes", "-keyout")
    openssl("req", "-x509", "-days", "1", "-subj", "/CN=ca", *made, "ca-key.pem", "-out", "ca.pem")
    signed = ("-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-days", "1")
    for name in ("host", "me"):
        asked = ("-subj", f"/CN={name}", *made, f"{name}-key.pem", "-out", f"{name}.csr")
        openssl("req", *asked)
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")
def test_tls_as_documented(capsys, store, expected, tmp_path):
    make_certificates(tmp_path)
    block = re.search(r"```yaml\n(.*?)```", SCALING.read_text(), re.DOTALL)[1]
    added = yaml.safe_load(block.replace("/etc/dask", str(tmp_path)))
    configuration = dask.config.merge(dask.config.config, added)
    train = ("train", store, "-o", tmp_path / "model.ldsm", "--n-estimators", N_TREES)
    train += ("--seed", 0, "--checkpoint", tmp_path / "trees", "--json", "--dask")
    run = within(capsys)
    with dask.config.set(configuration), cluster(1, protocol="tls://") as client:
        address = client.scheduler.address
        done = run(*train, address)
        assert done.code == 0, done.err
        assert done.json["fingerprint"] == expected[0]
    assert address.startswith("tls://")


def test_callback_error_ends_fit(client, store, tmp_path):
    def callback(done, total):
        raise LookupError("seen enough")

    with pytest.raises(LookupError, match="seen enough"):
        ldsm.dask.fit(client, store, None, small(n_estimators=200), tmp_path, callback=callback)
    assert len(trees_in(tmp_path)) < 200


# -- what is said at the start -----------------------------------------------------------------


@pytest.mark.linux
def test_invisible_files_are_reported_first(store, tmp_path, monkeypatch):
    """`/proc/self/cwd` is another folder for every process: so one path leads to many."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    datasets.open_store(store).save(here / "rows")
    monkeypatch.chdir(here)
    path = "/proc/self/cwd/"
    trees = tmp_path / "trees"
    with cluster(2) as client:
        client.run(os.chdir, here)
        apart = next(iter(client.run(os.chdir, there, workers=list(client.nthreads())[:1])))
        start = rf"1 of 2 workers cannot do this work\. {apart}: "
        with pytest.raises(ClusterError, match=start + f"There is no store .?{path}rows"):
            ldsm.dask.fit(client, path + "rows", None, small(), trees)
        datasets.make_xmc(700, 200, 30, seed=1).save(there / "rows")
        other = f"The store .?{path}rows.? is different"
        with pytest.raises(ClusterError, match=start + other):
            ldsm.dask.fit(client, path + "rows", None, small(), trees)
        with pytest.raises(ClusterError, match=start + f"There is no folder '{path}trees'"):
            ldsm.dask.fit(client, store, None, small(), path + "trees")
        (there / "trees").mkdir()
        other = f"The folder '{path}trees' is not shared"
        with pytest.raises(ClusterError, match=start + other):
            ldsm.dask.fit(client, store, None, small(), path + "trees")
        small().fit(datasets.open_store(store)).save(here / "model.ldsm")
        with pytest.raises(ClusterError, match=start + ".*No such file.*model.ldsm"):
            ldsm.dask.predict(client, path + "model.ldsm", store)
        small(1).fit(datasets.open_store(store)).save(there / "model.ldsm")
        with pytest.raises(
            ClusterError, match=start + f"The model file '{path}model.ldsm' is different"
        ):
            ldsm.dask.predict(client, path + "model.ldsm", store)
        # A version that differs, and a worker that may not write.
        client.run(set_version, "0.0.7", workers=[apart])
        with pytest.raises(ClusterError, match=start + "it has ldsm 0.0.7, but the driver has"):
            ldsm.dask.fit(client, store, None, small(), trees)
        client.run(set_version, workers.__version__, workers=[apart])
        if os.getuid() == 0:
            tmp_path.chmod(0o755)
            client.run(os.setuid, 65534, workers=[apart])
            with pytest.raises(ClusterError, match=start + ".*(Permission|no store)"):
                ldsm.dask.fit(client, store, None, small(), trees)
    assert not list(trees.iterdir())


def test_missing_dask(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ldsm.dask")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "ldsm\[dask\]"'):
        importlib.import_module("ldsm.dask")


def set_version(version):
    workers.__version__ = version


def test_arguments_are_checked(client, store, tmp_path):
    model, texts = tmp_path / "model.ldsm", tmp_path / "texts"
    data = datasets.open_store(store)
    small(n_estimators=1).fit(data).save(model)
    corpus = (["the invoice", "cannot log in"] * 5, [["billing"], ["account"]] * 5)
    datasets.Dataset.from_texts(*corpus).save(texts)
    TextTagger(small(n_estimators=1)).fit(*corpus).save(tmp_path / "tagger")
    datasets.make_xmc(20, 200, 5, seed=0).select([]).save(tmp_path / "empty")
    datasets.make_xmc(50, 20, 5).save(tmp_path / "narrow")
    (tmp_path / "file").touch()

    def ask(function, *arguments, **options):
        return lambda: function(client, *arguments, **options)

    predict, evaluate, fit = ldsm.dask.predict, ldsm.dask.evaluate, ldsm.dask.fit
    for call, message in (
        (lambda: fit("tcp://x", store, None, {}, tmp_path / "t"), "'client' argument must be"),
        (ask(fit, store, None, {}, 3), "'checkpoint_dir' parameter must be"),
        (ask(fit, store, None, {"arity": 1}, tmp_path / "a"), "'arity' parameter"),
        (ask(predict, model, store, k=31), r"'k' argument .* \[1, 30\]"),
        (ask(predict, model, store, tail=-1), "'tail' parameter"),
        (ask(predict, model, store, rows_per_task=0), "'rows_per_task'"),
        (ask(predict, model, store, output_dir=tmp_path), "new or empty"),
        (ask(evaluate, model, store, [0]), "'ks' argument must be an integer >= 1. Got 0"),
        (ask(evaluate, model, tmp_path / "narrow"), "must have the 200 features .* Got 20"),
        (ask(predict, model, texts), "reads features, but the data holds texts"),
        (ask(evaluate, model, texts), "reads features, but the data holds texts"),
        (ask(predict, tmp_path / "tagger", store, 2), "reads texts, but the data holds features"),
        (ask(evaluate, model, store, ()), r"'ks' argument must be a list .* Got \(\)"),
        (ask(evaluate, model, store, 5), "'ks' argument must be a list .* Got 5"),
        (ask(evaluate, model, store, "13"), "'ks' argument must be a list .* Got '13'"),
        (ask(predict, model, store, tail=10**400), "'tail' parameter must be a float >= 0"),
        (ask(predict, model, store, callback=3), "'callback' argument must be callable. Got 3"),
        (ask(predict, model, store, output_dir=3), "'output_dir' argument must be a path. Got 3"),
        (ask(predict, model, store, output_dir=""), "'output_dir' argument must be a path. Got ''"),
        (ask(predict, model, store, output_dir=tmp_path / "file"), "file' is a file"),
        (ask(predict, small(), store), "'model' argument must be the path of a model file"),
        (ask(predict, model, None), "model reads a matrix of features. Got NoneType"),
        (ask(fit, store, None, 3, tmp_path / "t"), "'model' argument must be an LdSMClassifier"),
        (ask(fit, store, None, TextTagger(), tmp_path / "t"), "A TextTagger needs texts"),
        (ask(fit, store, None, {"n_trees": 3}, tmp_path / "t"), "'n_trees' .*n_estimators"),
        (ask(fit, store, callback=3), "'callback' argument must be callable"),
        (ask(fit, tmp_path / "empty"), "0 rows.* has no rows to train on"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="suffix of .*/file is none of"):
        predict(client, model, tmp_path / "file")
    assert not (tmp_path / "t").exists()


def test_closed_client(client, store, tmp_path):
    with Client(client.scheduler.address) as other:
        pass
    with pytest.raises(ValueError, match="'client' argument must be connected. Got one that is c"):
        ldsm.dask.fit(other, store, None, small(), tmp_path / "trees")
    assert not (tmp_path / "trees").exists()


# -- the documentation -------------------------------------------------------------------------


def test_documented_examples(client, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", SCALING.read_text(), flags=re.DOTALL)
    assert blocks
    for name, part in (("train", "train"), ("test", "test")):
        datasets.make_xmc(600, 100, 20, seed=0, part=part).save(tmp_path / name)
    names = {}
    for block in blocks:
        code = block.replace("tcp://scheduler:8786", client.scheduler.address)
        code = code.replace("/shared/", f"{tmp_path}/")
        exec(compile(code, "scaling.md", "exec"), names)
