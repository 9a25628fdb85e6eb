"""Counts of words in a checkpoint: a fit resumes from them, other texts replace them."""

import pytest

from ldsm import LdSMClassifier, TextTagger, _core
from ldsm.text.counts import learned_words
from text_corpus import make_corpus

TEXTS, TAGS = make_corpus(600)


def fitted(texts, folder=None):
    classifier = LdSMClassifier(3, random_state=0)
    return TextTagger(classifier).fit(texts, TAGS, checkpoint_dir=folder).fingerprint_


@pytest.fixture
def counted(monkeypatch):
    """The sizes of the chunks of texts whose words are counted; names of tags are shorter."""
    monkeypatch.setattr(learned_words, "_CHUNK_BYTES", 1000)
    real, sizes = _core.count_words, []

    def count(text, offsets, *others, **options):
        if len(text) > 100:
            sizes.append(len(text))
        return real(text, offsets, *others, **options)

    monkeypatch.setattr(_core, "count_words", count)
    return sizes


def test_only_other_chunks_are_counted_again(counted, tmp_path):
    expected = fitted(TEXTS)
    n_chunks = len(counted)
    counted.clear()
    assert fitted(TEXTS, tmp_path) == expected
    assert len(counted) == n_chunks > 20
    counted.clear()
    assert fitted(TEXTS, tmp_path) == expected
    assert not counted
    changed = [*TEXTS[:-1], TEXTS[-1].replace("e", "x")]
    with pytest.raises(ValueError, match="belongs to another fit"):
        fitted(changed, tmp_path)
    assert len(counted) == 1


def test_fit_resumes_before_the_trees(counted, tmp_path, monkeypatch):
    expected = fitted(TEXTS)
    with monkeypatch.context() as broken:
        broken.setattr(_core, "count_bigrams", None)
        with pytest.raises(TypeError):
            fitted(TEXTS, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["words"]
    counted.clear()
    assert fitted(TEXTS, tmp_path) == expected
    assert not counted
