"""``ldsm.load`` reads a model file of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._execution.memory import out_of_memory
from ._storage.container import read, refused
from ._storage.paths import PathLike, printable
from .classifier import LdSMClassifier, classifier_from_state
from .text.tagger import TextTagger, give_encoder, tagger_from_state

# The kinds of model that a file may hold.
FROM_STATE: dict[str, Callable[..., Any]] = {
    "LdSMClassifier": classifier_from_state,
    "TextTagger": tagger_from_state,
}


def load(
    path: PathLike, verify: bool = True, *, trust_pattern: bool = False, encoder: Any = None
) -> LdSMClassifier | TextTagger:
    """Load a model that its `save` method wrote.

    Nothing in the file is run, imported or trusted: a file that is damaged, altered, too new or not
    a model raises an error that says so.

    Parameters
    ----------
    path : path
        The file.
    verify : bool, default=True
        Read the whole file, compare its checksum and check every number that prediction relies on.
        False: map the file instead, which takes milliseconds for any size, and check each part when
        it is used. A damaged file may then give wrong results, but does not crash. Meant for large
        models that were verified before, and for many processes that share one. Do not change the
        file in place while the model is in use: if the file is truncated, the system kills the
        process with a bus error. `save` replaces it as a whole, which is safe.
    trust_pattern : bool, default=False
        A tagger whose vectorizer has its own `token_pattern` may contain one that never finishes on
        some text. By default, only patterns that are certain to be fast are loaded: single
        characters followed by a run of one kind, such as ``\\b\\w\\w+\\b``, ``\\S+`` or
        ``[a-z]{3,}``.
    encoder : function, object or path, optional
        The encoder of a tagger that was trained with one, in any form that `TextTagger` takes.
        Without it, the tagger loads but cannot predict, unless embeddings brought no gain. An
        encoder that gives other vectors than the one in training raises an error.

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
    with out_of_memory(f"load {printable(path)}"):
        model = _loaded(path, verify, trust_pattern)
    if encoder is None:
        return model
    if not isinstance(model, TextTagger):
        raise ValueError(f"{printable(path)} reads features, so encoder must be None.")
    return give_encoder(model, encoder)


def _loaded(path: PathLike, verify: bool, trust_pattern: bool) -> LdSMClassifier | TextTagger:
    header, arrays = read(path, verify)
    kind = header["kind"]
    if kind not in FROM_STATE:
        raise refused(
            path, f"it holds a kind of model that this version does not know, {kind[:40]!r}"
        )
    try:
        more = {"trust_pattern": trust_pattern} if kind == "TextTagger" else {}
        model: LdSMClassifier | TextTagger = FROM_STATE[kind](header, arrays, verify=verify, **more)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise refused(path, error) from error
    return model
