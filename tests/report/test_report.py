"""The report: every section, numbers checked in another way, one safe and self-contained page."""

import base64
import hashlib
import re
import sys
from collections import Counter
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
from cli_runs import leftovers, within, write_data
from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from ldsm.evaluation import Evaluation
from ldsm.report import make_report
from ldsm.report.html import Markup, Share
from ldsm.report.labels import Sets, count_labels, mean_by_label, prediction_work, taken_for
from ldsm.report.style import SCRIPT

SECTIONS = [
    "Results",
    "Threshold",
    "Labels that cost most",
    "All labels",
    "Examples",
    "Calibration",
    "The model",
    "Trees and internals",
]
VOID = {"meta", "br"}
# What would make a browser fetch or run something.
LOADING = {"src", "srcset", "data", "action", "poster", "background", "ping"}


class Page(HTMLParser):
    """A page taken apart; fails where elements are not nested as they should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.text = [], Counter(), [], []
        self.attributes, self.tables, self.cell = [], [], None
        self.feed(text)
        self.close()
        assert not self.open
        assert len(self.ids) == len(set(self.ids)), "an id occurs twice"

    def handle_starttag(self, tag, attributes):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.cell = []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("th", "td"):
            self.tables[-1][-1].append("".join(self.cell))
            self.cell = None

    def handle_data(self, data):
        self.text.append((self.open[-1] if self.open else "", data))
        if self.cell is not None:
            self.cell.append(data)

    def all(self, tag):
        return [text for inside, text in self.text if inside == tag]


def check_page(text, *, sections=SECTIONS):
    """Whole, balanced, loading nothing, running only its own script, with every section."""
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>")
    assert page.all("h2") == sections
    assert not {"link", "iframe", "object", "embed", "img", "base"} & page.tags.keys()
    assert page.all("script") == [SCRIPT]
    known = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = next(v for _, name, v in page.attributes if name == "content" and "default-src" in v)
    assert policy == (f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{known}'")
    for tag, name, value in page.attributes:
        assert name not in LOADING and not name.startswith("on"), (tag, name)
        if name in ("href", "xlink:href"):
            assert value.startswith("#") and value[1:] in page.ids
    assert "@import" not in text
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert not re.search(r"https?://", text)
    return page


def without_figures(monkeypatch):
    """They take most of the time, and a few tests of them are enough."""
    monkeypatch.setattr("ldsm.report.figures._figure", lambda *arguments: Markup())


@pytest.fixture(scope="module")
def rows():
    """Two labels of the test rows contain markup, which a page must escape."""
    train, test = (
        datasets.make_xmc(n, 80, 30, seed=0, labels_per_row=2.5, part=part)
        for n, part in ((600, "train"), (150, "test"))
    )
    names = [f"label {i}" for i in range(30)]
    counts = np.bincount(test.Y.indices, minlength=30)
    first, second = np.argsort(-counts, kind="stable")[:2]
    names[first], names[second] = "<script>alert('1')</script>", '"&lt;<b onclick="x">'
    features = [f"<i>{i}" for i in range(80)]
    named = [
        datasets.Dataset(part.X, part.Y, feature_names=features, label_names=names)
        for part in (train, test)
    ]
    return SimpleNamespace(train=named[0], test=named[1], names=names)


@pytest.fixture(scope="module")
def clf(rows):
    return LdSMClassifier(4, random_state=0, rerank="linear").fit(rows.train)


@pytest.fixture(scope="module")
def report(clf, rows):
    return make_report(clf, rows.test, model_name="m<1>.ldsm", data_name="test & more")


@pytest.fixture(scope="module")
def page(report):
    return check_page(report.html)


# -- the page -------------------------------------------------------------------------------------


def test_names_are_text_and_never_markup(report, page):
    assert page.all("h1") == ["m<1>.ldsm on test & more"]
    assert report.html.count("<script") == 1 and "<i>" not in report.html
    shown = [cell for table in page.tables for row in table for cell in row]
    assert "<script>alert('1')</script>" in shown and '"&lt;<b onclick="x">' in shown
    assert any("<i>" in cell for cell in shown)  # features of the examples


def test_figures_are_inline_with_words_below(page):
    titles = [title for title in page.all("b") if title.endswith(". ")]
    assert page.tags["svg"] == page.tags["figure"] == page.tags["figcaption"] == len(titles) == 6
    shown = {text.strip() for text in page.all("text")}
    assert {"threshold", "level", "trees", "score"} <= shown
    assert "epoch" not in shown  # two epochs make no curve


def test_results_come_first(clf, rows, page, report):
    """P, recall and F1 with precision and recall stand above everything else."""
    tiles = dict(zip(page.all("dt")[:4], page.all("b")[:4], strict=True))
    sets = Evaluation(clf, rows.test).scores().sets["model"]
    assert tiles == {
        "P@1": f"{100 * report.metrics['precision@1']:.2f} %",
        "Recall@5": f"{100 * report.metrics['recall@5']:.2f} %",
        "F1 over all pairs": f"{100 * sets.f1['micro']:.2f} %",
        "F1 per row": f"{100 * sets.f1['samples']:.2f} %",
    }
    both = f"precision {100 * sets.precision:.2f}, recall {100 * sets.recall:.2f}"
    assert both in page.all("dd")
    text = report.html
    assert text.index("<details><summary><h2>Trees") > text.index("Calibration")
    assert "<details open" not in text


def test_better_threshold_is_named(clf, rows, page):
    best = Evaluation(clf, rows.test).scores().sets["best"]
    (text,) = (p for p in page.all("p") if p.startswith("The threshold of the model is "))
    assert f"model is {clf.threshold_:.3f};" in text
    assert f"is {best.threshold:.3f}" in text and f"to {100 * best.f1['samples']:.2f}." in text


def test_long_training_has_an_objective_figure(rows):
    clf = LdSMClassifier(3, random_state=0, n_epochs=3, rerank=None).fit(rows.train)
    page = check_page(make_report(clf, rows.test).html)
    assert "epoch" in {text.strip() for text in page.all("text")}


def test_threshold_per_label(clf, rows, tmp_path):
    clf.save(tmp_path / "model.ldsm")
    own = ldsm.load(tmp_path / "model.ldsm")
    own.threshold_ = np.full(30, 0.3, dtype=np.float32)
    page = check_page(make_report(own, rows.test).html)
    assert any("a threshold for each label" in p for p in page.all("p"))
    assert page.tables[1][1][:3] == ["threshold", "per label", "0.500"]


def test_facts_and_parameters(clf, page):
    facts = dict(zip(page.all("dt")[4:], page.all("dd")[4:], strict=True))
    forest = clf.forest_
    assert facts["training rows"] == "600" and facts["rows here"] == "150"
    assert facts["nodes"] == f"{forest.n_nodes:,}" and facts["trees"] == "4"
    assert facts["deepest leaf"] == str(forest.node_depth().max())
    assert facts["log₂ of the labels"] == f"{np.log2(30):.1f}"
    assert facts["second stage"] == clf.second_stage_.blend.kind != "linear"
    assert facts["fingerprint"] == clf.fingerprint_[:16] + "…"
    assert facts["max_nodes"] == f"auto: {clf.tree_params_.max_nodes}"
    assert facts["rerank"] == "linear"
    assert set(clf.get_params()) <= facts.keys()


def test_metrics_table(clf, rows, page, report):
    best = Evaluation(clf, rows.test).top[0]
    expected = metrics.ranking_report(rows.test.Y, best, y_train=rows.train.Y)
    assert {name: report.metrics[name] for name in expected} == pytest.approx(expected)
    table = {row[0]: row[1:] for row in page.tables[0][1:]}
    labelled = int(np.count_nonzero(np.diff(rows.test.Y.indptr)))
    names = {"P": "precision", "nDCG": "ndcg", "PSP": "psp", "PSnDCG": "psndcg"}
    for short, name in {**names, "recall": "recall", "coverage": "coverage"}.items():
        n = 150 if name == "precision" else labelled
        shown = [f"{100 * expected[f'{name}@{k}']:.2f}" for k in (1, 3, 5)]
        assert table[short] == [*shown, str(n)]
    sizes = np.diff(rows.test.Y.indptr)
    reachable = [f"{100 * np.minimum(sizes, k).sum() / (k * len(sizes)):.2f}" for k in (1, 3, 5)]
    assert table["best possible P"] == [*reachable, "150"]
    predicted = clf.predict(rows.test.X)
    f1 = [metrics.f1_score(rows.test.Y, predicted, a) for a in ("micro", "macro", "samples")]
    table = {row[0]: row[1:] for row in page.tables[1]}
    assert table["threshold"][:2] == [f"{clf.threshold_:.3f}", "0.500"]
    assert [table[f"F1, {a}"][0] for a in ("micro", "macro", "samples")] == [
        f"{100 * value:.2f}" for value in f1
    ]
    assert "F1, micro, all true labels" not in table


def test_label_rows(clf, rows, page):
    truth, said = rows.test.Y.toarray() > 0, clf.predict(rows.test.X).toarray() > 0
    five = np.zeros_like(truth)
    columns, scores = Evaluation(clf, rows.test).top
    for row in range(len(truth)):
        five[row, columns[row][scores[row] > 0]] = True

    expected = {}
    for label, name in enumerate(rows.test.label_names):
        t, p = truth[:, label], said[:, label]
        hit = int((t & p).sum())
        if t.any() or p.any():
            expected[name] = [
                str(t.sum()),
                str(Share(hit, t.sum())),
                str(Share(hit, p.sum())),
                f"{200 * hit / (t.sum() + p.sum()):.0f}",
                str(Share((t & five[:, label]).sum(), t.sum())),
                str(clf.label_counts_[label]),
            ]
    table = page.tables[3]
    assert table[0][0] == "label" and {row[0]: row[1:] for row in table[1:]} == expected
    counts = [int(row[1]) for row in table[1:]]
    assert counts == sorted(counts, reverse=True)
    orders = [float(v) for tag, name, v in page.attributes if name == "data-order"]
    assert len(orders) == 2 * len(page.tables[2][1:]) + 3 * len(expected)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(189, 351, "189 of 351 (54 %)"), (0, 0, "–"), (1200, 1200, "1,200 of 1,200 (100 %)")],
)
def test_shares_are_one_cell(part, whole, text):
    assert str(Share(part, whole)) == text


def test_page_is_deterministic(clf, rows, report, tmp_path):
    clf.save(tmp_path / "model.ldsm")
    again = ldsm.load(tmp_path / "model.ldsm")
    names = {"model_name": "m<1>.ldsm", "data_name": "test & more"}
    assert make_report(again, rows.test, **names).html == report.html


# -- its tables, against loops --------------------------------------------------------------------


def loop_confusions(truth, predicted):
    pairs = Counter()
    for true, said in zip(truth, predicted, strict=True):
        true, said = set(np.flatnonzero(true).tolist()), set(np.flatnonzero(said).tolist())
        pairs.update((t, s) for t in true - said for s in said - true)
    return pairs


def test_costly_labels(clf, rows, page):
    """Mistakes and confusions, counted row by row."""
    truth, said = rows.test.Y.toarray() > 0, clf.predict(rows.test.X).toarray() > 0
    pairs = loop_confusions(truth, said)
    sets = Sets.of(Evaluation(clf, rows.test))
    every = np.arange(30)
    found = taken_for(every, sets.missed, sets.wrong, 100)
    assert {(t, c.label): c.rows for t in range(30) for c in found[t]} == pairs
    found = taken_for(every, sets.wrong, sets.missed, 100)
    assert {(c.label, w): c.rows for w in range(30) for c in found[w]} == pairs
    mistakes = (truth != said).sum(axis=0)
    table = page.tables[2]
    expected = np.argsort(-mistakes, kind="stable")[:20]
    assert [row[0] for row in table[1:]] == [rows.names[i] for i in expected]
    assert [row[1] for row in table[1:]] == [str(mistakes[i]) for i in expected]
    for row, label in zip(table[1:], expected.tolist(), strict=True):
        others = sorted((-n, s) for (t, s), n in pairs.items() if t == label)[:3]
        shown = ", ".join(f"{rows.names[s]} ({-n})" for n, s in others)
        assert row[4] == (shown or "–")


def test_counts_of_labels(clf, rows):
    held_out = Evaluation(clf, rows.test)
    columns, scores = held_out.top
    counts = count_labels(held_out, Sets.of(held_out))
    truth, said = rows.test.Y.toarray() == 1, clf.predict(rows.test.X).toarray() == 1
    for label in range(30):
        best = [bool(((columns[r] == label) & (scores[r] > 0)).any()) for r in range(150)]
        assert counts.rows[label] == truth[:, label].sum()
        assert counts.predicted[label] == said[:, label].sum()
        assert counts.right[label] == (said & truth)[:, label].sum()
        assert counts.in_top[label] == sum(np.array(best) & truth[:, label])
        assert counts.mistakes[label] == (said != truth)[:, label].sum()


def test_labels_with_the_longest_way(rows):
    """With several children and rows that go several ways."""
    clf = LdSMClassifier(3, arity=3, random_state=0, multiway_penalty=0.1).fit(rows.train)
    held_out = Evaluation(clf, rows.test)
    found = prediction_work(clf.forest_, held_out.x.main)
    for row in range(0, 150, 10):
        paths = clf.explain(rows.test.X[[row]])
        leaves = [leaf.depth for path in paths for leaf in path.leaves]
        assert found.splits[row] == sum(len(path.steps) for path in paths)
        assert found.leaves[row] == len(leaves)
        assert found.depth[row] == pytest.approx(np.mean(leaves))
    assert found.leaves.max() > 3
    means = mean_by_label(found.splits, held_out)
    truth = rows.test.Y.toarray()
    for label in np.flatnonzero(truth.sum(axis=0)):
        assert means[label] == pytest.approx(found.splits[truth[:, label] == 1].mean())


def test_longest_path_first(clf, rows, page):
    held_out = Evaluation(clf, rows.test)
    splits, leaves, depth = (
        mean_by_label(values, held_out) for values in prediction_work(clf.forest_, held_out.x.main)
    )
    able = np.flatnonzero(rows.test.Y.sum(axis=0) >= 10)
    slowest = able[np.argsort(-splits[able], kind="stable")]
    expected = [
        [rows.names[i], f"{splits[i]:.1f}", f"{leaves[i]:.1f}", f"{depth[i]:.1f}"] for i in slowest
    ]
    assert [row[:4] for row in page.tables[-1][1:]] == expected[:10]


def test_examples_are_explained(clf, rows, page):
    titles = page.all("h3")[:4]
    assert [t.split(":")[0] for t in titles] == [
        "Most confident and right",
        "Most confident and wrong",
        "A typical score",
        "Least confident",
    ]
    chosen = [int(title.split("row ")[1]) for title in titles]
    columns, scores = Evaluation(clf, rows.test).top
    truth = rows.test.Y.toarray()
    right = truth[np.arange(150), columns[:, 0]] == 1
    assert right[chosen[0]] and scores[chosen[0], 0] == scores[right, 0].max()
    assert not right[chosen[1]] and scores[chosen[1], 0] == scores[~right, 0].max()
    for row, table in zip(chosen, page.tables[4:8], strict=True):
        for cells, label in zip(table[1:], clf.explain_scores(rows.test.X[[row]]), strict=True):
            assert cells[0] == label.label
            assert cells[1] == ("yes" if truth[row, label.column] else "no")
            assert cells[2] == f"{label.score:.3f}"
            feature, part = label.reasons[0]
            assert cells[-1].startswith(f"<i>{feature} {part:+.2f}")


# -- every kind of model and rows -----------------------------------------------------------------


def test_single_label_and_single_row(monkeypatch):
    X = np.random.default_rng(0).random((60, 5))
    y = np.array(["a", "b", "c"])[(3 * X[:, 0]).astype(int)]
    clf = LdSMClassifier(3, random_state=0).fit(X, y)
    sections = [title for title in SECTIONS if title != "Threshold"]
    check_page(make_report(clf, X[:1], y[:1]).html, sections=sections)
    without_figures(monkeypatch)
    y, best = np.roll(y, 1), clf.predict(X)
    page = check_page(make_report(clf, X, y).html, sections=sections)
    assert len(page.tables[1]) == 4
    for row in page.tables[1][1:]:
        assert row[2] == str(Share(((y == best) & (y == row[0])).sum(), (y == row[0]).sum()))
    assert "one label per row, out of 3" in " ".join(page.all("p"))


def test_rows_without_labels(rows):
    clf = LdSMClassifier(2, random_state=0).fit(rows.train.X, rows.train.Y)  # no names either
    none = sp.csr_array((3, 30), dtype=np.int32)
    report = make_report(clf, rows.test.X[:3], none)
    page = check_page(report.html)
    assert report.metrics["precision@1"] == 0 and np.isnan(report.metrics["ndcg@1"])
    assert page.tables[0][3][1:] == ["-", "-", "-", "0"]
    assert page.all("p").count("No row has a label.") == 1
    assert page.all("b")[:2] == ["0.00 %", "–"]


def test_trees_without_splits():
    X, y = np.ones((20, 3)), np.ones((20, 1), dtype=int)
    page = check_page(make_report(LdSMClassifier(2, random_state=0).fit(X, y), X, y).html)
    assert page.tags["figure"] == 2


def test_texts_show_their_first_words():
    texts, tags = ["cod <b>and</b> quota", "beef import"] * 10, [["fish"], ["meat"]] * 10
    tagger = TextTagger(LdSMClassifier(3, random_state=0)).fit(texts, tags)
    page = check_page(make_report(tagger, ["cod <b>quota</b>", ""], [["fish"], ["new"]]).html)
    assert page.all("blockquote") == ["cod <b>quota</b>", "(empty)"]
    assert any("quota" in text for text in page.all("p"))


def test_wrong_arguments(clf, rows):
    with pytest.raises(ValueError, match="'model' must be a fitted LdSMClassifier or TextTagger"):
        make_report(None, rows.test)
    with pytest.raises(ValueError, match="same number of rows"):
        make_report(clf, rows.test.X, rows.test.Y[:3])


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    write_data(path)
    train = datasets.load_xmlrepo(path / "train.txt")
    LdSMClassifier(2, random_state=0).fit(train).save(path / "matrix.ldsm")
    notes = datasets.load_jsonl(path / "notes.jsonl")
    TextTagger(LdSMClassifier(2, random_state=0)).fit(notes).save(path / "notes.ldsm")
    datasets.load_xmlrepo(path / "test.txt").save(path / "store")
    return path


@pytest.mark.parametrize(
    ("model", "data"),
    [("matrix", "test.txt"), ("matrix", "store"), ("notes", "notes.jsonl"), ("notes", "notes.csv")],
)
def test_command(folder, capsys, model, data, monkeypatch):
    run = within(capsys)
    if data != "test.txt":
        without_figures(monkeypatch)
    output = folder / f"{data}.html"
    options = ["--text-field", "body", "--label-field", "tags", "--separator", ";"]
    options = options if data.endswith("csv") else []
    model = folder / f"{model}.ldsm"
    done = run("report", model, folder / data, "-o", output, *options, "--json")
    assert done.code == 0, done.err
    page = check_page(output.read_text(encoding="utf-8"))
    assert page.all("h1") == [f"{model.name} on {data}"]
    scores = run("evaluate", model, folder / data, *options, "--json").json
    for name in ("precision@1", "ndcg@3", "psp@5", "psndcg@5"):
        assert done.json[name] == pytest.approx(scores[name])
    assert done.json["path"] == str(output) and not leftovers(folder)


@pytest.mark.parametrize("n_features", [100, 140])
def test_command_aligns_features(folder, capsys, monkeypatch, tmp_path, n_features):
    without_figures(monkeypatch)
    data = datasets.make_xmc(20, n_features, 40, seed=1)
    datasets.save_xmlrepo(data, tmp_path / "other.txt")
    (tmp_path / "names.txt").write_text("".join(f"name-{i}\n" for i in range(n_features)))
    options = [tmp_path / "other.txt", "--feature-names", tmp_path / "names.txt"]
    output = tmp_path / "other.html"
    done = within(capsys)("report", folder / "matrix.ldsm", *options, "-o", output)
    assert done.code == 0, done.err
    text = " ".join(check_page(output.read_text()).all("p"))
    assert "name-" in text and "without a training row" in text


@pytest.mark.filterwarnings("always::FutureWarning")
def test_former_option_for_the_data(folder, capsys, monkeypatch, tmp_path):
    """It still works, with a warning; data are named once."""
    run = within(capsys)
    without_figures(monkeypatch)
    model, data = folder / "matrix.ldsm", folder / "test.txt"
    for arguments in ([data], ["--data", data]):
        done = run("report", model, *arguments, "-o", tmp_path / "r.html", "--overwrite")
        assert done.code == 0 and ("--data is deprecated" in done.err) == (len(arguments) == 2)
    for arguments in ([], [data, "--data", data]):
        done = run("report", model, *arguments)
        assert done.code == 2 and "name the labelled data once, after the model" in done.err


def test_command_writes_atomically(folder, capsys, monkeypatch):
    run = within(capsys)
    monkeypatch.chdir(folder)
    without_figures(monkeypatch)
    assert run("report", "matrix.ldsm", "test.txt", "-q").code == 0
    before = (folder / "report.html").read_text()
    failed = run("report", "matrix.ldsm", "notes.jsonl")
    assert failed.code == 1 and "reads features, but the data holds texts" in failed.err
    assert run("report", "matrix.ldsm").code == 2
    missing = run("report", "matrix.ldsm", "test.txt", "-o", "no/such/folder.html")
    assert missing.code == 1 and "folder.html" in missing.err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    without = run("report", "matrix.ldsm", "test.txt")
    assert without.code == 1 and 'pip install "ldsm[plot]"' in without.err
    assert (folder / "report.html").read_text() == before and not leftovers(folder)
