"""Load model files with a valid checksum and one field at its extremes: run as a program.

Usage: python crafted_model.py FILE EVERY

Every EVERYth of the crafted copies of FILE is loaded, asked for predictions, explained and
inspected; then it learns, gets other labels, is saved and loaded again. Prints one JSON line: how
many were made, what became of them, the slowest with its name, and the most memory over what the
intact file took. Any exception but a ModelFileError at load, or a ValueError or MemoryError of a
prediction, ends the program. Files that are loaded without verification are only asked.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import ldsm
from ldsm import load
from ldsm._model.facts import model_facts, shown_params
from ldsm._storage.container import ModelFileError
from ldsm.cli.inspect import describe_stage
from model_bytes import put_together, take_apart
from model_changes import change, dense
from process_memory import now_bytes, peak_bytes

TEXTS = ["Cod and herring, pêche!", "a" * 60, ""]
NUMBERS = [-(2**63), -(2**31), -1, 0, 1, 2, 3, 255, 65535, 2**28, 2**28 + 1]
NUMBERS += [2**31 - 9, 2**31 - 1, 2**31, 2**48, 2**48 + 1, 2**53, 2**63 - 1, 2**64, 10**30]
FLOATS = [0.5, -0.5, 1e-320, 1e308, float("nan"), float("inf"), float("-inf")]
OTHERS: list[Any] = [None, True, False, "", "auto", "x" * 70_000, "\ud800", "a\0b", "(?:a+)+$"]
OTHERS += [[], [[]], [0] * 1000, {}, {"": 0}, [1, 10**9], [-1, 2], ["a"] * 5]
DTYPES = {"I8": "i1", "U8": "u1", "I16": "i2", "U16": "u2", "I32": "i4", "I64": "i8", "U64": "u8"}
DTYPES |= {"F16": "f2", "F32": "f4", "F64": "f8"}


def crafted(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Copies of a file with a name that tells what is wrong with each."""
    header, body = take_apart(data)
    yield from _headers(header, body)
    for name in header:
        if name not in ("__metadata__", "checksum"):
            yield from _arrays(header, body, name)


def _headers(header: dict, body: bytes) -> Iterator[tuple[str, bytes]]:
    """Every entry of the header, however deep, with every odd value, or missing."""
    for entry, text in header["__metadata__"].items():
        try:
            stored = json.loads(text)
        except ValueError:
            stored = text
        for path in paths_of(stored):
            for value in (*NUMBERS, *FLOATS, *OTHERS, MISSING):
                changed = with_change(stored, path, value)
                metadata = dict(header["__metadata__"])
                if changed is MISSING:
                    del metadata[entry]
                else:
                    metadata[entry] = changed if isinstance(stored, str) else json.dumps(changed)
                    if not isinstance(metadata[entry], str):
                        metadata[entry] = str(metadata[entry])
                name = f"{entry}{list(path)} = {value!r:.40}"
                yield name, put_together({**header, "__metadata__": metadata}, body)


def _arrays(header: dict, body: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    """One array with an extreme entry, in another order, cut, longer or of another type."""
    described = header[name]
    begin, end = described["data_offsets"]
    dtype = np.dtype("<" + DTYPES[described["dtype"]])
    array = np.frombuffer(body[begin:end], dtype)
    if dtype.kind == "f":
        extremes = [np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).tiny, -1, 0, 1]
    else:
        info = np.iinfo(dtype)
        known = (-1, 0, 1, 2, 255, 2**31 - 1, 2**48, 2**48 + 1)
        extremes = [info.min, info.max, info.max - 1]
        extremes += [n for n in known if info.min <= n <= info.max]
    variants = {}
    for place in {0, len(array) // 2, len(array) - 1} if len(array) else ():
        for value in extremes:
            other = array.copy()
            other[place] = value
            variants[f"[{place}] = {value}"] = other
    for value in extremes:
        variants[f"all {value}"] = np.full_like(array, value)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            variants["times 1e10"] = array * dtype.type(1e10)
    variants |= {"reversed": array[::-1], "sorted": np.sort(array), "rolled": np.roll(array, 1)}
    for what, other in variants.items():
        yield f"{name} {what}", put_together(header, body[:begin] + other.tobytes() + body[end:])
    shape = described["shape"]
    for what, rows in (("empty", 0), ("shorter", shape[0] - 1), ("longer", shape[0] + 1)):
        if rows < 0:
            continue
        other = np.resize(array, (rows, *shape[1:])) if len(array) else np.zeros(rows, dtype)
        yield f"{name} {what}", _resized(header, body, name, other.tobytes(), rows, None)
    for kind in DTYPES:
        if kind != described["dtype"]:
            with np.errstate(invalid="ignore", over="ignore"):
                other = array.astype(DTYPES[kind], casting="unsafe")
            yield f"{name} as {kind}", _resized(header, body, name, other.tobytes(), None, kind)
    yield f"{name} missing", _resized(header, body, name, b"", -1, None)


def _resized(
    header: dict, body: bytes, name: str, data: bytes, rows: int | None, kind: str | None
) -> bytes:
    """The file with other bytes for one array; all that follow it move."""
    begin, end = header[name]["data_offsets"]
    by = len(data) - (end - begin)
    out = {}
    for other, described in header.items():
        if other == "__metadata__" or described["data_offsets"][0] < end:
            out[other] = described
        else:
            out[other] = {**described, "data_offsets": [n + by for n in described["data_offsets"]]}
    shape = header[name]["shape"]
    changed = {**header[name], "data_offsets": [begin, begin + len(data)]}
    if rows is not None:
        changed["shape"] = [rows, *shape[1:]]
    if kind is not None:
        changed["dtype"] = kind
    out[name] = changed
    if rows == -1:
        del out[name]
    return put_together(out, body[:begin] + data + body[end:])


MISSING = object()


def paths_of(value: Any) -> Iterator[tuple]:
    yield ()
    items = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = list(enumerate(value))[:3]
    for key, item in items:
        yield from ((key, *rest) for rest in paths_of(item))


def with_change(value: Any, path: tuple, to: Any) -> Any:
    if not path:
        return to
    copy = value.copy()
    changed = with_change(copy[path[0]], path[1:], to)
    if changed is MISSING:
        copy.pop(path[0])
    else:
        copy[path[0]] = changed
    return copy


def main(path: str, every: int) -> dict:
    data = Path(path).read_bytes()
    ask(load(path))
    before, slowest, made = now_bytes(), (0.0, ""), 0
    outcomes: Counter[str] = Counter()
    for number, (name, copy) in enumerate(crafted(data)):
        if number % every:
            continue
        made += 1
        for verify in (True, False):
            started = time.process_time()
            try:
                outcomes[outcome(copy, verify)] += 1
            except Exception:
                print(f"{name}, verify={verify}", file=sys.stderr)
                raise
            slowest = max(slowest, (time.process_time() - started, name))
    memory = peak_bytes() - before
    return {"made": made, "slowest": slowest, "memory": memory, "outcomes": dict(outcomes)}


def outcome(data: bytes, verify: bool) -> str:
    with tempfile.NamedTemporaryFile(suffix=".ldsm") as file:
        file.write(data)
        file.flush()
        try:
            model = load(file.name, verify)
        except ModelFileError as error:
            assert file.name in str(error) and "\n" not in str(error), str(error)
            return "refused"
        try:
            ask(model)
        except (ValueError, MemoryError):  # what was let in may find that it cannot answer
            return "gave up"
        if not verify:  # such a model cannot learn, and what it would save was not checked
            return "answered"
        change(model)
        model.save(file.name)
        ask(load(file.name))
        return "saved"


def ask(model: ldsm.LdSMClassifier | ldsm.TextTagger) -> None:
    if isinstance(model, ldsm.TextTagger):
        model.predict(TEXTS, k=1), model.predict_sets(TEXTS), str(model.explain(TEXTS[0]))
        assert isinstance(model.rare_tags_, dict)
        model = model.classifier_
    fitted = model.model_
    n = fitted.n_features
    columns = np.unique(np.linspace(0, max(0, n - 1), 5).astype(np.int64))[:n].astype(np.int32)
    one = sp.csr_array(
        (np.ones(len(columns), np.float32), columns, [0, len(columns)]), shape=(1, n)
    )
    rows = sp.csr_array(sp.vstack([one] * 3))
    k = min(3, fitted.n_labels)
    if fitted.feature_names is None:
        three, single = dense(model, 3), dense(model, 1)
        model.predict_topk(rows, k=k, **three), model.predict(rows, **three)
        model.predict_topk(one, k=k, tail=0.5, **single), model.explain_scores(one, **single)
        model.decision_path(rows), model.explain(one)
    model_facts(fitted), shown_params(model.get_params(deep=False), fitted, str)
    fitted.forest.tree_statistics(), model.fingerprint_, model.classes_[:3], model.training_
    if fitted.second_stage is not None:
        describe_stage(fitted.second_stage)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
