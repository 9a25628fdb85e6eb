"""TextTagger: from documents and tags to tags, through every form, file and mistake."""

import inspect
import pickle
import re
from itertools import islice

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from ldsm._features.blocks import MAIN, SUB_WORDS
from ldsm._model.sets import thresholds
from ldsm.datasets import Dataset, Strings
from ldsm.text import default_vectorizer
from ldsm.text import fitted as fitted_module
from ldsm.text.vectorizer import WORD_DEFAULTS
from text_corpus import NEW, NEW_TAGS, SUBJECTS, TAGS, TEXTS, make_corpus, small


@pytest.fixture(scope="module")
def tagger():
    return small().fit(TEXTS, TAGS)


# -- tagging -----------------------------------------------------------------------------------


def test_tags_and_scores_come_out(tagger):
    predicted = tagger.predict(NEW, k=2)
    assert len(predicted) == 60
    for pairs in predicted:
        assert 1 <= len(pairs) <= 2
        assert all(type(tag) is str and type(score) is float for tag, score in pairs)
        scores = [score for _, score in pairs]
        assert scores == sorted(scores, reverse=True) and 0 < scores[-1] <= scores[0] <= 1
    right = [pairs[0][0] in tags for pairs, tags in zip(predicted, NEW_TAGS, strict=True)]
    assert tagger.score(NEW, NEW_TAGS) == np.mean(right) > 0.9
    assert tagger.classes_.tolist() == sorted(SUBJECTS)


def test_one_answer_per_scored_tag(tagger):
    """More than there are tags may be asked for; a tag without a score is not given."""
    everything = tagger.predict(NEW, k=50)
    scores = tagger.classifier_.predict_proba(tagger.vectorize(NEW))
    assert [len(pairs) for pairs in everything] == np.diff(scores.indptr).tolist()
    tags, values = tagger.predict_topk(NEW, k=5)
    for pairs, names, row in zip(everything, tags.tolist(), values.tolist(), strict=True):
        assert pairs == [(n, s) for n, s in zip(names, row, strict=True) if s > 0]


def test_only_some_tags_compete(tagger):
    for pairs in tagger.predict(NEW, only=["law", "fish", "law"]):
        assert {tag for tag, _ in pairs} <= {"law", "fish"}
    assert {tag for row in tagger.predict_sets(NEW, only=["law"]) for tag, _ in row} == {"law"}
    assert tagger.predict_topk(NEW, k=2, only=["law", "fish"])[0].shape == (60, 2)
    for tags, message in ((["lore"], "Got 'lore'"), ([], "at least one"), ("law", "Got 'law'")):
        with pytest.raises(ValueError, match=f"{message}"):
            tagger.predict(NEW, only=tags)


def test_sets_by_threshold():
    tagger = small().fit(TEXTS, TAGS)
    X = tagger.vectorize(NEW)
    for tune in (lambda: None, lambda: tagger.tune_threshold(NEW, NEW_TAGS, per_label=True)):
        tune()
        expected = tagger.classifier_.predict(X).toarray()
        sets = tagger.predict_sets(NEW)
        assert [sorted(tag for tag, _ in pairs) for pairs in sets] == [
            tagger.classes_[np.flatnonzero(row)].tolist() for row in expected
        ]
        for pairs, best in zip(sets, tagger.predict(NEW, k=5), strict=True):
            assert pairs == [pair for pair in best if pair in pairs]  # in the same order
    # The same as on features, and better than the default.
    before = metrics.f1_score(tagged(NEW_TAGS), small().fit(TEXTS, TAGS).classifier_.predict(X))
    assert tagger.tune_threshold(NEW, NEW_TAGS) is tagger
    assert metrics.f1_score(tagged(NEW_TAGS), tagger.classifier_.predict(X)) >= before
    twin = clone(tagger.classifier).fit(tagger.vectorize(TEXTS), TAGS)
    twin.tune_threshold(X, NEW_TAGS)
    assert tagger.classifier_.threshold_ == twin.threshold_ != thresholds.DEFAULT_THRESHOLD


def tagged(tags):
    names = sorted(SUBJECTS)
    return sp.csr_array([[int(name in row) for name in names] for row in tags])


def test_documents_without_known_words_are_fine(tagger):
    for pairs in tagger.predict(["", "zzz qqq", "1 2 3", "\0\ud800"]):
        assert pairs == tagger.predict([""])[0] != []
    again = small().fit([*TEXTS, "", "???"], [*TAGS, [], ["law"]])
    assert again.predict([""]) and again.score(NEW, NEW_TAGS) > 0.9
    assert tagger.predict([]) == tagger.predict_sets([]) == []


def test_rare_tags():
    tags = [[*row, "once"] if i == 3 else row for i, row in enumerate(TAGS)]
    tags[5] = tags[9] = [*tags[5], "twice", "twice"]
    kept = small().fit(TEXTS, tags)
    assert kept.rare_tags_ == {} and {"once", "twice"} <= set(kept.classes_)
    tagger = small(min_tag_count=2).fit(TEXTS, tags)
    assert tagger.rare_tags_ == {"once": 1} and "twice" in tagger.classes_
    tagger = small(min_tag_count=3).fit(TEXTS, tags)
    assert tagger.rare_tags_ == {"once": 1, "twice": 2}
    assert tagger.classes_.tolist() == sorted(SUBJECTS)
    assert tagger.classifier_.forest_.node_rows[0] == 200  # the documents stay


# -- forms of input ----------------------------------------------------------------------------


def test_forms_of_corpus(tagger, tmp_path):
    data = Dataset.from_texts(TEXTS, TAGS)
    datasets.save_jsonl(data, tmp_path / "corpus.jsonl.gz")
    data.save(tmp_path / "store")
    stored = datasets.open_store(tmp_path / "store")
    assert isinstance(stored.texts, Strings)
    forms = {
        "generators": ((t for t in TEXTS), (row for row in TAGS)),
        "tuples, sets": (tuple(TEXTS), [set(row) for row in TAGS]),
        "arrays": (np.array(TEXTS), [np.array(row) for row in TAGS]),
        "pandas": (pd.Series(TEXTS), pd.Series(TAGS)),
        "packed": (Strings.pack(TEXTS), TAGS),
        "pairs": (zip(TEXTS, TAGS, strict=True),),
        "file": (datasets.iter_jsonl(tmp_path / "corpus.jsonl.gz"),),
        "dataset": (data,),
        "store": (stored,),
        "twice": (TEXTS, [[*row, *row] for row in TAGS]),
    }
    for name, form in forms.items():
        assert small().fit(*form).fingerprint_ == tagger.fingerprint_, name
    assert tagger.score(data) == tagger.score(TEXTS, TAGS)
    assert tagger.predict(data, k=1) == tagger.predict(TEXTS, k=1)
    assert all(type(tag) is str for tag in small().fit(*forms["dataset"]).classes_.tolist())


def test_unnamed_columns():
    data = Dataset(None, tagged(TAGS), texts=TEXTS)
    assert small().fit(data).classes_.tolist() == ["0", "1", "2", "3", "4"]


class Tracked(str):
    """A document that knows how many of its kind are alive."""

    alive = most = 0

    def __init__(self, *_):
        Tracked.alive += 1
        Tracked.most = max(Tracked.most, Tracked.alive)

    def __del__(self):
        Tracked.alive -= 1


def test_documents_are_not_kept(monkeypatch):
    monkeypatch.setattr(fitted_module, "CHUNK", 16)
    tagger = small().fit((Tracked(t) for t in TEXTS), TAGS)
    assert 1 <= Tracked.most <= 3
    Tracked.most = 0
    tagger.predict(Tracked(t) for t in TEXTS)
    tagger.predict_sets(Tracked(t) for t in TEXTS)
    tagger.score(((Tracked(t), row) for t, row in zip(TEXTS, TAGS, strict=True)))
    assert 16 <= Tracked.most <= 20
    assert Tracked.alive == 0


def test_answers_come_as_the_documents_do(tagger, monkeypatch):
    monkeypatch.setattr(fitted_module, "CHUNK", 4)
    read = []

    def endless():
        while True:
            read.append(NEW[len(read) % 60])
            yield read[-1]

    assert list(islice(tagger.iter_predict(endless(), k=1), 3)) == tagger.predict(NEW[:3], k=1)
    assert len(read) == 4


def test_chunk_size_does_not_matter(tagger, monkeypatch):
    whole = tagger.predict(NEW), tagger.predict_sets(NEW)
    X = tagger.vectorize(NEW)
    monkeypatch.setattr(fitted_module, "CHUNK", 7)
    assert (tagger.predict(NEW), tagger.predict_sets(NEW)) == whole
    assert (tagger.vectorize(NEW) != X).nnz == 0 and tagger.vectorize(NEW).dtype == np.float32


# -- mistakes ----------------------------------------------------------------------------------

TWO = ["cod quota", "cod import"]


def test_predict_proba_matches_classifier():
    tagger = small().fit(TEXTS, TAGS)
    scores = tagger.predict_proba(NEW)
    assert scores.shape == (len(NEW), len(tagger.classes_))
    expected = tagger.classifier_.predict_proba(tagger.vectorize(NEW))
    assert (scores != expected).nnz == 0
    chosen = tagger.classes_[:1].tolist()
    assert np.flatnonzero(tagger.predict_proba(NEW, only=chosen).sum(axis=0)).tolist() in ([0], [])
    with pytest.raises(ValueError, match="labels of the model"):
        tagger.predict_proba(NEW, only=["nonsense"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cod quota", [["fish"]]), "texts must be a list.*one for each document. Got one str"),
        ((b"cod", [["fish"]]), "Got one bytes"),
        ((3, [["fish"]]), "texts must be an iterable of str. Got 3"),
        ((["cod", 5], [["fish"], []]), "Document 1 must be a str. Got 5"),
        ((["cod", None], [["fish"], []]), "Document 1 must be a str. Got None"),
        ((["cod", b"x"], [["fish"], []]), "Document 1 must be a str. Got b'x'"),
        ((TWO, ["fish", "law"]), "tags of document 0 must be a list of str. Got 'fish'"),
        ((TWO, "fish"), "tags must be an iterable of lists.*Got 'fish'"),
        ((TWO, 3), "tags must be an iterable of lists.*Got 3"),
        ((TWO, [["fish"], [3]]), "tags of document 1 must be str. Got 3"),
        ((TWO, [["fish"], None]), "tags of document 1 must be a list of str. Got None"),
        ((TWO, [["fish"]]), "same length. Got 2 and 1"),
        ((iter(TWO), [["fish"]]), "same length. Got 1 tags and more texts"),
        ((TWO, iter([["fish"]] * 3)), "same length. Got 2 texts and more tags"),
        ((TWO, [[], []]), "no row has a label"),
        (([], []), "There are no rows to train on"),
        ((TWO,), "texts and tags must be given.*Got 'cod quota' at document 0, and no tags"),
        (([("cod", ["fish"], 1)],), "texts and tags must be given.*document 0"),
        ((3,), "texts and tags must be given.*Got 3"),
        (([("cod", "fish")],), "tags of document 0 must be a list of str. Got 'fish'"),
        (("corpus.jsonl",), "Got one str"),
        ((Dataset.from_texts(TWO, [["a"], ["b"]]), [["a"]]), "includes its tags"),
        ((Dataset([[1, 2]], [[1]]),), "must hold texts"),
        ((["cod", "beef"], [["a"], ["b"]]), "The 2 documents have no features: .*min_df=1 to keep"),
        ((["cod quota"], [["a"]]), "The 1 document has no features: .*min_df=1 to keep"),
        ((["", "!"], [["a"], ["b"]]), "The 2 documents have no features: they have no words"),
    ],
)
def test_bad_corpora(arguments, message):
    tagger = small()
    with pytest.raises(ValueError, match=message):
        tagger.fit(*arguments)
    with pytest.raises(NotFittedError):
        tagger.predict(["cod"])


@pytest.mark.parametrize("method", ["predict", "predict_sets", "predict_topk", "iter_predict"])
def test_bad_documents_to_predict(tagger, method):
    with pytest.raises(ValueError, match="Got one str: put a single document into a list"):
        getattr(tagger, method)("cod quota")
    with pytest.raises(ValueError, match="Document 1 must be a str. Got 3"):
        list(getattr(tagger, method)(["cod", 3]))
    for k in (0, 1.5, True):
        with pytest.raises(ValueError, match=rf"'k' parameter must be an int >= 1. Got {k}"):
            tagger.iter_predict(NEW, k)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("min_tag_count", 0, "an int >= 1"),
        ("min_tag_count", 1.5, "an int >= 1"),
        ("classifier", "trees", "a LdSMClassifier or None"),
        ("vectorizer", CountVectorizer(), "a TfidfVectorizer or None"),
        ("vectorizer", TfidfVectorizer(input="filename"), "one with input='content'"),
    ],
)
def test_bad_parameters(name, value, allowed):
    message = f"The '{name}' parameter of TextTagger must be {allowed}. Got .* instead"
    with pytest.raises(ValueError, match=message):
        small(**{name: value}).fit(TEXTS, TAGS)


def test_failed_fit_keeps_tagger(tagger):
    before = tagger.fingerprint_
    for arguments in ((TEXTS, TAGS[:10]), (["x", "y"], [["a"], ["b"]]), (TEXTS, [[]] * 200)):
        with pytest.raises(ValueError):
            tagger.fit(*arguments)
    assert tagger.fingerprint_ == before and tagger.predict(NEW)


def test_before_fit():
    calls = ("predict", "iter_predict", "predict_sets", "predict_topk", "vectorize", "explain")
    for method in calls:
        with pytest.raises(NotFittedError):
            getattr(small(), method)(["cod"] if method != "explain" else "cod")
    for method in ("score", "tune_threshold"):
        with pytest.raises(NotFittedError):
            getattr(small(), method)(TEXTS, TAGS)
    assert not hasattr(small(), "classes_") and not hasattr(small(), "fingerprint_")


# -- a good citizen of scikit-learn ------------------------------------------------------------


def test_tables_instead_of_columns():
    frame = pd.DataFrame({"comment": TEXTS, "tags": TAGS})
    for wrong in (frame[["comment"]], np.array([TEXTS]).T):
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match="one column of str. Got a .* pass one column"):
                getattr(small(), method)(wrong, TAGS)
    tagger = small().fit(frame["comment"], frame["tags"])
    with pytest.raises(ValueError, match="texts must be one column of str. Got a DataFrame of sh"):
        tagger.predict(frame[["comment"]])
    with pytest.raises(ValueError, match="tags must be one column of lists .* 'tags': pass"):
        small().fit(frame["comment"], frame[["tags"]])
    with pytest.raises(ValueError, match="columns 'comment', 'tags': datasets.load_frame reads it"):
        small().fit(frame)
    numbers = pd.DataFrame({"a": [0, 2], "b": [1, 0]})
    with pytest.raises(ValueError, match="a table of 0 and 1 with a column per tag"):
        small().fit(TEXTS[:2], numbers)


def test_params_clone_and_pickle(tagger):
    params = small(vectorizer=default_vectorizer()).get_params()
    assert {"classifier__n_estimators", "vectorizer__min_df", "min_tag_count"} <= params.keys()
    other = clone(tagger).set_params(classifier__n_estimators=2, min_tag_count=3)
    assert tagger.classifier.n_estimators == 5 and not hasattr(other, "classifier_")
    assert other.fit(TEXTS, TAGS).classifier_.forest_.n_trees == 2
    again = pickle.loads(pickle.dumps(tagger))
    assert again.fingerprint_ == tagger.fingerprint_ and again.predict(NEW) == tagger.predict(NEW)


def test_parameters_of_words():
    names = {"min_df", "max_words", "ngrams", "stop_words"}
    defaults = inspect.signature(TextTagger).parameters
    assert {name: defaults[name].default for name in names} == WORD_DEFAULTS
    texts = [f"the {text}" for text in TEXTS]
    own = {"min_df": 5, "max_words": 40, "ngrams": 2, "stop_words": "english"}
    tagger = small(**own).fit(texts, TAGS)
    same = default_vectorizer(
        min_df=5, max_features=40, ngram_range=(1, 2), stop_words="english", dtype=np.float32
    )
    assert tagger.fingerprint_ == small(vectorizer=same).fit(texts, TAGS).fingerprint_
    assert clone(tagger).get_params()["min_df"] == 5
    search = GridSearchCV(small(), {"max_words": [2, None]}, cv=KFold(2)).fit(texts, TAGS)
    assert search.best_params_ == {"max_words": None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_df": 0}, "'min_df' parameter of TextTagger must be an int in .*Got 0"),
        ({"min_df": 0.5}, "'min_df' .* Got 0.5"),
        ({"max_words": "all"}, "'max_words' .* must be None or an int .* Got 'all'"),
        ({"ngrams": (1, 2)}, r"'ngrams' .* must be 'auto' or an int in .* Got \(1, 2\)"),
        ({"stop_words": "german"}, "'stop_words' .* must be None or 'english'"),
        (
            {"min_df": 3, "vectorizer": default_vectorizer()},
            "'min_df' parameter of TextTagger must be 2 beside a vectorizer. Got 3",
        ),
    ],
)
def test_invalid_parameters_of_words(changes, message):
    with pytest.raises(ValueError, match=message):
        small(**changes).fit(TEXTS, TAGS)


def test_word_parameters_keep_bigrams_and_sub_words():
    texts, tags = make_corpus(600)
    texts = [f"{text} now here" for text in texts]
    names = {"fish": "Fish and herring"}

    def names_of(**own):
        return set(TextTagger(LdSMClassifier(4), **own).fit(texts, tags).features_.names)

    usual = names_of()
    assert any(" " in name for name in usual)
    kept = names_of(min_df=100)
    assert "filler1" in usual - kept and any(" " in name for name in kept)
    layouts = {
        key: TextTagger(LdSMClassifier(4), **own).fit(texts, tags).features_.layout
        for key, own in (("few", {"max_words": 9}), ("plain", {"ngrams": 1}))
    }
    assert layouts["few"][MAIN] == 9 and layouts["few"][SUB_WORDS] > 0
    assert layouts["plain"][SUB_WORDS] == 0 and layouts["plain"][MAIN] > 9
    some = TextTagger(LdSMClassifier(4), stop_words="english")
    assert some.fit(texts, tags, vocabulary=names).classes_.tolist() == sorted(SUBJECTS)
    with pytest.raises(ValueError, match="With a vocabulary, vectorizer must be None and ngrams="):
        some.set_params(ngrams=1).fit(texts, tags, vocabulary=names)


def test_parts_are_cloned_and_defaults_work():
    trees, words = LdSMClassifier(3, random_state=1), default_vectorizer(ngram_range=(1, 2))
    tagger = TextTagger(trees, words).fit(TEXTS, TAGS)
    assert not hasattr(trees, "forest_") and not hasattr(words, "vocabulary_")
    assert any(" " in word for word in tagger.vectorizer_.get_feature_names_out())
    plain = TextTagger().fit(TEXTS, TAGS)
    assert plain.classifier is None and plain.vectorizer is None
    assert plain.score(NEW, NEW_TAGS) > 0.9


def test_grid_search_and_scorers():
    search = GridSearchCV(small(), {"classifier__n_estimators": [1, 4]}, cv=KFold(2))
    search.fit(TEXTS, TAGS)
    assert search.best_estimator_.predict(NEW[:1]) and search.best_score_ > 0.8
    scores = cross_val_score(
        small(), TEXTS, TAGS, cv=KFold(2), scoring=metrics.topk_scorer("ndcg", k=2)
    )
    assert np.all(scores > 0.8)


def test_grid_search_by_f1():
    # scikit-learn's own "f1_micro" reads neither lists of tags nor their scores.
    texts, tags = TEXTS + ["cod beef"] * 4, TAGS + [["fish"]] * 4
    grid = {"classifier__threshold": [0.05, 0.5, 1.0], "min_tag_count": [1, 2]}
    search = GridSearchCV(small(), grid, cv=KFold(2), scoring=metrics.topk_scorer("f1"))
    search.fit(texts, tags)
    results = search.cv_results_
    assert np.isfinite(results["mean_test_score"]).all()
    assert len(set(results["mean_test_score"])) > 1
    train, test = next(KFold(2).split(texts))
    params = results["params"][search.best_index_]
    tagger = small().set_params(**params).fit([texts[i] for i in train], [tags[i] for i in train])
    sets = [{tag for tag, _ in row} for row in tagger.predict_sets([texts[i] for i in test])]
    true = [set(tags[i]) for i in test]
    f1 = [2 * len(a & b) / (len(a) + len(b)) for a, b in zip(sets, true, strict=True)]
    assert results["split0_test_score"][search.best_index_] == pytest.approx(np.mean(f1))


def test_callback_and_repr():
    seen = []
    small().fit(TEXTS, TAGS, callback=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0
    assert "LdSMClassifier" in repr(small())


# -- explaining --------------------------------------------------------------------------------


def test_explain_names_words_and_tags(tagger):
    document = "Cod and herring in the harbour, filler1"
    explained = tagger.explain(document, max_words=3, max_tags=2)
    assert explained.tags == tagger.predict([document], k=2)[0] and explained.tags[0][0] == "fish"
    assert {word for word, _ in explained.words} <= {"cod", "herring", "harbour", "filler1"}
    assert explained.words[0][0] in ("cod", "herring", "harbour")
    assert len(explained.paths) == 5
    numbers = tagger.classifier_.explain(tagger.vectorize([document]))
    known = {*tagger.vectorizer_.vocabulary_, "(bias)"}
    for path, expected in zip(explained.paths, numbers, strict=True):
        assert [step.node for step in path.steps] == [step.node for step in expected.steps]
        for step, other in zip(path.steps, expected.steps, strict=True):
            assert step.directions == other.directions
            assert 1 <= len(step.words) <= 3 and {word for word, _ in step.words} <= known
            first = other.reasons[0]
            taken = first.contributions[list(other.directions)].mean()
            rest = np.delete(first.contributions, other.directions)
            assert step.words[0][1] == pytest.approx(taken - (rest.mean() if len(rest) else 0))
        for leaf, other in zip(path.leaves, expected.leaves, strict=True):
            assert leaf.rows == other.rows and len(leaf.tags) <= 2
            assert leaf.tags[0] == (tagger.classes_[other.labels[0]], other.shares[0])
    shown = str(explained)
    assert shown.startswith("tags: fish ") and "\nwords: " in shown
    assert re.search(r"^  node 0 -> \d( and \d)*: \S+ [+-]\d\.\d\d", shown, re.M)
    assert re.search(r"^ +leaf \d+ \(\d+ texts\): \w+ [01]\.\d\d", shown, re.M)
    assert shown.count("\ntree ") == 3 and shown.endswith("... and 2 more trees")


def test_explain_an_empty_document(tagger):
    explained = tagger.explain("")
    assert explained.words == [] and "words: none" in str(explained)
    with pytest.raises(ValueError, match="explain takes one document, a str"):
        tagger.explain(["cod"])


# -- real corpora ------------------------------------------------------------------------------


@pytest.mark.long
def test_standard_library_corpus():
    train, test = datasets.load_stdlib_docs().split(0.2, seed=0)
    tagger = TextTagger(LdSMClassifier(n_estimators=5, random_state=0), min_tag_count=2).fit(train)
    assert set(tagger.rare_tags_.values()) == {1} and len(tagger.rare_tags_) > 500
    popular = tagger.classes_[np.argmax(tagger.classifier_.label_counts_)]
    assert tagger.score(test) > np.mean([popular in tags for tags in test.labels]) + 0.15
    # Where a text is from, of hundreds of modules: the most frequent one has 5 % of the texts.
    modules = [tag for tag in tagger.classes_ if tag.startswith("module:")]
    best = tagger.predict(test, k=1, only=modules)
    right = [pairs[0][0] in tags for pairs, tags in zip(best, test.labels, strict=True) if pairs]
    assert np.sum(right) / len(test) > 0.4


def test_eurlex_from_file_to_tags(benchmark_data, tmp_path):
    path = benchmark_data / "eurlex57k_{}.jsonl.gz"
    # The files are ordered, and their beginnings far easier than the rest: take rows throughout.
    train = islice(datasets.iter_jsonl(str(path).format("train")), 0, None, 12)
    tagger = TextTagger(LdSMClassifier(n_estimators=6, random_state=0, n_jobs=2)).fit(train)
    held_out = list(islice(datasets.iter_jsonl(str(path).format("dev")), 0, None, 12))
    assert tagger.score(held_out) > 0.7
    tagger.save(tmp_path / "eurlex.ldsm")
    documents = [document for document, _ in held_out[:50]]
    assert ldsm.load(tmp_path / "eurlex.ldsm").predict(documents) == tagger.predict(documents)
