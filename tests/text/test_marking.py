"""The places of words in a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldsm.text import default_vectorizer
from ldsm.text.features import TextFeatures
from ldsm.text.marking import marked


def features(**settings):
    vectorizer = default_vectorizer(min_df=1, **settings)
    return TextFeatures.of(vectorizer.fit(["cod quota for cod #tag", "beef import"]))


def weights(text, words, **settings):
    return [(part, round(weight, 6)) for part, weight in marked(features(**settings), text, words)]


def test_words_and_sequences():
    found = weights("Cod quota, cod!", {"cod": 1.0, "cod quota": 0.5})
    assert found == [
        ("Cod", 1.25),
        (" ", 0.0),
        ("quota", 0.25),
        (", ", 0.0),
        ("cod", 1),
        ("!", 0.0),
    ]
    assert weights("", {"cod": 1.0}) == []
    assert weights("beef", {"cod": 1.0}) == [("beef", 0.0)]
    # What lies between the words of a sequence does not matter.
    assert weights("cod,\nquota", {"cod quota": 1.0}) == [
        ("cod", 0.5),
        (",\n", 0.0),
        ("quota", 0.5),
    ]


@pytest.mark.parametrize(
    ("settings", "text", "words", "expected"),
    [
        ({"lowercase": False}, "Cod cod", {"cod": 1}, [("Cod ", 0), ("cod", 1)]),
        ({"strip_accents": "unicode"}, "códs cód", {"cod": 1}, [("códs ", 0), ("cód", 1)]),
        ({"token_pattern": r"(?u)#(\w+)"}, "cod #cod", {"cod": 1}, [("cod #", 0), ("cod", 1)]),
        (
            {"stop_words": ["for"]},
            "quota for cod",
            {"quota cod": 1},
            [("quota", 0.5), (" for ", 0), ("cod", 0.5)],
        ),
        (
            {"analyzer": "char", "ngram_range": (2, 3)},
            "Codex",
            {"cod": 1, "de": 0.5},
            [("Co", 1), ("d", 1.5), ("e", 0.5), ("x", 0)],
        ),
        (
            {"analyzer": "char_wb", "ngram_range": (3, 3)},
            "a cod.",
            {"od ": 1},
            [("a c", 0), ("od.", 1)],
        ),
    ],
)
def test_other_vectorizers(settings, text, words, expected):
    assert weights(text, words, **settings) == expected


def test_functions_of_the_users_mark_nothing():
    assert weights("cod quota", {"cod": 1}, tokenizer=str.split, token_pattern=None) == [
        ("cod quota", 0)
    ]


@given(st.text(), st.dictionaries(st.text(max_size=4), st.floats(-1, 1)))
def test_parts_join_to_text(text, words):
    parts = marked(features(), text, words)
    assert "".join(part.text for part in parts) == text


def test_single_words_are_not_marked_where_only_sequences_count():
    found = weights("cod quota", {"cod": 1.0, "cod quota": 0.5}, ngram_range=(2, 2))
    assert sum(weight for _, weight in found) == pytest.approx(0.5)
