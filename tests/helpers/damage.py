"""Ways to damage the arrays of a model, and how the file must then be refused."""

import numpy as np
import pytest

from ldsm import load
from ldsm._storage.container import ModelFileError


def put(name, at, value):
    """A change of arrays: some numbers of one are replaced."""

    def change(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][at] = value

    return change


def become(name, function):
    """A change of arrays: one becomes a function of it."""

    def change(arrays):
        arrays[name] = np.ascontiguousarray(function(arrays[name]))

    return change


def both(*changes):
    """Several changes of arrays, one after another."""

    def change(arrays):
        for one in changes:
            one(arrays)

    return change


def swap(name, at):
    """A change of arrays: two neighbours trade places."""
    return become(name, lambda array: np.insert(np.delete(array, at), at + 1, array[at]))


def refuse(path, message, verify=True):
    """The file is refused with one sentence that names it and says why."""
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path, verify)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700 + len(str(path))
