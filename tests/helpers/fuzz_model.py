"""Load many damaged copies of a model file, and report. A separate program, because it may crash.

Usage: python fuzz_model.py FILE COUNT SEED

COUNT copies with one flipped byte, COUNT mutants loaded with and COUNT without verification. Those
that pass verification then learn, get other labels, are saved and loaded again. Prints one JSON
line: how many were refused, how many answered, the slowest load with predictions, memory over what
the intact file took, and every event of importing or running something during a load. Any other
exception than ModelFileError at load, or ValueError at predict, ends the program.
"""

import json
import sys
import tempfile
import time
from collections import Counter

import numpy as np
import scipy.sparse as sp

import ldsm
from ldsm import load  # brings in all that loading needs, before anybody watches
from ldsm._storage.container import ModelFileError
from model_bytes import put_together, seal, take_apart
from model_changes import change, dense
from process_memory import now_bytes, peak_bytes

FORBIDDEN = ("import", "exec", "compile", "code.", "marshal.", "pickle.", "ctypes.", "os.exec")
FORBIDDEN += ("os.fork", "os.posix_spawn", "os.spawn", "os.system", "subprocess.", "socket.")
TEXTS = ["Cod and herring, pêche!", "beef " * 20, ""]
events: list[str] = []
watching = False
slowest = 0.0


def watch(event: str, args: tuple) -> None:
    if watching and event.startswith(FORBIDDEN):
        events.append(f"{event} {args!r}"[:200])


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    out[rng.integers(len(out))] ^= int(rng.integers(1, 256))
    return bytes(out)


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    keep = int(rng.integers(len(data)))
    return data[:keep] if rng.random() < 0.7 else data[:keep] + data[keep + int(rng.integers(64)) :]


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes of one array replaced by noise or by extreme numbers, and sealed again."""
    out = bytearray(data)
    start = 8 + int.from_bytes(data[:8], "little")
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(start, len(out) - 40)) & ~3
        noise = [rng.bytes(4), b"\xff\xff\xff\x7f", b"\xff" * 4, b"\0" * 4, b"\0\0\xc0\x7f"]
        out[at : at + 4] = noise[rng.integers(len(noise))]
    return seal(bytes(out))


def resize(data: bytes, rng: np.random.Generator) -> bytes:
    """Sizes, places and types in the header swapped or replaced, and sealed again."""
    header, body = take_apart(data)
    names = [name for name in header if name != "__metadata__"]
    one, other = (header[names[i]] for i in rng.choice(len(names), 2, replace=False))
    key = ("dtype", "shape", "data_offsets")[rng.integers(3)]
    odd = [[0], [2**40], [-1], [2**63], "I64", None, 1.5, [0, 2**62 - 1], [[]], {}, True, [0, 0]]
    if rng.random() < 0.5:
        one[key], other[key] = other[key], one[key]
    elif rng.random() < 0.5 and key != "dtype":
        one[key] = [int(n + rng.integers(-9, 10)) for n in one[key]]
    else:
        one[key] = odd[rng.integers(len(odd))]
    return put_together(header, body)


def reword(data: bytes, rng: np.random.Generator) -> bytes:
    """Characters of the header replaced, deleted or doubled, and sealed again."""
    length = int.from_bytes(data[:8], "little")
    text, body = bytearray(data[8 : 8 + length]), data[8 + length : -32]
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(text)))
        piece = [
            b"",
            b'"',
            b"{",
            b"[",
            b"9",
            b"-",
            b"e9",
            b"null",
            b"\\",
            b"\xff",
            bytes(text[at:]),
        ]
        text[at : at + int(rng.integers(3))] = piece[rng.integers(len(piece))]
    return put_together(bytes(text[: 1 << 20]), body)


def relength(data: bytes, rng: np.random.Generator) -> bytes:
    lengths = [
        0,
        1,
        2**20,
        2**20 + 1,
        2**32,
        2**63 - 1,
        2**64 - 1,
        len(data),
        int(rng.integers(5000)),
    ]
    return lengths[rng.integers(len(lengths))].to_bytes(8, "little") + data[8:]


MUTATORS = [flip, cut, overwrite, overwrite, resize, resize, reword, relength]


def main(path: str, count: int, seed: int) -> dict:
    with open(path, "rb") as file:
        data = file.read()
    rng = np.random.default_rng(seed)
    loaded(path, False)  # the first load of a process must import nothing either
    model = loaded(path, True)
    n_features = getattr(model, "classifier_", model).n_features_in_
    rows = sp.csr_array((rng.random((3, n_features)) < 0.3).astype(np.float32))
    ask(model, rows)
    before = now_bytes()
    report: dict = {}
    for part, mutators, verify in [
        ("flips", [flip], True),
        ("verified mutants", MUTATORS, True),
        ("mapped mutants", MUTATORS, False),
    ]:
        outcomes = Counter(
            outcome(mutators[rng.integers(len(mutators))](data, rng), verify, rows)
            for _ in range(count)
        )
        report[part] = dict(outcomes)
    return {**report, "slowest": slowest, "memory": peak_bytes() - before, "events": events}


def outcome(mutant: bytes, verify: bool, rows: sp.csr_array) -> str:
    global slowest
    with tempfile.NamedTemporaryFile(suffix=".ldsm") as file:
        file.write(mutant)
        file.flush()
        start = time.process_time()
        try:
            model = loaded(file.name, verify)
            ask(model, rows)
        except ModelFileError as error:
            assert file.name in str(error) and "\n" not in str(error), str(error)
            return "refused"
        except ValueError:  # what was let in unverified may find that it cannot answer
            return "gave up"
        finally:
            slowest = max(slowest, time.process_time() - start)
        if verify:  # what is changed and saved can be loaded
            start = time.process_time()
            change(model)
            model.save(file.name)
            ask(load(file.name), None)
            slowest = max(slowest, time.process_time() - start)
        return "answered"


def loaded(path: str, verify: bool) -> ldsm.LdSMClassifier | ldsm.TextTagger:
    global watching
    try:
        watching = True
        return load(path, verify)
    finally:
        watching = False


def ask(model: ldsm.LdSMClassifier | ldsm.TextTagger, rows: sp.csr_array | None) -> None:
    """Of texts, if the model reads such, and of rows; None for rows without features."""
    if isinstance(model, ldsm.TextTagger):
        model.predict(TEXTS, k=1), model.predict_sets(TEXTS)
        model = model.classifier_
    if rows is None:
        rows = sp.csr_array((3, model.n_features_in_), dtype=np.float32)
    more = dense(model, 3)
    model.predict_topk(rows, k=1, **more), model.predict_proba(rows, **more)
    model.predict(rows, **more), model.explain_scores(rows[:1], **dense(model, 1))
    model.decision_path(rows), model.explain(rows[:1])


if __name__ == "__main__":
    sys.addaudithook(watch)
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
