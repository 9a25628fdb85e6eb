"""Documents and subjects of a project as the tagger takes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annif.exception import NotSupportedException

from .._storage.strings import Strings
from ..datasets.dataset import Dataset, named_labels
from ..text.corpus import in_chunks

_DOCUMENTS_AT_ONCE = 4096
Pair = tuple[str, list[str]]


def words_of(project: Any, text: str) -> str:
    """The text, or its words as the project's analyzer has them if the project names one."""
    if not project.analyzer_spec:
        return text
    return " ".join(project.analyzer.tokenize_words(text))


def pairs_of(project: Any, corpus: Any) -> Iterator[Pair]:
    """Texts with the URIs of their subjects; documents without text or subjects are left out."""
    subjects = project.subjects
    for document in corpus.documents:
        text = words_of(project, document.text)
        uris = [subjects[number].uri for number in document.subject_set]
        if uris and text.strip():
            yield text, uris


def blocks_of(project: Any, corpus: Any) -> Iterator[Dataset]:
    """The documents of a corpus in blocks for a store, which also notes the analyzer."""
    uris = sorted(subject.uri for _, subject in project.subjects.active)
    number, names = {uri: i for i, uri in enumerate(uris)}, Strings.pack(uris)
    found = False
    for part in in_chunks(pairs_of(project, corpus), _DOCUMENTS_AT_ONCE):
        found = True
        texts, labels = zip(*part, strict=True)
        Y = named_labels(labels, number)
        yield Dataset(None, Y, texts=texts, label_names=names, source=source_of(project))
    if not found:
        raise NotSupportedException(
            "Cannot train ldsm project with no documents that have a text and subjects of the "
            "vocabulary",
            project_id=project.project_id,
        )


def source_of(project: Any) -> str:
    """How the texts of a store were made."""
    return f"analyzer {project.analyzer_spec}" if project.analyzer_spec else "texts as they are"


def names_of(project: Any) -> dict[str, list[str]]:
    """What the subjects are called in the language of the project's vocabulary."""
    names = {}
    for _, subject in project.subjects.active:
        preferred = subject.labels.get(project.vocab_lang)
        names[subject.uri] = [words_of(project, preferred)] if preferred else []
    return names
