"""Files of taggers that were made to hang or to swell."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import ldsm
import patience
from ldsm import LdSMClassifier, TextTagger
from ldsm._storage import container
from ldsm._storage.strings import Strings
from ldsm.text import default_vectorizer
from model_bytes import with_entry
from saved_states import tagger_state

TEXTS = ["cod and herring quota", "import of beef", "herring import"] * 5
TAGS = [["fish", "law"], ["meat", "trade"], ["fish", "trade"]] * 5
HELPERS = Path(__file__).parents[1] / "helpers"


def tagger(**settings) -> TextTagger:
    classifier = LdSMClassifier(n_estimators=2, random_state=0)
    return TextTagger(classifier, default_vectorizer(**settings)).fit(TEXTS, TAGS)


def crafted(path: Path, change) -> Path:
    """A tagger's file with a valid checksum and other settings or arrays."""
    header, arrays = tagger_state(tagger())
    change(header, arrays)
    container.write(path, {"kind": "TextTagger", **header}, arrays)
    return path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"token_pattern": "(?:a+)+$", "stop_words": ["a" * 41 + "!"]}, "might never come to an"),
        ({"token_pattern": "(?i)" + "[\x00-\U0010ffff]" * 2000}, "might never come to an end"),
        ({"analyzer": "char", "ngram_range": [1, 10**9]}, "no proper entry 'ngram_range'"),
        ({"analyzer": "char", "ngram_range": [1, 21]}, "no proper entry 'ngram_range'"),
        ({"stop_words": [1]}, "no proper entry 'stop_words'"),
        ({"token_pattern": None}, "no token pattern"),
        ({"token_pattern": "[b-a]+"}, "its token pattern is wrong: bad character range"),
    ],
)
def test_hostile_settings_refused(tmp_path, settings, message):
    change = lambda header, arrays: header["text"]["vectorizer"].update(settings)  # noqa: E731
    path = crafted(tmp_path / "bad.ldsm", change)
    with patience.little_work(1), pytest.raises(ValueError, match=message):
        ldsm.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h["text"]["vectorizer"].update(min_df=1e308), "entry 'min_df'.*not 1e\\+308"),
        (lambda h, a: h["text"]["vectorizer"].update(max_df=-0.5), "no proper entry 'max_df'"),
        (lambda h, a: h["text"]["vectorizer"].update(max_df=1), "min_df of 2, but a max_df of 1"),
        (
            lambda h, a: a.update(idf=a["idf"] * np.float32(1e10)),
            "array idf has an entry that is not a number",
        ),
        (
            lambda h, a: a.update(label_counts=a["label_counts"] * 0 + 2**48),
            "more rows than there were in training",
        ),
    ],
)
def test_unlearnable_values_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        ldsm.load(crafted(tmp_path / "bad.ldsm", change))


@pytest.mark.parametrize("entry", ["training", "parameters", "text"])
def test_surrogates_in_header(tmp_path, entry):
    path = tmp_path / "m.ldsm"
    tagger().save(path)
    path.write_bytes(with_entry(path.read_bytes(), entry, lambda value: {**value, "a": "\ud800"}))
    with pytest.raises(ValueError, match="not valid JSON .a text holds a lone surrogate"):
        ldsm.load(path)


def test_lone_surrogates_are_not_saved(tmp_path):
    model = tagger()
    model.classifier_.training_ = {**model.classifier_.training_, "note": "\ud800"}
    with pytest.raises(ValueError, match="header entry 'training' cannot be stored: it has a lone"):
        model.save(tmp_path / "m.ldsm")


GOLDEN = Path(__file__).parents[1] / "golden" / "tagger_v2_parts.ldsm"


def test_sub_words_and_names_are_checked(tmp_path):
    path = tmp_path / "bad.ldsm"
    for name, change, message in (
        (
            "sub_words.idf",
            lambda idf: idf * np.float32(1e10),
            "sub_words.idf has an entry that is not",
        ),
        (
            "pairs.idf",
            lambda idf: idf - np.float32(100),
            "pairs.idf has an entry that is not a number",
        ),
        ("second_stage.names.owners", np.zeros_like, "names are not those of all labels"),
        ("second_stage.names.matched", lambda of: of + 2**62, "more often than there can be rows"),
        ("second_stage.names.owners", lambda of: of + (of > 3) * (of < of[-1]), "rise by one"),
    ):
        header, arrays = container.read(GOLDEN)
        arrays[name] = change(arrays[name])
        container.write(path, header, arrays)
        with pytest.raises(ValueError, match=message):
            ldsm.load(path)


def test_too_many_rows_to_update(tmp_path):
    path = tmp_path / "m.ldsm"
    rows = {"rows": 2**48}
    path.write_bytes(with_entry(GOLDEN.read_bytes(), "training", lambda value: {**value, **rows}))
    with pytest.raises(ValueError, match="its file claims 281,474,976,710,656 training rows"):
        ldsm.load(path).partial_fit(TEXTS, TAGS)


def test_min_df_above_max_df(tmp_path):
    path = tmp_path / "m.ldsm"

    def rarer(text):
        text["vectorizer"] |= {"min_df": 0.1, "max_df": 12}

    path.write_bytes(with_entry(GOLDEN.read_bytes(), "text", rarer))
    model = ldsm.load(path).partial_fit(["cod quota"] * 100, [["fish"]] * 100)
    assert model.classifier_.training_["rows"] == 730


def test_nothing_is_tokenised_at_load(tmp_path, monkeypatch):
    path = tmp_path / "m.ldsm"
    tagger(stop_words=["the", "of"]).save(path)

    def refuse(*arguments):
        raise AssertionError("a tokenizer was made")

    monkeypatch.setattr("sklearn.feature_extraction.text.CountVectorizer.build_tokenizer", refuse)
    monkeypatch.setattr("ldsm._core.WordFinder", refuse)
    loaded = ldsm.load(path)
    with pytest.raises(AssertionError, match="a tokenizer was made"):
        loaded.predict(["cod"])


def test_custom_pattern_needs_trust(tmp_path):
    path = tmp_path / "own.ldsm"
    own = tagger(token_pattern=r"(?u)\b\w[\w-]*\w\b")
    with pytest.warns(UserWarning, match="trust_pattern=True"):
        own.save(path)
    with pytest.raises(ValueError, match=r"ldsm.load\(path, trust_pattern=True\)"):
        ldsm.load(path)
    loaded = ldsm.load(path, trust_pattern=True)
    assert loaded.fingerprint_ == own.fingerprint_
    assert loaded.predict(TEXTS) == own.predict(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger(token_pattern=r"[a-z]{2,}").save(path)
    assert ldsm.load(path).vectorizer_.token_pattern == r"[a-z]{2,}"


@pytest.mark.parametrize("settings", [{}, {"use_idf": False}, {"norm": None, "dtype": np.float64}])
def test_vectorizer_round_trip(tmp_path, settings):
    own = tagger(**settings)
    own.save(tmp_path / "m.ldsm")
    loaded = ldsm.load(tmp_path / "m.ldsm")
    for texts in (TEXTS, ["cod cod beef", ""]):
        assert (loaded.vectorize(texts) != own.vectorize(texts)).nnz == 0
    assert loaded.vectorizer_.get_params()["use_idf"] == settings.get("use_idf", True)
    assert loaded.fingerprint_ == own.fingerprint_
    loaded.save(tmp_path / "again.ldsm")
    assert (tmp_path / "again.ldsm").read_bytes() == (tmp_path / "m.ldsm").read_bytes()


def test_vocabulary_round_trip(tmp_path):
    own = tagger(vocabulary=["cod", "beef", "quota"], min_df=1)
    own.save(tmp_path / "m.ldsm")
    loaded = ldsm.load(tmp_path / "m.ldsm")
    assert list(loaded.vectorizer.vocabulary) == ["cod", "beef", "quota"]
    assert loaded.fit(TEXTS, TAGS).predict(TEXTS) == own.predict(TEXTS)


def test_overlong_ngrams_refused():
    with pytest.raises(ValueError, match="an ngram_range of at most 20"):
        tagger(analyzer="char", ngram_range=(1, 21))


@pytest.mark.linux
def test_names_are_not_decoded_at_load(tmp_path):
    """A million words, feature names or column labels cost about what the file has of them."""
    n = 1_000_000

    def many_words(header, arrays):
        words = Strings.pack([f"w{i}" for i in range(n)])
        arrays["words.text"], arrays["words.offsets"] = words.data, words.offsets
        arrays["idf"] = np.ones(n, np.float32)
        features, old = arrays["forest.weight_features"].copy(), header["model"]["n_features"]
        features[features == old] = n  # the bias
        arrays["forest.weight_features"] = features
        header["model"]["n_features"] = n

    path = crafted(tmp_path / "words.ldsm", many_words)
    program = (
        "import sys, json, time; sys.path.insert(0, sys.argv[2]); import ldsm, ldsm.text\n"
        "from process_memory import now_bytes, peak_bytes\n"
        "from ldsm import load\n"
        "before, start = now_bytes(), time.process_time(); model = load(sys.argv[1])\n"
        "print(json.dumps([peak_bytes() - before, time.process_time() - start]))\n"
    )
    command = [sys.executable, "-c", program, str(path), str(HELPERS)]
    run = patience.run(command)
    assert run.returncode == 0, run.stderr
    memory, seconds = json.loads(run.stdout)
    assert memory <= 1.2 * path.stat().st_size + (50 << 20)
    assert seconds < 3
