"""Documents with label names, as in files of texts, and their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..._wording import argument

# Separates the fields of a text, so that no word or sequence of words crosses fields.
_BETWEEN_FIELDS = "\n"


class Document(NamedTuple):
    """A text with its labels and, if asked for, its id."""

    text: str
    labels: list[str]
    id: str | None = None


def field_names(text: str | int | Sequence[str | int]) -> list[str]:
    """The names of the fields that hold the text."""
    names = [text] if isinstance(text, str | int) else list(text)
    known = [name for name in names if isinstance(name, str)]
    if not known or len(known) < len(names):
        raise ValueError(f"text must name one or more fields. Got {text!r}.")
    return known


def joined_fields(parts: Sequence[str]) -> str:
    """The text of several fields, such as title and body; empty fields are skipped."""
    return parts[0] if len(parts) == 1 else _BETWEEN_FIELDS.join(filter(None, parts))


def fit_words(vectorizer: Any, texts: Iterable[str]) -> Any:
    """Learn the words of texts and return their features."""
    n_texts, finished = 0, False

    def counted() -> Iterator[str]:
        nonlocal n_texts, finished
        for text in texts:
            n_texts += 1
            yield text
        finished = True

    try:
        return vectorizer.fit_transform(counted())
    except ValueError as error:
        if not finished:  # the error is about a document
            raise
        problem = str(error).rstrip(".")
    raise no_words(vectorizer, n_texts, problem)


def no_words(vectorizer: Any, n_texts: int, problem: str) -> ValueError:
    """The error for texts in which a vectorizer found no words; `problem` is its own."""
    if n_texts == 0:
        return ValueError("There are no rows to train on. Got no documents.")
    least, most = getattr(vectorizer, "min_df", 1), getattr(vectorizer, "max_df", 1.0)
    if problem.startswith("empty vocabulary"):
        problem = "they have no words that the vectorizer counts, by default of two or more letters"
    elif most != 1.0 and n_texts > 1:
        given = f"{argument('min_df', least)} and {argument('max_df', most)}"
        problem = f"no word occurs in the number of documents required by {given}"
    elif isinstance(least, int) and least > 1:
        problem = (
            f"no word occurs in {least} or more of them; use {argument('min_df', 1)} to keep all "
            "words"
        )
    subject = "document has" if n_texts == 1 else "documents have"
    return ValueError(f"The {n_texts:,} {subject} no features: {problem}.")
