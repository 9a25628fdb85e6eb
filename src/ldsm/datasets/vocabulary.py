"""Vocabularies: what labels are called, and labels that no training row has.

A vocabulary is a list of concepts. Data may name a concept by its identifier, such as a URI, or by
its preferred name in one language: which of these, the labels of the data tell.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._arrays.matrices import map_columns
from .._storage.csv_rows import BrokenRow, csv_rows
from .._storage.paths import PathLike, printable
from .._storage.strings import is_unicode
from .._storage.text_files import UTF8, format_suffix, malformed, read_lines

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_RDF = {".ttl": "turtle", ".nt": "nt", ".rdf": "xml", ".xml": "xml", ".jsonld": "json-ld"}
_HEADERS = ({"label", "name"}, {"uri", "label"}, {"id", "name"}, {"label"}, {"name"})
_FORMS = "a file, a list of labels, or a dict of labels and their names"
Names = dict[str, list[str]]  # of each label


class Concept(NamedTuple):
    """One entry of a vocabulary."""

    identifier: str
    preferred: Mapping[str, str]  # by language, "" for none
    others: tuple[tuple[str, str], ...] = ()  # alternative names: (language, name)


def read_vocabulary(path: PathLike, *, encoding: str = UTF8) -> list[Concept]:
    """Read what labels are called from a file.

    Parameters
    ----------
    path : path
        ``.tsv``, ``.csv`` or ``.txt``: a label and one of its names in each line; a label may have
        several lines, or no second column. A header line such as ``label,name`` is passed over, and
        further columns are ignored. ``.ttl``, ``.nt``, ``.rdf``, ``.xml`` or ``.jsonld``: a SKOS
        vocabulary, for which ``pip install "ldsm[skos]"`` is needed; concepts that are marked as
        deprecated are left out. Plain, ``.gz`` or ``.bz2``.
    encoding : str, default="utf-8"
        Of a table.

    Returns
    -------
    list of Concept

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("names.tsv").write_text("fisheries\\tfishing industry\\nfisheries\\tfishery\\n")
    >>> read_vocabulary("names.tsv")
    [Concept(identifier='fisheries', preferred={'': 'fishing industry'}, others=(('', 'fishery'),))]
    """
    suffix = format_suffix(path)
    if suffix in _DELIMITERS:
        concepts = _from_table(path, _DELIMITERS[suffix], encoding)
    elif suffix in _RDF:
        concepts = _from_skos(path, _RDF[suffix])
    else:
        known = ", ".join([*_DELIMITERS, *_RDF])
        raise ValueError(
            f"A vocabulary must be a file whose name ends in {known}. Got {printable(path)}."
        )
    if not concepts:
        raise ValueError(f"A vocabulary must have at least one label. Got {printable(path)}.")
    return concepts


def label_names(vocabulary: Any, labels: Iterable[str]) -> Names:
    """What the labels of the data are called, and further labels that the vocabulary knows.

    `vocabulary` may be a file, concepts, labels, or a mapping of labels to a name or names.
    """
    if isinstance(vocabulary, (str, os.PathLike)):
        concepts = read_vocabulary(vocabulary)
    else:
        concepts = [*_given(vocabulary)]
    seen = set(labels)
    ways = Counter(way for concept in concepts for way, key in _keys(concept) if key in seen)
    if not ways:
        example = concepts[0].identifier if concepts else "nothing"
        raise ValueError(
            f"The vocabulary must name labels of the data, such as {min(seen, default='')!r:.80}. "
            f"Got none of them, but {example!r:.80}."
        )
    # As identifiers, or by a language: what fits most labels.
    way = max(ways, key=lambda way: (ways[way], way))
    out: Names = {}
    for concept in concepts:
        label = dict(_keys(concept)).get(way)
        if label is not None:
            known = out.setdefault(label, [])
            known += [name for name in _names(concept, way) if name not in known]
    return {label: names or [label] for label, names in out.items()}


def with_labels(
    Y: Any, labels: Sequence[str], further: Iterable[str]
) -> tuple[sp.csr_array, list[str]]:
    """A matrix of rows and labels with empty columns for further labels; all of them sorted."""
    names = sorted({*labels, *further})
    number = {name: i for i, name in enumerate(names)}
    moved = np.array([number[label] for label in labels], dtype=np.int64)
    return map_columns(Y, moved, len(names)), names


def _keys(concept: Concept) -> Iterable[tuple[str, str]]:
    """How data may name a concept: as (way, label). A way is "id" or "name" and a language."""
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
            others = tuple(("", _checked(name)) for name in several)
            yield Concept(_checked(label), {}, others)
        return
    if not isinstance(vocabulary, Iterable):
        raise ValueError(f"The 'vocabulary' parameter must be {_FORMS}. Got {vocabulary!r:.80}.")
    for entry in vocabulary:
        yield entry if isinstance(entry, Concept) else Concept(_checked(entry), {})


def _checked(name: Any) -> str:
    if not isinstance(name, str) or not is_unicode(name):
        raise ValueError(f"A vocabulary's labels and names must be str. Got {name!r:.80}.")
    return str(name)


def _from_table(path: PathLike, delimiter: str, encoding: str) -> list[Concept]:
    names: dict[str, list[str]] = {}
    lines = read_lines(path, encoding=encoding, keep_ends=True)
    try:
        for place, (number, cells) in enumerate(csv_rows(lines, delimiter)):
            row = [cell.strip() for cell in cells]
            if not any(row) or (place == 0 and {cell.lower() for cell in row[:2]} in _HEADERS):
                continue
            # URIs may stand in angle brackets, as Annif has them.
            label = row[0][1:-1] if row[0].startswith("<") and row[0].endswith(">") else row[0]
            if not label:
                raise malformed(path, number, "a line without a label", delimiter.join(cells))
            known = names.setdefault(label, [])
            if len(row) > 1 and row[1] and row[1] not in known:
                known.append(row[1])
    except BrokenRow as error:
        raise malformed(path, error.number, str(error), error.text) from None
    # Data may name a concept by its first name instead.
    return [
        Concept(label, {"": its[0]} if its else {}, tuple(("", name) for name in its[1:]))
        for label, its in names.items()
    ]


def _from_skos(path: PathLike, form: str) -> list[Concept]:
    try:
        import rdflib  # an optional extra
        from rdflib.namespace import OWL, RDF, SKOS
    except ImportError:
        raise ValueError(
            f"A SKOS vocabulary needs rdflib: pip install 'ldsm[skos]'. Got {printable(path)}."
        ) from None
    graph = rdflib.Graph()
    text = "".join(line for _, line in read_lines(path, keep_ends=True))
    try:
        graph.parse(data=text, format=form)
    except Exception as error:  # rdflib's parsers raise many kinds
        problem = str(error).strip().partition("\n")[0]
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
        concepts.append(Concept(str(concept), dict(preferred), tuple(others)))
    return concepts


def _literals(values: Iterable[Any]) -> Iterable[tuple[str, str]]:
    return ((getattr(value, "language", None) or "", str(value)) for value in values)
