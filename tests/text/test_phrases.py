"""Phrases: names as a whole, which texts have if their words stand side by side."""

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ldsm import _core
from ldsm._arrays.texts import are_phrases, packed, phrases_of
from ldsm._matching.evidence import long_runs
from ldsm._matching.names import name_index
from ldsm._storage.strings import Strings
from ldsm.text import default_vectorizer
from ldsm.text.counts import sub_words
from ldsm.text.counts.sub_words import shown
from ldsm.text.features import learn_features

WORD = re.compile(r"\b\w\w+\b")
NAMES = ["herring fisheries", "fishery", "trade in cod", "cod", "ab", "!", "one " * 9]


def stems(text):
    return [word[:6] for word in WORD.findall(text.lower())]


def naive_counts(text, names, head_words=30, more_times=2):
    """How often a text has each phrase; the first words of longer texts count three times."""
    words = stems(text)
    parts = [(1, words)] + [(more_times, words[:head_words])] * (len(words) > head_words)
    found = {}
    for name in names:
        own = stems(name)
        count = sum(
            times * sum(part[i : i + len(own)] == own for i in range(len(part)))
            for times, part in parts
        )
        if 0 < len(own) <= 8 and count:
            found["=" + " ".join(own)] = count
    return found


def some_texts(n=400, seed=0):
    """One in sixteen has words of names: what is in many texts is no sub-word."""
    rng = np.random.default_rng(seed)
    named = ["herring", "herrings", "fishery", "fisheries", "trade", "in", "cod", "ab"]
    texts = []
    for i in range(n):
        words = ["".join(rng.choice(list("uvwxyz"), 7)) for _ in range(rng.integers(1, 80))]
        if i % 16 == 0:
            words[: len(words) // 2] = rng.choice(named, rng.integers(1, 60)).tolist()
            words[-1:-1] = ["trade", "in", "cod"]
        texts.append(" ".join(words))
    return texts


@pytest.fixture(autouse=True)
def long_texts(monkeypatch):
    monkeypatch.setattr(sub_words, "MOST_PER_TEXT", 1)


def learned(texts, names):
    return learn_features(
        default_vectorizer(), texts, 1, with_parts=lambda n: True, label_names=lambda: names
    )


def test_counts_equal_the_definition_in_training_and_later():
    texts = some_texts()
    X, features = learned(texts, NAMES)
    words = list(features.sub_words.words)
    phrases = [i for i, word in enumerate(words) if word.startswith("=")]
    assert {words[i] for i in phrases} == {"=herrin fisher", "=fisher", "=trade in cod", "=cod",
                                           "=ab"}  # fmt: skip
    assert phrases == list(range(len(words) - len(phrases), len(words)))  # last
    counts = features.counts(texts)["sub_words"].matrix()
    for row, text in enumerate(texts):
        found = {words[i]: counts[row, i] for i in phrases if counts[row, i]}
        assert found == naive_counts(text, NAMES)
    again = features.blocks(texts).arrays["sub_words"]
    mine = X.arrays["sub_words"]
    assert np.array_equal(mine.indptr, again.indptr)
    assert np.array_equal(mine.indices, again.indices)
    assert np.array_equal(mine.values, again.values)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sampled_from(["ab", "abcdefg", "abcdefh", "ändern", "änderung"]), max_size=12),
    st.lists(
        st.lists(st.sampled_from(["ab", "abcdefx", "ändern"]), min_size=1, max_size=9), max_size=5
    ),
)
def test_core_equals_the_naive_twin(words, names):
    names = [" ".join(name) for name in names]
    known = sorted({phrase for phrase in phrases_of([name.encode() for name in names]) if phrase})
    of_words = [word.encode() for word in sorted(set(words))]
    sequence = np.array([sorted(set(words)).index(word) for word in words], np.int32)
    offsets = np.array([0, len(sequence)])
    indptr, columns, counts = _core.count_phrases(
        offsets, sequence, *packed(of_words), *packed(known)
    )
    found = {known[i].decode(): c for i, c in zip(columns, counts, strict=True)}
    assert indptr.tolist() == [0, len(columns)]
    assert found == naive_counts(" ".join(words), names)


def test_a_name_is_matched_fully_only_side_by_side():
    texts = some_texts()
    _, features = learned(texts, NAMES)
    labels = ["herring fisheries", "trade in cod", "cod fisheries of cod"]
    index = name_index(labels, features.sub_words)

    def coverage(text, label):
        match = index.best_match(features.blocks([text]).read_by("names"), label)
        return 0.0 if match is None else match[1]

    assert coverage("the herring fisheries", 0) == pytest.approx(1)
    assert 0.75 < coverage("fisheries and herring", 0) < 0.85
    assert 0.75 < coverage("cod in trade", 1) < 0.85
    # A name that is no known phrase counts as one that is not found.
    assert 0.75 < coverage("cod fisheries of cod", 2) < 0.85


def test_phrases_are_no_runs_of_characters():
    words = Strings.pack(["abcde", "=abcd", " abcd", "=künst intell", ""])
    assert are_phrases(words.data, words.offsets).tolist() == [False, True, False, True, False]
    assert long_runs(words).tolist() == [1, 0, 1, 0, 0]
    assert shown(["=künst intell", "fish"]) == ["'künst intell'", "-fish-"]
    assert phrases_of([b"", b"x", b"ab cd", b"ab " * 9]) == [b"", b"", b"=ab cd", b""]


def test_invalid_phrase_arguments():
    words = packed([b"cod"])
    for wrong in (-1, 1):
        with pytest.raises(ValueError, match=f"no word {wrong}"):
            _core.count_phrases(np.array([0, 1]), np.array([wrong], np.int32), *words, *words)
    with pytest.raises(ValueError, match="offsets"):
        _core.count_phrases(np.array([0, 2]), np.array([0], np.int32), *words, *words)
