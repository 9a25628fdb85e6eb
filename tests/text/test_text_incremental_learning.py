"""Taggers that learn from new documents: words, idf, tags and their names."""

import copy
from functools import cache

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

import ldsm
from ldsm import LdSMClassifier, TextTagger
from ldsm.text import default_vectorizer, learning
from patience import meanwhile
from text_corpus import titles

TEXTS, TAGS = titles(1600)
FIRST, REST = slice(0, 1000), slice(1000, 1600)
NEW, NEW_TAGS = titles(150, seed=3)
# Words that no document of the first fit has, and a tag that goes with them.
ZEBRAS = [f"zebra stripes {text}" for text in NEW[:40]]
MORE_ZEBRAS = [f"zebra stripes {text}" for text in NEW[40:80]]


@cache
def fitted(n=1000, **options):
    return TextTagger(LdSMClassifier(5), **options).fit(TEXTS[:n], TAGS[:n])


def precision(tagger, texts=NEW, tags=NEW_TAGS, k=3):
    best = tagger.predict(texts, k)
    hits = [len({tag for tag, _ in row} & set(true)) for row, true in zip(best, tags, strict=True)]
    return np.sum(hits) / (k * len(hits))


def share_found(tagger, tag, texts, k=5):
    return np.mean([tag in [name for name, _ in best] for best in tagger.predict(texts, k)])


def test_updates_approach_full_fit():
    grown = copy.deepcopy(fitted()).partial_fit(TEXTS[REST], TAGS[REST])
    small, whole = precision(fitted()), precision(fitted(1600))
    assert precision(grown) >= min(small, whole) - 0.01
    assert grown.classifier_.training_["rows"] == 1600


def test_first_partial_fit_fits():
    first = TextTagger(LdSMClassifier(5)).partial_fit(TEXTS[FIRST], TAGS[FIRST])
    assert first.fingerprint_ == fitted().fingerprint_


def test_new_words_are_appended():
    tagger = copy.deepcopy(fitted())
    before = tagger.features_.names
    tagger.partial_fit(ZEBRAS, [["zoo"]] * 40)
    n_words = len(fitted().features_.words)
    new = set(tagger.features_.words) - set(before)
    assert {"zebra", "stripes"} <= new
    after = tagger.features_.names
    assert after[:n_words] == before[:n_words]
    assert set(after[n_words : n_words + len(new)]) == new
    assert after[n_words + len(new) :] == before[n_words:]
    model = tagger.classifier_.model_
    assert model.forest.n_features == n_words  # trees do not know them
    assert model.n_features == len(after) == len(before) + len(new)
    # What was known scores as it did, with room for more; and the words are of use.
    assert share_found(tagger, "zoo", MORE_ZEBRAS) > 0.8
    assert share_found(tagger, "zoo", NEW[40:80], k=2) < 0.1
    assert precision(tagger) > precision(fitted()) - 0.02
    words = tagger.explain("a zebra", max_words=3)
    assert "zebra" in str(words)


def test_single_document_words_ignored():
    tagger = copy.deepcopy(fitted()).partial_fit(["an okapi"], [TAGS[0]])
    assert tagger.features_.names == fitted().features_.names
    assert tagger.classifier_.training_["history"][0]["learned"] == 1


def test_word_limit(monkeypatch):
    monkeypatch.setattr(learning, "MOST_WORDS", 1.02)
    n_words = len(fitted().features_.words)
    texts = [f"{text} unheard{i % 40} of{i % 40}" for i, text in enumerate(TEXTS[FIRST])]
    tagger = copy.deepcopy(fitted()).partial_fit(texts, TAGS[FIRST])
    assert n_words < len(tagger.features_.words) == int(1.02 * n_words)
    again = copy.deepcopy(tagger).partial_fit([f"x{text}x" for text in texts], TAGS[FIRST])
    assert again.features_.words == tagger.features_.words


@pytest.mark.parametrize("smooth", [True, False])
def test_idf_covers_all_documents(smooth):
    vectorizer = default_vectorizer(smooth_idf=smooth)
    tagger = TextTagger(LdSMClassifier(5), vectorizer).fit(TEXTS[FIRST], TAGS[FIRST])
    tagger.partial_fit(TEXTS[REST], TAGS[REST])
    whole = default_vectorizer(smooth_idf=smooth, min_df=1).fit(TEXTS)
    words = tagger.vectorizer_.get_feature_names_out().tolist()
    expected = [whole.idf_[whole.vocabulary_[word]] for word in words]
    known = len(fitted().features_.words)
    assert np.allclose(tagger.vectorizer_.idf_[:known], expected[:known], rtol=1e-5)
    # A word that was too rare before is counted from here on.
    assert np.all(tagger.vectorizer_.idf_[known:] >= np.array(expected[known:]) - 1e-5)


def test_idf_of_bigrams_and_sub_words():
    tagger = copy.deepcopy(fitted()).partial_fit(TEXTS[REST], TAGS[REST])
    before, after = fitted().features_, tagger.features_
    assert before.bigrams is not None and before.sub_words is not None
    for block, part in (("bigrams", after.bigrams), ("sub_words", after.sub_words)):
        counts = before.counts(TEXTS)[block]
        rows = np.bincount(counts.indices, minlength=counts.shape[1])
        assert np.allclose(part.idf, np.log(1601 / (1 + rows)) + 1, rtol=1e-5)


@pytest.mark.parametrize(
    "vectorizer",
    [
        default_vectorizer(ngram_range=(1, 2)),
        default_vectorizer(use_idf=False),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=2),
        default_vectorizer(tokenizer=str.split, token_pattern=None),
    ],
    ids=["bigrams", "no idf", "characters", "a function"],
)
def test_other_vectorizers_learn_words_too(vectorizer, tmp_path):
    tagger = TextTagger(LdSMClassifier(5), vectorizer).fit(TEXTS[FIRST], TAGS[FIRST])
    n_before = len(tagger.features_.names)
    tagger.partial_fit(ZEBRAS, [["zoo"]] * 40).partial_fit(ZEBRAS, [["zoo"]] * 40)
    assert len(tagger.features_.names) == tagger.classifier_.n_features_in_ > n_before
    found = share_found(tagger, "zoo", MORE_ZEBRAS)
    assert found > 0.3 and found > share_found(tagger, "zoo", NEW[40:80])
    if vectorizer.tokenizer is None:
        tagger.save(tmp_path / "m.ldsm")
        again = ldsm.load(tmp_path / "m.ldsm")
        assert again.fingerprint_ == tagger.fingerprint_
        again.partial_fit(["quagga stripes"] * 5, [["zoo"]] * 5)
        assert len(again.features_.names) > len(tagger.features_.names)


def test_given_vocabulary_stays():
    words = default_vectorizer().fit(TEXTS[FIRST]).get_feature_names_out().tolist()
    tagger = TextTagger(LdSMClassifier(5), default_vectorizer(vocabulary=words))
    tagger.fit(TEXTS[FIRST], TAGS[FIRST]).partial_fit(ZEBRAS, [["zoo"]] * 40)
    assert tagger.features_.names == words


def test_rare_tags_wait():
    tagger = TextTagger(LdSMClassifier(5), min_tag_count=3).fit(
        TEXTS[FIRST], [[*tags, "rare"] if i < 2 else tags for i, tags in enumerate(TAGS[FIRST])]
    )
    assert tagger.rare_tags_["rare"] == 2
    tagger.partial_fit(TEXTS[:2], [["rarer"], ["rarer"]])
    assert tagger.rare_tags_["rarer"] == 2 and "rarer" not in tagger.classes_
    tagger.partial_fit(TEXTS[:1], [["rare"]])
    assert "rare" in tagger.classes_ and "rare" not in tagger.rare_tags_
    assert tagger.classifier_.label_counts_[tagger.classes_.tolist().index("rare")] == 1


def test_new_tags_match_by_name():
    first = with_names()
    tagger = copy.deepcopy(first)
    assert tagger.classifier_.second_stage_.names is not None
    tagger.partial_fit(ZEBRAS, [["zebra stripes"]] * 40)
    names = tagger.classifier_.second_stage_.names
    place = tagger.classes_.tolist().index("zebra stripes")
    assert names.norms[names.owners == place].min() > 0
    assert len(names.matched) == len(tagger.classes_)
    assert names.matched.sum() >= first.classifier_.second_stage_.names.matched.sum()


def test_updates_round_trip(tmp_path):
    tagger = copy.deepcopy(fitted()).partial_fit(ZEBRAS, [["zoo"]] * 40)
    tagger.save(tmp_path / "m.ldsm")
    again = ldsm.load(tmp_path / "m.ldsm")
    assert again.fingerprint_ == tagger.fingerprint_
    assert again.predict(NEW) == tagger.predict(NEW)
    more = (TEXTS[REST], TAGS[REST])
    assert again.partial_fit(*more).fingerprint_ == tagger.partial_fit(*more).fingerprint_


def test_n_jobs_does_not_matter():
    one, two = (copy.deepcopy(fitted()).partial_fit(TEXTS[REST], TAGS[REST]) for _ in range(2))
    parallel = copy.deepcopy(fitted())
    parallel.classifier_.set_params(n_jobs=2)
    parallel.partial_fit(TEXTS[REST], TAGS[REST])
    assert one.fingerprint_ == two.fingerprint_ == parallel.fingerprint_


def top_scores(tagger):
    return np.array([best[0][1] for best in tagger.predict(NEW, 1) if best])


def test_single_document_update_is_local():
    """Not even if it is the first to match a tag's name."""
    tag = str(fitted().classes_[0])
    tagger = copy.deepcopy(fitted()).partial_fit([tag], [[tag]])
    assert top_scores(tagger).mean() == pytest.approx(top_scores(fitted()).mean(), abs=0.02)


def test_new_tags_need_texts():
    named = copy.deepcopy(with_names())
    classifier = copy.deepcopy(named.classifier_)
    with pytest.raises(ValueError, match="partial_fit of the TextTagger"):
        classifier.partial_fit(named.vectorize(TEXTS[:9]), [["brand new"]] * 9)
    classifier.partial_fit(named.vectorize(TEXTS[:9]), TAGS[:9])  # no new ones


@cache
def with_names():
    names = [*{tag for tags in TAGS for tag in tags}, "a new one"]
    return TextTagger(LdSMClassifier(5)).fit(TEXTS[FIRST], TAGS[FIRST], vocabulary=names)


def test_pipeline():
    pipeline = Pipeline([("tags", TextTagger(LdSMClassifier(2)))]).fit(TEXTS[:300], TAGS[:300])
    assert len(pipeline.predict(NEW[:2])) == 2


def test_word_in_all_documents():
    vectorizer = default_vectorizer(max_df=0.5)
    tagger = TextTagger(LdSMClassifier(3), vectorizer).fit(TEXTS[FIRST], TAGS[FIRST])
    tagger.partial_fit(ZEBRAS, [["zoo"]] * 40)
    assert "zebra" in tagger.features_.names


def test_single_document_centroid_dropped():
    tags = [[*own, "solo"] if i == 0 else own for i, own in enumerate(TAGS[FIRST])]
    tagger = TextTagger(LdSMClassifier(3, rerank="tail"), min_tag_count=2).fit(TEXTS[FIRST], tags)
    tagger.partial_fit([TEXTS[1100]], [["solo"]])
    place = tagger.classes_.tolist().index("solo")
    assert len(tagger.classifier_.second_stage_.centroids.vector(place)[0]) == 0


def test_concurrent_changes_are_reported(monkeypatch):
    tagger = copy.deepcopy(fitted())

    def meanwhile(*arguments, **options):
        new = learning.learned_text(*arguments, **options)
        tagger.tune_threshold(TEXTS[REST], TAGS[REST])  # another thread
        return new

    monkeypatch.setattr(ldsm.text.tagger, "learned_text", meanwhile)
    with pytest.raises(RuntimeError, match="changed by another thread"):
        tagger.partial_fit(TEXTS[REST], TAGS[REST])
    assert tagger.classifier_.threshold_ != 0.5 and "history" not in tagger.classifier_.training_


@pytest.mark.parametrize(
    ("texts", "tags", "message"),
    [
        ([], [], "at least one document"),
        (["a"], [[3]], "must be str. Got 3"),
        ([3], [["a"]], "Document 0 must be a str"),
        (["a", "b"], [["a"]], "same length"),
        (["a"], ["x"], "must be a list of str"),
    ],
)
def test_bad_documents_change_nothing(texts, tags, message):
    tagger = copy.deepcopy(fitted())
    with pytest.raises(ValueError, match=message):
        tagger.partial_fit(texts, tags)
    assert tagger.fingerprint_ == fitted().fingerprint_


def test_documents_without_tags():
    tagger = copy.deepcopy(fitted()).partial_fit(["nothing to say", "zebra"], [[], []])
    assert tagger.classifier_.training_["rows"] == 1002
    assert tagger.classes_.tolist() == fitted().classes_.tolist()


def test_readers_see_consistent_words_and_trees():
    tagger = copy.deepcopy(fitted())
    errors = []

    def ask():
        try:
            tagger.predict(NEW[:10])
            tagger.explain(NEW[0])
            tagger.predict_proba(NEW[:10])
        except Exception as error:
            errors.append(error)

    with meanwhile(ask, 2):
        for i in range(6):  # new words, and another number of tags, each time
            tagger.partial_fit([f"zebra{i} stripes"] * 3, [[f"zoo{i}"]] * 3)
        tagger.drop_labels(["zoo0"])
    assert errors == []
    assert len(tagger.features_.words) >= len(fitted().features_.words) + 6
