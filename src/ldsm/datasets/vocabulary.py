"""Vocabularies: names of labels, and labels without training rows.

A vocabulary is a list of concepts. The labels of the data may be identifiers of concepts, such as
URIs, or preferred names in one language; the data decide which.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._arrays.matrices import map_columns
from .._storage.paths import PathLike, printable
from .._storage.strings import is_unicode
from .._storage.syntax.csv_rows import BrokenRow, csv_rows
from .._storage.syntax.rdf_text import read_rdf
from .._storage.text_files import MAX_LINE_LENGTH, UTF8, format_suffix, malformed, read_lines

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_RDF = {".ttl": "turtle", ".nt": "nt", ".rdf": "xml", ".xml": "xml"}
# Known names of the columns of a table.
LABEL_COLUMNS = {"label", "labels", "tag", "tags", "uri", "id", "code", "concept", "subject"}
NAME_COLUMN_PREFIXES = ("name", "label", "pref", "alt", "title", "synonym")
GROUP_COLUMN_PREFIXES = ("group", "collection", "scheme", "type")
# If more than this share of the labels that have names look like codes, none of them is a name.
CODED = 0.9
_FORMS = "a file, a list of labels, or a dict of labels and their names"
Names = dict[str, list[str]]  # of each label


class Concept(NamedTuple):
    """One entry of a vocabulary."""

    identifier: str
    preferred: Mapping[str, str]  # by language, "" for none
    others: tuple[tuple[str, str], ...] = ()  # alternative names: (language, name)
    groups: tuple[str, ...] = ()


def read_vocabulary(
    path: PathLike, *, encoding: str = UTF8, max_line_length: int = MAX_LINE_LENGTH
) -> list[Concept]:
    """Read the names of labels from a file.

    Parameters
    ----------
    path : path
        ``.tsv``, ``.csv`` or ``.txt``: a label and one of its names per line; a label may have
        several lines, or no second column. With a header line such as ``label,name`` or
        ``uri,label_en,label_fi``, all columns of names are read, otherwise the second. With a
        header, columns named ``group`` hold groups of labels. ``.ttl``, ``.nt``, ``.rdf`` or
        ``.xml``: a SKOS vocabulary, which needs ``pip install "ldsm[skos]"``; deprecated concepts
        are left out, and the groups of a concept are its schemes, collections and further types.
        RDF/XML must not have a document type, and literals may have at most 20,000 characters.
        Plain, ``.gz`` or ``.bz2``.
    encoding : str, default="utf-8"
        Encoding of a table.
    max_line_length : int, default=4194304
        Maximum length of a line, in characters.

    Returns
    -------
    list of Concept
        Named tuples: `identifier`, the label; `preferred`, a name per language ("" if the file
        names none); `others`, tuples of a language and an alternative name; `groups`.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("names.tsv").write_text("fisheries\\tfishing industry\\nfisheries\\tfishery\\n")
    >>> [concept] = read_vocabulary("names.tsv")
    >>> concept.identifier, concept.preferred, concept.others
    ('fisheries', {'': 'fishing industry'}, (('', 'fishery'),))
    """
    suffix = format_suffix(path)
    if suffix in _DELIMITERS:
        concepts = _from_table(path, _DELIMITERS[suffix], encoding, max_line_length)
    elif suffix in _RDF:
        concepts = _from_skos(path, _RDF[suffix], max_line_length)
    else:
        known = ", ".join([*_DELIMITERS, *_RDF])
        raise ValueError(
            f"A vocabulary file must have one of the suffixes {known}. Got {printable(path)}."
        )
    if not concepts:
        raise ValueError(f"A vocabulary must have at least one label. Got {printable(path)}.")
    return concepts


def concepts_of(vocabulary: Any) -> list[Concept]:
    """The concepts of a file, of labels, or of a mapping of labels to a name or names."""
    if isinstance(vocabulary, (str, os.PathLike)):
        return read_vocabulary(vocabulary)
    return [*_given(vocabulary)]


def label_names(vocabulary: Any, labels: Iterable[str]) -> Names:
    """The names of the labels of the data, and of the other labels in the vocabulary.

    `vocabulary` is what `concepts_of` takes.
    """
    concepts = concepts_of(vocabulary)
    way = _way(concepts, set(labels))
    found: dict[str, dict[str, None]] = {}  # names in order, each once
    for concept in concepts:
        label = dict(_keys(concept)).get(way)
        if label is not None:
            found.setdefault(label, {}).update(dict.fromkeys(_names(concept, way)))
    # A label is one of its own names, unless it is a URI or a code.
    coded = _are_codes([label for label, names in found.items() if names])
    return {
        label: [*names]
        if names and (coded or label in names or "://" in label)
        else [label, *names]
        for label, names in found.items()
    }


def _are_codes(labels: Sequence[str]) -> bool:
    """Whether labels, such as "gnd:4004927-9" or "D000123", are made of digits for the most part.

    Texts have years and other numbers, which have nothing to do with them.
    """

    def is_code(label: str) -> bool:
        own = label.rpartition(":")[2]
        return sum(map(str.isdigit, own)) > sum(map(str.isalpha, own))

    return sum(map(is_code, labels)) > CODED * len(labels)


def label_groups(concepts: Sequence[Concept], labels: Iterable[str]) -> Names:
    """The groups of the labels of the data, and of the other labels in the vocabulary."""
    grouped = [concept for concept in concepts if concept.groups]
    if not grouped:
        return {}
    way = _way(concepts, set(labels))
    found: dict[str, dict[str, None]] = {}
    for concept in grouped:
        label = dict(_keys(concept)).get(way)
        if label is not None:
            found.setdefault(label, {}).update(dict.fromkeys(concept.groups))
    return {label: [*groups] for label, groups in found.items()}


def _way(concepts: Sequence[Concept], seen: set[str]) -> str:
    """What the labels of the data are: identifiers, or names in one language."""
    ways = Counter(way for concept in concepts for way, key in _keys(concept) if key in seen)
    if not ways:
        example = concepts[0].identifier if concepts else "nothing"
        raise ValueError(
            f"The vocabulary must have labels of the data, such as {min(seen, default='')!r:.80}. "
            f"Got none of them, but {example!r:.80}."
        )
    return max(ways, key=lambda way: (ways[way], way))  # whatever matches most labels


def with_labels(
    Y: Any, labels: Sequence[str], further: Iterable[str]
) -> tuple[sp.csr_array, list[str]]:
    """The label matrix with empty columns for further labels; all labels are sorted."""
    names = sorted({*labels, *further})
    number = {name: i for i, name in enumerate(names)}
    moved = np.array([number[label] for label in labels], dtype=np.int64)
    return map_columns(Y, moved, len(names)), names


def _keys(concept: Concept) -> Iterable[tuple[str, str]]:
    """Possible labels of a concept in the data: (way, label); a way is "id" or "name LANGUAGE"."""
    yield "id", concept.identifier
    for language, name in concept.preferred.items():
        yield f"name {language}", name


def _names(concept: Concept, way: str) -> Iterable[str]:
    names = [*concept.preferred.items(), *concept.others]
    language = way.removeprefix("name ")
    return [name for its, name in names if way == "id" or its in ("", language)]


def _given(vocabulary: Any) -> Iterable[Concept]:
    if isinstance(vocabulary, Mapping):
        for label, names in vocabulary.items():
            several = [names] if isinstance(names, str) else names
            if not isinstance(several, Iterable):
                raise ValueError(
                    f"The vocabulary's names of {label!r} must be a str or a list of them. "
                    f"Got {names!r:.80}."
                )
            others = tuple(("", name) for name in map(_checked, several) if name.strip())
            yield Concept(_filled(label), {}, others)
        return
    if not isinstance(vocabulary, Iterable):
        raise ValueError(f"The 'vocabulary' parameter must be {_FORMS}. Got {vocabulary!r:.80}.")
    for entry in vocabulary:
        yield entry if isinstance(entry, Concept) else Concept(_filled(entry), {})


def _filled(label: Any) -> str:
    if not _checked(label).strip():
        raise ValueError(f"A vocabulary's labels must not be empty. Got {label!r}.")
    return str(label)


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not is_unicode(name):
        raise ValueError(f"A vocabulary's labels and names must be str. Got {name!r:.80}.")
    return str(name)


def _from_table(
    path: PathLike, delimiter: str, encoding: str, max_line_length: int
) -> list[Concept]:
    names: dict[str, dict[str, None]] = {}  # of each label, in order, each once
    groups: dict[str, dict[str, None]] = {}
    columns, group_columns = [1], list[int]()
    lines = read_lines(path, encoding=encoding, keep_ends=True, max_line_length=max_line_length)
    try:
        for place, (number, cells) in enumerate(csv_rows(lines, delimiter, max_line_length)):
            row = [cell.strip() for cell in cells]
            if place == 0 and (found := _header(row)) is not None:
                columns, group_columns = found
                continue
            if not any(row):
                continue
            # URIs may be in angle brackets, as in Annif's files.
            label = row[0][1:-1] if row[0].startswith("<") and row[0].endswith(">") else row[0]
            if not label:
                raise malformed(path, number, "a line without a label", delimiter.join(cells))
            for of_label, its in ((names, columns), (groups, group_columns)):
                given = [row[i] for i in its if i < len(row) and row[i]]
                of_label.setdefault(label, {}).update(dict.fromkeys(given))
    except BrokenRow as error:
        raise malformed(path, error.number, str(error), error.text) from None
    # The data may use the first name of a concept as its label.
    named = {label: [("", name) for name in its] for label, its in names.items()}
    return [
        Concept(label, dict(its[:1]), tuple(its[1:]), tuple(groups[label]))
        for label, its in named.items()
    ]


def _header(row: list[str]) -> tuple[list[int], list[int]] | None:
    """The columns of names and those of groups, if a row is a header."""
    heads = [cell.lower() for cell in row]
    if not heads or heads[0] not in LABEL_COLUMNS:
        return None
    names, groups = (
        [i for i, head in enumerate(heads[1:], 1) if head.startswith(prefixes)]
        for prefixes in (NAME_COLUMN_PREFIXES, GROUP_COLUMN_PREFIXES)
    )
    return (names, groups) if names or groups or len(heads) == 1 else None


def _from_skos(path: PathLike, form: str, max_line_length: int) -> list[Concept]:
    try:
        import rdflib  # an optional extra
        from rdflib.namespace import OWL, RDF, SKOS
    except ImportError:
        raise ValueError(
            f"A SKOS vocabulary needs rdflib: pip install 'ldsm[skos]'. Got {printable(path)}."
        ) from None
    graph = rdflib.Graph()
    text = read_rdf(path, form, max_line_length)
    try:
        graph.parse(data=text, format=form)
    except Exception as error:  # rdflib's parsers raise many kinds
        problem = " ".join(str(error).split())
        raise ValueError(f"{printable(path)} is not SKOS as {form}: {problem:.200}") from None
    concepts = []
    for concept in sorted(graph.subjects(RDF.type, SKOS.Concept), key=str):
        if (concept, OWL.deprecated, rdflib.Literal(True)) in graph:
            continue
        preferred = sorted(_literals(graph.objects(concept, SKOS.prefLabel)))
        others = [
            name
            for kind in (SKOS.altLabel, SKOS.hiddenLabel)
            for name in sorted(_literals(graph.objects(concept, kind)))
        ]
        groups = {
            *graph.objects(concept, SKOS.inScheme),
            *graph.subjects(SKOS.member, concept),
            *graph.objects(concept, RDF.type),
        }
        named = sorted(str(group) for group in groups - {SKOS.Concept})
        concepts.append(Concept(str(concept), dict(preferred), tuple(others), tuple(named)))
    return concepts


def _literals(values: Iterable[Any]) -> Iterable[tuple[str, str]]:
    named = ((getattr(value, "language", None) or "", str(value).strip()) for value in values)
    return ((language, name) for language, name in named if name)
