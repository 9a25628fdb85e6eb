"""Every array of a model file: missing, of another length, shape or type."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from crafted_model import ask
from damage import refuse
from ldsm import LdSMClassifier, load
from ldsm._storage import container
from problems import make_problem

GOLDEN = Path(__file__).parents[1] / "golden"
TYPES = ("i1", "u1", "u2", "i8", "f2", "f8")
MAY_BE_MISSING = ("second_stage.masses", "second_stage.tested")  # updates and inspection need them
# What errors mention besides an array and its part, because another array does not fit.
MENTIONED = {
    "pairs": "bigrams",
    "rare_tags": "rare_tag_counts",
    "sub_words": "sub-words",
    "tag_titles": "titled tags",
    "titled_tags": "titles",
    "thresholds": "'threshold'",
    "words": "idf",
}


@pytest.fixture(scope="module")
def with_embeddings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    X, Y = make_problem(0, "weights", n_rows=200, n_features=20, n_labels=8)
    settings: dict[str, Any] = {"rerank": "linear", "random_state": 3, "standardize": True}
    clf = LdSMClassifier(3, **settings).fit(X, Y, embeddings=Y)
    assert "meaning" in clf.second_stage_.parts
    path = tmp_path_factory.mktemp("whole") / "with_embeddings.ldsm"
    clf.save(path)
    return path


def changes(array: NDArray[Any]) -> Iterator[NDArray[Any] | None]:
    """The array in other sizes, shapes and types, and None for no array."""
    yield None
    yield array.ravel() if array.ndim > 1 else array[:, None]
    if len(array):
        yield from (array[:0], array[:-1], np.append(array, array[-1:], axis=0))
    with np.errstate(invalid="ignore", over="ignore"):
        yield from (array.astype(other) for other in TYPES if np.dtype(other) != array.dtype)


def is_allowed(name: str, array: NDArray[Any], changed: NDArray[Any] | None) -> bool:
    """Whether it may be missing, or has the same numbers in a wider type."""
    if changed is None:
        return name in MAY_BE_MISSING
    wider = np.can_cast(array.dtype, changed.dtype, "safe")
    return wider and array.shape == changed.shape


@pytest.mark.parametrize("name", ["tagger_v2_parts", "with_embeddings"])
def test_unfit_arrays_refused(tmp_path: Path, with_embeddings: Path, name: str) -> None:
    good = with_embeddings if name == "with_embeddings" else GOLDEN / f"{name}.ldsm"
    header, arrays = container.read(good)
    header = {key: value for key, value in header.items() if not key.endswith("version")}
    path, n_refused = tmp_path / "m.ldsm", 0
    for array, values in arrays.items():
        part, _, own = array.removeprefix("second_stage.").rpartition(".")
        named = "|".join((own, part or own, MENTIONED.get(part or own, own)))
        for changed in changes(values):
            others = {other: numbers for other, numbers in arrays.items() if other != array}
            if changed is not None:
                others[array] = np.ascontiguousarray(changed)
            container.write(path, header, others)
            if not is_allowed(array, values, changed):
                refuse(path, named)
                n_refused += 1
            # Unverified, it is refused as well, or answers, or a prediction reports the damage.
            with suppress(ValueError):
                ask(load(path, verify=False))
    assert n_refused > 8 * len(arrays)
