"""The benchmark programs run on tiny data, and their output is complete and consistent."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ldsm import datasets

BENCHMARKS = Path(__file__).parents[1]


@pytest.fixture
def module(monkeypatch):
    """Modules of the benchmarks, by name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def run(module, monkeypatch, tmp_path):
    """Run a program's quick form; its fits stay in this process, and no other program is there."""

    def in_process(command, **ignored):
        monkeypatch.setattr(sys, "argv", [str(part) for part in command[1:]])
        module("own_run").main()
        return subprocess.CompletedProcess(command, 0)

    def program(name, *options):
        monkeypatch.setattr(module("kept_runs"), "subprocess", SimpleNamespace(run=in_process))
        monkeypatch.setattr(module("peers_env"), "PYTHON", tmp_path / "no" / "python")
        monkeypatch.setattr(module("records"), "library", lambda: {"version": "1", "code": "c0de"})
        monkeypatch.setattr(module("pages"), "publish", lambda *args: pytest.fail("a page written"))
        monkeypatch.setattr(sys, "argv", ["", "--quick", f"--output={tmp_path}", *options])
        module(name).main()
        return json.loads((tmp_path / "results.json").read_text())

    return program


@pytest.mark.long
def test_fit_in_own_process(module, tmp_path):
    kept_runs = module("kept_runs")
    settings = {"rerank": None}
    run = kept_runs.kept_run(tmp_path, "quick", "x", settings, trees=[1, 2], seed=0)
    one, two = run["points"]
    assert (one["trees"], two["trees"]) == (1, 2)
    assert 0 < one["train_seconds"] < two["train_seconds"]
    assert one["model_bytes"] < two["model_bytes"]
    assert kept_runs.answers_of(tmp_path, run)["labels"].shape == (200, 5)
    left = sorted(path.suffix for path in tmp_path.iterdir())
    assert left == ["", ".json", ".npz"]  # "" is the folder of the data


def test_paper(run, tmp_path, capsys):
    results = run("paper", "--seeds=2")
    runs = results["runs"]["quick"]
    assert {system: len(found) for system, found in runs.items()} == {
        "trees alone": 2,
        "whole system": 2,
    }
    for found in runs.values():
        for metric in ("precision", "ndcg", "psp", "psndcg"):
            assert all(0 < found[0]["metrics"][f"{metric}@{k}"] <= 100 for k in (1, 3, 5))
        depth = found[0]["depth"]
        assert depth["bound_holds"]
        assert depth["mean_depth"] <= depth["max_depth"] <= depth["bound"]
        assert depth["log_labels"] == pytest.approx(math.log2(20))
    assert runs["trees alone"][0]["blend"] == "none"
    assert runs["trees alone"][0]["in_effect"]["optimizer"] == "nag"  # as all values are 1
    assert results["machine"]["cores"] >= 1
    written = (tmp_path / "tables.md").read_text()
    assert "| P@1 | 64.69 |" in written
    assert "kept" not in capsys.readouterr().out

    assert run("paper", "--seeds=2") == results  # nothing is measured twice
    assert capsys.readouterr().out.count("kept from an earlier run") == 4
    assert (tmp_path / "tables.md").read_text() == written


def test_peers(run, tmp_path, capsys):
    results = run("peers", "--seeds=1")
    assert capsys.readouterr().err.count(" was not run: ") == 5
    methods = results["methods"]["quick"]
    assert list(methods) == ["ldsm"]
    ours = methods["ldsm"]
    assert 20 < ours["precision"]["5"] < ours["precision"]["1"] <= 100
    assert ours["train_seconds"] > 0 < ours["predict_ms_per_row"]
    assert ours["model_bytes"] > ours["stage_bytes"] > 0
    assert 0 <= ours["reliability"]["error"] < 0.5
    assert sum(ours["reliability"]["counts"]) == 200 * 5
    assert results["differences"]["quick"] == []  # nobody to compare with
    for picture in ("peers.png", "reliability.png"):
        assert (tmp_path / picture).stat().st_size > 5000


def test_remedies(run):
    results = run("remedies", "--seeds=1")
    variants = results["data"]["quick"]
    assert variants["half of the rows"]["P@1"] < variants["defaults"]["P@1"] <= 100
    assert variants["threshold 0.5"]["P@1"] == variants["defaults"]["P@1"]
    rare = results["rare"]["quick"]
    assert rare["`tail=1`"]["rare labels found"] > rare["defaults"]["rare labels found"]
    assert "macro F1" not in rare["`tail=1`"]  # the order changes, not the sets


def test_frontier(run, tmp_path):
    results = run("frontier", "--seeds=1")
    one, three = results["ours"]["defaults"]
    assert (one["trees"], three["trees"]) == (1, 3)
    assert one["train_seconds"] < three["train_seconds"]
    assert all(0 < p <= 100 for p in one["precision"] + three["precision"])
    assert [arrival["point"] for arrival in results["reached"]] == [None, None]
    assert (tmp_path / "frontier.png").stat().st_size > 5000


def test_arrivals(module):
    frontier = module("frontier")
    points = [{"trees": n, "precision": [70.0 + n, 60.0]} for n in (1, 2, 3)]
    near, there = frontier.arrivals({"a": points}, (72.2, 60.0))
    assert (near["margin"], near["point"]["trees"]) == (0.3, 2)
    assert (there["margin"], there["point"]["trees"]) == (0.0, 3)
    assert frontier.arrivals({"a": points}, (70, 61))[0]["point"] is None


@pytest.mark.long
def test_scaling(run, module, monkeypatch, tmp_path):
    monkeypatch.setattr(module("scaling"), "REPEATS", 1)
    results = run("scaling")
    assert [p["values"]["rows"] for p in results["sweeps"]["rows"]] == [200, 400, 800]
    assert results["depth_bound_holds"]
    assert 0.7 < results["exponents"]["rows"]["model_bytes"]["slope"] < 1.3
    assert (tmp_path / "scaling.png").stat().st_size > 5000
    assert not list(tmp_path.glob("tmp*"))


def test_exponents(module):
    exponent = module("scaling").exponent
    found = exponent([1, 2, 4, 8], [3.0, 12.0, 48.0, 192.0])
    assert found["slope"] == pytest.approx(2)
    assert found["interval"] == pytest.approx(0, abs=1e-6)
    assert exponent([1, 2], [1.0, 2.0]) == {"slope": pytest.approx(1), "interval": None}
    assert exponent([1], [1.0])["slope"] is None


def test_shapes(run, module, monkeypatch, tmp_path):
    shapes = module("shapes")
    monkeypatch.setattr(shapes, "write_stores", lambda name, folder, scale: stored(folder))

    def stored(folder):
        folder.mkdir()
        for part in ("train", "test"):
            datasets.make_xmc("wiki10-31k", scale=0.002, part=part).save(folder / part)
        return folder / "train", folder / "test"

    with pytest.raises(FileNotFoundError, match="results.json"):  # it writes shapes.json instead
        run("paper", "--shapes")
    [(name, point)] = json.loads((tmp_path / "shapes.json").read_text())["runs"].items()
    assert (name, point["trees"], point["settings"]["arity"]) == ("wiki10-31k", 2, 4)
    assert "training, 50 trees, extrapolated" in (tmp_path / "shapes.md").read_text()


def test_judge_agrees_with_metrics(module):
    """Metrics by row agree with `ldsm.metrics` on average."""
    train, test = module("data").load("quick")
    labels = np.random.default_rng(0).permuted(np.tile(np.arange(20), (200, 1)), axis=1)[:, :5]
    judge = module("judge").Judge(train.Y, test.Y)
    found = module("own_run").percent(test.Y, labels, train.Y)
    for i, k in enumerate((1, 3, 5)):
        assert judge.precision(labels)[:, i].mean() == pytest.approx(found[f"precision@{k}"])
        assert judge.psp(labels)[:, i].mean() == pytest.approx(found[f"psp@{k}"])


def test_pages(module, tmp_path):
    pages = module("pages")
    page, picture = tmp_path / "page" / "a.md", tmp_path / "p.png"
    page.parent.mkdir()
    page.write_text("before\n<!-- x:begin -->\nold\n<!-- x:end -->\nafter\n")
    picture.write_bytes(b"png")
    pages.publish(page, "x", "new", [picture])
    assert page.read_text() == "before\n<!-- x:begin -->\nnew\n<!-- x:end -->\nafter\n"
    assert (page.parent / "p.png").read_bytes() == b"png"
    with pytest.raises(ValueError, match="must hold the lines <!-- y:begin --> and <!-- y:end -->"):
        pages.publish(page, "y", "new")
    assert pages.table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert pages.mean_spread([1.0, 2.0, 3.0]) == "2.00 ± 1.00"


def test_page_marks(module):
    pages = module("pages")
    for page, names in (
        (pages.BENCHMARKS, ("peers", "frontier", "scaling")),
        (pages.ENCODER, ("encoder",)),
        (pages.REPRODUCTION, ("paper", "shapes")),
    ):
        text = page.read_text()
        for name in names:
            assert text.count(f"<!-- {name}:begin -->") == text.count(f"<!-- {name}:end -->") == 1


@pytest.mark.long
def test_training_from_disk(run):
    results = run("out_of_core")
    assert results["summary"]["same_model"]
    assert results["summary"]["time_ratio"] > 0
    assert results["runs"]["from disk"]["private_bytes"] < 512e6


@pytest.mark.long
def test_many_labels(run):
    results = run("many_labels")
    assert results["precision"] > 2 * results["precision_of_the_frequent"] > 0
    assert results["model_bytes"] > 0 < results["depth"]


@pytest.mark.long
def test_incremental_learning(run):
    (facts,) = run("incremental_learning", "--seeds=1")["quick"]
    assert facts.keys() == {"whole", "half", "tenth", "labels", "one", "document"}
    assert len(facts["half"]["seconds"]) == 5 and len(facts["tenth"]["seconds"]) == 1
    for trial in ("whole", "half", "tenth"):
        assert all(10 < value <= 100 for value in facts[trial]["precision"])
        assert facts[trial]["bytes"] > 1000
    assert all(0 <= value <= 100 for value in [*facts["labels"]["recall"], *facts["one"]["recall"]])
    assert np.max(np.abs(facts["one"]["others"])) < 10


@pytest.mark.long
def test_unknown_texts(run):
    facts = run("unknown_texts")["quick"]
    assert facts["empty"]["most"] == pytest.approx(facts["rate"])
    for kind in ("empty", "function word", "random letters"):
        assert facts[kind]["over"] == 0 and facts[kind]["most"] <= 2 * facts["rate"]


@pytest.mark.long
def test_skewed_batches(run):
    results = run("skewed_batches")
    (facts,), (rounds,) = (results[kind].values() for kind in ("batches", "rounds"))
    assert len(rounds["rounds"]) == 10 and rounds["again"].keys() == rounds["before"].keys()
    batches = {name: runs for name, runs in facts.items() if name != "before"}
    assert {"20 complete", "400 reduced", "mixed"} <= batches.keys()
    for runs in batches.values():
        assert len(runs) == 3
        assert all(0 <= run["recall"] <= 100 and abs(run["others"]) <= 100 for run in runs)


@pytest.mark.long
def test_whole_system(run):
    few, many = run("whole_system")["short"].values()
    assert few["rows"] < many["rows"] and few["fingerprint"] != many["fingerprint"]
    assert {"word chunk", "text chunk", "tree", "rest"} <= few["stages"].keys()
    assert sum(few["stages"].values()) == pytest.approx(few["cpu_seconds"])


@pytest.mark.long
def test_same_bits(run):
    found = run("same_bits")
    assert len(set(found["fingerprints"][0][1:])) == 1
    assert [line[3] for line in found["failures"]] == ["0"] * 4
