"""All surfaces answer alike: the same labels, order, scores, sets, explanations and errors."""

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import scipy.sparse as sp
from surfaces import SURFACES, Case, nothing

from ldsm import LdSMClassifier, TextTagger, datasets
from text_corpus import titles

MARKS = {
    "annif": [pytest.mark.annif],
    "mlflow": [pytest.mark.mlflow, pytest.mark.filterwarnings("default")],
    "cluster": [pytest.mark.not_under("address", "thread", reason="works against a clock")],
}
KINDS = [(kind, name) for kind, surfaces in SURFACES.items() for name in surfaces]
UNKNOWN = "http://example.org/unknown"


def uri(tag: str) -> str:
    return f"http://example.org/{tag.replace(' ', '-')}"


@cache
def folder() -> TemporaryDirectory:
    return TemporaryDirectory(ignore_cleanup_errors=True)


@cache
def case_of(kind: str) -> Case:
    """A model with every part that there is, updated with rows that have a new label."""
    place = Path(folder().name)
    base, file = place / f"{kind}-base.ldsm", place / f"{kind}.ldsm"
    if kind == "texts":
        texts, tags = titles(760)
        own = [[uri(tag) for tag in some] for some in tags]
        new = [[*some, uri("new one")] if i % 3 else some for i, some in enumerate(own[700:])]
        names = {uri(tag): [tag] for some in tags for tag in some}
        model: Any = TextTagger(LdSMClassifier(3, random_state=0))
        model.fit(texts[:700], own[:700], vocabulary=names).tune_threshold(texts[:700], own[:700])
        more: tuple[Any, Any] = (texts[700:], new)
        asked: Any = [*texts[690:710], f"{texts[3]} {texts[4]}", "xyzzy", "Été: 🐟, право!"]
    else:
        data = datasets.make_xmc(800, 80, 20, seed=1)
        own = [[uri(f"tag {label}") for label in row] for row in data.labels]
        new = [[*some, uri("new one")] if i % 3 else some for i, some in enumerate(own[700:])]
        model = LdSMClassifier(3, random_state=0).fit(data.X[:700], own[:700])
        model.tune_threshold(data.X[:700], own[:700])
        more = (data.X[700:], new)
        asked = sp.csr_array(sp.vstack([data.X[690:712], sp.csr_array((1, 80))], format="csr"))
        asked = asked.astype("float32")
    model.save(base)
    model.partial_fit(*more).save(file)
    return Case(model, file, base, more, asked)


@pytest.fixture(scope="module")
def surface(request, tmp_path_factory):
    kind, name = request.param
    made = SURFACES[kind][name](case_of(kind), tmp_path_factory.mktemp(name))
    with made.stack:
        yield made


def over_surfaces(*options: str, of: tuple[str, ...] = ("texts", "rows")):
    """Run a test over all surfaces that can be asked for these options."""
    chosen = [
        pytest.param((kind, name), marks=MARKS.get(name, ()), id=f"{name} of {kind}")
        for kind, name in KINDS
        if kind in of and {*options} <= SURFACES[kind][name].options
    ]
    assert chosen, options
    return pytest.mark.parametrize("surface", chosen, indirect=True)


def model_of(case: Case):
    """The model of this process, with which all others are compared."""
    first = SURFACES["texts"]["tagger"] if case.reads_texts else SURFACES["rows"]["classifier"]
    return first(case, Path())


def check_alike(surface, found, wanted):
    """The same labels in the same order, and the same scores as far as they are shown."""
    wanted = [[pair for pair in row if pair[1] >= surface.least] for row in wanted]
    assert [[label for label, _ in row] for row in found] == [
        [label for label, _ in row] for row in wanted
    ]
    scores, theirs = ([score for row in rows for _, score in row] for rows in (found, wanted))
    assert scores == pytest.approx(theirs, rel=0, abs=1.1 * surface.least)


# -- answers -----------------------------------------------------------------------------------


@over_surfaces()
def test_same_answers(surface):
    case = surface.case
    for k in (1, 5, len(case.labels)):
        check_alike(surface, surface.answers(case.asked, k), model_of(case).answers(case.asked, k))


@over_surfaces()
def test_order_and_prefix(surface):
    few, all_of_them = (
        surface.answers(surface.case.asked, k) for k in (2, len(surface.case.labels))
    )
    for some, row in zip(few, all_of_them, strict=True):
        assert some == row[:2]
        scores = [score for _, score in row]
        assert scores == sorted(scores, reverse=True)
        assert min(scores) > 0 and max(scores) <= 1
        assert len({label for label, _ in row}) == len(row)
    assert any(uri("new one") in dict(row) for row in all_of_them)


@over_surfaces()
def test_batches_of_any_size(surface):
    asked = surface.case.asked[:3]
    assert [surface.answers(asked[i : i + 1])[0] for i in range(3)] == surface.answers(asked)


@over_surfaces()
def test_input_without_features(surface):
    case = surface.case
    empty = ["", "xyzzy"] if case.reads_texts else sp.csr_array((2, 80), dtype="float32")
    wanted = model_of(case).answers(empty)
    assert wanted[0] == wanted[1] != []
    if surface.skips_empty:
        wanted[0] = []
    check_alike(surface, surface.answers(empty), wanted)


@over_surfaces()
def test_no_input(surface):
    if surface.answers_nothing:
        assert surface.answers(nothing(surface.case)) == []
    else:
        with pytest.raises(ValueError, match=r"minimum of 1|at least one|no rows"):
            surface.answers(nothing(surface.case))


@over_surfaces()
def test_more_than_all_labels(surface):
    case, n_labels = surface.case, len(surface.case.labels)
    if surface.needs_k_labels:
        with pytest.raises(ValueError, match=rf"'k' .*\[1, {n_labels}\].* Got {n_labels + 1}"):
            surface.answers(case.asked, n_labels + 1)
    else:
        found = surface.answers(case.asked, n_labels + 1)
        assert found == surface.answers(case.asked, n_labels)


@over_surfaces("tail")
def test_tail(surface):
    case = surface.case
    wanted = model_of(case).answers(case.asked, tail=1.5)
    check_alike(surface, surface.answers(case.asked, tail=1.5), wanted)
    assert wanted != model_of(case).answers(case.asked)


@over_surfaces("only")
def test_chosen_labels(surface):
    case = surface.case
    chosen = [case.labels[7], case.labels[2], uri("new one")]
    found = surface.answers(case.asked, 2, only=chosen)
    check_alike(surface, found, model_of(case).answers(case.asked, 2, only=chosen))
    assert {label for row in found for label, _ in row} == {*chosen}


@over_surfaces("only")
def test_labels_left_out(surface):
    case, most = surface.case, len(surface.case.labels)
    left_out = [case.labels[7], uri("new one")]
    rest = [label for label in case.labels if label not in left_out]
    every = surface.answers(case.asked, most)
    wanted = [[pair for pair in row if pair[0] not in left_out][:3] for row in every]
    # The next labels move up: nothing is lost to those that were left out.
    check_alike(surface, surface.answers(case.asked, 3, without=left_out), wanted)
    both = surface.answers(case.asked, 3, only=[*rest, left_out[0]], without=left_out)
    check_alike(surface, both, wanted)


@over_surfaces("only")
def test_no_label_left(surface):
    first = surface.case.labels[:1]
    with pytest.raises(ValueError, match=r"only and without.* must leave at least one"):
        surface.answers(surface.case.asked, 1, only=first, without=first)


@over_surfaces("threshold")
def test_threshold(surface):
    case = surface.case
    every = model_of(case).answers(case.asked)
    # Between two scores, so that rounding does not matter.
    first, second = (score for _, score in every[0][:2])
    threshold = (first + second) / 2
    wanted = [[pair for pair in row if pair[1] >= threshold] for row in every]
    check_alike(surface, surface.answers(case.asked, threshold=threshold), wanted)
    assert wanted != every


@over_surfaces("sets")
def test_same_sets(surface):
    case, k = surface.case, len(surface.case.labels)
    classifier = case.model.classifier_ if case.reads_texts else case.model
    wanted = [
        [label for label, score in row if score >= classifier.threshold_]
        for row in model_of(case).answers(case.asked, k)
    ]
    assert surface.sets(case.asked) == wanted
    assert 0 < sum(map(len, wanted)) < sum(map(len, surface.answers(case.asked)))


# -- explanations ------------------------------------------------------------------------------


def check_explained(surface, found, wanted):
    assert [(one.label, one.shares.keys()) for one in found] == [
        (one.label, one.shares.keys()) for one in wanted
    ]
    for one, other in zip(found, wanted, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-6)
        assert one.shares == pytest.approx(other.shares, abs=1e-6)
        assert [name for name, _ in one.reasons] == [name for name, _ in other.reasons]
        assert [part for _, part in one.reasons] == pytest.approx(
            [part for _, part in other.reasons], abs=1e-6
        )


@over_surfaces("explain")
def test_same_explanations(surface):
    case = surface.case
    for row in (0, 5):
        one = case.asked[row : row + 1]
        found = surface.explain(one, 3)
        check_explained(surface, found, model_of(case).explain(one, 3))
        answers = surface.answers(one, 3)[0]
        assert [one.label for one in found] == [label for label, _ in answers]
        assert [one.score for one in found] == pytest.approx([p for _, p in answers], abs=1e-6)
        assert all(one.reasons and len(one.shares) > 2 for one in found)


@over_surfaces("explain label")
def test_explanation_of_a_label(surface):
    case = surface.case
    one = case.asked[:1]
    label, _ = surface.answers(one, 4)[0][3]
    (found,) = surface.explain(one, label=label)
    classifier = SURFACES["texts" if case.reads_texts else "rows"]["classifier"](case, Path())
    check_explained(surface, [found], classifier.explain(one, label=label))
    assert found.label == label


# -- mistakes ----------------------------------------------------------------------------------


def refuse(surface, ask, option, value):
    """The error names what is wrong, as it is called there, and the value."""
    with pytest.raises(ValueError) as error:
        ask()
    message = str(error.value)
    assert surface.name_of(option) in message and str(value) in message, message
    assert "Traceback" not in message and len(message) < 500


@pytest.mark.parametrize("k", [0, -1, 1.5])
@over_surfaces()
def test_k_out_of_range(surface, k):
    refuse(surface, lambda: surface.answers(surface.case.asked, k), "k", k)


@pytest.mark.parametrize("tail", [-1.0, float("nan")])
@over_surfaces("tail")
def test_tail_out_of_range(surface, tail):
    refuse(surface, lambda: surface.answers(surface.case.asked, tail=tail), "tail", tail)


@pytest.mark.parametrize("threshold", [2.0, -0.5])
@over_surfaces("threshold")
def test_threshold_out_of_range(surface, threshold):
    asked = surface.case.asked
    if surface.checks_threshold:
        refuse(surface, lambda: surface.answers(asked, threshold=threshold), "threshold", threshold)
    else:
        every = surface.answers(asked)
        found = surface.answers(asked, threshold=threshold)
        assert found == ([[]] * len(every) if threshold > 1 else every)


@pytest.mark.parametrize("option", ["only", "without"])
@over_surfaces("only")
def test_unknown_label_to_choose(surface, option):
    asked, labels = surface.case.asked, [surface.case.labels[0], UNKNOWN]
    refuse(surface, lambda: surface.answers(asked, **{option: labels}), option, UNKNOWN)


@over_surfaces("explain label")
def test_unknown_label_to_explain(surface):
    refuse(
        surface, lambda: surface.explain(surface.case.asked[:1], label=UNKNOWN), "label", UNKNOWN
    )


@over_surfaces("features", of=("rows",))
def test_wrong_number_of_features(surface):
    for change in (-1, 2):
        X = sp.csr_array((3, 80 + change), dtype="float32")
        with pytest.raises(ValueError, match="features") as error:
            surface.answers(X)
        assert re.search(rf"\b{80 + change}\b", str(error.value))
        assert re.search(r"\b80\b", str(error.value))


@over_surfaces("documents", of=("texts",))
def test_text_that_is_no_string(surface):
    with pytest.raises(ValueError, match=r"(Document 1|\[1\]|:2:).* (a str|string)"):
        surface.answers(["cod", 3])
