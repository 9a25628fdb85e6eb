"""Documents with label names, as files of texts hold them, and their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .._wording import argument

# Between the fields of one text: no word or sequence of words goes on across it.
_BETWEEN_FIELDS = "\n"


class Document(NamedTuple):
    """A text with its labels and, if asked for, its id."""

    text: str
    labels: list[str]
    id: str | None = None


def field_names(text: str | Sequence[str]) -> list[str]:
    """The fields that hold the text, of which there may be several."""
    names = [text] if isinstance(text, str) else list(text)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"text must name one field or several. Got {text!r}.")
    return names


def joined_fields(parts: Sequence[str]) -> str:
    """One text of several fields, such as title and body; empty ones leave nothing behind."""
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
        return ValueError("There are no rows to train on. Got texts without a single document.")
    least, most = getattr(vectorizer, "min_df", 1), getattr(vectorizer, "max_df", 1.0)
    if problem.startswith("empty vocabulary"):
        problem = "they hold no word that the vectorizer counts, of two letters or more by default"
    elif most != 1.0 and n_texts > 1:
        given = f"{argument('min_df', least)} and {argument('max_df', most)}"
        problem = f"no word occurs in as many of them as {given} ask for"
    elif isinstance(least, int) and least > 1:
        problem = (
            f"no word occurs in {least} of them or more, and {argument('min_df', 1)} keeps the "
            "words of a single one"
        )
    subject = "document has" if n_texts == 1 else "documents have"
    return ValueError(f"The {n_texts:,} {subject} no features: {problem}.")
