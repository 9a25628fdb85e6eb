"""An encoder from a folder or an ``.onnx`` file, as sentence-transformers exports it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._execution.threads import starting_threads, state_of, worker_count
from ..._storage.paths import printable

# The places of the graph in a folder, the first one first.
_GRAPHS = ("model.onnx", "onnx/model.onnx")
_TOKENIZER, _SETTINGS = "tokenizer.json", "sentence_bert_config.json"
_POOLING = "1_Pooling/config.json"
_MEAN, _FIRST = "pooling_mode_mean_tokens", "pooling_mode_cls_token"
MOST_TOKENS = 512  # of a text, if neither file says how many the encoder takes
_WHOLE_TEXT = "sentence_embedding"
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class OnnxEncoder:
    """Encodes each text by itself, so that its vector does not depend on other texts.

    Only the first tokens of a longer text count: as many as the encoder was made for, which
    ``sentence_bert_config.json`` or the tokenizer says.
    """

    def __init__(self, path: Path, n_jobs: int | None = None) -> None:
        self.path, self.n_jobs = path, n_jobs
        self.graph, self.folder = _files(path)
        self.name = (path if path.is_dir() else self.folder).resolve().name or path.stem
        self._opened  # noqa: B018 - raises errors now

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_opened")

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self._opened  # noqa: B018 - once, rather than in each thread
        n_workers = min(worker_count(self.n_jobs), len(texts))
        if n_workers <= 1:
            return np.stack([self._vector(text) for text in texts])
        with ThreadPoolExecutor(n_workers) as pool, starting_threads(n_workers):
            try:
                return np.stack(list(pool.map(self._vector, texts)))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _vector(self, text: str) -> NDArray[np.float32]:
        session, tokenizer, names, wanted = self._opened
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        values = (ids, np.ones_like(ids), np.zeros_like(ids))
        given = {name: value for name, value in zip(_INPUTS, values, strict=True) if name in names}
        output: NDArray[np.float32] = session.run([wanted], given)[0][0]
        if output.ndim > 1:  # a vector for each token
            output = output[0] if self._reads_first_token else output.mean(axis=0)
        return output

    @cached_property
    def _reads_first_token(self) -> bool:
        """Whether the first token stands for the text; usually the mean of all tokens does."""
        settings = self._settings(_POOLING)
        chosen = {name for name in settings if name.startswith("pooling_mode_") and settings[name]}
        if chosen - {_MEAN, _FIRST} or len(chosen) > 1:
            raise ValueError(
                f"The encoder {printable(self.path)} must take the mean of its tokens or the first "
                f"one. Its {_POOLING} asks for {', '.join(sorted(chosen))}."
            )
        return chosen == {_FIRST}

    @cached_property
    def _opened(self) -> tuple[Any, Any, set[str], str]:
        """The graph, the tokenizer, and the names of the graph's inputs and of its output.

        The output is the vectors of texts where the graph makes them, else the first, of tokens.
        """
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ValueError(
                f"An encoder from a file needs the package {error.name}: "
                "pip install 'ldsm[encoder]'"
            ) from None
        options = onnxruntime.SessionOptions()
        # Texts are what runs in parallel.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            session = onnxruntime.InferenceSession(
                str(self.graph), options, providers=["CPUExecutionProvider"]
            )
            tokenizer = Tokenizer.from_file(str(self.folder / _TOKENIZER))
        except Exception as error:  # of the two packages, which have no common base
            raise ValueError(
                f"The encoder {printable(self.path)} cannot be opened: {error}"
            ) from None
        names = {one.name for one in session.get_inputs()}
        if unknown := names - set(_INPUTS):
            raise ValueError(
                f"The encoder {printable(self.path)} must read {', '.join(_INPUTS)}. "
                f"It also needs {min(unknown)!r}."
            )
        limit = (tokenizer.truncation or {}).get("max_length", MOST_TOKENS)
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._most_tokens(limit))
        outputs = [one.name for one in session.get_outputs()]
        if _WHOLE_TEXT in outputs:
            return session, tokenizer, names, _WHOLE_TEXT
        self._reads_first_token  # noqa: B018 - raises errors now
        return session, tokenizer, names, outputs[0]

    def _most_tokens(self, limit: int) -> int:
        """The number of tokens of a text that count; `limit` is that of the tokenizer."""
        found = self._settings(_SETTINGS).get("max_seq_length")
        return found if type(found) is int and found > 0 else limit

    def _settings(self, name: str) -> dict[str, Any]:
        """A JSON file beside the graph or one folder above it; empty without the file."""
        for folder in (self.graph.parent, self.graph.parent.parent):
            file = folder / name
            if file.is_file():
                try:
                    settings = json.loads(file.read_text("utf-8"))
                except (OSError, ValueError) as error:
                    raise ValueError(f"{printable(file)} cannot be read: {error}") from None
                if not isinstance(settings, dict):
                    raise ValueError(f"{printable(file)} must hold an object.")
                return settings
        return {}


def _files(path: Path) -> tuple[Path, Path]:
    """The graph, and the folder with its tokenizer; a ValueError if one is missing."""
    shown = printable(path)
    if path.is_dir():
        graph = next((path / name for name in _GRAPHS if (path / name).is_file()), None)
        if graph is None:
            raise ValueError(f"The encoder {shown} must hold {' or '.join(_GRAPHS)}. Got neither.")
    elif path.is_file():
        if path.suffix != ".onnx":
            raise ValueError(f"The encoder must be a folder or an .onnx file. Got {shown}.")
        graph = path
    else:
        raise ValueError(f"The encoder {shown} does not exist.")
    for folder in (graph.parent, graph.parent.parent):
        if (folder / _TOKENIZER).is_file():
            return graph, folder
    raise ValueError(f"The encoder {shown} must have a {_TOKENIZER} beside it.")
