"""Prometheus metrics of a service."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)
from starlette.types import Scope

from ..text.encoders.onnx import OnnxEncoder
from .http.guards import path_of
from .models import Encode, ServedModel

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FACTS = {
    "labels": "Number of labels of a model.",
    "training_rows": "Number of rows that a model has learned from.",
    "features": "Number of features of a model: words and sequences of words.",
    "trees": "Number of trees of a model.",
}
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where several processes share metrics


class TimedEncoder:
    """An encoder that adds its time to a counter."""

    def __init__(self, encoder: OnnxEncoder, seconds: Counter) -> None:
        self._encoder, self._seconds, self.name = encoder, seconds, encoder.name

    def __call__(self, texts: list[str]) -> Any:
        started = time.perf_counter()
        try:
            return self._encoder(texts)
        finally:
            self._seconds.inc(time.perf_counter() - started)


class Telemetry:
    """The metrics of one application."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "ldsm_requests", "Number of requests.", ["path", "method", "status"], registry=registry
        )
        self.seconds = Histogram(
            "ldsm_request_seconds", "Seconds per request.", ["path"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.batch = Histogram(
            "ldsm_batch_texts", "Number of texts per batch.",
            buckets=SIZES, registry=registry,
        )  # fmt: skip
        self.answer_seconds = Histogram(
            "ldsm_answer_seconds", "Seconds to answer a batch of texts.", ["model"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.processor_seconds = Counter(
            "ldsm_processor_seconds", "CPU seconds by step: features of texts, or the model.",
            ["model", "step"], registry=registry,
        )  # fmt: skip
        self.encoder_seconds = Counter(
            "ldsm_encoder_seconds", "Seconds in the encoder of texts, whatever for.",
            registry=registry,
        )  # fmt: skip
        self.corrections = Counter(
            "ldsm_corrections", "Number of corrections saved.", ["model"], registry=registry
        )
        self.reloads = Counter(
            "ldsm_reloads",
            "Number of times a changed model was reloaded.",
            ["model"],
            registry=registry,
        )
        self.facts = {
            name: Gauge(
                f"ldsm_model_{name}", text, ["model"],
                registry=registry, multiprocess_mode="mostrecent",
            )
            for name, text in FACTS.items()
        }  # fmt: skip
        self.modified = Gauge(
            "ldsm_model_modified_seconds", "Unix time at which the model file was written.",
            ["model"], registry=registry, multiprocess_mode="mostrecent",
        )  # fmt: skip

    def timed(self, encoder: OnnxEncoder) -> Encode:
        """The encoder, whose time is counted."""
        return TimedEncoder(encoder, self.encoder_seconds)

    def count_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request; unknown paths are counted together."""
        route = scope.get("route")
        path = getattr(route, "path", None) or ("/" if path_of(scope) == "/" else "other")
        method = scope["method"] if path != "other" else "any"
        self.requests.labels(path, method, str(status or 499)).inc()  # 499: the client disconnected
        self.seconds.labels(path).observe(seconds)

    def exposition(self, models: Iterable[ServedModel]) -> bytes:
        """All metrics in the Prometheus text format, over all processes."""
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
