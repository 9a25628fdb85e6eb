"""Encoders beside words: what they add, that models keep, learn and name them, and bad output."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger
from ldsm._arrays.dense_rows import UNIT
from ldsm._storage import container
from ldsm.datasets import Dataset, open_store
from ldsm.text.encoders.encoder import BATCH, PROBES, Encoder
from ldsm.text.training import vectorized, vectorized_by
from ldsm.text.vectorizer import WORD_DEFAULTS, word_vectorizer
from saved_states import tagger_state
from tiny_encoders import N_MEANINGS, WIDTH, encode, texts_and_tags, write_onnx

TEXTS, TAGS = texts_and_tags(1200)
NEW, NEW_TAGS = texts_and_tags(200, seed=1)


def fitted(encoder=encode, **params):
    return TextTagger(LdSMClassifier(4, **params), encoder=encoder).fit(TEXTS, TAGS)


@cache
def tagger():
    return fitted()


def test_encoder_adds_meaning_to_words():
    plain = TextTagger(LdSMClassifier(4)).fit(TEXTS, TAGS)
    assert "meaning" in tagger().classifier_.second_stage_.blend.kind
    assert tagger().score(NEW, NEW_TAGS) > plain.score(NEW, NEW_TAGS) + 0.2


def test_unused_encoder_is_noticed():
    with pytest.warns(UserWarning, match="The encoder is not used: it needs a linear second stage"):
        TextTagger(LdSMClassifier(2), encoder=encode).fit(TEXTS[:100], TAGS[:100])


def test_unseen_tags_are_found_by_meaning(tmp_path):
    names = {f"t{i}": f"w{i} meant" for i in range(N_MEANINGS)}
    known = [[tag for tag in row if tag != "t7"] for row in TAGS]
    found = []
    for encoder in (None, encode):
        model = TextTagger(LdSMClassifier(4), encoder=encoder).fit(TEXTS, known, vocabulary=names)
        texts = [text for text, row in zip(NEW, NEW_TAGS, strict=True) if "t7" in row]
        found.append(np.mean(["t7" in dict(row) for row in model.predict(texts, 3)]))
    assert found[1] > found[0] + 0.3
    shares = model.fitted_.explainer(texts[0]).tag(model.classes_.tolist().index("t7"), 3).shares
    assert shares["meaning"] > 1
    model.save(tmp_path / "tags.ldsm")
    assert ldsm.load(tmp_path / "tags.ldsm", encoder=encode).predict(texts) == model.predict(texts)


def test_unknown_words_have_a_meaning():
    rng = np.random.default_rng(2)
    meanings = [rng.choice(N_MEANINGS, 2, replace=False).tolist() for _ in range(50)]
    texts = [f"w{a + 100 * N_MEANINGS} w{b + 200 * N_MEANINGS}" for a, b in meanings]
    found = tagger().predict(texts, 2)
    right = [
        len({f"t{a}", f"t{b}"} & dict(row).keys())
        for (a, b), row in zip(meanings, found, strict=True)
    ]
    assert np.mean(right) > 1.5
    # A text that means nothing known gets scores nearer the base rates.
    (_, usual), (_, strange) = (row[0] for row in tagger().predict([texts[0], "what"], 1))
    assert strange < usual


class WithMethod:
    """As in sentence-transformers, where a model can also be called."""

    name = "tiny"

    def encode(self, texts):
        return encode(texts).astype(np.float32)

    def __call__(self, features):
        raise AssertionError


def test_forms_of_an_encoder(tmp_path):
    assert fitted(WithMethod()).fitted_.encoder.name == "tiny"
    assert tagger().fitted_.encoder.name == "encode"
    write_onnx(tmp_path / "model")
    assert Encoder.of(str(tmp_path / "model")).name == "model"
    assert Encoder.of(tmp_path / "model" / "model.onnx").fitted().width == 4
    with pytest.raises(ValueError, match="'encoder' parameter of TextTagger must be a function"):
        fitted(17)


def test_each_text_and_tag_is_encoded_once():
    asked = []

    def counting(texts):
        asked.extend(texts)
        assert type(texts) is list and len(texts) <= BATCH
        return encode(texts)

    reports = []
    tags = {"t0": "w0 w0", "t99": "w7 without documents"}
    model = TextTagger(LdSMClassifier(4), encoder=counting).fit(
        zip(TEXTS, TAGS, strict=True),
        vocabulary=tags,
        callback=lambda done, total: reports.append((done, total)),
    )
    names = [*model.classes_.tolist(), *tags.values()]
    assert sorted(asked) == sorted([*PROBES, *TEXTS, *names])
    batches = [*range(BATCH, len(TEXTS), BATCH), len(TEXTS)]
    assert reports[: len(batches)] == [(done, 0) for done in batches]


@pytest.mark.parametrize("batch", [1, 7, 200])
def test_same_answers_for_any_batch(batch):
    parts = [tagger().predict(NEW[i : i + batch]) for i in range(0, len(NEW), batch)]
    assert [answer for part in parts for answer in part] == tagger().predict(NEW)


def test_blank_texts_are_no_evidence():
    rows = Encoder.of(encode).rows(["w1", "", " \n", "w2"], WIDTH).values
    assert rows.any(axis=1).tolist() == [True, False, False, True]
    lengths = np.sqrt((rows[[0, 3]].astype(float) ** 2).sum(axis=1))
    np.testing.assert_allclose(lengths, UNIT, rtol=1e-4)
    scores = [score for _, score in tagger().predict([" "])[0]]
    assert max(scores) < 0.15


def test_saved_without_the_encoder(tmp_path):
    path = tmp_path / "tags.ldsm"
    tagger().save(path)
    assert ldsm.load(path, encoder=encode).predict(NEW) == tagger().predict(NEW)
    for verify in (True, False):
        loaded = ldsm.load(path, verify=verify)
        assert loaded.encoder is None and loaded.fingerprint_ == tagger().fingerprint_
        with pytest.raises(ValueError, match="needs its encoder, 'encode' with 16 dimensions, .* "):
            loaded.predict(NEW)
    # It is renamed, saved again and given its encoder later.
    loaded.rename_labels({"t1": "one"}).save(tmp_path / "again.ldsm")
    again = ldsm.load(tmp_path / "again.ldsm", encoder=encode).drop_labels(["t2"])
    expected = tagger().predict(NEW, 1)
    for (before, *_), (after, *_) in zip(expected, again.predict(NEW, 1), strict=True):
        assert before[0] == "t2" or after == ({"t1": "one"}.get(before[0], before[0]), before[1])


def test_another_encoder_is_refused(tmp_path):
    path = tmp_path / "tags.ldsm"
    tagger().save(path)
    with pytest.raises(ValueError, match="whose vectors have 16 numbers. Those of .* have 15"):
        ldsm.load(path, encoder=lambda texts: encode(texts)[:, :-1])
    with pytest.raises(ValueError, match=r"another encoder, 'encode': .* \(cosine -?0\.\d\d\)"):
        ldsm.load(path, encoder=lambda texts: encode(texts)[:, ::-1])

    # Neither rounding nor an encoder without a word of some probe is another encoder.
    def partly(texts):
        return encode(texts) * [["text" in text or "w" in text] for text in texts]

    TextTagger(LdSMClassifier(2), encoder=partly).fit(TEXTS, TAGS).save(tmp_path / "partly.ldsm")
    ldsm.load(tmp_path / "partly.ldsm", encoder=partly)
    rounded = ldsm.load(path, encoder=lambda texts: encode(texts).astype(np.float16))
    assert rounded.score(NEW, NEW_TAGS) == pytest.approx(tagger().score(NEW, NEW_TAGS), abs=0.02)
    TextTagger(LdSMClassifier(2)).fit(TEXTS[:100], TAGS[:100]).save(tmp_path / "plain.ldsm")
    with pytest.raises(ValueError, match="was trained without an encoder"):
        ldsm.load(tmp_path / "plain.ldsm", encoder=encode)
    LdSMClassifier(2).fit([[1.0, 0.0]] * 9, [["a"]] * 9).save(tmp_path / "rows.ldsm")
    with pytest.raises(ValueError, match="reads features, so encoder must be None"):
        ldsm.load(tmp_path / "rows.ldsm", encoder=encode)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text, arrays: text.pop("encoder"), "has a name, but no vectors, or"),
        (lambda text, arrays: arrays.pop("encoder.probes"), "has a name, but no vectors, or"),
        (lambda text, arrays: text.update(encoder="x" * 201), "entry 'encoder'"),
        (
            lambda text, arrays: arrays.update({"encoder.probes": np.zeros((4, 3), np.int16)}),
            "does not have the dimensions of its embeddings",
        ),
        (
            lambda text, arrays: arrays.update({"encoder.probes": np.zeros((2, 16), np.int16)}),
            "encoder.probes must have the shape",
        ),
    ],
)
def test_crafted_files_are_refused(change, message, tmp_path):
    header, arrays = tagger_state(tagger())
    header["text"] = {**header["text"]}
    change(header["text"], arrays)
    container.write(tmp_path / "bad.ldsm", {"kind": "TextTagger", **header}, arrays)
    with pytest.raises(container.ModelFileError, match=message):
        ldsm.load(tmp_path / "bad.ldsm")


def test_learning_new_texts_and_tags():
    model = pickle.loads(pickle.dumps(tagger()))
    # A word of its own in each text, all with a meaning that no tag has.
    texts = [f"w{i} x{i}" for i in range(60)]
    model.partial_fit([*NEW[:100], *texts], [*NEW_TAGS[:100], *[["new"]] * 60])
    assert "new" in model.classes_
    assert (
        model.score(NEW[100:], NEW_TAGS[100:]) >= tagger().score(NEW[100:], NEW_TAGS[100:]) - 0.02
    )
    # Nothing but the meaning of a word that is not known suggests the new tag.
    found = model.predict([f"w{i} x{i}" for i in range(100, 120)])
    assert np.mean(["new" in dict(row) for row in found]) > 0.8


def test_features_made_earlier_without_embeddings_are_refused():
    made = vectorized_by(tagger().features_)(Dataset.from_texts(NEW, NEW_TAGS))
    for call in (tagger().predict, pickle.loads(pickle.dumps(tagger())).partial_fit):
        with pytest.raises(ValueError, match="needs texts for its encoder, 'encode', or their"):
            call(made)
    with pytest.raises(ValueError, match="already vectorized, without an encoder: encoder must be"):
        TextTagger(encoder=encode).fit(made)
    foreign = replace(made, embeddings=encode(NEW))
    with pytest.raises(ValueError, match="must come with their encoder's form"):
        TextTagger().fit(foreign)


def test_same_model_from_texts_encoded_earlier(tmp_path):
    """A store with embeddings takes the place of the texts and of the encoder."""
    own = Encoder.of(encode).fitted()
    pairs = zip(TEXTS, TAGS, strict=True)
    made = vectorized(pairs, word_vectorizer(WORD_DEFAULTS), with_parts=lambda n: True, encoder=own)
    made.save(tmp_path / "train")
    store = open_store(tmp_path / "train")
    for params in ({}, {"n_jobs": 2, "memory_limit": 1 << 20}):
        model = TextTagger(LdSMClassifier(4, **params)).fit(store)
        assert model.fingerprint_ == tagger().fingerprint_
    asked = vectorized_by(tagger().features_, own)(Dataset.from_texts(NEW, NEW_TAGS))
    assert model.score(asked) == tagger().score(NEW, NEW_TAGS)
    texts, tags = [f"w{i} x{i}" for i in range(60)], [["new", "t1"]] * 60
    more = vectorized_by(tagger().features_, own)(Dataset.from_texts(texts, tags))
    learned = pickle.loads(pickle.dumps(model)).partial_fit(more)
    place = learned.classes_.tolist().index("new")
    assert learned.classifier_.second_stage_.meaning.units[place] > 0
    again = TextTagger(LdSMClassifier(4), encoder=encode).fit(store)
    assert again.predict(NEW[:3]) == tagger().predict(NEW[:3])
    with pytest.raises(ValueError, match="needs its encoder, 'encode'"):
        model.predict(NEW)


def test_embeddings_of_another_encoder_are_refused():
    other = Encoder(lambda texts: -encode(texts)[:, ::-1], "other").fitted()
    made = vectorized_by(tagger().features_, other)(Dataset.from_texts(NEW, NEW_TAGS))
    with pytest.raises(ValueError, match="trained with another encoder, 'encode': 'other' gives"):
        tagger().predict(made)
    with pytest.raises(ValueError, match="another encoder, 'encode': 'other' gives"):
        TextTagger(encoder=encode).fit(made)


def test_rare_tags_take_their_vectors_along():
    made = vectorized(
        zip([*TEXTS, "w1 w2"], [*TAGS, ["a rare one"]], strict=True),
        word_vectorizer(WORD_DEFAULTS),
        with_parts=lambda n: True,
        encoder=Encoder.of(encode).fitted(),
    )
    model = TextTagger(LdSMClassifier(2), min_tag_count=2).fit(made)
    whole = TextTagger(LdSMClassifier(2), encoder=encode, min_tag_count=2)
    whole.fit([*TEXTS, "w1 w2"], [*TAGS, ["a rare one"]])
    assert model.rare_tags_ == {"a rare one": 1}
    assert model.fingerprint_ == whole.fingerprint_


def bad(change, after=0):
    """An encoder whose output is changed from some text on."""
    seen = []

    def encoder(texts):
        seen.extend(texts)
        vectors = encode(texts)
        return change(vectors) if len(seen) > after + len(PROBES) else vectors

    return encoder


def with_nan(vectors):
    vectors = vectors.copy()
    vectors[5, 3] = np.nan
    return vectors


def raising(vectors):
    raise RuntimeError("out of tokens")


def interrupted(vectors):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (with_nan, ValueError, "must return finite numbers. Got NaN or infinity for text 261"),
        (lambda v: v[1:], ValueError, "Got 255 rows for the 256 texts from text 256 on"),
        (
            lambda v: v[:, 1:],
            ValueError,
            "vectors of 16 numbers. Got 15 in the batch from text 256",
        ),
        (lambda v: v[0], ValueError, r"type float64 and shape \(16,\) in the batch from text 256"),
        (lambda v: v.astype(object), ValueError, "Got an array of type object .* from text 256 on"),
        (raising, ValueError, "batch from text 256 on: RuntimeError: out of tokens"),
        (interrupted, KeyboardInterrupt, "in the encoder .*, in the batch from text 256 on"),
    ],
)
def test_bad_output_names_encoder_and_first_text(change, kind, message, tmp_path):
    model = TextTagger(LdSMClassifier(2), encoder=bad(change, after=BATCH))
    with pytest.raises(kind, match=message) as caught:
        model.fit(TEXTS, TAGS)
    assert "'bad.<locals>.encoder'" in str(caught.value)
    assert not hasattr(model, "fitted_")
    # The same while learning, which leaves the model as it was.
    learner = pickle.loads(pickle.dumps(tagger()))
    before, held = learner.fitted_, learner.fitted_.encoder
    failing = Encoder(bad(change, after=BATCH - len(PROBES)), "bad.<locals>.encoder")
    learner.fitted_ = before._replace(encoder=type(held)(held.name, held.probes, failing))
    with pytest.raises(kind, match=message):
        learner.partial_fit(TEXTS[:600], TAGS[:600])
    assert learner.fitted_.classifier is before.classifier


def test_bad_encoder_is_noticed_before_the_texts_are_read():
    def texts():
        raise AssertionError("read")
        yield

    with pytest.raises(ValueError, match="Got NaN or infinity for the test text 0"):
        TextTagger(encoder=lambda texts: np.full((len(texts), 3), np.nan)).fit(texts(), [["a"]])
    with pytest.raises(ValueError, match="vectors of 1 to 4,096 numbers. Got 5,000"):
        TextTagger(encoder=lambda texts: np.ones((len(texts), 5000))).fit(texts(), [["a"]])
