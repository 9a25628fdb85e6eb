"""Models are pickled and copied while other threads learn and predict."""

import copy
import pickle
import sys
import threading
from collections.abc import Iterator

import pytest

from services import documents, small_tagger


@pytest.fixture
def tagger():
    return small_tagger()


@pytest.fixture
def frequent_switches():
    """Threads take turns as often as the system allows."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def own_parts(thing, seen) -> Iterator[object]:
    """All objects of our classes with attributes, from one down."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, tuple):
        for part in thing:
            yield from own_parts(part, seen)
    elif type(thing).__module__.startswith("ldsm.") and hasattr(thing, "__dict__"):
        yield thing
        for part in list(vars(thing).values()):
            yield from own_parts(part, seen)


def test_state_is_a_copy(tagger):
    """What pickle reads one by one must not be what another thread adds to."""
    tagger.predict(["cod"])
    parts = list(own_parts(tagger, {}))
    assert len(parts) > 8
    cached = [part for part in parts if has_cached_properties(type(part))]
    assert len(cached) >= 5
    for part in [*cached, tagger, tagger.classifier_]:
        assert not any(value is vars(part) for value in part.__reduce_ex__(4)), type(part)


def has_cached_properties(kind):
    return any("cached_property" in type(value).__name__ for value in vars(kind).values())


@pytest.mark.parametrize("copied", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy])
def test_copies_are_of_one_model(tagger, copied, frequent_switches):
    """Copies are made while another thread learns; each has all of one model."""
    texts, tags = documents(40, seed=3)
    done, failures = threading.Event(), []

    def learn():
        try:
            for i, document in enumerate(zip(texts, tags, strict=True)):
                tagger.partial_fit([document[0]], [[*document[1], f"new {i}"]])
                tagger.predict(texts[:3])
        except Exception as error:
            failures.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=learn)
    thread.start()
    copies = []
    try:
        while not done.is_set():
            copies.append(copied(tagger))
    finally:
        thread.join()
    assert failures == [] and copies
    for one in copies[:: max(1, len(copies) // 20)]:
        rows = one.classifier_.training_["rows"]
        assert len(one.classes_) == 6 + rows - 600  # a new tag per row
        one.predict(["cod and herring"])
