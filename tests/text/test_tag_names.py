"""Taggers that know the names of tags, including tags without documents."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm._storage.container import write
from ldsm.text import default_vectorizer
from ldsm.text.fitted import fitted_text
from saved_states import tagger_state
from text_corpus import titles

TEXTS, TAGS = titles(1000)
NEW, NEW_TAGS = titles(200, seed=1)
HIDDEN = min(tag for tags in TAGS for tag in tags)
KNOWN = [[tag for tag in tags if tag != HIDDEN] for tags in TAGS]


@cache
def tagger(vocabulary=True):
    names = sorted({tag for tags in TAGS for tag in tags})
    return TextTagger(LdSMClassifier(5)).fit(TEXTS, KNOWN, vocabulary=names if vocabulary else None)


def stage(model):
    return model.classifier_.second_stage_


def recall(model, tag, k=3):
    asked = [text for text, tags in zip(NEW, NEW_TAGS, strict=True) if tag in tags]
    found = [tag in [name for name, _ in best] for best in model.predict(asked, k=k)]
    return np.mean(found)


def test_unseen_words_match_by_sub_words():
    model = TextTagger(LdSMClassifier(5)).fit(TEXTS, TAGS)
    assert "subwords" in stage(model).blend.kind
    words = TextTagger(LdSMClassifier(5), default_vectorizer()).fit(TEXTS, TAGS)
    # All words in a form of their own.
    new = [" ".join(f"{word}ttaque" for word in text.split()) for text in NEW]
    assert model.score(new, NEW_TAGS) > 0.5 > 2 * words.score(new, NEW_TAGS)


def test_unseen_tag_found_by_name():
    model = tagger()
    assert HIDDEN in model.classes_
    assert model.classifier_.label_counts_[model.classes_.tolist().index(HIDDEN)] == 0
    assert len(stage(model).blend.unseen) > 0 and stage(model).names is not None
    assert recall(model, HIDDEN) > 0.5
    assert recall(tagger(vocabulary=False), HIDDEN) == 0
    # The others are found as well as without it.
    others = [[t for t in tags if t != HIDDEN] for tags in NEW_TAGS]
    plain = tagger(vocabulary=False).score(NEW, others)
    assert model.score(NEW, others) > plain - 0.1
    only = model.predict(NEW[:5], k=3, only=[HIDDEN])
    assert {tag for best in only for tag, _ in best} <= {HIDDEN}


def test_names_independent_of_threads_and_batches(tmp_path):
    model = tagger()
    model.save(tmp_path / "m.ldsm")
    again = ldsm.load(tmp_path / "m.ldsm")
    mapped = ldsm.load(tmp_path / "m.ldsm", verify=False)
    copied = pickle.loads(pickle.dumps(model))
    expected = model.predict(NEW, k=4)
    assert expected == again.predict(NEW, k=4) == mapped.predict(NEW, k=4)
    assert expected == copied.predict(NEW, k=4)
    assert expected == [model.predict([text], k=4)[0] for text in NEW]
    assert model.fingerprint_ == again.fingerprint_ == copied.fingerprint_
    scores = model.predict_proba(NEW)
    column = {tag: i for i, tag in enumerate(model.classes_.tolist())}
    for row, best in enumerate(expected):
        assert [scores[row, column[tag]] for tag, _ in best] == [score for _, score in best]
    threads = TextTagger(LdSMClassifier(5, n_jobs=2))
    threads.fit(TEXTS, KNOWN, vocabulary=model.classes_.tolist())
    assert threads.fingerprint_ == model.fingerprint_


def test_explanation_shows_matched_name():
    model = tagger()
    text = next(text for text, tags in zip(NEW, NEW_TAGS, strict=True) if HIDDEN in tags)
    for score in model.explain(text, max_tags=4).scores:
        odds = np.log(score.score) - np.log1p(-score.score)
        assert sum(score.shares.values()) == pytest.approx(odds, abs=1e-3)
        if score.tag == HIDDEN:
            break
    else:
        pytest.fail("the hidden tag is not among the best")
    assert score.name[0] == HIDDEN and score.name[1] > 0.4
    assert f"the name '{HIDDEN}' matches by " in str(score)


def test_synonyms_are_matched(tmp_path):
    codes = {tag: f"T{i:03}" for i, tag in enumerate(sorted({t for tags in TAGS for t in tags}))}
    coded = [[codes[tag] for tag in tags] for tags in KNOWN]
    vocabulary = {code: [f"misleading {code}", tag] for tag, code in codes.items()}
    model = TextTagger(LdSMClassifier(5)).fit(TEXTS, coded, vocabulary=vocabulary)
    asked = [text for text, tags in zip(NEW, NEW_TAGS, strict=True) if HIDDEN in tags]
    best = model.explain(asked[0], max_tags=10).scores
    explained = {score.tag: score.name for score in best if score.name is not None}
    assert explained[codes[HIDDEN]][0] == HIDDEN
    model.save(tmp_path / "m.ldsm")
    assert ldsm.load(tmp_path / "m.ldsm").explain(asked[0], max_tags=10).scores == best
    # Codes alone say nothing: their names are left out.
    plain = TextTagger(LdSMClassifier(5)).fit(TEXTS, coded)
    assert stage(plain).names is None and not stage(plain).match_names


def test_titles_go_with_their_tags(tmp_path):
    every_tag = sorted({tag for tags in TAGS for tag in tags})
    codes = {tag: f"http://x/{i:03}" for i, tag in enumerate(every_tag)}
    coded = [[codes[tag] for tag in tags] for tags in TAGS]
    vocabulary = {code: [tag] for tag, code in codes.items()}
    model = TextTagger(LdSMClassifier(2, rerank="linear")).fit(TEXTS, coded, vocabulary=vocabulary)
    titles = fitted_text(model).titles.as_dict()
    first, second, third = sorted(titles)[:3]
    model.drop_labels([first]).rename_labels({second: third, third: second})
    swapped = titles | {second: titles[third], third: titles[second]}
    del swapped[first]
    assert fitted_text(model).titles.as_dict() == swapped
    model.save(tmp_path / "m.ldsm")
    assert fitted_text(ldsm.load(tmp_path / "m.ldsm")).titles.as_dict() == swapped


@pytest.mark.parametrize(
    ("options", "vocabulary", "message"),
    [
        ({"vectorizer": default_vectorizer()}, [HIDDEN], "vectorizer must be None"),
        ({"classifier": LdSMClassifier(2, rerank=None)}, [HIDDEN], "and a linear second stage"),
        ({"classifier": LdSMClassifier(2)}, ["nothing"], "must have labels of the data"),
        ({"classifier": LdSMClassifier(2)}, "no-such-file.tsv", "No such file"),
    ],
)
def test_invalid_vocabularies(options, vocabulary, message):
    with pytest.raises((ValueError, OSError), match=message):
        TextTagger(**options).fit(TEXTS, TAGS, vocabulary=vocabulary)


def test_useless_vocabulary_warns():
    codes = {tag: f"{i:03}" for i, tag in enumerate(sorted({t for tags in TAGS for t in tags}))}
    coded = [[codes[tag] for tag in tags] for tags in TAGS]
    with pytest.warns(UserWarning, match="1 tags without documents cannot be predicted"):
        TextTagger(LdSMClassifier(2)).fit(TEXTS, coded, vocabulary=[*codes.values(), "999"])


def test_vectorized_data_takes_no_vocabulary():
    X = tagger().vectorize(TEXTS)
    named = [HIDDEN, "b"]
    data = datasets.Dataset(X, np.ones((len(TEXTS), 2)), label_names=named)
    data = replace(data, text_form=tagger().features_.form, feature_names=tagger().features_.names)
    with pytest.raises(ValueError, match="A vocabulary needs texts"):
        TextTagger().fit(data, vocabulary=named)


def test_dataset_synonyms():
    data = datasets.Dataset.from_texts(TEXTS, KNOWN)
    names = {tag: [tag] for some in TAGS for tag in some}
    model = TextTagger(LdSMClassifier(5)).fit(replace(data, label_synonyms=names))
    assert (
        model.fingerprint_ == TextTagger(LdSMClassifier(5)).fit(data, vocabulary=names).fingerprint_
    )
    assert HIDDEN in model.classes_


def test_rare_tags_stay_out():
    tags = [[*some, "rarely"] if i < 2 else some for i, some in enumerate(TAGS)]
    model = TextTagger(LdSMClassifier(2), min_tag_count=3)
    model.fit(TEXTS, tags, vocabulary=["rarely", HIDDEN, "unheard"])
    assert model.rare_tags_ == {"rarely": 2}
    assert "rarely" not in model.classes_ and "unheard" in model.classes_


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sub_words.idf", lambda a: a[:-1]),
        ("sub_words.idf", lambda a: a.astype(np.float64)),
        ("sub_words.idf", lambda a: np.full_like(a, np.nan)),
        ("second_stage.sub_index.labels", lambda a: a[::-1].copy()),
        ("second_stage.sub_index.units", lambda a: -a),
        ("second_stage.names.names", lambda a: a[::-1].copy()),
        ("second_stage.names.offsets", lambda a: a[1:]),
        ("second_stage.names.idf", lambda a: 0 * a),
        ("second_stage.names.idf", lambda a: a.astype(np.float64)),
        ("second_stage.names.norms", lambda a: np.full_like(a, np.inf)),
        ("second_stage.names.norms", lambda a: 0 * a),
        ("second_stage.names.norms", lambda a: a[:-1]),
        ("second_stage.names.owners", lambda a: a + 10**6),
        ("second_stage.names.owners", lambda a: a[::-1].copy()),
        ("second_stage.names.right", lambda a: a - 10),
        ("second_stage.names.right", lambda a: a + 10**6),
        ("second_stage.names.text", lambda a: a | 0x80),
        ("second_stage.names.text_offsets", lambda a: a[:2]),
    ],
)
def test_crafted_names_are_refused(tmp_path, name, change):
    header, arrays = tagger_state(tagger())
    arrays[name] = change(np.array(arrays[name]))
    write(tmp_path / "bad.ldsm", {"kind": "TextTagger", **header}, arrays)
    with pytest.raises(ValueError, match="cannot be loaded: .*(name|sub.?(word|index))"):
        ldsm.load(tmp_path / "bad.ldsm")


@pytest.mark.parametrize(
    ("where", "entry", "value"),
    [
        ("second_stage", "unseen", [1.0]),
        ("second_stage", "unseen", ["x"] * 6),
        ("second_stage", "unseen", [1e31] * 6),
        ("second_stage", "match_names", 1),
        ("second_stage", "most_cosine", "x"),
        ("model", "n_ranked", -1),
        ("model", "n_ranked", 10**9),
        ("text", "indexed_sub_words", "yes"),
        ("text", "head_words", -1),
        ("text", "head_words", 10**9),
        ("text", "head_words", "30"),
    ],
)
def test_crafted_headers_are_refused(tmp_path, where, entry, value):
    header, arrays = tagger_state(tagger())
    place = {"model": header["model"], "text": header["text"]}
    (header["model"]["second_stage"] if where == "second_stage" else place[where])[entry] = value
    write(tmp_path / "bad.ldsm", {"kind": "TextTagger", **header}, arrays)
    with pytest.raises(ValueError, match="cannot be loaded"):
        ldsm.load(tmp_path / "bad.ldsm")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "balamon",
        "ßß ǅ",
        "漢字仮名交じり文の題名",
        "word " * 200_000,
        "a" * 1_000_000,
        "\ud800",
        "\0",
    ],
    ids=[
        "empty",
        "blank",
        "letter",
        "word",
        "script",
        "han",
        "megabyte",
        "one word",
        "surrogate",
        "nul",
    ],
)
def test_any_text_is_answered(text):
    model = tagger()
    (best,) = model.predict([text])
    assert all(0 < score <= 1 and np.isfinite(score) for _, score in best)
    explained = model.explain(text)
    assert [tag for tag, _ in explained.tags] == [tag for tag, _ in best]


def test_non_latin_tags():
    """No rule depends on a language: words and names of any script are compared."""
    shift = {ord(c): chr(ord(c) + 0x3D0) for c in map(chr, range(ord("a"), ord("z") + 1))}

    def shifted(tags):
        return [[tag.translate(shift) for tag in some] for some in tags]

    other = TextTagger(LdSMClassifier(5))
    other.fit([text.translate(shift) for text in TEXTS], shifted(TAGS))
    model = TextTagger(LdSMClassifier(5)).fit(TEXTS, TAGS)
    assert stage(other).blend.kind == stage(model).blend.kind
    asked = [text.translate(shift) for text in NEW]
    assert other.score(asked, shifted(NEW_TAGS)) == pytest.approx(
        model.score(NEW, NEW_TAGS), abs=0.05
    )
