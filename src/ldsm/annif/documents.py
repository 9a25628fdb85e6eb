"""Documents and subjects of a project in the form that the tagger needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annif.exception import NotSupportedException

from .._storage.strings import Strings
from ..datasets.dataset import Dataset, named_labels
from ..text.corpus import in_chunks

_DOCUMENTS_AT_ONCE = 4096
Document = tuple[str, list[str]]  # a text and the URIs of its subjects


def words_of(project: Any, text: str) -> str:
    """The text, or its words according to the project's analyzer, if it has one."""
    if not project.analyzer_spec:
        return text
    return " ".join(project.analyzer.tokenize_words(text))


def documents_of(project: Any, corpus: Any) -> Iterator[Document]:
    """Texts with the URIs of their subjects; documents without text or subjects are left out."""
    subjects = project.subjects
    for document in corpus.documents:
        text = words_of(project, document.text)
        uris = [subjects[number].uri for number in document.subject_set]
        if uris and text.strip():
            yield text, uris


def chunks_of(project: Any, corpus: Any) -> Iterator[Dataset]:
    """The documents of a corpus in chunks for a store, with the analyzer as source."""
    uris = sorted(subject.uri for _, subject in project.subjects.active)
    number, names = {uri: i for i, uri in enumerate(uris)}, Strings.pack(uris)
    found = False
    for part in in_chunks(documents_of(project, corpus), _DOCUMENTS_AT_ONCE):
        found = True
        texts, labels = zip(*part, strict=True)
        Y = named_labels(labels, number)
        yield Dataset(None, Y, texts=texts, label_names=names, source=source_of(project))
    if not found:
        raise NotSupportedException(
            "Cannot train ldsm project: no document has a text and subjects of the vocabulary",
            project_id=project.project_id,
        )


def source_of(project: Any) -> str:
    """The source of the texts in a store."""
    return f"analyzer {project.analyzer_spec}" if project.analyzer_spec else "unchanged texts"


def names_of(project: Any) -> dict[str, list[str]]:
    """Names of the subjects in the language of the project's vocabulary."""
    names = {}
    for _, subject in project.subjects.active:
        preferred = subject.labels.get(project.vocab_lang)
        names[subject.uri] = [words_of(project, preferred)] if preferred else []
    return names
