"""Words counted by the core, against scikit-learn's vectorizer: the same to the last bit."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import ldsm
from ldsm import LdSMClassifier, TextTagger, _core
from ldsm._arrays.texts import word_characters
from ldsm._execution.executor import ThreadExecutor
from ldsm._execution.memory import is_mapped
from ldsm._features.blocks import Blocks
from ldsm._storage.container import write
from ldsm.datasets import Strings
from ldsm.text import default_vectorizer
from ldsm.text.counts.learned_words import (
    BIGRAMS_PER_WORD,
    LEAST_TEXTS,
    MOST_SHARE,
    learn_words,
)
from ldsm.text.counts.words import (
    HEAD_MORE_TIMES,
    HEAD_WORDS,
    are_plain_words,
)
from ldsm.text.features import learn_features
from saved_states import tagger_state
from text_corpus import make_corpus

CORPUS = [
    "The quota for cod, the QUOTA for herring: 12 t",
    "import of beef_and_pork; re-import of veal",
    "Überfischung der Nordsee – İstanbul ŒUVRE ǅ ΑΣ",  # lower case changes lengths
    "漁業 規則 и рыба и рыба",
    "a b c 1 2",
    "",
    "x\ud800y lone\udfffones kept",
    "𝒳𝒴 mathematical 𐐀𐐁 deseret 😀 herring",
    "don't can't e-mail _under_ __ a_ _",
    "½ ²³ Ⅷ१२ ᧚᧚ words",
    "cod herring cod herring cod",
] * 2


def same(a, b):
    if isinstance(a, Blocks):
        a, b = a.joined().matrix(), b.astype(np.float32)
    assert a.shape == b.shape and a.dtype == b.dtype
    a, b = a.tocsr(), b.tocsr()
    a.sort_indices(), b.sort_indices()
    assert np.array_equal(a.indptr, b.indptr)
    assert np.array_equal(a.indices, b.indices) and np.array_equal(a.data, b.data)


VECTORIZERS = [
    default_vectorizer(),
    default_vectorizer(min_df=1, dtype=np.float64),
    default_vectorizer(min_df=0.2, max_df=0.9),
    default_vectorizer(min_df=1, stop_words="english"),
    default_vectorizer(min_df=1, stop_words=["cod", "рыба"]),
    default_vectorizer(min_df=1, lowercase=False),
    default_vectorizer(min_df=1, binary=True, norm="l1"),
    default_vectorizer(min_df=1, use_idf=False, sublinear_tf=False, norm=None),
    default_vectorizer(min_df=1, smooth_idf=False),
    default_vectorizer(min_df=1, max_features=8),  # a tie at the cut would be broken otherwise
]


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=range(len(VECTORIZERS)))
@pytest.mark.parametrize(("n_jobs", "memory_limit"), [(1, None), (3, None), (2, 1 << 20)])
def test_features_are_those_of_scikit_learn(vectorizer, n_jobs, memory_limit, monkeypatch):
    monkeypatch.setattr("ldsm.text.counts.learned_words._CHUNK_BYTES", 100)
    monkeypatch.setattr("ldsm.text.counts.learned_words._CHUNK_WORDS", 20)
    assert are_plain_words(vectorizer)
    X, features = learn_features(vectorizer, iter(CORPUS), n_jobs, memory_limit=memory_limit)
    expected = vectorizer.fit_transform(CORPUS)
    same(X, expected)
    assert list(features.words) == vectorizer.get_feature_names_out().tolist()
    if vectorizer.use_idf:
        assert np.array_equal(features.idf, vectorizer.idf_)
        assert features.idf.dtype == vectorizer.idf_.dtype
    new = [*CORPUS[::-1], "cod unknown words", "😀"]
    same(features.blocks(new), vectorizer.transform(new))
    same(features.vectorizer.transform(new), vectorizer.transform(new))


def test_unsupported_settings_use_scikit_learn():
    for changes in (
        {"ngram_range": (1, 2)},
        {"analyzer": "char_wb"},
        {"token_pattern": r"(?u)\b\w+\b"},
        {"strip_accents": "unicode"},
        {"tokenizer": str.split, "token_pattern": None},
        {"preprocessor": str.upper},
        {"vocabulary": ["cod", "herring"]},
    ):
        vectorizer = default_vectorizer(**{"min_df": 1, **changes})
        X, features = learn_features(vectorizer, CORPUS, 1)
        same(X, TfidfVectorizer(**vectorizer.get_params()).fit_transform(CORPUS))
        same(features.blocks(CORPUS), vectorizer.transform(CORPUS))
    for wrong in ({"min_df": -1}, {"max_df": "a"}, {"min_df": 3, "max_df": 2}):
        with pytest.raises(ValueError, match="df"):
            learn_features(default_vectorizer(**wrong), CORPUS, 1)


TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab_ .-1é"),
        st.characters(exclude_categories=()),  # surrogates, too
    ),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=5), st.booleans())
def test_words_match_pattern(texts, lowercase):
    counter = CountVectorizer(lowercase=lowercase)
    tokens = counter.build_analyzer()
    learned = learn_words(texts, lowercase=lowercase, executor=ThreadExecutor(1))
    words = [word.decode("utf-8") for word in learned.words]
    for row, text in enumerate(texts):
        found: dict[str, int] = {}
        for token in tokens(text):
            found[token] = found.get(token, 0) + 1
        counts = learned.texts.counts_of(row, row + 1)
        names = [words[i] for i in counts.indices]
        assert dict(zip(names, counts.data.tolist(), strict=True)) == found
        assert names == list(found)  # in the order of their first occurrence


def test_word_characters_are_pythons():
    table = word_characters(np.array([0xF0], np.uint8))
    assert len(table) == sys.maxunicode + 1
    import re

    word = re.compile(r"\w")
    for start in range(0, len(table), 4096):
        block = range(start, min(start + 4096, len(table)))
        expected = [word.match(chr(i)) is not None for i in block]
        assert table[block.start : block.stop].astype(bool).tolist() == expected
    assert np.array_equal(word_characters(np.zeros(0, np.uint8)), table[:0x10000])


def test_many_words_grow_the_tables():
    texts = [" ".join(f"w{(i * 7919 + j) % 50_000:05}" for j in range(500)) for i in range(200)]
    X, features = learn_features(default_vectorizer(min_df=1), texts, 2)
    same(X, default_vectorizer(min_df=1).fit_transform(texts))
    same(features.blocks(texts[:5]), X.rows(0, 5).joined().matrix())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_safe(data):
    """Broken UTF-8 ends words and is never read beyond."""
    text, offsets = np.frombuffer(data, np.uint8), np.array([0, len(data)], np.int64)
    table = word_characters(np.array([0xF0], np.uint8))
    indptr, words, _, found, found_offsets, *sequence = _core.count_words(text, offsets, table)
    assert sequence[0].tolist() == [0, len(sequence[1])] and set(sequence[1]) == set(words)
    assert indptr.tolist() == [0, len(words)] and len(found_offsets) == len(set(words)) + 1
    for word in Strings(found, found_offsets):
        assert len(word) >= 2


def test_invalid_core_arguments():
    words, none = Strings.pack(["cod", "herring"]), Strings.pack([])
    text, offsets = np.frombuffer(b"cod", np.uint8), np.array([0, 3], np.int64)
    characters = word_characters(text)

    def finder(words=words, bigrams=(), sub_words=none):
        keys = np.array(bigrams, np.uint64)
        return _core.WordFinder(words.data, words.offsets, keys, sub_words.data, sub_words.offsets)

    (_, found, _), *_ = finder().count(text, offsets, characters)
    assert found.tolist() == [0]
    with pytest.raises(ValueError, match="offsets of the texts"):
        finder().count(text, np.array([0, 4], np.int64), characters)
    with pytest.raises(ValueError, match="offsets of the words"):
        finder(Strings(words.data, offsets))
    with pytest.raises(ValueError, match="offsets of the sub-words"):
        finder(sub_words=Strings(text, offsets + 1))
    with pytest.raises(ValueError, match="ascend"):
        finder(bigrams=[2, 1])
    with pytest.raises(ValueError, match="offsets"):
        _core.spell_words(text, np.array([0, 4], np.int64))
    with pytest.raises(ValueError, match="ascend"):
        _core.count_bigrams(offsets, np.zeros(3, np.int32), np.array([1, 1], np.uint64))
    with pytest.raises(ValueError, match="offsets"):
        _core.find_bigrams(offsets, np.zeros(2, np.int32), np.zeros(1, np.int32), 1, 0, 1)
    for wrong in (-1, 1):
        words = np.array([0, 0, wrong], np.int32)
        with pytest.raises(ValueError, match=f"no column of word {wrong}"):
            _core.find_bigrams(offsets, words, np.zeros(1, np.int32), 1, 0, 1)
    with pytest.raises(ValueError, match="first column must be 0 or more. Got -1"):
        _core.find_bigrams(offsets, np.zeros(3, np.int32), np.zeros(1, np.int32), 1, -1, 1)
    with pytest.raises(ValueError, match="characters"):
        _core.count_words(text, offsets, np.zeros(0x110001, np.uint8))


def test_plain_words_fingerprint(monkeypatch):
    texts = [f"{text} {i % 7}th" for i, text in enumerate(CORPUS * 3)]
    tags = [[f"t{i % 3}"] for i in range(len(texts))]
    fast = TextTagger(LdSMClassifier(2)).fit(texts, tags)
    monkeypatch.setattr("ldsm.text.features.are_plain_words", lambda vectorizer: False)
    slow = TextTagger(LdSMClassifier(2)).fit(texts, tags)
    assert fast.fingerprint_ == slow.fingerprint_
    assert fast.predict(CORPUS) == slow.predict(CORPUS)
    assert isinstance(fast.vectorizer_, TfidfVectorizer)


# -- bigrams --------------------------------------------------------------------------------------


def bigrams_by_hand(texts, words):
    """For each text, how often two known words follow each other."""
    tokens, counts = CountVectorizer().build_analyzer(), []
    for text in texts:
        found: dict[str, int] = {}
        for a, b in pairwise(tokens(text)):
            if a in words and b in words:
                found[f"{a} {b}"] = found.get(f"{a} {b}", 0) + 1
        counts.append(found)
    return counts


def long_corpus(n_texts=300, length=25):
    rng = np.random.default_rng(0)
    words = [f"w{i:02}" for i in range(40)]
    return [" ".join(rng.choice(words, size=length)) + f" only{i}" for i in range(n_texts)]


def test_bigrams_are_frequent_but_specific():
    texts = long_corpus()
    X, features = learn_features(default_vectorizer(), texts, 2, with_parts=lambda n: n == 300)
    words = list(features.words)
    assert "only1" not in words  # of one text
    behind = len(words) + len(features.bigrams.first)
    assert X.n_features == behind + len(features.sub_words.idf) == len(features.names)
    by_hand = bigrams_by_hand(texts, set(words))
    in_texts: dict[str, int] = {}
    for found in by_hand:
        for bigram in found:
            in_texts[bigram] = in_texts.get(bigram, 0) + 1
    most_texts = MOST_SHARE * len(texts)
    able = {bigram: n for bigram, n in in_texts.items() if LEAST_TEXTS <= n <= most_texts}
    most = BIGRAMS_PER_WORD * len(words)
    assert len(able) > most
    chosen = sorted(able, key=lambda bigram: (-able[bigram], bigram))[:most]
    names = features.names[len(words) : behind]
    assert names == sorted(chosen)
    # Each block is scaled by itself; the numbers are those of scikit-learn's vectorizer of bigrams.
    of_bigrams = default_vectorizer(min_df=1, ngram_range=(2, 2), vocabulary=names)
    expected = of_bigrams.fit_transform(texts)
    assert np.array_equal(of_bigrams.idf_, features.bigrams.idf)
    same(X.arrays["bigrams"].matrix(), expected)
    same(X.main.matrix(), default_vectorizer().fit_transform(texts))


def test_same_features_within_a_memory_limit(monkeypatch):
    """Features in files, and bigrams found by ranges of their first word."""
    texts, _ = make_corpus(400)
    made = []
    for memory_limit in (None, 1 << 10):
        monkeypatch.setattr("ldsm.text.counts.learned_words._CHUNK_WORDS", 100)
        X, features = learn_features(
            default_vectorizer(),
            texts,
            2,
            with_parts=lambda n: True,
            label_names=lambda: ["cod", "beef"],
            memory_limit=memory_limit,
        )
        made.append((X, features))
        monkeypatch.undo()
    (X, features), (limited, others) = made
    assert [*map(str, features.hashed())] == [*map(str, others.hashed())]
    assert set(X.arrays) == set(limited.arrays) and X.layout == limited.layout
    for name, block in X.arrays.items():
        same(block.matrix(), limited.arrays[name].matrix())
        assert is_mapped(limited.arrays[name].values) and not is_mapped(block.values)


def test_bigrams_of_new_texts():
    texts = long_corpus()
    X, features = learn_features(default_vectorizer(), texts, 1, with_parts=lambda n: True)
    same(features.blocks(texts), X.joined().matrix())
    new = ["w01 unknown w02", "", texts[0] + " " + texts[1], "w01"]
    blocks = features.blocks(new)
    found = blocks.joined().matrix()
    names = np.array(features.names)
    by_hand = bigrams_by_hand(new, set(features.words))
    for row in range(len(new)):
        listed = names[found[[row]].indices]
        listed = {name for name in listed if " " in name}
        assert listed == by_hand[row].keys() & set(features.names)
    bigrams = blocks.arrays["bigrams"].matrix()
    lengths = np.sqrt(bigrams.multiply(bigrams).sum(axis=1))
    assert lengths[2] == pytest.approx(1)


def test_leading_words_count_more():
    texts = [*long_corpus(length=60), "w01 w02 w01", " ".join(["w03"] * HEAD_WORDS)]
    X, features = learn_features(default_vectorizer(), texts, 1, with_parts=lambda n: True)
    assert features.head_words == HEAD_WORDS
    same(features.blocks(texts), X.joined().matrix())
    tokens = [text.split() for text in texts]
    more = [
        " ".join(some[:HEAD_WORDS] * HEAD_MORE_TIMES + some) if len(some) > HEAD_WORDS else text
        for some, text in zip(tokens, texts, strict=True)
    ]
    n_words = len(features.words)
    same(X.main.matrix(), default_vectorizer().fit_transform(more))
    # Bigrams and sub-words count more, too, but words that were apart are not joined.
    one, other = features.names[n_words : n_words + 2]
    counted = features.blocks([f"{one} {'unknown ' * 40} {other}"]).joined().matrix()
    weights = {features.names[i]: counted[0, i] for i in counted.indices.tolist()}
    ratio = (1 + np.log(1 + HEAD_MORE_TIMES)) * features.bigrams.idf[0] / features.bigrams.idf[1]
    assert weights[one] / weights[other] == pytest.approx(ratio, rel=1e-5)
    plain = learn_features(default_vectorizer(), texts, 1)[1]
    assert plain.head_words == 0
    same(plain.blocks(texts), default_vectorizer().fit_transform(texts))


def ordered_corpus(n_texts=1500):
    """Which of two words comes first tells the tag, and nothing else does."""
    rng = np.random.default_rng(1)
    texts, tags = [], []
    for _ in range(n_texts):
        couple = rng.integers(15)
        first, second = rng.permutation(["left", "right"])
        noise = rng.choice([f"n{i:02}" for i in range(60)], size=6)
        texts.append(" ".join([*noise[:3], f"{first}{couple}", f"{second}{couple}", *noise[3:]]))
        tags.append([f"{first} first"])
    return texts, tags


def test_bigrams_rank_but_do_not_match(tmp_path):
    texts, tags = ordered_corpus()
    known, new, new_tags = texts[:1200], texts[1200:], tags[1200:]
    tagger = TextTagger(LdSMClassifier(5)).fit(known, tags[:1200])
    model = tagger.classifier_.model_
    assert model.forest.n_features == len(tagger.features_.words) < model.n_features
    words_only = TextTagger(LdSMClassifier(5), default_vectorizer()).fit(known, tags[:1200])
    assert words_only.features_.bigrams is None
    assert tagger.score(new, new_tags) > 0.9 > 0.7 > words_only.score(new, new_tags)
    tagger.save(tmp_path / "m.ldsm")
    again = ldsm.load(tmp_path / "m.ldsm")
    assert again.fingerprint_ == tagger.fingerprint_
    assert again.predict(new) == tagger.predict(new)
    # What counts for a tag adds up to its margin, and is explained in words.
    X = again.vectorize(new[:1])
    best = again.classifier_.explain_scores(X, 1, 10**6)[0]
    parts = sum(part for _, part in best.reasons) + best.bias
    assert parts == pytest.approx(best.margin, abs=1e-3)
    strongest = again.explain(new[0]).scores[0].words[0][0]
    assert strongest in new[0] and " " in strongest
    # Trees that answer alone do without bigrams.
    for alone in (LdSMClassifier(2, rerank=None), LdSMClassifier(2, rerank="tail")):
        assert TextTagger(alone).fit(known, tags[:1200]).features_.bigrams is None
    assert TextTagger(LdSMClassifier(2)).fit(known[:300], tags[:300]).features_.bigrams is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pairs.first", lambda a: a + 1_000_000),
        ("pairs.second", lambda a: a[:-1]),
        ("pairs.first", lambda a: a[::-1].copy()),
        ("pairs.idf", lambda a: np.full_like(a, np.nan)),
        ("pairs.idf", lambda a: a.astype(np.float64)),
        ("pairs.second", lambda a: -a - 1),
    ],
)
def test_crafted_bigrams_are_refused(tmp_path, name, change):
    texts = long_corpus(600)
    tagger = TextTagger(LdSMClassifier(2)).fit(texts, [["a"], ["b"], ["a", "b"]] * 200)
    assert tagger.features_.bigrams is not None
    header, arrays = tagger_state(tagger)
    arrays[name] = change(np.array(arrays[name]))
    write(tmp_path / "bad.ldsm", {"kind": "TextTagger", **header}, arrays)
    with pytest.raises(ValueError, match="cannot be loaded: .*(bigrams|pairs)"):
        ldsm.load(tmp_path / "bad.ldsm")
