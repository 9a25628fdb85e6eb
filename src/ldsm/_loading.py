"""``ldsm.load``: any model file, whichever kind of model it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._storage.container import read, refused
from ._storage.paths import PathLike
from .classifier import LdSMClassifier, classifier_from_state
from .text.tagger import TextTagger, tagger_from_state

# The file says which of these it holds, and can say nothing else.
KINDS: dict[str, Callable[..., Any]] = {
    "LdSMClassifier": classifier_from_state,
    "TextTagger": tagger_from_state,
}


def load(path: PathLike, verify: bool = True) -> LdSMClassifier | TextTagger:
    """Load a model that its `save` method wrote.

    Nothing in the file is run or imported, and nothing in it is believed: a file that is damaged,
    altered, too new or no model at all is refused with one sentence that says so.

    Parameters
    ----------
    path : path
    verify : bool, default=True
        Read the whole file, compare its checksum and check every number that prediction relies on.
        False: map the file instead, which takes milliseconds for any size, and check what is
        followed when it is followed. A damaged file may then give wrong answers, though no crash.
        Meant for large models that were verified before, and for many processes that share one.
        The file must not be changed in place while the model is in use; `save` replaces it whole.

    Returns
    -------
    LdSMClassifier or TextTagger
        Fitted; with the same bits, bar `compress`, as what was saved.

    Raises
    ------
    ModelFileError
        A ValueError. The message names the file and what is wrong with it.
    FileNotFoundError, PermissionError ...
        As `open` raises them.
    """
    header, arrays = read(path, verify)
    kind = header["kind"]
    if kind not in KINDS:
        raise refused(
            path, f"it holds a kind of model that this version does not know, {kind[:40]!r}"
        )
    try:
        model: LdSMClassifier | TextTagger = KINDS[kind](header, arrays, verify=verify)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise refused(path, error) from error
    return model
