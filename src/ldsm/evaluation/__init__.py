"""Evaluate a model on labelled rows: metrics, single trees, calibration of the scores."""

from .evaluation import Evaluation
from .results import MetricCurve, Scores, SingleTrees

__all__ = ["Evaluation", "MetricCurve", "Scores", "SingleTrees"]
