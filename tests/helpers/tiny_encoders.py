"""Small encoders, as functions and as files, and texts of which they know more than words do.

Every text has words of its own that mean the same as those of other texts: `w7`, `w37` and `w67`
all mean 7.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

N_MEANINGS, WIDTH = 30, 16
_VECTORS = np.random.default_rng(0).normal(size=(N_MEANINGS + 1, WIDTH))


def encode(texts: Sequence[str]) -> NDArray[Any]:
    """The sums of the vectors of what the words mean."""
    return np.array(
        [_VECTORS[[_meaning(word) for word in text.split()]].sum(axis=0) for text in texts]
    )


def _meaning(word: str) -> int:
    return int(word[1:]) % N_MEANINGS if word[1:].isdigit() else N_MEANINGS


def texts_and_tags(n: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts with two tags each, of which each is meant by one rare word."""
    rng = np.random.default_rng(seed)
    meanings = rng.integers(0, N_MEANINGS, size=(n, 2)).tolist()
    others = rng.integers(0, 60, size=(n, 2)).tolist()
    texts = [
        " ".join(f"w{meaning + N_MEANINGS * other}" for meaning, other in zip(*pair, strict=True))
        for pair in zip(meanings, others, strict=True)
    ]
    return texts, [sorted({f"t{meaning}" for meaning in row}) for row in meanings]


_WORDS = ("[UNK]", "[CLS]", "herring", "cod", "the", "sea")


def write_onnx(
    folder: Path,
    *,
    whole_text: bool = False,
    first_token: bool = False,
    most_tokens: int | None = None,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    words: Sequence[str] = _WORDS,
    vectors: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """A folder with a tokenizer and a graph that looks up the vectors of words; returns these."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    if vectors is None:
        vectors = np.random.default_rng(1).normal(size=(len(words), 4)).astype(np.float32)
    width = vectors.shape[1]
    nodes = [helper.make_node("Gather", ["vectors", "input_ids"], ["tokens"])]
    outputs = [("tokens", ["n", "m", width])]
    if whole_text:
        nodes.append(
            helper.make_node("ReduceMax", ["tokens", "axes"], ["sentence_embedding"], keepdims=0)
        )
        outputs.append(("sentence_embedding", ["n", width]))
    constants = [
        numpy_helper.from_array(vectors, "vectors"),
        numpy_helper.from_array(np.array([1]), "axes"),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "m"]) for name in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs],
        initializer=constants[: 2 if whole_text else 1],
    )
    opset = helper.make_opsetid("", 18)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), folder / "model.onnx")
    numbers = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", 1)]
    )
    tokenizer.enable_padding(length=8)
    tokenizer.save(str(folder / "tokenizer.json"))
    if most_tokens is not None:
        settings = {"max_seq_length": most_tokens}
        (folder / "sentence_bert_config.json").write_text(json.dumps(settings))
    if first_token:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    return vectors


def write_meanings(folder: Path) -> None:
    """A folder with an encoder for the texts of `texts_and_tags`."""
    words = ["[UNK]", "[CLS]", *(f"w{i}" for i in range(60 * N_MEANINGS))]
    vectors = np.concatenate([np.zeros((2, WIDTH)), encode(words[2:])]).astype(np.float32)
    vectors[0] = encode(["unknown"])[0]
    write_onnx(folder, words=words, vectors=vectors)
