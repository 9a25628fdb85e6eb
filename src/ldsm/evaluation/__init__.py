"""A model beside labelled rows: metrics, its trees one by one, how far scores can be trusted."""

from .evaluation import Evaluation
from .results import MetricCurve, Scores, SingleTrees

__all__ = ["Evaluation", "MetricCurve", "Scores", "SingleTrees"]
