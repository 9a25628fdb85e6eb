"""What a service tells Prometheus about itself."""

from __future__ import annotations

import os
from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from starlette.types import Scope

from .http.guards import path_of
from .models import ServedModel

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FACTS = {
    "labels": "Labels of a model.",
    "training_rows": "Rows that a model has learned from.",
    "features": "Features of a model: words and sequences of words.",
    "trees": "Trees of a model.",
}
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # by which several processes share their numbers


class Telemetry:
    """The numbers of one application."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "ldsm_requests", "Requests.", ["path", "method", "status"], registry=registry
        )
        self.seconds = Histogram(
            "ldsm_request_seconds", "Seconds per request.", ["path"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.batch = Histogram(
            "ldsm_batch_texts", "Texts that were answered together.",
            buckets=SIZES, registry=registry,
        )  # fmt: skip
        self.answer_seconds = Histogram(
            "ldsm_answer_seconds", "Seconds to answer a batch of texts.", ["model"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.processor_seconds = Counter(
            "ldsm_processor_seconds", "Processor seconds by step: features of texts, or the model.",
            ["model", "step"], registry=registry,
        )  # fmt: skip
        self.corrections = Counter(
            "ldsm_corrections", "Corrections that were kept.", ["model"], registry=registry
        )
        self.reloads = Counter(
            "ldsm_reloads", "Times that a changed model was opened.", ["model"], registry=registry
        )
        self.facts = {
            name: Gauge(
                f"ldsm_model_{name}", text, ["model"],
                registry=registry, multiprocess_mode="mostrecent",
            )
            for name, text in FACTS.items()
        }  # fmt: skip
        self.modified = Gauge(
            "ldsm_model_modified_seconds", "When a model's file was written, since 1970.",
            ["model"], registry=registry, multiprocess_mode="mostrecent",
        )  # fmt: skip

    def told(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request; paths that nobody offers count together."""
        route = scope.get("route")
        path = getattr(route, "path", None) or ("/" if path_of(scope) == "/" else "other")
        method = scope["method"] if path != "other" else "any"
        self.requests.labels(path, method, str(status or 499)).inc()  # 499: the client has left
        self.seconds.labels(path).observe(seconds)

    def exposition(self, models: Iterable[ServedModel]) -> bytes:
        """Everything in the text format of Prometheus; of all processes, if there are several."""
        for model in models:
            opened = model.last
            fitted = opened.fitted.classifier.model_
            facts = (
                fitted.n_labels,
                fitted.n_training_rows,
                fitted.n_features,
                fitted.forest.n_trees,
            )
            for gauge, value in zip(self.facts.values(), facts, strict=True):
                gauge.labels(model.name).set(value)
            self.modified.labels(model.name).set(opened.signature[0] / 1e9)
        if _FOLDER not in os.environ:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
