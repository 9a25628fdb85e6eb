"""Sub-words as features of texts."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldsm import _core
from ldsm._arrays.texts import packed, unpacked
from ldsm.text import default_vectorizer
from ldsm.text.counts import sub_words
from ldsm.text.counts.sub_words import shown
from ldsm.text.features import learn_features
from text_corpus import titles


def parts_of(word):
    """Runs of 3 and of 5 characters of the word between two blanks."""
    padded, found = f" {word} ", []
    for n in (3, 5):
        runs = [padded[i : i + n] for i in range(len(padded) - n + 1)]
        found += runs if len(padded) > n else [padded]
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=6))
def test_sub_words_are_runs_of_characters(words):
    words = [word for word in words if not any(0xD800 <= ord(c) < 0xE000 for c in word)]
    coded = packed([word.encode() for word in words])
    indptr, numbers, counts, text, offsets = _core.spell_words(*coded)
    names = [part.decode() for part in unpacked(text, offsets)]
    assert len(set(names)) == len(names)
    for i, word in enumerate(words):
        its = slice(*indptr[i : i + 2])
        found = {names[n]: c for n, c in zip(numbers[its], counts[its], strict=True)}
        expected = parts_of(word)
        assert found == {part: expected.count(part) for part in expected}


def test_broken_bytes_are_safe():
    for word in (b"\xff\xfe", b"\xe2\x82", b"\xf0\x9f", b"a\x80b" * 3, bytes(range(256))):
        indptr, numbers, *_ = _core.spell_words(*packed([word]))
        assert indptr.tolist() == [0, len(numbers)]


def learned(texts, names):
    return learn_features(
        default_vectorizer(), texts, 1, with_parts=lambda n: True, label_names=lambda: names
    )


def test_short_texts_use_all_sub_words():
    texts, _ = titles(400)
    X, features = learned(texts, ["zzz"])
    form = features.sub_words
    assert form.indexed
    known = list(form.words)
    assert known == sorted(known, key=str.encode) and " zz" in known
    counts = {}
    for row, text in enumerate(texts):
        for word in text.split():
            for part in parts_of(word):
                counts.setdefault(part, {}).setdefault(row, 0)
                counts[part][row] += 1
    most = dict.fromkeys(counts, 0)  # an upper bound on the texts that have it, by their words
    for text in texts:
        for word in set(text.split()):
            for part in set(parts_of(word)):
                most[part] += 1
    able = {p for p in counts if 3 <= most[p] <= sub_words.MOST_SHARE * len(texts)}
    assert able | set(parts_of("zzz")) == set(known) and len(able) > 30
    # Weights as of words: 1 + log of the count, times idf, each row of unit length.
    dense = np.zeros((len(texts), len(known)))
    for j, part in enumerate(known):
        for row, count in counts.get(part, {}).items():
            dense[row, j] = (1 + np.log(count)) * form.idf[j]
        texts_with = len(counts.get(part, {}))
        assert form.idf[j] == pytest.approx(np.log((1 + len(texts)) / (1 + texts_with)) + 1)
    dense /= np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
    found = X.arrays["sub_words"].matrix().toarray()
    np.testing.assert_allclose(found, dense, rtol=1e-5, atol=1e-7)
    again = features.blocks(texts)
    for mine, its in zip(again.arrays.values(), X.arrays.values(), strict=True):
        assert np.array_equal(mine.values, its.values)
        assert np.array_equal(mine.indices, its.indices)
        assert np.array_equal(mine.indptr, its.indptr)
    copied = pickle.loads(pickle.dumps(features))
    some = again.rows(0, 5).joined().matrix()
    assert (copied.blocks(texts[:5]).joined().matrix() != some).nnz == 0


def test_long_texts_use_name_sub_words(monkeypatch):
    texts, tags = titles(400)
    stem = tags[0][0][:-1]
    monkeypatch.setattr(sub_words, "MOST_PER_TEXT", 1)
    _, features = learned(texts, [stem, "other"])
    assert not features.sub_words.indexed
    parts = {*parts_of(stem), *parts_of("other"), "=other", f"={stem[:6]}"}
    assert parts >= set(features.sub_words.words) >= set(parts_of("other"))
    monkeypatch.setattr(sub_words, "MOST_PER_TEXT", 200)
    monkeypatch.setattr(sub_words, "MOST_IN_ALL", 10)
    assert not learned(texts, [stem])[1].sub_words.indexed


def test_displayed_sub_words():
    assert shown([" fi", "fish", "sh ", " ab "]) == ["fi-", "-fish-", "-sh", "'ab'"]
