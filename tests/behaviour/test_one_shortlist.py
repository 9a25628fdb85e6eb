"""Every surface explains a row from one shortlist, whose signals are computed once."""

from __future__ import annotations

import pytest

from cli_runs import within
from ldsm import LdSMClassifier, TextTagger, _core
from ldsm._ranking.stage import SecondStage
from ldsm.evaluation import Evaluation
from ldsm.report.examples import examples
from ldsm.serve import create_app
from services import documents, running, small_tagger

TEXT = "The Cod and herring quota, says a judge."


@pytest.fixture(scope="module")
def tagger():
    return small_tagger()


@pytest.fixture
def calls(monkeypatch):
    """The number of calls of the matcher, and of what computes the signals of its candidates."""
    counted = {"shortlists": 0, "signals": 0}

    def count(owner, name, what):
        original = getattr(owner, name)

        def counting(*args, **options):
            counted[what] += 1
            return original(*args, **options)

        monkeypatch.setattr(owner, name, counting)

    count(_core, "shortlists", "shortlists")
    count(SecondStage, "pairs", "signals")
    return counted


def taken(calls):
    found = dict(calls)
    calls.update(dict.fromkeys(calls, 0))
    return found


ONCE = {"shortlists": 1, "signals": 1}


def test_estimators(tagger, calls):
    x = tagger.vectorize([TEXT])
    assert len(tagger.classifier_.explain_scores(x, k=9)) > 1
    assert taken(calls) == ONCE
    assert tagger.classifier_.explain_scores(x, labels=["fish", "law"])
    assert taken(calls) == ONCE
    assert tagger.explain(TEXT).scores
    assert taken(calls) == ONCE


@pytest.mark.parametrize("options", [[], ["--label", "fish", "--label", "weather"]])
def test_command(tagger, tmp_path, capsys, calls, options):
    tagger.save(tmp_path / "tags.ldsm")
    run = within(capsys)("explain", tmp_path / "tags.ldsm", TEXT, *options)
    assert run.code == 0 and "fish" in run.out
    assert taken(calls) == ONCE


def test_report(tagger, calls):
    texts, tags = documents()
    evaluation = Evaluation(tagger, texts[:50], tags[:50])
    assert len(evaluation.top[0]) == 50  # by which the examples are chosen
    taken(calls)
    shown = examples(evaluation).count("<article>")
    assert 1 < shown <= 4
    assert taken(calls) == {"shortlists": shown, "signals": shown}


@pytest.mark.parametrize("trees_alone", [False, True])
@pytest.mark.parametrize("label", ["fish", "weather"])
def test_service(tagger, tmp_path, calls, trees_alone, label):
    if trees_alone:
        tagger = TextTagger(LdSMClassifier(3, rerank=None, random_state=0)).fit(*documents())
    tagger.save(tmp_path / "tags.ldsm")
    with running(create_app([tmp_path / "tags.ldsm"])) as client:
        taken(calls)
        answer = client.form("/v1/projects/tags/explain", text=TEXT, label=label)
        assert answer.status == 200 and answer.json["uri"] == label
    assert taken(calls) == (ONCE | {"signals": 0} if trees_alone else ONCE)
