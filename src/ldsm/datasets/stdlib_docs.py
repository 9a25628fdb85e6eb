"""A text corpus that comes with Python: the docstrings of its standard library.

A document is the docstring of an object; its tags are the object's module, kind and name. Sources
are parsed, never run. Modules written in C, which have no sources, are imported from a fixed list
of modules whose import has no side effects.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import sys
import sysconfig
import types
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Literal, overload

from .dataset import Dataset

# Excluded: tests, parts that Linux distributions package separately (the corpus should depend only
# on the version of Python), and character tables.
_LEFT_OUT = """
    dist-packages distutils encodings ensurepip idlelib lib2to3 pydoc_data site-packages test tests
    tkinter turtle turtledemo venv
"""

# Private modules that hold the documented sources of a public one. `_pyio` is not among them: `_io`
# below has the same words.
_SOURCES = {
    "_collections_abc": "collections.abc",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
}

# Modules in C whose import has no side effects. Their objects belong to the module of the same name
# without the underscore, or to the one after the colon. A missing module is skipped.
_COMPILED = """
    builtins _asyncio _bisect _bz2 _codecs _collections _contextvars _csv _functools _heapq _io
    _locale _lzma _operator _pickle _queue _random _signal _socket _sqlite3 _ssl _stat _struct
    _thread:_thread _tracemalloc _warnings _weakref _zoneinfo array atexit binascii cmath
    faulthandler fcntl gc grp itertools marshal math mmap posix:os pwd pyexpat:xml.parsers.expat
    resource select sys syslog termios time unicodedata zlib
"""

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+")
_EXCEPTION = re.compile(r"(Error|Exception|Warning)$")
# Up to the blank line: the lines after a prompt are the output of the example.
_EXAMPLE = re.compile(r"^[ \t]*>>>.*(?:\n.*\S.*)*", re.MULTILINE)
_MIN_WORDS = 3


@overload
def load_stdlib_docs(*, min_count: int = ..., return_names: Literal[False] = ...) -> Dataset: ...
@overload
def load_stdlib_docs(
    *, min_count: int = ..., return_names: Literal[True]
) -> tuple[Dataset, list[str]]: ...
def load_stdlib_docs(
    *, min_count: int = 1, return_names: bool = False
) -> Dataset | tuple[Dataset, list[str]]:
    """Load the docstrings of this Python's standard library, tagged.

    A text is the prose of one docstring. Examples and the object's signature, which would give away
    the tags, are removed. No two texts have the same words, so held-out rows are new to a learner.
    The tags of an object are

    - ``module:zipfile``, its module, and ``package:xml``, ``package:xml.dom`` ..., its packages;
    - ``kind:function``, or class, exception, method, classmethod, staticmethod, property, module;
      also ``kind:coroutine`` for ``async`` functions;
    - ``name:file``, each word of its name and of its class's name;
    - ``base:Exception``, each base of a class.

    The corpus is the same for all installations of one Python version on one platform, except for
    modules that were left out of the build.

    Parameters
    ----------
    min_count : int, default=1
        Tags with fewer texts are dropped; about half of all words of names occur once.
    return_names : bool, default=False
        Whether to return the qualified names of the objects as well.

    Returns
    -------
    data : Dataset
        With `texts`, `Y` and `label_names`, in the order of the qualified names.
    names : list of str
        Qualified name of each text's object; only if `return_names`.

    Examples
    --------
    >>> from ldsm.datasets import load_stdlib_docs
    >>> data, names = load_stdlib_docs(return_names=True)
    >>> len(data) > 5000
    True
    >>> data.labels[names.index("json.dumps")]
    ['kind:function', 'module:json', 'name:dumps', 'package:json']
    """
    if isinstance(min_count, bool) or not isinstance(min_count, int) or min_count < 1:
        raise ValueError(
            "The 'min_count' argument of load_stdlib_docs must be an int of at least 1. "
            f"Got {min_count!r} instead."
        )
    objects = _documents()
    count = Counter(tag for item in objects for tag in item.tags)
    data = Dataset.from_texts(
        [item.doc for item in objects],
        [[tag for tag in item.tags if count[tag] >= min_count] for item in objects],
        source="docstrings of Python {}.{}.{}".format(*sys.version_info),
    )
    return (data, [item.name for item in objects]) if return_names else data


@dataclass(frozen=True)
class _Object:
    """A documented object: qualified name, docstring, tags."""

    name: str
    doc: str
    tags: frozenset[str]


@cache
def _documents() -> tuple[_Object, ...]:
    """All objects with enough text, sorted by name; the first of those with the same words."""
    by_words: dict[str, _Object] = {}
    for item in sorted((*_parsed(), *_imported()), key=lambda item: item.name):
        text = _prose(item.doc, item.name.rpartition(".")[2])
        words = re.findall(r"\w+", text.lower())
        if len(words) >= _MIN_WORDS:
            by_words.setdefault(" ".join(words), replace(item, doc=text))
    by_name: dict[str, _Object] = {}
    for item in by_words.values():
        # Keep the first of a function in Python and in C, or of a property and its setter.
        by_name.setdefault(item.name, item)
    return tuple(by_name.values())


def _describe(
    module: str, path: Sequence[str], doc: str | None, kinds: Sequence[str], bases: Iterable[str]
) -> Iterator[_Object]:
    """The object at `path` in a module, if it is public and has a docstring."""
    if not doc or any(name.startswith("_") and not name.endswith("__") for name in path):
        return
    parts = module.split(".")
    around = (".".join(parts[: end + 1]) for end in range(len(parts)))
    tags = {f"module:{module}", *(f"kind:{kind}" for kind in kinds)}
    tags |= {f"package:{name}" for name in around if _is_package(name)}
    tags |= {
        f"name:{word.lower()}" for name in path for word in _WORD.findall(name) if len(word) > 1
    }
    tags |= {f"base:{base}" for base in bases if base != "object"}
    yield _Object(".".join([module, *path]), inspect.cleandoc(doc), frozenset(tags))


@cache
def _is_package(name: str) -> bool:
    return _root().joinpath(*name.split("."), "__init__.py").is_file()


def _root() -> Path:
    return Path(sysconfig.get_paths()["stdlib"])


def _prose(doc: str, name: str) -> str:
    """A docstring without examples and without calls of `name` that begin a line."""
    call = rf"^[ \t]*(?:\w+\.)*{re.escape(name)}\((?:[^()]|\([^()]*\))*\)[ \t]*(?:->|--|:)?[ \t]*"
    prose = re.sub(call, "", _EXAMPLE.sub("", doc), flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", prose).strip()


def _parsed() -> Iterator[_Object]:
    """Objects of the modules written in Python, from their sources."""
    left_out = _LEFT_OUT.split()
    for folder, folders, files in os.walk(_root()):
        folders[:] = sorted(name for name in folders if name not in left_out)
        inside = Path(folder).relative_to(_root()).parts
        for file in sorted(files):
            name, extension = os.path.splitext(file)
            parts = [*inside, name] if name != "__init__" else list(inside)
            if extension != ".py" or name in ("__main__", *left_out) or not parts:
                continue
            top = _SOURCES.get(parts[0], parts[0])
            if parts[0] not in sys.stdlib_module_names or top.startswith("_"):
                continue
            # The objects in a private file of a package belong to the package.
            public = [top, *takewhile(lambda part: not part.startswith("_"), parts[1:])]
            tree = _tree(Path(folder, file))
            if len(public) == len(parts):
                module = ast.get_docstring(tree, clean=False)
                yield from _describe(".".join(public), (), module, ["module"], ())
            yield from _definitions(".".join(public), (), tree.body)


def _tree(path: Path) -> ast.Module:
    with warnings.catch_warnings():
        # Warnings about old escapes in the library's strings do not concern the caller.
        warnings.simplefilter("ignore")
        return ast.parse(path.read_bytes(), str(path))


def _definitions(module: str, path: tuple[str, ...], body: Iterable[ast.stmt]) -> Iterator[_Object]:
    """Classes and functions of a module or class, also those under if, try or with."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
            raised = any(_EXCEPTION.search(name) for name in (node.name, *bases))
            inner = (*path, node.name)
            kinds = ["exception" if raised else "class"]
            bases = [base for base in bases if base.isidentifier()]
            yield from _describe(module, inner, ast.get_docstring(node), kinds, bases)
            yield from _definitions(module, inner, node.body)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kinds = [_function_kind(node, in_class=bool(path))]
            if isinstance(node, ast.AsyncFunctionDef):
                kinds.append("coroutine")
            yield from _describe(module, (*path, node.name), ast.get_docstring(node), kinds, ())
        else:
            for block in ("body", "orelse", "handlers", "finalbody"):
                yield from _definitions(module, path, getattr(node, block, ()))


def _function_kind(node: ast.FunctionDef | ast.AsyncFunctionDef, in_class: bool) -> str:
    for decorator in node.decorator_list:
        name = ast.unparse(decorator).rpartition(".")[2]
        if name in ("classmethod", "staticmethod", "property"):
            return name
        if name in ("cached_property", "setter", "deleter", "abstractproperty"):
            return "property"
    return "method" if in_class else "function"


def _imported() -> Iterator[_Object]:
    """Objects of the modules written in C."""
    for entry in _COMPILED.split():
        name, _, shown = entry.partition(":")
        public = shown or name.lstrip("_")
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if public == name:
            yield from _describe(public, (), module.__doc__, ["module"], ())
        for key, value in sorted(vars(module).items()):
            # Another name means an alias; programs may replace hooks.
            if getattr(value, "__name__", None) != key or key.endswith("hook"):
                continue
            if inspect.isbuiltin(value):
                yield from _describe(public, (key,), value.__doc__, ["function"], ())
            elif (
                inspect.isclass(value) and value.__module__.split(".")[0] in sys.stdlib_module_names
            ):
                yield from _compiled_class(public, value)


def _compiled_class(module: str, cls: type) -> Iterator[_Object]:
    kind = "exception" if issubclass(cls, BaseException) else "class"
    bases = [base.__name__ for base in cls.__bases__]
    yield from _describe(module, (cls.__name__,), cls.__doc__, [kind], bases)
    for name, member in sorted(vars(cls).items()):
        # Special methods of C types all say the same: "Return self+value."
        if name.startswith("_") or not isinstance(member.__doc__, str):
            continue
        if isinstance(member, classmethod | types.ClassMethodDescriptorType):
            kind = "classmethod"
        elif isinstance(member, staticmethod):
            kind = "staticmethod"
        elif inspect.isroutine(member):
            kind = "method"
        elif inspect.isdatadescriptor(member):
            kind = "property"
        else:
            continue
        yield from _describe(module, (cls.__name__, name), member.__doc__, [kind], ())
