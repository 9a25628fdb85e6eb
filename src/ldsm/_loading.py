"""``ldsm.load`` reads a model file of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._storage.container import read, refused
from ._storage.paths import PathLike
from .classifier import LdSMClassifier, classifier_from_state
from .text.tagger import TextTagger, tagger_from_state

# The kinds of model that a file may hold.
FROM_STATE: dict[str, Callable[..., Any]] = {
    "LdSMClassifier": classifier_from_state,
    "TextTagger": tagger_from_state,
}


def load(path: PathLike, verify: bool = True) -> LdSMClassifier | TextTagger:
    """Load a model that its `save` method wrote.

    Nothing in the file is run, imported or trusted: a file that is damaged, altered, too new or not
    a model raises an error that says so.

    Parameters
    ----------
    path : path
    verify : bool, default=True
        Read the whole file, compare its checksum and check every number that prediction relies on.
        False: map the file instead, which takes milliseconds for any size, and check each part when
        it is used. A damaged file may then give wrong results, but does not crash. Meant for large
        models that were verified before, and for many processes that share one. Do not change the
        file in place while the model is in use; `save` replaces it as a whole.

    Returns
    -------
    LdSMClassifier or TextTagger
        Fitted, with the same bits as the saved model.

    Raises
    ------
    ModelFileError
        A ValueError. The message names the file and what is wrong with it.
    FileNotFoundError, PermissionError ...
        As raised by `open`.
    """
    header, arrays = read(path, verify)
    kind = header["kind"]
    if kind not in FROM_STATE:
        raise refused(
            path, f"it holds a kind of model that this version does not know, {kind[:40]!r}"
        )
    try:
        model: LdSMClassifier | TextTagger = FROM_STATE[kind](header, arrays, verify=verify)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise refused(path, error) from error
    return model
