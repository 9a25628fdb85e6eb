"""Evaluate a model on labelled rows: metrics, single trees, calibration of the scores."""

from .cross_validation import CrossValidation, cross_validate
from .evaluation import Evaluation
from .results import MetricCurve, Scores, SingleTrees, ThresholdCurve
from .sets import SetScores

__all__ = [
    "CrossValidation",
    "Evaluation",
    "MetricCurve",
    "Scores",
    "SetScores",
    "SingleTrees",
    "ThresholdCurve",
    "cross_validate",
]
