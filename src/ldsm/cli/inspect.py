"""``ldsm inspect``: show the contents of a model file."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from .._features.blocks import READS, SUB_WORDS
from .._model.facts import model_facts, shown_history, shown_params
from .._model.sets.thresholds import plain_threshold
from .._ranking.blend import SIGNALS
from .._ranking.parts import PARTS
from .._ranking.stage import SecondStage
from .._wording import number, size, warn
from ..text import TextTagger
from ..text.fitted import fitted_text
from .model import Model, open_model
from .options.model import ModelArgument
from .screen import Screen

# Names of the statistics in `Forest.tree_statistics` and in the table's head.
COLUMNS = {
    "nodes": "nodes",
    "leaves": "leaves",
    "depth": "depth",
    "mean_leaf_depth": "mean depth",
    "leaves_per_row": "leaves per row",
    "weights": "weights",
    "balancedness": "balance",
    "purity": "purity",
    "leaf_entropy": "entropy",
}


def inspect_command(
    screen: Screen,
    model: ModelArgument,
    labels: Annotated[bool, typer.Option("--labels", hidden=True)] = False,
) -> None:
    """Show a model: parameters, sizes, the second stage, and the statistics of every tree.

    The depth is compared with log_M K, the depth of a perfectly balanced tree of arity M with one
    leaf per label. "Leaves per row" is the mean number of leaves that a training row reaches; 1
    means that every row took one path.

    The second stage blends several signals about a row and a label into log-odds: the scores of the
    trees and of the index from features to labels, the margin and the log-likelihood of the label's
    linear classifier, the label's count of training rows, and the squared distance to the label's
    centroid. Sizes are sizes in memory.
    """
    opened = open_model(model)
    if labels:
        warn(
            "--labels is deprecated and will be removed in 0.4: use `ldsm labels MODEL`.",
            FutureWarning,
        )
        _list_labels(screen, opened)
        return
    stage, threshold = opened.fitted.second_stage, plain_threshold(opened.fitted.threshold)
    facts: dict[str, Any] = {
        "file": str(model),
        "kind": opened.kind,
        "fingerprint": opened.estimator.fingerprint_,
        "file_size": model.stat().st_size,
        **model_facts(opened.fitted),
        "size_of_trees": opened.fitted.forest.nbytes,
        "encoder": _encoder_facts(opened),
        "threshold": "one per label" if threshold is None else threshold,
        "reading": opened.fitted.training.get("reading"),
        "history": opened.fitted.training.get("history", []),
        "params": opened.classifier.get_params(deep=False),
        "second_stage": None if stage is None else describe_stage(stage),
    }
    statistics = opened.fitted.forest.tree_statistics()
    if screen.json:
        screen.data({**facts, "tree_statistics": statistics})
        return
    params = shown_params(facts.pop("params"), opened.fitted, number)
    described, _ = facts.pop("second_stage"), facts.pop("tree_params")
    reading, _ = facts.pop("reading"), facts.pop("history")
    reading = reading if isinstance(reading, dict) else {}
    reading = {str(k).replace("_", " "): str(v) for k, v in reading.items()}
    shown = {name.replace("_", " "): value for name, value in facts.items()}
    shown["features"] = opened.counted_features()
    shown[f"log_{opened.fitted.forest.arity} of labels"] = shown.pop("log M K")
    for name in ("file size", "memory", "size of trees"):
        shown[name] = size(shown[name])
    if (encoder := shown.pop("encoder")) is not None:
        used = "" if encoder["used"] else ", not used"
        shown["encoder"] = f"{encoder['name']}, {encoder['dimensions']:,} dimensions{used}"
    shown["fingerprint"] = shown["fingerprint"][:16] + "…"
    stage_facts = _stage_facts(described)
    changes = shown_history(opened.fitted)
    groups = {"model": shown, "since training": changes, "data read with": reading}
    groups |= {"parameters": params, "second stage": stage_facts}
    screen.facts({title: facts for title, facts in groups.items() if facts})
    if described is not None:
        terms = [[name, f"{value:+.4f}"] for name, value in described["coefficients"].items()]
        screen.table(["signal", "coefficient"], terms, title="second stage, log-odds")
    rows: list[list[Any]] = [
        [str(tree), *(statistics[name][tree] for name in COLUMNS)]
        for tree in range(opened.fitted.forest.n_trees)
    ]
    rows.append(["mean", *(np.mean(statistics[name]) for name in COLUMNS)])
    screen.table(["tree", *COLUMNS.values()], rows, title="trees", bold_row=len(rows) - 1)


def _encoder_facts(model: Model) -> dict[str, Any] | None:
    """The encoder of a model that was trained with one; it is used if it improved the blend."""
    if not isinstance(model.estimator, TextTagger):
        return None
    encoder = fitted_text(model.estimator).encoder
    if encoder is None:
        return None
    used = model.fitted.reads_dense
    return {"name": encoder.name, "dimensions": encoder.width, "used": used}


def _list_labels(screen: Screen, model: Model) -> None:
    names, counts = model.fitted.classes.tolist(), model.fitted.label_counts.tolist()
    if screen.json:
        screen.data(dict(zip(map(str, names), counts, strict=True)))
        return
    order = sorted(range(len(names)), key=lambda i: (-counts[i], i))
    screen.table(["label", "training rows"], [[str(names[i]), counts[i]] for i in order])


_TITLES = {"sub_index": "index of sub-words", "names": "index of names"}


def describe_stage(stage: SecondStage) -> dict[str, Any]:
    """The second stage: its blend, and the sizes of its parts."""
    blend = stage.blend
    names = [
        " x ".join(SIGNALS[letter].name for letter in term) or "constant" for term in blend.terms
    ]
    described: dict[str, Any] = {
        "kind": blend.kind,
        "shortlist": stage.length,
        "coefficients": dict(zip(names, blend.coefficients, strict=True)),
    }
    described |= blend.formula
    for name, part in stage.parts.items():
        entries = part.weights_per_owner
        owner = _owner(name)
        described[name] = {
            "bytes": part.nbytes,
            f"{owner}s": int(np.count_nonzero(entries)),
            f"weights_per_{owner}": float(entries.mean()) if len(entries) else 0.0,
        }
    return described


def _owner(part: str) -> str:
    """What the lists of weights of a part belong to."""
    return "sub_word" if READS[part] == (SUB_WORDS,) else PARTS[part].OWNER


def _stage_facts(stage: dict[str, Any] | None) -> dict[str, Any]:
    if stage is None:
        return {"second stage": "none (scores of the trees only)"}
    shown = {"second stage": stage["kind"]}
    for name, title in {"tree_share": "trees' share", "gamma": "gamma"}.items():
        if name in stage:
            shown[title] = f"{stage[name]:g}"
    shown["shortlist"] = f"{stage['shortlist']} labels"
    for name in PARTS:
        if name in stage:
            owner, part = _owner(name), stage[name]
            title, words = _TITLES.get(name, name), owner.replace("_", "-")
            shown[title] = size(part["bytes"])
            shown[f"{title}: {words}s"] = number(part[f"{owner}s"])
            shown[f"{title}: weights per {words}"] = f"{part[f'weights_per_{owner}']:,.1f}"
    return shown
