"""Taggers in files: they load unchanged, and other files are refused."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

import ldsm
from ldsm import TextTagger
from ldsm._storage import container
from ldsm.text import default_vectorizer
from saved_states import tagger_state
from text_corpus import NEW, NEW_TAGS, TAGS, TEXTS, small


@pytest.fixture(scope="module")
def tagger():
    return small().fit(TEXTS, TAGS)


@pytest.mark.parametrize(
    "vectorizer",
    [
        None,
        TfidfVectorizer(),  # float64
        default_vectorizer(use_idf=False, norm="l1", binary=True),
        default_vectorizer(smooth_idf=False, sublinear_tf=False, max_features=20, max_df=0.9),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), strip_accents="unicode"),
        TfidfVectorizer(stop_words=["filler1", "filler2"], lowercase=False),
        TfidfVectorizer(vocabulary=["cod", "beef", "élan", "court"], stop_words="english"),
    ],
)
def test_tagger_round_trip(vectorizer, tmp_path):
    tags = [[*row, "rare é"] if i == 3 else row for i, row in enumerate(TAGS)]
    tagger = small(vectorizer=vectorizer, min_tag_count=2).fit(TEXTS, tags)
    tagger.tune_threshold(NEW, NEW_TAGS, per_label=True)
    tagger.save(tmp_path / "tags.ldsm")
    for verify in (True, False):
        loaded = ldsm.load(tmp_path / "tags.ldsm", verify=verify)
        assert type(loaded) is TextTagger and loaded.fingerprint_ == tagger.fingerprint_
        X, same = tagger.vectorize(NEW), loaded.vectorize(NEW)
        assert X.dtype == same.dtype and X.data.tobytes() == same.data.tobytes()
        assert loaded.predict(NEW) == tagger.predict(NEW)
        assert loaded.predict_sets(NEW) == tagger.predict_sets(NEW)
        assert loaded.rare_tags_ == {"rare é": 1}
        assert str(loaded.explain(NEW[0])) == str(tagger.explain(NEW[0]))
    # Parameters too: what was refitted is the same, and a second file equals the first.
    assert clone(loaded).fit(TEXTS, tags).predict(NEW) == tagger.predict(NEW)
    assert (loaded.vectorizer is None) == (vectorizer is None)
    loaded.save(tmp_path / "again.ldsm")
    assert (tmp_path / "again.ldsm").read_bytes() == (tmp_path / "tags.ldsm").read_bytes()


def test_parameters_of_words_are_saved(tmp_path):
    own = {"min_df": 3, "max_words": 50, "ngrams": 2, "stop_words": "english", "min_tag_count": 2}
    path = tmp_path / "tags.ldsm"
    small(**own).fit(TEXTS, TAGS).save(path)
    loaded = ldsm.load(path)
    assert own.items() <= loaded.get_params().items() and loaded.vectorizer is None
    assert clone(loaded).fit(TEXTS, TAGS).fingerprint_ == loaded.fingerprint_
    small().fit(TEXTS, TAGS).save(path)  # defaults are not written
    assert not own.keys() - {"min_tag_count"} & container.read(path)[0]["text"].keys()


class Subclass(TfidfVectorizer):
    """A vectorizer with code, which a file cannot hold."""


@pytest.mark.filterwarnings("ignore:The parameter 'token_pattern' will not be used")
@pytest.mark.parametrize(
    ("vectorizer", "message"),
    [
        (TfidfVectorizer(tokenizer=str.split), "a model file holds no code. Got tokenizer="),
        (TfidfVectorizer(preprocessor=str.lower), "Got preprocessor="),
        (TfidfVectorizer(analyzer=str.split), "Got analyzer="),
        (Subclass(), "Only a TfidfVectorizer itself can be saved. Got Subclass"),
    ],
)
def test_unsavable_taggers(vectorizer, message, tmp_path):
    tagger = small(vectorizer=vectorizer).fit(TEXTS, TAGS)
    assert tagger.score(NEW, NEW_TAGS) > 0.8 and tagger.fingerprint_
    with pytest.raises(ValueError, match=message):
        tagger.save(tmp_path / "tags.ldsm")
    assert list(tmp_path.iterdir()) == []


def broken(change):
    """The tagger's state with something changed."""

    def apply(tagger):
        header, arrays = tagger_state(tagger)
        header["text"] = {**header["text"], "vectorizer": {**header["text"]["vectorizer"]}}
        change(header["text"], header["text"]["vectorizer"], arrays)
        return header, arrays

    return apply


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, v, a: t.update(vectorizer=[]), "no proper entry 'vectorizer'"),
        (lambda t, v, a: t.pop("given_words"), "given_words"),
        (lambda t, v, a: t.update(more=1), "text has an entry .* does not know, 'more'"),
        (lambda t, v, a: t.update(default_classifier=1), "'default_classifier'"),
        (lambda t, v, a: t.update(min_tag_count="many"), "no proper entry 'min_tag_count'"),
        (lambda t, v, a: t.update(min_df=0), "no proper entry 'min_df'"),
        (lambda t, v, a: t.update(ngrams="many"), "no proper entry 'ngrams'"),
        (lambda t, v, a: t.update(stop_words=["a"]), "no proper entry 'stop_words'"),
        (lambda t, v, a: t.update(min_df=3, default_vectorizer=False), "2 beside a vectorizer"),
        (lambda t, v, a: v.update(tokenizer="os.system"), "does not know, 'tokenizer'"),
        (lambda t, v, a: v.update(input="filename"), "does not know, 'input'"),
        (lambda t, v, a: v.pop("norm"), "no proper entry 'norm'"),
        (lambda t, v, a: v.update(dtype="int64"), "entry 'dtype'.*not 'int64'"),
        (lambda t, v, a: v.update(analyzer="lines"), "entry 'analyzer'.*not 'lines'"),
        (lambda t, v, a: v.update(stop_words="klingon"), "entry 'stop_words'.*not 'klingon'"),
        (lambda t, v, a: v.update(token_pattern="("), "its token pattern, '\\(', might never"),
        (lambda t, v, a: v.update(ngram_range=[2, 1]), "ngram_range"),
        (lambda t, v, a: v.update(ngram_range=3), "entry 'ngram_range'.*not 3"),
        (lambda t, v, a: a.pop("idf"), "'idf' is missing"),
        (lambda t, v, a: a.update(idf=a["idf"][1:]), "array idf must have the shape"),
        (
            lambda t, v, a: a.update(idf=a["idf"] * np.nan),
            "array idf has an entry that is not a number",
        ),
        (lambda t, v, a: a.update({"words.text": a["words.text"][:-1]}), "words.offsets"),
        (
            lambda t, v, a: a.update({"words.text": a["words.text"] * 0}),
            "occurs twice",
        ),
        (lambda t, v, a: a.update(more=a["idf"]), "does not know, 'more'"),
        (lambda t, v, a: a.update(rare_tag_counts=a["idf"]), "rare_tag_counts must be of type"),
        (lambda t, v, a: a.pop("rare_tag_counts"), "rare_tag_counts"),
    ],
)
def test_not_a_tagger_file(tagger, tmp_path, change, message):
    header, arrays = broken(change)(tagger)
    container.write(tmp_path / "bad.ldsm", {"kind": "TextTagger", **header}, arrays)
    with pytest.raises(container.ModelFileError, match=message):
        ldsm.load(tmp_path / "bad.ldsm")


def test_word_count_mismatch(tagger, tmp_path):
    other = small(vectorizer=default_vectorizer(max_features=9)).fit(TEXTS, TAGS)
    header, arrays = tagger_state(tagger)
    _, fewer = tagger_state(other)
    arrays.update({name: fewer[name] for name in ("words.text", "words.offsets", "idf")})
    container.write(tmp_path / "bad.ldsm", {"kind": "TextTagger", **header}, arrays)
    with pytest.raises(ValueError, match="do not have the same number of features"):
        ldsm.load(tmp_path / "bad.ldsm")


OVERWRITTEN = """
import sys
import scipy.sparse as sp
import ldsm
tagger = ldsm.load(sys.argv[1], verify=False)
before = tagger.vectorize(["cod and beef in court"]).toarray()
with open(sys.argv[1], "r+b") as file:  # as long as before, so no page is missing
    size = file.seek(0, 2)
    file.seek(0)
    file.write(b"\\x5a" * size)
counts = tagger.features_.counts(["cod and beef in court"]).values()
assert ((before != 0) == (sp.hstack([its.matrix() for its in counts]).toarray() != 0)).all()
print("same words")
"""


def test_overwritten_mapped_file(tagger, tmp_path):
    """The finder of words checked its offsets once: they must stay as they were."""
    tagger.save(tmp_path / "tags.ldsm")
    command = [sys.executable, "-c", OVERWRITTEN, str(tmp_path / "tags.ldsm")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "same words\n"), run.stderr[-500:]
